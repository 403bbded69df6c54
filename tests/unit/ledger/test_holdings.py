"""What a ledger says of itself, and what of it is dropped: over each store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backend_case import Backend
from cxi.canonical import digest
from cxi.errors import AuthorityError
from cxi.ledger.base import Limit, Mark, MarkKind, State
from ledger_case import AGENT, TENANT, USER, Case, codes, start

GRANT = "fix/files.write_file"


@pytest.fixture
def ledger(backend: Backend) -> Iterator[Any]:
    ledger = backend.open()
    start(ledger)
    yield ledger
    ledger.close()


@pytest.fixture
def case(ledger: Any) -> Case:
    return Case(ledger)


# --- calls and stats


def test_calls_are_told_newest_first_with_all_that_the_ledger_knows(ledger: Any, case: Case) -> None:
    first = case.lease("a", now=2.5)
    case.settle(first)
    second = case.lease("b", now=3.5)
    newest, oldest = ledger.calls(TENANT)
    assert (newest.call, newest.state, newest.settled) == (second.call, State.LEASED, None)
    assert (oldest.call, oldest.session, oldest.user, oldest.agent, oldest.grant) == ("a-1", "s-1", USER, AGENT, GRANT)
    assert (oldest.state, oldest.manifest, oldest.seq, oldest.drawn) == (State.DONE, first.manifest_digest, first.seq, 2.5)
    assert (oldest.writer, oldest.settled) == ("one", first.seq + 1)


def test_calls_are_chosen_by_state_session_id_and_number(ledger: Any, case: Case) -> None:
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


def test_stats_count_what_there_is(ledger: Any, case: Case) -> None:
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


def test_vacuum_drops_settled_calls_of_closed_sessions_and_nothing_else(backend: Backend, ledger: Any, case: Case) -> None:
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
    assert backend.differences(ledger) == 0
    assert ledger.vacuum(10.0, 61.0) == 0
    assert codes(case.consume("b")) == ("OUTCOME_UNKNOWN",)
    assert codes(case.consume("c")) == ("IN_FLIGHT",)


def test_what_was_dropped_is_not_spent_again(ledger: Any, case: Case) -> None:
    start(ledger, "s-2")
    manifest, draw, entry = case.call("a", session="s-2", key="k", repeat="replay")
    lease = ledger.consume(manifest, draw, entry, 2.0)
    case.settle(lease)  # type: ignore[arg-type]
    ledger.close_session("s-2", 3.0)
    assert ledger.vacuum(10.0, 11.0) == 1
    assert codes(ledger.consume(manifest, draw, entry, 2.0)) == ("SESSION_UNKNOWN",)
    with pytest.raises(AuthorityError):
        start(ledger, "s-2")


def test_a_limit_counts_after_a_vacuum_what_it_counted_before(backend: Backend, ledger: Any, case: Case) -> None:
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
    assert backend.differences(ledger) == 0
