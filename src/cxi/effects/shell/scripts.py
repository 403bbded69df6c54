"""What do the scripts of `sed` and `awk` do? They are read whole, or refused.

- sed (GNU): every command by its letter; `e` and `s///e` run programs and are refused, `w` writes, `r` reads.
- awk: its tokens; `system`, pipes, `getline`, `ARGV`, extensions and writes to computed names are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from cxi.effects.shell.call import Call, execute
from cxi.effects.shell.field import Hole
from cxi.effects.shell.state import ABSENT, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

_INPLACE: Final = ("i", "in-place")


@dataclass(slots=True)
class _Sed:
    """A script's reader."""

    text: str
    at: int = 0
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    depth: int = 0

    def stop(self, why: str) -> Stop:
        return Stop(KNOW, f"a sed script {why}", needs="use plain commands (s, p, d, a, i, c)")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, what: str = " \t") -> None:
        while self.peek() and self.peek() in what:
            self.at += 1

    def script(self) -> None:
        while True:
            self.skip(" \t\n;")
            if not self.peek():
                if self.depth:
                    raise self.stop("with a brace that is not closed")
                return
            if self.peek() == "#":
                self.line()
                continue
            if self.address():
                self.skip()
                if self.peek() == ",":
                    self.at += 1
                    self.skip()
                    if self.peek() and self.peek() in "+~":
                        self.at += 1
                        self.number()
                    elif not self.address():
                        raise self.stop("with an address that is not read")
            self.skip()
            while self.peek() == "!":
                self.at += 1
                self.skip()
            self.command()

    def number(self) -> None:
        found = re.compile(r"\d+").match(self.text, self.at)
        if found is None:
            raise self.stop("with an address that is not read")
        self.at = found.end()

    def address(self) -> bool:
        char = self.peek()
        if char.isdigit():
            self.number()
            if self.peek() == "~":
                self.at += 1
                self.number()
            return True
        if char == "$":
            self.at += 1
            return True
        if char in ("/", "\\") and char:
            if char == "\\":
                self.at += 1
                char = self.peek()
                if not char or char in "\n\\":
                    raise self.stop("with an address that is not read")
            self.at += 1
            self.delimited(char, regular=True)
            while self.peek() and self.peek() in "IM":
                self.at += 1
            return True
        return False

    def delimited(self, end: str, *, regular: bool) -> None:
        """Up to a delimiter that is not escaped, nor in brackets where it is a regular expression."""
        while True:
            char = self.peek()
            if not char or (char == "\n" and regular):
                raise self.stop("whose expression is not closed")
            self.at += 1
            if char == "\\":
                if not self.peek():
                    raise self.stop("whose expression is not closed")
                self.at += 1
            elif char == end:
                return
            elif char == "[" and regular:
                self.brackets(end)

    def brackets(self, end: str) -> None:
        start = self.at
        if self.peek() == "^":
            self.at += 1
        if self.peek() == "]":
            self.at += 1
        while self.peek() != "]":
            if not self.peek() or self.peek() == "\n":
                raise self.stop("whose brackets are not closed")
            if self.text.startswith(("[:", "[.", "[="), self.at):
                close = self.text.find(self.text[self.at + 1] + "]", self.at + 2)
                if close < 0:
                    raise self.stop("whose brackets are not closed")
                self.at = close + 2
                continue
            self.at += 1
        if end in self.text[start : self.at] or ("\\" in self.text[start : self.at] and end in "n]"):
            raise self.stop("whose delimiter stands in brackets")
        self.at += 1

    def line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        found = self.text[self.at : end]
        self.at = end
        return found

    def command(self) -> None:
        char = self.peek()
        self.at += 1
        if char == "{":
            self.depth += 1
        elif char == "}":
            self.depth -= 1
            if self.depth < 0:
                raise self.stop("with a brace that closes nothing")
            self.end()
        elif char and char in "dDgGhHnNpPxzF=":
            self.end()
        elif char and char in "lqQL":
            self.skip()
            while self.peek().isdigit():
                self.at += 1
            self.end()
        elif char and char in ":btT":
            label = re.compile(r"[ \t]*[\w.-]*").match(self.text, self.at)
            self.at = label.end() if label else self.at
            self.end()
        elif char and char in "aic":
            self.added()
        elif char and char in "rRwW":
            self.skip()
            name = self.line().rstrip("\r")
            if not name or ";" in name or "}" in name:
                raise self.stop("with a file's name that is not plain")
            (self.reads if char in "rR" else self.writes).append(name)
        elif char == "s":
            self.substitution()
        elif char == "y":
            end = self.peek()
            if not end or end in "\n\\":
                raise self.stop("with a delimiter that is not read")
            self.at += 1
            self.delimited(end, regular=False)
            self.delimited(end, regular=False)
            self.end()
        elif char == "e":
            raise Stop(KNOW, "a sed script that runs a program (`e`)", needs="run the program itself")
        else:
            raise self.stop(f"with a command that is not read (`{char}`)")

    def end(self) -> None:
        self.skip()
        char = self.peek()
        if char == "#":
            self.line()
        elif char not in ("", "\n", ";", "}"):
            raise self.stop("with text after a command")

    def added(self) -> None:
        """`a`, `i`, `c`: text up to the end of a line that no backslash continues."""
        while True:
            line = self.line()
            if (len(line) - len(line.rstrip("\\"))) % 2 == 0 or not self.peek():
                return
            self.at += 1

    def substitution(self) -> None:
        end = self.peek()
        if not end or end in "\n\\":
            raise self.stop("with a delimiter that is not read")
        self.at += 1
        self.delimited(end, regular=True)
        self.delimited(end, regular=False)
        while True:
            char = self.peek()
            if char and char in "gpiImM0123456789":
                self.at += 1
            elif char == "e":
                raise Stop(KNOW, "a sed script that runs a program (`s///e`)", needs="run the program itself")
            elif char == "w":
                self.at += 1
                self.skip()
                name = self.line()
                if not name:
                    raise self.stop("with a file's name that is not plain")
                self.writes.append(name)
                return
            else:
                self.end()
                return


