"""Which moment, or day, does a text name?

- `form: instant` (default): RFC 3339 with an offset; canonical is UTC with `Z`, the fraction without trailing zeros.
- `form: date`: a full-date of RFC 3339; canonical is itself.
- Refused: a time without an offset, days that no month has, leap seconds (POSIX time has none), `24:00:00`, week and ordinal
  dates.
- Only whole words of these two forms are found in a text; "next Tuesday" is nobody's date.

    >>> DateTime().parse("2024-03-01T01:30:00.500+02:00", None).canonical
    '2024-02-29T23:30:00.5Z'
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final, Literal, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import Root, Span, Value
from cxi.values.parameter import Parameters
from cxi.values.word import words

DateForm: TypeAlias = Literal["instant", "date"]

MAX_LENGTH: Final = 64
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


@dataclass(frozen=True, slots=True)
class DateTime:
    """A moment in time, or a day.

    Attributes:
        form: Which.
    """

    form: DateForm = "instant"
    name: str = "DateTime"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, str) or len(raw) > MAX_LENGTH:
            return _refuse("a date or time is a short string")
        canonical = _read_date(raw) if self.form == "date" else _read_instant(raw)
        if canonical is None:
            wanted = "a day such as `2024-02-29`" if self.form == "date" else "a time such as `2024-02-29T23:30:00Z`"
            return _refuse(f"`{raw}` is no {self.form} (RFC 3339)", needs=wanted)
        return Value(self.name, canonical, canonical)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        for word in words(text):
            value = self.parse(word.text, where) if word.text[:1].isdigit() else None
            if isinstance(value, Value):
                yield (word.start, word.end), value


def make_date_time(parameters: Mapping[str, JsonValue]) -> DateTime:
    """`DateTime {form: instant|date}`.

    Raises:
        BadParameter: for anything else.
    """
    given = Parameters("DateTime", parameters)
    given.only("form")
    forms: tuple[DateForm, ...] = ("instant", "date")
    return DateTime(given.choice("form", forms))


def _read_date(raw: str) -> str | None:
    found = _DATE.fullmatch(raw)
    if found is None:
        return None
    try:
        return date(*map(int, found.groups())).isoformat()
    except ValueError:
        return None


def _read_instant(raw: str) -> str | None:
    found = _INSTANT.fullmatch(raw)
    if found is None:
        return None
    *moment, fraction, sign, hours, minutes = found.groups()
    ahead, past = int(hours or 0), int(minutes or 0)
    if ahead > 23 or past > 59:
        return None
    offset = timedelta(hours=ahead, minutes=past)
    try:
        year, month, day, hour, minute, second = map(int, moment)
        zone = timezone(-offset if sign == "-" else offset)
        utc = datetime(year, month, day, hour, minute, second, tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # an offset is whole minutes, so the fraction, exact at any length, is not touched by it
    tail = (fraction or "").rstrip("0")
    return utc.strftime("%Y").zfill(4) + utc.strftime("-%m-%dT%H:%M:%S") + (f".{tail}" if tail else "") + "Z"


def _refuse(detail: str, *, needs: str = "") -> Refused:
    return Refused.of(Code.FIELD_TYPE, detail, needs=needs)
