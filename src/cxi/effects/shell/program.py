"""Which program is this, and who knows what it does?

- A name without a slash is looked up on the system path. Other folders of the caller's `PATH` are looked into first.
- A program in a system folder is known by its name; its grammar reads its arguments, and its reader says what it does.
- Any other program is `proc.exec` of its path: only running could tell. One without a grammar is refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cxi.effects.place import join
from cxi.effects.shell import archive, files, gitline, network, opaque, roles, scripts, search, wrappers
from cxi.effects.shell.call import Call, Reader, execute, guard_environment, input_of
from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.grammar import Arguments, Grammar, grammars, parse
from cxi.effects.shell.machine import Machine
from cxi.effects.shell.state import ABSENT, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

SYSTEM: Final = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"})

READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        **{name: getattr(roles, name) for name in ("roles", "prints", "sequence", "named", "diff")},
        **{
            name: getattr(files, name)
            for name in ("cat", "tee", "mkdir", "rmdir", "rm", "touch", "chmod", "copy", "move", "link")
        },
        **{name: getattr(files, name) for name in ("install", "truncate", "dd", "mktemp")},
        **{name: getattr(scripts, name) for name in ("sed", "awk")},
        **{name: getattr(search, name) for name in ("find", "ls")},
        **{name: getattr(wrappers, name) for name in ("env", "wrap", "xargs", "shell")},
        **{name: getattr(opaque, name) for name in ("python", "runs", "make", "pip", "npm")},
        **{name: getattr(network, name) for name in ("curl", "wget")},
        **{name: getattr(archive, name) for name in ("tar", "unzip", "zipped", "gzip")},
        "git": gitline.git,
    }
)


def start(machine: Machine, state: State, words: list[Field]) -> list[State]:
    """Run a program by its words."""
    name = str(words[0])
    if not name:
        state.status = 127
        return [state]
    if "/" in name:
        folder, base = posixpath.split(posixpath.normpath(name if name.startswith("/") else f"{state.cwd}/{name}"))
        if folder not in SYSTEM:
            return _own(state, name, words)
        name = base
    else:
        own = _looked_up(state, name)
        if own is not None:
            return _own(state, own, words)
    grammar = grammars().get(name)
    if grammar is None:
        raise Stop(KNOW, f"there is no grammar for `{name}`", needs="use a program that has one, or an approved script")
    reader = READERS[grammar.does]
    if grammar.facts.get("opaque") is not True:
        guard_environment(state, name)
    given = Arguments((), tuple(words[1:])) if grammar.facts.get("raw") is True else _parse(state, grammar, words)
    for option, value in given.options:
        if isinstance(value, Hole) and value.many:
            raise Stop(KNOW, f"the value of `{option}` is {value.why}, any number of words", needs="quote it")
    return reader(Call(machine, state, grammar, words, given))


def _parse(state: State, grammar: Grammar, words: list[Field]) -> Arguments:
    posix = state.closed_world and "POSIXLY_CORRECT" in state.variables
    rest = list(words[1:])
    if grammar.facts.get("modes") is True:
        # To chmod `-x` is a mode.
        rest = [f"a{word}" if isinstance(word, str) and re.fullmatch(r"-[rwxXst]+", word) and "-" not in rest[:at] else word
                for at, word in enumerate(rest)]  # fmt: skip
    if grammar.facts.get("bundled") is True and rest and isinstance(rest[0], str) and rest[0][:1] not in ("-", ""):
        rest = _unbundled(grammar, str(rest[0]), rest[1:])
    return parse(grammar, rest, posix=posix)


def _unbundled(grammar: Grammar, letters: str, rest: list[Field]) -> list[Field]:
    """The old style of tar: letters first, then their values in order."""
    out: list[Field] = []
    for letter in letters:
        out.append(f"-{letter}")
        if grammar.short.get(letter, ("", ""))[1] and rest:
            out.append(rest.pop(0))
    return [*out, *rest]


def _looked_up(state: State, name: str) -> str | None:
    """Where the caller's own `PATH` finds a program outside the system's folders; None where the system has it."""
    known = state.variables.get("PATH")
    if known is None or known.value is None:
        return None
    for folder in known.value.split(":"):
        if folder.rstrip("/") in SYSTEM and name in grammars():
            return None
        path = join(folder, name) if folder else f"./{name}"
        place = state.resolve(path)
        if not place.problem and state.look(place.path).kind is EntryKind.FILE and state.look(place.path).mode & 0o111:
            return None if posixpath.dirname(place.path) in SYSTEM else path
    return None


def _own(state: State, name: str, words: list[Field]) -> list[State]:
    """A program by its path: what it does, only running could tell."""
    place = state.resolve(name)
    node = state.look(place.path) if not place.problem else ABSENT
    if node.kind is EntryKind.ABSENT or place.problem:
        if not state.opaque:
            state.noise()
            state.status = 127
            return [state]
    elif node.kind is not EntryKind.FILE or not node.mode & 0o111:
        state.noise()
        state.status = 126
        return [state]
    if any(isinstance(word, Hole) for word in words):
        raise Stop(KNOW, f"`{name}` with an argument that is not known", needs="write it out")
    inputs = input_of(state, name)
    for word in words[1:]:
        if not isinstance(word, Hole) and not word.startswith("-"):
            inputs.update(input_of(state, word) if state.look_through(word) is EntryKind.FILE else {})
    execute(state, state.show(place.path), words, inputs=inputs, opaque=True)
    state.status = None
    return [state]
