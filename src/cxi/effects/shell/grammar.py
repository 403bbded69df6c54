"""How are a program's arguments read? By its grammar, which is data: `effects/grammars/*.yaml`, one entry a program.

- No grammar, no admission. An option that a grammar does not list is refused, for it may do anything.
- Options are read as getopt_long(3) does: unambiguous prefixes of long ones, `--`, short ones together, attached values, options
  after operands unless the grammar says `first` (or `POSIXLY_CORRECT` is set).
- A role says what a value means: `text` nothing to the machine, `read`, `write`, `append`, `list` (a folder's names),
  `never` (refused), and whatever a program's own reader (`does`) knows.

        head: {flags: [q quiet silent, v verbose], values: {n lines: text}, operands: read}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.table import TABLES, load_table


@dataclass(frozen=True, slots=True)
class Grammar:
    """One program's.

    Attributes:
        name: Its name.
        short, long: Options to (canonical name, role); the role is empty for a flag; a role that ends in `?` is optional.
        operands: The role of operands.
        does: The reader that knows its effect; `roles` where the roles say all.
        first: Whether options end at the first operand.
        numeric: Whether `-5` is an option.
        plus: Whether a word that begins with `+` is an option without meaning to the machine.
        status: `likely` where it succeeds unless the machine fails.
        facts: Everything else that its reader asks for.
    """

    name: str
    short: Mapping[str, tuple[str, str]]
    long: Mapping[str, tuple[str, str]]
    operands: str
    does: str
    first: bool
    numeric: bool
    plus: bool
    status: str
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Arguments:
    """A program's arguments, read.

    Attributes:
        options: (canonical name, value) in order; the value is empty for a flag.
        operands: What is left.
    """

    options: tuple[tuple[str, Field], ...]
    operands: tuple[Field, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in names for name, _ in self.options)

    def last(self, *names: str) -> Field | None:
        """The value of the last of these options."""
        return next((value for name, value in reversed(self.options) if name in names), None)

    def all(self, *names: str) -> list[Field]:
        """The values of all of these options."""
        return [value for name, value in self.options if name in names]


@lru_cache(maxsize=1)
def grammars() -> Mapping[str, Grammar]:
    """Every program that has a grammar."""
    found: dict[str, Grammar] = {}
    for entry in sorted(files(TABLES).iterdir(), key=lambda item: item.name):
        name = entry.name.removesuffix(".yaml")
        if name in (entry.name, "environment"):
            continue
        for programs, body in load_table(name).items():
            for program in programs.split():
                found[program] = make(program, body)
    return MappingProxyType(found)


def make(name: str, body: object) -> Grammar:
    """A grammar from its entry."""
    spec = dict(body) if isinstance(body, dict) else {}
    short: dict[str, tuple[str, str]] = {}
    long: dict[str, tuple[str, str]] = {}
    flags = spec.pop("flags", [])
    values = spec.pop("values", {})
    if spec.pop("gnu", True):
        flags = [*flags, "help", "version"]
    for spellings, role in [*((str(flag), "") for flag in flags), *((str(key), str(role)) for key, role in values.items())]:
        names = spellings.split()
        for one in names:
            (short if len(one) == 1 else long).setdefault(one, (names[0], role))
    return Grammar(
        name,
        short,
        long,
        str(spec.pop("operands", "never")),
        str(spec.pop("does", "roles")),
        bool(spec.pop("first", False)),
        bool(spec.pop("numeric", False)),
        bool(spec.pop("plus", False)),
        str(spec.pop("status", "")),
        spec,
    )


def parse(grammar: Grammar, words: list[Field], *, posix: bool = False) -> Arguments:
    """Read the words after the program's name.

    Raises:
        Stop: an option that is not listed, an ambiguous or incomplete one, or a word that may be an option.
    """
    options: list[tuple[str, Field]] = []
    operands: list[Field] = []
    first = grammar.first or posix
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if isinstance(word, Hole):
            if word.many and grammar.facts.get("any") is not True:
                raise Stop(KNOW, f"`{grammar.name}` with {word.why}, any number of words", needs="quote it, or write it out")
            if word.prefix[:1] in ("", "-") and grammar.facts.get("any") is not True:
                raise Stop(KNOW, f"`{grammar.name}` with {word.why}, which may be an option", needs="put it after `--`")
            operands.append(word)
            if first:
                operands.extend(words[at:])
                break
            continue
        if word == "--":
            operands.extend(words[at:])
            break
        if word.startswith("--"):
            at = _long(grammar, word, words, at, options)
        elif len(word) > 1 and word[0] == "-":
            if grammar.numeric and word[1:].isdigit():
                options.append(("number", word[1:]))
            else:
                at = _short(grammar, word, words, at, options)
        elif grammar.plus and len(word) > 1 and word[0] == "+":
            options.append(("plus", word))
        else:
            operands.append(word)
            if first:
                operands.extend(words[at:])
                break
    return Arguments(tuple(options), tuple(operands))


def _long(grammar: Grammar, word: str, words: list[Field], at: int, options: list[tuple[str, Field]]) -> int:
    name, equals, value = word[2:].partition("=")
    found = grammar.long.get(name)
    if found is None:
        close = {grammar.long[long] for long in grammar.long if long.startswith(name)}
        if len(close) != 1:
            kind = "may be several options" if close else "is no option that is known"
            raise Stop(KNOW, f"`--{name}` {kind} of `{grammar.name}`", needs="leave the option out")
        found = close.pop()
    canonical, role = found
    if role == "never":
        raise Stop(KNOW, f"`{grammar.name} --{name}` is not read")
    if role.endswith("?"):
        options.append((canonical, value))
    elif role:
        if not equals:
            if at >= len(words):
                raise Stop(KNOW, f"`{grammar.name} --{name}` lacks its value")
            options.append((canonical, words[at]))
            return at + 1
        options.append((canonical, value))
    else:
        if equals:
            raise Stop(KNOW, f"`{grammar.name} --{name}` takes no value")
        options.append((canonical, ""))
    return at


def _short(grammar: Grammar, word: str, words: list[Field], at: int, options: list[tuple[str, Field]]) -> int:
    for place, char in enumerate(word[1:], start=1):
        found = grammar.short.get(char)
        if found is None:
            raise Stop(KNOW, f"`-{char}` is no option that is known of `{grammar.name}`", needs="leave the option out")
        canonical, role = found
        if role == "never":
            raise Stop(KNOW, f"`{grammar.name} -{char}` is not read")
        if not role:
            options.append((canonical, ""))
            continue
        rest = word[place + 1 :]
        if rest or role.endswith("?"):
            options.append((canonical, rest))
            return at
        if at >= len(words):
            raise Stop(KNOW, f"`{grammar.name} -{char}` lacks its value")
        options.append((canonical, words[at]))
        return at + 1
    return at


def role_of(grammar: Grammar, option: str) -> str:
    """The role of an option's value, by its canonical name."""
    for table in (grammar.short, grammar.long):
        for canonical, role in table.values():
            if canonical == option:
                return role.rstrip("?")
    return "text"
