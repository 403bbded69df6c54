"""However the gateway ends, what it launched is settled, and the log holds."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cxi.config.load import load
from cxi.gateway.control import control

_spec = importlib.util.spec_from_file_location("real_gateway", Path(__file__).parents[1] / "attacks" / "real_gateway.py")
assert _spec is not None
assert _spec.loader is not None
real_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(real_gateway)

START = {"op": "task.start", "request": "please act", "as": "act-once"}


def cli(config: Path, *command: str) -> Any:
    done = subprocess.run([*real_gateway.CLI, *command, "--config", str(config)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in command else done.stdout


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_call_in_flight_at_the_end_is_settled_as_unknown(tmp_path: Path, number: int | None) -> None:
    config = real_gateway.configure(tmp_path, "act-hangs", os.environ)
    gateway = real_gateway.Gateway(config, os.environ)
    assert control(load(config), START)["ok"] is True
    gateway.start("act")
    assert gateway.call("look") == []  # the other call is under way by now, and holds up nobody
    assert gateway.end(number) == 0
    (call,) = cli(config, "ledger", "unknown", "--json")["calls"]
    assert call["state"] == "outcome_unknown"
    cli(config, "log", "verify")


def test_an_answer_that_cannot_be_kept_exactly_settles_its_call_and_the_gateway_lives(tmp_path: Path) -> None:
    config = real_gateway.configure(tmp_path, "act-odd", os.environ)
    gateway = real_gateway.Gateway(config, os.environ)
    assert control(load(config), START)["ok"] is True
    gateway.call("act")
    gateway.call("look")
    assert [tool["name"] for tool in gateway.ask("tools/list")["tools"]] == ["it__look", "it__act"]
    assert gateway.end(signal.SIGTERM) == 0
    assert [call["state"] for call in cli(config, "ledger", "unknown", "--json")["calls"] if call["state"] == "leased"] == []
    cli(config, "log", "verify")
