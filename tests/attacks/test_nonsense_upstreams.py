"""A server that dies, hangs, floods or speaks nonsense hurts neither the others nor the gate."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cxi.gateway.door import Rules
from cxi.gateway.relay import Relay
from cxi.sinks import connection, mcp
from cxi.sinks.mcp import Upstream

SERVER = Path(__file__).with_name("nonsense_server.py")
_spec = importlib.util.spec_from_file_location("open_gateway", Path(__file__).parents[1] / "e2e" / "open_gateway.py")
assert _spec is not None
assert _spec.loader is not None
open_gateway = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(open_gateway)


class Listener:
    """A client's end, in this process: what was sent to it, and waiting for an answer."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.notices: list[str] = []
        self._answers: dict[Any, asyncio.Future[Any]] = {}

    def wait_for(self, id: Any) -> asyncio.Future[Any]:
        return self._answers.setdefault(id, asyncio.get_running_loop().create_future())

    async def answer(self, id: Any, result: bytes) -> None:
        self.wait_for(id).set_result(json.loads(result))

    async def refuse(self, id: Any, error: bytes) -> None:
        self.wait_for(id).set_result({"error": json.loads(error)})

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.notices.append(method)

    async def relay(self, method: str, params: bytes) -> None:
        self.notices.append(method)


class Stage:
    """A relay over servers in several modes, and a client."""

    def __init__(
        self, tmp_path: Path, modes: Mapping[str, str], *, timeout: float = 20.0, sinks: bool = False, lease: float = 60.0
    ) -> None:
        names = [f"{name}.t" for name in modes] if sinks else []
        self.journal = tmp_path / "journal.jsonl"
        plan = {"journal": str(self.journal), "sinks": names, "lease": lease}
        self.client: Any = Listener()
        self.upstreams = {
            name: Upstream(
                SimpleNamespace(
                    name=name,
                    command=(sys.executable, "-I", "-S", str(SERVER), mode),
                    env={},
                    cwd=None,
                    timeout=timeout,
                    max_message=1_000_000,
                ),
                admit=lambda _, tools: {tool["name"]: None for tool in tools},
                patience=0.2,
                cancel_patience=0.2,
            )
            for name, mode in modes.items()
        }
        self.door = open_gateway.OpenDoor(plan)
        rules = Rules(frozenset(names), frozenset(), "key", 1_000_000)
        self.relay = Relay(self.door, rules, self.client, list(self.upstreams.values()))
        self._next = 0

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        await self.relay.take(json.dumps(message).encode())
        async with asyncio.timeout(25):
            return await self.client.wait_for(self._next)

    async def call(self, server: str, say: str = "hello") -> Any:
        return await self.ask("tools/call", {"name": f"{server}__t", "arguments": {"say": say}})

    @property
    def outcomes(self) -> list[str]:
        entries = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [entry.get("code") or entry["outcome"] for entry in entries if entry["event"] == "finish"]


@contextlib.asynccontextmanager
async def staged(tmp_path: Path, modes: Mapping[str, str], **options: Any) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path, modes, **options)
    try:
        await asyncio.gather(*(upstream.ready() for upstream in stage.upstreams.values()), return_exceptions=True)
        stage.relay.map_tools()
        await stage.ask("initialize", {"protocolVersion": "2025-11-25"})
        yield stage
    finally:
        await stage.relay.settle(0.1)
        await asyncio.gather(*(upstream.close() for upstream in stage.upstreams.values()))
        stage.door._journal.close()


def said(answer: Any) -> str:
    return str(answer["content"][0]["text"])


