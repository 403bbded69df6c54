"""Who has no credential opens no task, and with no task open an agent may look and list, not act."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cxi.config.load import load
from cxi.gateway.control import control, live_gateways

_spec = importlib.util.spec_from_file_location("real_gateway", Path(__file__).parent / "real_gateway.py")
assert _spec is not None
assert _spec.loader is not None
real_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(real_gateway)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("state-" + "x" * 60)))  # longer than a socket's address
    return dict(os.environ)


@pytest.fixture
def config(tmp_path: Path, environment: Mapping[str, str]) -> Any:
    return real_gateway.configure(tmp_path / "work", "read-and-write", environment)


@pytest.fixture
def gateway(config: Path, environment: Mapping[str, str]) -> Iterator[Any]:
    running = real_gateway.Gateway(config, environment)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGTERM)


def test_with_no_task_an_agent_looks_and_lists_and_a_task_needs_the_credential(gateway: Any) -> None:
    assert [tool["name"] for tool in gateway.ask("tools/list")["tools"]] == ["it__look", "it__act"]
    assert gateway.call("look") == []
    assert "TASK_NONE" in gateway.call("act") or "GRANT_MISSING" in gateway.call("act")

    # The agent's own channel opens nothing.
    for method in ("task.start", "task/start", "cxi/task"):
        answer = gateway.ask(method, {"request": "act", "as": "act-once"})
        assert (answer["code"], answer["data"]["code"]) == (-32601, "METHOD_UNKNOWN")

    setting = load(gateway.config)
    (live,) = live_gateways(setting)
    for token in ("", "0" * 64, live.token[:-1], None, 5, [live.token]):
        message = {"op": "task.start", "request": "act", "as": "act-once", "token": token}
        assert by_hand(live.socket, message)["reasons"][0]["code"] == "SESSION_UNKNOWN"
    assert by_hand(live.socket, {"op": "task.start", "request": "act"})["reasons"][0]["code"] == "SESSION_UNKNOWN"
    assert gateway.call("act") != []

    # Nobody else on the machine reaches socket or token.
    assert [stat.S_IMODE(path.stat().st_mode) for path in (setting.state, live.socket, live.socket.with_suffix(".json"))] == [
        0o700,
        0o600,
        0o600,
    ]

    # The person does.
    assert control(setting, {"op": "task.start", "request": "please act", "as": "no-such"})["ok"] is False
    assert control(setting, {"op": "task.start", "request": " ", "as": "act-once"})["ok"] is False
    assert control(setting, {"op": "task.start", "request": "please act", "as": "act-once"})["ok"] is True
    assert control(setting, {"op": "task.list"})["gateways"][0]["open"]["task"] == "act-once"
    assert gateway.call("act") == []
    assert gateway.call("act") == ["EVENT_REPEATED"]
    assert control(setting, {"op": "task.stop"})["ok"] is True
    assert gateway.call("act") != []


def test_several_gateways_have_several_sessions_and_one_is_named(config: Path, environment: Mapping[str, str]) -> None:
    first, second = real_gateway.Gateway(config, environment), real_gateway.Gateway(config, environment)
    try:
        setting = load(config)
        one, two = live_gateways(setting)
        start = {"op": "task.start", "request": "please act", "as": "act-once"}
        assert control(setting, start)["reasons"][0]["code"] == "SESSION_UNKNOWN"
        assert control(setting, {**start, "session": two.session})["ok"] is True
        assert control(setting, {**start, "session": "s-none"})["ok"] is False
        assert len(control(setting, {"op": "task.list"})["gateways"]) == 2  # type: ignore[arg-type]
        mine, other = (first, second) if two.pid == first.process.pid else (second, first)
        assert other.call("act") != []  # nothing is shared between two sessions
        assert mine.call("act") == []
        assert one.token != two.token
    finally:
        codes = [first.end(signal.SIGTERM), second.end(signal.SIGINT)]
    # A clean end leaves no socket and no token behind.
    assert codes == [0, 0]
    assert list(setting.state.glob("control-*")) == []
    assert control(setting, {"op": "status"})["ok"] is False


def test_the_card_of_a_gateway_that_was_killed_is_removed(gateway: Any) -> None:
    setting = load(gateway.config)
    gateway.process.kill()
    gateway.process.communicate()
    assert list(setting.state.glob("control-*")) != []
    assert live_gateways(setting) == ()
    assert list(setting.state.glob("control-*")) == []


def by_hand(path: Path, message: Mapping[str, Any]) -> Any:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")
            connection.sendall(json.dumps(message).encode() + b"\n")
            return json.loads(connection.makefile("rb").readline())
    finally:
        os.close(folder)
