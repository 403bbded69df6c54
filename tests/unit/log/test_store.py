"""One commit for all who wait, each with an answer of its own; programs in turn; whoever is killed holds nobody up."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cxi.errors import AuthorityError, LedgerError
from cxi.log.store import Store
from cxi.log.turn import Turn

SCHEMA = "CREATE TABLE row (number INTEGER PRIMARY KEY) STRICT;\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "state" / "it.sqlite", SCHEMA, application=7, version=1)
    yield made
    made.close()


def numbers(store: Store) -> list[int]:
    return [int(str(row[0])) for row in store.rows("SELECT number FROM row ORDER BY number")]


def insert(store: Store, number: int, *, durable: bool = True) -> int:
    with store.durable() if durable else store.riding() as database:
        database.execute("INSERT INTO row VALUES (?)", (number,))
        return number


class Crowd:
    """Threads that all wait to begin, and then begin one behind the other."""

    def __init__(self, store: Store, *works: Callable[[], Any]) -> None:
        self.answers: list[Any] = [None] * len(works)
        self._store = store
        self._threads = [threading.Thread(target=self._run, args=(at, work)) for at, work in enumerate(works)]
        store._lock.acquire()
        for thread in self._threads:
            thread.start()
        while store._waiting < len(works):
            time.sleep(0.001)  # until they stand in the row

    def _run(self, at: int, work: Callable[[], Any]) -> None:
        try:
            self.answers[at] = work()
        except Exception as error:
            self.answers[at] = error

    def go(self) -> list[Any]:
        self._store._lock.release()
        for thread in self._threads:
            thread.join(30)
        return self.answers


@pytest.fixture
def commits(store: Store) -> list[str]:
    found: list[str] = []
    assert store._connection is not None
    store._connection.set_trace_callback(lambda text: found.append(text) if text in ("COMMIT", "ROLLBACK") else None)
    return found


def test_who_is_alone_commits_at_once(store: Store, commits: list[str]) -> None:
    assert [insert(store, number) for number in range(3)] == [0, 1, 2]
    assert commits == ["COMMIT"] * 3


def test_all_who_wait_are_written_by_one_commit(store: Store, commits: list[str]) -> None:
    crowd = Crowd(store, *(lambda number=number: insert(store, number) for number in range(16)))
    assert sorted(crowd.go()) == list(range(16))
    assert commits == ["COMMIT"]
    assert numbers(store) == list(range(16))


def test_nobody_is_answered_before_the_commit_and_nobody_else_sees_what_is_not_committed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, go_on = threading.Event(), threading.Event()
    commit = store._commit

    def slow(*arguments: Any) -> None:
        held.set()
        assert go_on.wait(30)
        commit(*arguments)

    monkeypatch.setattr(store, "_commit", slow)
    crowd = Crowd(store, *(lambda number=number: insert(store, number) for number in range(4)))
    watching = threading.Thread(target=crowd.go)
    watching.start()
    assert held.wait(30)
    assert crowd.answers == [None] * 4
    assert numbers(store) == []
    go_on.set()
    watching.join(30)
    assert sorted(crowd.answers) == [0, 1, 2, 3]


def test_one_that_fails_takes_back_its_own_and_nothing_else(store: Store, commits: list[str]) -> None:
    def fail(number: int) -> None:
        with store.durable() as database:
            database.execute("INSERT INTO row VALUES (?)", (number,))
            raise AuthorityError("no")

    def break_off(number: int) -> None:
        with store.durable() as database:
            database.execute("INSERT INTO row VALUES (?)", (number,))
            database.execute("INSERT INTO row VALUES (?)", (number,))

    works: list[Callable[[], Any]] = [lambda number=number: insert(store, number) for number in range(6)]
    works[2:2] = [lambda: fail(100), lambda: break_off(101)]
    works.insert(0, lambda: fail(102))
    answers = Crowd(store, *works).go()
    assert sorted(type(answer).__name__ for answer in answers) == ["AuthorityError"] * 2 + ["LedgerError"] + ["int"] * 6
    assert numbers(store) == list(range(6))


def test_a_commit_that_fails_fails_all_that_it_would_have_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A connection whose next commit finds the disk full."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def execute(self, sql: str, *arguments: Any) -> Any:
            if sql == "COMMIT":
                raise sqlite3.OperationalError("database or disk is full")
            return self._connection.execute(sql, *arguments)

    real = store._connection
    assert real is not None
    monkeypatch.setattr(store, "_connection", Full(real))
    answers = Crowd(store, *(lambda number=number: insert(store, number) for number in range(5))).go()
    assert [type(answer) for answer in answers] == [LedgerError] * 5
    monkeypatch.setattr(store, "_connection", real)
    assert numbers(store) == []
    assert insert(store, 9) == 9


def test_after_a_sync_that_failed_nothing_is_written_until_the_file_is_opened_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unsynced:
        """A connection whose commit cannot be synced."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def execute(self, sql: str, *arguments: Any) -> Any:
            if sql == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                raise error
            return self._connection.execute(sql, *arguments)

    assert insert(store, 1) == 1
    real = store._connection
    assert real is not None
    monkeypatch.setattr(store, "_connection", Unsynced(real))
    with pytest.raises(LedgerError):
        insert(store, 2)
    monkeypatch.setattr(store, "_connection", real)
    with pytest.raises(LedgerError):
        insert(store, 3)
    store.close()
    again = Store(store.path, SCHEMA, application=7, version=1)
    assert insert(again, 4) == 4
    assert numbers(again) == [1, 4]
    again.close()


