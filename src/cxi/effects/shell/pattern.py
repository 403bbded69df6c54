"""Which names does a shell pattern match? As bash does by default: no `extglob`, ranges in ASCII order (`globasciiranges`).

- A pattern is a sequence of characters, each active or literal; `translate` makes a regular expression of it.
- A bracket expression with anything but ASCII in it, or with collating symbols, is refused: locales differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from cxi.effects.shell.stop import KNOW, Stop

Char: TypeAlias = tuple[str, bool]  # a character, and whether it is active

_CLASSES: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": " \\t\\n\\r\\f\\v",
    "blank": " \\t", "punct": "!-/:-@\\[-`{-~", "xdigit": "0-9A-Fa-f", "word": "A-Za-z0-9_",
}  # fmt: skip


def is_active(chars: Sequence[Char]) -> bool:
    """Whether it is a pattern at all."""
    return any(active and char in "*?[" for char, active in chars)


def matches(chars: Sequence[Char], text: str) -> bool:
    """Whether the whole of a text matches (not as a file's name: dots and slashes are ordinary)."""
    return compiled(tuple(chars)).fullmatch(text) is not None


@lru_cache(maxsize=512)
def compiled(chars: tuple[Char, ...]) -> re.Pattern[str]:
    """The regular expression of a pattern."""
    return re.compile(translate(chars), re.DOTALL)


def translate(chars: Sequence[Char]) -> str:
    """A pattern as a regular expression."""
    out: list[str] = []
    at = 0
    while at < len(chars):
        char, active = chars[at]
        if not active:
            out.append(re.escape(char))
            at += 1
        elif char == "*":
            while at < len(chars) and chars[at] == ("*", True):
                at += 1
            out.append(".*")
        elif char == "?":
            out.append(".")
            at += 1
        elif char == "[" and (found := _bracket(chars, at)) is not None:
            out.append(found[0])
            at = found[1]
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _bracket(chars: Sequence[Char], at: int) -> tuple[str, int] | None:
    """A bracket expression, and where it ends; None where it is none, so that the bracket is itself."""
    at += 1
    negated = False
    if at < len(chars) and chars[at] in (("!", True), ("^", True)):
        negated = True
        at += 1
    body: list[str] = []
    first = True
    while True:
        if at >= len(chars):
            return None
        char, active = chars[at]
        if char == "]" and active and not first:
            at += 1
            break
        if char == "/":
            return None
        first = False
        if char == "[" and active and at + 1 < len(chars) and chars[at + 1][0] in ":.=":
            text = "".join(one for one, _ in chars[at : at + 14])
            found = re.match(r"\[:(\w+):\]", text)
            if found is None or found[1] not in _CLASSES:
                raise Stop(KNOW, "a collating symbol in a pattern")
            body.append(_CLASSES[found[1]])
            at += found.end()
            continue
        if not char.isascii():
            raise Stop(KNOW, "a bracket expression that locales read differently")
        if at + 2 < len(chars) and chars[at + 1] == ("-", True) and chars[at + 2] != ("]", True):
            last = chars[at + 2][0]
            if last == "[" or not last.isascii() or char > last:
                raise Stop(KNOW, "a range in a pattern that is not plain")
            body.append(f"{re.escape(char)}-{re.escape(last)}")
            at += 3
            continue
        body.append(re.escape(char))
        at += 1
    return f"[{'^' if negated else ''}{''.join(body)}]", at
