"""How does a message get from the client to a server and back?

- Every request runs by itself: a slow or hung server holds up nobody but those who ask it. Only `initialize` is waited for.
- What a method may do stands in the table (`cxi.gateway.method`); what is not in it is refused.
- What the agent chose goes through `cxi.gateway.outward`, what a server says by itself through `cxi.gateway.inward`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi import __version__
from cxi.canonical import JsonValue
from cxi.errors import Code, NotStarted, OutcomeUnknown, Problem, Reason, Refused
from cxi.gateway.catalogue import LISTS, Catalogue, shared
from cxi.gateway.client import Client, Notice, Request, RpcError, Unreadable, guess_id, read_client
from cxi.gateway.door import Door, Flight, Rules, only, refuse_cursor
from cxi.gateway.exposure import SEPARATOR, fence_instructions, merge_capabilities
from cxi.gateway.inward import Inward, refuse_server, spoken
from cxi.gateway.method import REVISIONS, TABLE, Passage, Sender
from cxi.gateway.outward import NOTHING, Outward
from cxi.sinks.mcp import Upstream
from cxi.sinks.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    Lines,
    Oversized,
    RequestId,
    error_of,
    write_json,
)

MAX_IN_FLIGHT: Final = 1000
LIST_PATIENCE: Final = 10.0
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
Handler: TypeAlias = Callable[["Relay", Flight], Awaitable[bytes]]
OutwardHandler: TypeAlias = Callable[[Outward, Flight], Awaitable[bytes]]


class Relay:
    """One client, several servers, one session."""

    def __init__(self, door: Door, rules: Rules, client: Client, upstreams: Sequence[Upstream]) -> None:
        self._door = door
        self._rules = rules
        self._client = client
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._inward = Inward(door, client)
        self._catalogue = Catalogue(upstreams, patience=LIST_PATIENCE, changed=self._inward.tell)
        self._inward.forget = self._catalogue.forget
        self._outward = Outward(door, rules, self._upstreams, self._catalogue, self._inward)
        self._flights: dict[RequestId, Flight] = {}
        self._told: tuple[str, ...] = ()
        self.lines = Lines(rules.max_message, self._take_now)
        self._level = ""
        self._background: set[asyncio.Task[None]] = set()
        for upstream in upstreams:
            upstream.attach(inward=self._inward.take, listed=self._listed, refusal=refuse_server)

    def map_tools(self) -> tuple[Problem, ...]:
        """Make the routing table anew; what is wrong with it."""
        return self._outward.map_tools()

    # --- the client's side ---------------------------------------------------------------------------------------------

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Take the client's messages until it closes."""
        async for line in self.lines.read(reader):
            await self.take(line)

    def _take_now(self, line: bytes) -> bool:
        """Take a tool's call on the spot; all else is taken in its turn."""
        request = read_client(line, self._rules.max_message)
        if not isinstance(request, Request) or request.method != "tools/call":
            return False
        if request.id in self._flights or len(self._flights) >= MAX_IN_FLIGHT:
            return False
        self._begin(request)
        return True

    async def take(self, line: bytes | Oversized) -> None:
        """Take one line of the client; never raises for what it holds."""
        if isinstance(line, Oversized):
            reason = Reason(Code.TOO_LARGE, f"the message is longer than {self._rules.max_message} bytes")
            await self._refuse_line(Unreadable(guess_id(line.head), "", INVALID_REQUEST, reason))
            return
        match read_client(line, self._rules.max_message):
            case Unreadable() as unreadable:
                await self._refuse_line(unreadable)
            case Notice(method, params):
                self._take_notice(method, params)
            case Request() as request:
                await self._take_request(request)
            case None:
                pass

    async def settle(self, patience: float) -> None:
        """End what is in flight: a moment to answer, then it is cut, and leases are settled as unknown."""
        self._catalogue.close()
        tasks = [flight.task for flight in self._flights.values() if flight.task is not None] + list(self._background)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _refuse_line(self, line: Unreadable) -> None:
        reason = line.reason
        if line.method == "tools/call" and line.id is not None and line.number == INVALID_REQUEST:
            # What a tool's caller can mend, it is told as a tool's result.
            await self._client.answer(line.id, write_json(self._door.refuse("tools/call", Refused((reason,))).result))
            return
        data: dict[str, JsonValue] = {"code": str(reason.code), "where": reason.where}
        await self._client.refuse(line.id, error_of(line.number, f"{reason.code}: {reason.detail}", data))

    def _take_notice(self, method: str, params: Mapping[str, JsonValue]) -> None:
        if method == "notifications/cancelled":
            id = params.get("requestId")  # noqa: A001  # the field's own name
            flight = self._flights.get(id) if isinstance(id, str) or type(id) is int else None
            if flight is not None and flight.request.method != "initialize":
                flight.cancelled.set()

    async def _take_request(self, request: Request) -> None:
        if request.id in self._flights:
            await self._client.refuse(request.id, error_of(INVALID_REQUEST, "a request with this id is in flight"))
            return
        if len(self._flights) >= MAX_IN_FLIGHT:
            await self._client.refuse(request.id, error_of(SERVER_ERROR, "too many requests are in flight"))
            return
        task = self._begin(request)
        if request.method == "initialize":
            await task

    def _begin(self, request: Request) -> asyncio.Task[None]:
        flight = Flight(request)
        self._flights[request.id] = flight
        flight.task = asyncio.create_task(self._answer(flight), name=request.method)
        return flight.task

    async def _answer(self, flight: Flight) -> None:
        id, error, result = flight.request.id, b"", b""  # noqa: A001  # the field's own name
        try:
            result = await self._handle(flight)
        except RpcError as refused:
            error = refused.error
        except Exception as fault:  # noqa: BLE001  # whatever it is, the others go on
            error = error_of(INTERNAL_ERROR, f"the gateway failed: {type(fault).__name__}")
        finally:
            self._flights.pop(id, None)
        if not flight.cancelled.is_set():  # MCP: a cancelled request is not answered
            await (self._client.refuse(id, error) if error else self._client.answer(id, result))
        self._door.catch_up()

    async def _handle(self, flight: Flight) -> bytes:
        method = flight.request.method
        row = TABLE.get((Sender.CLIENT, method))
        if row is None or not row.request:
            raise RpcError.of(METHOD_NOT_FOUND, Code.METHOD_UNKNOWN, f"no method `{method[:100]}`")
        if row.passage is Passage.OFF:
            raise RpcError.of(METHOD_NOT_FOUND, Code.METHOD_OFF, f"`{method}` is off: {row.does}")
        if not self._inward.open and method not in ("initialize", "ping"):
            raise RpcError.of(INVALID_REQUEST, Code.SESSION_UNKNOWN, "the first request is `initialize`")
        handler = HERE.get(method)
        return await (handler(self, flight) if handler is not None else OUTWARD[method](self._outward, flight))

    # --- answered here -------------------------------------------------------------------------------------------------

    async def _initialize(self, flight: Flight) -> bytes:
        asked = flight.request.params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_MISSING, "`protocolVersion` is no text", where="params.protocolVersion")
        instructions = {one.name: one.instructions for one in self._upstreams.values() if one.instructions}
        for name, text in instructions.items():
            self._inward.receive(name, "instructions", text)
        result: dict[str, JsonValue] = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": merge_capabilities(self._upstreams.values()),
            "serverInfo": {"name": "cxi", "title": "CXI gateway", "version": __version__},
        }
        if fenced := fence_instructions(instructions):
            result["instructions"] = fenced
        self._inward.open = True
        self._told = self._fingerprint()
        return write_json(result)

    async def _ping(self, _: Flight) -> bytes:
        return NOTHING

    async def _set_level(self, flight: Flight) -> bytes:
        params = only(flight.request.params, "level")
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, f"`level` is one of {', '.join(LEVELS)}", where="params.level")
        self._level = str(level)
        asked = [self._send_level(one) for one in self._upstreams.values() if one.alive]
        if asked:
            tasks = [asyncio.create_task(work) for work in asked]
            await asyncio.wait(tasks, timeout=LIST_PATIENCE)
        return NOTHING

    async def _send_level(self, upstream: Upstream) -> None:
        if self._level and "logging" in upstream.capabilities:
            with contextlib.suppress(NotStarted, OutcomeUnknown):
                await upstream.request("logging/setLevel", {"level": self._level})

    # --- lists ---------------------------------------------------------------------------------------------------------

    async def _list_tools(self, flight: Flight) -> bytes:
        refuse_cursor(flight)
        tasks = [asyncio.create_task(_try(one.ready())) for one in self._upstreams.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LIST_PATIENCE)
            for task in late:
                self._keep(task)  # when it has come up, `listed` tells the client
        self.map_tools()
        own = {place: name for name, place in self._outward.routes.items()}
        found: list[JsonValue] = []
        for upstream in self._upstreams.values():
            self._inward.receive(upstream.name, "tools/list", spoken(list(upstream.tools)))
            for tool in upstream.tools:
                name = str(tool["name"])
                if upstream.admitted.get(name, ...) is None and (upstream.name, name) in own:
                    found.append({**tool, "name": own[upstream.name, name]})
        self._told = self._fingerprint()
        return write_json({"tools": found})

    async def _list_items(self, flight: Flight) -> bytes:
        refuse_cursor(flight)
        method = flight.request.method
        _, key, _ = LISTS[method]
        items = await self._catalogue.gather(method)
        for server, listed in items.items():
            if listed:
                self._inward.receive(server, method, spoken(list(listed)))
        found: list[JsonValue] = []
        if method == "prompts/list":
            found = [
                {**item, "name": f"{server}{SEPARATOR}{item.get('name')}"} for server, listed in items.items() for item in listed
            ]
        else:
            place = "uri" if method == "resources/list" else "uriTemplate"
            doubtful = shared(items, place)
            found = [item for listed in items.values() for item in listed if str(item.get(place)) not in doubtful]
        return write_json({key: found})

    async def _listed(self, upstream: Upstream) -> None:
        # It came up, or its tools changed.
        self.map_tools()
        if self._inward.open:
            self._keep(asyncio.create_task(self._send_level(upstream)))
            if self._fingerprint() != self._told:
                self._told = self._fingerprint()
                await self._inward.tell("notifications/tools/list_changed")

    def _fingerprint(self) -> tuple[str, ...]:
        return tuple(
            f"{one.name}:{write_json(tool)!r}"
            for one in self._upstreams.values()
            for tool in one.tools
            if one.admitted.get(str(tool["name"]), ...) is None
        )

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)


HERE: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "initialize": Relay._initialize,  # noqa: SLF001  # the class's own table
        "ping": Relay._ping,  # noqa: SLF001
        "tools/list": Relay._list_tools,  # noqa: SLF001
        "resources/list": Relay._list_items,  # noqa: SLF001
        "resources/templates/list": Relay._list_items,  # noqa: SLF001
        "prompts/list": Relay._list_items,  # noqa: SLF001
        "logging/setLevel": Relay._set_level,  # noqa: SLF001
    }
)
OUTWARD: Final[Mapping[str, OutwardHandler]] = MappingProxyType(
    {
        "tools/call": Outward.call_tool,
        "resources/read": Outward.read_resource,
        "resources/subscribe": Outward.subscribe,
        "resources/unsubscribe": Outward.unsubscribe,
        "prompts/get": Outward.get_prompt,
        "completion/complete": Outward.complete,
    }
)


async def _try(work: Awaitable[object]) -> None:
    with contextlib.suppress(NotStarted, OutcomeUnknown):
        await work
