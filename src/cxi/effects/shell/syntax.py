"""Which commands does a bash text hold? The closed list of what is read; there is no node for anything else.

- Offsets are in code points of the text that was read; a text inside backticks has its own.
- A word keeps its quoting: whether a character was quoted decides on splitting, globs, braces and tildes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """Characters as they stand; quoted ones mean only themselves."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`, or `${name op word}`; `op` is empty, `length`, or one of `:- - := = :+ + :? ? % %% # ## / // ^ ^^ , ,,`."""

    name: str
    quoted: bool
    op: str = ""
    word: Word | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)` or backticks."""

    body: Script
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((…))`: the text in between."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Process:
    """`<(…)` or `>(…)`."""

    body: Script
    reads: bool


Part: TypeAlias = Literal | Parameter | Substitution | Arithmetic | Process


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `plain` is its text where nothing in it is expanded, else None."""

    start: int
    end: int
    parts: tuple[Part, ...]
    plain: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=word`, or `name+=word`."""

    name: str
    word: Word
    adds: bool


@dataclass(slots=True)
class Here:
    """A here-document's body, which stands on the lines that follow and is filled in when they are read."""

    body: Word | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection.

    Attributes:
        op: `<`, `>`, `>>`, `>|`, `<>`, `&>`, `&>>`, `<&`, `>&`, `<<`, `<<<`.
        fd: The descriptor before it, or None for the usual one.
        word: The target; for a here-document its delimiter.
        here: A here-document's body.
    """

    op: str
    fd: int | None
    word: Word
    start: int
    end: int
    here: Here | None = None


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, words and redirections."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages, of which the first may be the only one; `both` says for each bar whether it was `|&`."""

    stages: tuple[Command, ...]
    both: tuple[bool, ...]
    negated: bool
    timed: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines joined by `&&` and `||`, from left to right with equal rank."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...]
    background: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Script:
    """Chains, one after the other."""

    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ …; }`, or `( … )` where it is a subshell."""

    body: Script
    subshell: bool
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their branches, and what is left."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class While:
    """`while`, or `until` where it is inverted."""

    condition: Script
    body: Script
    until: bool
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words`; without words, over the positional parameters."""

    name: str
    words: tuple[Word, ...] | None
    body: Script
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Count:
    """`for ((first; test; step))`."""

    first: str
    test: str
    step: str
    body: Script
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Case:
    """`case word in`: each item its patterns, body and terminator (`;;`, `;&`, `;;&`)."""

    word: Word
    items: tuple[tuple[tuple[Word, ...], Script, str], ...]
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Function:
    """A definition."""

    name: str
    body: Command
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Compute:
    """`((…))`."""

    text: str
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Test:
    """One test inside `[[ ]]`: an operator and its words."""

    op: str
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """`a && b`, `a || b` inside `[[ ]]`."""

    op: str
    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Not:
    """`! a` inside `[[ ]]`."""

    inner: Condition


Condition: TypeAlias = Test | Both | Not


@dataclass(frozen=True, slots=True)
class Check:
    """`[[ … ]]`."""

    condition: Condition
    redirects: tuple[Redirect, ...]
    start: int
    end: int


Command: TypeAlias = Simple | Group | If | While | For | Count | Case | Function | Compute | Check
