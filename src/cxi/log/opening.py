"""Where are the openings of the log's commitments, and how are they forgotten?

- A file of its own, `openings.sqlite`: `put` is not synced, `erase` is. What is erased is overwritten (`secure_delete`) and
  leaves the
  write-ahead log too; the log's chain does not change by it.
- An opening that a crash lost, or that was erased, only makes a value unreadable; nothing is decided by openings.

    store.put([conceal("src/tax.py", salt)], session="s-1", now=now)
    store.get(commitment)            # Opening | None
    store.erase(session="s-1")       # or before=instant
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cxi.canonical import Digest, canonicalize
from cxi.errors import LedgerError
from cxi.log.commitment import Opening, opens
from cxi.log.entry import milliseconds
from cxi.log.store import Store
from cxi.manifest import Instant

APPLICATION: Final = 0x4358494F  # "CXIO"
VERSION: Final = 1
SCHEMA: Final = """
CREATE TABLE opening (
  commitment TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  time_ms INTEGER NOT NULL,
  salt BLOB NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX opening_session ON opening (session);
CREATE INDEX opening_time ON opening (time_ms);
"""


class OpeningStore:
    """Openings on disk. Thread-safe; several processes may open the same file."""

    def __init__(self, path: Path) -> None:
        """Open the file, made where there is none.

        Raises:
            LedgerError: where it cannot be trusted or opened.
        """
        self._path = path
        self._store = Store(path, SCHEMA, application=APPLICATION, version=VERSION, secure_delete=True)

    def put(self, openings: Iterable[Opening], *, session: str, now: Instant) -> None:
        """Keep openings. Not synced by itself."""
        time = milliseconds(now)
        rows = [
            (opening.commitment, session, time, opening.salt, canonicalize(opening.value, floats=True).decode())
            for opening in openings
        ]
        if not rows:
            return
        with self._store.riding() as database:
            database.executemany("INSERT OR IGNORE INTO opening VALUES (?, ?, ?, ?, ?)", rows)

    def get(self, commitment: Digest) -> Opening | None:
        """What opens a commitment, or None where it was erased, lost, or does not open it."""
        rows = self._store.rows("SELECT salt, value FROM opening WHERE commitment = ?", (commitment,))
        if not rows or not isinstance(rows[0][0], bytes):
            return None
        found = Opening(commitment, rows[0][0], json.loads(str(rows[0][1])))
        return found if opens(found, commitment) else None

    def erase(self, *, session: str = "", before: Instant | None = None) -> int:
        """Forget openings: of a session, or from before an instant, or of a session from before an instant.

        Returns:
            How many there were.

        Raises:
            ValueError: where neither is named.
            LedgerError: where they could not be overwritten everywhere; erase again once no other process reads the file.
        """
        if not session and before is None:
            raise ValueError("name a session or an instant")
        until = milliseconds(before) if before is not None else None
        with self._store.durable() as database:
            count = database.execute(
                "DELETE FROM opening WHERE (?1 = '' OR session = ?1) AND (?2 IS NULL OR time_ms < ?2)", (session, until)
            ).rowcount
        if not self._store.empty_wal():
            raise LedgerError(f"`{self._path}`: erased, but the write-ahead log is being read by another process; erase again")
        return count

    def close(self) -> None:
        """Make everything durable and close."""
        self._store.close()
