"""Which fields does a word become? As bash's manual orders it: braces, tilde, parameters and commands, splitting, globs, quotes.

- A value that is not known is a `Hole` in its field; what may follow is for the command to say (a message may be anything).
- Globs are resolved against the disk: `.`-names only where the pattern says so, in byte order, no match stays literal.
- Names found by a glob are `Found`, so that what depends on their order (which locales differ on) can be refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from cxi.effects.place import LIMIT
from cxi.effects.shell.arithmetic import compute
from cxi.effects.shell.field import Field, Found, Hole
from cxi.effects.shell.pattern import Char, compiled, is_active
from cxi.effects.shell.state import End, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.syntax import Arithmetic, Literal, Parameter, Part, Process, Script, Substitution, Word
from cxi.values.base import EntryKind


class Runner(Protocol):
    """What runs the commands inside a word."""

    def capture(self, state: State, script: Script) -> bytes | None:
        """The output of a command substitution; the state is changed by what it does."""
        ...


@dataclass(slots=True)
class _Piece:
    """A stretch of one quoting. `text` None is not known; `splits` says that it came from an expansion outside quotes."""

    text: str | None
    quoted: bool
    splits: bool = False
    why: str = ""


_IFS: Final = " \t\n"
_SEQUENCE: Final = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
_MOST: Final = 10_000  # words of one brace expansion


def fields(runner: Runner, state: State, words: Iterable[Word]) -> list[Field]:
    """The fields of a command's words."""
    out: list[Field] = []
    for word in words:
        if word.plain is not None:
            out.append(word.plain)
            continue
        try:
            for parts in _braces(word.parts, posix="posix" in state.options):
                out.extend(_fields(runner, state, parts))
        except Stop as error:
            raise error.at(word.start, word.end) from None
        if len(out) > LIMIT:
            raise Stop(KNOW, f"more than {LIMIT} words", word.start, word.end)
    return out


def single(runner: Runner, state: State, word: Word, *, assigned: bool = False) -> Field:
    """The one field of a word that is neither split nor matched: an assigned value, a here-document, the word of `case`."""
    if word.plain is not None:
        return word.plain
    try:
        pieces = _pieces(runner, state, _tilde(state, word.parts, assigned=assigned))
    except Stop as error:
        raise error.at(word.start, word.end) from None
    prefix = ""
    for piece in pieces:
        if piece.text is None:
            return Hole(prefix, False, piece.why)
        prefix += piece.text
    return prefix


def pattern(runner: Runner, state: State, word: Word) -> tuple[Char, ...]:
    """A word as a pattern: quoted characters are literal."""
    chars: list[Char] = []
    for piece in _pieces(runner, state, _tilde(state, word.parts, assigned=False)):
        if piece.text is None:
            raise Stop(KNOW, f"a pattern with {piece.why} in it", word.start, word.end)
        if "\\" in piece.text and not piece.quoted:
            raise Stop(KNOW, "a pattern with an expanded backslash in it", word.start, word.end)
        chars.extend((char, not piece.quoted) for char in piece.text)
    return tuple(chars)


def _fields(runner: Runner, state: State, parts: tuple[Part, ...]) -> list[Field]:
    if len(parts) == 1 and isinstance(parts[0], Parameter) and parts[0].name in ("@", "*") and not parts[0].op:
        return _positional(state, parts[0])
    pieces = _pieces(runner, state, _tilde(state, parts, assigned=False))
    out: list[Field] = []
    for field in _split(state, pieces):
        if isinstance(field, Hole):
            out.append(field)
            continue
        chars, quoted = field
        if "noglob" not in state.options and is_active(chars):
            out.extend(_glob(state, chars))
        elif chars or quoted:
            out.append("".join(char for char, _ in chars))
    return out


def _positional(state: State, part: Parameter) -> list[Field]:
    if part.quoted and part.name == "@":
        return list(state.parameters)
    if part.quoted:
        return [" ".join(state.parameters)]
    if any(set(value) & set("*?[ \t\n\\") for value in state.parameters):
        raise Stop(KNOW, "positional parameters outside quotes", needs='write "$@"')
    return [value for value in state.parameters if value]


# --- braces


