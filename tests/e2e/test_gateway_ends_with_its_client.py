"""A client that is gone before it said anything: the gateway ends at once, whatever its servers do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CONFIGURATION = """version: 1
agent: a
root: root
state: state
servers:
  slow: {{command: [{python}, -c, "import time; time.sleep(60)"], pack: filesystem, limits: {{start: 50s}}}}
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[list[str]]:
    (tmp_path / "root").mkdir()
    file = tmp_path / "cxi.yaml"
    file.write_text(CONFIGURATION.format(python=sys.executable), encoding="utf-8")
    yield [sys.executable, "-c", "import cxi.cli; cxi.cli.main()", "gateway", "--config", str(file)]


def test_input_from_dev_null_ends_the_gateway_cleanly(command: list[str]) -> None:
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=9, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.parametrize("streams", ["<&-", "<&- >&-", "<&- >&- 2>&-", "</dev/null >/dev/null"])
def test_streams_that_are_closed_end_the_gateway_cleanly(command: list[str], streams: str) -> None:
    shell = ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", *command]
    assert subprocess.run(shell, capture_output=True, timeout=9, check=False).returncode == 0


def test_a_file_as_input_is_answered_whole(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 3000)
    with file.open("rb") as lines:
        ended = subprocess.run(command, stdin=lines, capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout.count(b"\n")) == (0, 3000)
