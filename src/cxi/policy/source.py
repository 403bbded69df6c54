"""Where does each policy stand in its file, exactly?

- A file is cut at the `;` that end its policies; strings and comments are read as Cedar's lexer reads them.
- The cut is checked against Cedar's own parser by `cxi.policy.registry`: as many policies, in the same order.
- Text that a reader cannot see (format, bidirectional, tag and filler characters, escaped or not) is found here, refused there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n\r]*)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<end>;)
      | (?P<other>[^\s";/]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_UNUSUAL: Final = re.compile(r"[^\n\r\t -~]")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2}))")
# Letters and marks that show as nothing although their category is no format character.
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800")


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A file of policies, read by the edge.

    Attributes:
        file: Its name, as the operator wrote it.
        text: Its exact text.
    """

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One policy as it stands in its file.

    Attributes:
        text: From its first annotation or word to its `;`.
        line: The line of its first character, from 1.
        ended: Whether a `;` ends it; what is left at the end of a file has none.
    """

    text: str
    line: int
    ended: bool


def cut(text: str) -> tuple[Piece, ...]:
    """The policies of a file, in order; comments and space between them belong to none."""
    pieces: list[Piece] = []
    start: int | None = None
    line, counted, stop = 1, 0, 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("space", "comment"):
            continue
        if start is None:
            start = token.start()
            line, counted = line + text.count("\n", counted, start), start
        stop = token.end()
        if token.lastgroup == "end":
            pieces.append(Piece(text[start:stop], line, ended=True))
            start = None
    if start is not None:
        pieces.append(Piece(text[start:stop], line, ended=False))
    return tuple(pieces)


def hidden(char: str) -> bool:
    """Whether a reader would not see the character, or would see others in another order for it."""
    if char in "\n\r\t" or (char.isascii() and char.isprintable()):
        return False
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return True
    return char in _FILLERS or "\ufe00" <= char <= "\ufe0f" or "\U000e0000" <= char <= "\U000e0fff"


def hidden_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, `U+202E`) of every hidden character, and of every escape that writes one."""
    for found in _UNUSUAL.finditer(text):
        if hidden(found[0]):
            yield text.count("\n", 0, found.start()) + 1, f"U+{ord(found[0]):04X}"
    for escape in _ESCAPE.finditer(text):
        point = int(escape[1] or escape[2], 16)
        if point <= 0x10FFFF and hidden(chr(point)):
            yield text.count("\n", 0, escape.start()) + 1, f"U+{point:04X} (escaped)"
