"""The demo is the main job on real input: its own checks of the real repository decide."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
GIT_SERVER = PROJECT / ".venvs/git/bin/mcp-server-git"

pytestmark = pytest.mark.slow


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if not GIT_SERVER.is_file():
        pytest.skip("mcp-server-git is not installed (make setup)")
    command = [sys.executable, str(PROJECT / "examples" / "demo.py"), "--folder", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=240, check=False)


def test_behind_the_gate_exactly_the_authorized_changes_happen(tmp_path: Path) -> None:
    done = run(tmp_path / "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert page.count("FIELD_NO_AUTHORITY") > 0


def test_without_the_gate_the_same_agent_does_the_damage(tmp_path: Path) -> None:
    done = run(tmp_path / "demo", "--without-gate")
    assert done.returncode == 0, done.stdout + done.stderr
