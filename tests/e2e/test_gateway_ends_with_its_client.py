"""A client that is gone ends the gateway at once, whatever its servers do; what it sent before is answered and logged."""

from __future__ import annotations

import json
import subprocess
import sys
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
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "root").mkdir()
    file = tmp_path / "cxi.yaml"
    file.write_text(CONFIGURATION.format(python=sys.executable), encoding="utf-8")
    return [sys.executable, "-c", "import cxi.cli; cxi.cli.main()", "gateway", "--config", str(file)]


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


def test_refusals_at_the_edge_are_logged_and_can_be_explained(command: list[str], tmp_path: Path) -> None:
    client = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
    calls = (
        b'{"name":"nobody__knows","arguments":{}}',
        b'{"name":"nobody__knows","arguments":[]}',
        b'{"name":"nobody__knows","arguments":{"a":1,"a":2}}',
        b'{"name":"nobody__knows","arguments":{"a":1.5e400}}',
    )
    lines = [b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}' % client]
    lines += [b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % item for item in enumerate(calls, start=1)]
    ended = subprocess.run(command, input=b"\n".join(lines) + b"\n", capture_output=True, timeout=30, check=False)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    told = {answer["result"]["_meta"]["cxi.dev/refusal"]["call"] for answer in answers if answer["id"]}
    shown = subprocess.run([*command[:3], "log", "show", "--json", *command[4:]], capture_output=True, timeout=30, check=True)
    found = {call["id"]: call["why"] for call in json.loads(shown.stdout)["calls"]}
    assert told == found.keys()
    assert set(found.values()) == {"TOOL_UNKNOWN", "FIELD_TYPE", "DUPLICATE_KEY", "NUMBER_NOT_EXACT"}
    call = next(iter(found))
    explained = subprocess.run([*command[:3], "explain", call, *command[4:]], capture_output=True, timeout=30, check=True)
    assert found[call].encode() in explained.stdout
