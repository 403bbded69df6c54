"""Real gateways on one PostgreSQL ledger: calls, the commands over it, epochs of several gateways, and a kill."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backend_case import Cluster
from cxi.config.load import load
from cxi.gateway.control import control

_spec = importlib.util.spec_from_file_location("real_gateway", Path(__file__).parents[1] / "attacks" / "real_gateway.py")
assert _spec is not None
assert _spec.loader is not None
real_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(real_gateway)


def run(environ: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    """Without a configuration."""
    return subprocess.run([*real_gateway.CLI, *command], capture_output=True, text=True, check=False, env=environ)


START = {"op": "task.start", "request": "please act", "as": "act-once"}


@pytest.fixture
def environ(postgres: Cluster) -> dict[str, str]:
    """What names the database; the role has no password here, and would have it in a password file."""
    postgres.clear(clock="server")
    return {**os.environ, "CXI_LEDGER": f"postgresql://gateway@127.0.0.1:{postgres.server.port}/postgres"}


def cli(config: Path, environ: Mapping[str, str], *command: str, code: int = 0) -> Any:
    done = subprocess.run(
        [*real_gateway.CLI, *command, "--config", str(config)], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if "--json" in command else done.stdout + done.stderr


def test_a_gateway_and_every_command_work_over_postgresql(tmp_path: Path, environ: dict[str, str]) -> None:
    config = real_gateway.configure(tmp_path, "act-odd", environ)
    gateway = real_gateway.Gateway(config, environ)
    assert control(load(config), START)["ok"] is True
    gateway.call("act")
    assert gateway.call("act") != [], "once is once"
    assert gateway.call("look") == []
    assert gateway.end(signal.SIGTERM) == 0
    assert not (load(config).state / "ledger.sqlite").exists()
    shown = cli(config, environ, "log", "show", "--json")
    assert shown["verified"] is True
    admitted = [call for call in shown["calls"] if call["sink"]]
    (row,) = cli(config, environ, "ledger", "list", "--json")["calls"]
    assert row["id"] == admitted[0]["id"]
    assert cli(config, environ, "explain", row["id"], "--json")["tool"] == "it.act"
    assert cli(config, environ, "ledger", "show", row["id"], "--json")["entries"]
    assert cli(config, environ, "ledger", "stats", "--json")["entries"] == shown["entries"]
    assert cli(config, environ, "log", "checkpoint", "--json")["size"] >= 0
    verified = cli(config, environ, "log", "verify", "--json")
    assert (verified["ok"], verified["entries"]) == (True, shown["entries"])
    if row["state"] in ("done", "failed"):
        envelope = cli(config, environ, "log", "receipt", row["id"])
        assert "payload" in envelope


def test_receipts_exports_and_rotations_are_of_the_chain_that_holds_the_call(tmp_path: Path, environ: dict[str, str]) -> None:
    """Two gateways at once write a chain each; a command writes to one of them, or to its own."""
    config = real_gateway.configure(tmp_path, "act-odd", environ)
    first = real_gateway.Gateway(config, environ)
    assert control(load(config), START)["ok"] is True
    first.call("act")
    second = real_gateway.Gateway(config, environ)
    for _ in range(3):
        assert second.call("look") == []
    assert [gateway.end(signal.SIGTERM) for gateway in (second, first)] == [0, 0]
    (row,) = cli(config, environ, "ledger", "list", "--json")["calls"]
    assert "--origin" in cli(config, environ, "log", "export", code=2)
    key = tmp_path / "old.pem"
    key.write_text(cli(config, environ, "log", "key"), encoding="utf-8")
    for rotated in (False, True):
        if rotated:
            cli(config, environ, "log", "key", "rotate", "--reason", "r", "--json")
            third = real_gateway.Gateway(config, environ)
            assert third.call("look") == []
            assert third.end(signal.SIGTERM) == 0
        assert cli(config, environ, "log", "verify", "--json")["ok"] is True
        receipt = tmp_path / "receipt.json"
        receipt.write_text(cli(config, environ, "log", "receipt", row["id"]), encoding="utf-8")
        done = run(environ, "log", "verify-receipt", str(receipt), "--key", str(key), "--json")
        assert json.loads(done.stdout)["call"] == row["id"], done.stderr
        names = {json.loads(line)["origin"] for line in _checkpoints(config)}
        assert len(names) > 1
        for name in names:
            file = tmp_path / f"{rotated}-{name.replace('/', '-')}.jsonl"
            cli(config, environ, "log", "export", "--jsonl", str(file), "--origin", name)
            done = run(environ, "log", "verify", str(file), "--key", str(key), "--json")
            assert json.loads(done.stdout)["ok"] is True, done.stderr


def _checkpoints(config: Path) -> list[str]:
    lines = (load(config).state / "checkpoints.jsonl").read_text(encoding="utf-8").splitlines()
    return [base64.b64decode(json.loads(line)["payload"]).decode() for line in lines]


def test_what_is_changed_in_the_database_does_not_verify(postgres: Cluster, tmp_path: Path, environ: dict[str, str]) -> None:
    config = real_gateway.configure(tmp_path, "act-odd", environ)
    gateway = real_gateway.Gateway(config, environ)
    assert gateway.call("look") == []
    assert gateway.end(signal.SIGTERM) == 0
    cli(config, environ, "log", "verify")
    postgres.run("UPDATE cxi.log SET content = replace(content, '\"read\"', '\"task\"') WHERE kind = 'read'")
    cli(config, environ, "log", "verify", code=1)
    postgres.run("UPDATE cxi.log SET content = replace(content, '\"task\"', '\"read\"') WHERE kind = 'read'")
    cli(config, environ, "log", "verify")
    postgres.run("DELETE FROM cxi.log", "DELETE FROM cxi.chain")
    assert "lost entries" in cli(config, environ, "log", "verify", code=3)


def test_a_gateway_with_other_files_is_refused_while_one_is_at_work_and_can_be_told_to_go_ahead(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    first = real_gateway.configure(tmp_path / "first", "act-odd", environ)
    other = real_gateway.configure(tmp_path / "other", "act-hangs", environ)
    gateway = real_gateway.Gateway(first, environ)
    assert control(load(first), START)["ok"] is True
    refused = cli(other, environ, "gateway", code=2)
    assert "cxi ledger activate" in refused
    assert gateway.call("look") == []
    assert cli(other, environ, "ledger", "activate", "--json")["epoch"][0] == 2
    assert gateway.call("act") == ["EPOCH_CHANGED"]
    assert gateway.end(signal.SIGTERM) == 0
    following = real_gateway.Gateway(other, environ)
    assert following.end(signal.SIGTERM) == 0


def test_a_call_of_a_killed_gateway_blocks_its_event_for_every_other(tmp_path: Path, environ: dict[str, str]) -> None:
    config = real_gateway.configure(tmp_path, "act-hangs", environ)
    gateway = real_gateway.Gateway(config, environ)
    assert control(load(config), START)["ok"] is True
    gateway.start("act")
    assert gateway.call("look") == []
    while not cli(config, environ, "ledger", "list", "--json")["calls"]:
        pass
    gateway.end(signal.SIGKILL)
    second = real_gateway.Gateway(config, environ)
    assert control(load(config), START)["ok"] is True
    assert second.call("act") == ["IN_FLIGHT"], "nobody knows yet that the other is gone"
    assert second.end(signal.SIGTERM) == 0
    (call,) = cli(config, environ, "ledger", "unknown", "--json")["calls"]
    assert call["state"] == "leased"


def test_a_configuration_of_another_tenant_is_refused(tmp_path: Path, environ: dict[str, str]) -> None:
    config = real_gateway.configure(tmp_path, "act-odd", environ)
    config.write_text(config.read_text() + "tenant: acme\n")
    cli(config, environ, "lock")
    assert "acme" in cli(config, environ, "gateway", code=3)
