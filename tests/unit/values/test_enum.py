"""Members are equal as JSON is, and found as whole words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Value
from cxi.values.enum import Enum, make_enum
from os_view import NOWHERE


def canonical(raw: object, *values: object, fold: bool = False) -> object:
    found = make_enum({"values": list(values), "fold": fold}).parse(raw, NOWHERE)  # type: ignore[dict-item, arg-type]
    return found.codes[0] if isinstance(found, Refused) else found.canonical


def test_a_member_is_read_exactly() -> None:
    assert canonical("open", "open", "closed") == "open"
    assert canonical("Open", "open", "closed") == "FIELD_TYPE"
    assert canonical("open ", "open") == "FIELD_TYPE"
    assert canonical("e\u0301", "é") == "FIELD_TYPE"


@pytest.mark.parametrize(
    ("member", "raw"), [(1, True), (1, "1"), (1, 1.0), (0, False), (True, 1), ("1", 1), (None, False), (None, "")]
)
def test_json_kinds_are_never_mixed(member: object, raw: object) -> None:
    assert canonical(raw, member) == "FIELD_TYPE"
    found = make_enum({"values": [member]}).parse(member, NOWHERE)  # type: ignore[dict-item, list-item, arg-type]
    assert isinstance(found, Value)
    assert found.canonical is member or found.canonical == member


def test_folding_gives_the_declared_spelling() -> None:
    assert canonical("OPEN", "Open", fold=True) == "Open"
    assert canonical("STRASSE", "straße", fold=True) == "straße"


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_no_json_makes_it_raise(raw: object) -> None:
    for fold in (False, True):
        assert isinstance(Enum(("a", 1, None), fold).parse(raw, NOWHERE), Value | Refused)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set it to closed.", ["closed"]),
        ('set it to "in progress", not open', ["in progress", "open"]),
        ("closed-loop, unclosed, closed_at, closed.py, src/closed, .closed, closed2, Closed", []),
        ("open open", ["open", "open"]),
        ("in progress later", ["in progress later"]),
    ],
)
def test_members_in_a_request_are_whole_and_the_longest_wins(text: str, expected: list[str]) -> None:
    found = list(Enum(("open", "closed", "in progress", "in progress later", 7)).scan(text, NOWHERE))
    assert [value.canonical for _, value in found] == expected
    assert all(text[start:end] == value.canonical for (start, end), value in found)


def test_folded_members_are_found_where_they_stand() -> None:
    text = "İ: die STRASSE, Straße!"
    found = list(Enum(("straße",), fold=True).scan(text, NOWHERE))
    assert [text[start:end] for (start, end), _ in found] == ["STRASSE", "Straße"]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"values": []}, {"values": "open"}, {"values": [1.5]}, {"values": [["a"]]}, {"values": ["a", "a"]},
     {"values": ["a"], "fold": "yes"},
     {"values": ["a", "A"], "fold": True}, {"values": [2**60]}, {"values": ["\ud800"]}, {"values": ["a"], "default": "a"}],
)  # fmt: skip
def test_parameters_are_read_strictly(parameters: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        value_type("Enum", parameters)  # type: ignore[arg-type]


def test_values_that_only_python_holds_equal_are_two() -> None:
    assert value_type("Enum", {"values": [1, True, "1"]}) == Enum((1, True, "1"))
