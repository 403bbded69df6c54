"""The shipped packs classify everything that the real servers list."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from cxi.config.check import Severity, lint
from cxi.config.load import load
from cxi.config.lock import make_lock, write_lock

ROOT = Path(__file__).parents[2]


async def _list_tools(command: Sequence[str]) -> list[dict[str, Any]]:
    async with (
        stdio_client(StdioServerParameters(command=command[0], args=list(command[1:]))) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await session.list_tools()).tools]


def _commands(repo: Path) -> dict[str, list[str]]:
    return {
        "git": [str(ROOT / ".venvs/git/bin/mcp-server-git"), "--repository", str(repo)],
        "fetch": [str(ROOT / ".venvs/fetch/bin/mcp-server-fetch")],
        "filesystem": [sys.executable, str(ROOT / "examples/servers/file_server.py"), str(repo)],
    }


@pytest.mark.parametrize("pack", ["git", "fetch", "filesystem"])
def test_nothing_that_a_real_server_lists_is_unclassified(tmp_path: Path, pack: str):
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    command = _commands(repo)[pack]
    if not Path(command[0]).exists():
        pytest.skip(f"{pack}: its server is not installed (make setup)")
    file = tmp_path / "cxi.yaml"
    file.write_text(
        f"version: 1\nagent: m\nroot: repo\nstate: state\nservers:\n  s: {{command: [{', '.join(command)}], pack: {pack}}}\n"
    )
    config = load(file, pinned=False)
    write_lock(config.lock_file, make_lock(config, {"s": asyncio.run(_list_tools(command))}))
    report = lint(load(file))
    assert [str(finding) for finding in report.findings if finding.severity is Severity.ERROR] == []
    assert report.counts["unclassified"] == 0
    # The example's file server hands out no media; the others have exactly their packs' tools.
    assert report.counts["lacking"] == (1 if pack == "filesystem" else 0)
    assert report.counts["locked_tools"] == report.counts["tools"] - report.counts["lacking"]
