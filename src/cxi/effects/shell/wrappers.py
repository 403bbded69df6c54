"""What do programs do that run programs? They run what they are given, as the text itself would; or they are refused."""

from __future__ import annotations

import re
from typing import Final

from cxi.effects.shell.call import Call, execute, guard_environment, input_of
from cxi.effects.shell.field import Field, Found, Hole
from cxi.effects.shell.read import read
from cxi.effects.shell.state import State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.ways import merge

_ASSIGN: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MOST: Final = 1_000


def _invoke(call: Call, state: State, words: list[Field]) -> list[State]:
    """Run a program by its words: no function, no builtin of the shell (`/usr/bin/echo` is a program then)."""
    first = words[0]
    if isinstance(first, Hole):
        raise Stop(KNOW, f"`{call.name}` runs a program whose name is {first.why}")
    return call.machine.invoke(state, words, functions=False, builtins=False)


def wrap(call: Call) -> list[State]:
    """`timeout`, `nice`, `nohup`, `time`, `stdbuf`, `setsid`: their own operands, then a command."""
    state = call.state
    own = int(str(call.grammar.facts.get("own", 0)))
    operands = list(call.given.operands)
    if len(operands) <= own:
        execute(state, call.name, call.words)
        return call.settle(likely=False)
    for field in operands[:own]:
        call.known(field)
    execute(state, call.name, call.words, noisy=False)
    for option in call.given.all("o"):
        call.write(option, None)
    if call.name == "nohup" and state.fds.get(1) is not None and state.fds[1].kind == "outer":
        # Its output may be a terminal: then it goes to a file.
        place = state.resolve("nohup.out")
        if not place.problem:
            before = dict(state.fds)
            call.write("nohup.out", None, append=True)
            state.fds = before
    out = _invoke(call, state, operands[own:])
    for after in out:
        if call.name != "nice" and after.status != 0:
            after.status = None
    return out


def env(call: Call) -> list[State]:
    """Sets variables for a program."""
    state = call.state
    operands = list(call.given.operands)
    kept = dict(state.variables)
    if call.given.has("i", "S", "C"):
        raise Stop(KNOW, "`env` that clears, splits or moves")
    for field in call.given.all("u"):
        name = call.known(field)
        state.assign(name, "", exported=True)
    execute(state, call.name, call.words, noisy=not operands)
    while operands:
        field = operands[0]
        text = field.prefix if isinstance(field, Hole) else field
        found = _ASSIGN.match(text)
        if found is None:
            if "=" in text:
                raise Stop(KNOW, "`env` with a variable that is not plain")
            break
        state.assign(found[1], None if isinstance(field, Hole) else found[2], exported=True)
        operands.pop(0)
    if not operands:
        state.noise()
        state.variables = kept
        return call.settle()
    out = _invoke(call, state, operands)
    for after in out:
        after.variables = dict(kept)
    return out


def shell(call: Call) -> list[State]:
    """`bash -c TEXT` is read like this text; a script's file is a program like any other."""
    state = call.state
    words = [call.known(word) for word in call.words[1:]]
    options = ""
    while words and re.fullmatch(r"-[celux]+", words[0]):
        options += words.pop(0)[1:]
    while words and words[0] in ("--norc", "--noprofile", "--posix", "-o", "+o"):
        if words.pop(0) in ("-o", "+o", "--posix"):
            raise Stop(KNOW, f"`{call.name}` with an option that is not read")
    if words and words[0].startswith(("-", "+")):
        raise Stop(KNOW, f"`{call.name} {words[0]}` is not read")
    guard_environment(state, call.name)
    if "c" in options:
        if not words or "l" in options:
            raise Stop(KNOW, f"`{call.name}` with an option that is not read")
        return _text(call, state, words, options)
    if not words:
        data = state.take()
        if data is None:
            raise Stop(KNOW, f"`{call.name}` runs what it reads, which is not known", needs="write its commands out")
        return _text(call, state, [data.decode("utf-8", "surrogateescape")], options)
    inputs = input_of(state, words[0])
    if not inputs and not state.opaque:
        state.noise()
        state.status = 127
        return [state]
    execute(state, call.name, call.words, inputs=inputs, opaque=True)
    state.status = None
    return [state]