def test_what_is_durable_is_never_written_by_a_commit_that_does_not_sync(store: Store) -> None:
    def write(number: int) -> int:
        with store.durable() if number % 2 else store.riding() as database:
            database.execute("INSERT INTO row VALUES (?)", (number,))
            mode = database.execute("PRAGMA synchronous").fetchone()[0]  # it cannot change before the commit
            assert mode == 2 or not number % 2
            return number

    assert sorted(Crowd(store, *(lambda number=number: write(number) for number in range(12))).go()) == list(range(12))
    assert numbers(store) == list(range(12))


def test_a_batch_whose_last_waiter_never_begins_is_committed_all_the_same(store: Store) -> None:
    with store._counting:
        store._waiting += 1  # one that was cut off on its way
    try:
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(insert(store, 1)))
        thread.start()
        thread.join(30)
        assert answers == [1]
        assert numbers(store) == [1]
    finally:
        store._waiting -= 1


def test_closing_commits_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "state" / "it.sqlite"
    store = Store(path, SCHEMA, application=7, version=1)
    crowd = Crowd(store, *(lambda number=number: insert(store, number) for number in range(8)))
    crowd.go()
    store.close()
    again = Store(path, SCHEMA, application=7, version=1)
    assert numbers(again) == list(range(8))
    again.close()


HOLD = """
import sys, time
from pathlib import Path
from cxi.log.turn import Turn
turn = Turn(Path(sys.argv[1]))
if sys.argv[2] == "now":
    turn.take()
else:
    import fcntl
    fcntl.flock(turn._next, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("where", ["now", "next"])
def test_a_killed_program_holds_nobody_up(tmp_path: Path, where: str) -> None:
    path = tmp_path / "it"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path), where], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    turn = Turn(path)
    waiting = threading.Thread(target=turn.take)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    other.send_signal(signal.SIGKILL)
    other.wait()
    other.stdout.close()
    waiting.join(30)
    assert not waiting.is_alive()
    turn.give()
    turn.close()


def test_a_program_that_stops_with_the_turn_in_its_hands_is_said_to_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cxi.log.turn.PATIENCE", 0.2)
    one, other = Turn(tmp_path / "it"), Turn(tmp_path / "it")
    one.take()
    with pytest.raises(LedgerError):
        other.take()
    one.give()
    other.take()
    other.give()
    one.close()
    other.close()


WRITE = """
import sys, time
from pathlib import Path
from cxi.log.store import Store
store = Store(Path(sys.argv[1]), "CREATE TABLE row (number INTEGER PRIMARY KEY) STRICT;\\n", application=7, version=1)
print("ready", flush=True)
sys.stdin.readline()
until, count = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    with store.durable() as database:
        database.execute("INSERT INTO row VALUES (NULL)")
    count += 1
print(count, flush=True)
"""


def test_programs_that_write_without_a_pause_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "state" / "it.sqlite"
    Store(path, SCHEMA, application=7, version=1).close()
    command = [sys.executable, "-c", WRITE, str(path), "1.0"]
    programs = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
    counts = [int(program.communicate(timeout=60)[0]) for program in programs]
    assert sum(counts) > 0
    # Plain SQLite gives the loser next to nothing; the exact shares are the bench's business.
    assert min(counts) * 3 * 5 > sum(counts), counts


def test_a_store_of_before_a_fork_is_refused_in_the_child(store: Store) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            insert(store, 1)
        except LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
