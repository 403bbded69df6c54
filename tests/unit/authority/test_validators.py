"""Validators against the real file system and the real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cxi.authority.declassifier import VALIDATORS
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.sinks.disk import DiskWorld
from cxi.values import value_type
from cxi.values.base import Value


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "repo"
    (root / "tests").mkdir(parents=True)
    for name in ("tests/a.py", "tests/new.py", "*.py", "tests/ü.py"):
        (root / name).write_text("x")
    (root / "link.py").symlink_to("tests/a.py")
    os.mkfifo(root / "pipe")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "tests/a.py", "tests/ü.py", "link.py"], cwd=root, check=True)
    return root


def holds(name: str, root: Path, path: str, final: str = "follow") -> bool:
    snapshot = RecordingSnapshot(DiskWorld(), str(root))
    value = value_type("FilePath", {"final": final}).parse(path, snapshot.root)
    assert isinstance(value, Value), value
    return VALIDATORS[name](value, snapshot) is None


@pytest.mark.parametrize(
    ("path", "tracked", "regular", "folder"),
    [
        ("tests/a.py", True, True, False),
        ("tests/ü.py", True, True, False),
        ("tests/../tests/a.py", True, True, False),
        ("link.py", True, True, False),  # as the target reads it: the file behind the link
        ("tests/new.py", False, True, False),
        ("*.py", False, True, False),  # a name, not a pattern that would match a tracked file
        ("tests", False, False, True),
        (".", False, False, True),
        ("pipe", False, False, False),
        ("absent.py", False, False, False),
        ("/etc/passwd", False, True, False),
    ],
)
def test_what_a_path_is(repository: Path, path: str, tracked: bool, regular: bool, folder: bool) -> None:
    assert holds("tracked-file", repository, path) is tracked
    assert holds("regular-file", repository, path) is regular
    assert holds("existing-file", repository, path) is regular
    assert holds("existing-folder", repository, path) is folder


def test_a_link_that_is_kept_exists_but_is_no_regular_file(repository: Path) -> None:
    assert holds("existing-file", repository, "link.py", "keep")
    assert not holds("regular-file", repository, "link.py", "keep")


def test_staging_another_file_leaves_the_answer_as_it_is(repository: Path) -> None:
    snapshot = RecordingSnapshot(DiskWorld(), str(repository))
    value = value_type("RepoPath", {}).parse("tests/a.py", snapshot.root)
    assert isinstance(value, Value)
    assert VALIDATORS["tracked-file"](value, snapshot) is None
    subprocess.run(["git", "add", "tests/new.py"], cwd=repository, check=True)
    assert stale(snapshot.reads, DiskWorld()) == ()
    subprocess.run(["git", "rm", "-q", "--cached", "tests/a.py"], cwd=repository, check=True)
    assert stale(snapshot.reads, DiskWorld()) != ()


def test_without_a_repository_nothing_is_tracked(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    assert not holds("tracked-file", tmp_path.resolve(), "a.py")