def _text(call: Call, state: State, words: list[str], options: str) -> list[State]:
    try:
        script = read(words[0], posix=call.name != "bash")
    except Stop as error:
        raise Stop(error.code, f"in the text of `{call.name} -c`: {error.detail}", needs=error.needs) from None
    inner = state.copy()
    inner.functions = {}
    inner.variables = {name: one for name, one in state.variables.items() if one.exported}
    inner.parameters = tuple(words[2:])
    inner.zero = words[1] if len(words) > 1 else None
    inner.options = frozenset({"errexit"} if "e" in options else ()) | ({"nounset"} if "u" in options else set())
    if call.name != "bash":
        inner.options |= {"posix"}
    inner.guarded = inner.loops = inner.returns = 0
    inner.status = 0
    inner.depth += 1
    if inner.depth > 10:
        raise Stop(KNOW, "shells in each other")
    try:
        found = call.machine.script([inner], script)
    except Stop as error:
        raise Stop(error.code, f"in the text of `{call.name} -c`: {error.detail}", needs=error.needs) from None
    out: list[State] = []
    for after in found:
        back = state.copy()
        back.disk, back.acts, back.buffers, back.listed = after.disk, after.acts, after.buffers, after.listed
        back.opaque, back.shaken, back.status = after.opaque, after.shaken, after.status
        back.looked, back.changed = after.looked, after.changed
        out.append(back)
    return merge(out)


def xargs(call: Call) -> list[State]:
    """Runs a command over the words of its input, where they are known."""
    state = call.state
    words = list(call.given.operands) or ["echo"]
    for one in words:
        call.known(one)
    if call.given.has("a", "p", "o"):
        raise Stop(KNOW, "`xargs` with an option that is not read")
    replaced = call.given.last("I", "i")
    listed = state.listing()
    data = state.take()
    execute(state, call.name, call.words, noisy=False)
    exact = True
    if call.given.has("0"):
        values = None if data is None else [item for item in data.decode("utf-8", "surrogateescape").split("\0") if item]
        if values is None and listed is not None and all(line.endswith("\0") for line in listed[0]):
            values, exact = [line[:-1] for line in listed[0]], listed[1]
    else:
        if data is None:
            if listed is None:
                return _unknown(call, state, words)
            lines, exact = list(listed[0]), listed[1]
            if any(line.endswith("\0") for line in lines):
                return _unknown(call, state, words)
        else:
            lines = data.decode("utf-8", "surrogateescape").splitlines()
        values = _words(lines, whole=replaced is not None or call.given.last("d") == "\\n")
    if values is None:
        return _unknown(call, state, words)
    if len(values) > _MOST:
        raise Stop(KNOW, f"`xargs` over more than {_MOST} words")
    if not exact and str(words[0]) not in call.fact("parts"):
        raise Stop(KNOW, f"`xargs {words[0]}` of names of which some may be left out", needs="name them")
    return _over(call, state, words, values, replaced, exact=exact)


def _words(lines: list[str], *, whole: bool) -> list[str]:
    if whole:
        if any(line.startswith((" ", "\t")) or set(line) & set("'\"\\") for line in lines):
            raise Stop(KNOW, "`xargs` of names with quotes or blanks")
        return [line for line in lines if line]
    if any(set(line) & set("'\"\\") for line in lines):
        raise Stop(KNOW, "`xargs` of names with quotes")
    return [word for line in lines for word in line.split()]


def _unknown(call: Call, state: State, words: list[Field]) -> list[State]:
    """What is read from files is not known, but a command that only prints does nothing else with it."""
    if str(words[0]) not in ("echo", "basename", "dirname", "printf"):
        raise Stop(KNOW, f"`xargs {words[0]}` over words that are not known", needs="write the command with its names")
    return _invoke(call, state, [words[0], "…"])


def _over(call: Call, state: State, words: list[Field], values: list[str], replaced: Field | None, *, exact: bool) -> list[State]:
    if replaced is not None:
        mark = call.known(replaced) or "{}"
        runs = [[Found(str(word).replace(mark, value)) if mark in str(word) else word for word in words] for value in values]
    else:
        found: list[Field] = [Found(value) for value in values]
        number = call.given.last("n", "L")
        size = int(str(number)) if number is not None and str(number).isdigit() and int(str(number)) else len(found) or 1
        runs = [[*words, *found[at : at + size]] for at in range(0, len(found), size)]
        if not found and not call.given.has("r"):
            runs = [words]
    states = [state]
    for run in runs:
        following: list[State] = []
        for one in states:
            if one.opaque:
                raise Stop(KNOW, "a program that may do anything is run again and again", needs="run it on files by name")
            if not exact:
                following.append(one.copy())
            fds = dict(one.fds)
            for after in _invoke(call, one, run):
                after.fds = dict(fds)
                following.append(after)
        states = merge(following)
    for one in states:
        one.status = None
    return states
