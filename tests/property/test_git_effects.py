"""What the git adapter plans is what real git and GitPython do: nothing happens that is not in the plan."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi.effects.base import Effect
from cxi.effects.git import GitAdapter
from cxi.effects.realized import differences
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value

FEW = max(8, settings().max_examples // 5)  # each example is a repository of its own, and dozens of real git commands

gitpython = pytest.importorskip("git")

PATHS = ("a", "b.t", "d/x", "d/y.t", "d/e/z", "f", "f/g", "skip.ign", "l")
CONTENTS = (b"1\n", b"2\n", b"", b"x\r\ny\r\n", b"x\r\ny\n", b"lone\rcr\r\n", b"\0bin\r\n", b"\x01\x02\x03\r\n", b"text\r\n" * 9)
ATTRIBUTES = (b"", b"* text=auto\n", b"*.t text\n", b"*.t eol=crlf\n", b"* -text\n", b"b.t binary\n", b"*.t text=auto eol=lf\n")

place = st.sampled_from(PATHS)
write = st.tuples(st.just("write"), place, st.sampled_from(CONTENTS))
change = st.one_of(
    write,
    write,
    st.tuples(st.just("delete"), place, st.just(b"")),
    st.tuples(st.just("chmod"), place, st.just(b"")),
    st.tuples(st.just("link"), place, st.sampled_from((b"a", b"nowhere", b"d"))),
    st.tuples(st.just("write"), st.just(".gitattributes"), st.sampled_from(ATTRIBUTES)),
)
staging = st.tuples(st.sampled_from(("stage", "unstage")), place, st.just(b""))
local = st.one_of(change, staging, change)
history = st.tuples(
    st.lists(write, min_size=1, max_size=5),
    st.lists(change, max_size=5),
    st.lists(local, max_size=5),
    st.sampled_from(("", "", "true", "input")),
)


def run(repo: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=repo, capture_output=True, check=check)
    return done.stdout.decode("utf-8", "surrogateescape")


def apply(repo: Path, actions: list[tuple[str, str, bytes]]) -> None:
    for action, name, data in actions:
        path = repo / name
        try:
            match action:
                case "write" | "link":
                    if path.is_symlink() or path.is_file():
                        path.unlink()
                    elif path.is_dir():
                        shutil.rmtree(path)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data) if action == "write" else path.symlink_to(data.decode())
                case "delete" if path.is_symlink() or path.is_file():
                    path.unlink()
                case "chmod" if path.is_file() and not path.is_symlink():
                    path.chmod(path.stat().st_mode ^ 0o111)
                case "stage":
                    run(repo, "add", "-A", "--", name, check=False)
                case "unstage":
                    run(repo, "rm", "-q", "--cached", "--", name, check=False)
        except (FileExistsError, NotADirectoryError):
            continue  # a file stands where a folder was meant


def make(base: Path, plan: tuple[list, list, list, str]) -> Path:
    first, second, dirty, endings = plan
    repo = base / "r"
    repo.mkdir()
    run(repo, "init", "-q", "-b", "main")
    run(repo, "config", "user.email", "t@example.org")
    run(repo, "config", "user.name", "t")
    if endings:
        run(repo, "config", "core.autocrlf", endings)
    apply(repo, [("write", ".gitignore", b"*.ign\n"), *first])
    run(repo, "add", "-A")
    run(repo, "commit", "-q", "-m", "1")
    run(repo, "checkout", "-q", "-b", "other")
    apply(repo, second)
    run(repo, "add", "-A")
    run(repo, "commit", "-q", "--allow-empty", "-m", "2")
    run(repo, "checkout", "-q", "-f", "main")
    run(repo, "clean", "-q", "-d", "-f")
    apply(repo, dirty)
    return repo


def call(**fields: object) -> tuple[CanonicalCall, Mapping[str, str]]:
    leaves: list[FieldValue] = []
    inputs = {"op": f"={fields.pop('op')}", "repository": "=."}
    for name, value in fields.items():
        inputs[name] = name
        items = value if isinstance(value, list) else [value]
        for index, item in enumerate(items):
            many = isinstance(value, list)
            leaf = Value("Text", item, item)
            leaves.append(FieldValue(f"{name}[{index}]" if many else name, f"{name}[]" if many else name, Role.PROTECTED, leaf))
    return CanonicalCall("git", "x", tuple(leaves), MappingProxyType({})), inputs


def files(repo: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(repo):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*folders, *names]:
            path = Path(folder) / name
            key = str(path.relative_to(repo))
            if path.is_symlink():
                found[key] = ("link", str(path.readlink()))
            elif path.is_dir():
                found[key] = "folder"
            else:
                found[key] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def index(repo: Path) -> dict[str, str]:
    return {row.partition("\t")[2]: row.partition("\t")[0] for row in run(repo, "ls-files", "-s", "-z").split("\0") if row}


def refs(repo: Path) -> dict[str, str]:
    rows = dict(row.split(" ") for row in run(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    return rows | {"HEAD": (repo / ".git/HEAD").read_text()}


def differ(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def plan_and_run(repo: Path, act: object, **fields: object) -> tuple[Effect | Refused, bool]:
    """Plan, check that planning changed nothing, run, and check that nothing happened beyond the plan."""
    asked, inputs = call(**fields)
    world = DiskWorld()
    snapshot = RecordingSnapshot(world, str(repo))
    before = files(repo), index(repo), refs(repo)
    bytes_before = (repo / ".git/index").read_bytes() if (repo / ".git/index").exists() else b""
    effect = GitAdapter().plan(asked, inputs, snapshot)
    assert (files(repo), index(repo), refs(repo)) == before
    assert ((repo / ".git/index").read_bytes() if (repo / ".git/index").exists() else b"") == bytes_before
    assert stale(snapshot.reads, world) == ()
    if isinstance(effect, Refused) or not effect.atoms:
        expected: dict[str, set[str]] = {"files": set(), "index": set(), "refs": set()}
        if isinstance(effect, Refused):
            return effect, False
    else:
        named = {
            kind: {atom.target for atom in effect.atoms if atom.kind.startswith(kind)} for kind in ("fs.", "git.index", "git.ref")
        }
        expected = {"files": named["fs."], "index": named["git.index"], "refs": named["git.ref"]}
        if fields["op"] == "checkout":
            expected["index"] = named["fs."] | set(before[1])  # what a checkout does to the index is in its `git.checkout` atom
        expected["parents"] = {str(parent) for target in named["fs."] for parent in Path(target).parents} - {"."}
    try:
        act()
        done = True
    except (subprocess.CalledProcessError, gitpython.GitError, ValueError, OSError):
        done = False
    after = files(repo), index(repo), refs(repo)
    changed = differ(before[0], after[0])
    made = changed & expected.get("parents", set())
    beyond = changed - expected["files"] - {path for path in made if path not in before[0] and after[0].get(path) == "folder"}
    assert not beyond, (beyond, effect)
    assert not differ(before[1], after[1]) - expected["index"], effect
    assert not differ(before[2], after[2]) - expected["refs"], effect
    if done:
        assert differences(effect, str(repo), world) == ()
        if fields["op"] in ("add", "reset"):
            assert differ(before[1], after[1]) == expected["index"]
    return effect, done


@settings(max_examples=FEW)
@given(history, st.lists(st.sampled_from((".", *PATHS, "d", "d/e")), min_size=1, max_size=3, unique=True))
def test_add_stages_exactly_the_planned_paths(plan, names):
    with tempfile.TemporaryDirectory() as base:
        repo = make(Path(base), plan)
        plan_and_run(repo, lambda: run(repo, "add", "--", *names), op="add", files=names)


@settings(max_examples=FEW)
@given(history)
def test_reset_unstages_exactly_the_planned_paths(plan):
    with tempfile.TemporaryDirectory() as base:
        repo = make(Path(base), plan)
        plan_and_run(repo, gitpython.Repo(repo).index.reset, op="reset")


@settings(max_examples=FEW)
@given(history)
def test_commit_records_exactly_the_planned_tree(plan):
    with tempfile.TemporaryDirectory() as base:
        repo = make(Path(base), plan)

        def act() -> None:
            opened = gitpython.Repo(repo)
            if not opened.index.diff(opened.head.commit):  # as the server does before it commits
                raise ValueError("nothing staged")
            opened.index.commit("m")

        effect, done = plan_and_run(repo, act, op="commit", message="m")
        assert isinstance(effect, Effect)
        assert done == bool(effect.atoms)


@settings(max_examples=2 * FEW)
@given(history, st.sampled_from(("other", "other", "main", "other~1", "HEAD")))
def test_checkout_changes_exactly_the_planned_files(plan, name):
    with tempfile.TemporaryDirectory() as base:
        repo = make(Path(base), plan)
        plan_and_run(repo, lambda: run(repo, "checkout", name), op="checkout", branch=name)


@settings(max_examples=FEW)
@given(history)
def test_a_clean_checkout_is_planned_and_done(plan):
    """The other direction: where nothing is in the way and no rule converts files, the plan is no refusal, and git does it."""
    with tempfile.TemporaryDirectory() as base:
        repo = make(Path(base), (plan[0], [item for item in plan[1] if item[1] != ".gitattributes"], [], ""))
        effect, done = plan_and_run(repo, lambda: run(repo, "checkout", "other"), op="checkout", branch="other")
        assert isinstance(effect, Effect)
        assert done
