"""The world of this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cxi.sinks import disk, index, look, plumbing
from cxi.sinks.disk import DiskWorld, case_rule
from cxi.sinks.plumbing import Plumbing
from cxi.values.base import EntryKind


@pytest.fixture
def world() -> DiskWorld:
    return DiskWorld()


def test_entries_are_seen_without_following(tmp_path, world):
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "f").chmod(0o640)
    (tmp_path / "l").symlink_to("f")
    os.mkfifo(tmp_path / "p")
    file = world.entry(f"{tmp_path}/f")
    assert (file.kind, file.mode, file.size, file.links) == (EntryKind.FILE, 0o640, 3, 1)
    assert (world.entry(f"{tmp_path}/l").kind, world.entry(f"{tmp_path}/l").target) == (EntryKind.LINK, "f")
    assert world.entry(f"{tmp_path}").kind is EntryKind.FOLDER
    assert world.entry(f"{tmp_path}/p").kind is EntryKind.OTHER
    assert world.entry(f"{tmp_path}/none").kind is EntryKind.ABSENT
    assert world.entry(f"{tmp_path}/f/x").kind is EntryKind.NOT_A_FOLDER
    assert world.entry(f"{tmp_path}/{'n' * 300}").kind is EntryKind.DENIED
    assert world.entry("/a\0b").kind is EntryKind.DENIED


def test_content_is_of_regular_files_only_and_bounded(tmp_path, world, monkeypatch):
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "l").symlink_to("f")
    os.mkfifo(tmp_path / "p")
    assert world.content(f"{tmp_path}/f") == b"abc"
    assert [world.content(f"{tmp_path}/{name}") for name in ("l", "p", ".", "none", "\0")] == [None] * 5
    monkeypatch.setattr(disk, "LIMIT", 2)
    assert world.content(f"{tmp_path}/f") is None


def test_names_are_sorted_and_not_through_a_link(tmp_path, world):
    (tmp_path / "d").mkdir()
    for name in ("b", "a", "é"):
        (tmp_path / "d" / name).touch()
    (tmp_path / "l").symlink_to("d")
    assert world.names(f"{tmp_path}/d") == ("a", "b", "é")
    assert world.names(f"{tmp_path}/l") is None
    assert world.names(f"{tmp_path}/d/a") is None


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    return tmp_path.resolve()


def test_git_is_asked_named_questions_only(repo, world):
    assert world.git(str(repo), "symbolic", ("HEAD",)) == b"refs/heads/main\n"
    assert world.git(str(repo), "push", ()) is None
    assert world.git(str(repo), "symbolic", ()) is None
    assert world.git(str(repo), "symbolic", ("HEAD", "refs/heads/x")) is None
    assert world.git("relative", "symbolic", ("HEAD",)) is None
    assert world.git(str(repo / "none"), "symbolic", ("HEAD",)) is None


def test_an_argument_is_never_an_option(repo, world):
    assert world.git(str(repo), "symbolic", ("--delete",)) is None
    assert world.git(str(repo), "tree", ("--help",)) is None
    assert world.git(str(repo), "blob", ("--batch-all-objects",)) is None
    assert world.git(str(repo), "resolve", ("a\0b",)) is None


def test_the_environment_redirects_nothing(repo, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    subprocess.run(["git", "init", "-q", "-b", "elsewhere"], cwd=other, check=True)
    for name, value in (
        ("GIT_DIR", str(other / ".git")),
        ("GIT_WORK_TREE", str(other)),
        ("GIT_INDEX_FILE", str(other / "index")),
        ("GIT_EXEC_PATH", str(other)),
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_EDITOR", "false"),
        ("GIT_CONFIG_PARAMETERS", "'core.hookspath=x'"),
        ("GIT_CONFIG_COUNT", "1"),  # without its key
        ("GIT_CONFIG_COUNT", "many"),
        ("GIT_SOMETHING_NEW", "1"),
        ("PATH", f".:{os.environ['PATH']}"),
    ):
        world = DiskWorld({**os.environ, name: value})
        assert [world.git(str(repo), question, ()) for question in ("config", "hooks-path", "index")] == [None] * 3, name
        assert world.git(str(repo), "symbolic", ("HEAD",)) is None, name
    idle = {"GIT_AUTHOR_NAME": "a", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "", "PATH": f"{os.environ['PATH']}:."}
    assert DiskWorld({**os.environ, **idle}).git(str(repo), "symbolic", ("HEAD",)) == b"refs/heads/main\n"


def test_settings_of_the_environment_are_told_and_those_of_the_gate_are_not(repo):
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "x"}
    rows = (DiskWorld({**os.environ, **given}).git(str(repo), "config", ()) or b"").split(b"\0")
    assert rows[-3:] == [b"environment", b"core.fsmonitor\nx", b""]
    assert b"/dev/null" not in (DiskWorld().git(str(repo), "config", ()) or b"")
    assert DiskWorld().git(str(repo), "hooks-path", ()) == b""


def test_a_parent_folders_repository_is_not_taken(repo, world):
    (repo / "sub").mkdir()
    assert world.git(str(repo / "sub"), "layout", ()) is None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that really reach git; every file counts as old enough to be remembered."""
    calls: list[str] = []
    ask = Plumbing.ask

    def counted(self: Plumbing, *arguments: object) -> bytes | None:
        calls.append(str(arguments[1]))
        return ask(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Plumbing, "ask", counted)
    monkeypatch.setattr(look, "_FINE", 0)
    monkeypatch.setattr(look, "_COARSE", 0)
    return calls


