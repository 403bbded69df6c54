"""What the file adapter plans is what a real file server does: nothing happens that is not in the plan."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cxi.effects.base import Effect
from cxi.effects.file import FileAdapter
from cxi.effects.realized import differences
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value

pytest.importorskip("mcp")
SERVER = Path(__file__).parents[2] / "examples" / "servers" / "file_server.py"
spec = importlib.util.spec_from_file_location("example_file_server", SERVER)
assert spec is not None
assert spec.loader is not None
file_server = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = file_server  # dataclasses look their module up
spec.loader.exec_module(file_server)

NAMES = ("a", "b", "é", "e\u0301", "d", "d/x", "d/e/y", "n/m/o", "link", "hard")
path = st.sampled_from(NAMES)
text = st.text(alphabet="ab\n\r $&'é\u2028", max_size=12)
tree = st.lists(
    st.one_of(
        st.tuples(st.just("file"), path, text),
        st.tuples(st.just("folder"), path, st.just("")),
        st.tuples(st.just("link"), path, st.sampled_from(("a", "d", "nowhere", "../outside"))),
        st.tuples(st.just("hard"), path, st.sampled_from(("a", "d/x"))),
        st.tuples(st.just("program"), path, text),
    ),
    max_size=8,
)


@st.composite
def scene(draw: st.DrawFn) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """A tree, and a call that is mostly about something in it."""
    things = draw(tree)
    there = st.sampled_from([name for _, name, _ in things] or NAMES)
    some = st.one_of(there, there, path)
    match draw(st.sampled_from(("write", "edit", "create_directory", "move", "move"))):
        case "write":
            return things, {"op": "write", "path": draw(some), "content": draw(text)}
        case "edit":
            held = [data for _, _, data in things if data] or ["a"]
            pairs = draw(st.lists(st.tuples(st.one_of(st.sampled_from(held), text), text), min_size=1, max_size=3))
            return things, {"op": "edit", "path": draw(some), "edits": pairs}
        case "move":
            return things, {
                "op": "move",
                "source": draw(there),
                "destination": draw(st.sampled_from(("new", "d/new", "p/q", *NAMES))),
            }
        case _:
            return things, {"op": "create_directory", "path": draw(some)}


def build(root: Path, things: list[tuple[str, str, str]]) -> None:
    for kind, name, data in things:
        place = root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "folder":
                    place.mkdir()
                case "link":
                    place.symlink_to(data)
                case "hard":
                    os.link(root / data, place)
                case _:
                    place.write_bytes(data.encode())
                    place.chmod(0o755 if kind == "program" else 0o644)
        except OSError:
            continue


def leaf(name: str, value: Any) -> FieldValue:
    return FieldValue(name, name, Role.PAYLOAD, Value("Json", value, value))


def ask(given: Mapping[str, Any]) -> tuple[CanonicalCall, Mapping[str, str]]:
    values = {name: value for name, value in given.items() if name != "op"}
    if "edits" in values:
        values["edits"] = [{"oldText": old, "newText": new} for old, new in values["edits"]]
    inputs = {"op": f"={given['op']}"} | {name: name for name in values}
    return CanonicalCall("files", "x", tuple(leaf(name, value) for name, value in values.items()), MappingProxyType({})), inputs


def act(root: Path, given: Mapping[str, Any]) -> bool:
    server = file_server.FileServer((str(root),))
    try:
        match given["op"]:
            case "write":
                server.write(given["path"], given["content"])
            case "edit":
                server.edit(given["path"], given["edits"])
            case "create_directory":
                server.make_folder(given["path"])
            case "move":
                server.move(given["source"], given["destination"])
    except (OSError, file_server.ToolError):
        return False
    return True


def look(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            here = Path(folder) / name
            key = str(here.relative_to(root))
            if here.is_symlink():
                found[key] = str(here.readlink())
            elif here.is_dir():
                found[key] = "folder"
            else:
                found[key] = (here.read_bytes(), here.stat().st_mode)
    return found


@given(scene())
def test_a_file_server_does_exactly_what_was_planned(drawn):
    things, given = drawn
    with tempfile.TemporaryDirectory() as base:
        outside = Path(base).resolve() / "outside"
        outside.mkdir()
        root = outside.parent / "root"
        root.mkdir()
        build(root, things)
        # A value type resolves paths before an adapter sees them: the parent here, the link itself where it is kept.
        for name in ("path", "source", "destination"):
            if name in given:
                assume((root / given[name]).parent.resolve() == (root / given[name]).parent)
        asked, inputs = ask(given)
        world = DiskWorld()
        snapshot = RecordingSnapshot(world, str(root))
        before = look(root)
        effect = FileAdapter().plan(asked, inputs, snapshot)
        assert look(root) == before
        assert stale(snapshot.reads, world) == ()
        if isinstance(effect, Refused):
            return
        done = act(root, given)
        after = look(root)
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        planned = {atom.target for atom in effect.atoms}
        parents = {str(parent) for target in planned for parent in Path(target).parents}
        beyond = {key for key in changed - planned if not (key in parents and key not in before and after[key] == "folder")}
        assert not beyond, effect
        assert list(outside.iterdir()) == []
        if done:
            assert differences(effect, str(root), world) == ()
            assert {atom.target for atom in effect.atoms if not atom.attributes.get("maybe")} <= changed


@given(tree, path, text)
def test_a_write_where_nothing_special_stands_is_planned(things, name, content):
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve()
        build(root, [thing for thing in things if thing[0] in ("file", "program") and thing[1] in ("a", "b", "d/x")])
        assume(name in ("a", "b", "d/x", "n/m/o") and not (root / name).is_dir())
        asked, inputs = ask({"op": "write", "path": name, "content": content})
        effect = FileAdapter().plan(asked, inputs, RecordingSnapshot(DiskWorld(), str(root)))
        assert isinstance(effect, Effect)
