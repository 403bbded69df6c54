"""Which record does an identifier name?

- `form: text` (default): a string exactly as it is, or an integer; `7` and `"7"` are two values.
- `form: integer`: an integer, or its decimal digits as a string; one value. Leading zeros, `+7`, `7.0`, `-0` and digits of
  other scripts are refused: a database may read them as 7, or as text.
- Canonical and wire are one: the string, or the integer (its digits, beyond 2^53).
- In a text an identifier follows what it identifies (`ticket 7`, `id 7`, `tickets 7, 8 and 9`), or shows itself (`#7`,
  `INC-204`, a UUID, a quoted word). It is whole: 7 is not in 17, 7.5 or 7th. The parameter `cues` names further nouns.

    >>> [value.canonical for _, value in RecordId("integer").scan("Close ticket 7, not the 17th.", None)]
    [7]
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cxi.canonical import SAFE_INTEGER, JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import Root, Span, Value
from cxi.values.hidden import refuse_unseen
from cxi.values.parameter import BadParameter, Parameters
from cxi.values.word import Word, words

IdForm: TypeAlias = Literal["text", "integer"]

MAX_ID: Final = 256
DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]{0,38}")
_NUMBERED: Final = re.compile(r"#?(?:0|[1-9][0-9]{0,38})")
_SHOWN: Final = re.compile(r"#[0-9]{1,39}|[A-Z][A-Z0-9]{1,15}-[0-9]{1,18}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_IDENTIFIER: Final = re.compile(r"#?[A-Za-z0-9](?:[A-Za-z0-9_.:/-]{0,254}[A-Za-z0-9])?")
_NOUNS: Final = (
    "account article asset bug build card case change charge client comment contract conversation customer defect document "
    "employee entry event "
    "id ids identifier incident invoice issue item job key lead member message mr no nr number object order page patient "
    "payment post pr product "
    "project pull record refund request reservation row run sample shipment story subscription task thread ticket transaction "
    "user "
)
_CUES: Final = frozenset(_NOUNS.split())
# An ordinal, a decimal, a date, a time, an amount with its unit.
_MEASURE: Final = re.compile(r"[0-9]+(?:st|nd|rd|th|[.:/,-][0-9.:/,-]*|[a-z]{1,2})")
_BETWEEN: Final = frozenset(
    {"and", "or", "&", "id", "ids", "no", "nr", "number", "numbers", "with", "is", "to", "through", "plus"}
)


@dataclass(frozen=True, slots=True)
class RecordId:
    """The identifier of a record.

    Attributes:
        form: What an integer and its digits are to each other.
        cues: Further nouns that an identifier follows, lower case, singular.
    """

    form: IdForm = "text"
    cues: tuple[str, ...] = ()
    name: str = "RecordId"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            return _refuse("an identifier is a string or an integer")
        if isinstance(raw, int):
            if abs(raw) > SAFE_INTEGER:
                return Refused.of(Code.NUMBER_NOT_EXACT, "an integer beyond 2^53", needs="send the digits as a string")
            return self._value(raw)
        unseen = refuse_unseen(raw, "identifier")
        if unseen is not None:
            return unseen
        if self.form == "text":
            if not raw or len(raw) > MAX_ID or raw != raw.strip():
                return _refuse(f"an identifier has 1 to {MAX_ID} characters, and no blanks around it")
            return self._value(raw)
        if not DECIMAL.fullmatch(raw):
            return _refuse(f"`{raw[:40]}` is no integer in its plain form", needs="send an integer such as `7`")
        return self._value(int(raw) if abs(int(raw)) <= SAFE_INTEGER else raw)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        cues = _CUES.union(self.cues)
        cued = False
        for word in words(text):
            said = word.text.lower().rstrip(":")
            found = self._identifier(word, cued=cued)
            value = self.parse(found.text, where) if found is not None else None
            if found is not None and isinstance(value, Value):
                yield (found.start, found.end), value
                continue  # "tickets 7, 8 and 9": the noun still holds
            noun = not word.quoted and (said in cues or (said.endswith("s") and said[:-1] in cues))
            cued = noun or (cued and said in _BETWEEN)
            # "the ticket. 7 days later": the sentence is over
            cued = cued and text[word.end : word.end + 1] not in (".", "!", "?", ";")

    def _value(self, canonical: int | str) -> Value:
        return Value(self.name, canonical, canonical)

    def _identifier(self, word: Word, *, cued: bool) -> Word | None:
        """The part of a word that is an identifier, by its own look or because a noun stands before it."""
        if len(word.text) > MAX_ID + 1:
            return None
        start = 1 if word.text.startswith("#") else 0
        if self.form == "integer":
            # A quoted number means itself; one that stands free needs its noun or its `#`.
            counts = bool(_NUMBERED.fullmatch(word.text)) and (cued or start == 1 or word.quoted)
        elif word.quoted:
            counts = not any(char.isspace() for char in word.text)
        else:
            named = cued and bool(_IDENTIFIER.fullmatch(word.text)) and _is_named(word.text)
            counts = named or bool(_SHOWN.fullmatch(word.text))
        return word.part(start, len(word.text)) if counts else None


def make_record_id(parameters: Mapping[str, JsonValue]) -> RecordId:
    """`RecordId {form: text|integer, cues: [parcel, …]}`.

    Raises:
        BadParameter: for anything else.
    """
    given = Parameters("RecordId", parameters)
    given.only("form", "cues")
    forms: tuple[IdForm, ...] = ("text", "integer")
    cues = given.texts("cues", ())
    for cue in cues:
        if cue != cue.lower() or any(char.isspace() for char in cue):
            raise BadParameter(f"`{cue}` is no cue", "write one word in lower case, singular")
    return RecordId(given.choice("form", forms), tuple(sorted(set(cues))))


def _is_named(text: str) -> bool:
    """Whether a word after a noun is an identifier: it has a digit, and is no ordinal, decimal, date or time."""
    if not any(char.isdigit() for char in text):
        return False
    plain = text.removeprefix("#")
    if plain.isdigit():
        return True
    return plain[0].isalpha() or bool(_SHOWN.fullmatch(plain)) or not _MEASURE.fullmatch(plain)


def _refuse(detail: str, *, needs: str = "") -> Refused:
    return Refused.of(Code.FIELD_TYPE, detail, needs=needs)
