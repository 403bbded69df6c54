"""Is the process that took this lease still there?

- Each open ledger holds flock(2) on `writers/<instance>.lock` beside the database. The kernel lets go of it when the process
  ends,
  however it ends; a lease whose writer's lock can be taken has no writer any more.
- The file holds a mark: the seq and hash of the last entry that this writer made durable. It is written after the sync and not
  synced
  itself, so it is never ahead of the database; a database that is behind a mark has lost entries.
- A name is one writer at a time; the file goes away with a clean close.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cxi.canonical import Digest
from cxi.errors import LedgerError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MARK: Final = re.compile(rb"(\d{16}) (sha256:[0-9a-f]{64})\n")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 50  # a recovery elsewhere holds the lock for a moment
_PAUSE: Final = 0.02


class Writer:
    """One open ledger's own lock."""

    def __init__(self, folder: Path, instance: str) -> None:
        """Take the lock.

        Raises:
            LedgerError: where the name is in use or not usable as a file name.
        """
        if not _NAME.fullmatch(instance):
            raise LedgerError(f"`{instance}` cannot name a writer: letters, digits, `.`, `_` and `-`, at most 100")
        self._path = folder / f"{instance}.lock"
        for attempt in range(_TRIES):
            fd = _take(self._path)
            if fd is not None:
                self._fd = fd
                return
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE)
        raise LedgerError(f"writer `{instance}` is open already, here or in another process")

    def mark(self, seq: int, hash: Digest) -> None:
        """Note the last durable entry. It only helps to see losses, so a failure here is none of the ledger's."""
        with suppress(OSError):
            os.pwrite(self._fd, b"%016d %b\n" % (seq, hash.encode()), 0)

    def close(self) -> None:
        """Let go of the lock, cleanly."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.abandon()

    def abandon(self) -> None:
        """Let go of the lock as a crash would: the file and its mark stay."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@contextmanager
def hold_if_gone(folder: Path, instance: str) -> Iterator[bool]:
    """Whether a writer is gone; while the block runs, nobody can become that writer again."""
    path = folder / f"{instance}.lock"
    fd = _take(path)
    try:
        yield fd is not None
        if fd is not None:
            path.unlink(missing_ok=True)
    finally:
        if fd is not None:
            os.close(fd)


def marks(folder: Path) -> dict[str, tuple[int, Digest]]:
    """Every writer's last durable entry, as far as it left a whole mark."""
    found: dict[str, tuple[int, Digest]] = {}
    for path in folder.glob("*.lock"):
        with suppress(FileNotFoundError):
            match = _MARK.fullmatch(path.read_bytes())
            if match:
                found[path.stem] = (int(match[1]), match[2].decode())
    return found


def _take(path: Path) -> int | None:
    """The locked file, or None where another holds it. It is the file that has the name now, not one unlinked meanwhile."""
    while True:
        fd = os.open(path, _FLAGS, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = path.lstat()
            held = os.fstat(fd)
            if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
