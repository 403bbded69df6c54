"""Is this node of the kind that belongs here, and if not, what would mend it?

- A `Reader` reads what it can and keeps every problem, so that one start names them all.
- A key that nothing knows is a problem, with the nearest known one; so is an empty value, and one of another kind.
- Each method answers None after it noted a problem: the caller leaves that part out and goes on.

    >>> reader = Reader()
    >>> reader.record(read_tree("agnet: x", file="cxi.yaml"), "the configuration", {"agent"})
    mappingproxy({})
    >>> reader.problems[0].mend
    'did you mean `agent`?'
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from cxi.canonical import JsonValue
from cxi.config.yaml import Node
from cxi.errors import ConfigError, Problem

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
SERVER_NAME: Final = re.compile(r"[a-z0-9-]{1,32}")
_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})(s|m|h|d)")
_SECONDS: Final = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86400})


def nearest(word: str, known: Iterable[str]) -> str:
    """The mend for a name that nothing knows: the nearest one, or all there are."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if not names:
        return "there is none to name"
    shown = ", ".join(f"`{name}`" for name in names[:12])
    return f"one of {shown}" + (", …" if len(names) > 12 else "")


def kind_of(node: Node) -> str:
    """What a person calls a node's kind."""
    match node.value:
        case None:
            return "empty"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case tuple():
            return "a list"
        case _:
            return "a mapping"


class Reader:
    """Reads nodes and keeps every problem."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._incomplete: set[str] = set()

    def leave_incomplete(self, server: str) -> None:
        """Say that a server's tools are not known for a problem that is noted: what names one of them is no further problem."""
        self._incomplete.add(server)

    def may_have(self, name: str) -> bool:
        """Whether this may be the name of a tool (or of a field of one) of a server whose tools are not known."""
        return name.partition(".")[0] in self._incomplete

    def note(self, *problems: Problem) -> None:
        """Keep problems, each once."""
        self.problems.extend(problem for problem in problems if problem not in self.problems)

    def finish(self) -> None:
        """End the reading.

        Raises:
            ConfigError: with every problem, ordered by file and line, if there is one.
        """
        if self.problems:
            raise ConfigError(*sorted(self.problems, key=lambda problem: (problem.file, problem.line)))

    def mistyped(self, node: Node, what: str, wanted: str) -> None:
        """Note that a node is of another kind than belongs there."""
        self.note(node.problem(f"{what} is {kind_of(node)}", f"write {wanted}"))

    def record(self, node: Node, what: str, known: Collection[str], required: Collection[str] = ()) -> Mapping[str, Node] | None:
        """A mapping whose keys are known; unknown ones are noted and left out."""
        if not isinstance(node.value, Mapping):
            self.mistyped(node, what, "a mapping")
            return None
        for key in node.value:
            if key not in known:
                self.note(node.key_problem(key, f"{what} has no key `{key}`", nearest(key, known)))
        for key in required:
            if key not in node.value:
                self.note(node.problem(f"{what} lacks `{key}`", f"add `{key}:`"))
        return MappingProxyType({key: item for key, item in node.value.items() if key in known})

    def entries(self, node: Node, what: str, pattern: re.Pattern[str] | None = None) -> Mapping[str, Node] | None:
        """A mapping from names that the operator chooses, at least one."""
        if not isinstance(node.value, Mapping):
            self.mistyped(node, what, "a mapping")
            return None
        if not node.value:
            self.note(node.problem(f"{what} is empty", "name at least one, or leave the key out"))
            return None
        found: dict[str, Node] = {}
        for key, item in node.value.items():
            if pattern is not None and not pattern.fullmatch(key):
                self.note(node.key_problem(key, f"the name `{key}` in {what}", f"a name matches {pattern.pattern}"))
            else:
                found[key] = item
        return MappingProxyType(found)

    def items(self, node: Node, what: str) -> tuple[Node, ...] | None:
        """A list of at least one item."""
        if not isinstance(node.value, tuple):
            self.mistyped(node, what, "a list")
            return None
        if not node.value:
            self.note(node.problem(f"{what} is an empty list", "name at least one, or leave the key out"))
            return None
        return node.value

    def text(self, node: Node, what: str) -> str | None:
        """Text that is not empty."""
        if not isinstance(node.value, str):
            self.mistyped(node, what, "text" if not isinstance(node.value, (bool, int, float)) else "text (quote it)")
            return None
        if not node.value.strip():
            self.note(node.problem(f"{what} is empty", "write it, or leave the key out"))
            return None
        return node.value

    def texts(self, node: Node, what: str) -> tuple[str, ...] | None:
        """A list of at least one text, none twice."""
        items = self.items(node, what)
        if items is None:
            return None
        found: list[str] = []
        for item in items:
            text = self.text(item, f"an item of {what}")
            if text is None:
                continue
            if text in found:
                self.note(item.problem(f"`{text}` is there twice in {what}", "name it once"))
            found.append(text)
        return tuple(found)

    def word(self, node: Node, what: str, known: Iterable[str]) -> str | None:
        """One of the known words."""
        text = self.text(node, what)
        if text is None:
            return None
        words = tuple(known)
        if text not in words:
            self.note(node.problem(f"{what} is `{text}`", nearest(text, words)))
            return None
        return text

    def name(self, node: Node, what: str) -> str | None:
        """A name of letters, digits, `_` and `-`."""
        text = self.text(node, what)
        if text is not None and not NAME.fullmatch(text):
            self.note(node.problem(f"{what} is `{text}`", f"a name matches {NAME.pattern}"))
            return None
        return text

    def flag(self, node: Node, what: str) -> bool | None:
        """True or false."""
        if not isinstance(node.value, bool):
            self.mistyped(node, what, "true or false")
            return None
        return node.value

    def count(self, node: Node, what: str, *, most: int = 1_000_000) -> int | None:
        """A whole number from 1."""
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            self.mistyped(node, what, "a whole number")
            return None
        if not 1 <= node.value <= most:
            self.note(node.problem(f"{what} is {node.value}", f"write a number from 1 to {most}"))
            return None
        return node.value

    def duration(self, node: Node, what: str) -> float | None:
        """Seconds, from `30s`, `10m`, `1h`, `7d` or a whole number of seconds."""
        if isinstance(node.value, int) and not isinstance(node.value, bool) and node.value > 0:
            return float(node.value)
        if isinstance(node.value, str) and (match := _DURATION.fullmatch(node.value)):
            return float(int(match[1]) * _SECONDS[match[2]])
        shown = f"`{node.value}`" if isinstance(node.value, (str, int, float)) else kind_of(node)
        self.note(node.problem(f"{what} is {shown}", "write a duration: `30s`, `10m`, `1h` or `7d`"))
        return None

    def constant(self, node: Node, what: str) -> JsonValue:
        """Any JSON with no float, for constants and parameters."""
        if isinstance(node.value, float):
            self.note(node.problem(f"{what} holds the float `{node.value}`", "write a whole number, or quote it"))
            return None
        if isinstance(node.value, tuple):
            return [self.constant(item, what) for item in node.value]
        if isinstance(node.value, Mapping):
            return {key: self.constant(item, what) for key, item in node.value.items()}
        return node.value
