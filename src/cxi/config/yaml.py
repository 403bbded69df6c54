"""Which tree did this YAML text say, and on which line?

- A tree of `Node`s, each with its file and line, so that every later error can say where.
- Read as YAML 1.2's core schema: `on`, `yes` and `1:20` are text; only `true` and `false` (and their capitals) are booleans.
- Refused, because two readers could see two trees: duplicate keys, anchors, aliases and merge keys (`<<`), tags, directives,
  several documents, keys that are no text, numbers with leading zeros, control and format characters.
- Nothing is guessed: the first thing that is no YAML ends the reading, with its line.

    >>> tree = read_tree("a: {b: on}", file="x.yaml")
    >>> tree.value["a"].value["b"].value, tree.value["a"].line
    ('on', 1)
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NoReturn, TypeAlias

import yaml

from cxi.canonical import SAFE_INTEGER, JsonValue
from cxi.errors import ConfigError, Problem

Scalar: TypeAlias = bool | int | float | str | None

MAX_DEPTH: Final = 64
MAX_CHARACTERS: Final = 4 * 1024 * 1024

# YAML 1.2.2, section 10.3.2 (the core schema), for plain scalars.
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_PLAIN: Final = re.compile(r"[\t\n\r\x20-\x7e]*")
_OTHER_NUMBER: Final = re.compile(r"[-+]?0[0-9_]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the tree.

    Attributes:
        value: A scalar, a tuple of nodes, or a mapping of nodes.
        file: The file, as the operator named it.
        line: Where it begins, from 1.
        key_lines: For a mapping: the line of each key.
    """

    value: Scalar | tuple[Node, ...] | Mapping[str, Node]
    file: str
    line: int
    key_lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def problem(self, detail: str, mend: str = "") -> Problem:
        """Something wrong here."""
        return Problem(self.file, self.line, detail, mend)

    def key_problem(self, key: str, detail: str, mend: str = "") -> Problem:
        """Something wrong with one key of this mapping."""
        return Problem(self.file, self.key_lines.get(key, self.line), detail, mend)

    def to_json(self) -> JsonValue:
        """The value without its places."""
        if isinstance(self.value, Mapping):
            return {key: item.to_json() for key, item in self.value.items()}
        if isinstance(self.value, tuple):
            return [item.to_json() for item in self.value]
        return self.value


def read_tree(raw: str | bytes, *, file: str) -> Node:
    """Read one YAML document.

    Args:
        raw: UTF-8 bytes or text.
        file: What errors call it.

    Raises:
        ConfigError: with the line of the first thing that is refused.
    """
    try:
        text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(Problem(file, line, "the file is not UTF-8", "save it as UTF-8")) from None
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(Problem(file, 0, f"the file is longer than {MAX_CHARACTERS} characters"))
    _refuse_hidden(text, file)
    try:
        return _Composer(yaml.parse(text, Loader=yaml.CBaseLoader), file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        detail = " ".join(part for part in (error.context, error.problem) if part).lower() or "no YAML"
        raise ConfigError(Problem(file, mark.line + 1 if mark else 0, f"not readable as YAML: {detail}")) from None
    except yaml.YAMLError as error:
        raise ConfigError(Problem(file, 0, f"not readable as YAML: {error}")) from None


def _refuse_hidden(text: str, file: str) -> None:
    """A reader must see what the machine reads: no control, format, surrogate or private character, no odd line break."""
    if _PLAIN.fullmatch(text):
        return
    for number, line in enumerate(text.split("\n"), start=1):
        for character in line.removesuffix("\r"):
            category = unicodedata.category(character)
            if (category in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}) and character != "\t":
                shown = f"U+{ord(character):04X}"
                raise ConfigError(Problem(file, number, f"the hidden character {shown} is in the text", "remove it"))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


class _Composer:
    """Makes the tree from libyaml's events, which still tell tags, anchors and styles apart."""

    def __init__(self, events: Iterator[yaml.Event], file: str) -> None:
        self._events = events
        self._file = file

    def document(self) -> Node:
        tree: Node | None = None
        for event in self._events:
            match event:
                case yaml.DocumentStartEvent():
                    if tree is not None:
                        self._refuse(event, "a second document in one file", "keep one document a file")
                    if event.version or event.tags:
                        self._refuse(event, "a YAML directive", "remove the line that begins with `%`")
                    tree = self._node(next(self._events), 0)
                case yaml.StreamStartEvent() | yaml.StreamEndEvent() | yaml.DocumentEndEvent():
                    pass
                case _:  # INVARIANT (events): libyaml puts every node inside a document
                    raise AssertionError(event)
        if tree is None or tree.value is None:
            raise ConfigError(Problem(self._file, 1, "the file is empty", "write the configuration into it"))
        return tree

    def _refuse(self, event: yaml.Event, detail: str, mend: str) -> NoReturn:
        raise ConfigError(Problem(self._file, _line(event), detail, mend))

    def _node(self, event: yaml.Event, depth: int) -> Node:
        line = _line(event)
        if depth > MAX_DEPTH:
            self._refuse(event, f"nested deeper than {MAX_DEPTH}", "nest less")
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"the alias `*{event.anchor}`", "write the value out")
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._refuse(event, f"the anchor `&{event.anchor}`", "write the value out where it is needed")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            self._refuse(event, f"the tag `{event.tag}`", "remove the tag")
        match event:
            case yaml.ScalarEvent():
                return Node(self._scalar(event), self._file, line)
            case yaml.SequenceStartEvent():
                items: list[Node] = []
                while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                    items.append(self._node(inner, depth + 1))
                return Node(tuple(items), self._file, line)
            case yaml.MappingStartEvent():
                return self._mapping(line, depth)
            case _:  # INVARIANT (events)
                raise AssertionError(event)

    def _mapping(self, line: int, depth: int) -> Node:
        found: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1).value
            if not isinstance(key, str):
                self._refuse(event, "a key that is no text", "quote the key")
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                self._refuse(event, "the merge key `<<`", "write the keys out")
            if key in found:
                self._refuse(event, f"the key `{key}` is there twice (first on line {lines[key]})", "name each key once")
            lines[key] = _line(event)
            found[key] = self._node(next(self._events), depth + 1)
        return Node(MappingProxyType(found), self._file, line, MappingProxyType(lines))

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        text: str = event.value
        if not event.implicit[0]:  # quoted or a block scalar
            return text
        if text in _NULL:
            return None
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        if _INTEGER.fullmatch(text):
            if len(text) > 17 or abs(int(text)) > SAFE_INTEGER:
                self._refuse(event, f"the integer `{text[:40]}` is beyond 2^53", "quote it")
            return int(text)
        if _OTHER_NUMBER.fullmatch(text):
            self._refuse(event, f"`{text}` is read as a number by some and as text by others", "write it in decimal, or quote it")
        if _FLOAT.fullmatch(text):
            if not math.isfinite(number := float(text)):
                self._refuse(event, f"the number `{text[:40]}` is not finite", "write a smaller one, or quote it")
            return number
        return text
