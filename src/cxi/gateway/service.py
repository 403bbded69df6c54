"""How does the gateway begin and end?

1. The configuration is opened: every start-up error is raised before a byte of the client is read.
2. All servers are started at once, and given a moment; one that is late joins later. A client that is gone already, and a signal,
   end the waiting.
3. A collision of exposed names is a start-up error.
4. The client's messages are relayed, until it closes its end, or SIGINT or SIGTERM.
5. What is in flight gets a moment, then its leases are settled as unknown; the session, the ledger and the servers are closed,
   in this order: what must not be lost comes first.

The standard output carries MCP and nothing else; whatever else is printed goes to the standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from cxi.errors import ConfigError, CxiError, NotStarted, OutcomeUnknown, Problem, Refused
from cxi.gateway.client import Client
from cxi.gateway.control import ControlServer
from cxi.gateway.door import Rules
from cxi.gateway.relay import Relay
from cxi.guard import Guard
from cxi.provenance import RequestChannel
from cxi.session import Session
from cxi.sinks.mcp import Upstream
from cxi.values.hidden import visible

START_PATIENCE = 10.0  # seconds that the client waits for slow servers at most
END_PATIENCE: Final = 0.5  # official clients wait two seconds between closing our input and SIGTERM
SERVER_PATIENCE: Final = 0.6
_CHUNK: Final = 64 * 1024


def run(
    config_path: str | Path,
    *,
    request: str | None = None,
    task: str | None = None,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
    ledger: str = "",
    activate: bool = False,
) -> None:
    """Run the gateway over stdio until the client is done.

    Args:
        config_path: `cxi.yaml`.
        request: The person's words, if the command line carries them.
        task: The task to start with them.
        stdin: Where the client writes; the standard input if not given.
        stdout: Where the client reads; the standard output if not given.
        ledger: The address of a ledger of many gateways, in place of `CXI_LEDGER` and the configuration's.
        activate: Whether these files are put in force though gateways at work run under others.

    Raises:
        ConfigError: something is wrong with the configuration, or with the names that the servers' tools would have.
        LedgerError: the ledger cannot be used.
    """
    if task is not None and request is None:
        raise ConfigError(Problem("command line", 0, "a task is started with a request", "give `--request` too"))
    _hold_standard_descriptors()
    with (
        _input(stdin) as source,
        _apart(stdout) as out,
        Guard.open(config_path, ledger=ledger, activate=activate) as guard,
        _settled_memory(),
    ):
        asyncio.run(relay_stdio(guard, request, task, source, out))


def _hold_standard_descriptors() -> None:
    """A standard stream that was closed leads to /dev/null, so that no file of ours takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number (open(2)), which is this one


@contextlib.contextmanager
def _input(stdin: BinaryIO | None) -> Iterator[BinaryIO]:
    if stdin is not None:
        yield stdin
        return
    with open(0, "rb", buffering=0, closefd=False) as source:  # a descriptor, not a path
        yield source


