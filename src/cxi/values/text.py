"""What of a call is only itself: text, numbers, truth values, and payloads as they came?

- `Text` is the exact string, nothing folded or stripped; only a lone surrogate is refused. What a reader may not see in it is
  the business of `cxi.values.hidden`.
- `Json` is the exact JSON, for payload and opaque leaves. Floats are allowed there, and only there: a value that holds one has
  as canonical form `{"rfc8785": its canonical text}`, so that what is hashed holds no float. INVARIANT (wrapped): an object
  that has that key alone is wrapped as well, so no two payloads share a form.
- `Integer` and `Boolean` are JSON's own, never text that looks like them.

    >>> Integer(1, 10).parse(True, None).codes
    ('FIELD_TYPE',)
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cxi.canonical import SAFE_INTEGER, JsonValue, canonicalize
from cxi.errors import Code, MalformedError, Refused
from cxi.values.base import Root, Span, Value
from cxi.values.parameter import BadParameter, Parameters
from cxi.values.record_id import DECIMAL
from cxi.values.word import words


@dataclass(frozen=True, slots=True)
class Text:
    """An exact string."""

    name: str = "Text"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, str):
            return Refused.of(Code.FIELD_TYPE, "a text is a string")
        try:
            raw.encode("utf-8")
        except UnicodeEncodeError as error:
            return Refused.of(Code.NON_CANONICAL_TEXT, f"the text holds a lone surrogate at position {error.start}")
        return Value(self.name, raw, raw)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Quoted and backticked spans."""
        for word in words(text):
            value = self.parse(word.text, where) if word.quoted else None
            if isinstance(value, Value):
                yield (word.start, word.end), value


@dataclass(frozen=True, slots=True)
class Json:
    """Any JSON, exactly."""

    name: str = "Json"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        try:
            data = canonicalize(raw, floats=True)
        except MalformedError as error:
            return Refused((error.reason,))
        # a copy, so that nobody changes what was judged
        wire, exact = _copy(raw)
        wrapped = not exact or (isinstance(wire, dict) and set(wire) == {"rfc8785"})
        return Value(self.name, {"rfc8785": data.decode("utf-8")} if wrapped else wire, wire)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Nothing: no text says where a JSON value begins and ends."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Integer:
    """A JSON integer.

    Attributes:
        min: The least, or None.
        max: The greatest, or None.
    """

    min: int | None = None
    max: int | None = None
    name: str = "Integer"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if isinstance(raw, bool) or not isinstance(raw, int):
            return Refused.of(Code.FIELD_TYPE, "an integer is a JSON integer")
        if abs(raw) > SAFE_INTEGER:
            return Refused.of(Code.NUMBER_NOT_EXACT, "an integer beyond 2^53")
        if (self.min is not None and raw < self.min) or (self.max is not None and raw > self.max):
            return Refused.of(Code.FIELD_TYPE, f"`{raw}` is not between {self.min} and {self.max}")
        return Value(self.name, raw, raw)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Whole words that are integers in plain decimal form."""
        for word in words(text):
            value = self.parse(int(word.text), where) if DECIMAL.fullmatch(word.text) else None
            if isinstance(value, Value):
                yield (word.start, word.end), value


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""

    name: str = "Boolean"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, bool):
            return Refused.of(Code.FIELD_TYPE, "a boolean is `true` or `false`")
        return Value(self.name, raw, raw)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Nothing: "true" in a sentence is seldom a value."""
        return iter(())


def make_text(parameters: Mapping[str, JsonValue]) -> Text:
    """`Text`, which has no parameters.

    Raises:
        BadParameter: for any.
    """
    Parameters("Text", parameters).only()
    return Text()


def make_json(parameters: Mapping[str, JsonValue]) -> Json:
    """`Json`, which has no parameters.

    Raises:
        BadParameter: for any.
    """
    Parameters("Json", parameters).only()
    return Json()


def make_integer(parameters: Mapping[str, JsonValue]) -> Integer:
    """`Integer {min: 1, max: 100}`.

    Raises:
        BadParameter: for anything else, or where nothing lies between them.
    """
    given = Parameters("Integer", parameters)
    given.only("min", "max")
    low, high = given.integer("min"), given.integer("max")
    if low is not None and high is not None and low > high:
        raise BadParameter(f"`min: {low}` of type `Integer` is above `max: {high}`", "swap them")
    return Integer(low, high)


def make_boolean(parameters: Mapping[str, JsonValue]) -> Boolean:
    """`Boolean`, which has no parameters.

    Raises:
        BadParameter: for any.
    """
    Parameters("Boolean", parameters).only()
    return Boolean()


def _copy(value: JsonValue) -> tuple[JsonValue, bool]:
    """A deep copy, and whether it holds no float."""
    if isinstance(value, Mapping):
        copied = {str(key): _copy(item) for key, item in value.items()}
        return {key: item for key, (item, _) in copied.items()}, all(exact for _, exact in copied.values())
    if isinstance(value, list):
        items = [_copy(item) for item in value]
        return [item for item, _ in items], all(exact for _, exact in items)
    return value, not isinstance(value, float)
