"""Limits, sequences, schedules and retries, judged in the consume's own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backend_case import Backend
from cxi.ledger.base import Limit, Requirement, State, scope_of
from ledger_case import Case, codes, start


@pytest.fixture
def ledger(backend: Backend) -> Iterator[Any]:
    ledger = backend.open()
    start(ledger)
    yield ledger
    ledger.close()


@pytest.fixture
def case(ledger: Any) -> Case:
    return Case(ledger)


def limits(*found: Limit) -> dict[str, Any]:
    return {"limits": found}


# --- limits


def test_a_sum_is_reached_exactly_and_never_passed(case: Case) -> None:
    for name, amount, code in (("a", 40, "Lease"), ("b", 61, "LIMIT_REACHED"), ("c", 60, "Lease"), ("d", 1, "LIMIT_REACHED")):
        assert codes(case.consume(name, more=limits(Limit("pay#amount", amount, 100)))) == (code,), name


def test_a_draw_of_nothing_needs_no_room(case: Case) -> None:
    assert codes(case.consume("a", more=limits(Limit("pay", 5, 5)))) == ("Lease",)
    assert codes(case.consume("b", more=limits(Limit("pay", 0, 5)))) == ("Lease",)


def test_an_amount_that_is_over_the_limit_by_itself_is_refused(case: Case) -> None:
    assert codes(case.consume("a", more=limits(Limit("pay", 6, 5)))) == ("LIMIT_REACHED",)


def test_a_refused_draw_takes_from_none_of_its_limits(case: Case) -> None:
    assert codes(case.consume("a", more=limits(Limit("one", 3, 5), Limit("two", 3, 2)))) == ("LIMIT_REACHED",)
    assert codes(case.consume("a", more=limits(Limit("one", 5, 5)))) == ("Lease",)


def test_a_scope_is_counted_over_sessions_and_grants(ledger: Any, case: Case) -> None:
    start(ledger, "s-2")
    assert codes(case.consume("a", more=limits(Limit("pay", 3, 5)))) == ("Lease",)
    assert codes(case.consume("b", session="s-2", grant="other", more=limits(Limit("pay", 3, 5)))) == ("LIMIT_REACHED",)
    assert codes(case.consume("b", session="s-2", grant="other", more=limits(Limit("pay", 2, 5)))) == ("Lease",)
    assert codes(case.consume("c", session="s-2", more=limits(Limit("another", 5, 5)))) == ("Lease",)


@pytest.mark.parametrize(("now", "answer"), [(11.999, "LIMIT_REACHED"), (12.0, "Lease"), (13.0, "Lease"), (1.0, "LIMIT_REACHED")])
def test_a_window_gives_again_when_it_has_passed_and_a_clock_that_goes_back_gives_nothing(
    case: Case, now: float, answer: str
) -> None:
    assert codes(case.consume("a", now=2.0, more=limits(Limit("pay", 5, 5, 10.0)))) == ("Lease",)
    assert codes(case.consume("b", now=now, more=limits(Limit("pay", 1, 5, 10.0)))) == (answer,)


def test_one_scope_may_have_a_bound_a_window_and_gives_the_amount_once(case: Case) -> None:
    both = (Limit("pay", 4, 5, 10.0), Limit("pay", 4, 9))
    assert codes(case.consume("a", now=2.0, more=limits(*both))) == ("Lease",)
    assert codes(case.consume("b", now=3.0, more=limits(*both))) == ("LIMIT_REACHED",)
    assert codes(case.consume("c", now=20.0, more=limits(*both))) == ("Lease",)
    assert codes(case.consume("d", now=40.0, more=limits(*both))) == ("LIMIT_REACHED",)
    assert codes(case.consume("d", now=40.0, more=limits(Limit("pay", 1, 9)))) == ("Lease",)


def test_what_failed_does_not_count_whatever_was_drawn_after_it(case: Case) -> None:
    first = case.lease("a", now=2.0, more=limits(Limit("pay", 3, 10, 100.0)))
    case.lease("b", now=3.0, more=limits(Limit("pay", 4, 10, 100.0)))
    assert codes(case.consume("c", now=4.0, more=limits(Limit("pay", 4, 10, 100.0)))) == ("LIMIT_REACHED",)
    case.settle(first, State.FAILED)
    assert codes(case.consume("c", now=4.0, more=limits(Limit("pay", 7, 10, 100.0)))) == ("LIMIT_REACHED",)
    assert codes(case.consume("c", now=4.0, more=limits(Limit("pay", 6, 10, 100.0)))) == ("Lease",)
    assert codes(case.consume("d", now=102.5, more=limits(Limit("pay", 1, 10, 100.0)))) == ("LIMIT_REACHED",)
    assert codes(case.consume("d", now=103.5, more=limits(Limit("pay", 4, 10, 100.0)))) == ("Lease",)


@pytest.mark.parametrize(
    ("state", "answer"), [(State.FAILED, "Lease"), (State.DONE, "LIMIT_REACHED"), (State.RELEASED, "LIMIT_REACHED")]
)
def test_a_person_who_says_that_it_failed_gives_it_back(ledger: Any, case: Case, state: State, answer: str) -> None:
    lease = case.lease("a", more=limits(Limit("pay", 5, 5)))
    case.settle(lease, State.OUTCOME_UNKNOWN)
    assert codes(case.consume("b", more=limits(Limit("pay", 1, 5)))) == ("LIMIT_REACHED",)
    ledger.release(lease.call, "ana", "looked", state, 4.0)
    assert codes(case.consume("b", more=limits(Limit("pay", 5, 5)))) == (answer,)


def test_a_limit_holds_over_a_restart(backend: Backend) -> None:
    ledger = backend.open("one")
    start(ledger)
    Case(ledger).lease("a", more=limits(Limit("pay", 5, 5)))
    ledger.close()
    ledger = backend.open("two")
    assert codes(Case(ledger, "b").consume("b", more=limits(Limit("pay", 1, 5)))) == ("LIMIT_REACHED",)
    ledger.close()


def test_the_grants_own_count_is_asked_before_its_limits(case: Case) -> None:
    case.lease("a", limit=1)
    assert codes(case.consume("b", limit=1, more=limits(Limit("pay", 6, 5)))) == ("GRANT_EXHAUSTED",)


def test_a_limit_takes_nothing_back() -> None:
    with pytest.raises(ValueError, match="back"):
        Limit("pay", -1, 5)


# --- sequences


@pytest.mark.parametrize("state", [None, State.FAILED, State.OUTCOME_UNKNOWN])
def test_a_sequence_waits_until_the_earlier_call_is_done(case: Case, state: State | None) -> None:
    after = {"after": (Requirement("fix/test"),)}
    assert codes(case.consume("b", more=after)) == ("SEQUENCE_UNMET",)
    lease = case.lease("a", grant="fix/test")
    if state is not None:
        case.settle(lease, state)
    assert codes(case.consume("b", more=after)) == ("SEQUENCE_UNMET",)
    case.settle(case.lease("c", grant="fix/test"))
    assert codes(case.consume("b", more=after)) == ("Lease",)


def test_a_sequence_is_its_sessions_own_and_may_want_more_than_one(ledger: Any, case: Case) -> None:
    start(ledger, "s-2")
    after = {"after": (Requirement("fix/test", 2),)}
    case.settle(case.lease("a", grant="fix/test"))
    case.settle(case.lease("b", grant="fix/test", session="s-2"))
    assert codes(case.consume("d", more=after)) == ("SEQUENCE_UNMET",)
    case.settle(case.lease("c", grant="fix/test"))
    assert codes(case.consume("d", more=after)) == ("Lease",)


# --- schedules


@pytest.mark.parametrize(
    ("now", "answer"), [(4.999, "NOT_YET"), (5.0, "Lease"), (9.999, "Lease"), (10.0, "EXPIRED"), (11.0, "EXPIRED")]
)
def test_a_schedule_holds_from_its_first_instant_until_before_its_last(case: Case, now: float, answer: str) -> None:
    assert codes(case.consume(now=now, more={"not_before": 5.0, "not_after": 10.0})) == (answer,)


def test_no_bound_is_no_schedule(case: Case) -> None:
    assert codes(case.consume(now=0.5, more={"not_before": 0.0, "not_after": 0.0})) == ("Lease",)


# --- retries


def test_an_event_may_fail_as_often_as_its_retries_and_once_more(case: Case) -> None:
    retries = {"retries": 2}
    for _ in range(3):
        case.settle(case.lease("a", more=retries), State.FAILED)
    assert codes(case.consume("a", more=retries)) == ("RETRIES_EXHAUSTED",)
    assert codes(case.consume("b", more=retries)) == ("Lease",)
    assert codes(case.consume("a")) == ("Lease",)


def test_no_retries_means_that_the_first_failure_is_the_last(case: Case) -> None:
    case.settle(case.lease("a", more={"retries": 0}), State.FAILED)
    assert codes(case.consume("a", more={"retries": 0})) == ("RETRIES_EXHAUSTED",)


# --- lineage


def test_what_was_delegated_ends_with_the_session_that_delegated_it(ledger: Any, case: Case) -> None:
    start(ledger, "s-0")
    lineage = {"lineage": (("s-0", "main/files.write_file"),)}
    assert codes(case.consume("a", more=lineage)) == ("Lease",)
    ledger.close_session("s-0", 2.0)
    assert codes(case.consume("b", more=lineage)) == ("SESSION_UNKNOWN",)


OWN = ("s-0", "main/files.write_file")


def test_a_giver_and_those_it_delegated_to_draw_from_one_count(ledger: Any, case: Case) -> None:
    start(ledger, "s-0")
    shared = {"limits": (Limit(scope_of(*OWN), 1, 3, own=OWN),), "lineage": (OWN,)}
    giver = {"session": "s-0", "grant": OWN[1], "limit": 3}
    assert codes(case.consume("a", **giver)) == ("Lease",)
    lease = case.lease("b", more=shared)
    assert codes(case.consume("c", **giver)) == ("Lease",)
    assert codes(case.consume("d", **giver)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("d", more=shared)) == ("LIMIT_REACHED",)
    case.settle(lease, State.FAILED)
    assert codes(case.consume("d", more=shared)) == ("Lease",)
    assert codes(case.consume("e", **giver)) == ("GRANT_EXHAUSTED",)


def test_a_givers_failed_draws_leave_room_for_those_it_delegated_to(ledger: Any, case: Case) -> None:
    start(ledger, "s-0")
    shared = {"limits": (Limit(scope_of(*OWN), 1, 2, own=OWN),), "lineage": (OWN,)}
    giver = {"session": "s-0", "grant": OWN[1], "limit": 2}
    for _ in range(3):
        case.settle(case.lease("a", **giver), State.FAILED)
    assert codes(case.consume("b", more=shared)) == ("Lease",)
    assert codes(case.consume("c", **giver)) == ("Lease",)
    assert codes(case.consume("d", **giver)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("d", more=shared)) == ("LIMIT_REACHED",)


def test_a_window_is_shared_with_those_it_was_delegated_to(ledger: Any, case: Case) -> None:
    start(ledger, "s-0")
    shared = {"limits": (Limit(scope_of(*OWN), 1, 2, 10.0, OWN),), "lineage": (OWN,)}
    giver = {"session": "s-0", "grant": OWN[1], "limit": 2, "window": 10.0}
    assert codes(case.consume("a", now=2.0, **giver)) == ("Lease",)
    assert codes(case.consume("b", now=5.0, more=shared)) == ("Lease",)
    assert codes(case.consume("c", now=11.9, more=shared)) == ("LIMIT_REACHED",)
    assert codes(case.consume("c", now=11.9, **giver)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("c", now=12.0, **giver)) == ("Lease",)
    assert codes(case.consume("d", now=14.9, more=shared)) == ("LIMIT_REACHED",)
    assert codes(case.consume("d", now=15.0, more=shared)) == ("Lease",)


def test_a_sequence_may_look_at_the_givers_session(ledger: Any, case: Case) -> None:
    start(ledger, "s-0")
    after = {"after": (Requirement("main/test", 1, "s-0"),)}
    case.settle(case.lease("a", grant="main/test"))
    assert codes(case.consume("b", more=after)) == ("SEQUENCE_UNMET",)
    case.settle(case.lease("c", grant="main/test", session="s-0"))
    assert codes(case.consume("b", more=after)) == ("Lease",)
