"""What does the relay know of the gate, and of a request on its way to it?

- A door is a session as the relay needs it: propose, finish, catch up, refuse, receive, and no more.
- A param that no revision names is refused, not passed over; `_meta` is looked at for what is named here, and goes no further.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cxi.canonical import JsonValue
from cxi.errors import Code, NotStarted, OutcomeUnknown, Refused
from cxi.gateway.client import Request, RpcError
from cxi.session import Answered, Finished, Prepared, Ready
from cxi.sinks.base import Answer
from cxi.sinks.connection import Cancellation
from cxi.sinks.wire import INVALID_PARAMS, MAX_MESSAGE


class Door(Protocol):
    """A session, as the relay needs it."""

    def propose(self, tool: str, arguments: JsonValue, *, idempotency_key: str = "", later: bool = False) -> Prepared: ...
    def finish(self, prepared: Ready, answer: Answer | NotStarted | OutcomeUnknown, *, later: bool = False) -> Finished: ...
    def catch_up(self) -> None: ...
    def refuse(self, tool: str, refused: Refused) -> Answered: ...
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
    cancelled: Cancellation = field(default_factory=Cancellation)
    task: asyncio.Task[None] | None = None


def only(params: Mapping[str, JsonValue], *known: str) -> dict[str, JsonValue]:
    """The params without `_meta`; what no revision names is refused, not passed over."""
    for name in params:
        if name not in known and name != "_meta":
            raise RpcError.of(INVALID_PARAMS, Code.FIELD_UNCLASSIFIED, f"no param `{name[:100]}`", where=f"params.{name[:100]}")
    return {name: value for name, value in params.items() if name != "_meta"}


def refuse_cursor(flight: Flight) -> None:
    """Lists come in one page: there is no cursor to continue from."""
    if only(flight.request.params, "cursor").get("cursor") is not None:
        raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "no such cursor: lists come in one page", where="params.cursor")


def read_uri(params: Mapping[str, JsonValue]) -> str:
    """The `uri` of the params."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RpcError.of(INVALID_PARAMS, Code.FIELD_TYPE, "`uri` is no text", where="params.uri")
    return uri


def read_meta(flight: Flight) -> Mapping[str, JsonValue]:
    """The `_meta` of the params."""
    meta = flight.request.params.get("_meta")
    return meta if isinstance(meta, Mapping) else {}
