"""Whose turn is it to write, among the programs that share a file?

- SQLite lets whoever asks at the right moment write, so the one that just wrote wins again and the others starve. Two locks in a
  row mend that: who waits for `now` holds `next` meanwhile, so who gives `now` back must first get past it.
- A turn is a slice of time, not one write: for `SLICE` after it began, `now` may be taken again directly, so that a busy machine
  need not wake another program for each write; one that pauses meanwhile loses it to who waits.
- Both are flock(2) locks: the kernel lets go of them when a program ends, however it ends.
- A program that stops with the turn in its hands holds up the others for `PATIENCE`, and then they say so.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from cxi.errors import LedgerError

PATIENCE: Final = 10.0  # seconds
SLICE: Final = 0.0005  # seconds
_SHORT: Final = 0.0001  # between two looks at a lock that another has
_LONG: Final = 0.001
_SHORT_FOR: Final = 0.1  # seconds of short pauses; the same for all, so that none is favoured
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Turn:
    """One program's place in the row. Its user keeps its own threads apart."""

    def __init__(self, path: Path) -> None:
        """Stand in the row of a file; nothing is locked yet.

        Args:
            path: The file that is shared; the locks stand beside it.

        Raises:
            OSError: where they cannot be opened.
        """
        self._path = path
        self._began = 0.0  # when the present slice did
        self._next = os.open(f"{path}-next", _FLAGS, 0o600)
        try:
            self._now = os.open(f"{path}-now", _FLAGS, 0o600)
        except BaseException:
            os.close(self._next)
            raise

    def take(self) -> None:
        """Wait for the turn.

        Raises:
            LedgerError: where another program has it for longer than `PATIENCE`.
            OSError: where the file system has no such locks.
        """
        if time.monotonic() - self._began < SLICE and _try(self._now):
            return
        until = 0.0
        if not _try(self._next):
            until = time.monotonic() + PATIENCE
            self._wait(self._next, until)
        try:
            if not _try(self._now):
                self._wait(self._now, until or time.monotonic() + PATIENCE)
            self._began = time.monotonic()
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def give(self) -> None:
        """Let the next one."""
        fcntl.flock(self._now, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the row."""
        os.close(self._next)
        os.close(self._now)

    def _wait(self, lock: int, until: float) -> None:
        short = until - PATIENCE + _SHORT_FOR
        while not _try(lock):
            now = time.monotonic()
            if now >= until:
                raise LedgerError(f"`{self._path}`: another program has its turn to write for more than {PATIENCE:g} s")
            time.sleep(_SHORT if now < short else _LONG)


def _try(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
