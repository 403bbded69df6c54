"""How does what a writer says reach PostgreSQL, once, whatever becomes of the connection?

- A writer has one connection and one chain. The connection's session holds the writer's lock; where it is free, the session
  before
  has ended, whatever it was doing.
- Callers of several threads share it: the first to come carries out what waits behind it, up to `MOST` units in one
  transaction, one
  round trip and one wait for the disk. A lone caller does its own, with no other thread in between.
- INVARIANT (true-answer): a unit whose connection was cut is answered only after the lock was taken on a new one, by what the
  server
  then holds: found, it was done; not found, it was not and is done now. Where that cannot be asked, it is a `LedgerError`, and a
  consume among them is remembered: its lease, which nobody ever got, is settled as failed as soon as the server is back.
- INVARIANT (nothing-lost): what was durable when it was answered is there on every later connection, else nothing more is
  written:
  another server was put in place of the one that knew it.
- A wait for a standby that was called off is no durable commit, though the server says `COMMIT`: it is treated as a cut.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString, TypeAlias, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cxi.canonical import Digest
from cxi.errors import LedgerError
from cxi.ledger.migration import APPLICATION, Connection, describe, fault

MOST: Final = 64  # units of one transaction
FENCED: Final = "CX001"
RECONNECT_SECONDS: Final = 10.0
_PAUSE: Final = 0.1

Row: TypeAlias = tuple[Any, ...]

# What a link needs, where the address does not say otherwise.
SETTINGS: Final[Mapping[str, str]] = {
    "application_name": APPLICATION,
    "connect_timeout": "5",
    "target_session_attrs": "read-write",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# The server's side of the same: a session whose client is gone ends, and with it the writer's lock.
_OPTIONS: Final = (
    "-c default_transaction_isolation=read\\ committed -c statement_timeout=15s -c lock_timeout=15s"
    " -c idle_in_transaction_session_timeout=15s -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
    " -c client_connection_check_interval=5s -c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
)


def complete(conninfo: str) -> str:
    """An address with the settings that it needs.

    Raises:
        LedgerError: where it cannot be read; it is not shown, for it may hold a password.
    """
    try:
        given = conninfo_to_dict(conninfo)
    except psycopg.Error:
        raise LedgerError("the ledger's address cannot be read: `postgresql://USER@HOST/DATABASE`") from None
    options = " ".join(part for part in (_OPTIONS, str(given.get("options") or "")) if part)
    return make_conninfo(conninfo, **{**{k: v for k, v in SETTINGS.items() if k not in given}, "options": options})


@dataclass(slots=True)
class Unit:
    """What one caller wants done.

    Attributes:
        query: One statement; `%(chain)s`, `%(generation)s` and, for what rides, `%(riding)s` are put in.
        values: Its other values.
        durable: Whether it is answered only after it is on the disk.
        find: Asks, on another connection, whether it was done; its row if so. It gets the chain and the last entry that
        was known.
        locks: Names of the locks that it takes.
        undo: Of a consume: names the lease that nobody got, where its answer was lost for good.
    """

    query: LiteralString
    values: Mapping[str, Any]
    durable: bool = True
    find: Callable[[Connection, int, int], Row | None] | None = None
    locks: tuple[str, ...] = ()
    undo: object = None
    row: Row | None = None
    error: BaseException | None = None
    leads: bool = False
    done: threading.Event | None = None  # of a caller that waits for another


class Line:
    """One writer's connection. Thread-safe."""

    def __init__(self, conninfo: str, *, host: str, instance: str, patience: float = RECONNECT_SECONDS) -> None:
        """Nothing is connected yet: a ledger that is only read has no chain.

        Args:
            conninfo: Of `complete`.
            host: Whose key signs the chain; chains of one host are continued by its later writers.
            instance: The writer's name.
            patience: Seconds for which a caller whose connection was cut waits for another.
        """
        self._patience = patience
        self._conninfo = conninfo
        self._host = host
        self._instance = instance
        self._pid = os.getpid()
        self._queue: deque[Unit] = deque()
        self._guard = threading.Lock()
        self._led = False
        self._turn = threading.RLock()  # who has it may use the connection
        self._connection: Connection | None = None
        self._closed = False
        self._lost = ""
        self._warned = False
        self._busy_since = 0.0
        self._undo: list[object] = []
        self._wire: Connection | None = None  # the one that is waited for
        self.chain: int | None = None
        self.generation = 0
        self.origin = ""
        self._seq = 0  # the last entry that is known
        self._durable: tuple[int, bytes] = (0, b"")  # the last entry that was durable when it was answered

    # --- one statement, of any thread ----------------------------------------------------------------------------------

    def submit(self, unit: Unit) -> Row:
        """Carry out a unit, with whatever else waits.

        Raises:
            LedgerError: where it was not done, or it cannot be known.
        """
        self._refuse_fork()
        _refuse_unwritable(unit.values)
        with self._guard:
            leads = not self._led
            self._led = True
            if not leads:
                unit.done = threading.Event()
            self._queue.append(unit)
        if unit.done is not None:
            unit.done.wait()
            leads = unit.leads
        if leads:
            self._lead(unit)
        if unit.error is not None:
            raise unit.error
        if unit.row is None:
            raise LedgerError(f"{describe(self._conninfo)}: no answer")
        return unit.row

    def _lead(self, own: Unit) -> None:
        """Carry out the queue's first units, the own one among them; then the next in it leads."""
        batch: list[Unit] = []
        try:
            with self._guard:
                while self._queue and len(batch) < MOST:
                    batch.append(self._queue.popleft())
            with self._turn:
                self._carry_out(batch)
        except BaseException as error:
            self._drop()
            self._fail(batch, LedgerError(f"interrupted: {type(error).__name__}"))
            raise
        finally:
            with self._guard:
                if self._queue:
                    self._queue[0].leads = True
                    _wake(self._queue[0])
                else:
                    self._led = False
            for unit in batch:
                if unit is not own:
                    _wake(unit)

    def _carry_out(self, batch: Sequence[Unit]) -> None:
        before = (self.chain, self._seq)
        try:
            connection = self.connected()
            self._attempt(connection, batch)
        except psycopg.Error as error:
            if self._is_cut(error):
                self._mend(batch, error, before)
            elif len(batch) == 1:
                batch[0].error = self.fault(error)
            else:
                # One caller's fault is not the others'.
                for unit in batch:
                    unit.row = None
                    self._carry_out([unit])
        except LedgerError as error:
            for unit in batch:
                unit.error = error

    def _attempt(self, connection: Connection, batch: Sequence[Unit]) -> None:
        durable = any(unit.durable for unit in batch)
        names = {"chain": self.chain, "generation": self.generation, "riding": not durable}
        with self._watched(connection):
            if len(batch) == 1:
                unit = batch[0]
                rows = [connection.execute(unit.query, {**names, **unit.values}, prepare=True).fetchone()]
            else:
                rows = self._pipe(connection, batch, names)
        for unit, row in zip(batch, rows, strict=True):
            unit.row = row
            if row is not None:
                self._note(row, durable=durable)

    def _pipe(self, connection: Connection, batch: Sequence[Unit], names: Mapping[str, Any]) -> list[Row | None]:
        """A batch in one transaction and one round trip."""
        try:
            with connection.pipeline():
                connection.execute("BEGIN")
                locks = sorted({name for unit in batch for name in unit.locks})
                if locks:
                    connection.execute("SELECT cxi.take(%s)", (locks,), prepare=True)
                cursors = [connection.execute(unit.query, {**names, **unit.values}, prepare=True) for unit in batch]
                end = connection.execute("COMMIT")
        except psycopg.Error:
            if not connection.closed:
                connection.rollback()
            raise
        if end.statusmessage != "COMMIT":
            raise psycopg.OperationalError("the transaction was not committed")
        return [cursor.fetchone() for cursor in cursors]

    # --- several statements, by whoever has the turn ---------------------------------------------------------------------

    def act(self, work: Callable[[Connection, int, int], Row | None]) -> Row | None:
        """Do several things in one durable transaction; again, where a cut certainly left nothing of it.

        Args:
            work: Gets the connection, the chain and its generation. It may be called twice.

        Raises:
            LedgerError: where it was not done, or it cannot be known.
        """
        self._refuse_fork()
        with self._turn:
            for last in (False, True):
                try:
                    connection = self.connected()
                    with self._watched(connection), connection.transaction():
                        row = work(connection, cast("int", self.chain), self.generation)
                except psycopg.Error as error:
                    if last or not self._is_cut(error):
                        raise self.fault(error) from error
                    self._drop()
                else:
                    if row is not None:
                        self._note(row, durable=True)
                    return row
        raise AssertionError("one of the two ends it")

    @contextmanager
    def _watched(self, connection: Connection) -> Iterator[None]:
        """While the block runs, `call_off` knows what is waited for; a commit that was not waited for is none."""
        self._warned, self._wire, self._busy_since = False, connection, time.monotonic()
        try:
            yield
        finally:
            self._wire, self._busy_since = None, 0.0
        if self._warned:
            connection.close()
            raise psycopg.OperationalError("the wait for the standby was called off")

    def _note(self, row: Row, *, durable: bool) -> None:
        """The last two parts of a row are the seq and hash of its entry, where it made one."""
        seq, digest = row[-2:] if len(row) >= 2 else (None, None)
        if isinstance(seq, int) and isinstance(digest, bytes) and seq > self._seq:
            self._seq = seq
            if durable:
                self._durable = (seq, digest)

    # --- the connection --------------------------------------------------------------------------------------------------

    def connected(self) -> Connection:
        """The connection, with the writer's lock and a chain; the caller has the turn.

        Raises:
            LedgerError: where it was closed, or entries are lost.
            psycopg.Error: where there is none to be had.
        """
        if self._closed:
            raise LedgerError(f"{describe(self._conninfo)}: the ledger is closed")
        if self._lost:
            raise LedgerError(self._lost)
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = psycopg.connect(self._conninfo, autocommit=True)
        try:
            connection.add_notice_handler(self._hear)
            self._begin(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _begin(self, connection: Connection) -> None:
        """Take the writer's lock and go on with its chain, or get one."""
        if self.chain is not None:
            # A session of ours that the server still believes in is in the way: what it did, it has done or never will.
            connection.execute(_END_OTHERS, (self.chain,))
            try:
                with self._watched(connection):
                    row = connection.execute(
                        "SELECT known, seq, hash FROM cxi.resume(%s, %s, %s)", (self.chain, self.generation, self._durable[0])
                    ).fetchone()
            except psycopg.Error as error:
                if error.sqlstate != FENCED:
                    raise
                # Another was told that this writer is gone: its leases are unknown now, and a new chain begins.
                self.chain, self._seq, self._durable = None, 0, (0, b"")
            else:
                if row is None or (self._durable[0] and row[0] != self._durable[1]):
                    self._lost = (
                        f"{describe(self._conninfo)} has lost entries: entry {self._durable[0]} of `{self.origin}` was durable"
                    )
                    raise LedgerError(self._lost)
                self._seq = row[1]
                return
        with self._watched(connection):
            row = connection.execute(
                "SELECT chain, generation, origin, seq, hash FROM cxi.claim(%s, %s, %s)",
                (self._host, self._instance, f"cxi/{secrets.token_hex(8)}"),
            ).fetchone()
        if row is None:
            raise LedgerError("no chain was given")
        self.chain, self.generation, self.origin, self._seq, digest = row
        self._durable = (self._seq, digest)

    def _mend(self, batch: Sequence[Unit], error: psycopg.Error, before: tuple[int | None, int]) -> None:
        """The connection is gone in the middle of a batch: find out what the server did, and do what it did not."""
        self._drop()
        end = time.monotonic() + self._patience
        chain, known = before
        while True:
            try:
                connection = self.connected()
                left = []
                for unit in batch:
                    if unit.row is None and unit.find is not None and chain is not None:
                        unit.row = unit.find(connection, chain, known)
                    if unit.row is None:
                        left.append(unit)
                for unit in left:
                    self._attempt(connection, [unit])
            except psycopg.Error as again:
                cut = self._is_cut(again)
                self._drop()
                if not cut or time.monotonic() >= end:
                    break
            except LedgerError as lost:
                self._fail(batch, lost)
                return
            else:
                return
            time.sleep(_PAUSE)
        self._fail(batch, self.fault(error))

    def _fail(self, batch: Sequence[Unit], error: LedgerError) -> None:
        for unit in batch:
            if unit.row is None:
                unit.error = error
                if unit.undo is not None and unit.undo not in self._undo:
                    self._undo.append(unit.undo)

    def take_undone(self) -> list[object]:
        """What is left to do about consumes that nobody got the answer of."""
        with self._turn:
            found, self._undo = self._undo, []
        return found

    def give_undone(self, undone: Sequence[object]) -> None:
        """Keep what could not be done yet."""
        with self._turn:
            self._undo.extend(undone)

    def call_off(self, seconds: float) -> None:
        """Call off a statement that has waited this long (a standby that is gone): its caller then asks what was done."""
        since, connection = self._busy_since, self._wire
        if since and time.monotonic() - since > seconds and connection is not None:
            connection.cancel_safe(timeout=5.0)

    def close(self) -> None:
        """Leave the chain to the host's next writer. A second time does nothing."""
        if self._closed:
            return
        with self._turn:
            connection, self._closed = self._connection, True
            if connection is None or connection.closed or self._pid != os.getpid():
                return
            try:
                connection.execute("SELECT cxi.leave(%s, %s)", (self.chain, self.generation))
            except psycopg.Error as error:
                raise self.fault(error) from error
            finally:
                connection.close()

    def abandon(self) -> None:
        """End as a crash would."""
        self._closed = True
        self._drop()

    def fault(self, error: BaseException) -> LedgerError:
        """A driver's error as the gate knows it."""
        return LedgerError(f"{describe(self._conninfo)}: {fault(error)}")

    def _is_cut(self, error: psycopg.Error) -> bool:
        """Whether the connection is of no use any more, so that nobody knows by it what was done."""
        if error.sqlstate == FENCED:
            self._drop()
        connection = self._connection
        return connection is None or connection.closed or connection.broken

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        # The only warning that a commit gives: it was not waited for (syncrep.c).
        if notice.severity_nonlocalized == "WARNING":
            self._warned = True

    def _refuse_fork(self) -> None:
        if self._pid != os.getpid():
            raise LedgerError(f"{describe(self._conninfo)} was opened before a fork; open it anew in the child")


_END_OTHERS: Final[LiteralString] = (
    "SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l, (SELECT hashtextextended('chain' || chr(31) ||"
    " %s::text, 6043) AS k) x"
    " WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.pid <> pg_backend_pid() AND l.granted"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (l.classid::bigint << 32 | l.objid::bigint) = x.k"
)


def _wake(unit: Unit) -> None:
    if unit.done is not None:
        unit.done.set()


def _refuse_unwritable(values: Mapping[str, Any]) -> None:
    """What no text of a database can hold is refused before it stands beside what others want."""
    for value in values.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str):
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    raise LedgerError("a text without a UTF-8 form cannot be written to the ledger") from error
                if "\0" in text:
                    raise LedgerError("a text with a NUL cannot be written to the ledger")


def named(digest: bytes) -> Digest:
    """A digest as everything but this database writes it."""
    return "sha256:" + digest.hex()


def raw(digest: Digest) -> bytes:
    """The 32 bytes of a digest.

    Raises:
        ValueError: where it is none: a fault of the gate.
    """
    kind, _, text = digest.partition(":")
    found = bytes.fromhex(text)
    if kind != "sha256" or len(found) != 32:
        raise ValueError("not a digest")
    return found
