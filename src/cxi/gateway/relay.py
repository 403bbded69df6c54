"""How does a message get from the client to a server and back?

- Every request runs by itself: a slow or hung server holds up nobody but those who ask it. Only `initialize` is waited for.
- INVARIANT (gate-first): nothing that the agent chose reaches a server but through `propose`; what goes out is written anew from
  the warrant, under ids and progress tokens of our own.
- Sink calls to one server are made one at a time, from the decision on: what a decision read is not changed by one before it.
- INVARIANT (always-finished): what was proposed and launched is finished exactly once, whatever ends it.
- What comes back is relayed as the bytes that came. A refusal is an ordinary result with `isError`; for methods that have no such
  result it is a JSON-RPC error with the reason's code in its data.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from cxi import __version__
from cxi.canonical import JsonValue
from cxi.config.naming import route
from cxi.errors import Code, CxiError, MalformedError, NotStarted, OutcomeUnknown, Problem, Reason, Refused
from cxi.gateway.catalogue import LISTS, Catalogue, shared
from cxi.gateway.client import Client, Notice, Request, RpcError, Unreadable, guess_id, read_client
from cxi.gateway.exposure import fence_instructions, merge_capabilities, split_exposed
from cxi.gateway.method import REVISIONS, TABLE, Passage, Sender
from cxi.session import Answered, Finished, Prepared, Ready, refusal_result
from cxi.sinks.base import Answer
from cxi.sinks.connection import Progress
from cxi.sinks.mcp import RelayedAnswer, Upstream
from cxi.sinks.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_MESSAGE,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SERVER_ERROR,
    Oversized,
    RequestId,
    error_of,
    read_lines,
    read_object,
    write_json,
)

MAX_IN_FLIGHT: Final = 1000
LIST_PATIENCE: Final = 10.0
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NOTHING: Final = b"{}"


class Door(Protocol):
    """A session, as the relay needs it."""

    def propose(self, tool: str, arguments: JsonValue, *, idempotency_key: str = "") -> Prepared: ...
    def finish(self, prepared: Ready, answer: Answer | NotStarted | OutcomeUnknown) -> Finished: ...
    def receive(self, server: str, kind: str, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What the relay needs of the configuration.

    Attributes:
        sinks: Names of the tools that are sinks, `files.write_file`.
        methods: The outward MCP methods that have a contract, `server.method`.
        idempotency_meta_key: The `_meta` key that carries an idempotency key.
        max_message: Bytes of the client's longest message.
    """

    sinks: frozenset[str]
    methods: frozenset[str]
    idempotency_meta_key: str
    max_message: int = MAX_MESSAGE


@dataclass(eq=False, slots=True)
class Flight:
    """A request of the client that is not answered yet."""

    request: Request
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


Handler: TypeAlias = Callable[["Relay", Flight], Awaitable[bytes]]


