"""What is one run of one program, as its reader sees it?"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.shell.field import Field, Found, Hole
from cxi.effects.shell.grammar import Arguments, Grammar
from cxi.effects.shell.guarded import is_read
from cxi.effects.shell.machine import Machine
from cxi.effects.shell.redirect import open_end
from cxi.effects.shell.state import LIKELY, Node, State, Variable
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind


@dataclass(slots=True)
class Call:
    """One run.

    Attributes:
        machine, state: Where it happens.
        grammar: The program's.
        words: Its words, its name first.
        given: Its arguments, read by the grammar.
        failed: Whether something certainly went wrong, so that its status is not success.
        unsure: Whether something may have.
    """

    machine: Machine
    state: State
    grammar: Grammar
    words: list[Field]
    given: Arguments
    failed: bool = False
    unsure: bool = False

    @property
    def name(self) -> str:
        """The program's name."""
        return self.grammar.name

    def known(self, field: Field, what: str = "an argument") -> str:
        """A field whose value matters.

        Raises:
            Stop: it is not known.
        """
        if isinstance(field, Hole):
            raise Stop(KNOW, f"{what} of `{self.name}` is {field.why}", needs="write it out")
        return str(field)

    def operands(self) -> list[str]:
        """All operands, known."""
        return [self.known(field) for field in self.given.operands]

    def fact(self, name: str) -> list[str]:
        """A list from the grammar."""
        value = self.grammar.facts.get(name, [])
        items = value if isinstance(value, list) else [value]
        return [word for item in items for word in str(item).split()]

    def read(self, field: Field) -> bool:
        """A path is read, `-` being standard input; whether it is there."""
        text = self.known(field, "a file")
        if text == "-":
            return True
        end = open_end(self.state, text, mode="read")
        if end is None:
            self.failed = True
        elif end.kind == "device":
            self.unsure = True  # a folder, which most programs do not read, or a device
        return end is not None

    def write(self, field: Field, data: bytes | None, *, append: bool = False) -> None:
        """A path is written as by open(2) with O_CREAT, and O_TRUNC or O_APPEND."""
        text = self.known(field, "a file")
        before = dict(self.state.fds)
        end = open_end(self.state, text, mode="append" if append else "write")
        if end is None:
            self.failed = True
            return
        self.state.fds[-1] = end
        self.state.write(-1, data)
        self.state.fds = before

    def tree(self, path: str, *, only: Sequence[str] = ()) -> None:
        """Everything at and below a real path is read; a folder of too many entries is a pattern.

        Args:
            path: The path.
            only: Patterns of which a file's name has to match one, where there are any.
        """
        state = self.state
        node = state.look(path)
        state.read(path)
        if node.kind is not EntryKind.FOLDER:
            return
        if state.opaque:
            state.act("fs.read", _below(state.show(path)), pattern=True)
        try:
            found = state.below(path)
        except Stop:
            state.act("fs.read", _below(state.show(path)), pattern=True)
            return
        for there, inner in found:
            named = not only or any(fnmatch.fnmatchcase(posixpath.basename(there), glob) for glob in only)
            if inner.kind is EntryKind.FOLDER or (inner.kind is EntryKind.FILE and named):
                state.read(there)

    def settle(self, *, likely: bool = True) -> list[State]:
        """The way on: likely done, or not known."""
        if self.failed or self.unsure:
            self.state.write(2, None)
        # A program that complains may still end well (`rm -f`, `--ignore-fail-on-non-empty`): its status is then not known.
        self.state.status = LIKELY if likely and not self.failed and not self.unsure else None
        return [self.state]


Reader: TypeAlias = Callable[[Call], list[State]]


def _below(target: str) -> str:
    return "**" if target == "." else f"{target.rstrip('/')}/**"


def pattern_below(target: str) -> str:
    """The pattern of everything below a canonical folder."""
    return _below(target)


def shown(words: list[Field]) -> list[JsonValue]:
    """The words of an atom; what is not known of one is `…`."""
    return [f"{word.prefix}…" if isinstance(word, Hole) else str(word) for word in words]


def execute(
    state: State,
    target: str,
    words: list[Field],
    *,
    inputs: dict[str, JsonValue] | None = None,
    opaque: bool = False,
    noisy: bool = True,
) -> None:
    """A program is run: `proc.exec`. An opaque one may do anything.

    Args:
        state: Where.
        target: Its name when it is found on the system path, else its canonical path.
        words: Its words.
        inputs: Canonical paths that decide what it does, with the digests of their bytes where they are known.
        opaque: Whether only running could tell what it does.
        noisy: Whether what it prints is not known.
    """
    attributes: dict[str, JsonValue] = {"argv": shown(words), "inputs_writable": opaque}
    if inputs:
        attributes["inputs"] = inputs
    if opaque:
        changed: dict[str, JsonValue] = {
            name: variable.value for name, variable in sorted(state.variables.items()) if _is_changed(state, name, variable)
        }
        if changed:
            attributes["env"] = changed
    state.act("proc.exec", target, attributes)
    if noisy:
        state.noise()
    if opaque:
        state.take()
        state.cloud()


def _is_changed(state: State, name: str, variable: Variable) -> bool:
    return variable.exported and state.initial.get(name) != variable


def guard_environment(state: State, program: str) -> None:
    """Refuse variables that the text set and that the program reads for more than how it prints."""
    for name, variable in state.variables.items():
        if is_read(name) and _is_changed(state, name, variable):
            raise Stop(KNOW, f"`{name}` changes what `{program}` does", needs="leave the variable alone")


def input_of(state: State, text: str) -> dict[str, JsonValue]:
    """The digest of a file that decides what a program does; it is read."""
    place = state.resolve(text)
    if place.problem:
        return {}
    node: Node = state.look(place.path)
    if node.kind is EntryKind.ABSENT and state.opaque:
        state.read(place.path)
        return {state.show(place.path): None}
    if node.kind is not EntryKind.FILE:
        return {}
    state.read(place.path)
    data = state.bytes_of(node.data)
    return {state.show(place.path): None if data is None else digest_bytes(data)}


def rewritten(node: Node, data: bytes | None) -> Node:
    """The same file with other bytes."""
    return replace(node, data=data)


def several_found(fields: list[Field]) -> bool:
    """Whether more than one field came from globs, whose order locales differ on."""
    return sum(isinstance(field, Found) for field in fields) > 1
