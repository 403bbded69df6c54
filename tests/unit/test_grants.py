"""Grants with terms, through the gate: which one is drawn from, and what is told where none gives."""

from __future__ import annotations

from typing import Any

import pytest

from cxi.errors import Code, NotStarted, Reason
from gate_case import guarded, start
from grant_case import REQUEST, drawn, pay, shop

# --- which grant is drawn from


def test_when_the_first_grant_is_used_up_the_next_one_that_fits_gives() -> None:
    with shop({"it.pay": 1}, {"it.pay": 1}) as case:
        assert pay(case, "bob") == ("done",)
        assert pay(case, "eve") == ("done",)
        assert drawn(case) == ["case/it.pay", "standing/it.pay"]


def test_a_refusal_names_every_grant_that_gave_nothing() -> None:
    with shop({"it.pay": 1}, {"it.pay": {"count": 5, "total": {"field": "amount", "most": 3}}}) as case:
        assert pay(case, "bob") == ("done",)
        outcome = case.call("pay", to="eve", amount=4)
        assert outcome.codes == ("GRANT_EXHAUSTED", "LIMIT_REACHED")
        assert pay(case, "eve", 3) == ("done",)
        assert case.call("pay", to="eve", amount=1).codes == ("EVENT_REPEATED", "LIMIT_REACHED")


def test_an_event_that_happened_under_a_grant_that_is_used_up_is_drawn_from_another() -> None:
    with shop({"it.pay": 1}, {"it.pay": 1}) as case:
        assert [pay(case), pay(case)] == [("done",)] * 2
        assert pay(case) == ("EVENT_REPEATED",)


def test_a_grant_with_a_narrower_term_is_left_for_the_next_one() -> None:
    with shop({"it.pay": {"count": 5, "batch": {"field": "rows", "most": 1}}}, {"it.pay": 1}) as case:
        assert pay(case, rows=[1, 2]) == ("done",)
        assert drawn(case) == ["standing/it.pay"]
        assert pay(case, rows=[1]) == ("done",)
        assert drawn(case) == ["standing/it.pay", "case/it.pay"]


def test_a_refusal_that_is_no_grants_own_is_not_asked_of_the_next_one() -> None:
    with shop({"it.pay": 5}, {"it.pay": 5}) as case:
        first = case.session.propose("it.pay", {"to": "bob", "amount": 1})
        assert pay(case) == ("IN_FLIGHT",)
        case.session.finish(first, NotStarted(Reason(Code.SINK_DOWN, "not launched")))  # type: ignore[arg-type]


# --- each term


def test_a_batch_holds_for_one_call() -> None:
    with shop({"it.pay": {"count": 5, "batch": {"field": "rows", "most": 2}}}) as case:
        assert pay(case, rows=[1, 2]) == ("done",)
        assert pay(case, rows=[1, 2, 3]) == ("LIMIT_REACHED",)
        assert pay(case) == ("done",)


def test_a_total_holds_for_all_calls_of_its_window() -> None:
    with shop({"it.pay": {"count": 9, "total": {"field": "amount", "most": "10.00 EUR", "window": "1d"}}}) as case:
        assert pay(case, amount="6.50 EUR") == ("done",)
        assert pay(case, amount="3.51 EUR") == ("LIMIT_REACHED",)
        assert pay(case, amount="3.50 EUR") == ("done",)
        assert pay(case, amount="0.01 EUR") == ("LIMIT_REACHED",)
        case.now += 86_400
        assert pay(case, amount="10.00 EUR") == ("done",)


@pytest.mark.parametrize(("amount", "code"), [(1.5, "NUMBER_NOT_EXACT"), ("-1 EUR", "FIELD_TYPE"), ("1 USD", "FIELD_TYPE")])
def test_an_amount_that_is_not_exact_is_refused(amount: Any, code: str) -> None:
    with shop({"it.pay": {"count": 9, "total": {"field": "amount", "most": "10.00 EUR"}}}) as case:
        assert pay(case, amount=amount) == (code,)


def test_a_sequence_is_kept() -> None:
    with shop({"it.check": 5, "it.pay": {"count": 5, "after": ["it.check"]}}) as case:
        assert pay(case) == ("SEQUENCE_UNMET",)
        case.tools.faults.append(NotStarted(Reason(Code.SINK_DOWN, "not launched")))
        assert case.call("check", to="bob").codes == ("SINK_DOWN",)
        assert pay(case) == ("SEQUENCE_UNMET",)
        assert case.call("check", to="bob").kind == "done"
        assert pay(case) == ("done",)
        start(case.session, REQUEST)
        assert pay(case) == ("SEQUENCE_UNMET",)
        assert case.call("check", to="eve").kind == "done"
        assert pay(case) == ("done",)


def test_a_schedule_is_kept_and_its_end_is_the_last_launch() -> None:
    hours = {"hours": {"from": "13:40", "to": "13:50", "zone": "UTC"}}  # the clock begins at 13:46:40
    with shop({"it.pay": {"count": 5, **hours}}) as case:
        assert pay(case) == ("done",)
        case.now += 190
        prepared = case.session.propose("it.pay", {"to": "bob", "amount": 1})
        assert prepared.warrant.deadline == 1_000_200.0  # type: ignore[union-attr]
        case.session.finish(prepared, NotStarted(Reason(Code.SINK_DOWN, "not launched")))  # type: ignore[arg-type]
        case.now += 10
        assert pay(case) == ("NOT_YET",)
        case.now += 86_400 - 600
        assert pay(case) == ("done",)


def test_a_grant_is_bounded_by_instants() -> None:
    terms = {"not_before": "1970-01-12T13:50:00Z", "not_after": "1970-01-12T14:00:00Z"}
    with shop({"it.pay": {"count": 5, **terms}}) as case:
        assert pay(case) == ("NOT_YET",)
        case.now += 200
        assert pay(case) == ("done",)
        case.now += 600
        assert pay(case) == ("EXPIRED",)


def test_an_event_is_tried_again_as_often_as_its_retries() -> None:
    with shop({"it.pay": {"count": 9, "retries": 1}}) as case:
        for _ in range(2):
            case.tools.faults.append(NotStarted(Reason(Code.SINK_DOWN, "not launched")))
            assert pay(case) == ("SINK_DOWN",)
        assert pay(case) == ("RETRIES_EXHAUSTED",)
        assert pay(case, "eve") == ("done",)


@pytest.mark.parametrize(("across", "code"), [("session", "done"), ("user", "LIMIT_REACHED"), ("tenant", "LIMIT_REACHED")])
def test_a_count_across_sessions_is_not_new_in_the_next_one(across: str, code: str) -> None:
    with shop({"it.pay": {"count": 2, "across": across}}) as case:
        assert [pay(case), pay(case, "eve")] == [("done",)] * 2
        assert pay(case) == ("EVENT_REPEATED",)
        with case.guard.session(request=REQUEST, task="case") as case.talk:
            assert pay(case) == (code,)
        with guarded(case) as case.guard, case.guard.session(request=REQUEST, task="case") as case.talk:
            assert pay(case, "eve") == (code,)


def test_a_task_that_is_started_again_grants_anew_in_its_session_alone() -> None:
    with shop({"it.pay": {"count": 1}}) as case:
        assert pay(case) == ("done",)
        start(case.session, REQUEST)
        assert pay(case) == ("done",)
    with shop({"it.pay": {"count": 1, "across": "user"}}) as case:
        assert pay(case) == ("done",)
        start(case.session, REQUEST)
        assert pay(case) == ("LIMIT_REACHED",)