def _braces(parts: tuple[Part, ...], *, posix: bool = False) -> list[tuple[Part, ...]]:
    """Brace expansion; a word without a brace outside quotes is itself."""
    if not any(isinstance(part, Literal) and not part.quoted and "{" in part.text for part in parts):
        return [parts]
    if posix and any(isinstance(part, Literal) and not part.quoted and re.search(r",|\.\.", part.text) for part in parts):
        raise Stop(KNOW, "braces, which a plain `sh` does not expand", needs="run it with `bash -c`")
    items: list[Part] = []
    for part in parts:
        if isinstance(part, Literal) and not part.quoted:
            items.extend(Literal(char, False) for char in part.text)
        else:
            items.append(part)
    expanded = _brace(items, 0)
    return [tuple(_join(item)) for item in expanded]


def _is(item: Part, char: str) -> bool:
    return isinstance(item, Literal) and not item.quoted and item.text == char


def _brace(items: list[Part], depth: int) -> list[list[Part]]:
    if depth > 20:
        raise Stop(KNOW, "too many braces in each other")
    start = next((at for at, item in enumerate(items) if _is(item, "{")), None)
    if start is None:
        return [items]
    if start + 1 < len(items) and _is(items[start + 1], "}"):
        return [[*items[: start + 2], *rest] for rest in _brace(items[start + 2 :], depth)]
    level = 0
    commas: list[int] = []
    end = None
    for at in range(start, len(items)):
        if _is(items[at], "{"):
            level += 1
        elif _is(items[at], "}"):
            level -= 1
            if level == 0:
                end = at
                break
        elif _is(items[at], ",") and level == 1:
            commas.append(at)
    if end is None:
        if any(_is(item, ",") for item in items[start:]):
            raise Stop(KNOW, "a brace that is not closed")
        return [[*items[: start + 1], *rest] for rest in _brace(items[start + 1 :], depth + 1)]
    middles: list[list[Part]]
    if commas:
        cuts = [start, *commas, end]
        middles = [one for a, b in itertools.pairwise(cuts) for one in _brace(items[a + 1 : b], depth + 1)]
    else:
        inner = items[start + 1 : end]
        sequence = _sequence(inner)
        if sequence is None:
            if any(_is(item, "{") for item in inner) or any(not isinstance(item, Literal) for item in inner):
                raise Stop(KNOW, "braces that are not plain")
            return [[*items[: end + 1], *rest] for rest in _brace(items[end + 1 :], depth)]
        middles = [[Literal(text, False)] for text in sequence]
    tails = _brace(items[end + 1 :], depth)
    if len(middles) * len(tails) > _MOST:
        raise Stop(KNOW, "a brace expansion of too many words")
    return [[*items[:start], *middle, *tail] for middle in middles for tail in tails]


def _sequence(inner: list[Part]) -> list[str] | None:
    if not all(isinstance(item, Literal) and not item.quoted for item in inner):
        return None
    text = "".join(item.text for item in inner if isinstance(item, Literal))
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        return None
    first, last, by = found[1], found[2], found[3]
    if first.isalpha() != last.isalpha():
        return None
    if first.isalpha() and (first.islower() != last.islower() or by):
        raise Stop(KNOW, "a brace sequence that is not plain")
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    step = abs(int(by)) if by else 1
    step = step or 1
    if abs(high - low) // step > _MOST:
        raise Stop(KNOW, "a brace expansion of too many words")
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    if first.isalpha():
        return [chr(number) for number in numbers]
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-").startswith("0") for text in (first, last))
    width = max(len(first), len(last))
    return [f"{number:0{width}d}" if padded else str(number) for number in numbers]


def _join(items: list[Part]) -> Iterator[Part]:
    run = ""
    for item in items:
        if isinstance(item, Literal) and not item.quoted:
            run += item.text
            continue
        if run:
            yield Literal(run, False)
            run = ""
        yield item
    if run:
        yield Literal(run, False)


# --- tilde, parameters, commands


