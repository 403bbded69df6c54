"""What does a program do of which the grammar's roles say all? It reads and writes what its arguments name, and prints."""

from __future__ import annotations

import fnmatch
import posixpath
import re

from cxi.effects.place import join
from cxi.effects.shell.call import Call, execute
from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.grammar import role_of
from cxi.effects.shell.state import LIKELY, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

PASSING = frozenset({"sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "shuf", "cat", "tac"})


def operand_roles(call: Call) -> list[tuple[str, Field]]:
    """The role of each operand: those of the grammar in turn, the last one repeated."""
    roles = call.grammar.operands.split()
    if call.given.has(*call.fact("unless")):
        roles = roles[1:] or ["text"]
    return [(roles[min(at, len(roles) - 1)], field) for at, field in enumerate(call.given.operands)]


def roles(call: Call) -> list[State]:
    """Apply the roles of options and operands, and run it."""
    state = call.state
    listed = state.listing() if not any(role == "read" for role, _ in operand_roles(call)) else None
    execute(state, call.name, call.words)
    for option, value in call.given.options:
        if value != "" or role_of(call.grammar, option) not in ("text", ""):
            apply(call, role_of(call.grammar, option), value)
    given = operand_roles(call)
    for role, field in given:
        apply(call, role, field)
    if not any(role in ("read", "tree", "list") for role, _ in given):
        default = call.grammar.facts.get("default")
        if default is not None and not (call.name.endswith("grep") and not call.given.has("r", "R")):
            apply(call, str(default), ".")
        else:
            state.take()
    if call.name.endswith("grep") and call.given.has("l") and not call.given.has("v", "Z", "z") and not call.failed:
        _list_files(call, [field for role, field in given if role == "read"])
    elif (
        listed is not None
        and call.name in PASSING
        and not any(line.endswith("\0") for line in listed[0])
        and not call.given.has("c", "q", "l", "o", "n")
    ):
        state.list_out(listed[0], exact=listed[1] and call.name == "sort")
    likely = call.grammar.status == "likely"
    return call.settle(likely=likely)


def _list_files(call: Call, fields: list[Field]) -> None:
    """`grep -l` prints the names of some of the files that it reads."""
    state = call.state
    names: list[str] = []
    recursive = call.given.has("r", "R")
    for text in [call.known(field) for field in fields] or (["."] if recursive else []):
        place = state.resolve(text)
        if place.problem or text == "-" or state.opaque or call.given.has("R"):
            return
        if state.look(place.path).kind is not EntryKind.FOLDER:
            names.append(text)
        elif recursive:
            below = state.below(place.path)
            only = _included(call)
            for path, node in below:
                matches = not only or any(fnmatch.fnmatchcase(posixpath.basename(path), one) for one in only)
                if node.kind is EntryKind.FILE and matches:
                    names.append(f"{text.rstrip('/')}{path[len(place.path) :]}")
    state.list_out(tuple(names), exact=False)


def apply(call: Call, role: str, field: Field) -> None:
    """What one value means."""
    match role:
        case "" | "text":
            return
        case "read":
            _read(call, field)
        case "tree":
            _tree(call, field)
        case "list":
            _list(call, field)
        case "write":
            call.write(field, None)
        case "append":
            call.write(field, None, append=True)
        case _:
            what = field.prefix if isinstance(field, Hole) else field
            raise Stop(KNOW, f"`{what}` as an argument of `{call.name}` is not read")


def _read(call: Call, field: Field) -> None:
    if call.name.endswith("grep") and call.given.has("r", "R") and field != "-":
        _tree(call, field)
        return
    call.read(field)
    if field == "-":
        call.state.take()


def _tree(call: Call, field: Field) -> None:
    """A path with everything below it; below it links are followed with `-R` (grep) or `-L`."""
    place = call.state.resolve(call.known(field, "a path"))
    kind = EntryKind.ABSENT if place.problem else call.state.look(place.path).kind
    if kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
        call.failed = True
        if not place.problem and call.state.opaque:
            call.state.read(place.path)
        return
    call.tree(place.path, only=_included(call))
    if call.given.has("R", "L") and kind is EntryKind.FOLDER:
        for there, node in call.state.below(place.path):
            if node.kind is EntryKind.LINK:
                through = call.state.resolve(there)
                if through.problem or call.state.look(through.path).kind is EntryKind.FILE:
                    if not through.problem:
                        call.state.read(through.path)
                    continue
                raise Stop(KNOW, f"`{call.state.show(there)}` is a link to a folder, and links are followed")


def _included(call: Call) -> list[str]:
    """The names that `grep --include` asks for, where it is plain and stands alone; else all."""
    if call.given.has("exclude", "exclude-from", "R") or not call.name.endswith("grep"):
        return []
    globs = [glob for glob in call.given.all("include") if isinstance(glob, str)]
    return globs if all(re.fullmatch(r"[\w.*?-]+", glob) for glob in globs) else []


def _list(call: Call, field: Field) -> None:
    """A folder's names, or that a file is there."""
    state = call.state
    place = state.resolve(call.known(field, "a path"), follow=not call.given.has("d"))
    kind = EntryKind.ABSENT if place.problem else state.look(place.path).kind
    if kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
        call.failed = True
        if not place.problem and state.opaque:
            state.read(place.path)
        return
    state.read(place.path)
    if call.given.has("R") and kind is EntryKind.FOLDER:
        if state.opaque:
            call.tree(place.path)
            return
        try:
            for there, node in state.below(place.path):
                if node.kind is EntryKind.FOLDER:
                    state.read(there)
        except Stop:
            call.tree(place.path)


def prints(call: Call) -> list[State]:
    """`/bin/echo` and its like: they print, whatever they are given."""
    execute(call.state, call.name, call.words)
    call.state.status = LIKELY if call.grammar.status == "likely" else None
    return [call.state]


def sequence(call: Call) -> list[State]:
    """`seq` of whole numbers."""
    state = call.state
    execute(state, call.name, call.words, noisy=False)
    words = [word for word in call.words[1:] if isinstance(word, str)]
    numbers = [int(word) for word in words if re.fullmatch(r"-?(0|[1-9]\d{0,6})", word)]
    state.status = LIKELY
    if len(numbers) != len(call.words) - 1 or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and not numbers[1]):
        state.noise()
        return [state]
    first, step, last = ((1, 1, numbers[0]), (numbers[0], 1, numbers[-1]), (numbers[0], numbers[1 % len(numbers)], numbers[-1]))[
        len(numbers) - 1
    ]
    found = range(first, last + (1 if step > 0 else -1), step)
    state.write(1, "".join(f"{number}\n" for number in found).encode() if len(found) <= 10_000 else None)
    return [state]


def named(call: Call) -> list[State]:
    """`basename` and `dirname` of what is known."""
    state = call.state
    execute(state, call.name, call.words, noisy=False)
    state.status = LIKELY
    operands = call.given.operands
    if call.given.options or not operands or any(isinstance(field, Hole) for field in operands):
        state.noise()
        return [state]
    texts = [str(field) for field in operands]
    if call.name == "dirname":
        found = [posixpath.dirname(text.rstrip("/")).rstrip("/") or ("/" if text.startswith("/") else ".") for text in texts]
    elif len(texts) > 2 or not texts[0].strip("/"):
        state.noise()
        return [state]
    else:
        base = posixpath.basename(texts[0].rstrip("/"))
        suffix = texts[1] if len(texts) == 2 else ""
        found = [base.removesuffix(suffix) if suffix and base != suffix else base]
    state.write(1, "".join(f"{text}\n" for text in found).encode("utf-8", "surrogateescape"))
    return [state]


def diff(call: Call) -> list[State]:
    """`diff` of files, or of folders."""
    recursive = call.given.has("r", "recursive")
    execute(call.state, call.name, call.words)
    for value in call.given.all("exclude-from", "X"):
        call.read(value)
    for field in call.given.operands:
        text = call.known(field)
        if text == "-" or text.startswith("/dev/fd/"):
            _read(call, field)
            continue
        place = call.state.resolve(text)
        kind = EntryKind.ABSENT if place.problem else call.state.look(place.path).kind
        if kind is not EntryKind.FOLDER:
            _read(call, field)
        elif recursive:
            _tree(call, field)
        else:
            call.state.read(place.path)
            for name in call.state.names(place.path):
                there = join(place.path, name)
                if call.state.look_through(there) is EntryKind.FILE:
                    call.read(there)
    call.state.status = None
    return [call.state]
