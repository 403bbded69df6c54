"""How do JSON-RPC lines come off a pipe, and go on to one?

- One message is one line (MCP, "stdio transport"); a line over the limit is dropped whole, so memory stays bounded.
- `params`, `result` and `error` are kept as the bytes that came; what is relayed is those bytes, not a rewriting of them.
- What is read from them is read once, strictly about what two readers could see differently (a key named twice, a lone
  surrogate, NaN) and freely about numbers: a server may count in 64 bits.

    >>> read_message(b'{"jsonrpc":"2.0","id":1,"result":{"n":1.50}}').result
    b'{"n":1.50}'
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import msgspec
import orjson

from cxi.canonical import JsonValue
from cxi.errors import Code, MalformedError, Reason

RequestId: TypeAlias = int | str

MAX_MESSAGE: Final = 16 * 1024 * 1024
_CHUNK: Final = 64 * 1024
OWN_META: Final = "cxi.dev/"

# JSON-RPC 2.0, section 5.1, and MCP's own -32002.
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
SERVER_ERROR: Final = -32000


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message, its parts as they came.

    Attributes:
        method: Empty for a response.
        id: None for a notification, and for an error about an unreadable request.
        params: The bytes of `params`, or empty.
        result: The bytes of `result`, or empty.
        error: The bytes of `error`, or empty.
    """

    method: str = ""
    id: RequestId | None = None
    params: bytes = b""
    result: bytes = b""
    error: bytes = b""

    @property
    def is_request(self) -> bool:
        return bool(self.method) and self.id is not None

    @property
    def is_notification(self) -> bool:
        return bool(self.method) and self.id is None


class _Envelope(msgspec.Struct):
    jsonrpc: str
    method: str = ""
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_DECODER: Final = msgspec.json.Decoder(_Envelope)


def read_message(line: bytes) -> Message:
    """Read one line as a JSON-RPC 2.0 message (https://www.jsonrpc.org/specification, sections 4 and 5).

    Raises:
        MalformedError: `MALFORMED_JSON`, if it is none.
    """
    try:
        found = _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse(str(error).lower())
    if found.jsonrpc != "2.0":
        _refuse("`jsonrpc` is not `2.0`")
    answers = bool(found.result) + bool(found.error)
    if bool(found.method) == bool(answers) or answers > 1:
        _refuse("neither one request, one notification nor one response")
    if found.method and found.id is None:
        _refuse("the id of a request is null")  # MCP forbids it
    number = None if found.id is msgspec.UNSET else found.id
    if found.result and number is None:
        _refuse("a result without an id")
    return Message(found.method, number, bytes(found.params), bytes(found.result), bytes(found.error))


def read_json(raw: bytes) -> JsonValue:
    """Read what came, with nothing in it that two readers could see differently.

    Raises:
        MalformedError: `MALFORMED_JSON`, `DUPLICATE_KEY`, `NUMBER_NOT_EXACT` or `NON_CANONICAL_TEXT`.
    """
    try:
        value: JsonValue = orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass  # the reader below says why, or reads it
    else:
        # Equal bytes prove that no key was dropped and no number bent: the common case, as servers write compactly.
        if orjson.dumps(value) == raw:
            return value
    try:
        text = raw.decode("utf-8")
        slow: JsonValue = _STRICT.decode(text)
        if "\\u" in text:
            json.dumps(slow, ensure_ascii=False).encode("utf-8")
    except MalformedError:
        raise
    except UnicodeEncodeError:
        raise MalformedError(Reason(Code.NON_CANONICAL_TEXT, "the text holds a lone surrogate")) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        _refuse(f"not JSON: {type(error).__name__}")
    except ValueError:
        _refuse("a number is too long to read")
    return slow


def read_object(raw: bytes) -> Mapping[str, JsonValue]:
    """`read_json` for what must be an object; nothing at all reads as an empty one.

    Raises:
        MalformedError: as `read_json`, or `MALFORMED_JSON` if it is no object.
    """
    if raw in (b"", b"null"):
        return {}
    value = read_json(raw)
    if not isinstance(value, dict):
        _refuse("not an object")
    return value


