"""What are the words of a bash text? Quoting, expansions and here-documents; after bash's manual (5.2), 3.1 and 3.5.

- A word keeps for each stretch whether it was quoted. What is not on the closed list of `syntax` is refused where it stands.
- Characters that a reader of the text cannot see are refused (`NON_CANONICAL_TEXT`), but not in a here-document's body.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NoReturn, Self

from cxi.effects.shell.stop import READ, Stop
from cxi.effects.shell.syntax import Arithmetic, Here, Literal, Parameter, Part, Process, Script, Substitution, Word
from cxi.errors import Code

LONGEST: Final = 256 * 1024  # characters of a text
DEEPEST: Final = 40  # constructs in each other
MOST: Final = 2_000  # expansions of a text
WIDEST: Final = 32 * 1024  # characters outside here-documents

RUN: Final = re.compile(r"[^\s|&;()<>\\'\"$`]+")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,@%+\-^=]+")
_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_DOUBLE: Final = re.compile(r"[^\\\"$`]+")
_ARITHMETIC: Final = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()$#{}]*")
_OPERATOR: Final = re.compile(r":[-=+?]|[-=+?]|%%?|##?|//?|\^\^?|,,?")
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_ANSI: Final = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
                "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip
_DEAD: Final = frozenset({"[", "{}"})
_LIVE: Final = re.compile(r"[*?\[{~\\]")


class Lexer:
    """A place in a text; `script` is the grammar's.

    Attributes:
        at: The next character.
        spans: Where here-documents' bodies stand.
        commands: Where each simple command's first word stands.
        foreign: Whether some of them stand in a text of their own.
    """

    def __init__(self, text: str, *, posix: bool = False, depth: int = 0, outer: Lexer | None = None) -> None:
        self.text = text
        self.at = 0
        self.posix = posix
        self.depth = depth
        self.pending: list[tuple[Here, str, bool, bool]] = []  # with its delimiter, whether quoted, whether tabs are stripped
        self.spans: list[tuple[int, int]] = []
        self.commands: list[int] = []
        self.foreign = False
        self.expansions = 0
        if outer:
            outer.foreign = True

    def stop(self, detail: str, start: int | None = None, *, needs: str = "") -> NoReturn:
        """Refuse at a place."""
        begin = self.at if start is None else start
        raise Stop(READ, detail, begin, max(self.at, begin + 1), needs=needs)

    def bash_only(self, what: str) -> None:
        """Refuse what a plain `sh` reads otherwise."""
        if self.posix:
            self.stop(f"{what} means something else to a plain `sh`", needs="run it with `bash -c`")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Stop(Code.TOO_LARGE, f"more than {DEEPEST} constructs in each other", self.at, self.at + 1)

    def visible(self) -> None:
        """Refuse characters that cannot be seen, outside here-documents."""
        if self.text.isascii() and self.text.isprintable():
            return
        inside = iter([*self.spans, (len(self.text), len(self.text))])
        start, end = next(inside)
        for at, char in enumerate(self.text):
            if at >= end and end < len(self.text):
                start, end = next(inside)
            if char in "\n\t" or (" " <= char <= "~"):
                continue
            category = unicodedata.category(char)
            if category == "Cs" or char == "\0":
                raise Stop(Code.NON_CANONICAL_TEXT, f"U+{ord(char):04X} has no form in a command", at, at + 1)
            if category in ("Cc", "Cf", "Zl", "Zp", "Zs") and not start <= at < end:
                raise Stop(Code.NON_CANONICAL_TEXT, f"U+{ord(char):04X} cannot be seen", at, at + 1)

    # --- between words

    def blank(self) -> None:
        """Skip blanks, continued lines and a comment."""
        text = self.text
        while True:
            found = _BLANK.match(text, self.at)
            if found:
                self.at = found.end()
            if text.startswith("#", self.at) and (self.at == 0 or text[self.at - 1] in " \t\n;&|()"):
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
                return
            if not found:
                return

    def newline(self) -> None:
        """Take a newline, and the here-documents that begin after it."""
        self.at += 1
        pending, self.pending = self.pending, []
        for later, delimiter, quoted, tabs in pending:
            later.body = self.here(delimiter, quoted=quoted, tabs=tabs)

    def lines(self) -> None:
        """Skip blanks and newlines."""
        self.blank()
        while self.text.startswith("\n", self.at):
            self.newline()
            self.blank()

    def here(self, delimiter: str, *, quoted: bool, tabs: bool) -> Word:
        start = self.at
        kept: list[str] = []
        text = self.text
        continued = False  # by a backslash: then the next line cannot end it
        while True:
            if self.at >= len(text):
                self.stop(f"the here-document is not ended by `{delimiter}`", start)
            end = text.find("\n", self.at)
            end = len(text) if end < 0 else end
            line = text[self.at : end]
            self.at = min(end + 1, len(text))
            stripped = line.lstrip("\t") if tabs else line
            if stripped == delimiter and not continued:
                break
            continued = not quoted and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            if continued and (tabs or delimiter.startswith(stripped[:-1])):
                self.stop("a continued line hides the here-document's end", start)
            kept.append(stripped + "\n")
        stop = self.at
        self.spans.append((start, stop))
        body = "".join(kept)
        if quoted or not re.search(r"[\\$`]", body):
            return Word(start, stop, (Literal(body, True),), body)
        if len(body) > LONGEST // 4 and body.count("$(") > 100:
            self.stop("the here-document expands too much", start)
        inner = self.inner(body, self.depth)
        inner.deeper()
        try:
            parts = inner.double(end="")
        except Stop as error:
            raise Stop(error.code, error.detail, start, stop, needs=error.needs) from None
        return _word(start, stop, parts)

    def script(self, ends: frozenset[str]) -> Script:
        """The commands up to an end that is not taken."""
        raise NotImplementedError

    def take(self, what: str) -> None:
        if not self.text.startswith(what, self.at):
            self.stop(f"`{what}` is expected")
        self.at += len(what)

    def inner(self, text: str, depth: int) -> Self:
        """A reader of a text inside this one."""
        return type(self)(text, posix=self.posix, depth=depth, outer=self)

    # --- words

    def word(self, ends: str = "") -> Word:
        """One word; it ends before a blank, a newline or an operator's character, or one of `ends`."""
        text = self.text
        start = self.at
        plain = _PLAIN.match(text, start)
        if plain is not None:
            end = plain.end()
            if end >= len(text) or (text[end] in " \t\n;|&)" and text[end] not in ends):
                self.at = end
                run = plain.group()
                return Word(start, end, (Literal(run, False),), run)
        parts: list[Part] = []
        while self.at < len(text):
            char = text[self.at]
            if char in " \t\n|&;)" or char in ends:
                break
            if char in "<>":
                if text[self.at + 1 : self.at + 2] != "(":
                    break
                self.bash_only("a process substitution")
                reads = char == "<"
                self.at += 2
                body = self.script(frozenset({")"}))
                self.take(")")
                parts.append(Process(body, reads))
                continue
            if char == "(":
                break
            self.part(parts, char)
        if self.at == start:
            self.stop("a word is expected")
        return _word(start, self.at, parts)

    def part(self, parts: list[Part], char: str) -> None:
        text = self.text
        if char == "\\":
            following = text[self.at + 1 : self.at + 2]
            if not following:
                self.stop("a backslash at the end")
            if following != "\n":
                parts.append(Literal(following, True))
            self.at += 2
        elif char == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                self.stop("a quote is not closed")
            parts.append(Literal(text[self.at + 1 : end], True))
            self.at = end + 1
        elif char == '"':
            self.at += 1
            inner = self.double(end='"')
            parts.extend(inner or [Literal("", True)])
        elif char in "$`":
            self.dollar(parts, char, quoted=False)
        else:
            found = RUN.match(text, self.at)
            if found is None:  # a blank of another kind than space, tab and newline
                parts.append(Literal(char, False))
                self.at += 1
            else:
                parts.append(Literal(found.group(), False))
                self.at = found.end()

    def double(self, end: str) -> list[Part]:
        """What stands in double quotes, or in a here-document where `end` is empty."""
        text = self.text
        start = self.at
        parts: list[Part] = []
        while True:
            if self.at >= len(text):
                if end:
                    self.stop("a quote is not closed", start - 1)
                return parts
            char = text[self.at]
            if char == end:
                self.at += 1
                return parts
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following == "\n":
                    self.at += 2
                    continue
                if following and following in ("$`\\\n" if not end else '$`"\\\n'):
                    parts.append(Literal(following, True))
                    self.at += 2
                else:
                    parts.append(Literal("\\", True))
                    self.at += 1
            elif char in "$`":
                self.dollar(parts, char, quoted=True)
            elif not end and char == '"':
                parts.append(Literal('"', True))
                self.at += 1
            else:
                found = _DOUBLE.match(text, self.at)
                if found is None:
                    raise AssertionError
                parts.append(Literal(found.group(), True))
                self.at = found.end()

    def dollar(self, parts: list[Part], char: str, *, quoted: bool) -> None:
        text, start = self.text, self.at
        self.expansions += 1
        if self.expansions > MOST:
            raise Stop(Code.TOO_LARGE, f"more than {MOST} expansions", start, start + 1)
        if char == "`":
            parts.append(Substitution(self.backticks(quoted=quoted), quoted))
            return
        following = text[start + 1 : start + 2]
        if following == "(":
            if text.startswith("((", start + 1):
                self.at += 3
                parts.append(Arithmetic(self.arithmetic(), quoted))
                return
            self.at += 2
            body = self.script(frozenset({")"}))
            self.take(")")
            parts.append(Substitution(body, quoted))
        elif following == "{":
            self.at += 2
            parts.append(self.braced(quoted=quoted))
        elif following == "'" and not quoted:
            self.bash_only("`$'`")
            self.at += 2
            parts.append(Literal(self.ansi(), True))
        elif following == '"' and not quoted:
            self.stop('`$"` is translated by the locale', needs='write `"`')
        elif following == "[":
            self.stop("`$[` is old arithmetic", needs="write `$((…))`")
        elif (name := NAME.match(text, start + 1)) is not None:
            self.at = name.end()
            parts.append(Parameter(name.group(), quoted))
        elif following and following in "0123456789@*#?$!-":
            self.at += 2
            parts.append(Parameter(following, quoted))
        else:
            parts.append(Literal("$", True))
            self.at += 1

    def backticks(self, *, quoted: bool) -> Script:
        text, start = self.text, self.at
        self.at += 1
        kept: list[str] = []
        while True:
            if self.at >= len(text):
                self.stop("a backtick is not closed", start)
            char = text[self.at]
            if char == "`":
                self.at += 1
                break
            if (
                char == "\\"
                and self.at + 1 < len(text)
                and (text[self.at + 1] in "$`\\" or (quoted and text[self.at + 1] == '"'))
            ):
                kept.append(text[self.at + 1])
                self.at += 2
                continue
            kept.append(char)
            self.at += 1
        inner = self.inner("".join(kept), self.depth + 1)
        try:
            script = inner.script(frozenset())
            if inner.at < len(inner.text):
                inner.stop("a backtick's text is not read whole")
        except Stop as error:
            raise Stop(error.code, error.detail, start, self.at, needs=error.needs) from None
        return script

    def arithmetic(self, *, semicolons: bool = False) -> str:
        """The text up to the `))` that closes what was opened; only plain characters are read."""
        start = self.at
        depth = 0
        text = self.text
        while True:
            if self.at >= len(text):
                self.stop("`))` is expected", start)
            char = text[self.at]
            if char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    if not text.startswith("))", self.at):
                        self.stop("this is not arithmetic alone", start)
                    break
                depth -= 1
            self.at += 1
        inner = text[start : self.at]
        self.at += 2
        if self.posix and any(sign in inner for sign in ("++", "--", "**", ",")):
            self.stop("arithmetic that only bash has", start)
        if len(inner) > 2_000:
            raise Stop(Code.TOO_LARGE, "arithmetic of that length", start, self.at)
        if not _ARITHMETIC.fullmatch(inner.replace(";", " ") if semicolons else inner) or "$(" in inner:
            self.stop("arithmetic with quotes, arrays or commands in it", start)
        return inner

    def braced(self, *, quoted: bool) -> Parameter:
        text, start = self.text, self.at
        if text.startswith("#", start) and text[start + 1 : start + 2] != "}":
            found = NAME.match(text, start + 1) or re.compile(r"[@*0-9]").match(text, start + 1)
            if found is None or text[found.end() : found.end() + 1] != "}":
                self.stop("this expansion is not read", start - 2)
            self.at = found.end() + 1
            return Parameter(found.group(), quoted, "length")
        name = _PARAMETER.match(text, start)
        if name is None:
            self.stop("this expansion is not read", start - 2)
        self.at = name.end()
        if text.startswith("}", self.at):
            self.at += 1
            return Parameter(name.group(), quoted)
        operator = _OPERATOR.match(text, self.at)
        if operator is None:
            self.stop("this expansion is not read", start - 2)
        op = operator.group()
        if op[0] in "/^,":
            self.bash_only("this expansion")
        self.at = operator.end()
        here = self.at
        parts: list[Part] = []
        while True:
            if self.at >= len(text):
                self.stop("`}` is expected", start - 2)
            char = text[self.at]
            if char == "}":
                break
            if char in "{<>(" or (char in "'\"\n" and quoted):
                self.stop("this expansion is not read", start - 2)
            if char in " \t\n|&;)":
                parts.append(Literal(char, quoted))
                self.at += 1
            elif quoted and char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following not in ("$", "`", '"', "\\", "}"):
                    self.stop("this expansion is not read", start - 2)
                parts.append(Literal(following, True))
                self.at += 2
            elif char in "$`":
                self.dollar(parts, char, quoted=quoted)
            elif char in "\\'\"":
                self.part(parts, char)
            else:
                found = re.compile(r"[^\s|&;()<>\\'\"$`{}]+").match(text, self.at)
                if found is None:
                    self.stop("this expansion is not read", start - 2)
                    raise AssertionError
                parts.append(Literal(found.group(), quoted and op[0] not in "%#/^,"))
                self.at = found.end()
        word = _word(here, self.at, parts)
        self.at += 1
        return Parameter(name.group(), quoted, op, word)

    def ansi(self) -> str:
        """The text of `$'…'`, from after its quote."""
        text, start = self.text, self.at
        kept: list[str] = []
        while True:
            char = text[self.at : self.at + 1]
            if not char:
                self.stop("a quote is not closed", start - 2)
            self.at += 1
            if char == "'":
                return "".join(kept)
            if char != "\\":
                kept.append(char)
                continue
            following = text[self.at : self.at + 1]
            if following in _ANSI and following:
                kept.append(_ANSI[following])
                self.at += 1
                continue
            found = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})").match(text, self.at)
            if found is None:
                self.stop("this escape is not read", self.at - 1)
            value = int(found[4], 8) & 0xFF if found[4] else int(found[1] or found[2] or found[3], 16)
            if value == 0 or (value > 0x7F and (found[1] or found[4])) or value > 0x10FFFF or 0xD800 <= value < 0xE000:
                self.stop("this escape is not read", self.at - 1)
            kept.append(chr(value))
            self.at = found.end()


def _word(start: int, end: int, parts: list[Part]) -> Word:
    """A word, with neighbouring literals of one kind joined."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Literal) and isinstance(last, Literal) and part.quoted == last.quoted:
            joined[-1] = Literal(last.text + part.text, part.quoted)
        else:
            joined.append(part)
    plain: str | None = None
    if all(isinstance(p, Literal) and (p.quoted or p.text in _DEAD or not _LIVE.search(p.text)) for p in joined):
        plain = "".join(part.text for part in joined if isinstance(part, Literal))
    return Word(start, end, tuple(joined), plain)
