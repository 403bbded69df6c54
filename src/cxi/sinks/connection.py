"""What was asked of a running server, and what did it answer?

- Ids are ours, so no server can answer what it was not asked; an answer to an unknown or settled id is ignored.
- Nonsense is tolerated up to a limit, then the connection is cut: `SINK_MALFORMED`. So is a message over the size limit.
- A server that sends more than the pace allows is slowed: we stop reading, its pipe fills, and it waits. Memory stays bounded.
- INVARIANT (written-is-maybe): once a byte of a request may have been written, its loss is `OutcomeUnknown`, never `NotStarted`.
- Only `ping` is answered to a server; every other request of it is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Code, MalformedError, NotStarted, OutcomeUnknown, Reason
from cxi.sinks.process import ServerProcess
from cxi.sinks.wire import (
    METHOD_NOT_FOUND,
    Lines,
    Message,
    Oversized,
    error_of,
    read_message,
    read_object,
    write_error,
    write_json,
    write_notification,
    write_request,
    write_result,
)

NONSENSE_LIMIT: Final = 100  # lines that are no message: banners and stray prints
STRAY_LIMIT: Final = 1000  # answers to nothing that was asked
SILENT_TIMEOUTS: Final = 3  # requests in a row that timed out with not one line read: it hangs
BURST: Final = 1000
RATE: Final = 200.0  # unasked messages a second, once the burst is used up
_YIELD_EVERY: Final = 64
_EDGE: Final = 1024  # bytes at each end of an unreadable answer in which its id is looked for
_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})(?![0-9.eE])')

Progress: TypeAlias = Callable[[Mapping[str, JsonValue]], Awaitable[None]]
Inward: TypeAlias = Callable[[str, bytes], Awaitable[None]]


def _nothing() -> None:
    """What is called where nothing is to be done."""


@dataclass(slots=True)
class Pace:
    """A token bucket; `wait` sleeps where it is empty."""

    left: float
    at: float

    async def wait(self, now: float) -> None:
        self.left = min(BURST, self.left + (now - self.at) * RATE) - 1
        self.at = now
        if self.left < 0:
            await asyncio.sleep(-self.left / RATE)


class Cancellation:
    """Whether who asked wants no answer any more; who waits for it is told at once."""

    __slots__ = ("_is_set", "_watchers")

    def __init__(self) -> None:
        self._is_set = False
        self._watchers: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Cancel; once is enough."""
        if not self._is_set:
            self._is_set = True
            for tell in self._watchers:
                tell()

    def watch(self, tell: Callable[[], None]) -> None:
        """Be told, now if it is so already. In the event loop's thread, like all of this."""
        self._watchers.append(tell)
        if self._is_set:
            tell()


@dataclass(frozen=True, slots=True)
class _Pending:
    answer: asyncio.Future[Message]
    progress: Progress | None


