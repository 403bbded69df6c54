"""The file adapter's plans, case by case."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from cxi.canonical import digest_bytes
from cxi.effects import ADAPTERS
from cxi.effects.base import Effect
from cxi.effects.edit import apply
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "src/deep").mkdir(parents=True)
    (root / "src/app.py").write_bytes(b"one\ntwo\n")
    (root / "src/deep/x").write_bytes(b"x")
    (root / "src/deep/l").symlink_to("../app.py")
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    return root


def leaves(fields: dict[str, Any]) -> tuple[FieldValue, ...]:
    found = []
    for name, value in fields.items():
        if isinstance(value, list) and name != "edits":
            for at, item in enumerate(value):
                path = name.replace("[]", f"[{at}]", 1) if "[]" in name else f"{name}[{at}]"
                found.append(FieldValue(path, name if "[]" in name else f"{name}[]", Role.PAYLOAD, Value("Text", item, item)))
        else:
            found.append(FieldValue(name, name, Role.PAYLOAD, Value("Json", value, value)))
    return tuple(sorted(found, key=lambda leaf: leaf.path))


def plan(root: Path, op: str = "write", inputs: dict[str, str] | None = None, **fields: Any) -> Effect | Refused:
    call = CanonicalCall("files", op, leaves(fields), MappingProxyType({}))
    mapped = {"op": f"={op}"} | (inputs if inputs is not None else {name: name for name in fields})
    return ADAPTERS["file"].plan(call, mapped, RecordingSnapshot(DiskWorld(), str(root)))


def atoms(effect: Effect | Refused) -> list[tuple[str, str]]:
    assert isinstance(effect, Effect), effect
    return [(atom.kind, atom.target) for atom in effect.atoms]


def codes(effect: Effect | Refused) -> tuple[str, ...]:
    assert isinstance(effect, Refused), effect
    return effect.codes


def test_writing_where_nothing_was_creates(root):
    effect = plan(root, path="src/new.py", content="é\n")
    assert atoms(effect) == [("fs.create", "src/new.py")]
    assert isinstance(effect, Effect)
    assert effect.atoms[0].attributes == {"after": digest_bytes("é\n".encode())}
    assert (effect.atoms[0].field, effect.adapter, effect.assurance) == ("path", "file/1", "checked")


def test_writing_over_a_file_names_both_contents(root):
    effect = plan(root, path="src/app.py", content="three\n")
    assert isinstance(effect, Effect)
    assert effect.atoms[0].attributes == {"before": digest_bytes(b"one\ntwo\n"), "after": digest_bytes(b"three\n")}


def test_writing_the_same_bytes_is_no_effect(root):
    assert atoms(plan(root, path="src/app.py", content="one\ntwo\n")) == []
    assert atoms(plan(root, "create_directory", path="src")) == []


def test_an_overwritten_program_stays_one(root):
    effect = plan(root, path="run.sh", content="#!/bin/sh\nx\n")
    assert isinstance(effect, Effect)
    assert effect.atoms[0].attributes["mode"] == "755"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("src", "EFFECT_INEXACT"),
        (".", "EFFECT_INEXACT"),
        ("src/app.py/x", "EFFECT_INEXACT"),
        ("src/deep/l", "EFFECT_UNSUPPORTED"),
        ("../x", "PATH_MALFORMED"),
        ("a//b", "PATH_MALFORMED"),
        ("a/./b", "PATH_MALFORMED"),
        ("a\0b", "PATH_MALFORMED"),
    ],
)
def test_where_no_file_can_stand_nothing_is_written(root, path, code):
    assert codes(plan(root, path=path, content="x")) == (code,)


def test_a_fifo_is_not_written_and_does_not_block(root):
    os.mkfifo(root / "pipe")
    assert codes(plan(root, path="pipe", content="x")) == ("EFFECT_UNSUPPORTED",)


def test_another_spelling_of_a_name_that_is_there_is_refused(root):
    (root / "cafe\u0301").write_text("x")
    assert codes(plan(root, path="caf\u00e9", content="x")) == ("EFFECT_INEXACT",)
    (root / "\u212a").write_text("x")  # the kelvin sign composes to an ASCII letter
    assert codes(plan(root, path="K", content="x")) == ("EFFECT_INEXACT",)


def test_a_shared_file_whose_names_are_not_all_found_is_refused(root, tmp_path_factory):
    os.link(root / "src/app.py", root / "other")
    assert atoms(plan(root, path="other", content="x")) == [("fs.write", "other"), ("fs.write", "src/app.py")]
    os.link(root / "src/app.py", tmp_path_factory.mktemp("outside") / "third")
    assert codes(plan(root, path="other", content="x")) == ("EFFECT_INEXACT",)


def test_appending_keeps_what_was_there(root):
    effect = plan(root, "append", path="src/app.py", content="three\n")
    assert isinstance(effect, Effect)
    assert effect.atoms[0].attributes["after"] == digest_bytes(b"one\ntwo\nthree\n")
    assert atoms(plan(root, "append", path="src/none.py", content="x")) == [("fs.create", "src/none.py")]


def test_a_missing_content_is_refused(root):
    assert codes(plan(root, path="src/new.py")) == ("EFFECT_UNREADABLE",)
    assert codes(plan(root, content="x")) == ("EFFECT_UNREADABLE",)
    assert codes(plan(root, path="src/new.py", content=7)) == ("EFFECT_UNREADABLE",)


def test_an_unknown_operation_is_refused(root):
    assert codes(plan(root, "truncate", path="src/app.py")) == ("EFFECT_UNSUPPORTED",)


def test_edits_come_whole_or_leaf_by_leaf_in_order(root):
    whole = plan(root, "edit", path="src/app.py", edits=[{"oldText": "one", "newText": "1"}, {"oldText": "two", "newText": "2"}])
    assert isinstance(whole, Effect)
    assert whole.atoms[0].attributes["after"] == digest_bytes(b"1\n2\n")
    many = {"edits[].oldText": ["one", *(f"{n};" for n in range(11))], "edits[].newText": [*(f"{n};" for n in range(11)), "end"]}
    single = plan(root, "edit", {"path": "path", "edits": "edits"}, path="src/app.py", **many)
    assert isinstance(single, Effect)
    assert single.atoms[0].attributes["after"] == digest_bytes(b"end\ntwo\n")


def test_a_dry_run_only_reads(root):
    edits = [{"oldText": "one", "newText": "1"}]
    assert atoms(plan(root, "edit", path="src/app.py", edits=edits, dry_run=True)) == [("fs.read", "src/app.py")]
    assert atoms(plan(root, "edit", path="src/app.py", edits=edits, dry_run=False)) == [("fs.write", "src/app.py")]
    assert codes(plan(root, "edit", path="src/app.py", edits=edits, dry_run="perhaps")) == ("EFFECT_UNREADABLE",)


@pytest.mark.parametrize(
    ("data", "old", "new", "code"),
    [
        (b"a a", "a", "b", "EFFECT_INEXACT"),
        (b"aaa", "aa", "b", "EFFECT_INEXACT"),
        (b"a", "z", "b", "EFFECT_INEXACT"),
        (b"  a\n", "a \n", "b\n", "EFFECT_INEXACT"),
        (b"a", "", "b", "EFFECT_INEXACT"),
        (b"a", "a", "$&", "EFFECT_UNSUPPORTED"),
        (b"a", "a", "$$x", "EFFECT_UNSUPPORTED"),
        (b"a\xff", "a", "b", "EFFECT_UNSUPPORTED"),
        (b"a", "a", "\udc80", "EFFECT_UNREADABLE"),
    ],
)
def test_an_edit_whose_outcome_is_open_is_refused(data, old, new, code):
    assert codes(apply(data, [(old, new)])) == (code,)  # type: ignore[arg-type]


def test_an_edit_normalizes_line_endings_of_the_whole_file():
    assert apply(b"a\r\nb\r\n", [("a\r\nb", "c")]) == b"c\n"
    assert apply("\ufeffa$1\n".encode(), [("a$1", "price: $5")]) == "\ufeffprice: $5\n".encode()


def test_a_moved_folder_is_each_thing_in_it_with_links_kept(root):
    effect = plan(root, "move", source="src", destination="lib")
    assert sorted(atoms(effect)) == sorted(
        [
            ("fs.delete", "src/app.py"),
            ("fs.delete", "src/deep/x"),
            ("fs.delete", "src/deep/l"),
            ("fs.rmdir", "src/deep"),
            ("fs.rmdir", "src"),
            ("fs.mkdir", "lib"),
            ("fs.mkdir", "lib/deep"),
            ("fs.create", "lib/app.py"),
            ("fs.create", "lib/deep/x"),
            ("fs.symlink", "lib/deep/l"),
        ]
    )
    assert isinstance(effect, Effect)
    made = {atom.target: atom.attributes for atom in effect.atoms if atom.kind in ("fs.create", "fs.symlink")}
    assert made["lib/app.py"] == {"after": digest_bytes(b"one\ntwo\n"), "renamed_from": "src/app.py"}
    assert made["lib/deep/l"] == {"to": "../app.py", "renamed_from": "src/deep/l"}


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("src/app.py", "run.sh", "EFFECT_INEXACT"),
        ("src/app.py", "src/app.py", "EFFECT_INEXACT"),
        ("src", "src/inner", "EFFECT_INEXACT"),
        ("src/none", "x", "EFFECT_INEXACT"),
        ("src/app.py", "run.sh/x", "EFFECT_INEXACT"),
        (".", "x", "EFFECT_INEXACT"),
        ("src/deep/l", "x", "EFFECT_UNSUPPORTED"),
    ],
)
def test_a_move_that_cannot_be_exact_is_refused(root, source, destination, code):
    assert codes(plan(root, "move", source=source, destination=destination)) == (code,)


def test_a_folder_with_too_much_in_it_is_refused(root, monkeypatch):
    monkeypatch.setattr("cxi.effects.place.LIMIT", 2)
    assert codes(plan(root, "delete", path="src")) == ("EFFECT_UNSUPPORTED",)


def test_a_deleted_folder_goes_inside_out(root):
    found = atoms(plan(root, "delete", path="src"))
    assert found[-1] == ("fs.rmdir", "src")
    assert found.index(("fs.delete", "src/deep/x")) < found.index(("fs.rmdir", "src/deep"))
    assert atoms(plan(root, "delete", path="src/deep/l")) == [("fs.delete", "src/deep/l")]


def test_a_copy_reads_and_creates_but_not_with_links(root):
    assert atoms(plan(root, "copy", source="run.sh", destination="b.sh")) == [("fs.read", "run.sh"), ("fs.create", "b.sh")]
    assert codes(plan(root, "copy", source="src", destination="lib")) == ("EFFECT_UNSUPPORTED",)


def test_reads_are_the_paths_and_a_tree_is_every_folder(root):
    assert atoms(plan(root, "read", paths=["src/app.py", "none"])) == [("fs.read", "src/app.py"), ("fs.read", "none")]
    tree, top = plan(root, "tree", path="src"), plan(root, "search", path=".", pattern="*.py")
    assert sorted(atoms(tree)) == [("fs.read", "src"), ("fs.read", "src/deep")]
    assert {("fs.read", "."), ("fs.read", "src"), ("fs.read", "src/deep")} <= set(atoms(top))
    assert all((root / target).is_dir() for _, target in atoms(top))
    assert not any(atom.pattern for atom in top.atoms)


def test_a_name_that_is_no_utf8_is_refused(root):
    (root / "odd").mkdir()
    (root / "odd" / os.fsdecode(b"\xff")).touch()
    assert codes(plan(root, "delete", path="odd")) == ("EFFECT_UNSUPPORTED",)


def test_a_path_outside_the_root_is_named_absolutely(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("other").resolve() / "x"
    assert atoms(plan(root, path=str(other), content="x")) == [("fs.create", str(other))]
    assert atoms(plan(root, path=str(root / "src/app.py"), content="x")) == [("fs.write", "src/app.py")]