def drop_own_meta(value: JsonValue) -> bool:
    """Take every key of a `_meta` object that begins with `cxi.dev/` out of what a server said, in place, at any depth.

    The prefix is reserved for the gate (MCP, "_meta": prefixes belong to who owns the name).

    Returns:
        Whether there was one.
    """
    found = False
    waiting: list[JsonValue] = [value]
    while waiting:  # no recursion: what came may be as deep as its reader allows
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(inner for inner in item if isinstance(inner, (dict, list)))
        elif isinstance(item, dict):
            meta = item.get("_meta")
            if isinstance(meta, dict):
                for key in [key for key in meta if key.startswith(OWN_META)]:
                    del meta[key]
                    found = True
            waiting.extend(inner for inner in item.values() if isinstance(inner, (dict, list)))
    return found


def write_json(value: JsonValue) -> bytes:
    """Compact UTF-8 JSON on one line; not canonical, and never hashed."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or a frozen mapping
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_thaw).encode("utf-8")


def write_request(id: RequestId, method: str, params: bytes) -> bytes:
    """One request line."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b%b}\n' % (orjson.dumps(id), orjson.dumps(method), _params(params))


def write_notification(method: str, params: bytes = b"") -> bytes:
    """One notification line."""
    return b'{"jsonrpc":"2.0","method":%b%b}\n' % (orjson.dumps(method), _params(params))


def write_result(id: RequestId, result: bytes) -> bytes:
    """One response line with the result's bytes as they are."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (orjson.dumps(id), result)


def write_error(id: RequestId | None, error: bytes) -> bytes:
    """One response line with the error's bytes as they are."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (orjson.dumps(id), error)


def error_of(code: int, message: str, data: Mapping[str, JsonValue] | None = None) -> bytes:
    """The bytes of a JSON-RPC error object."""
    body: dict[str, JsonValue] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return write_json(body)


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line over the limit was there; its bytes are gone.

    Attributes:
        head: Its first bytes, to guess at the id.
    """

    head: bytes


class Lines:
    """The lines of a stream, in order. A line that comes alone, while nothing else waits, may be taken on the spot.

    Waking a reader costs two turns of the event loop; most messages are one line in one piece, and can be had for none.
    """

    def __init__(self, limit: int = MAX_MESSAGE, take: Callable[[bytes], bool] | None = None) -> None:
        """Nothing is read yet.

        Args:
            limit: Bytes of the longest line.
            take: Takes a line on the spot, or says that it has to wait its turn.
        """
        self._limit = limit
        self._take = take
        self._idle = False  # INVARIANT (in-order): only while all that came before is read and done

    def offer(self, data: bytes) -> bool:
        """Whether what just came is taken; what is not goes to the reader."""
        if self._idle and self._take is not None and data.find(b"\n") == len(data) - 1 <= self._limit and self._take(data[:-1]):
            return True
        self._idle = False
        return False

    async def read(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes | Oversized]:
        """The lines that were not taken, without their ends; one over the limit comes as `Oversized`.

        At most the limit and one chunk are held. Empty lines are skipped; a last line without an end is dropped, since nobody can
        know that it is whole.
        """
        buffer = bytearray()
        skipping = False
        while True:
            self._idle = not buffer and not skipping
            chunk = await reader.read(_CHUNK)
            self._idle = False
            if not chunk:
                return
            start = 0
            while (end := chunk.find(b"\n", start)) >= 0:
                piece = chunk[start:end]
                start = end + 1
                if skipping:
                    skipping = False
                    continue
                if len(buffer) + len(piece) > self._limit:
                    yield Oversized(bytes(buffer[:1024]) or piece[:1024])
                else:
                    line = bytes(buffer) + piece if buffer else piece
                    if line.strip():
                        yield line
                buffer.clear()
            if skipping:
                continue
            buffer += chunk[start:]
            if len(buffer) > self._limit:
                yield Oversized(bytes(buffer[:1024]))
                buffer.clear()
                skipping = True


def read_lines(reader: asyncio.StreamReader, limit: int = MAX_MESSAGE) -> AsyncIterator[bytes | Oversized]:
    """The lines of a stream (`Lines.read`)."""
    return Lines(limit).read(reader)


def _params(params: bytes) -> bytes:
    return b',"params":%b' % params if params else b""


def _refuse(detail: str) -> NoReturn:
    raise MalformedError(Reason(Code.MALFORMED_JSON, detail))


def _pairs(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError(Reason(Code.DUPLICATE_KEY, "an object names a key twice"))
    return found


def _constant(text: str) -> NoReturn:
    raise MalformedError(Reason(Code.NUMBER_NOT_EXACT, f"`{text}` is no JSON number"))


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedError(Reason(Code.NUMBER_NOT_EXACT, f"`{text[:40]}` is beyond any double"))
    return value


def _thaw(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(type(value).__name__)


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
