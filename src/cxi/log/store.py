"""How does one transaction reach the disk, and what does its failure become?

- One SQLite file in WAL mode; one connection a ledger, behind one lock; writers in other processes wait (`BEGIN IMMEDIATE`).
- A durable transaction commits under `synchronous=FULL`: exactly one sync of the WAL, before `COMMIT` returns
  (https://www.sqlite.org/pragma.html#pragma_synchronous). Others commit under `NORMAL`: no sync of their own, and the next
  durable
  commit, here or in another process, syncs the same file and them with it.
- Checkpoints of the WAL, which sync more, happen only on the way of transactions that are not durable, and at close.
- Every `sqlite3.Error` and `OSError` becomes `LedgerError`. After a failed commit nothing of the transaction holds here; where
  even the
  rollback fails, the store refuses everything from then on.
- The file has mode 0600 in a folder of this user that nobody else can write.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from cxi.errors import LedgerError

BUSY_SECONDS: Final = 10.0
CHECK_BYTES: Final = 32 * 1024 * 1024  # a larger file is not checked whole at every start
CHECKPOINT_EVERY: Final = 128  # transactions that are not durable, in this process
_SAFETY_PAGES: Final = 16_384  # of the WAL: if nobody settles, SQLite checkpoints by itself
# INVARIANT (no-second-handle): between this process's first connection to a database and its last, the file is opened by
# SQLite alone:
# closing any other handle would drop the POSIX locks of all (fcntl(2); https://www.sqlite.org/howtocorrupt.html, 2.2).
_CREATING: Final = threading.Lock()


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
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._broken = ""
        self._unsynced = 0
        self._full = True
        self._connection: sqlite3.Connection | None = None
        try:
            with _CREATING:
                _prepare(path)
                self._connection = sqlite3.connect(
                    path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
                )
            self._set_up(schema, application, version, migrations, secure_delete=secure_delete)
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
        """All rows of a query, from one moment."""
        with self._lock:
            try:
                return self.connection().execute(sql, parameters).fetchall()
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
                finally:
                    os.close(fd)
            except OSError as error:
                raise self._fault(error) from error

    def empty_wal(self) -> bool:
        """Move the write-ahead log into the database and cut it to nothing; False where a reader elsewhere is in the way."""
        with self._lock:
            try:
                busy = self.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except (sqlite3.Error, OSError) as error:
                raise self._fault(error) from error
            return not busy

    def close(self) -> None:
        """Make what rides durable, and close. A second close does nothing."""
        with self._lock:
            if self._connection is None:
                return
            try:
                if not self._broken and self._pid == os.getpid():
                    self._connection.execute("PRAGMA synchronous=FULL")
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                raise self._fault(error) from error
            finally:
                self._drop()

    def connection(self) -> sqlite3.Connection:
        """The connection; the caller holds the lock."""
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

    def begin(self, *, full: bool) -> sqlite3.Connection:
        """Start a transaction; the lock is held until `finish`."""
        self._lock.acquire()
        try:
            database = self.connection()
            if not full:
                self._unsynced += 1
                if self._unsynced >= CHECKPOINT_EVERY:
                    self._unsynced = 0
                    self._set_sync(database, full=False)
                    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._set_sync(database, full=full)
            database.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, OSError) as error:
            self._lock.release()
            raise self._fault(error) from error
        except BaseException:
            self._lock.release()
            raise
        return database

    def finish(self, error: BaseException | None) -> None:
        """Commit, or roll back where the block failed, and let go of the lock."""
        try:
            database = self.connection()
            if error is None:
                try:
                    database.execute("COMMIT")
                except (sqlite3.Error, OSError) as failed:
                    self._roll_back(database)
                    raise self._fault(failed) from failed
                except BaseException:
                    self._roll_back(database)
                    raise
                return
            self._roll_back(database)
            if isinstance(error, sqlite3.Error | OSError | UnicodeError | OverflowError):
                raise self._fault(error) from error
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
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Transaction:
    """A block that is committed whole where it ends well, else not at all."""

    __slots__ = ("_full", "_store")

    def __init__(self, store: Store, *, full: bool) -> None:
        self._store = store
        self._full = full

    def __enter__(self) -> sqlite3.Connection:
        return self._store.begin(full=self._full)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._store.finish(error)

    def __copy__(self) -> Self:
        raise TypeError("a transaction is used once")


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
