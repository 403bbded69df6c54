r"""What does a text hold that its reader does not see?

- `hidden` lists every such place; `visible` writes each of them as `\u{202E}`, and nothing else changes. A literal `\u{` in the
  text has its backslash escaped too, so no text can pass for another's rendering.
- `invisible`: format and default-ignorable characters, variation selectors, fillers. `bidi`: what reorders the line. `tag`:
  U+E0000-E007F. `control`: C0, C1, line separators, lone surrogates. `confusable`: a letter of one script inside a word of
  another (UTS 39, section 5), or a lookalike of a separator inside a word.
- Ordinary writing is not hidden: one script a word, an emoji's joiner and presentation selector, ZWNJ and ZWJ between letters
  of scripts that need them, tab, newline, CR LF.
- `refuse_unseen` is for protected text, and stricter: there no such character has a place, not even in an emoji.

    >>> visible("user\u202etxt.exe")
    'user\\u{202E}txt.exe'
    >>> [found.kind for found in hidden("p\u0430ypal")]
    ['confusable']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from cxi.errors import Code, Refused
from cxi.values.base import Span

HiddenKind: TypeAlias = Literal["invisible", "bidi", "tag", "control", "confusable"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """One place that a reader does not see as it is.

    Attributes:
        span: Where, in code points.
        kind: Which sort.
        name: The character's Unicode name; for a confusable, with what it looks like.
    """

    span: Span
    kind: HiddenKind
    name: str


# Bidirectional formatting characters (UAX 9, section 2).
_BIDI: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
# Default_Ignorable_Code_Point (DerivedCoreProperties.txt) beyond category Cf, and what is drawn as nothing: the braille blank.
_IGNORABLE: Final = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)
_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SUSPECT: Final = re.compile(r"[^\x20-\x7e\n\t]")
# Parts of an identifier are words of their own: `Иванов_data` is ordinary.
_WORD: Final = re.compile(r"[^\W_]+(?:[\u2024\u2044\u2215\uff0e\uff0f\u29f8\ua789\u2236\uff1a\u037e][^\W_]+)*")

# Letters that UTS 39's confusables.txt maps to the same skeleton as a Latin letter; the few that deceive in practice.
_LOOKALIKES: Final = MappingProxyType(
    dict(zip("аеорсухіјѕһԁԛԝѵӏАВЕЅІЈКМНОРСТУХҮԌ", "aeopcyxijshdqwvlABESIJKMHOPCTYXYG", strict=True))
    | dict(zip("οανρυιϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ", "oavpuicjABEZHIKMNOPTYXCJ", strict=True))
    | dict(zip("օսոհցզյՕՍՏԼ", "ounhgqjOUSL", strict=True))
    | dict(zip("ᎪᏴᏟᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ", "ABCEHJKLMPRSTVWZ", strict=True))
)
_SEPARATORS: Final = MappingProxyType(
    dict(zip("\u2024\u2044\u2215\uff0e\uff0f\u29f8\ua789\u2236\uff1a\u037e", ".//.//:::;", strict=True))
)
# Scripts whose ordinary spelling needs ZWJ and ZWNJ (Unicode Standard, chapters 9, 12, 13): Arabic to Indic, Mongolian.
_JOINING: Final = ((0x0600, 0x07FF), (0x08A0, 0x0DFF), (0x1800, 0x18AF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC))
_EMOJI_BEYOND_SO: Final = frozenset("‼⁉ℹ↔↕↖↗↘↙↩↪⤴⤵〰〽◽◾▪▫⬅⬆⬇")


def hidden(text: str) -> tuple[Hidden, ...]:
    """Every place of a text that its reader does not see as it is, left to right."""
    if _SUSPECT.search(text) is None:
        return ()
    found = [*_unseen(text), *(() if text.isascii() else _confusable(text))]
    return tuple(sorted(found, key=lambda item: item.span))


def visible(text: str) -> str:
    r"""The text with every hidden character written as `\u{HEX}`; equal renderings come from equal texts only."""
    marks = {at for item in hidden(text) for at in range(*item.span)}
    marks.update(match.start() for match in re.finditer(r"\\(?=u\{)", text))
    if not marks:
        return text
    cuts = sorted(marks)
    out = [text[: cuts[0]]]
    for cut, following in pairwise((*cuts, len(text))):
        out += (f"\\u{{{ord(text[cut]):X}}}", text[cut + 1 : following])
    return "".join(out)


def refuse_unseen(text: str, what: str) -> Refused | None:
    """Refuse a protected text that holds any control, format or default-ignorable character, or a lone surrogate.

    Args:
        text: The protected text.
        what: What it is, for the message.

    Returns:
        The refusal, or None where every character can be seen.
    """
    if text.isascii() and text.isprintable():
        return None
    for at, char in enumerate(text):
        if _is_unseen(char):
            return Refused.of(Code.NON_CANONICAL_TEXT, f"the {what} holds {name(char)} at position {at}")
    return None


def name(char: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`."""
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or _within(char, _IGNORABLE)


