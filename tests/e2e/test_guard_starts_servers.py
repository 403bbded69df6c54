"""A program that embeds CXI and brings no executors: the configured servers are started, and end with the guard."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.errors import Code
from cxi.guard import Guard

SERVER = Path(__file__).parents[2] / "examples" / "servers" / "file_server.py"
POLICY = """
@id("sources") @text("Files below src may be made and changed.")
permit (principal, action in [Action::"fs.create", Action::"fs.write"], resource is File) when { resource in Folder::"src" };
"""
WRITE = {"path": "src/a.py", "content": "x = 1\n"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "policy.cedar").write_text(POLICY, encoding="utf-8")
    body = {
        "version": 1,
        "agent": "a",
        "root": "root",
        "state": "state",
        "policies": ["policy.cedar"],
        "servers": {"files": {"command": [sys.executable, str(SERVER), "${root}"], "pack": "filesystem"}},
        "tasks": {"work": {"grants": {"files.write_file": 5}}},
    }
    found = tmp_path / "cxi.yaml"
    found.write_text(json.dumps(body), encoding="utf-8")
    return found


def children() -> set[str]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text(encoding="ascii").split()}


def test_a_server_is_started_on_the_first_call_and_ends_with_the_guard(file: Path) -> None:
    assert CliRunner().invoke(app, ["lock", "--config", str(file)]).exit_code == 0
    before = children()
    with Guard.open(file) as guard, guard.session(request="Please write src/a.py.", task="work") as talk:
        assert children() == before
        assert talk.call("nobody.write_file", WRITE).codes == (Code.TOOL_UNKNOWN,)
        assert children() == before
        assert talk.call("files.write_file", WRITE).kind == "done"
        assert len(children() - before) == 1
        assert talk.call("files.read_text_file", {"path": "src/a.py"}).kind == "done"
        assert talk.call("files.write_file", {**WRITE, "path": "docs/a.md"}).kind == "refused"
        assert len(children() - before) == 1
    assert children() == before
    assert (file.parent / "root" / "src" / "a.py").read_text(encoding="utf-8") == WRITE["content"]
    assert talk.call("files.write_file", WRITE).kind == "refused"
    assert children() == before


def test_a_server_that_was_not_accepted_is_started_and_nothing_of_it_is_called(file: Path) -> None:
    with Guard.open(file) as guard, guard.session(request="Please write src/a.py.", task="work") as talk:
        assert talk.call("files.write_file", WRITE).codes == (Code.TOOL_UNPINNED,)
    assert not (file.parent / "root" / "src" / "a.py").exists()
