"""Wall-clock hours in named time zones, across the days on which clocks change."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from cxi.authority.schedule import DAYS, Hours, open_span

WEEK = tuple(range(len(DAYS)))
OFFICE = Hours((0, 1, 2, 3, 4), 9 * 60, 17 * 60, "Europe/Berlin")


def at(text: str, zone: str = "Europe/Berlin") -> float:
    """An instant of a wall clock; `~` behind it means the second of two."""
    return datetime.fromisoformat(text.rstrip("~")).replace(tzinfo=ZoneInfo(zone), fold=int(text.endswith("~"))).timestamp()


@pytest.mark.parametrize(
    ("now", "start", "end"),
    [
        ("2026-01-05T09:00", "2026-01-05T09:00", "2026-01-05T17:00"),
        ("2026-01-05T16:59:59", "2026-01-05T09:00", "2026-01-05T17:00"),
        ("2026-01-05T08:59:59", "2026-01-05T09:00", "2026-01-05T17:00"),
        ("2026-01-05T17:00", "2026-01-06T09:00", "2026-01-06T17:00"),
        ("2026-01-09T17:00", "2026-01-12T09:00", "2026-01-12T17:00"),
        ("2026-07-06T12:00", "2026-07-06T09:00", "2026-07-06T17:00"),
    ],
)
def test_office_hours_are_those_of_the_wall_clock(now: str, start: str, end: str) -> None:
    assert open_span((OFFICE,), at(now)) == (at(start), at(end))


def test_hours_over_midnight_belong_to_the_day_on_which_they_begin() -> None:
    night = Hours((4,), 22 * 60, 6 * 60, "Europe/Berlin")
    friday = (at("2026-01-09T22:00"), at("2026-01-10T06:00"))
    for now in ("2026-01-09T22:00", "2026-01-10T05:59", "2026-01-09T05:00"):
        assert open_span((night,), at(now)) == friday
    assert open_span((night,), at("2026-01-10T06:00")) == (at("2026-01-16T22:00"), at("2026-01-17T06:00"))


def test_an_hour_that_comes_twice_counts_twice() -> None:
    early = Hours(WEEK, 2 * 60, 3 * 60, "Europe/Berlin")  # 2026-10-25: 03:00 becomes 02:00
    span = open_span((early,), at("2026-10-25T00:00"))
    assert span is not None
    assert span.end - span.start == 2 * 3600
    half = Hours(WEEK, 2 * 60, 2 * 60 + 30, "Europe/Berlin")
    first, second = at("2026-10-25T02:00"), at("2026-10-25T02:00~")
    assert open_span((half,), first) == (first, first + 1800)
    assert open_span((half,), first + 1800) == (second, second + 1800)


def test_an_hour_that_is_left_out_is_not_there() -> None:
    half = Hours((6,), 2 * 60, 2 * 60 + 30, "Europe/Berlin")  # Sunday 2026-03-29: 02:00 becomes 03:00
    assert open_span((half,), at("2026-03-29T00:00")) == (at("2026-04-05T02:00"), at("2026-04-05T02:30"))
    cut = Hours((6,), 60, 2 * 60 + 30, "Europe/Berlin")
    span = open_span((cut,), at("2026-03-29T01:30"))
    assert span is not None
    assert span.end - span.start == 3600


def test_several_hours_are_one_where_they_touch() -> None:
    morning, noon = Hours(WEEK, 8 * 60, 12 * 60, "UTC"), Hours(WEEK, 12 * 60, 14 * 60, "UTC")
    assert open_span((morning, noon), at("2026-01-05T13:00", "UTC")) == (
        at("2026-01-05T08:00", "UTC"),
        at("2026-01-05T14:00", "UTC"),
    )


def test_hours_of_every_day_hold_always() -> None:
    always = Hours(WEEK, 0, 1440, "America/New_York")
    now = at("2026-11-01T01:30", "America/New_York")
    span = open_span((always,), now)
    assert span is not None
    assert span.start <= now < span.end


def test_a_part_of_a_second_is_in_its_second() -> None:
    span = open_span((OFFICE,), at("2026-01-05T16:59:59") + 0.999)
    assert span == (at("2026-01-05T09:00"), at("2026-01-05T17:00"))