class Relay:
    """One client, several servers, one session."""

    def __init__(self, door: Door, rules: Rules, client: Client, upstreams: Sequence[Upstream]) -> None:
        self._door = door
        self._rules = rules
        self._client = client
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._catalogue = Catalogue(upstreams, patience=LIST_PATIENCE, changed=self._tell)
        self._flights: dict[RequestId, Flight] = {}
        self._routes: Mapping[str, tuple[str, str]] = MappingProxyType({})
        self._initialized = False
        self._told: tuple[str, ...] = ()
        self._level = ""
        self._subscribed: dict[tuple[str, str], int] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._background: set[asyncio.Task[None]] = set()

    # --- the client's side ---------------------------------------------------------------------------------------------

    def map_tools(self) -> tuple[Problem, ...]:
        """Make the routing table anew; what is wrong with it."""
        admitted: list[tuple[str, str]] = []
        refused: list[tuple[str, str]] = []
        for upstream in self._upstreams.values():
            for tool in upstream.tools:
                name = str(tool["name"])
                (admitted if upstream.admitted.get(name, ...) is None else refused).append((upstream.name, name))
        # A tool that the lock refuses is not listed, so its name is nobody's problem; it is known, to say why it is refused.
        routes, problems = route(admitted)
        self._routes = MappingProxyType({**route(refused)[0], **routes})
        return problems

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Take the client's messages until it closes."""
        async for line in read_lines(reader, self._rules.max_message):
            await self.take(line)

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
            await self._client.answer(line.id, write_json(refusal_result("tools/call", Refused((reason,)), "-")))
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
        flight = Flight(request)
        self._flights[request.id] = flight
        flight.task = asyncio.create_task(self._answer(flight), name=f"{request.method} {request.id}")
        if request.method == "initialize":
            await flight.task

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
        if flight.cancelled.is_set():
            return  # MCP: a cancelled request is not answered
        await (self._client.refuse(id, error) if error else self._client.answer(id, result))

    async def _handle(self, flight: Flight) -> bytes:
        method = flight.request.method
        row = TABLE.get((Sender.CLIENT, method))
        if row is None or not row.request:
            raise RpcError.of(METHOD_NOT_FOUND, Code.METHOD_UNKNOWN, f"no method `{method[:100]}`")
        if row.passage is Passage.OFF:
            raise RpcError.of(METHOD_NOT_FOUND, Code.METHOD_OFF, f"`{method}` is off: {row.does}")
        if not self._initialized and method not in ("initialize", "ping"):
            raise RpcError.of(INVALID_REQUEST, Code.SESSION_UNKNOWN, "the first request is `initialize`")
        return await HANDLERS[method](self, flight)

    # --- answered here -------------------------------------------------------------------------------------------------

    async def _initialize(self, flight: Flight) -> bytes:
        asked = flight.request.params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_MISSING, "`protocolVersion` is no text", where="params.protocolVersion")
        instructions = {one.name: one.instructions for one in self._upstreams.values() if one.instructions}
        for name, text in instructions.items():
            self._receive(name, "instructions", text)
        result: dict[str, JsonValue] = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": merge_capabilities(self._upstreams.values()),
            "serverInfo": {"name": "cxi", "title": "CXI gateway", "version": __version__},
        }
        if fenced := fence_instructions(instructions):
            result["instructions"] = fenced
        self._initialized = True
        self._told = self._fingerprint()
        return write_json(result)

    async def _ping(self, _: Flight) -> bytes:
        return NOTHING

    async def _set_level(self, flight: Flight) -> bytes:
        params = _only(flight.request.params, "level")
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
        _no_cursor(flight)
        tasks = [asyncio.create_task(_try(one.ready())) for one in self._upstreams.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LIST_PATIENCE)
            for task in late:
                self._keep(task)  # when it has come up, `listed` tells the client
        self.map_tools()
        own = {place: name for name, place in self._routes.items()}
        found: list[JsonValue] = []
        for upstream in self._upstreams.values():
            self._receive(upstream.name, "tools/list", spoken(list(upstream.tools)))
            for tool in upstream.tools:
                name = str(tool["name"])
                if upstream.admitted.get(name, ...) is None and (upstream.name, name) in own:
                    found.append({**tool, "name": own[upstream.name, name]})
        self._told = self._fingerprint()
        return write_json({"tools": found})

    async def _list_items(self, flight: Flight) -> bytes:
        _no_cursor(flight)
        method = flight.request.method
        _, key, _ = LISTS[method]
        items = await self._catalogue.gather(method)
        for server, listed in items.items():
            if listed:
                self._receive(server, method, spoken(list(listed)))
        found: list[JsonValue] = []
        if method == "prompts/list":
            found = [{**item, "name": expose_prompt(server, item)} for server, listed in items.items() for item in listed]
        else:
            place = "uri" if method == "resources/list" else "uriTemplate"
            doubtful = shared(items, place)
            found = [item for listed in items.values() for item in listed if str(item.get(place)) not in doubtful]
        return write_json({key: found})

    # --- through the gate ----------------------------------------------------------------------------------------------

    async def _call_tool(self, flight: Flight) -> bytes:
        # `task` asks for a task; who does not offer tasks ignores it (MCP 2025-11-25, "tasks").
        params = _only(flight.request.params, "name", "arguments", "task")
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`name` is no text", where="params.name")
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, Mapping):
            return _refusal(name, Reason(Code.FIELD_TYPE, "`arguments` is no object", "arguments"))
        meta = _meta(flight)
        key = meta.get(self._rules.idempotency_meta_key, "")
        if not isinstance(key, str):
            return _refusal(name, Reason(Code.FIELD_TYPE, "the idempotency key is no text", self._rules.idempotency_meta_key))
        found = await self._route(name)
        if isinstance(found, Reason):
            return _refusal(name, found)
        server, tool = found
        upstream, full = self._upstreams[server], f"{server}.{tool}"

        async def launch(ready: Ready) -> RelayedAnswer:
            return await upstream.execute(ready.warrant, progress=self._progress(flight, server), cancelled=flight.cancelled)

        async with upstream.lock if full in self._rules.sinks else contextlib.nullcontext():
            if flight.cancelled.is_set():
                return NOTHING  # before it was proposed: it never was
            prepared = self._door.propose(full, arguments, idempotency_key=key)
            if isinstance(prepared, Answered):
                return write_json(prepared.result)
            finished, answer = await self._carry_out(prepared, launch)
        return _relayed(finished, answer)

    async def _route(self, name: str) -> tuple[str, str] | Reason:
        unknown = Reason(Code.TOOL_UNKNOWN, f"no tool `{name[:100]}`", "name")
        parts = split_exposed(name)
        upstream = self._upstreams.get(parts[0]) if parts else None
        if upstream is None:
            return unknown
        if name not in self._routes:
            # Its server may not have been up yet: using it starts it.
            try:
                await upstream.ready()
            except NotStarted as error:
                return error.reason
            except OutcomeUnknown as error:
                return error.reason
            self.map_tools()
        return self._routes.get(name, unknown)

    async def _get_prompt(self, flight: Flight) -> bytes:
        params = _only(flight.request.params, "name", "arguments")
        upstream, own = self._prompt(params.get("name"), "params.name")
        arguments = params.get("arguments")
        outward: dict[str, JsonValue] = {"name": own} if arguments is None else {"name": own, "arguments": arguments}
        return await self._ask_outward(flight, upstream, outward)

    async def _complete(self, flight: Flight) -> bytes:
        params = _only(flight.request.params, "ref", "argument", "context")
        match params.get("ref"):
            case {"type": "ref/prompt", "name": str(name)}:
                upstream, own = self._prompt(name, "params.ref.name")
                outward: dict[str, JsonValue] = {**params, "ref": {"type": "ref/prompt", "name": own}}
            case {"type": "ref/resource", "uri": str(uri)}:
                upstream, outward = await self._resource(uri), params
            case _:
                raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`ref` is neither a prompt nor a resource", where="params.ref")
        return await self._ask_outward(flight, upstream, outward)

    async def _read_resource(self, flight: Flight) -> bytes:
        params = _only(flight.request.params, "uri")
        uri = _uri(params)
        return await self._ask_outward(flight, await self._resource(uri), {"uri": uri})

    async def _subscribe(self, flight: Flight) -> bytes:
        uri = _uri(_only(flight.request.params, "uri"))
        upstream = await self._resource(uri)
        result = await self._ask_outward(flight, upstream, {"uri": uri})
        self._subscribed[upstream.name, uri] = upstream.starts
        return result

    async def _unsubscribe(self, flight: Flight) -> bytes:
        uri = _uri(_only(flight.request.params, "uri"))
        for upstream in self._upstreams.values():
            if self._subscribed.pop((upstream.name, uri), None) is not None:
                try:
                    answer = await upstream.request("resources/unsubscribe", {"uri": uri}, cancelled=flight.cancelled)
                except (NotStarted, OutcomeUnknown) as error:
                    raise _fault(error.reason) from error
                if answer.error:
                    raise RpcError(answer.error)
                return answer.raw
        raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "nothing is subscribed at this URI", where="params.uri")

    def _prompt(self, exposed: JsonValue, where: str) -> tuple[Upstream, str]:
        parts = split_exposed(exposed) if isinstance(exposed, str) else None
        upstream = self._upstreams.get(parts[0]) if parts else None
        if parts is None or upstream is None:
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "no server has a prompt of this name", where=where)
        return upstream, parts[1]

    async def _resource(self, uri: str) -> Upstream:
        found = await self._catalogue.find(uri)
        if isinstance(found, Refused):
            reason = found.reasons[0]
            number = INVALID_PARAMS if reason.code is Code.FIELD_AMBIGUOUS else RESOURCE_NOT_FOUND
            raise RpcError.of(number, reason.code, reason.detail, where="params.uri")
        return found

    async def _ask_outward(self, flight: Flight, upstream: Upstream, params: Mapping[str, JsonValue]) -> bytes:
        method = flight.request.method
        name = f"{upstream.name}.{method}"
        if name not in self._rules.methods:
            raise RpcError.of(METHOD_NOT_FOUND, Code.METHOD_OFF, f"`{method}` has no contract for the server `{upstream.name}`")

        async def launch(ready: Ready) -> RelayedAnswer:
            progress = self._progress(flight, upstream.name)
            return await upstream.execute_method(ready.warrant, method, progress=progress, cancelled=flight.cancelled)

        prepared = self._door.propose(name, params)
        if isinstance(prepared, Answered):
            if prepared.kind == "refused":
                raise _refused(prepared.result, prepared.refused)
            return write_json(prepared.result)
        finished, answer = await self._carry_out(prepared, launch)
        if not isinstance(answer, RelayedAnswer):
            raise _refused(finished.result, finished.refused)
        if not answer.error:
            self._receive(upstream.name, method, spoken(answer.result))
        return _relayed(finished, answer)

    async def _carry_out(
        self, ready: Ready, launch: Callable[[Ready], Awaitable[RelayedAnswer]]
    ) -> tuple[Finished, RelayedAnswer | None]:
        """Launch, and finish exactly once (INVARIANT always-finished)."""
        answer: RelayedAnswer | NotStarted | OutcomeUnknown
        try:
            answer = await launch(ready)
        except (NotStarted, OutcomeUnknown) as error:
            answer = error
        except BaseException as error:
            reason = Reason(Code.OUTCOME_UNKNOWN, f"cut off before it answered ({type(error).__name__})", ready.id)
            finished = self._door.finish(ready, OutcomeUnknown(reason))
            if isinstance(error, Exception):
                return finished, None
            raise
        try:
            finished = self._door.finish(ready, answer)
        except CxiError as error:
            # It ran, and what became of it could not be written down.
            refused = Refused.of(Code.LEDGER_UNAVAILABLE, f"the outcome could not be recorded: {error}", where=ready.id)
            return Finished(ready.id, refusal_result("", refused, ready.id, changed=True), None, refused), None
        return finished, answer if isinstance(answer, RelayedAnswer) else None

    def _progress(self, flight: Flight, server: str) -> Progress | None:
        token = _meta(flight).get("progressToken")
        if not isinstance(token, str) and type(token) is not int:
            return None

        async def relay(params: Mapping[str, JsonValue]) -> None:
            if not flight.cancelled.is_set():
                if isinstance(message := params.get("message"), str):
                    self._receive(server, "progress", message)
                await self._client.notify("notifications/progress", {**params, "progressToken": token})

        return relay

    # --- the servers' side ---------------------------------------------------------------------------------------------

    async def inward(self, upstream: Upstream, method: str, params: bytes) -> None:
        """Take a notification of a server."""
        row = TABLE.get((Sender.SERVER, method))
        if row is None or row.request or not row.on:
            return
        if method.endswith("/list_changed"):
            self._catalogue.forget(upstream.name, method)
            await self._tell(method)
        elif method == "notifications/message":
            await self._relay_log(upstream, params)
        elif method == "notifications/resources/updated":
            with contextlib.suppress(MalformedError):
                uri = read_object(params).get("uri")
                if isinstance(uri, str) and (upstream.name, uri) in self._subscribed:
                    await self._client.relay(method, params)

    async def listed(self, upstream: Upstream) -> None:
        """A server listed its tools: it came up, or they changed."""
        self.map_tools()
        if self._initialized:
            self._keep(asyncio.create_task(self._send_level(upstream)))
            if self._fingerprint() != self._told:
                self._told = self._fingerprint()
                await self._tell("notifications/tools/list_changed")

    def refusal(self, method: str) -> bytes:
        """The error object with which a server's request is refused."""
        row = TABLE.get((Sender.SERVER, method))
        code = Code.METHOD_UNKNOWN if row is None or not row.request else Code.METHOD_OFF
        return error_of(METHOD_NOT_FOUND, f"`{method[:100]}` is not offered", {"code": str(code)})

    async def _relay_log(self, upstream: Upstream, raw: bytes) -> None:
        try:
            params = read_object(raw)
        except MalformedError:
            return
        logger = params.get("logger")
        name = f"{upstream.name}/{logger}" if isinstance(logger, str) and logger else upstream.name
        self._receive(upstream.name, "log", spoken(params.get("data")))
        if self._initialized:
            await self._client.notify("notifications/message", {**params, "logger": name})

    async def _tell(self, method: str) -> None:
        if self._initialized:
            await self._client.notify(method)

    def _receive(self, server: str, kind: str, text: str) -> None:
        # The same text twice influences nothing anew; and a repeated list must not push out what else was seen.
        if text and self._seen.get((server, kind)) != hash(text):
            self._seen[server, kind] = hash(text)
            self._door.receive(server, kind, text)

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


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "initialize": Relay._initialize,  # noqa: SLF001  # the class's own table
        "ping": Relay._ping,  # noqa: SLF001
        "tools/list": Relay._list_tools,  # noqa: SLF001
        "tools/call": Relay._call_tool,  # noqa: SLF001
        "resources/list": Relay._list_items,  # noqa: SLF001
        "resources/templates/list": Relay._list_items,  # noqa: SLF001
        "resources/read": Relay._read_resource,  # noqa: SLF001
        "resources/subscribe": Relay._subscribe,  # noqa: SLF001
        "resources/unsubscribe": Relay._unsubscribe,  # noqa: SLF001
        "prompts/list": Relay._list_items,  # noqa: SLF001
        "prompts/get": Relay._get_prompt,  # noqa: SLF001
        "completion/complete": Relay._complete,  # noqa: SLF001
        "logging/setLevel": Relay._set_level,  # noqa: SLF001
    }
)