class Connection:
    """JSON-RPC with one run of a server's program."""

    def __init__(
        self,
        process: ServerProcess,
        *,
        limit: int,
        inward: Inward,
        refusal: Callable[[str], bytes],
        cancel_patience: float,
    ) -> None:
        """Begin to read.

        Args:
            process: The running program.
            limit: The greatest length of a message, in bytes.
            inward: Takes each notification's method and the bytes of its params; awaited, so it slows the server down.
            refusal: The error object with which a request of the server is refused.
            cancel_patience: Seconds to wait for the answer of a cancelled request.
        """
        self.name = process.name
        self.process = process
        self._limit = limit
        self._inward = inward
        self._refusal = refusal
        self._cancel_patience = cancel_patience
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, _Pending] = {}
        self._next = 0
        self._writing = asyncio.Lock()
        self._silent = 0
        self.lost: Reason | None = None
        self._lines = Lines(limit, self._take_now)
        process.offer_to(self._lines.offer)
        self._reading = asyncio.create_task(self._read(), name=f"{self.name}: reader")

    @property
    def alive(self) -> bool:
        return self.lost is None

    async def request(
        self,
        method: str,
        params: Mapping[str, JsonValue],
        *,
        timeout: float,
        progress: Progress | None = None,
        cancelled: Cancellation | None = None,
        before_write: Callable[[], None] = _nothing,
        meanwhile: Callable[[], None] = _nothing,
    ) -> Message:
        """Ask, and wait for the answer.

        Args:
            method: The method.
            params: Its params; `_meta.progressToken` is ours.
            timeout: Seconds for writing and answering.
            progress: Takes the params of each progress notification.
            cancelled: Once set, the server is told, and gets a little time to answer still.
            before_write: Called when nothing stands between it and the write; may raise `NotStarted`.
            meanwhile: Called once it is written, while the server works; raises nothing.

        Raises:
            NotStarted: nothing was written.
            OutcomeUnknown: something was, and no answer came.
        """
        self._next += 1
        number = self._next
        if progress is not None:
            params = {**params, "_meta": {"progressToken": number}}
        line = write_request(number, method, write_json(params))
        pending = _Pending(self._loop.create_future(), progress)
        written = False
        try:
            async with asyncio.timeout(timeout):
                async with self._writing:
                    if self.lost is not None:
                        raise NotStarted(self.lost)
                    before_write()
                    self._pending[number] = pending
                    written = True  # INVARIANT (written-is-maybe)
                    await self._write(line)
                meanwhile()
                return await self._answer(number, pending, cancelled)
        except TimeoutError:
            reason = Reason(Code.SINK_TIMEOUT, f"`{self.name}` did not answer `{method}` in {timeout:g} s", where=self.name)
            if not written:
                raise NotStarted(reason) from None
            self._timed_out(number)
            raise OutcomeUnknown(reason) from None
        except asyncio.CancelledError:
            if written:
                self._tell_cancelled(number)
            raise
        finally:
            self._pending.pop(number, None)

    async def notify(self, method: str, params: Mapping[str, JsonValue] | None = None) -> None:
        """Send a notification; nothing comes back, not even that it was lost."""
        async with self._writing:
            if self.lost is None:
                await self._write(write_notification(method, b"" if params is None else write_json(params)))

    async def close(self, patience: float) -> None:
        """End the program; what is still asked is lost."""
        self._lose(Reason(Code.SINK_DOWN, f"the server `{self.name}` was stopped", where=self.name))
        self._reading.cancel()
        await self.process.stop(patience)
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _answer(self, id: int, pending: _Pending, cancelled: Cancellation | None) -> Message:
        if cancelled is not None:
            cancelled.watch(partial(self._cut, id, pending))
        answer = await pending.answer
        if cancelled is not None and cancelled.is_set() and answer.error:
            # "Cancelled" as an answer does not say what had happened by then.
            reason = Reason(Code.OUTCOME_UNKNOWN, f"`{self.name}` answered the cancelled call with an error", where=self.name)
            raise OutcomeUnknown(reason)
        return answer

    def _cut(self, id: int, pending: _Pending) -> None:
        """Tell the server that an answer is not wanted any more, and wait for it a little longer."""
        if not pending.answer.done():
            self._tell_cancelled(id)
            self._loop.call_later(self._cancel_patience, self._give_up, pending)

    def _give_up(self, pending: _Pending) -> None:
        if not pending.answer.done():
            reason = Reason(Code.OUTCOME_UNKNOWN, f"cancelled; `{self.name}` did not say how it ended", where=self.name)
            pending.answer.set_exception(OutcomeUnknown(reason))
            pending.answer.exception()  # seen: the asker may be gone

    async def _write(self, line: bytes) -> None:
        writer = self.process.writer
        try:
            writer.write(line)
            await writer.drain()
        except (OSError, RuntimeError):
            self._lose(Reason(Code.SINK_DOWN, f"the server `{self.name}` closed its input", where=self.name))

    def _tell_cancelled(self, id: int) -> None:
        # Not awaited: a server that hangs must not hold up what ends a call to it.
        if self.lost is None:
            line = write_notification("notifications/cancelled", write_json({"requestId": id}))
            with contextlib.suppress(OSError, RuntimeError):
                self.process.writer.write(line)

    def _timed_out(self, id: int) -> None:
        self._tell_cancelled(id)
        self._silent += 1
        if self._silent >= SILENT_TIMEOUTS:
            self._lose(Reason(Code.SINK_TIMEOUT, f"the server `{self.name}` hangs", where=self.name))

    async def _read(self) -> None:
        reason = Reason(Code.SINK_DOWN, f"the server `{self.name}` ended", where=self.name)
        try:
            reason = await self._read_all() or reason
        except OSError:
            pass  # the pipe broke: it ended
        finally:
            self._lose(reason)

    async def _read_all(self) -> Reason | None:
        nonsense = stray = count = 0
        pace = Pace(BURST, self._loop.time())
        async for line in self._lines.read(self.process.reader):
            self._silent = 0
            count += 1
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)  # a stream that is always ready would never let the others run
            if isinstance(line, Oversized):
                return self._malformed(f"sent a message of more than {self._limit} bytes")
            try:
                message = read_message(line)
            except MalformedError:
                nonsense += 1
                self._settle_unreadable(line)
                if nonsense > NONSENSE_LIMIT:
                    return self._malformed(f"sent more than {NONSENSE_LIMIT} lines that are no messages")
                continue
            if message.method:
                await pace.wait(self._loop.time())
                await self._take(message)
            elif not self._settle(message):
                stray += 1
                if stray > STRAY_LIMIT:
                    return self._malformed(f"sent more than {STRAY_LIMIT} answers to nothing that was asked")
        return None

    def _take_now(self, line: bytes) -> bool:
        """Take an answer that was waited for; all else is read in its turn."""
        try:
            message = read_message(line)
        except MalformedError:
            return False
        if message.method or not self._settle(message):
            return False
        self._silent = 0
        return True

    def _settle(self, message: Message) -> bool:
        # An id is ours only if it is the very integer: "1", 1.0 and true are not 1.
        pending = self._pending.get(message.id) if type(message.id) is int else None
        if pending is None or pending.answer.done():
            return False
        pending.answer.set_result(message)
        return True

    def _settle_unreadable(self, line: bytes) -> None:
        """An answer that is no valid message ends its request now, instead of by its time-out."""
        try:
            value = json.loads(line)
        except ValueError:
            return
        except RecursionError:
            number = _guess_id(line)  # too deep for any reader: which answer it is stands at its beginning or its end
        else:
            number = value.get("id") if isinstance(value, dict) and "method" not in value else None
        pending = self._pending.get(number) if type(number) is int else None
        if pending is not None and not pending.answer.done():
            pending.answer.set_exception(OutcomeUnknown(self._malformed("answered with what is no valid message")))
            pending.answer.exception()  # seen: the asker may be gone

    async def _take(self, message: Message) -> None:
        if message.id is not None:
            line = write_result(message.id, b"{}") if message.method == "ping" else None
            line = line or write_error(message.id, self._refusal(message.method))
            async with self._writing:
                await self._write(line)
        elif message.method == "notifications/progress":
            await self._take_progress(message.params)
        else:
            await self._inward(message.method, message.params)

    async def _take_progress(self, raw: bytes) -> None:
        try:
            params = read_object(raw)
        except MalformedError:
            return
        token = params.get("progressToken")
        pending = self._pending.get(token) if type(token) is int else None
        if pending is not None and pending.progress is not None and not pending.answer.done():
            await pending.progress(params)

    def _malformed(self, what: str) -> Reason:
        return Reason(Code.SINK_MALFORMED, f"the server `{self.name}` {what}", where=self.name)

    def _lose(self, reason: Reason) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(OutcomeUnknown(reason))
                pending.answer.exception()  # seen: the asker may be gone


def _guess_id(line: bytes) -> int | None:
    """The id of an answer that no reader can follow to its end; a wrong guess ends a call as unknown, never as done."""
    edges = line[:_EDGE] + b"\n" + line[-_EDGE:]
    if not line.lstrip().startswith(b"{") or b'"method"' in edges:
        return None
    found = _ID.search(edges)
    return int(found[1]) if found else None


def refuse_method(method: str) -> bytes:
    """The error object for a server's request where nothing says otherwise."""
    return error_of(METHOD_NOT_FOUND, f"`{method[:100]}` is off", {"code": str(Code.METHOD_OFF)})