@contextlib.contextmanager
def _settled_memory() -> Iterator[None]:
    """What was loaded to start stays to the end: no collection of garbage looks through it, some 40 ms a time, in a call."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def _apart(stdout: BinaryIO | None) -> Iterator[BinaryIO]:
    """The stream for MCP alone: file descriptor 1 leads to the standard error meanwhile."""
    if stdout is not None:
        yield stdout
        return
    _flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with open(kept, "wb", buffering=0, closefd=False) as out:  # a descriptor, not a path
            yield out
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)


def _flush() -> None:
    stream: TextIO | None = sys.stdout  # None where the program was started without one
    if stream is not None:
        stream.flush()


async def relay_stdio(guard: Guard, request: str | None, task: str | None, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Steps 2 to 5, over an opened configuration.

    Raises:
        ConfigError: the task cannot be started, or names collide.
        LedgerError: the ledger cannot be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(RuntimeError, ValueError):  # only the main thread can
            loop.add_signal_handler(number, stop.set)
    session = guard.open_session(credential=f"stdio:{os.getuid()}:{os.getpid()}")
    upstreams: list[Upstream] = []
    relay: Relay | None = None
    control: ControlServer | None = None
    client: Client | None = None
    try:
        opened = None if request is None else {"task": _start_task(session, request, task), "request": request}
        client = Client(await _writer(stdout))
        reader = await _reader(stdin)
        upstreams = _upstreams(guard)
        relay = Relay(session, _rules(guard), client, upstreams)
        reader.offer = relay.lines.offer
        await _start(upstreams, stop, reader)
        if problems := relay.map_tools():
            raise ConfigError(*problems)
        control = await ControlServer.open(guard.config, session, opened=opened)
        await _until(stop, client, asyncio.create_task(relay.run(reader), name="client"))
    finally:
        await _end(session, relay, control, client, upstreams)


def _start_task(session: Session, request: str, task: str | None) -> str:
    started = session.start_task(request, task, channel=RequestChannel.COMMAND_LINE, credential=f"command-line:{os.getuid()}")
    if isinstance(started, Refused):
        problems = (Problem("command line", 0, reason.detail, reason.helps) for reason in started.reasons)
        raise ConfigError(*problems)
    return started


def _upstreams(guard: Guard) -> list[Upstream]:
    found: list[Upstream] = []
    for name, launch in guard.launches.items():
        limits = guard.config.servers[name].limits
        found.append(Upstream(launch, admit=guard.admit_listing, start_timeout=limits.start, patience=SERVER_PATIENCE))
    return found


def _rules(guard: Guard) -> Rules:
    config = guard.config
    return Rules(
        sinks=frozenset(contract.name for contract in config.contracts.values() if contract.sink),
        methods=frozenset(contract.name for contract in config.methods.values()),
        idempotency_meta_key=config.idempotency_meta_key,
    )


async def _start(upstreams: Sequence[Upstream], stop: asyncio.Event, reader: _Reader) -> None:
    async def start(upstream: Upstream) -> None:
        try:
            await upstream.ready()
        except (NotStarted, OutcomeUnknown) as error:
            if stop.is_set() or reader.gone.is_set():
                return  # we stopped it ourselves
            _say(f"server `{upstream.name}`: {error.reason.detail}")
            if tail := upstream.stderr_tail.strip():
                _say(f"server `{upstream.name}` wrote last: {visible(tail[-500:])}")

    tasks = [asyncio.create_task(start(upstream)) for upstream in upstreams]
    ends = [asyncio.create_task(event.wait()) for event in (stop, reader.gone)]
    waiting: set[asyncio.Task[Any]] = {*tasks, *ends}
    until = asyncio.get_running_loop().time() + START_PATIENCE
    try:
        while not waiting.isdisjoint(tasks) and waiting.issuperset(ends):
            left = until - asyncio.get_running_loop().time()
            done, waiting = await asyncio.wait(waiting, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            for task in done.intersection(tasks):
                task.result()  # what is no fault of a server's is raised
    finally:
        for end in ends:
            end.cancel()


async def _until(stop: asyncio.Event, client: Client, running: asyncio.Task[None]) -> None:
    waiting = [asyncio.create_task(stop.wait()), asyncio.create_task(client.gone.wait())]
    try:
        await asyncio.wait([running, *waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (running, *waiting):
            task.cancel()
        results = await asyncio.gather(running, *waiting, return_exceptions=True)
    if isinstance(results[0], Exception):
        raise results[0]


async def _end(
    session: Session,
    relay: Relay | None,
    control: ControlServer | None,
    client: Client | None,
    upstreams: Sequence[Upstream],
) -> None:
    """What must not be lost comes first; no failure of one step keeps the next from running."""
    if control is not None:
        await control.close()
    try:
        if relay is not None:
            await relay.settle(END_PATIENCE)
        session.close()
    except CxiError as error:
        _say(f"the session could not be closed: {error}")
    await asyncio.gather(*(upstream.close() for upstream in upstreams), return_exceptions=True)
    if client is not None:
        await client.close(END_PATIENCE)


class _Reader(asyncio.StreamReader):
    """A reader that says at once when the other end went away and left nothing to read."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK)
        self.gone = asyncio.Event()
        self.offer: Callable[[bytes], bool] | None = None

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # which is what a pipe gives
        if self.offer is None or not self.offer(data):
            super().feed_data(data)

    def feed_eof(self) -> None:
        super().feed_eof()
        if self.at_eof():
            self.gone.set()


async def _reader(stdin: BinaryIO) -> _Reader:
    loop = asyncio.get_running_loop()
    reader = _Reader()
    source = stdin
    if not _can_wait_for(stdin):
        read, write = os.pipe()
        # Through a pipe, which can be waited for; it ends with the file, or with the pipe's other end.
        threading.Thread(target=_feed, args=(stdin, write), name="stdin", daemon=True).start()
        source = os.fdopen(read, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    return reader


def _can_wait_for(stream: BinaryIO) -> bool:
    """Whether the kernel tells when there is something to read; of a file and of /dev/null it does not (epoll_ctl(2), EPERM)."""
    with select.epoll() as poll:
        try:
            poll.register(stream.fileno(), select.EPOLLIN)
        except PermissionError:
            return False
    return True


def _feed(source: BinaryIO, write: int) -> None:
    with open(write, "wb", buffering=0) as target, contextlib.suppress(OSError):  # a descriptor, not a path
        while chunk := source.read(_CHUNK):
            target.write(chunk)


async def _writer(stdout: BinaryIO) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()

    def protocol() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader())  # reads nothing; knows when all is written

    try:
        transport, made = await loop.connect_write_pipe(protocol, stdout)
    except ValueError:  # a file: what we write to a pipe is copied into it
        read, write = os.pipe()
        threading.Thread(target=_copy, args=(read, stdout), name="stdout").start()
        transport, made = await loop.connect_write_pipe(protocol, os.fdopen(write, "wb", buffering=0))
    return asyncio.StreamWriter(transport, made, None, loop)


def _copy(read: int, target: BinaryIO) -> None:
    with open(read, "rb", buffering=0) as source:  # a descriptor, not a path
        while chunk := source.read(_CHUNK):
            target.write(chunk)
            target.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"cxi gateway: {text}\n")
    sys.stderr.flush()
