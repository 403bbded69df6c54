"""Who carries a call out on an MCP server over stdio?

- `execute` takes a warrant and nothing else; the tool's name and its arguments come from the warrant's canonical call.
- A server is started on first use, and again on the next use after it died, with a growing pause between failures. After each
  start, and whenever it says that its tools changed, it lists them again, the definitions are compared with the pinned ones,
  and only what was admitted is called.
- A sink call that was not written is `NotStarted`; one that was and got no answer is `OutcomeUnknown`.
- The lease's launch deadline is compared with the clock when nothing stands between it and the write.
- Answers are kept as the bytes that came, beside what was read from them; only `_meta` keys of ours are taken out, since a server
  that wrote them could pass its words off as the gate's.
- What `tools/call` is answered with has a list `content` (MCP, "CallToolResult"); anything else is nonsense, not success.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from cxi import __version__
from cxi.canonical import JsonValue
from cxi.errors import Code, CxiError, EffectError, MalformedError, NotStarted, OutcomeUnknown, Reason, Refused
from cxi.ledger.base import Lease
from cxi.manifest import CanonicalCall, Instant
from cxi.sinks.base import Answer, Clearance
from cxi.sinks.connection import Cancellation, Connection, Progress, refuse_method
from cxi.sinks.process import ServerProcess
from cxi.sinks.wire import Message, drop_own_meta, read_object, write_json

REVISIONS: Final = ("2025-06-18", "2025-11-25")  # oldest to newest
MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 10_000
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 60.0

Tool: TypeAlias = Mapping[str, JsonValue]
Admit: TypeAlias = Callable[[str, Sequence[Tool]], Mapping[str, Refused | None]]
T = TypeVar("T")


class Launch(Protocol):
    """How a server is started, and what it may cost."""

    @property
    def name(self) -> str: ...
    @property
    def command(self) -> Sequence[str]: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def cwd(self) -> str | Path | None: ...
    @property
    def timeout(self) -> float:
        """Seconds until a request must be answered."""
        ...

    @property
    def max_message(self) -> int:
        """Bytes of its longest message."""
        ...


@dataclass(frozen=True, slots=True)
class RelayedAnswer(Answer):
    """An answer with the bytes that came.

    Attributes:
        raw: The result's bytes; empty where the server answered with an error.
        error: The error object's bytes; empty where it answered with a result.
    """

    raw: bytes = b""
    error: bytes = b""


class Upstream:
    """One MCP server, running or not."""

    def __init__(
        self,
        server: Launch,
        *,
        admit: Admit,
        clock: Callable[[], Instant] = time.time,
        start_timeout: float | None = None,
        patience: float = 1.0,
        cancel_patience: float = 2.0,
    ) -> None:
        """Nothing is started yet.

        Args:
            server: How it is started.
            admit: Compares its tools with the pinned definitions: None for each that may be called, or why not.
            clock: What leases' deadlines are compared with.
            start_timeout: Seconds until it must have answered its first message; 20, or the call's if that is less, if not given.
            patience: Seconds between the steps of ending its program.
            cancel_patience: Seconds to wait for the answer of a cancelled call.
        """
        self.server = server
        self.name = server.name
        self.lock = asyncio.Lock()  # sink calls to one server are made one at a time
        self.tools: tuple[Tool, ...] = ()
        self.admitted: Mapping[str, Refused | None] = MappingProxyType({})
        self.capabilities: Mapping[str, JsonValue] = MappingProxyType({})
        self.instructions = ""
        self.revision = ""
        self.starts = 0
        self.last_fault: Reason | None = None
        self._admit = admit
        self._take: Callable[[Upstream, str, bytes], Awaitable[None]] | None = None
        self._listed: Callable[[Upstream], Awaitable[None]] | None = None
        self._refusal: Callable[[str], bytes] = refuse_method
        self._clock = clock
        self._start_timeout = min(20.0, server.timeout) if start_timeout is None else start_timeout
        self._patience = patience
        self._cancel_patience = cancel_patience
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._listing = asyncio.Lock()
        self._stale = False
        self._failures = 0
        self._retry_at = 0.0
        self._since = 0.0
        self._closed = False

    def attach(
        self,
        *,
        inward: Callable[[Upstream, str, bytes], Awaitable[None]],
        listed: Callable[[Upstream], Awaitable[None]],
        refusal: Callable[[str], bytes],
    ) -> None:
        """Say who takes what the server sends by itself.

        Args:
            inward: Takes its notifications.
            listed: Told whenever it listed its tools.
            refusal: The error object with which its own requests are refused.
        """
        self._take, self._listed, self._refusal = inward, listed, refusal

    @property
    def alive(self) -> bool:
        return self._connection is not None and self._connection.alive

    @property
    def stderr_tail(self) -> str:
        """The last that it wrote to stderr; untrusted, for a person."""
        return "" if self._connection is None else self._connection.process.stderr_tail

    async def ready(self) -> Connection:
        """A connection whose tools are listed and compared; starts the server where needed.

        Raises:
            NotStarted: it cannot be started, or it failed a moment ago.
        """
        connection = self._connection
        if connection is None or not connection.alive:
            if self._starting is None:
                self._may_start()
                self._starting = asyncio.create_task(self._start(), name=f"{self.name}: start")
                self._starting.add_done_callback(_seen)
            # Shielded: one asker who gives up does not end it for the others.
            try:
                connection = await asyncio.shield(self._starting)
            except asyncio.CancelledError:
                if not self._closed:
                    raise
                raise NotStarted(self._stopped()) from None
        if self._stale:
            await self._list_tools(connection)
            await self._tell_listed()
        return connection

    async def execute(
        self,
        warrant: Lease | Clearance,
        *,
        progress: Progress | None = None,
        cancelled: Cancellation | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> RelayedAnswer:
        """Call the tool that the warrant names, with exactly its arguments.

        Args:
            warrant: What may be called.
            progress: Takes progress.
            cancelled: Set, to cancel it.
            meanwhile: Called once the call is written, while the server works; raises nothing.

        Raises:
            NotStarted: the effect did not begin.
            OutcomeUnknown: it may have happened.
        """
        call = self._call_of(warrant)

        def check() -> None:
            # The last look before the write: what came in while we waited counts.
            if self._stale:
                raise NotStarted(Reason(Code.TOOL_DEFINITION_CHANGED, f"`{self.name}` just changed its tools", where=call.name))
            if call.tool not in self.admitted:
                raise NotStarted(Reason(Code.TOOL_UNKNOWN, f"`{self.name}` does not offer `{call.tool}`", where=call.name))
            if (refused := self.admitted[call.tool]) is not None:
                raise NotStarted(refused.reasons[0])
            self._check_deadline(warrant)

        params: dict[str, JsonValue] = {"name": call.tool, "arguments": call.arguments}
        return await self.request(
            "tools/call", params, progress=progress, cancelled=cancelled, before_write=check, meanwhile=meanwhile
        )

    async def execute_method(
        self, warrant: Lease | Clearance, method: str, *, progress: Progress | None = None, cancelled: Cancellation | None = None
    ) -> RelayedAnswer:
        """Ask by an MCP method that has outward fields, with exactly the warrant's arguments as its params.

        Args:
            warrant: Its call's tool is the method.
            method: The method.
            progress: Takes progress.
            cancelled: Set, to cancel it.

        Raises:
            NotStarted: the effect did not begin.
            OutcomeUnknown: it may have happened.
        """
        call = self._call_of(warrant)
        if call.tool != method:
            raise NotStarted(Reason(Code.TOOL_UNKNOWN, f"the warrant is for `{call.name}`, not for `{method}`", where=call.name))
        return await self.request(
            method, call.arguments, progress=progress, cancelled=cancelled, before_write=lambda: self._check_deadline(warrant)
        )

    def _call_of(self, warrant: Lease | Clearance) -> CanonicalCall:
        call = warrant.manifest.action.call if isinstance(warrant, Lease) else warrant.call
        if call.server != self.name:
            raise NotStarted(Reason(Code.TOOL_UNKNOWN, f"`{call.name}` is no tool of `{self.name}`", where=call.name))
        return call

    def _check_deadline(self, warrant: Lease | Clearance) -> None:
        if isinstance(warrant, Lease) and self._clock() >= warrant.deadline:
            raise NotStarted(Reason(Code.EXPIRED, "the lease's launch deadline passed", where=self._call_of(warrant).name))

    async def request(
        self,
        method: str,
        params: Mapping[str, JsonValue],
        *,
        progress: Progress | None = None,
        cancelled: Cancellation | None = None,
        before_write: Callable[[], None] = lambda: None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> RelayedAnswer:
        """Ask anything of the server.

        Raises:
            NotStarted: nothing was written.
            OutcomeUnknown: something was, and no valid answer came.
        """
        connection = await self.ready()
        message = await connection.request(
            method,
            params,
            timeout=self.server.timeout,
            progress=progress,
            cancelled=cancelled,
            before_write=before_write,
            meanwhile=meanwhile,
        )
        return self._read_answer(method, message)

    async def list_all(self, method: str, key: str) -> tuple[Mapping[str, JsonValue], ...]:
        """All items of a list method, every page.

        Raises:
            NotStarted: the server is down.
            OutcomeUnknown: it did not answer, or with no such list.
        """
        return await self._pages(await self.ready(), method, key)

    async def notify(self, method: str, params: Mapping[str, JsonValue] | None = None) -> None:
        """Send a notification, if it runs."""
        if self._connection is not None and self._connection.alive:
            await self._connection.notify(method, params)

    async def close(self) -> None:
        """End the server's program; nothing starts it again."""
        self._closed = True
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, CxiError):
                await self._starting
        if self._connection is not None:
            await self._connection.close(self._patience)

    def _may_start(self) -> None:
        wait = self._retry_at - asyncio.get_running_loop().time()
        if self._closed:
            raise NotStarted(self._stopped())
        if wait > 0 and self.last_fault is not None:
            code, detail = self.last_fault.code, f"{self.last_fault.detail}; it is not tried again for {wait:.1f} s"
            raise NotStarted(Reason(code, detail, where=self.name))

    def _stopped(self) -> Reason:
        return Reason(Code.SINK_DOWN, f"the server `{self.name}` was stopped", where=self.name)

    async def _start(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._connection is not None:
            # It died, or was cut: its end is complete, and counts as a failure, before it runs again.
            if loop.time() - self._since > LONGEST_PAUSE:
                self._failures = 0  # it ran well for long: this is no loop of failures
            self._fail(self._connection.lost, loop.time())
            await self._connection.close(self._patience)
            self._connection = None
        connection: Connection | None = None
        try:
            process = await ServerProcess.start(self.name, self.server.command, self.server.env, self.server.cwd)
            self.starts += 1
            connection = Connection(
                process,
                limit=self.server.max_message,
                inward=self._inward,
                refusal=self._refusal,
                cancel_patience=self._cancel_patience,
            )
            await self._initialize(connection)
            await self._list_tools(connection)
        except BaseException as error:
            if connection is not None:
                self._connection = connection  # for its stderr
                await connection.close(self._patience)
            if not isinstance(error, EffectError | CxiError):
                raise
            reason = getattr(error, "reason", None) or Reason(Code.SINK_DOWN, str(error), where=self.name)
            self._fail(reason, loop.time())
            raise NotStarted(reason) from error
        else:
            self._connection = connection
            self._since = loop.time()
            await self._tell_listed()
            return connection
        finally:
            self._starting = None

    async def _tell_listed(self) -> None:
        if self._listed is not None:
            await self._listed(self)

    def _fail(self, reason: Reason | None, now: float) -> None:
        self.last_fault = reason
        self._failures += 1
        self._retry_at = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failures - 1))

    async def _initialize(self, connection: Connection) -> None:
        params: dict[str, JsonValue] = {
            "protocolVersion": REVISIONS[-1],
            "capabilities": {},  # no sampling, elicitation, roots or tasks towards a server
            "clientInfo": {"name": "cxi", "version": __version__},
        }
        message = await connection.request("initialize", params, timeout=self._start_timeout)
        result = self._read_answer("initialize", message).result
        revision, capabilities, instructions = (
            result.get("protocolVersion"),
            result.get("capabilities"),
            result.get("instructions", ""),
        )
        if revision not in REVISIONS:
            detail = f"`{self.name}` speaks no revision of MCP that is supported ({', '.join(REVISIONS)})"
            raise NotStarted(Reason(Code.SINK_MALFORMED, detail, where=self.name))
        if not isinstance(capabilities, dict) or not isinstance(instructions, str):
            raise NotStarted(Reason(Code.SINK_MALFORMED, f"`{self.name}` initialized with nonsense", where=self.name))
        self.revision, self.capabilities, self.instructions = str(revision), MappingProxyType(capabilities), instructions
        await connection.notify("notifications/initialized")

    async def _list_tools(self, connection: Connection) -> None:
        async with self._listing:
            self._stale = False
            try:
                listed = await self._pages(connection, "tools/list", "tools") if "tools" in self.capabilities else ()
                names = self._names(listed)
                admitted = self._admit(self.name, listed)
                verdicts: dict[str, Refused | None] = {}
                for name, count in names.items():
                    if count > 1:  # two definitions: neither is the pinned one
                        verdicts[name] = Refused.of(Code.TOOL_DEFINITION_CHANGED, f"`{name}` is listed twice", where=name)
                    else:
                        unpinned = Refused.of(Code.TOOL_UNPINNED, f"nothing is known of `{name}`", where=name)
                        verdicts[name] = admitted.get(name, unpinned)
                self.tools, self.admitted = listed, MappingProxyType(verdicts)
            except BaseException:
                self._stale = True
                raise

    def _names(self, listed: Sequence[Tool]) -> Counter[str]:
        names: Counter[str] = Counter()
        for tool in listed:
            name = tool.get("name")
            if not isinstance(name, str):
                raise self._malformed("tools/list")
            names[name] += 1
        return names

    async def _pages(self, connection: Connection, method: str, key: str) -> tuple[Mapping[str, JsonValue], ...]:
        items: list[Mapping[str, JsonValue]] = []
        cursor: JsonValue = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            params: dict[str, JsonValue] = {} if cursor is None else {"cursor": cursor}
            message = await connection.request(method, params, timeout=self.server.timeout)
            answer = self._read_answer(method, message)
            page = answer.result.get(key)
            if answer.failed or not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
                raise self._malformed(method)
            items.extend(page)
            cursor = answer.result.get("nextCursor")
            if cursor is None:
                return tuple(items)
            if not isinstance(cursor, str) or cursor in seen or len(items) > MAX_ITEMS:
                break
            seen.add(cursor)
        raise self._malformed(method)

    def _read_answer(self, method: str, message: Message) -> RelayedAnswer:
        try:
            if message.error:
                error = read_object(message.error)
                text = error.get("message")
                result: dict[str, JsonValue] = {"content": [{"type": "text", "text": str(text)}], "isError": True}
                return RelayedAnswer(result, True, error=message.error)
            found = read_object(message.result)
        except MalformedError as error:
            raise OutcomeUnknown(Reason(Code.SINK_MALFORMED, f"`{method}`: {error.reason.detail}", where=self.name)) from error
        if method == "tools/call" and not isinstance(found.get("content"), list):
            raise self._malformed(method)
        raw = write_json(found) if drop_own_meta(found) else message.result
        return RelayedAnswer(found, found.get("isError") is True, raw=raw)

    def _malformed(self, method: str) -> OutcomeUnknown:
        return OutcomeUnknown(Reason(Code.SINK_MALFORMED, f"`{self.name}` answered `{method}` with nonsense", where=self.name))

    async def _inward(self, method: str, params: bytes) -> None:
        if method == "notifications/tools/list_changed":
            self._stale = True
        if self._take is not None:
            await self._take(self, method, params)


