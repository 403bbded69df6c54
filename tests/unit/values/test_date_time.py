"""One moment has one form; what is no moment is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.date_time import DateForm, DateTime
from os_view import NOWHERE


def canonical(raw: object, form: DateForm = "instant") -> object:
    found = DateTime(form).parse(raw, NOWHERE)  # type: ignore[arg-type]
    return found.codes[0] if isinstance(found, Refused) else found.canonical


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("2024-02-29T23:30:00Z", "2024-02-29T23:30:00Z"),
        ("2024-02-29t23:30:00z", "2024-02-29T23:30:00Z"),
        ("2024-03-01T01:30:00+02:00", "2024-02-29T23:30:00Z"),
        ("2024-02-29T18:00:00-05:30", "2024-02-29T23:30:00Z"),
        ("2024-02-29T23:30:00-00:00", "2024-02-29T23:30:00Z"),
        ("2024-02-29T23:30:00.000Z", "2024-02-29T23:30:00Z"),
        ("2024-02-29T23:30:00.123456789Z", "2024-02-29T23:30:00.123456789Z"),
        ("2024-02-29T23:30:00.10Z", "2024-02-29T23:30:00.1Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_every_spelling_of_a_moment_has_one_form(raw: str, expected: str) -> None:
    assert canonical(raw) == expected


@pytest.mark.parametrize(
    "raw",
    ["", "2024-02-29", "2024-02-29T23:30:00", "2024-02-29 23:30:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
     "2024-04-31T00:00:00Z",
     "2024-01-01T24:00:00Z", "2024-01-01T23:59:60Z", "2016-12-31T23:59:60Z", "2024-01-01T23:60:00Z", "2024-01-01T00:00Z",
     "2024-01-01T00:00:00+24:00",
     "2024-01-01T00:00:00+02", "2024-01-01T00:00:00+0200", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z",
     "2024-01-01T00:00:00.1234567890Z",
     "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2024-W09-4T00:00:00Z",
     "２０２４-01-01T00:00:00Z",
     "2024-01-01T00:00:00Z\n", "2024-01-01T00:00:00 Z", "20240101T000000Z", "now", 1700000000, None],
)  # fmt: skip
def test_what_is_no_moment_is_refused(raw: object) -> None:
    assert canonical(raw) == "FIELD_TYPE"


@given(st.datetimes(datetime.fromisoformat("0002-01-01"), datetime.fromisoformat("9998-01-01")), st.integers(-1439, 1439))
def test_a_moment_is_what_the_standard_library_reads(moment: datetime, minutes: int) -> None:
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    read = canonical(local.isoformat())
    assert isinstance(read, str)
    assert datetime.fromisoformat(read) == local
    assert read.endswith("Z")
    assert canonical(read) == read
    assert canonical(local.astimezone(UTC).isoformat()) == read


@pytest.mark.parametrize(("raw", "expected"), [("2024-02-29", "2024-02-29"), ("0001-01-01", "0001-01-01")])
def test_a_day_is_itself(raw: str, expected: str) -> None:
    assert canonical(raw, "date") == expected


@pytest.mark.parametrize(
    "raw",
    [
        "2023-02-29",
        "2024-2-29",
        "2024-00-10",
        "0000-01-01",
        "24-02-29",
        "2024-02-29T00:00:00Z",
        "2024/02/29",
        "20240229",
        "２０２４-02-29",
        20240229,
    ],
)
def test_what_is_no_day_is_refused(raw: object) -> None:
    assert canonical(raw, "date") == "FIELD_TYPE"


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("date", "due on 2024-02-29, or 2024-03-01.", ["2024-02-29", "2024-03-01"]),
        ("date", "at 2024-02-29T00:00:00Z, v2024-02-29, 2024-02-29-1, 2024-02-30, tomorrow", []),
        ("instant", "at 2024-03-01T01:30:00+02:00.", ["2024-02-29T23:30:00Z"]),
        ("instant", "on 2024-02-29 at 23:30", []),
    ],
)
def test_dates_in_a_request_are_found_whole(form: DateForm, text: str, expected: list[str]) -> None:
    assert [value.canonical for _, value in DateTime(form).scan(text, NOWHERE)] == expected


def test_parameters_are_read_strictly() -> None:
    assert value_type("DateTime", {"form": "date"}) == DateTime("date")
    with pytest.raises(ValueError):
        value_type("DateTime", {"form": "time"})
