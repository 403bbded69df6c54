"""What number does an expression give? Integers of 64 bits, by bash's rules; or None where it is not known.

- A variable counts only where its value is a plain decimal number: bash evaluates any other text again, and runs commands in it.
- Assignments (`i++`, `x = 3`, `x += 1`) are made.
"""

from __future__ import annotations

import re
from typing import Final

from cxi.effects.shell.state import State
from cxi.effects.shell.stop import KNOW, Stop

_TOKEN: Final = re.compile(
    r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*|[0-9#?])\}?|(\*\*|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!&|^~?:,()]))"
)
_NUMBER: Final = re.compile(r"\s*(-?(?:0|[1-9][0-9]{0,17}))\s*")
_RANK: Final = {
    ",": 1, "?": 3, "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, ">": 10, "<=": 10, ">=": 10,
    "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13, "**": 14,
}  # fmt: skip
_ASSIGNS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})


def compute(state: State, text: str) -> int | None:
    """The value of an expression.

    Raises:
        Stop: it is not read, or is none.
    """
    return _Expression(state, text).whole()


class _Expression:
    def __init__(self, state: State, text: str) -> None:
        self.state = state
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise Stop(KNOW, "arithmetic that is not plain")
            number, name, operator = found.groups()
            if number is not None:
                if len(number) > 1 and number[0] == "0":
                    raise Stop(KNOW, "an octal number")
                self.tokens.append(("number", number))
            elif name is not None:
                raw = found.group().strip()
                if raw.startswith("$") != (raw.startswith(("${", "$"))) or ("{" in raw) != ("}" in raw):
                    raise Stop(KNOW, "arithmetic that is not plain")
                if not raw.startswith("$") and "{" in raw:
                    raise Stop(KNOW, "arithmetic that is not plain")
                self.tokens.append(("value" if raw.startswith("$") else "name", name))
            else:
                self.tokens.append(("op", operator))
            at = found.end()
        if len(self.tokens) > 500:
            raise Stop(KNOW, "arithmetic of too many parts")
        self.at = 0

    def whole(self) -> int | None:
        if not self.tokens:
            return 0
        value = self.expression(0, 0)
        if self.at < len(self.tokens):
            raise Stop(KNOW, "arithmetic that is not plain")
        return value

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] == "op" else ""

    def expression(self, rank: int, depth: int) -> int | None:
        if depth > 50:
            raise Stop(KNOW, "arithmetic that is nested too deeply")
        left = self.operand(depth)
        while True:
            op = self.peek()
            if op == "?" or op in ("&&", "||") or op == ":":
                if op == ":" or _RANK[op] < rank:
                    return left
                # The other side may not be evaluated, and may assign: only plain ones are read.
                self.at += 1
                right = self.pure(_RANK[op] + 1 if op != "?" else 2, depth)
                if op == "?":
                    if self.peek() != ":":
                        raise Stop(KNOW, "arithmetic that is not plain")
                    self.at += 1
                    other = self.pure(3, depth)
                    left = None if left is None else right if left else other
                elif left is not None and bool(left) == (op == "||"):
                    left = int(op == "||")
                else:
                    left = None if left is None or right is None else int(bool(right))
                continue
            if op not in _RANK or _RANK[op] < rank:
                return left
            self.at += 1
            right = self.expression(_RANK[op] + (op != "**"), depth + 1)
            left = _apply(op, left, right)

    def pure(self, rank: int, depth: int) -> int | None:
        start = self.at
        value = self.expression(rank, depth + 1)
        if any(kind == "op" and (op in _ASSIGNS or op in ("++", "--")) for kind, op in self.tokens[start : self.at]):
            raise Stop(KNOW, "an assignment that may not happen")
        return value

    def operand(self, depth: int) -> int | None:
        if self.at >= len(self.tokens):
            raise Stop(KNOW, "arithmetic that is not plain")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _wrap(int(text))
        if kind == "value":
            return self.value(text)
        if kind == "name":
            return self.named(text, depth)
        if text == "(":
            value = self.expression(0, depth + 1)
            if self.peek() != ")":
                raise Stop(KNOW, "arithmetic that is not plain")
            self.at += 1
            return value
        if text in ("++", "--"):
            if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
                raise Stop(KNOW, "arithmetic that is not plain")
            name = self.tokens[self.at][1]
            self.at += 1
            return self.assign(name, _apply(text[0], self.value(name), 1))
        if text in ("-", "+", "!", "~"):
            inner = self.expression(15, depth + 1)
            if inner is None:
                return None
            return {"-": _wrap(-inner), "+": inner, "!": int(not inner), "~": ~inner}[text]
        raise Stop(KNOW, "arithmetic that is not plain")

    def named(self, name: str, depth: int) -> int | None:
        op = self.peek()
        if op in _ASSIGNS:
            self.at += 1
            right = self.expression(2, depth + 1)
            return self.assign(name, right if op == "=" else _apply(op[:-1], self.value(name), right))
        if op in ("++", "--"):
            self.at += 1
            before = self.value(name)
            self.assign(name, _apply(op[0], before, 1))
            return before
        return self.value(name)

    def value(self, name: str) -> int | None:
        from cxi.effects.shell.expand import parameter  # noqa: PLC0415 - expansion computes, and computing expands

        text = parameter(self.state, name)
        if text is None:
            raise Stop(KNOW, f"arithmetic with `{name}`, whose value is not known: it could run a command")
        if text == "":
            return 0
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise Stop(KNOW, f"arithmetic with `{name}`, which is no plain number: it could run a command")
        return int(found[1])

    def assign(self, name: str, value: int | None) -> int | None:
        self.state.assign(name, None if value is None else str(value))
        return value


def _apply(op: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    match op:
        case "+":
            return _wrap(left + right)
        case "-":
            return _wrap(left - right)
        case "*":
            return _wrap(left * right)
        case "/" | "%":
            if right == 0:
                raise Stop(KNOW, "a division by zero")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if op == "/" else left - quotient * right
        case "**":
            if right < 0 or right > 64:
                raise Stop(KNOW, "a power that is not plain")
            return _wrap(left**right)
        case "<<" | ">>":
            if not 0 <= right < 64:
                raise Stop(KNOW, "a shift that is not plain")
            return _wrap(left << right) if op == "<<" else left >> right
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case ",":
            return right
        case _:
            pass
    return int({"==": left == right, "!=": left != right, "<": left < right, ">": left > right, "<=": left <= right,
                ">=": left >= right}[op])  # fmt: skip


def _wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
