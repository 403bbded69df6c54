"""A call that waits for a person, through the real gateway and the real commands: asked, shown, granted once, denied."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from cxi.config.load import load
from cxi.gateway.control import control

_spec = importlib.util.spec_from_file_location("real_gateway", Path(__file__).parents[1] / "attacks" / "real_gateway.py")
assert _spec is not None
assert _spec.loader is not None
real_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(real_gateway)


def cli(config: Path, *command: str, code: int = 0) -> Any:
    done = subprocess.run(
        [*real_gateway.CLI, *command, "--config", str(config)], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout) if "--json" in command else done.stdout.decode()


def test_a_person_says_yes_once_and_no_for_good(tmp_path: Path) -> None:
    config = real_gateway.configure(tmp_path, "read-and-write", os.environ)
    gateway = real_gateway.Gateway(config, os.environ)
    assert control(load(config), {"op": "task.start", "request": "Look around.", "as": None})["ok"] is True
    assert gateway.call("act") == ["GRANT_MISSING"]
    (waiting,) = cli(config, "approve", "list", "--json")["pending"]
    assert waiting["tool"] == "it.act"
    assert waiting["display"] == cli(config, "approve", "show", waiting["id"]).rstrip("\n")
    cli(config, "approve", "grant", waiting["id"], code=2)  # nobody is there to be asked
    assert gateway.call("act") == ["GRANT_MISSING"]
    assert "granted" in cli(config, "approve", "grant", waiting["id"], "--yes")
    assert gateway.call("act") == []
    assert gateway.call("act") == ["GRANT_MISSING"]
    (again,) = cli(config, "approve", "list", "--json")["pending"]
    assert "denied" in cli(config, "approve", "deny", again["id"])
    assert "CALL_DENIED" in gateway.call("act")
    assert cli(config, "approve", "list", "--json")["pending"] == []
    cli(config, "approve", "show", "p-none", code=1)
    forged = {
        "op": "approve.answer",
        "pending": again["id"],
        "action": again["action"],
        "shown": again["shown"],
        "verdict": "grant",
    }
    assert "error" in control(load(config), forged)
    assert gateway.end(signal.SIGTERM) == 0
    cli(config, "log", "verify")
