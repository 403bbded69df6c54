"""What the world says of a call afterwards: there, not there, or nothing; never a guess."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.base import Atom, Effect
from cxi.effects.hindsight import MARGIN, NotThere, There, Unclear, judge, read_effect
from cxi.manifest import Assurance
from cxi.sinks.disk import DiskWorld

LEASED = 1_000_000.0
LONG_AGO = LEASED - MARGIN - 5


def of(*atoms: Atom, assurance: Assurance = Assurance.CHECKED) -> Effect:
    return Effect("file/1", atoms, assurance)


def write(name: str, before: bytes, after: bytes) -> Atom:
    return Atom("fs.write", name, {"before": digest_bytes(before), "after": digest_bytes(after)})


def create(name: str, after: bytes) -> Atom:
    return Atom("fs.create", name, {"after": digest_bytes(after)})


class Times:
    """Last changes: long ago, but for what a test touches."""

    def __init__(self) -> None:
        self.later: set[str] = set()

    def __call__(self, path: str) -> float | None:
        if not os.path.lexists(path):
            return None
        return LEASED + 5 if path in self.later else LONG_AGO


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., object]:
    def judged(effect: Effect, *touched: str) -> object:
        times = Times()
        times.later = {str(tmp_path / name) for name in touched}
        return judge(effect, str(tmp_path), DiskWorld(), times, LEASED)

    return judged


def test_all_atoms_there_is_there(tmp_path: Path, look: Callable[..., object]) -> None:
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"made")
    assert look(of(write("a", b"old", b"new"), create("b", b"made"), Atom("fs.delete", "c", {})), "a", "b") == There(3)


def test_nothing_there_and_nothing_touched_is_not_there(tmp_path: Path, look: Callable[..., object]) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "c").write_bytes(b"gone?")
    gone = Atom("fs.delete", "c", {"before": digest_bytes(b"gone?")})
    assert look(of(write("a", b"old", b"new"), create("deep/er/b", b"made"), gone)) == NotThere(3)


def test_partly_there_is_unclear_and_says_which(tmp_path: Path, look: Callable[..., object]) -> None:
    (tmp_path / "a").write_bytes(b"new")
    verdict = look(of(write("a", b"old", b"new"), create("b", b"made")), "a")
    assert isinstance(verdict, Unclear)
    assert any("`b`" in line for line in verdict.why)


def test_what_another_wrote_since_is_unclear(tmp_path: Path, look: Callable[..., object]) -> None:
    (tmp_path / "a").write_bytes(b"another's")
    assert isinstance(look(of(write("a", b"old", b"new")), "a"), Unclear)


@pytest.mark.parametrize("touched", ["a", ""])
def test_an_effect_that_was_undone_is_not_taken_for_one_that_never_was(
    tmp_path: Path, look: Callable[..., object], touched: str
) -> None:
    """The bytes from before stand there again, or the new file is gone again: what was touched since tells nothing."""
    (tmp_path / "a").write_bytes(b"old")
    effect = of(write("a", b"old", b"new")) if touched else of(create("b", b"made"))
    assert isinstance(look(effect, touched), Unclear)
    assert look(effect) == NotThere(1)


def test_a_change_within_the_margin_counts_as_later(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    effect = of(write("a", b"old", b"new"))
    assert isinstance(judge(effect, str(tmp_path), DiskWorld(), lambda _path: LEASED - MARGIN / 2, LEASED), Unclear)
    assert judge(effect, str(tmp_path), DiskWorld(), lambda _path: LEASED - MARGIN * 2, LEASED) == NotThere(1)


@pytest.mark.parametrize(
    "effect",
    [
        of(),
        of(Atom("fs.read", "a", {})),
        of(create("b", b"made"), Atom("proc.exec", "/bin/make", {})),
        of(Atom("fs.create", "b", {"after": digest_bytes(b"x")}), assurance=Assurance.DECLARED),
        of(Atom("fs.write", "a", {})),
        of(Atom("fs.delete", "*.log", {}, pattern=True)),
    ],
)
def test_what_cannot_be_seen_is_unclear(look: Callable[..., object], effect: Effect) -> None:
    assert isinstance(look(effect), Unclear)


def test_a_path_behind_a_link_is_unclear(tmp_path: Path, look: Callable[..., object]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"new")
    (tmp_path / "folder").symlink_to("elsewhere")
    assert isinstance(look(of(write("folder/a", b"old", b"new"))), Unclear)


def test_atoms_are_read_back_from_the_log_with_the_same_digest() -> None:
    effect = of(write("a", b"old", b"new"), Atom("fs.delete", "*.log", {}, pattern=True))
    told: list[dict[str, JsonValue]] = [atom.to_json() for atom in effect.atoms]
    again = read_effect(list(told), "file/1", "checked")
    assert (again.digest, again.atoms) == (effect.digest, effect.atoms)


# --- git


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a").write_text("one")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def staged(before: str, after: str) -> Effect:
    return Effect("git/1", (Atom("git.index", "a", {"op": "add", "before": before, "after": after}),), Assurance.CHECKED)


def test_a_staged_file_is_there_and_one_that_is_not_is_not(repository: Path, look: Callable[..., object]) -> None:
    before = git(repository, "rev-parse", ":a")
    (repository / "a").write_text("two")
    after = git(repository, "hash-object", "a")
    assert look(staged(before, after)) == NotThere(1)
    assert isinstance(look(staged(before, after), ".git/index"), Unclear)
    git(repository, "add", "a")
    assert look(staged(before, after), ".git/index") == There(1)
    (repository / "a").write_text("three")
    git(repository, "add", "a")
    assert isinstance(look(staged(before, after), ".git/index"), Unclear)


def test_a_commit_is_there_by_its_tree_and_parent_and_not_there_where_no_ref_moved(
    repository: Path, look: Callable[..., object]
) -> None:
    parent = git(repository, "rev-parse", "HEAD")
    (repository / "a").write_text("two")
    git(repository, "add", "a")
    shared: dict[str, JsonValue] = {"tree": git(repository, "write-tree"), "repository": "."}
    ref: dict[str, JsonValue] = {"op": "update", "branch": "main", "ref": "refs/heads/main", "before": parent}
    commit = Atom("git.commit", "main", {"branch": "main", "parent": parent, "message": "second", "paths": ["a"], **shared})
    effect = Effect("git/1", (commit, Atom("git.ref", "refs/heads/main", ref | shared)), Assurance.CHECKED)
    assert look(effect) == NotThere(2)
    assert isinstance(look(effect, ".git/refs/heads/main"), Unclear)
    git(repository, "commit", "-q", "-m", "second")
    assert look(effect, ".git/refs/heads/main") == There(2)
    git(repository, "reset", "-q", "--soft", parent)
    assert isinstance(look(effect, ".git/refs/heads/main"), Unclear)