def _tilde(state: State, parts: tuple[Part, ...], *, assigned: bool) -> tuple[Part, ...]:
    if not parts:
        return parts
    out: list[Part] = []
    for at, part in enumerate(parts):
        if not isinstance(part, Literal) or part.quoted or "~" not in part.text:
            out.append(part)
            continue
        text = part.text
        begins = at == 0
        places = [0] if begins and text.startswith("~") else []
        if assigned:
            places += [found.end() - 1 for found in re.finditer(r":~", text)]
        elif begins and re.match(r"[A-Za-z_]\w*=(?:.*:)?~", text):
            raise Stop(KNOW, "a tilde after `=`, which shells expand differently", needs="quote it, or write the path")
        done = 0
        for place in places:
            end = min((found for found in (text.find("/", place), text.find(":", place)) if found >= 0), default=len(text))
            who = text[place + 1 : end]
            if end == len(text) and at + 1 < len(parts):
                if who == "" and not isinstance(parts[at + 1], Literal):
                    raise Stop(KNOW, "a tilde before an expansion")
                continue
            value = {"": state.value("HOME"), "+": state.cwd, "-": state.old}.get(who)
            if not value:
                raise Stop(KNOW, "what `~` stands for is not known", needs="write the path")
            out.extend((Literal(text[done:place], False), Literal(value, True)))
            done = end
        out.append(Literal(text[done:], False))
    return tuple(part for part in out if not (isinstance(part, Literal) and not part.quoted and not part.text))


def _pieces(runner: Runner, state: State, parts: tuple[Part, ...]) -> list[_Piece]:
    out: list[_Piece] = []
    for part in parts:
        match part:
            case Literal():
                out.append(_Piece(part.text, part.quoted))
            case Parameter():
                out.extend(_parameter(runner, state, part))
            case Substitution():
                data = runner.capture(state, part.body)
                text = None if data is None else _text(data)
                out.append(_Piece(text, part.quoted, not part.quoted, "the output of a command"))
            case Arithmetic():
                value = compute(state, part.text)
                out.append(_Piece(None if value is None else str(value), part.quoted, not part.quoted, "a computed number"))
            case Process():
                out.append(_Piece(_process(runner, state, part), True))
    return out


def _process(runner: Runner, state: State, part: Process) -> str:
    """`<(…)`: its commands run beside the command that reads them, so that they may change nothing."""
    if not part.reads:
        raise Stop(KNOW, "a process substitution that is written to", needs="use a file, or a pipe")
    before, status = (dict(state.disk), state.opaque), state.status
    runner.capture(state, part.body)
    if before != (state.disk, state.opaque):
        raise Stop(KNOW, "a process substitution that changes files", needs="use a file, or a pipe")
    state.status = status
    number = next(number for number in range(63, 3, -1) if number not in state.fds)
    state.fds[number] = End("device", f"/dev/fd/{number}")
    return f"/dev/fd/{number}"


def _text(data: bytes) -> str | None:
    try:
        return data.replace(b"\0", b"").decode().rstrip("\n")
    except UnicodeDecodeError:
        return None


def _parameter(runner: Runner, state: State, part: Parameter) -> list[_Piece]:
    value = parameter(state, part.name)
    why = f"the value of `{part.name}`"
    op = part.op
    if not op:
        return [_Piece(value, part.quoted, not part.quoted, why)]
    if op == "length":
        if part.name in ("@", "*"):
            value = str(len(state.parameters))
        elif value is not None:
            value = str(len(value))
        return [_Piece(value, part.quoted, not part.quoted, why)]
    word = part.word
    if word is None:
        raise AssertionError("an operator without its word")
    if op.lstrip(":") in ("-", "=", "+", "?"):
        return _default(runner, state, part, value, word)
    if value is None:
        return [_Piece(None, part.quoted, not part.quoted, why)]
    if part.name in ("@", "*"):
        raise Stop(KNOW, "an operator on all parameters")
    return [_Piece(_edit(runner, state, value, op, word), part.quoted, not part.quoted)]


