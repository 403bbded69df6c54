"""Identifiers are exact, and found whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import SAFE_INTEGER
from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.record_id import IdForm, RecordId
from os_view import NOWHERE


def canonical(raw: object, form: IdForm = "text") -> object:
    found = RecordId(form).parse(raw, NOWHERE)  # type: ignore[arg-type]
    return found.codes[0] if isinstance(found, Refused) else found.canonical


def found(text: str, form: IdForm = "integer", *cues: str) -> list[object]:
    spans = list(RecordId(form, cues).scan(text, NOWHERE))
    assert all(text[start:end] == str(value.canonical) for (start, end), value in spans)
    return [value.canonical for _, value in spans]


def test_an_integer_and_its_digits_are_one_in_the_integer_form_only() -> None:
    assert RecordId("integer").parse(7, NOWHERE) == RecordId("integer").parse("7", NOWHERE)
    assert (canonical(7), canonical("7")) == (7, "7")


@given(st.integers(-SAFE_INTEGER, SAFE_INTEGER))
def test_every_integer_is_its_digits(number: int) -> None:
    assert canonical(number, "integer") == canonical(str(number), "integer") == number


def test_digits_beyond_what_json_holds_stay_text() -> None:
    assert canonical("1234567890123456789", "integer") == "1234567890123456789"
    assert canonical(2**53) == canonical(2**53, "integer") == "NUMBER_NOT_EXACT"
    assert canonical(str(SAFE_INTEGER), "integer") == SAFE_INTEGER


@pytest.mark.parametrize(
    "raw",
    [
        "07",
        "+7",
        "7.0",
        "-0",
        "7e0",
        "0x7",
        "７",
        "٧",
        " 7",
        "7 ",
        "7_0",
        "1,000",
        "",
        "seven",
        "--7",
        "1" * 41,
        7.0,
        True,
        None,
        [7],
    ],
)
def test_other_spellings_of_integers_are_refused(raw: object) -> None:
    assert canonical(raw, "integer") == "FIELD_TYPE"


@pytest.mark.parametrize("raw", ["", " a", "a ", "a" * 257, 1.5, False, None, {"id": 1}])
def test_what_is_no_identifier_is_refused(raw: object) -> None:
    assert canonical(raw) == "FIELD_TYPE"


@pytest.mark.parametrize("raw", ["07", "INC-204", "usr_9f3", "a b", "+7", "é"])
def test_a_text_identifier_is_exact(raw: str) -> None:
    assert canonical(raw) == raw


@pytest.mark.parametrize("char", "\n\x00\u200b\u202e\ud800")
def test_what_nobody_sees_is_refused(char: str) -> None:
    assert canonical(f"7{char}") == canonical(f"7{char}", "integer") == "NON_CANONICAL_TEXT"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix the test and close ticket 7.", [7]),
        ("close ticket #7, then stop", [7]),
        ("close #7", [7]),
        ("row with id 7", [7]),
        ("the id: 7", [7]),
        ("close tickets 7, 8 and 9", [7, 8, 9]),
        ("order no. 12345", []),
        ("order number 12345", [12345]),
        ("close `7`", [7]),
        ("ticket 7's owner", [7]),
        ("ticket 17, not the 7th, nor 7.5 or 7:30", [17]),
        ("ticket 07", []),
        ("wait 5 minutes, retry 3 times", []),
        ("the ticket. 5 minutes later", []),
        ("the 7 tickets", []),
        ("ticket7 and ticket-7", []),
        ("pay $7, 7% of 7/8", []),
    ],
)
def test_integers_that_identify_are_found(text: str, expected: list[int]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("close ticket 7", ["7"]),
        ("close INC-204 and user usr_9f3", ["INC-204", "usr_9f3"]),
        ("record 3f2504e0-4f89-11d3-9a0c-0305e82c3301.", ["3f2504e0-4f89-11d3-9a0c-0305e82c3301"]),
        ("see 3f2504e0-4f89-11d3-9a0c-0305e82c3301", ["3f2504e0-4f89-11d3-9a0c-0305e82c3301"]),
        ("the user alice is away", []),
        ("the user `alice` is away", ["alice"]),
        ("ticket 7th or ticket 7.5", []),
        ("XINC-204x", []),
    ],
)
def test_text_identifiers_are_found(text: str, expected: list[str]) -> None:
    assert found(text, "text") == expected


def test_a_contract_may_name_further_nouns() -> None:
    assert found("ship parcel 7") == []
    assert found("ship parcel 7", "integer", "parcel") == [7]
    assert value_type("RecordId", {"form": "integer", "cues": ["parcel"]}) == RecordId("integer", ("parcel",))
    for bad in ({"form": "number"}, {"cues": ["Big Parcel"]}, {"cues": []}, {"min": 1}):
        with pytest.raises(ValueError):
            value_type("RecordId", bad)
