"""How does bash read this text? Whole, or not at all.

- Written from bash's manual (5.2): quoting, reserved words in command position only, here-documents, compound commands.
- What is not on the closed list of `syntax` is refused where it stands: arrays, `select`, `coproc`, extended globs, `{name}>`.
- A second reader (tree-sitter) must find no error and the same commands at the same places, else the text is refused.

    >>> read("echo hi > out").chains[0].first.stages[0].words[0].plain  # doctest: +SKIP
    'echo'
"""

from __future__ import annotations

import re
from typing import Final

from cxi.effects.shell.lexer import LONGEST, NAME, RUN, WIDEST, Lexer
from cxi.effects.shell.second import compare
from cxi.effects.shell.stop import READ, Stop
from cxi.effects.shell.syntax import (
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
    Pipeline,
    Redirect,
    Script,
    Simple,
    Test,
    While,
    Word,
)
from cxi.errors import Code

_ASSIGN: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SUBSCRIPT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_REDIRECT: Final = re.compile(r"(\d*)(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|(&>>|&>)")
_VARFD: Final = re.compile(r"\{[A-Za-z_]\w*\}[<>]")
_REGULAR: Final = re.compile(r"[\w^$.*+?\[\]/,:=@%~-]+")
_RESERVED: Final = frozenset(
    {
        *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select"),
        *("coproc", "time", "{", "}", "!", "[[", "]]"),
    }
)
_ENDS: Final = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_UNARY: Final = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOSznov")
_BINARY_AHEAD: Final = re.compile(r"(?:==|=~|!=|=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)(?=\s)")


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
    if len(text) - sum(end - start for start, end in reader.spans) > WIDEST:
        raise Stop(Code.TOO_LARGE, f"the text is over {WIDEST} characters outside here-documents")
    reader.visible()
    compare(text, reader.commands, foreign=reader.foreign)
    return script


class Reader(Lexer):
    """The grammar: lists, pipelines, commands (bash's manual, 3.2)."""

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
        found = RUN.match(self.text, self.at)
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
                found = NAME.match(text, self.at)
                if found is None:
                    self.stop("a function's name is expected")
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
                raise Stop(READ, f"`{word}` is not read here", start, start + len(word), needs=f"write it without `{word}`")

    def filled(self, command: Command, body: Script) -> Command:
        if not body.chains:
            self.stop("an empty list", command.start)
        return command

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
        found = NAME.match(text, self.at)
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
        if not NAME.fullmatch(name) or self.text[word.start : word.end] != name:
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

    # --- conditions

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
            test = None if _BINARY_AHEAD.match(text, self.at) else Test(left.plain or "", (self.word(),))
            if test is not None:
                return test
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