def test_settings_are_remembered_until_they_change(repo, world, asked):
    first = world.git(str(repo), "config", ())
    assert world.git(str(repo), "config", ()) == first
    assert asked == ["layout", "config"]
    git(repo, "config", "core.hooksPath", "h")
    assert world.git(str(repo), "config", ()) != first
    (repo / "more").write_text("[core]\n\tx = 1\n")
    git(repo, "config", "include.path", str(repo / "more"))
    before = world.git(str(repo), "config", ())
    assert world.git(str(repo), "config", ()) == before
    asked.clear()
    assert world.git(str(repo), "config", ()) == before
    assert asked == []
    (repo / "more").write_text("[core]\n\tx = 2\n")
    assert world.git(str(repo), "config", ()) != before


def git(repo: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repo, check=True)


@pytest.mark.parametrize("question", ["index", "index-flags"])
def test_an_index_that_is_too_large_is_remembered_until_the_file_changes(repo, world, asked, monkeypatch, question):
    monkeypatch.setattr(index, "MOST_ENTRIES", 0)
    (repo / "a").write_text("1")
    git(repo, "add", "a")
    first = world.git(str(repo), question, ())
    assert first
    assert world.git(str(repo), question, ()) == first
    assert asked.count(question) == 1
    (repo / "b").write_text("1")
    git(repo, "add", "b")
    git(repo, "update-index", "--assume-unchanged", "a")
    second = world.git(str(repo), question, ())
    assert second != first
    assert second == DiskWorld().git(str(repo), question, ())


def test_an_index_of_several_files_is_asked_for_each_time(repo, world, asked):
    (repo / "a").write_text("1")
    git(repo, "add", "a")
    git(repo, "update-index", "--split-index")
    world.git(str(repo), "index", ())
    world.git(str(repo), "index", ())
    assert asked.count("index") == 2


def test_an_answer_is_not_remembered_where_a_file_changed_meanwhile(repo, world, asked, monkeypatch):
    """Changed and changed back: what git answered in between is never told again."""
    monkeypatch.setattr(index, "MOST_ENTRIES", 0)
    (repo / "a").write_text("1")
    (repo / "b").write_text("1")
    git(repo, "add", "a")
    file = repo / ".git" / "index"
    before, ask = file.read_bytes(), Plumbing.ask

    def late(self: Plumbing, *arguments: object) -> bytes | None:
        if arguments[1] != "index":
            return ask(self, *arguments)  # type: ignore[arg-type]
        git(repo, "add", "b")
        answer = ask(self, *arguments)  # type: ignore[arg-type]
        file.write_bytes(before)
        return answer

    monkeypatch.setattr(Plumbing, "ask", late)
    with_both = world.git(str(repo), "index", ())
    monkeypatch.setattr(Plumbing, "ask", ask)
    assert world.git(str(repo), "index", ()) == DiskWorld().git(str(repo), "index", ()) != with_both


def test_a_question_that_takes_too_long_has_no_answer(repo, world, monkeypatch):
    monkeypatch.setattr(plumbing, "TIMEOUT", 0)
    assert world.git(str(repo), "symbolic", ("HEAD",)) is None


def test_an_answer_that_is_too_large_is_none(repo, world, monkeypatch):
    monkeypatch.setattr(plumbing, "LIMIT", 10)
    assert world.git(str(repo), "config", ()) is None


def test_the_case_rule_is_told_from_names_that_are_there(tmp_path):
    (tmp_path / "Name").touch()
    (tmp_path / "caf\u00e9").touch()
    before = sorted(os.listdir(tmp_path))  # noqa: PTH208
    folds = (tmp_path / "nAME").exists()
    assert case_rule(str(tmp_path)) == (not folds, (tmp_path / "cafe\u0301").exists())
    assert sorted(os.listdir(tmp_path)) == before  # noqa: PTH208
