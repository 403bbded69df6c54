"""What does the agent's client send, and how is it answered?

- One writer, one line a message; a client that does not read slows what is written to it, and nothing piles up.
- What the client sent is read once, strictly (`canonical.parse_json`); of a line that cannot be read so, only its id and its
  method are, to answer it.
- A place in a refused line is named as a path, `params.arguments.path`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cxi.canonical import JsonValue, parse_json
from cxi.errors import Code, MalformedError, Reason
from cxi.sinks.wire import (
    INVALID_REQUEST,
    MAX_MESSAGE,
    PARSE_ERROR,
    RequestId,
    error_of,
    write_error,
    write_json,
    write_notification,
    write_result,
)

# The first members of a message, as long as they are short texts, and its id: enough to answer a line that is too long to read.
_HEAD: Final = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*,)*\s*"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")\s*,'
)


class RpcError(Exception):
    """A request is answered with a JSON-RPC error.

    Attributes:
        error: The error object's bytes.
    """

    def __init__(self, error: bytes) -> None:
        super().__init__(error.decode())
        self.error = error

    @classmethod
    def of(cls, number: int, code: Code, message: str, **data: JsonValue) -> RpcError:
        """An error with a reason code in its data."""
        return cls(error_of(number, message, {"code": str(code), **data}))


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the client, read strictly."""

    id: RequestId
    method: str
    params: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification of the client, read strictly."""

    method: str
    params: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no valid message.

    Attributes:
        id: The id that it may be answered under, if one can be told.
        method: Its method, if one can be told.
        number: The JSON-RPC error code.
        reason: What is wrong.
    """

    id: RequestId | None
    method: str
    number: int
    reason: Reason


def read_client(line: bytes, limit: int = MAX_MESSAGE) -> Request | Notice | Unreadable | None:
    """Read one line of the client; None for a response, since nothing was asked of it."""
    try:
        value = parse_json(line, limit=limit)
    except MalformedError as error:
        return _unreadable(line, error.reason)
    if not isinstance(value, dict):
        return Unreadable(None, "", INVALID_REQUEST, Reason(Code.MALFORMED_JSON, "a message is one object; batches are not"))
    id, method, params = value.get("id"), value.get("method"), value.get("params", {})  # noqa: A001  # the field's own name
    known = id if isinstance(id, str) or type(id) is int else None

    def refuse(detail: str, where: str) -> Unreadable:
        return Unreadable(
            known, method if isinstance(method, str) else "", INVALID_REQUEST, Reason(Code.MALFORMED_JSON, detail, where)
        )

    if value.get("jsonrpc") != "2.0":
        return refuse("`jsonrpc` is not `2.0`", "jsonrpc")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    if not isinstance(method, str) or not method:
        return refuse("`method` is no text", "method")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return refuse("`params` is no object", "params")
    if "id" not in value:
        return Notice(method, params)
    if known is None:
        return refuse("`id` is neither a text nor an integer", "id")
    return Request(known, method, params)


def guess_id(head: bytes) -> RequestId | None:
    """The id of a line that was too long to read, where its first members show it."""
    match = _HEAD.match(head)
    try:
        found = json.loads(match[1]) if match else None
    except ValueError:  # no JSON text or number after all
        return None
    return found if isinstance(found, str | int) else None


class Client:
    """The way back to the client."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._writing = asyncio.Lock()
        self.gone = asyncio.Event()

    async def answer(self, id: RequestId, result: bytes) -> None:
        """Answer a request with a result's bytes."""
        await self._send(write_result(id, result))

    async def refuse(self, id: RequestId | None, error: bytes) -> None:
        """Answer a request with an error object's bytes."""
        await self._send(write_error(id, error))

    async def notify(self, method: str, params: Mapping[str, JsonValue] | None = None) -> None:
        """Send a notification."""
        await self._send(write_notification(method, b"" if params is None else write_json(params)))

    async def relay(self, method: str, params: bytes) -> None:
        """Send a notification whose params are bytes as they came."""
        await self._send(write_notification(method, params))

    async def close(self, patience: float) -> None:
        """No more is written; what was, gets this many seconds to be read."""
        self.gone.set()
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), patience)
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass  # it closed its end first

    async def _send(self, line: bytes) -> None:
        async with self._writing:
            if self.gone.is_set():
                return
            try:
                self._writer.write(line)
                await self._writer.drain()
            except (OSError, RuntimeError):
                self.gone.set()  # it closed its end: nobody is there to be told


class _Twice(dict[str, JsonValue]):
    """An object that names a key twice."""

    key = ""


def _unreadable(line: bytes, reason: Reason) -> Unreadable:
    try:
        value = json.loads(line, object_pairs_hook=_mark, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError):
        return Unreadable(guess_id(line[:1024]), "", PARSE_ERROR, reason)
    if not isinstance(value, dict) or isinstance(value, _Twice):
        return Unreadable(None, "", INVALID_REQUEST, reason)
    id, method = value.get("id"), value.get("method")  # noqa: A001  # the field's own name
    if isinstance(id, _Number):
        id = int(id) if id.isdigit() and len(id) < 16 else None  # noqa: A001
    where = _find(value, reason.code, "")
    found = Reason(reason.code, reason.detail, where or reason.where, reason.needs)
    known = id if isinstance(id, str | int) else None
    return Unreadable(known, method if isinstance(method, str) else "", INVALID_REQUEST, found)


class _Number(str):
    """A number, as it was written."""

    __slots__ = ()


def _mark(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    twice = _Twice(found)
    twice.key = next(key for key in found if sum(key == other for other, _ in pairs) > 1)
    return twice


def _find(value: JsonValue, code: Code, path: str) -> str:
    """The path of the first thing that `code` is about, or empty."""
    if isinstance(value, _Twice) and code is Code.DUPLICATE_KEY:
        return _join(path, value.key)
    if isinstance(value, _Number):
        if code is Code.NUMBER_NOT_EXACT:
            with contextlib.suppress(MalformedError):
                parse_json(value)
                return ""
            return path
        return ""
    if isinstance(value, str):
        return path if code is Code.NON_CANONICAL_TEXT and any("\ud800" <= char <= "\udfff" for char in value) else ""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found = _find(item, code, f"{path}[{key}]" if isinstance(key, int) else _join(path, key))
        if found:
            return found
    return ""


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