def _within(char: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    code = ord(char)
    return any(low <= code <= high for low, high in ranges)


def _unseen(text: str) -> Iterator[Hidden]:
    for match in _SUSPECT.finditer(text):
        at = match.start()
        char = text[at]
        if not _is_unseen(char) or _ordinary(text, at):
            continue
        kind: HiddenKind = "invisible"
        if char in _BIDI:
            kind = "bidi"
        elif 0xE0000 <= ord(char) <= 0xE007F:
            kind = "tag"
        elif unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            kind = "control"
        yield Hidden((at, at + 1), kind, name(char))


def _ordinary(text: str, at: int) -> bool:
    """Whether an unseen character is what plain writing has at this place."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    match char:
        case "\r":
            return after == "\n"
        case "\ufe0f" | "\ufe0e":
            return _is_emoji(before) or (bool(before) and before in "0123456789#*" and after == "\u20e3")
        case "\u200d" | "\u200c":
            if before and after and _within(before, _JOINING) and _within(after, _JOINING):
                return True
            pictured = _is_emoji(before) or (before == "\ufe0f" and _is_emoji(text[at - 2 : at - 1]))
            return char == "\u200d" and pictured and _is_emoji(after)
        case _:
            return False


def _is_emoji(char: str) -> bool:
    return bool(char) and (unicodedata.category(char) == "So" or 0x1F300 <= ord(char) <= 0x1FAFF or char in _EMOJI_BEYOND_SO)


def _confusable(text: str) -> Iterator[Hidden]:
    for match in _WORD.finditer(text):
        word = match.group()
        if word.isascii():
            continue
        latin = sum(1 for char in word if _is_latin(char))
        ascii_letters = any(char.isascii() and char.isalnum() for char in word)
        lookalikes = sum(1 for char in word if char in _LOOKALIKES)
        foreign = sum(1 for char in word if char.isalpha() and not _is_latin(char))
        for at, char in enumerate(word, match.start()):
            seen = _seen_as(char, latin=latin, foreign=foreign, lookalikes=lookalikes, beside_ascii=ascii_letters)
            if seen:
                yield Hidden((at, at + 1), "confusable", f"{name(char)}, looks like `{seen}`")


def _seen_as(char: str, *, latin: int, foreign: int, lookalikes: int, beside_ascii: bool) -> str:
    """What a character of a word is taken for, or empty where it is what it seems."""
    if char.isascii():
        # A Latin letter in a word that is mostly of another script: the same trick from the other side.
        return _TWINS.get(char, "") if lookalikes and latin < foreign else ""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char] if latin >= foreign else ""
    if char in _SEPARATORS:
        return _SEPARATORS[char] if latin else ""
    plain = unicodedata.normalize("NFKC", char)
    if len(plain) == 1 and plain.isascii() and plain.isalnum():
        code = ord(char)
        if 0x1D400 <= code <= 0x1D7FF or code == 0x212A:
            return plain
        return plain if 0xFF10 <= code <= 0xFF5A and beside_ascii else ""
    return ""


def _is_latin(char: str) -> bool:
    code = ord(char)
    return (char.isascii() and char.isalpha()) or 0xC0 <= code <= 0x24F or 0x1E00 <= code <= 0x1EFF


# From a Latin letter to the first foreign letter that looks like it.
_TWINS: Final = MappingProxyType({latin: foreign for foreign, latin in reversed(tuple(_LOOKALIKES.items()))})