def _default(runner: Runner, state: State, part: Parameter, value: str | None, word: Word) -> list[_Piece]:
    op = part.op
    unset = part.name not in state.variables and not part.name.isdigit() and part.name not in "@*#?$!-"
    if part.name.isdigit():
        unset = int(part.name) > len(state.parameters)
    if value is None:
        raise Stop(KNOW, f"whether `{part.name}` is set is not known", needs="write its value")
    missing = unset or (op.startswith(":") and value == "")
    kind = op.lstrip(":")
    if kind == "+":
        if missing:
            return [_Piece("", part.quoted, not part.quoted)]
    elif not missing:
        return [_Piece(value, part.quoted, not part.quoted)]
    elif kind == "?":
        raise Stop(KNOW, f"`{part.name}` is not set, which ends the shell")
    inner = _pieces(runner, state, word.parts)
    if kind == "=":
        if any(piece.text is None for piece in inner):
            raise Stop(KNOW, f"the value of `{part.name}` is not known")
        state.assign(part.name, "".join(piece.text or "" for piece in inner))
    # Outside quotes the literal characters of the word are split as well.
    return [_Piece(p.text, p.quoted, p.splits or (not p.quoted and not part.quoted), p.why) for p in inner] or [
        _Piece("", part.quoted, not part.quoted)
    ]


def _edit(runner: Runner, state: State, value: str, op: str, word: Word) -> str:
    if op in ("^", "^^", ",", ",,"):
        if word.parts or not value.isascii():
            raise Stop(KNOW, "a change of case that is not plain")
        change = str.upper if op[0] == "^" else str.lower
        return change(value) if len(op) == 2 else change(value[:1]) + value[1:]
    if op[0] == "/":
        return _replace(runner, state, value, op, word)
    chars = pattern(runner, state, word)
    expression = compiled(chars)
    sizes = range(len(value) + 1)
    if op[0] == "#":
        order = sizes if op == "#" else reversed(sizes)
        return next((value[size:] for size in order if expression.fullmatch(value[:size])), value)
    order = reversed(sizes) if op == "%" else sizes
    return next((value[:size] for size in order if expression.fullmatch(value[size:])), value)


def _replace(runner: Runner, state: State, value: str, op: str, word: Word) -> str:
    text = single(runner, state, word)
    if isinstance(text, Hole) or len(word.parts) != 1 or re.search(r"[*?\[\\&#%]", text):
        raise Stop(KNOW, "a replacement that is not plain", word.start, word.end)
    old, _, new = text.partition("/")
    if not old:
        raise Stop(KNOW, "a replacement of nothing", word.start, word.end)
    return value.replace(old, new) if op == "//" else value.replace(old, new, 1)


def parameter(state: State, name: str) -> str | None:
    """The value of a parameter, None where it is not known."""
    if name.isdigit():
        at = int(name)
        if at == 0:
            return state.zero
        return state.parameters[at - 1] if at <= len(state.parameters) else ""
    match name:
        case "#":
            return str(len(state.parameters))
        case "@" | "*":
            return " ".join(state.parameters)
        case "?":
            return None if state.status in (None, -1) else str(state.status)
        case "$" | "!" | "-":
            return None
        case "PWD":
            return state.cwd
        case "OLDPWD" if state.old is not None:
            return state.old
        case "IFS" if "IFS" not in state.variables:
            return _IFS
    if name in _DYNAMIC and name not in state.variables:
        return None
    value = state.value(name)
    if "nounset" in state.options and name not in state.variables:
        raise Stop(KNOW, f"whether `{name}` is set is not known, and `set -u` is on")
    return value


_DYNAMIC: Final = frozenset(
    {
        *(
            "RANDOM",
            "SECONDS",
            "LINENO",
            "EPOCHSECONDS",
            "EPOCHREALTIME",
            "SRANDOM",
            "BASHPID",
            "PPID",
            "UID",
            "EUID",
            "HOSTNAME",
        ),
        *("HOSTTYPE", "MACHTYPE", "OSTYPE", "SHLVL", "BASH", "BASHOPTS", "SHELLOPTS", "BASH_VERSION", "BASH_VERSINFO"),
        *("BASH_COMMAND", "BASH_SUBSHELL", "FUNCNAME", "GROUPS", "DIRSTACK", "PIPESTATUS", "_", "BASH_SOURCE", "BASH_LINENO"),
        *("OPTIND", "OPTARG", "REPLY", "PS4", "PATH", "TERM", "HISTCMD", "COLUMNS", "LINES", "OLDPWD"),
    }
)


# --- splitting


