"""What of a server's own text reaches the agent, and as what?

- All of it is W, and the session is told so before the client is sent it.
- Notifications pass by the table; a log names its server, progress carries the client's token, an update passes for what the
  client subscribed to at this server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from cxi.canonical import JsonValue
from cxi.errors import Code, MalformedError
from cxi.gateway.client import Client
from cxi.gateway.door import Door, Flight, read_meta
from cxi.gateway.method import TABLE, Sender
from cxi.sinks.connection import Progress
from cxi.sinks.mcp import Upstream
from cxi.sinks.wire import METHOD_NOT_FOUND, error_of, read_object


class Inward:
    """The way from the servers to the client."""

    def __init__(self, door: Door, client: Client) -> None:
        self.open = False  # nothing is sent before the client has initialized
        self.subscribed: set[tuple[str, str]] = set()
        self.forget: Callable[[str, str], None] = lambda _server, _notification: None
        self._door = door
        self._client = client
        self._seen: dict[tuple[str, str], int] = {}

    async def take(self, upstream: Upstream, method: str, params: bytes) -> None:
        """Take a notification of a server."""
        row = TABLE.get((Sender.SERVER, method))
        if row is None or row.request or not row.on:
            return
        if method.endswith("/list_changed"):
            self.forget(upstream.name, method)
            await self.tell(method)
        elif method == "notifications/message":
            await self._relay_log(upstream, params)
        elif method == "notifications/resources/updated":
            with contextlib.suppress(MalformedError):
                uri = read_object(params).get("uri")
                if isinstance(uri, str) and (upstream.name, uri) in self.subscribed:
                    await self._client.relay(method, params)

    async def _relay_log(self, upstream: Upstream, raw: bytes) -> None:
        try:
            params = read_object(raw)
        except MalformedError:
            return
        logger = params.get("logger")
        name = f"{upstream.name}/{logger}" if isinstance(logger, str) and logger else upstream.name
        self.receive(upstream.name, "log", spoken(params.get("data")))
        if self.open:
            await self._client.notify("notifications/message", {**params, "logger": name})

    async def tell(self, method: str) -> None:
        """Tell the client that something changed, if it is there."""
        if self.open:
            await self._client.notify(method)

    def receive(self, server: str, kind: str, text: str) -> None:
        """Text of a server that the agent will see is W."""
        # The same text twice influences nothing anew; and a repeated list must not push out what else was seen.
        if text and self._seen.get((server, kind)) != hash(text):
            self._seen[server, kind] = hash(text)
            self._door.receive(server, kind, text)

    def relay_progress(self, flight: Flight, server: str) -> Progress | None:
        """What takes the progress of a server for this request; None where the client asked for none."""
        token = read_meta(flight).get("progressToken")
        if not isinstance(token, str) and type(token) is not int:
            return None

        async def relay(params: Mapping[str, JsonValue]) -> None:
            if not flight.cancelled.is_set():
                if isinstance(message := params.get("message"), str):
                    self.receive(server, "progress", message)
                await self._client.notify("notifications/progress", {**params, "progressToken": token})

        return relay


def refuse_server(method: str) -> bytes:
    """The error object with which a server's request is refused."""
    row = TABLE.get((Sender.SERVER, method))
    code = Code.METHOD_UNKNOWN if row is None or not row.request else Code.METHOD_OFF
    return error_of(METHOD_NOT_FOUND, f"`{method[:100]}` is not offered", {"code": str(code)})


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