def sed(call: Call) -> list[State]:
    """Edits a stream, or files in place."""
    state = call.state
    texts = [call.known(value, "a script") for value in call.given.all("e", "expression")]
    operands = list(call.given.operands)
    texts += [_script_file(call, call.known(value, "a script's file")) for value in call.given.all("f", "file")]
    if not texts:
        if not operands:
            call.failed = True
            return call.settle()
        texts = [call.known(operands.pop(0), "a script")]
    reader = _Sed("\n".join(texts))
    reader.script()
    execute(state, call.name, call.words)
    for name in reader.writes:
        if name not in ("/dev/stdout", "/dev/stderr"):
            call.write(name, None)
    for name in reader.reads:
        if name != "/dev/stdin":
            place = state.resolve(name)
            if not place.problem and state.look(place.path).kind is not EntryKind.ABSENT:
                call.read(name)
    inplace = call.given.has(*_INPLACE)
    suffix = call.given.last(*_INPLACE) or ""
    if inplace and ("*" in str(suffix) or "/" in str(suffix)):
        raise Stop(KNOW, "`sed -i` with a pattern for its backups")
    for field_ in operands:
        text = call.known(field_, "a file")
        if not inplace:
            call.read(text)
        else:
            _in_place(call, state, text, str(suffix))
    if not operands:
        state.take()
    return call.settle()


def _script_file(call: Call, text: str) -> str:
    place = call.state.resolve(text)
    node = call.state.look(place.path) if not place.problem else ABSENT
    data = call.state.bytes_of(node.data) if node.kind is EntryKind.FILE else None
    if data is None:
        raise Stop(KNOW, f"the script `{text}` cannot be read")
    call.state.read(place.path)
    return data.decode("utf-8", "surrogateescape").removesuffix("\n")


def _in_place(call: Call, state: State, text: str, suffix: str) -> None:
    place = state.resolve(text, follow=False)
    node = state.look(place.path) if not place.problem else ABSENT
    through = state.look_through(text)
    if through is not EntryKind.FILE:
        if not (state.opaque and through is EntryKind.ABSENT and not place.problem):
            call.failed = True
            return
        node = Node(EntryKind.FILE, 0o644, None)
    mode = state.look(state.resolve(text).path).mode or 0o644
    state.read(state.resolve(text).path)
    if suffix:
        backup = state.resolve(text + suffix, follow=False)
        if state.look(backup.path).kind is EntryKind.FOLDER:
            call.failed = True
            return
        state.put(backup.path, node)
    # A new file takes the place of the old one, or of a link that stood there.
    state.put(place.path, Node(EntryKind.FILE, mode, None))


