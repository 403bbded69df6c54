"""Canonical bytes are those of the `rfc8785` package, two values never share them, and what has none is refused."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cxi.canonical import (
    _UNREAD,
    MAX_DEPTH,
    SAFE_INTEGER,
    JsonValue,
    _read_plainly,
    canonicalize,
    compose,
    digest,
    digest_bytes,
    parse_json,
)
from cxi.errors import MalformedError

# Where the fast path and the slow one part: UTF-16 order is not UTF-8 order beyond the BMP, and escapes have several spellings.
AWKWARD = '\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff\x00\x08\x09\x0a\x0c\x0d\x1f\x7f\x80\u2028\u2029"\\/é<>&'
TEXT = st.text(st.one_of(st.sampled_from(AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=8)
INTEGERS = st.integers(-SAFE_INTEGER, SAFE_INTEGER)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.binary(min_size=8, max_size=8).map(lambda raw: float(struct.unpack(">d", raw)[0])).filter(math.isfinite),
    st.sampled_from(
        [0.0, -0.0, 5e-324, 1e-7, 1e-6, 1e20, 1e21, 1.7976931348623157e308, 333333333.33333329, 4.5, 2e-3, 1e23, 9.5e-7]
    ),
    st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(1, 10**17), st.integers(-30, 30)),
)


def json_of(*leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    scalars = st.one_of(st.none(), st.booleans(), INTEGERS, TEXT, *leaves)
    return st.recursive(
        scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)), max_leaves=12
    )


EXACT = json_of()
ANY = json_of(FLOATS)


def refusal(value: Any, **named: Any) -> str:
    with pytest.raises(MalformedError) as caught:
        canonicalize(value, **named)
    return caught.value.code


def parse_refusal(data: bytes | str, **named: Any) -> str:
    with pytest.raises(MalformedError) as caught:
        parse_json(data, **named)
    return caught.value.code


@given(ANY)
@example({"\U00010000": 1, "\uffff": 2, "\ue000": 3})
@example({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\xf6": 7})  # RFC 8785, 3.2.3
@example([333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001])  # RFC 8785, 3.2.2
def test_bytes_are_those_of_the_reference(value: Any) -> None:
    assert canonicalize(value, floats=True) == rfc8785.dumps(value)


@given(FLOATS)
def test_numbers_are_those_of_the_reference(value: float) -> None:
    assert canonicalize(value, floats=True) == rfc8785.dumps(value)


@given(EXACT)
def test_what_holds_no_float_is_the_same_with_floats_allowed(value: Any) -> None:
    assert canonicalize(value) == canonicalize(value, floats=True)


@given(EXACT)
def test_canonical_bytes_are_read_back_as_the_value(value: Any) -> None:
    data = canonicalize(value)
    assert parse_json(data) == value
    assert canonicalize(parse_json(data)) == data


@given(EXACT, EXACT)
@example(1, True)
@example(0, False)
@example("1", 1)
@example({"a": None}, {})
@example([[], []], [[[]]])
@example("é", "e\u0301")
def test_two_values_never_share_a_digest(one: Any, other: Any) -> None:
    # Python holds 1 and True to be equal; JSON does not
    assume(json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert digest(one) != digest(other)


@given(st.dictionaries(TEXT, INTEGERS, min_size=2))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@given(EXACT)
def test_a_read_only_mapping_and_an_enum_are_what_they_hold(value: Any) -> None:
    class Name(StrEnum):
        A = "a"

    held: Mapping[str, JsonValue] = MappingProxyType({Name.A: value, "b": Name.A})
    assert canonicalize(held) == canonicalize({"a": value, "b": "a"})


@given(ANY, st.sampled_from([math.nan, math.inf, -math.inf, SAFE_INTEGER + 1, -SAFE_INTEGER - 1, 2**64, 10**400]))
def test_numbers_that_are_not_exact_are_refused_wherever_they_stand(value: Any, number: float) -> None:
    for held in (number, [value, number], {"a": {"b": [number]}, "z": value}):
        assert refusal(held, floats=True) == "NUMBER_NOT_EXACT"


@given(EXACT, FLOATS)
def test_a_float_is_refused_where_none_is_allowed(value: Any, number: float) -> None:
    assert refusal({"a": [value, number]}) == "NUMBER_NOT_EXACT"


@given(TEXT, st.characters(categories=["Cs"]), TEXT, ANY)
def test_a_lone_surrogate_is_refused_in_texts_and_keys(before: str, lone: str, after: str, value: Any) -> None:
    text = before + lone + after
    assert refusal([value, text], floats=True) == "NON_CANONICAL_TEXT"
    assert refusal({"a": {text: value}}, floats=True) == "NON_CANONICAL_TEXT"
    # an escaped surrogate reaches us as the same text, unless it completes a pair
    assume(any("\ud800" <= char <= "\udfff" for char in json.loads(json.dumps(text))))
    assert parse_refusal(json.dumps({text: 1})) == "NON_CANONICAL_TEXT"
    assert parse_refusal(json.dumps([[text]])) == "NON_CANONICAL_TEXT"


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {None: 1}, b"a", {1, 2}, object(), 1j])
def test_what_is_no_json_is_refused(value: Any) -> None:
    assert refusal(value) == "MALFORMED_JSON"
    assert refusal([value]) == "MALFORMED_JSON"


def test_depth_is_bounded_in_both_directions() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    assert canonicalize(nested(MAX_DEPTH)) == rfc8785.dumps(nested(MAX_DEPTH))
    assert refusal(nested(MAX_DEPTH + 2)) == "TOO_LARGE"
    assert parse_refusal("[" * 2000 + "]" * 2000) == "TOO_LARGE"
    assert parse_refusal('{"a":' * 100_000) == "TOO_LARGE"


@given(TEXT, EXACT, EXACT)
def test_a_key_that_is_there_twice_is_refused_at_any_depth(key: str, one: Any, other: Any) -> None:
    name, first, second = (json.dumps(part) for part in (key, one, other))
    twice = f"{{{name}:{first},{name}:{second}}}"
    assert parse_refusal(twice) == "DUPLICATE_KEY"
    assert parse_refusal(f'[{{"a":{twice}}}]') == "DUPLICATE_KEY"


def test_a_key_that_is_there_twice_in_two_spellings_is_refused() -> None:
    assert parse_refusal(r'{"a":1,"\u0061":2}') == "DUPLICATE_KEY"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("NaN", "NUMBER_NOT_EXACT"),
        ("[Infinity]", "NUMBER_NOT_EXACT"),
        ("-Infinity", "NUMBER_NOT_EXACT"),
        ("1e400", "NUMBER_NOT_EXACT"),
        ("1e16", "NUMBER_NOT_EXACT"),
        ("9007199254740992", "NUMBER_NOT_EXACT"),
        ("-9007199254740992", "NUMBER_NOT_EXACT"),
        ("1" * 5000, "NUMBER_NOT_EXACT"),
        (r'"\ud800"', "NON_CANONICAL_TEXT"),
        (r'{"\udfff":1}', "NON_CANONICAL_TEXT"),
        (b"\xff", "MALFORMED_JSON"),
        (b'"\xed\xa0\x80"', "MALFORMED_JSON"),
        (b"\xef\xbb\xbf1", "MALFORMED_JSON"),
        ("", "MALFORMED_JSON"),
        ("1 2", "MALFORMED_JSON"),
        ("{'a':1}", "MALFORMED_JSON"),
        ("[1,]", "MALFORMED_JSON"),
        ("01", "MALFORMED_JSON"),
        ("+1", "MALFORMED_JSON"),
        ("1.", "MALFORMED_JSON"),
        ("\u0661", "MALFORMED_JSON"),
        ('"\x01"', "MALFORMED_JSON"),
        ('"a\nb"', "MALFORMED_JSON"),
        ("\u00a01", "MALFORMED_JSON"),
    ],
)
def test_text_that_two_readers_could_read_differently_is_refused(data: bytes | str, code: str) -> None:
    assert parse_refusal(data) == code


def test_integers_up_to_the_last_safe_one_are_read() -> None:
    assert parse_json(f"[{SAFE_INTEGER},-{SAFE_INTEGER},0]") == [SAFE_INTEGER, -SAFE_INTEGER, 0]


def test_a_text_over_its_limit_is_refused_before_it_is_read() -> None:
    assert parse_json('"abc"', limit=5) == "abc"
    assert parse_refusal('"abcd"', limit=5) == "TOO_LARGE"
    assert parse_refusal(b"[" * 10, limit=9) == "TOO_LARGE"


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_makes_the_reader_raise_anything_else(data: str | bytes) -> None:
    try:
        value = parse_json(data)
    except MalformedError:
        return
    assert parse_json(canonicalize(value, floats=True)) == value


def test_a_digest_is_written_with_its_algorithm() -> None:
    assert digest("") == "sha256:12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
    assert digest_bytes(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(ANY)
def test_the_fast_reader_reads_what_the_strict_one_reads_or_nothing(value: Any) -> None:
    for data in (json.dumps(value).encode(), json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()):
        found = _read_plainly(data)
        if found is not _UNREAD:
            assert repr(found) == repr(parse_json(data.decode()))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}', '{"a":1,"a":2}',
        '{"n":9007199254740993}', '{"n":1.5}', '{"n":1e400}', '{"n":NaN}', '["\\ud800"]', '{"a":-0}',
        '{"a":1} ', '{"a":01}', '{"é":1}', '"\\u0041"', "[" * 2000 + "]" * 2000, '{"n":-0.0}', "", "\ufeff1",
    ],
)  # fmt: skip
def test_the_fast_reader_leaves_what_two_readers_could_see_differently_to_the_strict_one(text: str) -> None:
    assert _read_plainly(text.encode("utf-8", "surrogatepass")) is _UNREAD


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), EXACT, max_size=5))
def test_an_object_of_canonical_parts_is_canonical(parts: dict[str, Any]) -> None:
    assert compose({key: canonicalize(value) for key, value in parts.items()}) == canonicalize(parts)


@pytest.mark.parametrize("parts", [{"é": b"1"}, {'a"': b"1"}, {"a b": b"1"}, {"": b"1"}, {"a": b""}])
def test_an_object_of_parts_has_plain_names_and_no_gap(parts: dict[str, bytes]) -> None:
    with pytest.raises(ValueError):
        compose(parts)