def _split(state: State, pieces: list[_Piece]) -> Iterator[tuple[list[Char], bool] | Hole]:
    """Fields of characters, each with whether something quoted is in it; a field with a hole is one as far as it is known."""
    separators = state.variables["IFS"].value if "IFS" in state.variables else _IFS
    chars: list[Char] = []
    present = quoted = False
    holes = [piece for piece in pieces if piece.text is None]
    if holes:
        many = any(piece.splits for piece in holes)
        prefix = ""
        for piece in pieces:
            if piece.text is None:
                break
            prefix += piece.text
        if any(piece.splits and piece.text and set(piece.text) & set(_IFS) for piece in pieces):
            prefix, many = "", True
        yield Hole("" if many and not prefix else prefix, many, holes[0].why)
        return
    for piece in pieces:
        text = piece.text or ""
        if not piece.splits:
            chars.extend((char, not piece.quoted) for char in text)
            present = present or bool(text) or piece.quoted
            quoted = quoted or piece.quoted
            continue
        if separators is None:
            raise Stop(KNOW, "the value of `IFS` is not known")
        if separators not in (_IFS, "") and set(text) & set(separators):
            raise Stop(KNOW, "splitting by another `IFS`", needs="quote the expansion")
        if "\\" in text and set(text) & set("*?["):
            raise Stop(KNOW, "a pattern with an expanded backslash in it")
        for char in text:
            if separators and char in separators:
                if present:
                    yield chars, quoted
                chars, present, quoted = [], False, False
            else:
                chars.append((char, True))
                present = True
    if present:
        yield chars, quoted


# --- globs


def _glob(state: State, chars: list[Char]) -> list[str]:
    literal = "".join(char for char, _ in chars)
    if state.opaque:
        raise Stop(KNOW, "a glob after a program that may have made files", needs="do it in a call of its own")
    if "posix" in state.options and "[^" in literal:
        raise Stop(KNOW, "`[^`, which a plain `sh` may read otherwise", needs="write `[!`")
    parts: list[list[Char]] = [[]]
    for char in chars:
        if char[0] == "/":
            parts.append([])
        else:
            parts[-1].append(char)
    absolute = len(parts) > 1 and not parts[0]
    found = [""] if not absolute else ["/"]
    rest = list(parts[1:] if absolute else parts)
    for at, part in enumerate(rest):
        last = at == len(rest) - 1
        found = _step(state, found, part, last=last)
        if not found:
            break
        if len(found) > LIMIT:
            raise Stop(KNOW, f"a glob that finds more than {LIMIT} names")
    if found:
        return [Found(name) for name in sorted(found)]
    if "nullglob" in state.options:
        return []
    return [literal]


def _step(state: State, found: list[str], part: list[Char], *, last: bool) -> list[str]:
    """Every path so far with one more component; it ends with a slash where more may follow."""
    out: list[str] = []
    if not is_active(part):
        text = "".join(char for char, _ in part)
        for path in found:
            if not text:
                # Two slashes in a row, or one at the end: kept as written, and only a folder matches.
                if path and state.look_through(path.rstrip("/") or "/") is EntryKind.FOLDER:
                    out.append(path if path.endswith("/") and last else f"{path}/")
                continue
            place = f"{path}{text}"
            kind = state.look_through(place, follow=not last)
            if kind is EntryKind.ABSENT:
                continue
            if last:
                out.append(place)
            elif kind is EntryKind.FOLDER:
                out.append(f"{place}/")
        return out
    hidden = part[0] == (".", True) or part[0] == (".", False)
    expression = compiled(tuple(part))
    if hidden and (expression.fullmatch(".") or expression.fullmatch("..")):
        raise Stop(KNOW, "a pattern for `.`-names that versions of bash differ on", needs="write `.[!.]*`")
    if part[0][1] and part[0][0] != "." and "dotglob" in state.options:
        hidden = True
    for path in found:
        here = state.resolve(path or ".")
        if here.problem or state.look(here.path).kind is not EntryKind.FOLDER:
            continue
        for name in state.names(here.path):
            if (name.startswith(".") and not hidden) or not expression.fullmatch(name):
                continue
            place = f"{path}{name}"
            if last:
                out.append(place)
            elif state.look_through(place) is EntryKind.FOLDER:
                out.append(f"{place}/")
    return out
