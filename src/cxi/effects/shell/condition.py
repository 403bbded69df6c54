"""Is a test true? 0, 1, 2 for an error; None where it is not known.

- `[[ x -eq y ]]` and `[[ -v x ]]` evaluate their words as arithmetic, which can run commands: plain numbers and names only.
- `test` and `[` do not, but for `-v`.
- What a program may have changed is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cxi.effects.shell.expand import Runner, pattern, single
from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.pattern import compiled, is_active
from cxi.effects.shell.state import State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.syntax import Both, Condition, Not, Test
from cxi.values.base import EntryKind

_NUMBER: Final = re.compile(r"\s*[-+]?\d{1,18}\s*")
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = MappingProxyType(
    {
        "-eq": lambda a, b: a == b,
        "-ne": lambda a, b: a != b,
        "-lt": lambda a, b: a < b,
        "-le": lambda a, b: a <= b,
        "-gt": lambda a, b: a > b,
        "-ge": lambda a, b: a >= b,
    }
)
_FILES: Final = frozenset(f"-{letter}" for letter in "abcdefghkprsuwxGLNOS")


def check(runner: Runner, state: State, condition: Condition) -> int | None:
    """`[[ … ]]`."""
    match condition:
        case Not():
            inner = check(runner, state, condition.inner)
            return None if inner is None else int(inner == 0)
        case Both():
            left = check(runner, state, condition.left)
            if left is not None and (left == 0) == (condition.op == "||"):
                return left
            if left is None:
                # Whether the other side is evaluated is not known; it must do nothing.
                before = (len(state.acts), dict(state.disk), dict(state.variables))
                right = check(runner, state, condition.right)
                if before != (len(state.acts), state.disk, state.variables):
                    raise Stop(KNOW, "a side of `[[ ]]` that may not be evaluated does something")
                return right if right is not None and (right == 0) == (condition.op == "||") else None
            return check(runner, state, condition.right)
        case Test():
            return _double(runner, state, condition)


def _double(runner: Runner, state: State, test_: Test) -> int | None:
    op = test_.op
    words = [single(runner, state, word) for word in test_.words[:1]]
    if len(test_.words) == 1:
        if op == "-v":
            word = words[0]
            if isinstance(word, Hole) or not re.fullmatch(r"[A-Za-z_]\w*", word):
                raise Stop(KNOW, "`-v` of what is no plain name: it could run a command")
            return _is_set(state, word)
        return _unary(state, op, words[0])
    left = words[0]
    if op in ("=", "==", "!="):
        chars = pattern_or_hole(runner, state, test_)
        if isinstance(left, Hole) or chars is None:
            return None
        matched = compiled(chars).fullmatch(left) is not None if is_active(chars) else left == "".join(c for c, _ in chars)
        return int(matched == (op == "!="))
    right = single(runner, state, test_.words[1])
    if op == "=~":
        return None
    if op in _COMPARE:
        for word in (left, right):
            if isinstance(word, Hole) or not _PLAIN.fullmatch(word):
                if word == "":
                    continue
                raise Stop(KNOW, "a comparison of what is no plain number: `[[ ]]` could run a command in it", needs="use `[ ]`")
        return int(not _COMPARE[op](int(str(left) or "0"), int(str(right) or "0")))
    return _binary(state, op, left, right)


def pattern_or_hole(runner: Runner, state: State, test_: Test) -> tuple[tuple[str, bool], ...] | None:
    """The right side as a pattern; None where it is not known."""
    if isinstance(single(runner, state, test_.words[1]), Hole):
        return None
    return pattern(runner, state, test_.words[1])


def test(state: State, words: list[Field]) -> int | None:
    """`test` and `[`, by the number of words (POSIX); more than four are refused."""
    if any(isinstance(word, Hole) and word.many for word in words):
        # An operator could come out of it, and `-v` could run a command.
        raise Stop(KNOW, "`[` with any number of words", needs="quote them")
    match words:
        case []:
            return 1
        case [one]:
            return _unary(state, "-n", one)
        case ["!", one]:
            return _not(_unary(state, "-n", one))
        case [op, one]:
            return _single(state, op, one)
        case ["!", op, one] if not _is_binary(op):
            return _not(_single(state, op, one))
        case [left, op, right]:
            if op in ("-a", "-o"):
                raise Stop(KNOW, "`-a` and `-o` in `[`", needs="use `&&` and `||`")
            if isinstance(op, Hole):
                raise Stop(KNOW, "an operator that is not known")
            return _binary(state, str(op), left, right)
        case ["!", left, op, right] if _is_binary(op):
            return _not(_binary(state, str(op), left, right))
    raise Stop(KNOW, "a test of many words", needs="use `[[ ]]`, or several tests")


def _is_binary(op: Field) -> bool:
    return op in ("=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", *_COMPARE)


def _not(status: int | None) -> int | None:
    return status if status is None or status == 2 else int(status == 0)


def _single(state: State, op: Field, word: Field) -> int | None:
    if isinstance(op, Hole):
        raise Stop(KNOW, "an operator that is not known: it could run a command")
    if op == "-v":
        if isinstance(word, Hole) or not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise Stop(KNOW, "`-v` of what is no plain name: it could run a command")
        return _is_set(state, word)
    if op in _COMPARE or op in ("-nt", "-ot", "-ef"):
        return 2
    if op in ("-z", "-n", "-t", "-o", "-R") or op in _FILES:
        return _unary(state, op, word)
    if re.fullmatch(r"-[A-Za-z]", op):
        raise Stop(KNOW, f"`{op}` is no test that is known")
    return 2  # an error, and nothing more


def _is_set(state: State, name: str) -> int | None:
    if name in state.variables:
        return 0
    return 1 if state.closed_world else None


def _unary(state: State, op: str, word: Field) -> int | None:
    if op in ("-z", "-n"):
        if isinstance(word, Hole):
            return (1 if op == "-z" else 0) if word.prefix else None
        return int((word == "") != (op == "-z"))
    if op in _FILES:
        return None if isinstance(word, Hole) else _file(state, op, word)
    return None


def _file(state: State, op: str, text: str) -> int | None:
    place = state.resolve(text, follow=op not in ("-h", "-L"))
    kind = EntryKind.ABSENT if place.problem else state.look(place.path).kind
    if text.startswith(("/dev/fd/", "/dev/std", "/proc/")) or kind is EntryKind.OTHER:
        return None
    if state.opaque:
        return None
    if kind is EntryKind.ABSENT:
        return 1
    match op:
        case "-e" | "-a":
            return 0
        case "-f":
            return int(kind is not EntryKind.FILE)
        case "-d":
            return int(kind is not EntryKind.FOLDER)
        case "-h" | "-L":
            return int(kind is not EntryKind.LINK)
        case "-s" if kind is EntryKind.FILE:
            data = state.bytes_of(state.look(place.path).data)
            return None if data is None else int(not data)
        case "-b" | "-c" | "-p" | "-S":
            return 1
        case _:
            return None


def _binary(state: State, op: str, left: Field, right: Field) -> int | None:
    if op in ("-nt", "-ot", "-ef", "<", ">"):
        return None
    if op in ("=", "==", "!="):
        if isinstance(left, Hole) or isinstance(right, Hole):
            return None
        return int((left == right) == (op == "!="))
    if op in _COMPARE:
        if isinstance(left, Hole) or isinstance(right, Hole):
            return None
        if not _NUMBER.fullmatch(left) or not _NUMBER.fullmatch(right):
            return 2
        return int(not _COMPARE[op](int(left), int(right)))
    del state
    raise Stop(KNOW, f"`{op}` is no test that is known")
