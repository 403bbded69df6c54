"""How much does a call take: how many items of a list, which sum of an amount?

- Read from what the server is sent, or from what an adapter read out of a payload; never from a float.
- An amount is a whole number, or decimal digits as text, in the unit of the limit: `1250`, `"12.50"`, `"12.50 EUR"`. It counts in
  the smallest steps that the limit has (its `scale`), exactly; one that is finer, negative or of another unit is refused.
- Where the limit has a unit, each amount says it too, or a field beside it does (`currency`).

    >>> read_amount("12.50 EUR", scale=2, unit="EUR", where="amount")
    1250
    >>> read_amount(12.5, scale=2, unit="", where="amount").codes
    ('NUMBER_NOT_EXACT',)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused

UNIT: Final = re.compile(r"[A-Z][A-Z0-9]{1,9}")
MAX_SCALE: Final = 9

_AMOUNT: Final = re.compile(r"(?:([A-Z][A-Z0-9]{1,9}) )?(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,18}))?(?: ([A-Z][A-Z0-9]{1,9}))?")
_ITEMS: Final = "[]"


def read_amount(raw: JsonValue, *, scale: int, unit: str, where: str, said: bool = False) -> int | Refused:
    """An amount in the smallest steps of a limit.

    Args:
        raw: A whole number, or its digits as text.
        scale: How many digits after the point the limit's steps have.
        unit: The limit's unit, or empty.
        where: The field, for the refusal.
        said: Whether another field says that the unit is the limit's.
    """
    if isinstance(raw, float):
        return Refused.of(Code.NUMBER_NOT_EXACT, "an amount that is summed is a float", where=where)
    if isinstance(raw, bool) or not isinstance(raw, int | str):
        return Refused.of(Code.FIELD_TYPE, "an amount that is summed is a whole number, or decimal digits as text", where=where)
    match = _AMOUNT.fullmatch(str(raw)) if isinstance(raw, str) or raw >= 0 else None
    if match is None or (match[1] and match[4]):
        return Refused.of(Code.FIELD_TYPE, "it is no plain amount that is not negative", where=where)
    named = match[1] or match[4] or ""
    if named != unit and (named or not said):
        wanted = f"`{unit}`" if unit else "no unit"
        return Refused.of(Code.FIELD_TYPE, f"the amount has the unit `{named}`, and the limit has {wanted}", where=where)
    digits = (match[3] or "").ljust(scale, "0")
    if digits[scale:].strip("0"):
        return Refused.of(Code.NUMBER_NOT_EXACT, f"the amount has more than {scale} digits after its point", where=where)
    return int(match[2] + digits[:scale])


def values_at(value: JsonValue, path: str, *, optional: bool = False) -> tuple[JsonValue, ...] | None:
    """Every value at a field path (`rows[].amount`), in order.

    Args:
        value: What a call's arguments are.
        path: The path.
        optional: Whether a value that is not there is left out.

    Returns:
        The values; None where the path cannot be followed, or one is not there that must be.
    """
    found: list[JsonValue] = [value]
    for step in (step for part in path.split(".") for step in _steps(part)):
        following: list[JsonValue] = []
        for item in found:
            if step == _ITEMS:
                if not isinstance(item, list | tuple):
                    return None
                following.extend(item)
            elif not isinstance(item, Mapping):
                return None
            elif item.get(step) is not None:
                following.append(item[step])
            elif not optional:
                return None
        found = following
    return tuple(found)


def _steps(part: str) -> Iterator[str]:
    name = part.partition(_ITEMS)[0]
    if name:
        yield name
    yield from [_ITEMS] * part.count(_ITEMS)