def spoken(value: JsonValue) -> str:
    """Every text and number in a JSON value, one a line: what of it a model could read."""
    parts: list[str] = []
    stack: list[JsonValue] = [value]
    while stack:
        match stack.pop():
            case str(text):
                parts.append(text)
            case bool() | None:
                pass
            case int() | float() as number:
                parts.append(str(number))
            case Mapping() as record:
                stack.extend(reversed([part for pair in record.items() for part in pair]))
            case items:
                stack.extend(reversed(items))
    return "\n".join(parts)


def expose_prompt(server: str, item: Mapping[str, JsonValue]) -> str:
    """The exposed name of a prompt."""
    return f"{server}__{item.get('name')}"


async def _try(work: Awaitable[object]) -> None:
    with contextlib.suppress(NotStarted, OutcomeUnknown):
        await work


def _only(params: Mapping[str, JsonValue], *known: str) -> dict[str, JsonValue]:
    """The params without `_meta`; what no revision names is refused, not passed over."""
    for name in params:
        if name not in known and name != "_meta":
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_UNCLASSIFIED, f"no param `{name[:100]}`", where=f"params.{name[:100]}")
    return {name: value for name, value in params.items() if name != "_meta"}


def _no_cursor(flight: Flight) -> None:
    if _only(flight.request.params, "cursor").get("cursor") is not None:
        raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "no such cursor: lists come in one page", where="params.cursor")


