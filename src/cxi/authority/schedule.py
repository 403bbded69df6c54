"""Is a right open at this instant, and until when?

- `Hours` are wall-clock hours of named days in a named time zone. An instant is in them as a clock on the wall there says: where
  summer time ends, an hour that comes twice counts twice, and where it begins, one that is left out is not there.
- A day's hours that end before they begin (`22:00` to `06:00`) end on the next day, and belong to the day on which they begin.
- `open_span` gives the span of instants around now, or the next one, so that whoever judges later, by another clock, judges the
  same bounds. Time is a parameter; the rules of zones are the system's time zone database.

    >>> office = Hours(days=(0, 1, 2, 3, 4), start=9 * 60, end=17 * 60, zone="Europe/Berlin")
    >>> open_span((office,), 1_767_600_000.0)     # Monday 2026-01-05, 09:00 in Berlin
    Span(start=1767600000, end=1767628800)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cxi.manifest import Instant

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MIDNIGHT: Final = 24 * 60

_DAY: Final = 86_400
_HORIZONS: Final = (2, 9, 16)  # days ahead: today's hours, next week's, and those that a missing hour took away


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of some days of the week.

    Attributes:
        days: On which days they begin; 0 is Monday.
        start: The first minute of the day, from 0.
        end: The first minute that is no longer in them, up to 1440; not after `start`: of the next day.
        zone: The time zone, by its name in the IANA database: `Europe/Berlin`.
    """

    days: tuple[int, ...]
    start: int
    end: int
    zone: str

    def hold(self, second: int) -> bool:
        """Whether a second is in them."""
        local = datetime.fromtimestamp(second, ZoneInfo(self.zone))
        minute, day = local.hour * 60 + local.minute, local.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


class Span(NamedTuple):
    """From its start until before its end, in whole seconds since the epoch."""

    start: int
    end: int


def open_span(hours: tuple[Hours, ...], now: Instant) -> Span | None:
    """The span in which any of the hours hold: the one around now, or the next.

    A span that goes on for days may be given in part, but always with now, or its first instant, in it.

    Args:
        hours: At least one.
        now: Seconds since the epoch.

    Returns:
        The span; None where none begins within the next two weeks.
    """
    second = math.floor(now)
    for ahead in _HORIZONS:
        first, last = second - 2 * _DAY, second + ahead * _DAY
        found: Span | None = None
        points = sorted({first, last, *(point for one in hours for point in _changes(one, first, last))})
        for start, end in pairwise(points):
            if not any(one.hold(start) for one in hours):
                if found is not None and found.end > second:
                    return found
                found = None
            else:
                found = Span(found.start if found is not None else start, end)
        if found is not None and found.start <= second:
            return found
    return None


def _changes(hours: Hours, first: int, last: int) -> Iterator[int]:
    """Every second between two at which the answer may change: where a day, the hours, or the zone's offset begins or ends."""
    zone = ZoneInfo(hours.zone)
    day = datetime.fromtimestamp(first, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None) - timedelta(days=1)
    until = datetime.fromtimestamp(last, zone).replace(tzinfo=None) + timedelta(days=1)
    while day <= until:
        for minute in {0, hours.start, hours.end % MIDNIGHT}:
            for fold in (0, 1):
                point = int((day + timedelta(minutes=minute)).replace(tzinfo=zone, fold=fold).timestamp())
                if first < point < last:
                    yield point
        day += timedelta(days=1)
    for begin in range(first, last, _DAY):
        low, high = begin, min(begin + _DAY, last)
        before = _offset(zone, low)
        if before == _offset(zone, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        yield high


def _offset(zone: ZoneInfo, second: int) -> timedelta | None:
    return datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()