class BlockingUpstream:
    """An `Executor` for programs without an event loop: the server's traffic runs in a thread of its own."""

    def __init__(
        self, server: Launch, *, admit: Admit, clock: Callable[[], Instant] = time.time, start_timeout: float | None = None
    ) -> None:
        """Nothing is started yet; the parameters are those of `Upstream`."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"cxi: {server.name}", daemon=True)
        self._thread.start()
        self._upstream = self._run(_build(server, admit, clock, start_timeout))

    def execute(self, warrant: Lease | Clearance) -> Answer:
        """Call the tool that the warrant names, with exactly its arguments.

        Raises:
            NotStarted: the effect did not begin.
            OutcomeUnknown: it may have happened.
        """
        return self._run(self._one_at_a_time(warrant))

    def start(self) -> tuple[Tool, ...]:
        """Start the server now, and list its tools.

        Raises:
            NotStarted: it cannot be started.
        """
        self._run(self._upstream.ready())
        return self._upstream.tools

    def close(self) -> None:
        """End the server's program and the thread."""
        self._run(self._upstream.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _one_at_a_time(self, warrant: Lease | Clearance) -> Answer:
        if isinstance(warrant, Clearance):
            return await self._upstream.execute(warrant)
        async with self._upstream.lock:
            return await self._upstream.execute(warrant)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _build(server: Launch, admit: Admit, clock: Callable[[], Instant], start_timeout: float | None) -> Upstream:
    return Upstream(server, admit=admit, clock=clock, start_timeout=start_timeout)


def _seen(task: asyncio.Task[Connection]) -> None:
    if not task.cancelled():
        task.exception()
