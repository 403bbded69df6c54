"""How does what the agent chose reach a server?

- INVARIANT (gate-first): nothing that the agent chose reaches a server but through `propose`; what goes out is written anew from
  the warrant, under ids and progress tokens of our own.
- Sink calls to one server are made one at a time, from the decision on: what a decision read is not changed by one before it.
- INVARIANT (always-finished): what was proposed and launched is finished exactly once, whatever ends it.
- INVARIANT (one-route): an exposed tool name leads to one tool of one server, through the table.
- What comes back is relayed as the bytes that came. A refusal is an ordinary result with `isError`; for methods that have no such
  result it is a JSON-RPC error with the reason's code in its data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cxi.canonical import JsonValue
from cxi.config.naming import route
from cxi.errors import Code, NotStarted, OutcomeUnknown, Problem, Reason, Refused
from cxi.gateway.catalogue import Catalogue
from cxi.gateway.client import RpcError
from cxi.gateway.door import Door, Flight, Rules, only, read_meta, read_uri
from cxi.gateway.exposure import split_exposed
from cxi.gateway.inward import Inward, spoken
from cxi.reply import refusal_result
from cxi.session import Answered, Finished, Ready
from cxi.sinks.mcp import RelayedAnswer, Upstream
from cxi.sinks.wire import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, SERVER_ERROR, write_json

NOTHING: Final = b"{}"


class Outward:
    """The way from the client to the servers, through the gate."""

    def __init__(self, door: Door, rules: Rules, upstreams: Mapping[str, Upstream], catalogue: Catalogue, inward: Inward) -> None:
        self.routes: Mapping[str, tuple[str, str]] = MappingProxyType({})
        self._door = door
        self._rules = rules
        self._upstreams = upstreams
        self._catalogue = catalogue
        self._inward = inward

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
        self.routes = MappingProxyType({**route(refused)[0], **routes})
        return problems

    async def call_tool(self, flight: Flight) -> bytes:
        """`tools/call`."""
        # `task` asks for a task; who does not offer tasks ignores it (MCP 2025-11-25, "tasks").
        params = only(flight.request.params, "name", "arguments", "task")
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`name` is no text", where="params.name")
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, Mapping):
            return self._refuse(name, Reason(Code.FIELD_TYPE, "`arguments` is no object", "arguments"))
        meta = read_meta(flight)
        key = meta.get(self._rules.idempotency_meta_key, "")
        if not isinstance(key, str):
            return self._refuse(name, Reason(Code.FIELD_TYPE, "the idempotency key is no text", self._rules.idempotency_meta_key))
        found = await self._route(name)
        if isinstance(found, Reason):
            return self._refuse(name, found)
        server, tool = found
        upstream, full = self._upstreams[server], f"{server}.{tool}"

        async def launch(ready: Ready) -> RelayedAnswer:
            return await upstream.execute(
                ready.warrant,
                progress=self._inward.relay_progress(flight, server),
                cancelled=flight.cancelled,
                meanwhile=self._door.catch_up,
            )

        async with upstream.lock if full in self._rules.sinks else contextlib.nullcontext():
            if flight.cancelled.is_set():
                return NOTHING  # before it was proposed: it never was
            prepared = self._door.propose(full, arguments, idempotency_key=key, later=True)
            if isinstance(prepared, Answered):
                return write_json(prepared.result)
            finished, answer = await self._carry_out(prepared, launch)
        return _relayed(finished, answer)

    def _refuse(self, name: str, reason: Reason) -> bytes:
        """Refuse a call that cannot be proposed; it is logged like any other, under the tool's own name where there is one."""
        place = self.routes.get(name)
        return write_json(self._door.refuse(".".join(place) if place else name, Refused((reason,))).result)

    async def _route(self, name: str) -> tuple[str, str] | Reason:
        unknown = Reason(Code.TOOL_UNKNOWN, f"no tool `{name[:100]}`", "name")
        parts = split_exposed(name)
        upstream = self._upstreams.get(parts[0]) if parts else None
        if upstream is None:
            return unknown
        if name not in self.routes:
            # Its server may not have been up yet: using it starts it.
            try:
                await upstream.ready()
            except NotStarted as error:
                return error.reason
            except OutcomeUnknown as error:
                return error.reason
            self.map_tools()
        return self.routes.get(name, unknown)

    async def get_prompt(self, flight: Flight) -> bytes:
        """`prompts/get`."""
        params = only(flight.request.params, "name", "arguments")
        upstream, own = self._prompt(params.get("name"), "params.name")
        arguments = params.get("arguments")
        outward: dict[str, JsonValue] = {"name": own} if arguments is None else {"name": own, "arguments": arguments}
        return await self._ask_outward(flight, upstream, outward)

    async def complete(self, flight: Flight) -> bytes:
        """`completion/complete`."""
        params = only(flight.request.params, "ref", "argument", "context")
        match params.get("ref"):
            case {"type": "ref/prompt", "name": str(name)}:
                upstream, own = self._prompt(name, "params.ref.name")
                outward: dict[str, JsonValue] = {**params, "ref": {"type": "ref/prompt", "name": own}}
            case {"type": "ref/resource", "uri": str(uri)}:
                upstream, outward = await self._resource(uri), params
            case _:
                raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`ref` is neither a prompt nor a resource", where="params.ref")
        return await self._ask_outward(flight, upstream, outward)

    async def read_resource(self, flight: Flight) -> bytes:
        """`resources/read`."""
        params = only(flight.request.params, "uri")
        uri = read_uri(params)
        return await self._ask_outward(flight, await self._resource(uri), {"uri": uri})

    async def subscribe(self, flight: Flight) -> bytes:
        """`resources/subscribe`."""
        uri = read_uri(only(flight.request.params, "uri"))
        upstream = await self._resource(uri)
        result = await self._ask_outward(flight, upstream, {"uri": uri})
        self._inward.subscribed.add((upstream.name, uri))
        return result

    async def unsubscribe(self, flight: Flight) -> bytes:
        """`resources/unsubscribe`, of what is subscribed."""
        uri = read_uri(only(flight.request.params, "uri"))
        for upstream in self._upstreams.values():
            if (upstream.name, uri) in self._inward.subscribed:
                self._inward.subscribed.discard((upstream.name, uri))
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
            progress = self._inward.relay_progress(flight, upstream.name)
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
            self._inward.receive(upstream.name, method, spoken(answer.result))
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
            # The answer goes out first; the rest is done right behind it (`Relay._answer`), and before anything else is decided.
            finished = self._door.finish(ready, answer, later=True)
        except Exception as error:  # noqa: BLE001  # it ran: whatever went wrong in writing it down, its outcome is unknown
            return self._finish_unwritten(ready, error), None
        return finished, answer if isinstance(answer, RelayedAnswer) else None

    def _finish_unwritten(self, ready: Ready, error: Exception) -> Finished:
        reason = Reason(Code.OUTCOME_UNKNOWN, f"its outcome could not be recorded ({type(error).__name__})", ready.id)
        try:
            return self._door.finish(ready, OutcomeUnknown(reason))
        except Exception:  # noqa: BLE001  # the lease stays as it is, which blocks its event key
            refused = Refused((reason,))
            return Finished(ready.id, refusal_result("", refused, ready.id, changed=True), None, refused)


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
