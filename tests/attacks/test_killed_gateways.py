"""A gateway that is killed in the middle of a sink's call: it is not done again, and nothing says that it went well."""

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

_spec = importlib.util.spec_from_file_location("real_gateway", Path(__file__).parent / "real_gateway.py")
assert _spec is not None
assert _spec.loader is not None
real_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(real_gateway)

START = {"op": "task.start", "request": "please act", "as": "act-once"}


def cli(config: Path, *command: str) -> str:
    done = subprocess.run([*real_gateway.CLI, *command, "--config", str(config)], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def killed(folder: Path) -> tuple[Path, str]:
    """A configuration whose gateway was killed while its one call to `act` was under way, and that call's id."""
    config = real_gateway.configure(folder, "act-hangs", os.environ)
    gateway = real_gateway.Gateway(config, os.environ)
    assert control(load(config), START)["ok"] is True
    gateway.start("act")
    assert gateway.call("look") == []  # the other call is under way by now
    gateway.end(signal.SIGKILL)
    (call,) = json.loads(cli(config, "ledger", "unknown", "--json"))["calls"]
    return config, call["id"]


def ask_again(config: Path, *, hangs: bool = False) -> Any:
    """The same call in the next session: its codes, or `under way` where it reached the server."""
    gateway = real_gateway.Gateway(config, os.environ)
    assert control(load(config), START)["ok"] is True
    try:
        if not hangs:
            return gateway.call("act")
        gateway.start("act")
        assert gateway.call("look") == []
        (call,) = [one for one in json.loads(cli(config, "log", "show", "--json"))["calls"][-2:] if one["tool"] == "it.act"]
        return call["decision"]
    finally:
        gateway.end(signal.SIGTERM)


def test_a_killed_gateways_call_is_told_as_unknown_everywhere(tmp_path: Path) -> None:
    config, call = killed(tmp_path)
    (line,) = [line for line in cli(config, "log", "show").splitlines() if call in line]
    assert line.split()[0] == "??"
    assert json.loads(cli(config, "explain", call, "--json"))["state"] == "outcome_unknown"
    assert [one["state"] for one in json.loads(cli(config, "ledger", "unknown", "--json"))["calls"]] == ["outcome_unknown"]
    assert json.loads(cli(config, "log", "verify", "--json"))["ok"] is True


def test_a_killed_gateways_call_does_not_happen_again_in_the_next_session(tmp_path: Path) -> None:
    config, _ = killed(tmp_path)
    assert ask_again(config) == ["OUTCOME_UNKNOWN"]
    assert ask_again(config) == ["OUTCOME_UNKNOWN"]


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["failed", "done"])
def test_a_killed_gateways_call_is_admitted_once_a_person_said_how_it_ended(tmp_path: Path, outcome: str) -> None:
    """After `done` the new task's own count decides: a user who asks again asks for another one."""
    config, call = killed(tmp_path)
    cli(config, "ledger", "release", call, "--as", outcome, "--reason", "looked at the server")
    assert ask_again(config, hangs=True) == "admitted"
