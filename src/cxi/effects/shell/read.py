"""How does bash read this text? Whole, or not at all.

- Written from bash's manual (5.2): quoting, reserved words in command position only, here-documents, compound commands.
- What is not on the closed list of `syntax` is refused where it stands: arrays, `select`, `coproc`, extended globs, `{name}>`.
- A second reader (tree-sitter) must find no error and the same commands at the same places, else the text is refused.
- Characters that a reader of the text cannot see are refused (`NON_CANONICAL_TEXT`), but not in a here-document's body.

    >>> read("echo hi > out").chains[0].first.stages[0].words[0].plain  # doctest: +SKIP
    'echo'
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NoReturn

from cxi.effects.shell.second import compare
from cxi.effects.shell.stop import READ, Stop
from cxi.effects.shell.syntax import (
    Arithmetic,
    Assignment,
    Both,
    Case,
    Chain,
    Check,
    Command,
    Compute,
    Condition,
    Count,
    For,
    Function,
    Group,
    Here,
    If,
    Literal,
    Not,
    Parameter,
    Part,
    Pipeline,
    Process,
    Redirect,
    Script,
    Simple,
    Substitution,
    Test,
    While,
    Word,
)
from cxi.errors import Code

LONGEST: Final = 256 * 1024  # characters of a text
DEEPEST: Final = 40  # constructs in each other

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,@%+\-^=]+")
_RUN: Final = re.compile(r"[^\s|&;()<>\\'\"$`]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGN: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SUBSCRIPT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_REDIRECT: Final = re.compile(r"(\d*)(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|(&>>|&>)")
_VARFD: Final = re.compile(r"\{[A-Za-z_]\w*\}[<>]")
_DOUBLE: Final = re.compile(r"[^\\\"$`]+")
_ARITHMETIC: Final = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()$#{}]*")
_OPERATOR: Final = re.compile(r":[-=+?]|[-=+?]|%%?|##?|//?|\^\^?|,,?")
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_REGULAR: Final = re.compile(r"[\w^$.*+?\[\]/,:=@%~-]+")
_RESERVED: Final = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "in",
        "function",
        "select",
        "coproc",
        "time",
        "{",
        "}",
        "!",
        "[[",
        "]]",
    ]
)
_ENDS: Final = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])
_UNARY: Final = frozenset(
    [
        "-a",
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-p",
        "-r",
        "-s",
        "-t",
        "-u",
        "-w",
        "-x",
        "-G",
        "-L",
        "-N",
        "-O",
        "-S",
        "-z",
        "-n",
        "-o",
        "-v",
    ]
)
_BINARY: Final = frozenset(["=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"])
_ANSI: Final = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
                "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip


def read(text: str, *, posix: bool = False) -> Script:
    """The commands of a text.

    Args:
        text: The text.
        posix: Whether a plain `sh` will run it: what only bash has is refused then.

    Raises:
        Stop: it cannot be read whole.
    """
    if len(text) > LONGEST:
        raise Stop(Code.TOO_LARGE, f"the text is over {LONGEST} characters")
    reader = Reader(text, posix=posix)
    script = reader.script(frozenset())
    if reader.at < len(text):
        reader.stop(f"`{text[reader.at]}` is not expected here")
    reader.visible()
    compare(text, reader.commands, foreign=reader.foreign)
    return script


class Reader:
    """A place in a text.

    Attributes:
        at: The next character.
        spans: Where here-documents' bodies stand.
        commands: Where each simple command's first word stands.
        foreign: Whether some of them stand in a text of their own.
    """

    def __init__(self, text: str, *, posix: bool = False, depth: int = 0, outer: Reader | None = None) -> None:
        self.text = text
        self.at = 0
        self.posix = posix
        self.depth = depth
        self.pending: list[tuple[Here, str, bool, bool]] = []  # with its delimiter, whether quoted, whether tabs are stripped
        self.spans: list[tuple[int, int]] = []
        self.commands: list[int] = outer.commands if outer else []
        self.foreign = False
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
        inner = Reader(body, posix=self.posix, depth=self.depth, outer=self)
        inner.deeper()
        try:
            parts = inner.double(end="")
        except Stop as error:
            raise Stop(error.code, error.detail, start, stop, needs=error.needs) from None
        return _word(start, stop, parts)

    # --- lists

    def script(self, ends: frozenset[str]) -> Script:
        """Chains up to an end that is not taken: `)`, a reserved word, `;;`, or the end of the text."""
        self.deeper()
        chains: list[Chain] = []
        while True:
            self.lines()
            if self.at >= len(self.text) or self.ended(ends):
                break
            if len(chains) >= 2000:
                raise Stop(Code.TOO_LARGE, "more than 2000 commands", self.at, self.at + 1)
            chains.append(self.chain())
        self.depth -= 1
        if self.pending and (self.at < len(self.text) or ends):
            self.stop("a here-document is not on the lines that follow")
        if self.pending:
            self.stop("a here-document has no body")
        return Script(tuple(chains))

    def ended(self, ends: frozenset[str]) -> bool:
        char = self.text[self.at]
        if char == ")":
            if ")" not in ends:
                self.stop("`)` closes nothing")
            return True
        if (char == ";" and self.text.startswith(";;", self.at)) or self.text.startswith(";&", self.at):
            if ";;" not in ends:
                self.stop("`;;` is not expected here")
            return True
        word = self.peek()
        if word in _ENDS:
            if word not in ends:
                self.stop(f"`{word}` is not expected here")
            return True
        return False

    def peek(self) -> str:
        """The reserved word that stands here, or empty."""
        char = self.text[self.at : self.at + 1]
        if char in ("{", "}", "!"):
            following = self.text[self.at + 1 : self.at + 2]
            return char if following in ("", " ", "\t", "\n", ";", "&", "|", ")", "(", "<", ">") else ""
        found = _RUN.match(self.text, self.at)
        if found and found.group() in _RESERVED and self.text[found.end() : found.end() + 1] not in ("'", '"', "$", "`", "\\"):
            return found.group()
        return ""

    def chain(self) -> Chain:
        start = self.at
        first = self.pipeline()
        rest: list[tuple[str, Pipeline]] = []
        while True:
            self.blank()
            op = self.text[self.at : self.at + 2]
            if op not in ("&&", "||"):
                break
            self.at += 2
            self.lines()
            rest.append((op, self.pipeline()))
        background = False
        end = self.at
        char = self.text[self.at : self.at + 1]
        if char == "&" and not self.text.startswith("&>", self.at):
            background = True
            self.at += 1
        elif char == ";" and self.text[self.at : self.at + 2] not in (";;", ";&"):
            self.at += 1
        elif char not in ("", "\n", ")", ";"):
            self.stop(f"`{char}` is not expected here")
        return Chain(first, tuple(rest), background, start, end)

    def pipeline(self) -> Pipeline:
        start = self.at
        negated = timed = False
        while (word := self.peek()) in ("!", "time"):
            if word == "time":
                self.bash_only("`time`")
                self.commands.append(self.at)  # to the second reader it is a command
                timed = True
            else:
                negated = not negated
            self.at += len(word)
            self.blank()
            if word == "time" and self.text.startswith("-", self.at):
                if not self.text.startswith("-p ", self.at):
                    self.stop("`time` takes no option but `-p`")
                self.at += 3
                self.blank()
        stages = [self.command(timed=timed)]
        both: list[bool] = []
        while True:
            self.blank()
            if not self.text.startswith("|", self.at) or self.text.startswith("||", self.at):
                break
            both.append(self.text.startswith("|&", self.at))
            if both[-1]:
                self.bash_only("`|&`")
            self.at += 2 if both[-1] else 1
            self.lines()
            if self.peek() in ("!", "time"):
                self.stop("a reserved word inside a pipeline")
            stages.append(self.command())
        return Pipeline(tuple(stages), tuple(both), negated, timed, start, self.at)

    # --- commands

    def command(self, *, timed: bool = False) -> Command:
        self.deeper()
        try:
            return self._command(timed=timed)
        finally:
            self.depth -= 1

    def _command(self, *, timed: bool) -> Command:
        start = self.at
        text = self.text
        if text.startswith("((", start):
            self.bash_only("`((`")
            self.at += 2
            inner = self.arithmetic()
            return Compute(inner, self.redirects(), start, self.at)
        if text.startswith("(", start):
            self.at += 1
            body = self.script(frozenset({")"}))
            self.take(")")
            return self.filled(Group(body, True, self.redirects(), start, self.at), body)
        match self.peek():
            case "{":
                self.at += 1
                body = self.script(frozenset({"}"}))
                self.keyword("}")
                return self.filled(Group(body, False, self.redirects(), start, self.at), body)
            case "if":
                return self.conditional(start)
            case "while" | "until" as word:
                self.at += 5
                condition = self.script(frozenset({"do"}))
                self.keyword("do")
                body = self.script(frozenset({"done"}))
                self.keyword("done")
                if not condition.chains or not body.chains:
                    self.stop("an empty list", start)
                return While(condition, body, word == "until", self.redirects(), start, self.at)
            case "for":
                return self.loop(start)
            case "case":
                return self.case(start)
            case "[[":
                self.bash_only("`[[`")
                self.at += 2
                condition_ = self.either()
                self.lines()
                if not text.startswith("]]", self.at):
                    self.stop("`]]` is expected")
                self.at += 2
                return Check(condition_, self.redirects(), start, self.at)
            case "function":
                self.bash_only("`function`")
                self.at += 8
                self.blank()
                found = _NAME.match(text, self.at)
                if found is None:
                    self.stop("a function's name is expected")
                    raise AssertionError
                self.at = found.end()
                self.blank()
                if text.startswith("(", self.at):
                    self.at += 1
                    self.blank()
                    self.take(")")
                return self.function(found.group(), start)
            case "" | "in":
                return self.simple(start, timed=timed)
            case word:
                self.stop(f"`{word}` is not read here", needs="write it without `" + word + "`")

    def filled(self, command: Command, body: Script) -> Command:
        if not body.chains:
            self.stop("an empty list", command.start)
        return command

    def take(self, what: str) -> None:
        if not self.text.startswith(what, self.at):
            self.stop(f"`{what}` is expected")
        self.at += len(what)

    def keyword(self, what: str) -> None:
        if self.at >= len(self.text) or self.peek() != what:
            self.stop(f"`{what}` is expected")
        self.at += len(what)

    def function(self, name: str, start: int) -> Function:
        self.lines()
        if self.peek() not in ("{", "if", "while", "until", "for", "case", "[[") and not self.text.startswith("(", self.at):
            self.stop("a function's body is expected")
        return Function(name, self.command(), start, self.at)

    def conditional(self, start: int) -> If:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        self.at += 2
        while True:
            condition = self.script(frozenset({"then"}))
            self.keyword("then")
            body = self.script(frozenset({"elif", "else", "fi"}))
            if not condition.chains or not body.chains:
                self.stop("an empty list", start)
            branches.append((condition, body))
            word = self.peek() if self.at < len(self.text) else ""
            if word == "elif":
                self.at += 4
                continue
            if word == "else":
                self.at += 4
                otherwise = self.script(frozenset({"fi"}))
                if not otherwise.chains:
                    self.stop("an empty list", start)
            self.keyword("fi")
            return If(tuple(branches), otherwise, self.redirects(), start, self.at)

    def loop(self, start: int) -> For | Count:
        self.at += 3
        self.blank()
        text = self.text
        if text.startswith("((", self.at):
            self.bash_only("`for ((`")
            self.at += 2
            parts = self.arithmetic(semicolons=True).split(";")
            if len(parts) != 3:
                self.stop("`for ((` takes three expressions", start)
            self.blank()
            if text.startswith(";", self.at):
                self.at += 1
            body = self.do()
            return Count(parts[0], parts[1], parts[2], body, self.redirects(), start, self.at)
        found = _NAME.match(text, self.at)
        if found is None:
            self.stop("a variable's name is expected")
        self.at = found.end()
        self.lines()
        words: list[Word] | None = None
        if self.at < len(text) and self.peek() == "in":
            self.at += 2
            words = []
            while True:
                self.blank()
                if self.at >= len(text) or text[self.at] in ";\n":
                    break
                words.append(self.word())
            if self.at < len(text) and text[self.at] == ";":
                self.at += 1
        elif text.startswith(";", self.at):
            self.at += 1
        body = self.do()
        return For(found.group(), None if words is None else tuple(words), body, self.redirects(), start, self.at)

    def do(self) -> Script:
        self.lines()
        start = self.at
        self.keyword("do")
        body = self.script(frozenset({"done"}))
        self.keyword("done")
        if not body.chains:
            self.stop("an empty list", start)
        return body

    def case(self, start: int) -> Case:
        self.at += 4
        self.blank()
        word = self.word()
        self.lines()
        self.keyword("in")
        items: list[tuple[tuple[Word, ...], Script, str]] = []
        while True:
            self.lines()
            if self.at < len(self.text) and self.peek() == "esac":
                break
            if self.text.startswith("(", self.at):
                self.at += 1
                self.blank()
            patterns = [self.word()]
            self.blank()
            while self.text.startswith("|", self.at):
                self.at += 1
                self.blank()
                patterns.append(self.word())
                self.blank()
            self.take(")")
            body = self.script(frozenset({";;", "esac"}))
            end = ";;"
            for mark in (";;&", ";;", ";&"):
                if self.text.startswith(mark, self.at):
                    self.at += len(mark)
                    end = mark
                    if mark != ";;":
                        self.bash_only(f"`{mark}`")
                    break
            items.append((tuple(patterns), body, end))
        self.keyword("esac")
        return Case(word, tuple(items), self.redirects(), start, self.at)

    def simple(self, start: int, *, timed: bool) -> Command:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        text = self.text
        while True:
            self.blank()
            if self.at >= len(text):
                break
            char = text[self.at]
            if (char in "<>&" or char.isdigit()) and (found := _REDIRECT.match(text, self.at)):
                redirects.append(self.redirect(found))
                continue
            if char in "\n;|&)":
                break
            if char == "(":
                if len(words) == 1 and not assignments and not redirects and words[0].plain is not None:
                    return self.define(words[0], start)
                self.stop("`(` is not expected here", needs="quote it")
            if char == "{" and _VARFD.match(text, self.at):
                self.stop("`{name}` before a redirection is not read")
            if not words and (assignment := self.assignment()) is not None:
                assignments.append(assignment)
                continue
            words.append(self.word())
        if not assignments and not words and not redirects:
            self.stop("a command is expected")
        if words and not timed:
            self.commands.append(words[0].start)
        return Simple(tuple(assignments), tuple(words), tuple(redirects), start, self.at)

    def define(self, word: Word, start: int) -> Function:
        name = word.plain or ""
        if not _NAME.fullmatch(name) or self.text[word.start : word.end] != name:
            self.stop("a function's name is expected", start)
        self.at += 1
        self.blank()
        self.take(")")
        return self.function(name, start)

    def assignment(self) -> Assignment | None:
        found = _ASSIGN.match(self.text, self.at)
        if found is None:
            if _SUBSCRIPT.match(self.text, self.at):
                # It is an assignment to an element, or a glob: both are rare, and easily confused.
                self.stop("an array's element, or a glob that looks like one", needs="quote it")
            return None
        if found[2]:
            self.bash_only("`+=`")
        self.at = found.end()
        if self.text.startswith("(", self.at):
            self.stop("arrays are not read", needs="use plain variables")
        here = self.at
        if self.at >= len(self.text) or self.text[self.at] in " \t\n;|&)<>":
            return Assignment(found[1], Word(here, here, (), ""), bool(found[2]))
        return Assignment(found[1], self.word(), bool(found[2]))

    def redirects(self) -> tuple[Redirect, ...]:
        """Redirections after a compound command."""
        found: list[Redirect] = []
        while True:
            self.blank()
            match = _REDIRECT.match(self.text, self.at)
            if match is None:
                return tuple(found)
            found.append(self.redirect(match))

    def redirect(self, match: re.Match[str]) -> Redirect:
        start = self.at
        op = match[2] or match[3]
        fd = int(match[1]) if match[1] and len(match[1]) < 4 else None
        if match[1] and fd is None:
            self.stop("a descriptor of that size is not read")
        if op in ("&>", "&>>", "<<<"):
            self.bash_only(f"`{op}`")
        self.at = match.end()
        self.blank()
        if self.at >= len(self.text) or self.text[self.at] in "\n;|&)(":
            self.stop("a redirection's target is expected")
        if op not in ("<<", "<<-"):
            return Redirect(op, fd, self.word(), start, self.at)
        here = self.at
        word = self.word()
        if any(not isinstance(part, Literal) for part in word.parts):
            self.stop("a here-document's end is not one literal word", here)
        delimiter = "".join(part.text for part in word.parts if isinstance(part, Literal))
        raw = self.text[here : self.at]
        if "\n" in delimiter or not delimiter:
            self.stop("a here-document's end is not one literal word", here)
        later = Here()
        self.pending.append((later, delimiter, raw != delimiter, op == "<<-"))
        return Redirect("<<", fd, word, start, self.at, later)

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
            found = _RUN.match(text, self.at)
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
        elif (name := _NAME.match(text, start + 1)) is not None:
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
        inner = Reader("".join(kept), posix=self.posix, depth=self.depth + 1, outer=self)
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
        if not _ARITHMETIC.fullmatch(inner.replace(";", " ") if semicolons else inner) or "$(" in inner:
            self.stop("arithmetic with quotes, arrays or commands in it", start)
        return inner

    def braced(self, *, quoted: bool) -> Parameter:
        text, start = self.text, self.at
        if text.startswith("#", start) and text[start + 1 : start + 2] != "}":
            found = _NAME.match(text, start + 1) or re.compile(r"[@*0-9]").match(text, start + 1)
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

    # --- [[ ]]

    def either(self) -> Condition:
        left = self.every()
        while True:
            self.lines()
            if not self.text.startswith("||", self.at):
                return left
            self.at += 2
            left = Both("||", left, self.every())

    def every(self) -> Condition:
        left = self.term()
        while True:
            self.lines()
            if not self.text.startswith("&&", self.at):
                return left
            self.at += 2
            left = Both("&&", left, self.term())

    def term(self) -> Condition:
        self.deeper()
        try:
            return self._term()
        finally:
            self.depth -= 1

    def _term(self) -> Condition:
        self.lines()
        text = self.text
        if text.startswith("(", self.at):
            self.at += 1
            inner = self.either()
            self.lines()
            self.take(")")
            return inner
        if re.compile(r"![\s(]").match(text, self.at):
            self.at += 1
            return Not(self.term())
        left = self.word()
        self.blank()
        if left.plain in _UNARY and left.end - left.start == 2 and self.at < len(text) and not self.closes():
            if not _BINARY_AHEAD.match(text, self.at):
                return Test(left.plain or "", (self.word(),))
        if self.at >= len(text) or self.closes():
            return Test("-n", (left,))
        found = _BINARY_AHEAD.match(text, self.at)
        if found is None:
            self.stop("an operator is expected")
        op = found.group().strip()
        self.at += len(op)
        self.blank()
        if op == "=~":
            regular = _REGULAR.match(text, self.at)
            if regular is None or text[regular.end() : regular.end() + 1] not in (" ", "\t", "\n", ""):
                self.stop("this regular expression is not read", needs="use grep, or a simpler expression")
            self.at = regular.end()
            return Test(op, (left, Word(regular.start(), self.at, (Literal(regular.group(), False),), regular.group())))
        return Test(op, (left, self.word()))

    def closes(self) -> bool:
        return self.text[self.at] in "\n)" or self.text.startswith(("]]", "&&", "||"), self.at)


_BINARY_AHEAD: Final = re.compile(r"(?:==|=~|!=|=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)(?=\s)")


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


_DEAD: Final = frozenset({"[", "{}"})
_LIVE: Final = re.compile(r"[*?\[{~\\]")
