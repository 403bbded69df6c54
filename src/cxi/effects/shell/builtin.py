"""What do bash's own commands do? The closed list; any other builtin is refused, for it shadows a program of its name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.effects.shell import condition
from cxi.effects.shell.arithmetic import compute
from cxi.effects.shell.field import Field, Found, Hole
from cxi.effects.shell.guarded import is_guarded
from cxi.effects.shell.machine import Machine
from cxi.effects.shell.read import read
from cxi.effects.shell.state import LIKELY, State, Variable
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

Builtin: TypeAlias = Callable[[Machine, State, list[Field]], list[State]]

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_OTHERS: Final = frozenset(
    {
        *("alias", "bg", "bind", "caller", "compgen", "complete", "compopt", "declare", "dirs", "disown", "enable", "fc", "fg"),
        *("getopts", "hash", "help", "history", "jobs", "kill", "logout", "mapfile", "popd", "pushd", "readarray", "suspend"),
        *("times", "trap", "typeset", "ulimit", "umask", "unalias", "wait"),
    }
)


BASH_ONLY: Final = frozenset({"source", "declare", "local", "shopt", "let", "builtin", "type"})


def is_special(name: str) -> bool:
    """Whether bash runs this name itself."""
    return name in BUILTINS or name in _OTHERS


def _known(words: list[Field], what: str) -> list[str]:
    for word in words:
        if isinstance(word, Hole):
            raise Stop(KNOW, f"`{what}` with {word.why}")
    return [str(word) for word in words]


def _true(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    state.status = int(words[0] == "false")
    return [state]


def _echo(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = list(words[1:])
    newline, escapes = True, False
    if "posix" in state.options and any(isinstance(word, Hole) or "\\" in word or word[:1] == "-" for word in rest):
        state.write(1, None)  # shells differ on what it prints
        state.status = LIKELY
        return [state]
    while rest and isinstance(rest[0], str) and re.fullmatch(r"-[neE]+", rest[0]):
        for char in str(rest.pop(0))[1:]:
            if char == "n":
                newline = False
            else:
                escapes = char == "e"
    data: bytes | None = None
    if not any(isinstance(word, Hole) for word in rest) and not (rest and isinstance(rest[0], Hole)):
        text = " ".join(str(word) for word in rest)
        sure = sum(isinstance(word, Found) for word in rest) < 2
        if escapes and "\\" in text:
            unescaped = unescape(text)
            sure = sure and unescaped is not None
            if unescaped is not None and unescaped[1]:
                newline = False
            text = unescaped[0] if unescaped is not None else ""
        data = (text + "\n" * newline).encode("utf-8", "surrogateescape") if sure else None
    state.write(1, data)
    state.status = LIKELY
    return [state]


_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}


def unescape(text: str) -> tuple[str, bool] | None:
    r"""What `echo -e` and `printf %b` make of a text, and whether `\\c` ended it; None where it is not plain."""
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\" or at >= len(text):
            out.append(char)
            continue
        following = text[at]
        at += 1
        if following == "c":
            return "".join(out), True
        if following in _ESCAPES:
            out.append(_ESCAPES[following])
        elif following in "0xuU" or following.isdigit():
            return None
        else:
            out.append("\\" + following)
    return "".join(out), False


def _printf(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = words[1:]
    if rest and rest[0] == "--":
        rest = rest[1:]
    if not rest or isinstance(rest[0], Hole) or str(rest[0]).startswith("-"):
        raise Stop(KNOW, "`printf` with a format that is not known, or an option", needs="write `printf '%s' …`")
    if "n" in re.findall(r"%[^%A-Za-z]*(?:hh|h|ll|l|L|j|z|t)?([A-Za-z%])", str(rest[0])):
        raise Stop(KNOW, "`printf %n` sets a variable")
    state.write(1, _formatted(str(rest[0]), rest[1:]))
    state.status = LIKELY
    return [state]


def _formatted(form: str, values: list[Field]) -> bytes | None:
    if any(isinstance(value, Hole) for value in values):
        return None
    known = [str(value) for value in values]
    pieces = re.findall(r"%[sd%b]|%[^sd%b]|\\.|[^%\\]+|.", form, re.DOTALL)
    out: list[str] = []
    at = 0
    for _ in range(max(1, len(known)) + 1):
        used = False
        for piece in pieces:
            if piece == "%%":
                out.append("%")
            elif piece in ("%s", "%d", "%b"):
                value = known[at] if at < len(known) else ""
                at += 1
                used = True
                if piece == "%d":
                    if not re.fullmatch(r"-?(0|[1-9]\d{0,17})|", value):
                        return None
                    value = value or "0"
                if piece == "%b":
                    read = unescape(value)
                    if read is None or read[1]:
                        return None
                    value = read[0]
                out.append(value)
            elif piece.startswith("\\"):
                read = unescape(piece)
                if len(piece) < 2 or read is None or read[1] or piece[1] in "\"'":
                    return None
                out.append(read[0])
            elif piece.startswith("%"):
                return None
            else:
                out.append(piece)
        if at >= len(known) or not used:
            break
    return "".join(out).encode("utf-8", "surrogateescape")


def _complain(state: State, status: int | None) -> list[State]:
    """It fails, and says why."""
    state.write(2, None)
    state.status = status
    return [state]


def _cd(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = _known(words[1:], "cd")
    physical = False
    while rest and rest[0] in ("-P", "-L", "--"):
        physical = rest[0] == "-P"
        if rest.pop(0) == "--":
            break
    if len(rest) > 1:
        return _complain(state, 1)
    target = rest[0] if rest else state.value("HOME")
    if target == "-":
        target = state.old
        state.write(1, None)
    elif target is not None and target.startswith("-"):
        raise Stop(KNOW, f"`cd {target}` is not read")
    if target is None:
        raise Stop(KNOW, "`cd` to a place that is not known", needs="write the path")
    if target == "":
        return _complain(state, 0 if rest else 1)
    if state.variables.get("CDPATH", Variable("")).value != "" and not target.startswith(("/", "./", "../")):
        raise Stop(KNOW, "`cd` looks along `CDPATH`", needs="write `./` before the path")
    # Logically first (POSIX, cd step 8): `..` takes away a name of the text, not of the disk.
    text = target if target.startswith("/") else f"{state.cwd}/{target}"
    logical = posixpath.normpath(text)
    logical = "/" + logical.lstrip("/")
    place = state.resolve(logical)
    there = not place.problem and state.look(place.path).kind is EntryKind.FOLDER
    if there and ".." in text.split("/"):
        raw = state.resolve(text)
        if raw.problem:
            raise Stop(KNOW, f"`cd {target}` goes up from what is no folder")
    if not there:
        if state.opaque and state.look_through(logical) is EntryKind.ABSENT:
            raise Stop(KNOW, f"`cd {target}` after a program that may have made it", needs="do it in a call of its own")
        raw = state.resolve(text)
        if not raw.problem and state.look(raw.path).kind is EntryKind.FOLDER:
            raise Stop(KNOW, f"`cd {target}` means one place to the shell and another to the kernel")
        return _complain(state, 1)
    state.old = state.cwd
    state.cwd = place.path if physical else logical
    state.status = LIKELY
    return [state]


def _pwd(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = _known(words[1:], "pwd")
    if any(word not in ("-L", "-P") for word in rest):
        raise Stop(KNOW, "`pwd` with an option that is not read")
    where = state.resolve(state.cwd).path if rest and rest[-1] == "-P" else state.cwd
    state.write(1, (where + "\n").encode("utf-8", "surrogateescape"))
    state.status = LIKELY
    return [state]


def _test(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = list(words[1:])
    if words[0] == "[":
        if not rest or rest[-1] != "]":
            raise Stop(KNOW, "`[` without `]`")
        rest = rest[:-1]
    if "posix" in state.options and ("==" in rest or "-v" in rest):
        raise Stop(KNOW, "a test that only bash has", needs="write `=`")
    state.status = condition.test(state, rest)
    if state.status == 2:
        state.write(2, None)
    return [state]


def _export(machine: Machine, state: State, words: list[Field]) -> list[State]:
    """`export`, `readonly`, `local`, `declare -x`: names and assignments, no more."""
    del machine
    name = str(words[0])
    state.status = 0
    for at, word in enumerate(words[1:]):
        if isinstance(word, Hole):
            variable, equals, _ = word.prefix.partition("=")
            value: str | None = None
            if not equals:
                raise Stop(KNOW, f"`{name}` with {word.why}")
        else:
            if word.startswith("-") and not (at == 0 and word in ("-x", "-r") and name in ("declare", "typeset")):
                raise Stop(KNOW, f"`{name} {word}` is not read")
            if word.startswith("-"):
                continue
            variable, equals, value = word.partition("=")
        if not _NAME.fullmatch(variable):
            raise Stop(KNOW, f"`{name}` of what is no plain name")
        exported = True if name == "export" or words[1] == "-x" else None
        if equals:
            state.assign(variable, value, exported=exported)
        elif name == "export":
            before = state.variables.get(variable)
            if before is not None:
                state.variables[variable] = Variable(before.value, True)
        elif name in ("local", "declare", "typeset"):
            state.assign(variable, "")
        if name == "readonly" or words[1] == "-r":
            state.options |= {f"readonly {variable}"}
    return [state]


def _unset(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    for word in _known(words[1:], "unset"):
        if word in ("-v", "-f"):
            continue
        if not _NAME.fullmatch(word) or is_guarded(word) or word == "IFS":
            raise Stop(KNOW, f"`unset {word}` changes more than a variable")
        if f"readonly {word}" in state.options:
            raise Stop(KNOW, f"`unset {word}` of what cannot be set any more")
        state.functions.pop(word, None)
        if state.closed_world:
            state.variables.pop(word, None)
        else:
            state.variables[word] = Variable("")
    state.status = 0
    return [state]


def _set(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    letters = {"e": "errexit", "u": "nounset", "f": "noglob", "x": "xtrace", "v": "verbose"}
    rest = _known(words[1:], "set")
    if not rest:
        state.write(1, None)
    at = 0
    options = set(state.options)
    while at < len(rest):
        word = rest[at]
        at += 1
        if word in ("--", "-"):
            state.parameters = tuple(rest[at:])
            break
        if not re.fullmatch(r"[-+][A-Za-z]+", word):
            state.parameters = tuple(rest[at - 1 :])
            break
        for char in word[1:]:
            if char == "o" and at < len(rest):
                option = rest[at]
                at += 1
            else:
                option = letters.get(char, "")
            if option not in (*letters.values(), "pipefail"):
                raise Stop(KNOW, f"`set {word}` is not read")
            (options.add if word[0] == "-" else options.discard)(option)
    state.options = frozenset(options)
    state.status = 0
    return [state]


def _shopt(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = _known(words[1:], "shopt")
    if len(rest) < 2 or rest[0] not in ("-s", "-u") or any(name not in ("nullglob", "dotglob") for name in rest[1:]):
        raise Stop(KNOW, "`shopt` for what is not read")
    change = state.options.union if rest[0] == "-s" else state.options.difference
    state.options = frozenset(change(rest[1:]))
    state.status = 0
    return [state]


def _jump(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    name = str(words[0])
    rest = _known(words[1:], name)
    if len(rest) > 1 or (rest and not re.fullmatch(r"\d{1,3}", rest[0])):
        raise Stop(KNOW, f"`{name}` with what is no number")
    if name in ("break", "continue"):
        state.levels = int(rest[0]) if rest else 1
        if state.levels < 1:
            raise Stop(KNOW, f"`{name} 0`")
        state.status = 0
        state.levels = min(state.levels, state.loops)
        if not state.loops:
            return _complain(state, 0)
    elif name == "return" and not state.returns:
        return _complain(state, None)
    elif rest:
        state.status = int(rest[0]) & 255
    state.flow = name
    return [state]


def _shift(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    rest = _known(words[1:], "shift")
    by = int(rest[0]) if len(rest) == 1 and rest[0].isdigit() else 1 if not rest else -1
    if by < 0:
        raise Stop(KNOW, "`shift` with what is no number")
    state.status = int(by > len(state.parameters))
    state.write(2, None)
    if not state.status:
        state.parameters = state.parameters[by:]
    return [state]


def _read(machine: Machine, state: State, words: list[Field]) -> list[State]:
    """`read`: its variables are not known afterwards, but for a whole line of a known input with `IFS=`."""
    del machine
    names = list(_known(words[1:], "read"))
    while names and re.fullmatch(r"-[rse]+", names[0]):
        names.pop(0)
    if names and names[0].startswith("-"):
        raise Stop(KNOW, f"`read {names[0]}` is not read")
    for name in names or ["REPLY"]:
        if not _NAME.fullmatch(name):
            raise Stop(KNOW, "`read` into what is no plain name")
        state.variables.pop(name, None)
        state.assign(name, None)
    state.take(whole=False)
    state.status = None
    return [state]


def _eval(machine: Machine, state: State, words: list[Field]) -> list[State]:
    text = " ".join(_known(words[1:], "eval"))
    try:
        script = read(text)
    except Stop as error:
        raise Stop(error.code, f"in `eval`: {error.detail}", needs=error.needs) from None
    state.status = 0
    state.depth += 1
    if state.depth > 10:
        raise Stop(KNOW, "`eval` in `eval`")
    out = machine.script([state], script)
    for after in out:
        after.depth -= 1
    return out


def _source(machine: Machine, state: State, words: list[Field]) -> list[State]:
    rest = _known(words[1:], "source")
    if not rest or rest[0].startswith("-") or "/" not in rest[0]:
        raise Stop(KNOW, "`source` of what is looked up on the path", needs="write `./` before its name")
    place = state.resolve(rest[0])
    node = state.look(place.path) if not place.problem else None
    if node is None or node.kind is not EntryKind.FILE:
        if state.opaque:
            raise Stop(KNOW, f"`source {rest[0]}`, which a program may have made")
        state.status = 1
        return [state]
    state.read(place.path)
    data = state.bytes_of(node.data)
    if data is None:
        raise Stop(KNOW, f"what `{rest[0]}` holds is not known")
    try:
        script = read(data.decode())
    except (UnicodeDecodeError, Stop) as error:
        detail = error.detail if isinstance(error, Stop) else "not UTF-8"
        raise Stop(KNOW, f"in `{rest[0]}`: {detail}", needs="write its commands out") from None
    before = state.parameters
    if rest[1:]:
        state.parameters = tuple(rest[1:])
    state.status = 0
    state.depth += 1
    state.returns += 1
    if state.depth > 10:
        raise Stop(KNOW, "files that source each other")
    try:
        out = machine.script([state], script)
    except Stop as error:
        raise Stop(error.code, f"in `{rest[0]}`: {error.detail}", needs=error.needs) from None
    for after in out:
        after.depth -= 1
        after.returns -= 1
        after.parameters = before if rest[1:] else after.parameters
        if after.flow == "return":
            after.flow = ""
    return out


def _command(machine: Machine, state: State, words: list[Field]) -> list[State]:
    rest = list(words[1:])
    if rest and rest[0] in ("-v", "-V"):
        state.write(1, None)
        state.status = None
        return [state]
    if rest and rest[0] == "--":
        rest = rest[1:]
    if not rest:
        state.status = 0
        return [state]
    if isinstance(rest[0], Hole) or str(rest[0]).startswith("-"):
        raise Stop(KNOW, f"`{words[0]}` with what is not read")
    return machine.invoke(state, rest, functions=False)


def _exec(machine: Machine, state: State, words: list[Field]) -> list[State]:
    if len(words) == 1:
        state.status = 0
        return [state]
    if isinstance(words[1], Hole) or str(words[1]).startswith("-"):
        raise Stop(KNOW, "`exec` with what is not read")
    out = machine.invoke(state, words[1:], functions=False, builtins=False)
    for after in out:
        after.flow = "exit"
    return out


def _type(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine, words
    state.write(1, None)
    state.write(2, None)
    state.status = None
    return [state]


def _let(machine: Machine, state: State, words: list[Field]) -> list[State]:
    del machine
    value: int | None = 0
    for word in _known(words[1:], "let"):
        value = compute(state, word)
    state.status = None if value is None else int(value == 0)
    return [state]


BUILTINS: Final[Mapping[str, Builtin]] = MappingProxyType(
    {
        "true": _true, "false": _true, ":": _true, "echo": _echo, "printf": _printf, "cd": _cd, "pwd": _pwd, "test": _test,
        "[": _test, "export": _export, "readonly": _export, "local": _export, "declare": _export, "unset": _unset, "set": _set,
        "shopt": _shopt, "break": _jump, "continue": _jump, "exit": _jump, "return": _jump, "shift": _shift, "read": _read,
        "eval": _eval, "source": _source, ".": _source, "command": _command, "builtin": _command, "exec": _exec,
        "type": _type, "let": _let,
    }
)  # fmt: skip