def codes(answer: Any) -> list[str]:
    return list(answer["_meta"]["cxi.dev/refusal"]["codes"])


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("dies", "SINK_DOWN"),
        ("hangs", "SINK_TIMEOUT"),
        ("huge", "SINK_MALFORMED"),
        ("endless-line", "SINK_MALFORMED"),
        ("two-keys", "SINK_MALFORMED"),
        ("half-surrogate", "SINK_MALFORMED"),
        ("not-a-number", "SINK_MALFORMED"),
        ("no-object", "SINK_MALFORMED"),
        ("no-content", "SINK_MALFORMED"),
        ("content-text", "SINK_MALFORMED"),
        ("task", "SINK_MALFORMED"),
        ("deep", "SINK_MALFORMED"),
        ("deep-first", "SINK_MALFORMED"),
        ("result-and-error", "SINK_MALFORMED"),
        ("nonsense", "SINK_MALFORMED"),
        ("stray", "SINK_MALFORMED"),
        ("deaf", "SINK_TIMEOUT"),
    ],
)
def test_a_bad_answer_of_a_sink_leaves_its_outcome_unknown_and_the_others_alone(tmp_path: Path, mode: str, code: str) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"good": "good", "bad": mode}, timeout=1.0, sinks=True) as stage:
            bad = asyncio.create_task(stage.call("bad"))
            for number in range(5):
                assert said(await stage.call("good", str(number))) == str(number)
            answer = await bad
            assert answer["isError"]
            assert codes(answer) == [code]
        assert sorted(stage.outcomes) == sorted([code, *["answered"] * 5])

    asyncio.run(play())


@pytest.mark.parametrize(
    "mode", ["exits", "silent", "old", "initialize-nonsense", "initialize-error", "pages", "same-cursor", "tools-nonsense"]
)
def test_a_server_that_cannot_be_started_is_left_out(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "MAX_PAGES", 50)

    async def play() -> None:
        async with staged(tmp_path, {"good": "good", "bad": mode}, timeout=0.7) as stage:
            listed = await stage.ask("tools/list")
            assert [tool["name"] for tool in listed["tools"]] == ["good__t"]
            assert said(await stage.call("good")) == "hello"
            answer = await stage.call("bad")  # not proposed: nothing is known of the tool
            assert answer["isError"]
            assert codes(answer)[0] in {"SINK_DOWN", "SINK_TIMEOUT", "SINK_MALFORMED"}

    asyncio.run(play())


def test_answers_under_foreign_ids_are_ignored(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "wrong-ids"}) as stage:
            assert said(await stage.call("bad", "first")) == "first"
            assert said(await stage.call("bad", "second")) == "second"

    asyncio.run(play())


def test_a_few_stray_lines_are_tolerated(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "some-nonsense"}) as stage:
            for number in range(3):
                assert said(await stage.call("bad", str(number))) == str(number)
            assert stage.upstreams["bad"].starts == 1

    asyncio.run(play())


def test_a_flood_is_slowed_and_the_others_are_served(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"good": "good", "bad": "flood"}, timeout=1.5) as stage:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            bad = asyncio.create_task(stage.call("bad"))
            for number in range(50):
                assert said(await stage.call("good", str(number))) == str(number)
            await bad
            assert len(stage.client.notices) <= connection.BURST + 5 * connection.RATE
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes

    asyncio.run(play())


def test_a_server_that_asks_without_end_is_refused_and_slowed(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"good": "good", "bad": "asks"}, timeout=1.0) as stage:
            bad = asyncio.create_task(stage.call("bad"))
            for number in range(20):
                assert said(await stage.call("good", str(number))) == str(number)
            assert codes(await bad) == ["SINK_TIMEOUT"]

    asyncio.run(play())


def test_a_flooded_standard_error_is_drained_and_bounded(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "stderr"}) as stage:
            assert said(await stage.call("bad")) == "hello"
            assert len(stage.upstreams["bad"].stderr_tail) <= 64 * 1024

    asyncio.run(play())


def test_a_server_that_died_is_started_again_on_its_next_use_with_a_growing_pause(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "dies"}) as stage:
            upstream = stage.upstreams["bad"]
            assert codes(await stage.call("bad")) == ["SINK_DOWN"]
            assert codes(await stage.call("bad")) == ["SINK_DOWN"]  # started again, died again
            assert upstream.starts == 2
            assert codes(await stage.call("bad")) == ["SINK_DOWN"]  # too soon: not started
            assert upstream.starts == 2

    asyncio.run(play())


