"""What the ledger says of itself, what of it is dropped, and files of an older version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cxi.canonical import digest
from cxi.errors import AuthorityError
from cxi.ledger.base import Limit, Mark, MarkKind, State
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import AGENT, TENANT, USER, Case, codes, open_ledger, start

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


# --- calls and stats


def test_calls_are_told_newest_first_with_all_that_the_ledger_knows(ledger: SqliteLedger, case: Case) -> None:
    first = case.lease("a", now=2.5)
    case.settle(first)
    second = case.lease("b", now=3.5)
    newest, oldest = ledger.calls(TENANT)
    assert (newest.call, newest.state, newest.settled) == (second.call, State.LEASED, None)
    assert (oldest.call, oldest.session, oldest.user, oldest.agent, oldest.grant) == ("a-1", "s-1", USER, AGENT, GRANT)
    assert (oldest.state, oldest.manifest, oldest.seq, oldest.drawn) == (State.DONE, first.manifest_digest, first.seq, 2.5)
    assert (oldest.writer, oldest.settled) == ("one", first.seq + 1)


def test_calls_are_chosen_by_state_session_id_and_number(ledger: SqliteLedger, case: Case) -> None:
    start(ledger, "s-2")
    case.settle(case.lease("a"))
    case.settle(case.lease("b"), State.OUTCOME_UNKNOWN)
    case.settle(case.lease("c", session="s-2"), State.FAILED)
    case.lease("d", session="s-2")

    def names(**choice: object) -> list[str]:
        return [found.call for found in ledger.calls(TENANT, **choice)]  # type: ignore[arg-type]

    assert names() == ["a-4", "a-3", "a-2", "a-1"]
    assert names(states=[State.LEASED, State.OUTCOME_UNKNOWN]) == ["a-4", "a-2"]
    assert names(states={State.DONE, State.LEASED}) == ["a-4", "a-1"]
    assert names(session="s-2") == ["a-4", "a-3"]
    assert names(session="s-2", states=[State.FAILED]) == ["a-3"]
    assert names(call="a-2") == ["a-2"]
    assert names(most=2) == ["a-4", "a-3"]
    assert ledger.calls("other") == ()


def test_stats_count_what_there_is(ledger: SqliteLedger, case: Case) -> None:
    start(ledger, "s-2")
    case.settle(case.lease("a"))
    case.lease("b")
    ledger.close_session("s-2", 4.0)
    ledger.revoke(TENANT, Mark(MarkKind.TASK, "fix"), person="ana", reason="over", now=4.0)
    stats = ledger.stats(TENANT)
    assert stats.calls == {State.DONE: 1, State.LEASED: 1}
    assert (stats.sessions, stats.open_sessions, stats.revoked) == (2, 1, 1)
    assert stats.entries == len(list(ledger.entries()))
    assert stats.epoch == (1, digest("policies"))
    assert stats.bytes > 0
    assert ledger.stats("other").calls == {}


# --- vacuum


def test_vacuum_drops_settled_calls_of_closed_sessions_and_nothing_else(ledger: SqliteLedger, case: Case) -> None:
    start(ledger, "s-2")
    case.settle(case.lease("a", session="s-2"))
    case.settle(case.lease("b", session="s-2"), State.OUTCOME_UNKNOWN)
    case.lease("c", session="s-2")
    case.settle(case.lease("d"))
    case.settle(case.lease("e", session="s-2", now=50.0))
    assert ledger.vacuum(10.0, 60.0) == 0
    ledger.close_session("s-2", 55.0)
    before = len(list(ledger.entries()))
    assert ledger.vacuum(10.0, 60.0) == 1
    assert [found.call for found in ledger.calls(TENANT)] == ["a-5", "a-4", "a-3", "a-2"]
    assert len(list(ledger.entries())) == before + 1
    assert disagreements(ledger) == 0
    assert ledger.vacuum(10.0, 61.0) == 0
    assert codes(case.consume("b")) == ("OUTCOME_UNKNOWN",)
    assert codes(case.consume("c")) == ("IN_FLIGHT",)


def test_what_was_dropped_is_not_spent_again(ledger: SqliteLedger, case: Case) -> None:
    start(ledger, "s-2")
    manifest, draw, entry = case.call("a", session="s-2", key="k", repeat="replay")
    lease = ledger.consume(manifest, draw, entry, 2.0)
    case.settle(lease)  # type: ignore[arg-type]
    ledger.close_session("s-2", 3.0)
    assert ledger.vacuum(10.0, 11.0) == 1
    assert codes(ledger.consume(manifest, draw, entry, 2.0)) == ("SESSION_UNKNOWN",)
    with pytest.raises(AuthorityError):
        start(ledger, "s-2")


def test_a_call_that_is_gone_without_a_vacuum_still_disagrees(ledger: SqliteLedger, case: Case, tmp_path: Path) -> None:
    start(ledger, "s-2")
    case.settle(case.lease("a", session="s-2"))
    case.settle(case.lease("b"))
    ledger.close_session("s-2", 3.0)
    assert ledger.vacuum(10.0, 11.0) == 1
    with closing(sqlite3.connect(tmp_path / "state" / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM call")
    assert disagreements(ledger) == 1


def test_a_limit_counts_after_a_vacuum_what_it_counted_before(ledger: SqliteLedger, case: Case) -> None:
    start(ledger, "s-2")

    def pay(name: str, amount: int, now: float, session: str = "s-1") -> tuple[str, ...]:
        more = {"limits": (Limit("pay", amount, 10, 20.0), Limit("pay", amount, 100))}
        return codes(case.consume(name, session=session, now=now, more=more))

    for index in range(5):
        name = f"a{index}"
        more = {"limits": (Limit("pay", 2, 10, 20.0), Limit("pay", 2, 100))}
        case.settle(case.lease(name, session="s-2", now=10.0 + index, more=more))
    ledger.close_session("s-2", 16.0)
    assert ledger.vacuum(13.5, 17.0) == 4
    assert pay("b", 1, 29.9) == ("LIMIT_REACHED",)
    assert pay("c", 9, 33.5) == ("LIMIT_REACHED",)
    assert pay("d", 8, 33.5) == ("Lease",)
    assert pay("e", 10, 60.0) == ("Lease",)
    assert disagreements(ledger) == 0


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
