"""Refs, commits and trees, read or known by their hashes."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from cxi.sinks import look, plumbing
from cxi.sinks.disk import DiskWorld
from cxi.sinks.ref import is_plain_ref, read_ref, read_symbolic
from cxi.sinks.untold import Untold


def git(repo: Path, *arguments: str) -> str:
    there = {"PATH": os.environ["PATH"], "HOME": str(repo.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, env=there).stdout.decode().strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(look, "_FINE", 0)
    repo = tmp_path.resolve() / "repo"
    (repo / "src/deep").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.email", "t@example.org")
    git(repo, "config", "user.name", "t")
    for name in ("a", "src/b", "src/deep/c", "src.d"):
        (repo / name).write_text(name)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "1")
    (repo / "src/b").write_text("two")
    git(repo, "commit", "-q", "-a", "-m", "2")
    return repo


@pytest.fixture
def world(repo: Path) -> DiskWorld:
    world = DiskWorld({"PATH": os.environ["PATH"], "HOME": str(repo.parent), "GIT_CONFIG_NOSYSTEM": "1"})
    world.git(str(repo), "config", ())
    return world


@pytest.fixture
def launched(world: DiskWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What git was started for once the settings are known."""
    found: list[str] = []
    launch = plumbing._launch

    def counted(program: str, folder: str, command: list[str], environment: dict[str, str]) -> tuple[int, bytes | None]:
        found.append(command[0])
        return launch(program, folder, command, environment)

    monkeypatch.setattr(plumbing, "_launch", counted)
    return found


def test_packed_objects_are_asked_for_once_and_loose_ones_never(repo, world, launched):
    head, before = git(repo, "rev-parse", "HEAD"), git(repo, "rev-parse", "HEAD~1")
    tree = world.git(str(repo), "tree", (head,))
    assert world.git(str(repo), "changed", (before, head))
    assert launched == []
    git(repo, "gc", "-q")
    for _ in range(2):
        assert world.git(str(repo), "tree", (head,)) == tree
        assert world.git(str(repo), "resolve", ("HEAD^1",)) == before.encode() + b"\n"
        assert world.git(str(repo), "changed", (before, head))
    assert sorted(launched) == ["cat-file", "cat-file", "ls-tree", "ls-tree"]  # one of each commit
    launched.clear()
    # A commit upon them is loose, and so are the folders that it changes; the others are known.
    (repo / "src/b").write_text("three")
    git(repo, "commit", "-q", "-a", "-m", "3")
    assert world.git(str(repo), "staged", (git(repo, "rev-parse", "HEAD"),)) == b""
    assert launched == []


def test_what_is_known_of_a_packed_object_ends_with_its_pack(repo, world, launched):
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "gc", "-q")
    assert world.git(str(repo), "tree", (head,))
    for pack in (repo / ".git/objects/pack").iterdir():
        pack.unlink()
    assert world.git(str(repo), "tree", (head,)) is None


def test_an_object_that_is_not_what_its_name_says_is_not_believed(repo, world, launched):
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    head = git(repo, "rev-parse", "HEAD")
    assert world.git(str(repo), "tree", (head,))
    file = repo / ".git/objects" / tree[:2] / tree[2:]
    data = zlib.decompress(file.read_bytes())
    file.chmod(0o644)
    file.write_bytes(zlib.compress(data.replace(b"src.d", b"src.e")))
    told = world.git(str(repo), "tree", (head,))
    assert "ls-tree" in launched  # whatever git makes of it
    assert told == DiskWorld({"PATH": os.environ["PATH"]}).git(str(repo), "tree", (head,))


@pytest.mark.parametrize("what", ["a replacement", "a graft", "an alternate"])
def test_a_store_that_leads_elsewhere_is_gits_to_read(repo, world, launched, what):
    head, before = git(repo, "rev-parse", "HEAD"), git(repo, "rev-parse", "HEAD~1")
    assert world.git(str(repo), "resolve", ("HEAD^1",)) == before.encode() + b"\n"
    match what:
        case "a replacement":
            git(repo, "replace", head, before)
        case "a graft":
            (repo / ".git/info/grafts").write_text(f"{head}\n")
        case "an alternate":
            (repo / ".git/objects/info/alternates").write_text("/nowhere\n")
    launched.clear()
    asked = world.git(str(repo), "resolve", ("HEAD^1",))
    assert asked == (before.encode() + b"\n" if what == "an alternate" else None)
    assert "rev-parse" in launched


def test_an_intended_entry_is_not_staged(repo, world, launched):
    (repo / "new").write_text("new")
    git(repo, "add", "-N", "new")
    (repo / "a").write_text("two")
    git(repo, "add", "a")
    head = git(repo, "rev-parse", "HEAD")
    told = world.git(str(repo), "staged", (head,)) or b""
    assert launched == []
    assert told.split(b"\0")[1::2] == [b"a"]
    assert told.decode() == git(repo, "diff-index", "--cached", "--ita-invisible-in-index", "--raw", "-z", "--no-abbrev", head)


def test_refs_are_followed_as_git_does(repo):
    folder, head = f"{repo}/.git", git(repo, "rev-parse", "HEAD")
    assert (read_symbolic(folder, "HEAD"), read_ref(folder, "HEAD")) == ("refs/heads/main", head)
    assert (read_symbolic(folder, "refs/heads/main"), read_ref(folder, "refs/heads/none")) == (None, None)
    git(repo, "pack-refs", "--all")
    assert read_ref(folder, "refs/heads/main") == head
    git(repo, "commit", "-q", "--allow-empty", "-m", "3")
    assert read_ref(folder, "HEAD") == git(repo, "rev-parse", "HEAD") != head
    for at in range(6):
        git(repo, "symbolic-ref", f"refs/heads/s{at}", f"refs/heads/s{at + 1}" if at < 5 else "refs/heads/main")
    assert read_symbolic(folder, "refs/heads/s4") == "refs/heads/main"
    assert read_symbolic(folder, "refs/heads/s0") is Untold.ASK
    (repo / ".git/refs/heads/broken").write_text("nonsense\n")
    assert read_ref(folder, "refs/heads/broken") is Untold.ASK
    (repo / ".git/packed-refs").write_text("# pack-refs with: peeled\n")
    assert read_ref(folder, "refs/heads/none") is Untold.ASK


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/a..b",
        "refs/heads/.a",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a.",
        "refs/heads/",
        "refs/x",
        "main",
    ],
)
def test_a_name_in_an_unusual_form_is_gits_to_read(name):
    assert not is_plain_ref(name)


def test_a_tag_or_an_odd_name_goes_before_a_branch_and_is_gits_to_find(repo, world, launched):
    assert world.git(str(repo), "resolve", ("main",)) == git(repo, "rev-parse", "main").encode() + b"\n"
    assert launched == []
    git(repo, "tag", "main", "HEAD~1")
    assert world.git(str(repo), "resolve", ("main",)) == git(repo, "rev-parse", "HEAD~1").encode() + b"\n"
    git(repo, "pack-refs", "--all")
    assert world.git(str(repo), "resolve", ("main",)) == git(repo, "rev-parse", "HEAD~1").encode() + b"\n"
    assert launched == ["rev-parse"] * 2