def test_a_hung_server_is_cut_off_after_silent_timeouts(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "hangs"}, timeout=0.1) as stage:
            for _ in range(connection.SILENT_TIMEOUTS):
                assert codes(await stage.call("bad")) == ["SINK_TIMEOUT"]
            assert not stage.upstreams["bad"].alive

    asyncio.run(play())


def test_a_tool_that_is_listed_twice_is_not_called(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "twice"}) as stage:
            assert [tool["name"] for tool in (await stage.ask("tools/list"))["tools"]] == ["bad__u"]
            assert codes(await stage.call("bad")) == ["TOOL_DEFINITION_CHANGED"]

    asyncio.run(play())


def test_names_that_are_too_long_or_collide_are_found_at_the_start(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "long-name"}) as stage:
            assert len(stage.relay.map_tools()) == 1
            assert said(await stage.call("bad")) == "hello"
        async with staged(tmp_path, {"bad": "same-names"}) as stage:
            assert len(stage.relay.map_tools()) == 1
            assert (await stage.ask("tools/list"))["tools"] == []

    asyncio.run(play())


def test_numbers_beyond_doubles_arrive_as_they_were_written(tmp_path: Path) -> None:
    async def play() -> bytes:
        async with staged(tmp_path, {"odd": "big-numbers"}) as stage:
            kept: list[bytes] = []

            async def keep(_: Any, result: bytes) -> None:
                kept.append(result)
                stage.client.wait_for(2).set_result({})

            stage.client.answer = keep
            await stage.call("odd")
            return kept[0]

    assert asyncio.run(play()) == b'{"content":[],"n":123456789012345678901234567890,"f":1.50e2}'


def test_a_server_cannot_forge_a_refusal_of_the_gate(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "forged"}) as stage:
            answer = await stage.call("bad", "x")
            assert answer == {"content": [{"type": "text", "text": "x", "_meta": {}}], "_meta": {"example.org/kept": 1}}

    asyncio.run(play())


def test_a_lease_past_its_deadline_is_not_launched(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"good": "good"}, sinks=True, lease=-1.0) as stage:
            assert codes(await stage.call("good")) == ["EXPIRED"]

    asyncio.run(play())


def test_a_cancelled_sink_call_is_unknown_and_is_not_answered(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "hangs", "good": "good"}, sinks=True) as stage:
            call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "bad__t", "arguments": {}}}
            await stage.relay.take(json.dumps(call).encode())
            assert said(await stage.call("good")) == "hello"  # the other is under way by now
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
            await stage.relay.take(json.dumps(cancel).encode())
            async with asyncio.timeout(10):
                while "c" in stage.relay._flights:
                    await asyncio.sleep(0)
            assert not stage.client.wait_for("c").done()
        assert stage.outcomes == ["answered", "OUTCOME_UNKNOWN"]

    asyncio.run(play())


def test_what_is_in_flight_at_the_end_is_settled_as_unknown(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "hangs"}, sinks=True) as stage:
            waiting = asyncio.create_task(stage.call("bad"))
            async with asyncio.timeout(10):
                while not stage.journal.read_text().count("propose"):
                    await asyncio.sleep(0)
            await stage.relay.settle(0.05)
            assert stage.outcomes == ["OUTCOME_UNKNOWN"]
            waiting.cancel()

    asyncio.run(play())


def test_a_server_that_does_not_end_is_ended(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path, {"bad": "stays"}) as stage:
            running = stage.upstreams["bad"]._connection
            assert running is not None
            pid, start = running.process.pid, time.monotonic()
        assert time.monotonic() - start < 5
        assert not Path(f"/proc/{pid}").exists()

    asyncio.run(play())
