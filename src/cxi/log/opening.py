"""Where are the openings of the log's commitments, and how are they forgotten?

- A folder of their own, apart from the log: one file a session, one line an opening, appended in one write(2). `put` is not
  synced, `erase` is.
- What is erased is overwritten where it stands, and the file of a session of which nothing is left goes away where no program
  has it open. The log's chain does not change by it.
- An opening that a crash lost, or that was erased, only makes a value unreadable; nothing is decided by openings, and one that
  does not open its commitment is none.

    store.put([conceal("src/tax.py", salt)], session="s-1", now=now)
    store.get(commitment)            # Opening | None
    store.erase(session="s-1")       # or before=instant
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cxi.canonical import Digest
from cxi.errors import LedgerError
from cxi.log.commitment import Opening, opens
from cxi.log.entry import milliseconds
from cxi.log.store import own_folder
from cxi.manifest import Instant

_SUFFIX: Final = ".openings"
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
_COMMITMENT: Final = len("sha256:") + 64
_MOST_OPEN: Final = 64  # files of sessions that are kept open


class OpeningStore:
    """Openings on disk. Thread-safe; several processes may use the same folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, made where there is none.

        Raises:
            LedgerError: where it cannot be trusted or made.
        """
        self._folder = folder
        self._lock = threading.Lock()
        self._open: dict[str, int] = {}  # sessions to descriptors
        self._known: dict[Digest, tuple[Path, int, int]] = {}  # commitment to file, start and end of its line
        self._scanned: dict[Path, int] = {}  # bytes of each file that are in `_known`
        try:
            own_folder(folder.parent)
            own_folder(folder)
        except OSError as error:
            raise LedgerError(f"`{folder}`: {error.strerror}") from error

    def put(self, openings: Iterable[Opening], *, session: str, now: Instant) -> None:
        """Keep openings. Not synced by itself.

        Raises:
            LedgerError: where they cannot be written; then none of them is there.
        """
        time = b"%d" % milliseconds(now)
        rows = b"".join(
            b"%b %b %b %b\n" % (opening.commitment.encode(), time, opening.salt.hex().encode(), opening.canonical)
            for opening in openings
        )
        if not rows:
            return
        with self._lock:
            try:
                file = self._file_of(session)
                written = os.write(file, rows)
                if written != len(rows):  # a full disk takes a part: what is no whole line opens nothing
                    with suppress(OSError):
                        os.write(file, b"\n")
                    raise LedgerError(f"`{self._folder}`: the openings could not be written whole")
            except OSError as error:
                raise LedgerError(f"`{self._folder}`: {error.strerror}") from error

    def get(self, commitment: Digest) -> Opening | None:
        """What opens a commitment, or None where it was erased, lost, or does not open it."""
        with self._lock:
            place = self._known.get(commitment)
            if place is None:
                self._scan()
                place = self._known.get(commitment)
            if place is None:
                return None
            line = _read(place[0], place[1], place[2] - place[1])
        return _open_line(line, commitment)

    def erase(self, *, session: str = "", before: Instant | None = None) -> int:
        """Forget openings: of a session, or from before an instant, or of a session from before an instant.

        Returns:
            How many there were.

        Raises:
            ValueError: where neither is named.
            LedgerError: where they could not be overwritten.
        """
        if not session and before is None:
            raise ValueError("name a session or an instant")
        until = None if before is None else milliseconds(before)
        paths = [self._path_of(session)] if session else self._paths()
        with self._lock:
            self._known.clear()
            self._scanned.clear()
            try:
                return sum(_blank(path, until) for path in paths if path.exists())
            except OSError as error:
                raise LedgerError(f"`{self._folder}`: not all could be erased: {error.strerror}; erase again") from error

    def close(self) -> None:
        """Close what is open; what was put is synced."""
        with self._lock:
            for file in self._open.values():
                with suppress(OSError):
                    os.fsync(file)
                os.close(file)
            self._open.clear()

    def _path_of(self, session: str) -> Path:
        # A session's name is any text; its file's name is not.
        return self._folder / (hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32] + _SUFFIX)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"))

    def _file_of(self, session: str) -> int:
        """The session's file, held so that no eraser takes it away."""
        file = self._open.get(session)
        while file is None:
            path = self._path_of(session)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
            fcntl.flock(file, fcntl.LOCK_SH)
            if not os.fstat(file).st_nlink:  # an eraser took it away just now
                os.close(file)
                file = None
                continue
            while len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[session] = file
        return file

    def _scan(self) -> None:
        """Learn of what was put since the last time, here or elsewhere."""
        for path in self._paths():
            start = self._scanned.get(path, 0)
            try:
                size = path.stat().st_size
                data = _read(path, start, size - start) if size > start else b""
            except FileNotFoundError:
                continue
            at = 0
            while (end := data.find(b"\n", at)) >= 0:
                if end - at > _COMMITMENT and data[at : at + 7] == b"sha256:":
                    self._known[data[at : at + _COMMITMENT].decode("ascii", "replace")] = (path, start + at, start + end)
                at = end + 1
            self._scanned[path] = start + at


def _read(path: Path, start: int, count: int) -> bytes:
    """Bytes of a file, not through a link; fewer where it ends."""
    try:
        file = os.open(path, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        return b""
    with os.fdopen(file, "rb") as stream:
        stream.seek(start)
        return stream.read(count)


def _open_line(line: bytes, commitment: Digest) -> Opening | None:
    parts = line.split(b" ", 3)
    if len(parts) != 4:
        return None
    try:
        found = Opening(parts[0].decode("ascii"), bytes.fromhex(parts[2].decode("ascii")), parts[3])
    except ValueError:
        return None
    return found if opens(found, commitment) else None


def _blank(path: Path, until: int | None) -> int:
    """Overwrite the lines from before an instant, or all; how many there were. What is appended meanwhile stays."""
    count = 0
    file = os.open(path, os.O_RDWR | _FLAGS)
    try:
        size = os.fstat(file).st_size
        data = os.pread(file, size, 0)
        at, left = 0, False
        while at < size:
            end = data.find(b"\n", at)
            end = size if end < 0 else end  # a line without an end was never put whole
            line = data[at:end]
            if line.strip():
                parts = line.split(b" ", 2)
                time = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
                if until is None or time < until:
                    os.pwrite(file, b" " * (end - at), at)
                    count += 1
                else:
                    left = True
            at = end + 1
        os.fsync(file)
        if not left:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(file).st_size == size:
                    os.unlink(path)  # noqa: PTH108  # beside the other system calls
    finally:
        os.close(file)
    return count