# --- awk

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*)|(?P<newline>\n)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<number>0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)"""
    r"""|(?P<op>\|\||&&|\|&|>>|\*\*=|\*\*|\+\+|--|[-+*/%^]=|==|!=|<=|>=|!~|[-+*%^=<>!~?:,;{}()\[\]$|])""",
    re.DOTALL,
)
_REGULAR: Final = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:\[:\w+:\]|[^\]\n])*\])+/")
_REFUSED: Final = frozenset(
    {"system", "getline", "ARGV", "ARGC", "PROCINFO", "BINMODE", "include", "load", "namespace", "extension"}
)
_VALUES: Final = ("number", "string", "name")


def awk(call: Call) -> list[State]:
    """A program over lines."""
    state = call.state
    operands = list(call.given.operands)
    texts = [_script_file(call, call.known(value, "a program's file")) for value in call.given.all("f")]
    if not texts:
        if not operands:
            call.failed = True
            return call.settle()
        texts = [call.known(operands.pop(0), "a program")]
    for value in call.given.all("v"):
        if not isinstance(value, Hole) and value.split("=")[0] in _REFUSED:
            raise Stop(KNOW, "`awk -v` sets a special variable")
    execute(state, call.name, call.words)
    for text in texts:
        for name, append in awk_writes(text):
            if name not in ("/dev/stdout", "/dev/stderr"):
                call.write(name, None, append=append)
    reads = False
    for field_ in operands:
        text = call.known(field_, "a file")
        if re.match(r"[A-Za-z_]\w*=", text):
            continue
        reads = True
        call.read(text)
    if not reads:
        state.take()
    state.status = None
    return [state]


def awk_writes(text: str) -> list[tuple[str, bool]]:
    """The files that a program writes, and whether it appends.

    Raises:
        Stop: it could do more than read its input and write these.
    """
    if len(text) > 20_000:
        raise Stop(KNOW, "an awk program of that size")
    tokens = _tokens(text)
    found: list[tuple[str, bool]] = []
    depth = 0
    printing: int | None = None
    for at, (kind, token) in enumerate(tokens):
        if kind == "name":
            if token in _REFUSED:
                raise Stop(KNOW, f"an awk program that uses `{token}`", needs="run the program itself")
            if token in ("print", "printf"):
                printing = depth
        elif kind == "op":
            if token in ("|", "|&"):
                raise Stop(KNOW, "an awk program that runs a program (`|`)", needs="pipe the output of awk itself")
            if token in ("(", "["):
                depth += 1
            elif token in (")", "]"):
                depth -= 1
            elif token in (";", "{", "}"):
                printing = None
            elif token in (">", ">>") and printing is not None and depth <= printing:
                target = tokens[at + 1] if at + 1 < len(tokens) else ("", "")
                after = tokens[at + 2] if at + 2 < len(tokens) else ("op", "}")
                if target[0] != "string" or "\\" in target[1] or after not in (("op", ";"), ("op", "}"), ("newline", "\n")):
                    raise Stop(KNOW, "an awk program that writes to a computed name", needs="redirect the output of awk itself")
                found.append((target[1][1:-1], token == ">>"))  # noqa: S105 - a token of awk
        elif kind == "newline":
            printing = None
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if text[at] == "/":
            last = out[-1] if out else ("", "")
            divides = last[0] in ("number", "string") or (
                last[0] == "name" and last[1] not in ("print", "printf", "return", "in")
            )
            if not divides and last[1] not in (")", "]", "++", "--"):
                regular = _REGULAR.match(text, at)
                if regular is None:
                    raise Stop(KNOW, "an awk program that is not read")
                out.append(("string", regular.group()))
                at = regular.end()
                continue
            if text.startswith("/=", at) or last[1] in ("++", "--"):
                raise Stop(KNOW, "an awk program that is not read")
            out.append(("op", "/"))
            at += 1
            continue
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise Stop(KNOW, f"an awk program that is not read (`{text[at]}`)")
        if found.lastgroup != "space":
            out.append((found.lastgroup or "", found.group()))
        at = found.end()
    return out
