"""Text, JSON, integers and booleans are exactly themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import canonicalize, digest
from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Value
from cxi.values.text import Boolean, Integer, Json, Text
from os_view import NOWHERE

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("rfc8785"), inner, max_size=3),
    max_leaves=8,
)


def code(found: Value | Refused) -> object:
    return found.codes[0] if isinstance(found, Refused) else found.canonical


@given(st.text())
def test_a_text_is_itself(raw: str) -> None:
    assert code(Text().parse(raw, NOWHERE)) == raw


@pytest.mark.parametrize(
    ("raw", "expected"), [("a\ud800", "NON_CANONICAL_TEXT"), (7, "FIELD_TYPE"), (None, "FIELD_TYPE"), (["a"], "FIELD_TYPE")]
)
def test_what_is_no_text_is_refused(raw: Any, expected: str) -> None:
    assert code(Text().parse(raw, NOWHERE)) == expected


def test_only_quoted_spans_are_texts_of_a_request() -> None:
    text = 'commit with "fix rounding" and `x`, now'
    assert [value.canonical for _, value in Text().scan(text, NOWHERE)] == ["fix rounding", "x"]


@given(JSON)
def test_a_payload_is_sent_as_it_is_and_hashed_without_floats(raw: Any) -> None:
    found = Json().parse(raw, NOWHERE)
    assert isinstance(found, Value)
    assert found.wire == raw
    assert digest(found.canonical)


@given(JSON, JSON)
def test_two_payloads_never_share_a_canonical_form(one: Any, other: Any) -> None:
    first, second = Json().parse(one, NOWHERE), Json().parse(other, NOWHERE)
    assert isinstance(first, Value)
    assert isinstance(second, Value)
    if canonicalize(one, floats=True) != canonicalize(other, floats=True):
        assert digest(first.canonical) != digest(second.canonical)


def test_an_object_that_looks_wrapped_is_no_float() -> None:
    forms = [Json().parse(raw, NOWHERE) for raw in (0.5, {"rfc8785": "0.5"}, {"rfc8785": '{"rfc8785":"0.5"}'})]  # type: ignore[arg-type]
    assert len({digest(form.canonical) for form in forms if isinstance(form, Value)}) == 3
    plain = Json().parse({"a": [1, None]}, NOWHERE)
    assert isinstance(plain, Value)
    assert plain.canonical == {"a": [1, None]}


def test_nobody_changes_what_was_judged() -> None:
    raw: dict[str, Any] = {"a": [1]}
    found = Json().parse(raw, NOWHERE)
    raw["a"].append(2)
    assert isinstance(found, Value)
    assert found.wire == {"a": [1]}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"a": ["\ud800"]}, "NON_CANONICAL_TEXT"),
        ({"\ud800": 1}, "NON_CANONICAL_TEXT"),
        ([2**53], "NUMBER_NOT_EXACT"),
        (float("nan"), "NUMBER_NOT_EXACT"),
        ((1,), "MALFORMED_JSON"),
    ],
)
def test_what_json_cannot_hold_exactly_is_refused(raw: Any, expected: str) -> None:
    assert code(Json().parse(raw, NOWHERE)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (1, 1),
        (10, 10),
        (0, "FIELD_TYPE"),
        (11, "FIELD_TYPE"),
        (True, "FIELD_TYPE"),
        (5.0, "FIELD_TYPE"),
        ("5", "FIELD_TYPE"),
        (2**53, "NUMBER_NOT_EXACT"),
    ],
)
def test_an_integer_is_jsons_own_within_its_bounds(raw: Any, expected: object) -> None:
    assert code(Integer(1, 10).parse(raw, NOWHERE)) == expected


def test_integers_in_a_request_are_whole() -> None:
    text = "take 20, not 7th, 7.5, 1,000, 007 or v3; then -5."
    assert [value.canonical for _, value in Integer().scan(text, NOWHERE)] == [20, -5]


@pytest.mark.parametrize(
    ("raw", "expected"), [(True, True), (False, False), (1, "FIELD_TYPE"), ("true", "FIELD_TYPE"), (None, "FIELD_TYPE")]
)
def test_a_boolean_is_jsons_own(raw: Any, expected: object) -> None:
    assert code(Boolean().parse(raw, NOWHERE)) is expected or code(Boolean().parse(raw, NOWHERE)) == "FIELD_TYPE" == expected


def test_booleans_and_payloads_are_found_in_no_text() -> None:
    for kind in (Boolean(), Json()):
        assert list(kind.scan('true {"a": 1} "x"', NOWHERE)) == []


def test_parameters_are_read_strictly() -> None:
    assert value_type("Integer", {"min": 1, "max": 3}) == Integer(1, 3)
    for name, bad in (
        ("Integer", {"min": 3, "max": 1}),
        ("Integer", {"min": True}),
        ("Text", {"max": 1}),
        ("Json", {"x": 1}),
        ("Boolean", {"x": 1}),
    ):
        with pytest.raises(ValueError):
            value_type(name, bad)
