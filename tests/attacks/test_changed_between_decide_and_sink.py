"""Threat: what a plan rests on changes between the decision and the sink, where the gate remembers it or reads it by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects.base import Effect
from cxi.effects.git import GitAdapter
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks import look
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value


def environment(repo: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(repo.parent), "GIT_CONFIG_NOSYSTEM": "1"}


def git(repo: Path, *arguments: str, **more: str) -> str:
    asked = ["git", *arguments]
    return subprocess.run(
        asked, cwd=repo, check=True, capture_output=True, text=True, env=environment(repo) | more
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(look, "_FINE", 0)  # all is old enough to be remembered
    repo = tmp_path.resolve() / "repo"
    (repo / "src").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "--global", "user.email", "t@example.org")
    git(repo, "config", "--global", "user.name", "t")
    git(repo, "config", "--global", "include.path", "more")
    git(repo, "config", "filter.f.clean", "true")
    for name in ("src/a.py", "src/b.py", ".gitignore"):
        (repo / name).write_text(f"{name}\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "1")
    git(repo, "branch", "other")
    (repo / "src/a.py").write_text("two\n")
    (repo / "src/new.py").write_text("new\n")
    write(repo, "apart/new.py", "new\n")
    git(repo, "add", "src/b.py")
    (repo / ".git/spare").write_bytes((repo / ".git/index").read_bytes())
    (repo / "src/b.py").write_text("two\n")
    git(repo, "add", "src/b.py")
    return repo


def write(repo: Path, name: str, text: str) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def same_size_and_time(repo: Path) -> None:
    status = (repo / "src/a.py").stat()
    (repo / "src/a.py").write_text("six\n")
    os.utime(repo / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))


def hook(repo: Path, name: str) -> None:
    write(repo, f".git/hooks/{name}", "#!/bin/sh\n")
    (repo / ".git/hooks" / name).chmod(0o755)


def replace_commit(repo: Path) -> None:
    """The present commit, under its name, is one of another tree."""
    git(repo, "add", "src/a.py", GIT_INDEX_FILE=".git/other")
    commit = git(repo, "commit-tree", "-m", "x", git(repo, "write-tree", GIT_INDEX_FILE=".git/other"))
    git(repo, "replace", "HEAD", commit)


def link(repo: Path) -> None:
    (repo / "src").rename(repo / "moved")
    (repo / "src").symlink_to("moved")


ADD = ("add", ["src/a.py", "src/new.py", "apart/new.py"])
COMMIT = ("commit", "m")
CHANGES: dict[str, tuple[tuple[str, object], Callable[[Path], object]]] = {
    "the bytes of a file, its size and time restored": (ADD, same_size_and_time),
    "a setting of the repository": (ADD, lambda repo: git(repo, "config", "core.hooksPath", "tools")),
    "a setting of the user": (ADD, lambda repo: git(repo, "config", "--global", "core.fsmonitor", "true")),
    "a setting of a user's other file": (ADD, lambda repo: write(repo, "../.config/git/config", "[core]\n\tx = 1\n")),
    "a file that settings include": (ADD, lambda repo: write(repo, "../more", "[core]\n\thooksPath = /tmp\n")),
    "a hook": (ADD, lambda repo: hook(repo, "post-index-change")),
    "attributes": (ADD, lambda repo: write(repo, ".gitattributes", "*.py filter=f\n")),
    "attributes below": (ADD, lambda repo: write(repo, "src/.gitattributes", "*.py filter=f\n")),
    "the repository's own attributes": (ADD, lambda repo: write(repo, ".git/info/attributes", "*.py filter=f\n")),
    "the user's attributes": (ADD, lambda repo: write(repo, "../.config/git/attributes", "*.py filter=f\n")),
    "an ignore rule": (ADD, lambda repo: write(repo, "src/.gitignore", "new.py\n")),
    "the repository's own ignore rules": (ADD, lambda repo: write(repo, ".git/info/exclude", "new.py\n")),
    "the user's ignore rules": (ADD, lambda repo: write(repo, "../.config/git/ignore", "new.py\n")),
    "a nested repository": (ADD, lambda repo: git(repo, "init", "-q", "apart")),
    "the index": (ADD, lambda repo: git(repo, "add", "src/a.py")),
    "the index, put back as it was": (ADD, lambda repo: (repo / ".git/spare").replace(repo / ".git/index")),
    "a flag of the index": (ADD, lambda repo: git(repo, "update-index", "--assume-unchanged", "src/a.py")),
    "a link in place of a folder": (ADD, link),
    "the branch": (COMMIT, lambda repo: git(repo, "symbolic-ref", "HEAD", "refs/heads/other")),
    "the branch's commit": (COMMIT, lambda repo: git(repo, "commit", "-q", "--allow-empty", "-m", "2")),
    "what is staged": (COMMIT, lambda repo: git(repo, "add", "src/a.py")),
    "a hook of the commit": (COMMIT, lambda repo: hook(repo, "pre-commit")),
    "a commit's replacement": (COMMIT, replace_commit),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changes_between_decision_and_sink_is_seen(repo, what):
    (op, value), change = CHANGES[what]
    world, name = DiskWorld(environment(repo)), "files" if op == "add" else "message"
    fields = [(f"{name}[{at}]", f"{name}[]", item) for at, item in enumerate(value)] if op == "add" else [(name, name, value)]
    leaves = tuple(FieldValue(path, contract, Role.PROTECTED, Value("Text", item, item)) for path, contract, item in fields)
    call = CanonicalCall("git", op, leaves, MappingProxyType({}))
    inputs = {"op": f"={op}", "repository": "=.", name: name}
    for _ in range(3):  # so that all that can be remembered is
        snapshot = RecordingSnapshot(world, str(repo))
        effect = GitAdapter().plan(call, inputs, snapshot)
        assert isinstance(effect, Effect)
        assert effect.atoms
        assert stale(snapshot.reads, world) == ()
    change(repo)
    assert stale(snapshot.reads, world) != ()
    # And what is planned anew is what a world that remembers nothing plans.
    again = GitAdapter().plan(call, inputs, RecordingSnapshot(world, str(repo)))
    assert again == GitAdapter().plan(call, inputs, RecordingSnapshot(DiskWorld(environment(repo)), str(repo)))
