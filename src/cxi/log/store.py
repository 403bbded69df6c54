"""How does one transaction reach the disk, and what does its failure become?

- One SQLite file in WAL mode; one connection a store that writes, behind one lock, and one that reads what is committed.
- A durable transaction commits under `synchronous=FULL`: exactly one sync of the WAL, before its block has ended
  (https://www.sqlite.org/pragma.html#pragma_synchronous). Others commit under `NORMAL`: no sync of their own, and the next
  durable commit, here or in another process, syncs the same file and them with it.
- Group commit: a thread that ends its block while others wait to begin theirs leaves the commit to the last of them; each block
  stands in a savepoint, so that one that fails takes back its own and nothing else. INVARIANT (no-answer-before-its-commit): no
  block ends, well or not, as if it were written before the commit that writes it has returned; where it fails, all fail.
  A thread that is alone commits at once.
- Programs that share a file write in turn (`cxi.log.turn`).
- Checkpoints of the WAL, which sync more, happen only on the way of transactions that are not durable, and at close.
- Every `sqlite3.Error` and `OSError` becomes `LedgerError`. After a failed commit nothing of the transaction holds here; where
  even the rollback fails, or where it was the sync that failed, the store refuses everything until it is opened anew.
- The file has mode 0600 in a folder of this user that nobody else can write.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from cxi.errors import LedgerError
from cxi.log.turn import Turn

BUSY_SECONDS: Final = 10.0
CHECK_BYTES: Final = 32 * 1024 * 1024  # a larger file is not checked whole at every start
CHECKPOINT_EVERY: Final = 128  # transactions that are not durable, in this process
MOST_UNITS: Final = 128  # blocks that one commit writes
_UNSYNCED: Final = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_RESCUE: Final = 0.05  # seconds after which one who waits looks whether anyone is left to commit
_SAFETY_PAGES: Final = 16_384  # of the WAL: if nobody settles, SQLite checkpoints by itself
# INVARIANT (no-second-handle): between this process's first connection to a database and its last, the file is opened by
# SQLite alone:
# closing any other handle would drop the POSIX locks of all (fcntl(2); https://www.sqlite.org/howtocorrupt.html, 2.2).
_CREATING: Final = threading.Lock()


@dataclass(eq=False, slots=True)
class _Batch:
    """Blocks that one commit writes."""

    full: bool
    units: int = 0
    ended: threading.Event | None = None  # made where someone waits for it
    fault: str = ""


class Store:
    """One open database file. Thread-safe."""

    def __init__(
        self,
        path: Path,
        schema: str,
        *,
        application: int,
        version: int,
        migrations: Mapping[int, str] = MappingProxyType({}),
        secure_delete: bool = False,
    ) -> None:
        """Open the file, made where there is none.

        Args:
            path: The database.
            schema: `CREATE` statements for a new file.
            application: `PRAGMA application_id`: whose file it is.
            version: `PRAGMA user_version` of the schema.
            migrations: By an older version, the statements that make the next one of it.
            secure_delete: Whether what is deleted is overwritten.

        Raises:
            LedgerError: where it cannot be trusted, opened or is damaged.
        """
        self.path = path
        self._lock = threading.Lock()  # of the connection that writes, the turn and the batch
        self._reading = threading.Lock()  # of the one that reads
        self._counting = threading.Lock()
        self._waiting = 0  # threads that want to begin
        self._batch: _Batch | None = None
        self._turn: Turn | None = None
        self._reader: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._broken = ""
        self._unsynced = 0
        self._full = True
        self._connection: sqlite3.Connection | None = None
        try:
            with _CREATING:
                _prepare(path)
                self._turn = Turn(path)
                self._connection = _connect(path)
            self._set_up(schema, application, version, migrations, secure_delete=secure_delete)
            self._reader = _connect(path)
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
                self._reader.execute(f"PRAGMA {pragma}")
        except (sqlite3.Error, OSError) as error:
            self._drop()
            raise self._fault(error) from error
        except BaseException:
            self._drop()
            raise

    def durable(self) -> Transaction:
        """A transaction that is on the disk when its block has ended."""
        return Transaction(self, full=True)

    def riding(self) -> Transaction:
        """A transaction that is written when its block has ended, and on the disk with the next durable one."""
        return Transaction(self, full=False)

    def rows(self, sql: str, parameters: tuple[str | int, ...] = ()) -> list[tuple[object, ...]]:
        """All rows of a query, from one moment; of what is committed, alone."""
        with self._reading:
            self.connection()
            if self._reader is None:
                raise LedgerError(f"`{self.path}` is closed")
            try:
                return self._reader.execute(sql, parameters).fetchall()
            except (sqlite3.Error, OSError, UnicodeError) as error:
                raise self._fault(error) from error

    def sync(self) -> None:
        """Make everything that was committed so far durable."""
        with self._lock:
            self.connection()
            try:
                # The WAL carries no POSIX lock, so opening it a second time is safe.
                fd = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                except OSError:
                    self._refuse_for_good()
                    raise
                finally:
                    os.close(fd)
            except OSError as error:
                raise self._fault(error) from error

    def close(self) -> None:
        """Make what rides durable, and close. A second close does nothing."""
        with self._lock:
            if self._connection is None:
                return
            try:
                if self._batch is not None:
                    self._commit(self._connection, self._batch)
                if not self._broken and self._pid == os.getpid():
                    self._connection.execute("PRAGMA synchronous=FULL")
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                raise self._fault(error) from error
            finally:
                self._drop()

    def connection(self) -> sqlite3.Connection:
        """The connection that writes, for who holds the lock; or why there is none."""
        if self._connection is None:
            raise LedgerError(f"`{self.path}` is closed")
        if self._broken:
            raise LedgerError(self._broken)
        if self._pid != os.getpid():
            raise LedgerError(f"`{self.path}` was opened before a fork; open it anew in the child")
        return self._connection

    def _set_up(self, schema: str, application: int, version: int, migrations: Mapping[int, str], *, secure_delete: bool) -> None:
        database = self.connection()
        database.execute(f"PRAGMA secure_delete={'ON' if secure_delete else 'OFF'}").fetchall()
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "synchronous=FULL", "temp_store=MEMORY"):
            database.execute(f"PRAGMA {pragma}")
        mode = database.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise LedgerError(f"`{self.path}`: this file system allows no write-ahead log (journal mode `{mode}`)")
        database.execute(f"PRAGMA wal_autocheckpoint={_SAFETY_PAGES}")
        with self.durable():
            found = int(database.execute("PRAGMA application_id").fetchone()[0])
            if found == 0 and not database.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                _execute_all(database, schema)
                database.execute(f"PRAGMA application_id={application}")
                database.execute(f"PRAGMA user_version={version}")
            elif found != application:
                raise LedgerError(f"`{self.path}` is another program's database")
            while (written := int(database.execute("PRAGMA user_version").fetchone()[0])) < version and written in migrations:
                _execute_all(database, migrations[written])
                database.execute(f"PRAGMA user_version={written + 1}")
        if written != version:
            raise LedgerError(
                f"`{self.path}` has schema version {written}, this program knows {version} alone; give it a new `state` folder"
            )
        if self.path.stat().st_size <= CHECK_BYTES:
            answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
            if answer != "ok":
                raise LedgerError(f"`{self.path}` is damaged: {answer.splitlines()[-1]}")
        _sync_folder(self.path.parent)

    # --- what `Transaction` needs; kept here, where the state is -------------------------------------------------------

    def begin(self, transaction: Transaction) -> sqlite3.Connection:
        """Start a block; the lock is held until `finish`."""
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1
        try:
            database = self.connection()
            batch = self._batch
            if batch is not None and transaction.full and not batch.full:
                self._commit(database, batch)  # how it is synced was settled when it began
                batch = None
            if batch is None:
                self._open_batch(database, full=transaction.full)
            else:
                database.execute("SAVEPOINT unit")
                transaction.nested = True
        except (sqlite3.Error, OSError) as error:
            self._lock.release()
            raise self._fault(error) from error
        except BaseException:
            self._lock.release()
            raise
        return database

    def finish(self, transaction: Transaction, error: BaseException | None) -> None:
        """End a block: commit, or leave that to who comes next; take it back where it failed."""
        left: _Batch | None = None
        batch = self._batch
        if batch is None:  # INVARIANT (in-a-batch): between `begin` and `finish` there is one
            raise AssertionError(self.path)
        try:
            database = self.connection()
            self._end_unit(database, batch, transaction, failed=error is not None)
            if self._batch is batch:
                if self._waiting and batch.units < MOST_UNITS and not batch.fault:
                    left = batch
                    left.ended = left.ended or threading.Event()
                else:
                    self._commit(database, batch)
        finally:
            self._lock.release()
        if isinstance(error, sqlite3.Error | OSError | UnicodeError | OverflowError):
            raise self._fault(error) from error
        if error is None:
            if left is not None:
                self._await(left)
            if batch.fault:
                raise LedgerError(batch.fault)

    def _open_batch(self, database: sqlite3.Connection, *, full: bool) -> None:
        if self._turn is None:
            raise LedgerError(f"`{self.path}` is closed")
        self._turn.take()
        try:
            if not full:
                self._unsynced += 1
                if self._unsynced >= CHECKPOINT_EVERY:
                    self._unsynced = 0
                    self._set_sync(database, full=False)
                    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._set_sync(database, full=full)
            database.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._turn.give()
            raise
        self._batch = _Batch(full)

    def _end_unit(self, database: sqlite3.Connection, batch: _Batch, transaction: Transaction, *, failed: bool) -> None:
        """Keep a block's writes in its batch, or take them back."""
        batch.units += 1
        if not failed and not transaction.nested:
            return
        try:
            if not transaction.nested:
                self._roll_back(database)
                self._close_batch(batch)
            elif not database.in_transaction:
                batch.fault = f"`{self.path}`: a failure took back all that was to be written with it"
                self._close_batch(batch)
            else:
                if failed:
                    database.execute("ROLLBACK TO unit")
                database.execute("RELEASE unit")
        except sqlite3.Error as error:
            batch.fault = str(self._fault(error))
            self._roll_back(database)
            self._close_batch(batch)

    def _commit(self, database: sqlite3.Connection, batch: _Batch) -> None:
        """Commit a batch, whatever comes of it; each of its blocks is told by its fault."""
        try:
            database.execute("COMMIT")
        except (sqlite3.Error, OSError) as failed:
            batch.fault = str(self._fault(failed))
            self._roll_back(database)
            if getattr(failed, "sqlite_errorcode", 0) in _UNSYNCED:
                self._refuse_for_good()
        except BaseException:
            batch.fault = f"`{self.path}`: cut off while it was written"
            self._roll_back(database)
            raise
        finally:
            self._close_batch(batch)

    def _refuse_for_good(self) -> None:
        """The kernel says once that it could not sync, and may drop what it held: a later sync would vouch for what is gone."""
        self._broken = self._broken or f"`{self.path}` could not be synced, so nothing more is written; open it anew"

    def _close_batch(self, batch: _Batch) -> None:
        self._batch = None
        if self._turn is not None:
            self._turn.give()
        if batch.ended is not None:
            batch.ended.set()

    def _await(self, batch: _Batch) -> None:
        """Wait for the commit that another thread makes; where none is left to make it, make it."""
        if batch.ended is None:
            return
        while not batch.ended.wait(_RESCUE):
            if self._lock.acquire(blocking=False):
                try:
                    if self._batch is batch:
                        self._commit(self.connection(), batch)
                finally:
                    self._lock.release()

    def _set_sync(self, database: sqlite3.Connection, *, full: bool) -> None:
        if self._full is not full:
            database.execute("PRAGMA synchronous=FULL" if full else "PRAGMA synchronous=NORMAL")
            self._full = full

    def _roll_back(self, database: sqlite3.Connection) -> None:
        try:
            if database.in_transaction:
                database.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._broken = f"`{self.path}` could not be rolled back ({error}); open it anew"

    def _fault(self, error: BaseException) -> LedgerError:
        text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return LedgerError(f"`{self.path}`: {text or type(error).__name__}")

    def _drop(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._turn is not None:
            self._turn.close()
            self._turn = None


class Transaction:
    """A block that is committed whole where it ends well, else not at all."""

    __slots__ = ("_store", "full", "nested")

    def __init__(self, store: Store, *, full: bool) -> None:
        self._store = store
        self.full = full
        self.nested = False  # whether it stands in a savepoint, behind other blocks

    def __enter__(self) -> sqlite3.Connection:
        return self._store.begin(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._store.finish(self, error)

    def __copy__(self) -> Self:
        raise TypeError("a transaction is used once")


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256)


def _execute_all(database: sqlite3.Connection, statements: str) -> None:
    """Run statements that end with `;` and a line's end, inside the present transaction."""
    for statement in statements.split(";\n"):
        if statement.strip():
            database.execute(statement)


def own_folder(folder: Path) -> None:
    """Make a folder that is this user's alone to write, or see that it is one.

    Raises:
        LedgerError: where others can write it, or it belongs to another user.
        OSError: where it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o022:
        raise LedgerError(f"others can write the folder `{folder}`; it must have mode 0700")
    if found.st_uid != os.geteuid():
        raise LedgerError(f"the folder `{folder}` belongs to another user")


def _prepare(path: Path) -> None:
    own_folder(path.parent)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.geteuid():
            raise LedgerError(f"`{path}` must be a file of this user that nobody else can open (mode 0600)") from None
        # Asked before SQLite opens it: a read-only database would leave a read-only write-ahead log behind.
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
            raise LedgerError(f"`{path}` cannot be written") from None


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
