"""Which of a few named values is this?

- Equality is that of JSON, exact: `1`, `"1"` and `true` are three values.
- `fold: true` reads strings whatever their case; canonical is the spelling that the contract declares.
- In a text only string values are found, as whole words or phrases.

    >>> Enum(("open", "closed")).parse("Open", None).codes
    ('FIELD_TYPE',)
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cxi.canonical import JsonValue, canonicalize
from cxi.errors import Code, MalformedError, Refused
from cxi.values.base import Root, Span, Value
from cxi.values.parameter import BadParameter, Parameters
from cxi.values.word import is_whole

Member: TypeAlias = bool | int | str | None


@dataclass(frozen=True, slots=True)
class Enum:
    """One of a list of values.

    Attributes:
        values: The members.
        fold: Whether strings are read whatever their case.
    """

    values: tuple[Member, ...]
    fold: bool = False
    name: str = "Enum"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        for member in self.values:
            folds = self.fold and isinstance(member, str) and isinstance(raw, str) and _fold(member) == _fold(raw)
            if folds or (type(member) is type(raw) and member == raw):
                return Value(self.name, member, member)
        shown = ", ".join(f"`{member}`" for member in self.values[:20])
        return Refused.of(Code.FIELD_TYPE, "the value is none of the contract's", needs=f"one of: {shown}")

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        folded, places = _fold_with_places(text) if self.fold else (text, None)
        found: list[tuple[int, int, str]] = []
        for member in self.values:
            if not isinstance(member, str) or not member:
                continue
            wanted = _fold(member) if self.fold else member
            at = folded.find(wanted)
            while at >= 0:
                start, end = at, at + len(wanted)
                if places is not None:
                    start, end = places[start], places[end]
                if is_whole(text, start, end):
                    found.append((start, -end, member))
                at = folded.find(wanted, at + 1)
        done = 0
        for start, minus_end, member in sorted(found):
            if start >= done:
                done = -minus_end
                yield (start, done), Value(self.name, member, member)


def make_enum(parameters: Mapping[str, JsonValue]) -> Enum:
    """`Enum {values: [open, closed], fold: true}`.

    Raises:
        BadParameter: where `values` is missing, holds no scalars, or names one twice.
    """
    given = Parameters("Enum", parameters)
    given.only("values", "fold")
    values = parameters.get("values")
    fold = given.flag("fold")
    if not isinstance(values, list | tuple) or not values:
        raise BadParameter("`values` of type `Enum`", "write a list of the values, not empty")
    members: list[Member] = []
    seen: set[bytes] = set()
    for value in values:
        if value is not None and not isinstance(value, bool | int | str):
            raise BadParameter(f"`{value}` in `values` of type `Enum`", "write strings, integers, booleans or null")
        try:
            key = canonicalize(_fold(value) if fold and isinstance(value, str) else value)
        except MalformedError as error:
            detail = f"`values` of type `Enum`: {error.reason.detail}"
            raise BadParameter(detail, "write values that JSON can hold exactly") from None
        if key in seen:
            raise BadParameter(f"`{value}` is twice in `values` of type `Enum`", "name each value once")
        seen.add(key)
        members.append(value)
    return Enum(tuple(members), fold)


def _fold(text: str) -> str:
    return text.casefold()


def _fold_with_places(text: str) -> tuple[str, list[int] | None]:
    """The folded text, and for each of its places (and its end) the place in the text; None where they are the same."""
    if text.isascii():
        return text.lower(), None
    out: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        folded = char.casefold()
        out.append(folded)
        places.extend([at] * len(folded))
    places.append(len(text))
    return "".join(out), places
