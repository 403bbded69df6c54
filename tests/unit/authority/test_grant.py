"""What a grant's own terms say of one call."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from cxi.authority.grant import Across, Batch, Bound, Grant, Total, limits_of, start_again, when
from cxi.authority.schedule import Hours
from cxi.canonical import digest
from cxi.errors import Reason, Refused
from cxi.ledger.base import Limit, Requirement
from cxi.manifest import Action, CanonicalCall, FieldValue, Principal, Role
from cxi.values.base import Value

PAY = Grant("shop/bank.pay", "bank.pay", 5)


def action(arguments: dict[str, Any], derived: tuple[FieldValue, ...] = ()) -> Action:
    call = CanonicalCall("bank", "pay", (), MappingProxyType(arguments))
    return Action(Principal("local", "ana", "agent", "s-1"), digest("server"), digest("tool"), call, derived)


def outcome(grant: Grant, arguments: dict[str, Any], derived: tuple[FieldValue, ...] = ()) -> Any:
    found = limits_of(grant, action(arguments, derived))
    return found.codes if isinstance(found, Refused) else found


def test_a_plain_grant_has_no_limit_beside_its_count() -> None:
    assert outcome(PAY, {"amount": 5}) == ()


@pytest.mark.parametrize(
    ("rows", "codes"), [([1, 2], ()), ([], ()), (None, ()), ([1, 2, 3], ("LIMIT_REACHED",)), ("1, 2", ("LIMIT_REACHED",))]
)
def test_a_batch_holds_for_the_items_of_one_call(rows: Any, codes: tuple[str, ...]) -> None:
    assert outcome(replace(PAY, batches=(Batch("rows", 2),)), {"rows": rows}) == codes


def test_a_batch_counts_lists_in_lists_and_what_an_adapter_read() -> None:
    grant = replace(PAY, batches=(Batch("orders[].lines", 3),))
    assert outcome(grant, {"orders": [{"lines": [1, 2]}, {"lines": [3]}, {}]}) == ()
    assert outcome(grant, {"orders": [{"lines": [1, 2]}, {"lines": [3, 4]}]}) == ("LIMIT_REACHED",)
    rows = tuple(FieldValue(f"query.rows[{n}]", "query.rows", Role.PROTECTED, Value("RecordId", n, n)) for n in range(3))
    read = replace(PAY, batches=(Batch("query.rows", 2),))
    assert outcome(read, {"query": "update"}, rows) == ("LIMIT_REACHED",)
    assert outcome(read, {"query": "update"}, rows[:2]) == ()


def test_a_total_takes_the_sum_of_all_amounts_of_a_call() -> None:
    one = replace(PAY, totals=(Total("amount", 50_000, 2, "EUR", window=86_400.0),))
    assert outcome(one, {"amount": "12.50 EUR"}) == (Limit("session:s-1/shop/bank.pay#amount:EUR2", 1250, 50_000, 86_400.0),)
    many = replace(PAY, totals=(Total("rows[].amount", 100),))
    assert [limit.amount for limit in outcome(many, {"rows": [{"amount": 3}, {"amount": "4"}]})] == [7]
    assert [limit.amount for limit in outcome(many, {"rows": []})] == [0]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({}, ("FIELD_MISSING",)),
        ({"amount": None}, ("FIELD_MISSING",)),
        ({"amount": 1.5}, ("NUMBER_NOT_EXACT",)),
        ({"amount": "-3"}, ("FIELD_TYPE",)),
        ({"amount": {"value": 3}}, ("FIELD_TYPE",)),
    ],
)
def test_an_amount_that_cannot_be_summed_is_refused(arguments: dict[str, Any], codes: tuple[str, ...]) -> None:
    assert outcome(replace(PAY, totals=(Total("amount", 50_000),)), arguments) == codes


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"amount": "5", "currency": "EUR"}, 500),
        ({"amount": "5", "currency": "USD"}, ("FIELD_TYPE",)),
        ({"amount": "5", "currency": "eur"}, ("FIELD_TYPE",)),
        ({"amount": "5"}, ("FIELD_TYPE",)),
        ({"amount": "5 USD", "currency": "EUR"}, ("FIELD_TYPE",)),
    ],
)
def test_a_currency_beside_the_amount_is_the_limits(arguments: dict[str, Any], found: Any) -> None:
    answer = outcome(replace(PAY, totals=(Total("amount", 50_000, 2, "EUR", "currency"),)), arguments)
    assert (answer[0].amount if isinstance(answer[0], Limit) else answer) == found


def test_a_count_over_sessions_is_a_limit_whose_scope_no_session_and_no_later_start_changes() -> None:
    for across, scope in ((Across.USER, "user:ana/shop/bank.pay"), (Across.TENANT, "tenant/shop/bank.pay")):
        grant = replace(PAY, across=across, window=60.0)
        for start in (grant, start_again(grant, 2)):
            assert outcome(start, {}) == (Limit(scope, 1, 5, 60.0),)


def test_a_total_in_a_session_is_new_with_a_later_start_and_one_over_sessions_is_not() -> None:
    grant = replace(PAY, totals=(Total("amount", 9),))
    assert outcome(start_again(grant, 2), {"amount": 1})[0].scope == "session:s-1/shop/bank.pay#2#amount:0"
    wide = replace(grant, across=Across.TENANT)
    assert outcome(start_again(wide, 2), {"amount": 1})[-1].scope == "tenant/shop/bank.pay#amount:0"


def test_a_later_start_waits_for_what_is_done_in_it() -> None:
    after = (Requirement("shop/bank.check"), Requirement("standing/bank.look"))
    again = start_again(replace(PAY, after=after), 3)
    assert (again.id, again.origin) == ("shop/bank.pay#3", "shop/bank.pay")
    assert [needed.grant for needed in again.after] == ["shop/bank.check#3", "standing/bank.look"]


def test_the_bounds_of_a_giver_are_taken_from_as_well() -> None:
    bound = Bound("session:s-0/x", 3, 60.0, ("s-0", "x"))
    assert outcome(replace(PAY, bounds=(bound,)), {}) == (Limit("session:s-0/x", 1, 3, 60.0, ("s-0", "x")),)


OFFICE = Hours((0, 1, 2, 3, 4), 9 * 60, 17 * 60, "UTC")
MONDAY = 1_767_571_200.0  # 2026-01-05T00:00:00Z


def held(grant: Grant, now: float) -> Any:
    found = when(grant, now)
    return found.code if isinstance(found, Reason) else tuple(found)


@pytest.mark.parametrize(
    ("terms", "now", "found"),
    [
        ({}, 5.0, (0.0, 0.0)),
        ({"expires": 10.0}, 9.9, (0.0, 10.0)),
        ({"expires": 10.0}, 10.0, "EXPIRED"),
        ({"not_before": 5.0}, 4.9, "NOT_YET"),
        ({"not_before": 5.0, "expires": 10.0}, 5.0, (5.0, 10.0)),
        ({"hours": (OFFICE,)}, MONDAY, "NOT_YET"),
        ({"hours": (OFFICE,)}, MONDAY + 10 * 3600, (MONDAY + 9 * 3600, MONDAY + 17 * 3600)),
        ({"hours": (OFFICE,)}, MONDAY + 17 * 3600, "NOT_YET"),
        ({"hours": (OFFICE,), "expires": MONDAY + 12 * 3600}, MONDAY + 10 * 3600, (MONDAY + 9 * 3600, MONDAY + 12 * 3600)),
        ({"hours": (OFFICE,), "expires": MONDAY + 18 * 3600}, MONDAY + 17.5 * 3600, "EXPIRED"),
        ({"hours": (OFFICE,), "not_before": MONDAY + 10 * 3600}, MONDAY + 9.5 * 3600, "NOT_YET"),
        ({"hours": (OFFICE,), "not_before": MONDAY + 10 * 3600}, MONDAY + 11 * 3600, (MONDAY + 10 * 3600, MONDAY + 17 * 3600)),
    ],
)
def test_a_grant_holds_inside_all_of_its_schedule(terms: dict[str, Any], now: float, found: Any) -> None:
    assert held(replace(PAY, **terms), now) == found
