"""Which whole words does a text hold?

- A word is what stands between blanks, without the punctuation of the sentence around it; or all of a quoted or backticked span
  on one line. What is glued to more text (`src/"tax.py"`) is one word with it, so a part of it is never found alone.
- Quotes open after a blank or opening punctuation and close before a blank or closing punctuation: `don't` opens none.
- Everything is linear in the text: closers and line ends are found once.

    >>> [(word.text, word.quoted) for word in words("Fix `my file` (see src/tax.py).")]
    [('Fix', False), ('my file', True), ('see', False), ('src/tax.py', False)]
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

QUOTES: Final = MappingProxyType(
    {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」"}  # backticks are runs, read apart
)
_MARK: Final = re.compile("`+|[\"'“”‘’«»„「」]")
_BLANK: Final = re.compile(r"\s+")
_OPENING: Final = frozenset("([{<>\"'“‘«„「`*_,;:=—–→¿¡|")
_CLOSING: Final = frozenset(")]}>\"'”’»“」`*_,;:!?…—–→|")
_LEADING: Final = frozenset("([{<>\"'`“”‘’«»„「¿¡—–…|")
_TRAILING: Final = frozenset(".,;:!?…\"'`“”‘’«»」—–|")
_BRACKETS: Final = MappingProxyType({")": "(", "]": "[", "}": "{", ">": "<"})
_POSSESSIVE: Final = ("'s", "’s")
_CLOSERS: Final = MappingProxyType({opener: closer for closer, opener in _BRACKETS.items()})
_EDGE: Final = _LEADING | _TRAILING | frozenset(_BRACKETS) | {"*"}


@dataclass(frozen=True, slots=True)
class Word:
    """One whole word of a text.

    Attributes:
        start: Where it begins, in code points.
        end: Where it ends.
        text: Its text; `source[start:end]`.
        quoted: Whether it is the content of quotes or backticks.
        ticked: Whether of backticks.
    """

    start: int
    end: int
    text: str
    quoted: bool = False
    ticked: bool = False

    def part(self, start: int, end: int) -> Word:
        """A part of it, by offsets into its text; never quoted."""
        return Word(self.start + start, self.start + end, self.text[start:end])


def words(text: str) -> Iterator[Word]:
    """Every word, left to right. A quoted span with blanks in it is one word; `unquote` takes it apart."""
    at = 0
    for start, end, mark in _quoted(text):
        yield from _plain(text, at, start - mark)
        yield Word(start, end, text[start:end], quoted=True, ticked=text[start - 1] == "`")
        at = end + mark
    yield from _plain(text, at, len(text))


def unquote(word: Word) -> Iterator[Word]:
    """The words inside a quoted one, as if they were not quoted."""
    for inner in _plain(word.text, 0, len(word.text)):
        yield Word(word.start + inner.start, word.start + inner.end, inner.text)


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether a span stands alone: no letter, digit or joining sign is glued to it."""
    return not _glued(text, start - 1, -1) and not _glued(text, end, 1)


def _glued(text: str, at: int, step: int) -> bool:
    """Whether the character at a place, seen from a span beside it, belongs to the span's own word."""
    if not 0 <= at < len(text):
        return False
    char = text[at]
    if char.isspace():
        return False
    if char.isalnum() or char in "_-/\\@#$%&+=~^" or (char == "." and step < 0):
        return True
    if char not in ".:,'’":
        return False
    # `7.5`, `a:b`, `1,000` and `don't` join; a sentence's own sign has a blank or the end behind it
    follows = text[at + step] if 0 <= at + step < len(text) else " "
    return follows.isalnum() or follows in "_-/\\"


def _quoted(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, length of a quotation mark) of each quoted span, not overlapping."""
    marks = [(match.start(), match.group()) for match in _MARK.finditer(text)]
    if not marks:
        return
    places: dict[str, list[int]] = {}
    for at, mark in marks:
        # An apostrophe inside a word closes nothing; every other mark does, and must then close well.
        if mark not in "'’" or _closes(text, at, at + 1):
            places.setdefault(mark, []).append(at)
    lines = [match.start() for match in re.finditer("\n", text)]
    done = 0
    for at, mark in marks:
        closer = mark if mark[0] == "`" else QUOTES.get(mark)
        if closer is None or at < done or not _opens(text, at):
            continue
        start = at + len(mark)
        following = places.get(closer, [])
        index = bisect_left(following, start)
        if index == len(following):
            continue
        end = following[index]
        line = bisect_left(lines, start)
        if (line < len(lines) and lines[line] < end) or end == start or not _closes(text, end, end + len(closer)):
            continue
        done = end + len(closer)
        yield start, end, len(mark)


def _opens(text: str, at: int) -> bool:
    return at == 0 or text[at - 1].isspace() or text[at - 1] in _OPENING


def _closes(text: str, at: int, after: int) -> bool:
    if at == 0 or text[at - 1].isspace():
        return False
    if after >= len(text) or text[after].isspace() or text[after] in _CLOSING:
        return True
    if text[after] == ".":
        return after + 1 >= len(text) or not (text[after + 1].isalnum() or text[after + 1] in "_-/")
    return text.startswith(_POSSESSIVE, after)


def _plain(text: str, start: int, end: int) -> Iterator[Word]:
    """The words between blanks, without the sentence's punctuation."""
    at = start
    for match in _BLANK.finditer(text, start, end):
        yield from _strip(text, at, match.start())
        at = match.end()
    yield from _strip(text, at, end)


def _strip(text: str, start: int, end: int) -> Iterator[Word]:
    if start >= end:
        return
    if text[start] not in _EDGE and text[end - 1] not in _EDGE and not text.endswith(_POSSESSIVE, start, end):  # most words
        yield Word(start, end, text[start:end])
        return
    # A bracket is the sentence's own only where its partner is not inside the word: `app/(group)/page.tsx` keeps both.
    balance = {closer: text.count(opener, start, end) - text.count(closer, start, end) for closer, opener in _BRACKETS.items()}
    while start < end:
        first, last = text[start], text[end - 1]
        if first == last == "*" and end - start > 2:
            # emphasis is around a word; a single one is a glob
            start, end = start + 1, end - 1
        elif text.endswith(_POSSESSIVE, start, end) and end - start > 2:
            end -= 2
        elif first in _CLOSERS:
            # `(a)`: both go; `(a`: the opener goes; `(a)/b`: it is the word's own
            if balance[_CLOSERS[first]] == 0 and last != _CLOSERS[first] and last not in _TRAILING:
                break
            balance[_CLOSERS[first]] -= 1
            start += 1
        elif last in _BRACKETS:
            if balance[last] >= 0:
                break
            balance[last] += 1
            end -= 1
        elif first in _LEADING:
            start += 1
        elif last == "." and _is_parent(text, start, end):
            break
        elif last in _TRAILING:
            end -= 1
        else:
            break
    if start < end:
        yield Word(start, end, text[start:end])


def _is_parent(text: str, start: int, end: int) -> bool:
    """Whether the word ends in the component `..`."""
    return text.endswith("..", start, end) and (end - start == 2 or text[end - 3] == "/")
