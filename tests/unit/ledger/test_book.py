"""Rows that are gone from the file, and files of an older version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cxi.ledger.base import Limit, State
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import Case, codes, open_ledger, start

GRANT = "fix/files.write_file"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    ledger = open_ledger(tmp_path / "state")
    start(ledger)
    yield ledger
    ledger.close()


@pytest.fixture
def case(ledger: SqliteLedger) -> Case:
    return Case(ledger)


def disagreements(ledger: SqliteLedger) -> int:
    standing = ledger.standing()
    replay = Replay(standing.head)
    assert isinstance(verify(replay.watch(ledger.entries()), [], []), Verified)
    return len(replay.differences(standing))


def test_a_call_that_is_gone_without_a_vacuum_still_disagrees(ledger: SqliteLedger, case: Case, tmp_path: Path) -> None:
    start(ledger, "s-2")
    case.settle(case.lease("a", session="s-2"))
    case.settle(case.lease("b"))
    ledger.close_session("s-2", 3.0)
    assert ledger.vacuum(10.0, 11.0) == 1
    with closing(sqlite3.connect(tmp_path / "state" / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM call")
    assert disagreements(ledger) == 1


# --- files of version 2


def downgrade(folder: Path) -> None:
    """Make of a file what version 2 would have written, with revocations in its words."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as database, database:
        for statement in (
            "DROP TABLE taken",
            "ALTER TABLE call DROP COLUMN taken",
            "DROP TABLE revoked",
            "CREATE TABLE revoked (session TEXT NOT NULL, grant_id TEXT NOT NULL, PRIMARY KEY (session, grant_id)) WITHOUT ROWID",
            "INSERT INTO revoked VALUES ('s-2', ''), ('s-1', 'g-1'), ('', 'g-2')",
            "ALTER TABLE used DROP COLUMN seq",
            "PRAGMA user_version=2",
        ):
            database.execute(statement)


def shape(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return [(table, *column) for table in tables for column in database.execute(f"PRAGMA table_info({table})")]


def test_a_file_of_version_2_is_taken_over_with_all_that_it_refused(tmp_path: Path) -> None:
    old = open_ledger(tmp_path, "one")
    for session in ("s-1", "s-2"):
        start(old, session)
    case = Case(old)
    case.settle(case.lease("a", key="k", repeat="replay"), answer="yes")
    case.settle(case.lease("b"), State.OUTCOME_UNKNOWN)
    used, _, _ = case.call("c", nonce="1" * 32)
    case.settle(case.lease("c", nonce="1" * 32))
    old.close()
    present = shape(tmp_path)
    downgrade(tmp_path)
    assert shape(tmp_path) != present

    new = open_ledger(tmp_path, "two")
    assert shape(tmp_path) == present
    case = Case(new, "n")
    assert codes(case.consume("x", session="s-2")) == ("REVOKED",)
    assert codes(case.consume("x", grant="g-1")) == ("REVOKED",)
    assert codes(case.consume("x", grant="g-2")) == ("REVOKED",)
    assert codes(case.consume("a", key="k", repeat="replay")) == ("Recorded",)
    assert codes(case.consume("b")) == ("OUTCOME_UNKNOWN",)
    assert codes(case.consume("x", nonce=used.invocation.nonce)) == ("CAPABILITY_USED",)
    assert codes(case.consume("x")) == ("Lease",)
    case.settle(case.lease("y", more={"limits": (Limit("pay", 1, 1),)}))
    new.close()
    open_ledger(tmp_path, "three").close()


def test_a_log_that_tells_of_revocations_in_the_old_words_agrees(tmp_path: Path) -> None:
    old = open_ledger(tmp_path, "one")
    for session in ("s-1", "s-2"):
        start(old, session)
    for session, grant in (("s-2", ""), ("s-1", "g-1"), ("", "g-2")):
        body = {"act": "revoke", "grant": grant, "person": "ana", "reason": "enough"}
        old.append(LogEntry(EntryType.PERSON, "", session, body), 2.0)
    old.close()
    downgrade(tmp_path)
    new = open_ledger(tmp_path, "two")
    assert disagreements(new) == 0
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM revoked WHERE kind = 'session'")
    assert disagreements(new) == 1
    new.close()
