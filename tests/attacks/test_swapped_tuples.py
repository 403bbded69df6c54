"""Values that are each asked for, but not together: "pay A 10 and B 500" never pays A 500.

The account is one of an `Enum`, the amount an `Integer`; both are protected and belong together.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from authority_case import (
    codes_of,
    contract_of,
    decided,
    payload,
    protected,
    release_of,
    request_of,
    root_of,
    types_of,
    value_of,
)
from cxi.authority.approval import Approval
from cxi.authority.contract import Choice, Origin, ToolContract, TypeRef
from cxi.authority.field import FieldContext
from cxi.errors import Code, Reason
from cxi.values import value_type
from cxi.values.base import Value

ACCOUNT = (TypeRef("Enum", MappingProxyType({"values": ["A", "B", "C"]})),)
INTEGER = types_of("Integer")


def pay(*origins: Origin) -> ToolContract:
    allowed = origins or (Origin.REQUEST, Origin.APPROVAL)
    return contract_of(
        protected("to", ACCOUNT, allowed, together="pay"), protected("amount", INTEGER, allowed, together="pay"), name="bank.pay"
    )


MOVE = contract_of(
    protected("source", together="move", origins=(Origin.REQUEST, Origin.APPROVAL)),
    protected("destination", together="move", origins=(Origin.REQUEST, Origin.APPROVAL), after="to"),
    name="files.move_file",
)


def account(name: str) -> Value:
    value = value_type("Enum", ACCOUNT[0].parameters).parse(name, root_of())
    assert isinstance(value, Value)
    return value


def asked(text: str, to: str, amount: int, contract: ToolContract | None = None) -> tuple[str, ...]:
    return codes_of(decided(contract or pay(), {"to": to, "amount": amount}, FieldContext(request_of(text), root_of())))


@pytest.mark.parametrize(
    "text",
    [
        "Pay A 10 and B 500.",
        "Pay A 10, B 500.",
        "Pay A 10, and then B 500.",
        "Pay A 10; pay B 500.",
        "Pay A 10. Pay B 500.",
        "- Pay A 10\n- Pay B 500",
        "Pay A and B 10 and 500.",
        "Pay A, B 10, 500.",
        "Pay 10 and 500 to A and B respectively.",
        "Pay A 10 plus B 500 right away.",
        "Pay A and then 10 to B and 500 more.",
        "Pay A 10, B 500, C 900 and 7.",
    ],
)
@pytest.mark.parametrize("origin", [Origin.REQUEST, Origin.ANY_OF_REQUEST])
def test_a_swapped_pair_is_refused(text: str, origin: Origin) -> None:
    for to, amount in (("A", 500), ("B", 10)):
        codes = asked(text, to, amount, pay(origin))
        assert codes
        assert set(codes) <= {"FIELD_AMBIGUOUS", "TUPLE_SPLIT"}


@pytest.mark.parametrize(
    "text", ["Pay A 10 and B 500.", "Pay A 10, B 500.", "Pay 10 to A and 500 to B.", "Pay A 10, and then B 500."]
)
def test_each_pair_as_it_was_asked_for_is_admitted(text: str) -> None:
    assert asked(text, "A", 10) == ()
    assert asked(text, "B", 500) == ()


def test_pairs_of_several_clauses_need_any_of_request() -> None:
    text = "Pay B 500 today. Pay A 10."
    assert asked(text, "B", 500) == ("FIELD_AMBIGUOUS",)
    assert asked(text, "A", 10) == ("FIELD_AMBIGUOUS",)
    assert asked(text, "A", 10, pay(Origin.ANY_OF_REQUEST)) == ()
    assert asked("Pay A 10. Then write the report.", "A", 10) == ()


def test_a_pair_of_two_clauses_is_split() -> None:
    assert asked("Pay A today. Set the amount to 10.", "A", 10) == ("TUPLE_SPLIT",)
    assert asked("Pay A 10.", "A", 10) == ()


def test_a_pair_that_an_unclear_clause_could_hold_is_refused() -> None:
    for to, amount in (("A", 10), ("B", 500), ("A", 500)):
        assert asked("Pay A and B 10 and 500.", to, amount) == ("FIELD_AMBIGUOUS",)


def test_a_negated_pair_gives_nothing() -> None:
    assert asked("Pay A 10 and don't pay B 500.", "B", 500) == ("FIELD_NO_AUTHORITY",)
    assert asked("Pay A 10 and don't pay B 500.", "A", 10) == ()


def moved(text: str, source: str, destination: str, contract: ToolContract = MOVE) -> tuple[str, ...]:
    return codes_of(decided(contract, {"source": source, "destination": destination}, FieldContext(request_of(text), root_of())))


def test_a_move_goes_the_way_that_was_asked_for() -> None:
    text = "Move a.py to the file lib/a.py and b.py to lib/b.py."
    assert moved(text, "a.py", "lib/a.py") == ()
    assert moved(text, "b.py", "lib/b.py") == ()
    for source, destination in (("a.py", "lib/b.py"), ("b.py", "lib/a.py"), ("lib/a.py", "a.py"), ("a.py", "b.py")):
        assert moved(text, source, destination)


def test_without_a_role_two_values_of_one_type_are_ambiguous() -> None:
    fields = {name: replace(entry, after="") for name, entry in MOVE.fields.items()}
    assert moved("Move a.py to b.py.", "a.py", "b.py", replace(MOVE, fields=fields)) == ("FIELD_AMBIGUOUS",)
    assert moved("Move a.py to b.py.", "a.py", "b.py") == ()


def test_one_mention_is_not_two_values() -> None:
    fields = {name: replace(entry, after="") for name, entry in MOVE.fields.items()}
    contract = replace(MOVE, fields=fields)
    assert moved("Rename a.py.", "a.py", "a.py", contract) == ("FIELD_AMBIGUOUS",)
    assert moved("Copy a.py over a.py.", "a.py", "a.py", contract) == ()


def test_a_value_that_only_untrusted_text_names_breaks_the_pair() -> None:
    assert moved("Move a.py to lib/a.py.", "a.py", ".github/a.py") == ("FIELD_NO_AUTHORITY",)


def releases(*rows: tuple[str, int, str], selection: str = "all") -> FieldContext:
    found = []
    for to, amount, record in rows:
        found.append(release_of(account(to), "bank.pay.to", record=record, selection=selection))
        found.append(release_of(value_of("Integer", amount), "bank.pay.amount", record=record, selection=selection))
    return FieldContext(None, root_of(), releases=tuple(found))


def released(context: FieldContext, to: str, amount: int) -> tuple[str, ...]:
    return codes_of(decided(pay(Origin.RELEASE), {"to": to, "amount": amount}, context))


def test_released_pairs_come_from_one_record() -> None:
    context = releases(("A", 10, "$[0]"), ("B", 500, "$[1]"))
    assert released(context, "A", 10) == released(context, "B", 500) == ()
    assert released(context, "A", 500) == released(context, "B", 10) == ("TUPLE_SPLIT",)


def test_a_record_with_two_values_for_one_member_gives_nothing() -> None:
    assert released(releases(("A", 10, "$"), ("B", 500, "$")), "A", 10) == ("TUPLE_SPLIT",)


def test_records_of_a_declassifier_that_selects_one_are_ambiguous() -> None:
    assert released(releases(("A", 10, "$[0]"), ("B", 500, "$[1]"), selection="one"), "A", 10) == ("FIELD_AMBIGUOUS",)
    assert released(releases(("A", 10, "$[0]"), selection="one"), "A", 10) == ()


def test_equal_records_of_two_results_do_not_mix() -> None:
    first = releases(("A", 10, "$[0]"))
    mixed = tuple(
        replace(release, segment="s-2") if release.destination == "bank.pay.to" else release for release in first.releases
    )
    assert released(replace(first, releases=mixed), "A", 10) == ("TUPLE_SPLIT",)


def test_a_pair_with_a_void_release_is_refused() -> None:
    context = releases(("A", 10, "$[0]"))
    void = {context.releases[0].id: Reason(Code.EXPIRED, "the release has expired")}
    assert released(replace(context, void=void), "A", 10) == ("RELEASE_VOID",)


def test_a_pair_does_not_mix_the_request_with_a_release() -> None:
    both = pay(Origin.REQUEST, Origin.RELEASE)
    amount = release_of(value_of("Integer", 500), "bank.pay.amount", selection="all")
    context = FieldContext(request_of("Pay A."), root_of(), releases=(amount,))
    assert codes_of(decided(both, {"to": "A", "amount": 500}, context)) == ("TUPLE_SPLIT",)


def test_a_bounded_choice_gives_no_pair() -> None:
    choice = Choice(("p",))
    contract = contract_of(
        protected("source", origins=(choice,), together="move"), protected("destination", origins=(choice,), together="move")
    )
    chosen = {"source": frozenset({"p"}), "destination": frozenset({"p"})}
    context = FieldContext(None, root_of(), chosen=chosen)
    assert codes_of(decided(contract, {"source": "a", "destination": "b"}, context)) == ("TUPLE_SPLIT",)
    loose = contract_of(protected("source", origins=(choice,)), protected("destination", origins=(choice,)))
    assert codes_of(decided(loose, {"source": "a", "destination": "b"}, context)) == ()


def test_trusted_constants_are_a_pair_only_where_they_leave_no_choice() -> None:
    first, ten, more = account("A"), value_of("Integer", 10), value_of("Integer", 500)
    one = FieldContext(None, root_of(), state={"to": (first,), "amount": (ten,)})
    assert codes_of(decided(pay(Origin.STATE), {"to": "A", "amount": 10}, one)) == ()
    two = FieldContext(None, root_of(), state={"to": (first,), "amount": (ten, more)})
    assert codes_of(decided(pay(Origin.STATE), {"to": "A", "amount": 10}, two)) == ("TUPLE_SPLIT",)


def test_an_approval_covers_the_pair_that_it_was_given_for() -> None:
    approval = Approval("ap-1", "sha256:a", "sha256:e", "sha256:d", "sha256:r", "boss", "s", 1e12)
    context = FieldContext(None, root_of(), approval=approval)
    assert codes_of(decided(pay(), {"to": "B", "amount": 500}, context)) == ()
    assert codes_of(decided(pay(), {"to": "B", "amount": 500}, replace(context, approval=None))) == ("FIELD_NO_AUTHORITY",)


ROWS = contract_of(
    protected("payments[].to", ACCOUNT, together="pay"),
    protected("payments[].amount", INTEGER, together="pay"),
    payload("note", required=False),
    name="bank.pay_all",
)


def test_each_item_of_a_list_is_a_pair_of_its_own() -> None:
    context = FieldContext(request_of("Pay A 10 and B 500."), root_of())
    right = {"payments": [{"to": "A", "amount": 10}, {"to": "B", "amount": 500}]}
    wrong = {"payments": [{"to": "A", "amount": 500}, {"to": "B", "amount": 10}]}
    assert codes_of(decided(ROWS, right, context)) == ()
    assert codes_of(decided(ROWS, wrong, context)) == ("TUPLE_SPLIT",)


def test_parallel_lists_are_never_paired() -> None:
    contract = contract_of(
        protected("to[]", ACCOUNT, (Origin.ANY_OF_REQUEST,), together="pay"),
        protected("amounts[]", INTEGER, (Origin.ANY_OF_REQUEST,), together="pay"),
        name="bank.pay_lists",
    )
    context = FieldContext(request_of("Pay A 10 and B 500."), root_of())
    assert codes_of(decided(contract, {"to": ["A", "B"], "amounts": [500, 10]}, context))
