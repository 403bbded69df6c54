"""What the gate knows of a repository without asking git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects.base import Effect
from cxi.effects.git import GitAdapter
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks import gitfolder, look, plumbing
from cxi.sinks.disk import DiskWorld
from cxi.sinks.gitfolder import GitFolder
from cxi.sinks.plumbing import Plumbing
from cxi.values.base import Value


def git(repo: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(repo.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, env=environment)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(look, "_FINE", 0)
    monkeypatch.setattr(look, "_COARSE", 0)
    repo = tmp_path.resolve() / "repo"
    (repo / "src").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.email", "t@example.org")
    git(repo, "config", "user.name", "t")
    for at in range(3):
        (repo / f"src/{at}.py").write_text("one\n")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "1")
    return repo


@pytest.fixture
def world(repo: Path) -> DiskWorld:
    return DiskWorld({"PATH": os.environ["PATH"], "HOME": str(repo.parent), "GIT_CONFIG_NOSYSTEM": "1"})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What git was started for."""
    found: list[str] = []
    launch = plumbing._launch

    def counted(program: str, folder: str, command: list[str], environment: dict[str, str]) -> tuple[int, bytes | None]:
        found.append(" ".join(command[:2]))
        return launch(program, folder, command, environment)

    monkeypatch.setattr(plumbing, "_launch", counted)
    return found


def plan(repo: Path, world: DiskWorld, op: str, **fields: str) -> RecordingSnapshot:
    leaves = tuple(FieldValue(name, name, Role.PROTECTED, Value("Text", text, text)) for name, text in fields.items())
    snapshot = RecordingSnapshot(world, str(repo))
    inputs = {"op": f"={op}", "repository": "=."} | {name: name for name in fields}
    assert isinstance(GitAdapter().plan(CanonicalCall("git", op, leaves, MappingProxyType({})), inputs, snapshot), Effect)
    return snapshot


ORDINARY = {
    "add": {"files": "src/1.py"},
    "status": {},
    "log": {},
    "branch": {},
    "diff_unstaged": {},
    "diff_staged": {},
    "commit": {"message": "m"},
    "show": {"revision": "HEAD"},
    "reset": {},
}


@pytest.mark.parametrize("op", ORDINARY)
def test_an_ordinary_plan_and_its_second_look_start_no_git(repo, world, launched, op):
    plan(repo, world, op, **ORDINARY[op])  # learns the settings
    for text in ("two\n", "three\n"):
        (repo / "src/1.py").write_text(text)
        (repo / "src/2.py").write_text(text)
        git(repo, "add", "src/2.py")
        launched.clear()
        assert stale(plan(repo, world, op, **ORDINARY[op]).reads, world) == ()
        assert launched == []


def test_a_new_file_is_asked_for_once(repo, world, launched):
    (repo / "src/new.py").write_text("new\n")
    plan(repo, world, "status")
    launched.clear()
    snapshot = plan(repo, world, "add", files="src/new.py")
    assert launched == ["ls-files --others"]
    assert stale(snapshot.reads, world) == ()
    assert launched == ["ls-files --others"]


def test_attributes_are_asked_for_once(repo, world, launched):
    (repo / ".gitattributes").write_text("*.py text\n")
    (repo / "src/1.py").write_text("two\n")
    plan(repo, world, "add", files="src/1.py")
    launched.clear()
    assert stale(plan(repo, world, "add", files="src/1.py").reads, world) == ()
    assert launched == []


def test_a_repository_behind_a_link_is_gits_to_read(repo, world, launched):
    (repo.parent / "link").symlink_to("repo")
    for _ in range(2):
        launched.clear()
        assert world.git(f"{repo.parent}/link", "index", ()) == world.git(str(repo), "index", ())
        assert "ls-files --stage" in launched


def test_many_files_are_gits_to_compare(repo, world, launched, monkeypatch):
    monkeypatch.setattr(gitfolder, "MOST_COMPARED", 3)
    world.git(str(repo), "config", ())
    launched.clear()
    (repo / "src/1.py").write_text("two\n")
    assert b"src/1.py" in (world.git(str(repo), "modified", ()) or b"")
    assert launched == ["diff-files --raw"]


def test_nothing_is_remembered_of_a_file_that_just_changed(repo, world, launched, monkeypatch):
    monkeypatch.setattr(look, "_FINE", 3600 * 10**9)
    for _ in range(2):
        launched.clear()
        assert world.git(str(repo), "config", ())
        assert "config --list" in launched


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away; the next test asks the same of the key")
def test_a_repository_of_another_owner_is_remembered_no_longer(repo, world):
    assert world.git(str(repo), "layout", ())
    os.chown(repo / ".git", 12345, 12345)
    os.chown(repo, 12345, 12345)
    assert world.git(str(repo), "layout", ()) is None


def test_the_owner_and_the_mode_of_the_folders_are_in_the_key(repo, world):
    key = world._git.grounds.key(str(repo), ())
    assert key is not None
    assert key.folders[0][2:] == (repo.stat().st_mode, os.getuid(), repo.stat().st_gid)
    (repo / ".git").chmod(0o700)
    assert world._git.grounds.key(str(repo), ()) != key


def test_another_program_is_another_key(repo, world, tmp_path):
    key = world._git.grounds.key(str(repo), ())
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "git").symlink_to("/usr/bin/true")
    other = DiskWorld({"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(repo.parent)})
    assert other._git.grounds.key(str(repo), ()) != key


def test_the_system_wide_files_are_those_that_git_names():
    program = Plumbing({"PATH": os.environ["PATH"]}).find()
    assert program is not None
    places = Plumbing({"PATH": os.environ["PATH"]}).places(program)
    assert places is not None
    asked = subprocess.run(
        ["git", "config", "--system", "--edit"],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "GIT_EDITOR": "echo"},
    )
    assert places.settings == asked.stdout.strip()
    assert places.attributes.endswith("/gitattributes")


@pytest.mark.parametrize("name", ["core.trustctime", "core.checkstat", "core.symlinks"])
def test_settings_that_change_how_files_are_compared_leave_that_to_git(repo, world, launched, name):
    git(repo, "config", name, "minimal" if name == "core.checkstat" else "false")
    world.git(str(repo), "config", ())
    launched.clear()
    assert world.git(str(repo), "modified", ()) is not None
    assert launched == ["diff-files --raw"]


def test_a_git_folder_reads_in_the_environment_of_its_server(repo):
    given = {"PATH": os.environ["PATH"], "HOME": str(repo.parent)}
    folder = GitFolder(Plumbing(given | {"GIT_DIR": "elsewhere"}))
    assert folder.begin().answer(str(repo), "index", ()) is None
    assert GitFolder(Plumbing(given)).begin().answer(str(repo), "index", ())
