"""How is a server's program started, watched and ended?

- Its own process group, so that a signal to the gate does not reach it first, and so that its children end with it.
- Its environment is what the configuration says and the few variables that any program needs; nothing else of ours leaks.
- What it writes to stderr is drained into a ring of bounded size: kept for a diagnosis, shown to nobody by itself (it is W).
- Its end: stdin closes, then SIGTERM, then SIGKILL, to the whole group (MCP, "stdio", shutdown).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from cxi.errors import Code, NotStarted, Reason

INHERITED: Final = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
STDERR_KEPT: Final = 64 * 1024
_CHUNK: Final = 16 * 1024
_LIMIT: Final = 64 * 1024  # bytes that a stream holds before its pipe is left to fill


def environment(configured: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """What the server's program sees: `INHERITED`, `LC_*`, and what was configured."""
    kept = {name: text for name, text in ours.items() if name in INHERITED or name.startswith("LC_")}
    # A shell function exported by bash is code, not a setting (CVE-2014-6271).
    return {name: text for name, text in kept.items() if not text.startswith("()")} | dict(configured)


class _Streams(SubprocessStreamProtocol):
    """The program's streams; what it writes is offered to whoever can take it on the spot."""

    offer: Callable[[bytes], bool] | None = None

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 1 and self.offer is not None and isinstance(data, bytes) and self.offer(data):
            return
        super().pipe_data_received(fd, data)


class ServerProcess:
    """One run of a server's program."""

    def __init__(self, name: str, process: Process, streams: _Streams) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a server's three streams are pipes")
        self.name = name
        self.reader = process.stdout
        self.writer = process.stdin
        self._stderr = process.stderr
        self._process = process
        self._streams = streams
        self._tail = bytearray()
        self._drain = asyncio.create_task(self._drain_stderr(), name=f"{name}: stderr")

    @classmethod
    async def start(cls, name: str, command: Sequence[str], env: Mapping[str, str], cwd: str | Path | None) -> ServerProcess:
        """Start the program.

        Raises:
            NotStarted: `SINK_DOWN`, if the system refuses.
        """
        try:
            loop = asyncio.get_running_loop()
            transport, streams = await loop.subprocess_exec(
                lambda: _Streams(limit=_LIMIT, loop=loop),
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment(env, os.environ),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = Reason(Code.SINK_DOWN, f"the server `{name}` could not be started: {error}", where=name)
            raise NotStarted(reason) from error
        return cls(name, Process(transport, streams, loop), streams)

    def offer_to(self, take: Callable[[bytes], bool]) -> None:
        """Ask this of all that the program writes, before it goes to `reader`."""
        self._streams.offer = take

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def stderr_tail(self) -> str:
        """The last that it wrote to stderr, for a person; untrusted."""
        return self._tail.decode("utf-8", "replace")

    async def stop(self, patience: float) -> None:
        """End the program and all that it started.

        Args:
            patience: Seconds to wait after stdin closes, and again after SIGTERM.
        """
        self.writer.close()
        try:
            if not await self._ended(patience):
                self._signal(signal.SIGTERM)
                await self._ended(patience)
        finally:
            # Also after a clean end: a child that it left behind holds our pipes, and may still act.
            self._signal(signal.SIGKILL)
        await self._ended(patience)
        self._drain.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._drain
        self._release()

    async def _ended(self, patience: float) -> bool:
        with contextlib.suppress(TimeoutError):
            # `wait` also waits for the pipes to close, which a child of the server can hold open.
            await asyncio.wait_for(self._process.wait(), patience)
        return not self.running

    def _signal(self, number: signal.Signals) -> None:
        # The group's id is the leader's pid; a group whose members are all gone does not exist.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _release(self) -> None:
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _drain_stderr(self) -> None:
        while chunk := await self._stderr.read(_CHUNK):
            self._tail += chunk
            del self._tail[:-STDERR_KEPT]