def _uri(params: Mapping[str, JsonValue]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`uri` is no text", where="params.uri")
    return uri


def _meta(flight: Flight) -> Mapping[str, JsonValue]:
    meta = flight.request.params.get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _refusal(name: str, reason: Reason) -> bytes:
    return write_json(refusal_result(name[:100], Refused((reason,)), "-"))


def _refused(result: Mapping[str, JsonValue], refused: Refused | None) -> RpcError:
    """A refusal as an error, for a method whose result cannot say it."""
    content = result.get("content")
    first = content[0] if isinstance(content, Sequence) and content else {}
    text = str(first.get("text", "")) if isinstance(first, Mapping) else ""
    codes = refused.codes if refused is not None else ()
    return RpcError.of(INVALID_PARAMS, Code(codes[0]) if codes else Code.METHOD_OFF, text or "refused", codes=list(codes))


def _fault(reason: Reason) -> RpcError:
    return RpcError.of(SERVER_ERROR, reason.code, reason.detail)


def _relayed(finished: Finished, answer: RelayedAnswer | None) -> bytes:
    """The bytes that came, unless the gate put something else in their place."""
    if answer is not None and finished.result is answer.result:
        if answer.error:
            raise RpcError(answer.error)
        return answer.raw
    return write_json(finished.result)
