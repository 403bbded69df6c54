"""Policies and requests drawn at random, to hold one way of deciding against another.

- `Draw` is what a `random.Random` gives, so that a test can draw by hypothesis and a long run by a seed.
- Policies are typed as the schema is, so that most pass Cedar's strict validation; those that do not are drawn again.
- Requests mostly conform; the others miss, add or mistype something, overflow, or are in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from random import Random
from types import MappingProxyType
from typing import Any, TypeVar

from cedarpy import validate_policies

from cxi.errors import ConfigError, Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.registry import PolicySource, Registry, load
from cxi.policy.schema import EvidenceSurface, ToolSurface, make_schema, parse
from cxi.policy.vocabulary import BOOL, ENTITIES, LONG, STRING, STRINGS, CedarType, record

Item = TypeVar("Item")
Draw = Random

INNER = record({"deep": STRING, "count": LONG.optional, "flag": BOOL})
FIELDS = {
    "path": STRING,
    "amount": LONG,
    "limit": LONG.optional,
    "dry": BOOL,
    "force": BOOL.optional,
    "names": STRINGS,
    "tags": STRINGS.optional,
    "numbers": CedarType("Set", element=LONG),
    "inner": INNER,
    "other": INNER.optional,
    "records": CedarType("Set", element=record({"key": STRING, "value": LONG})).optional,
    "odd_name": STRING.optional,
}
TOOLS = [ToolSurface("x.call", "Server", FIELDS), ToolSurface("x.on_file", "File", {"path": STRING})]
AGENTS = ("a", "b")
_WHOLE = make_schema(AGENTS, TOOLS, [EvidenceSurface("run", {"score": LONG})], [])[""]
ASKED = {
    "fs.write": "File",
    "fs.read": "File",
    "fs.mkdir": "Folder",
    "db.update": "Table",
    "http.request": "Url",
    "git.commit": "Repo",
    "net.connect": "Host",
    "tool:x.call": "Server",
    "tool:x.on_file": "File",
}
SCHEMA = {"": {**_WHOLE, "actions": {name: _WHOLE["actions"][name] for name in ASKED}}}
HANDLE = parse(SCHEMA)

TEXTS = (
    "",
    "a",
    "src",
    "src/a",
    "src/a/x.py",
    "x.py",
    "lib",
    "*",
    "a*b",
    "\\",
    'q"',
    "é",
    "e\u0301",
    "\U0001f600",
    "A",
    "\0",
    "a\nb",
    "%_",
)
PATTERNS = (
    "*",
    "",
    "a",
    "a*",
    "*a",
    "*a*",
    "src/*",
    "*.py",
    "s*/*.py",
    r"a\*b",
    r"*\*",
    "*é",
    "a**b",
    "*/*/*",
    r"\\*",
    "?",
    "*x*p*",
    "*src/*",
    "*/a/x*py",
    "s*c/a/*",
)
NUMBERS = (0, 1, -1, 2, 5, 7, 80, 443, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**18, 3_037_000_500)
FOLDERS = (".", "/", "src", "src/a", "lib", "é")


def quote(text: str) -> str:
    """A Cedar string literal."""
    return '"' + "".join(char if char.isalnum() and char.isascii() else f"\\u{{{ord(char):x}}}" for char in text) + '"'


def quote_pattern(text: str) -> str:
    """A Cedar pattern literal; its backslashes and stars are Cedar's."""
    out, at = "", 0
    while at < len(text):
        if text[at] == "\\":
            out += "\\*" if text[at + 1 : at + 2] == "*" else "\\\\"
            at += 2
        else:
            out += "*" if text[at] == "*" else f"\\u{{{ord(text[at]):x}}}"
            at += 1
    return f'"{out}"'


@dataclass(frozen=True)
class Path:
    """Something that a policy can name, as Cedar text.

    Attributes:
        text: `context.field.inner.deep`.
        of: Its type.
        absent: What must be checked with `has` first: (base, attribute), from the outside in.
    """

    text: str
    of: CedarType
    absent: tuple[tuple[str, str], ...]


def _type(of: dict[str, Any]) -> CedarType:
    element = _type(of["element"]) if "element" in of else None
    attributes = (
        MappingProxyType({name: _type(inner) for name, inner in of["attributes"].items()}) if "attributes" in of else None
    )
    return CedarType(of["type"], element, attributes, of.get("required", True))


CONTEXTS = {name: _type(SCHEMA[""]["actions"][name]["appliesTo"]["context"]) for name in ASKED}


def _walk(text: str, of: CedarType, absent: tuple[tuple[str, str], ...]) -> list[Path]:
    found = [Path(text, of, absent)]
    for name, inner in (of.attributes or {}).items():
        further = absent if inner.required else (*absent, (text, name))
        found += _walk(f"{text}.{name}", inner, further)
    return found


@cache
def paths(action: str) -> tuple[Path, ...]:
    """All that a policy about the action can name."""
    resource = record(ENTITIES[ASKED[action]].attributes)
    return tuple(
        path for path in (*_walk("resource", resource, ()), *_walk("context", CONTEXTS[action], ())) if path.text != "resource"
    )


@dataclass
class Writer:
    """Draws expressions over one action's paths."""

    draw: Draw
    action: str

    def pick(self, choices: Sequence[Item]) -> Item:
        return choices[self.draw.randrange(len(choices))]

    def path(self, fits: Callable[[CedarType], bool], known: frozenset[tuple[str, str]]) -> str | None:
        found = [path.text for path in paths(self.action) if fits(path.of) and known.issuperset(path.absent)]
        return self.pick(found) if found else None

    def truth(self, depth: int, known: frozenset[tuple[str, str]] = frozenset()) -> str:
        kinds: list[Callable[[int, frozenset[tuple[str, str]]], str]] = [
            *(
                self._plain,
                self._equal,
                self._compare,
                self._like,
                self._like,
                self._contains,
                self._place,
                self._place,
                self._has,
            )
        ]
        if depth > 0:
            kinds += [self._not, self._and, self._and, self._or, self._or, self._if, self._guarded, self._guarded, self._guarded]
        return self.pick(kinds)(depth - 1, known)

    def _plain(self, _depth: int, known: frozenset[tuple[str, str]]) -> str:
        if self.draw.random() < 0.1:
            return self._constant()
        return self.pick(["true", "false", self.path(lambda of: of.name == "Boolean", known) or "true"])

    def _constant(self) -> str:
        return self.pick(
            [
                'ip("10.0.0.1").isInRange(ip("10.0.0.0/8"))',
                'decimal("1.5").lessThan(decimal("2.5"))',
                'datetime("2025-01-01") < datetime("2026-01-01")',
                'duration("1h").toSeconds() > 4',
                "1 == 2",
                "{a: 1, b: {c: true}}.b.c",
            ]
        )

    def _not(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"!({self.truth(depth, known)})"

    def _and(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"(({self.truth(depth, known)}) && ({self.truth(depth, known)}))"

    def _or(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"(({self.truth(depth, known)}) || ({self.truth(depth, known)}))"

    def _if(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"(if {self.truth(depth, known)} then {self.truth(depth, known)} else {self.truth(depth, known)})"

    def _guarded(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        able = [path.absent for path in paths(self.action) if path.absent and known.issuperset(path.absent[:-1])]
        able = [absent for absent in able if absent[-1] not in known]
        if not able:
            return self.truth(depth, known)
        base, name = self.pick(able)[-1]
        inner = self.truth(depth, known | {(base, name)})
        return self.pick(
            [f"({base} has {name} && {inner})", f"(if {base} has {name} then {inner} else {self.truth(depth, known)})"]
        )

    def _has(self, _depth: int, known: frozenset[tuple[str, str]]) -> str:
        base = self.path(lambda of: of.name == "Record", known) or "context"
        more = ["name", "path", "nosuch", "inner.count", "run.score", "field.limit", "effect.op", '"odd name"', "op", "port"]
        return f"{self.pick([base, 'resource', 'context', 'context.field'])} has {self.pick(more)}"

    def _equal(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        kind = self.pick([self._text, self._text, self._number, self._set, self._record, self._bool, self._entity, self._numbers])
        return f"({kind(depth, known)}) {self.pick(['==', '==', '!='])} ({kind(depth, known)})"

    def _compare(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"({self._number(depth, known)}) {self.pick(['<', '<=', '>', '>='])} ({self._number(depth, known)})"

    def _like(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return f"({self._text(depth, known)}) like {quote_pattern(self.pick(PATTERNS))}"

    def _contains(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        match self.pick(["one", "one", "all", "any", "empty", "number", "entity", "record"]):
            case "one":
                return f"({self._set(depth, known)}).contains({self._text(depth, known)})"
            case "all":
                return f"({self._set(depth, known)}).containsAll({self._set(depth, known)})"
            case "any":
                return f"({self._set(depth, known)}).containsAny({self._set(depth, known)})"
            case "empty":
                return f"({self.pick([self._set, self._numbers])(depth, known)}).isEmpty()"
            case "number":
                return f"({self._numbers(depth, known)}).contains({self._number(depth, known)})"
            case "record":
                records = self.path(lambda of: of.element is not None and of.element.name == "Record", known)
                keyed = self.pick(['{key: "a", value: 0}', '{key: "a", value: 1}', '{key: "src", value: 1 + 1}'])
                return f"{records}.contains({keyed})" if records else "false"
            case _:
                kind = ASKED[self.action]
                entities = ", ".join(f"{kind}::{quote(self.pick(TEXTS))}" for _ in range(self.draw.randrange(1, 4)))
                return f"[{entities}].contains(resource)"

    def _place(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        folder = f"{self.pick(['Folder', 'Folder', 'Table', 'File'])}::{quote(self.pick(FOLDERS))}"
        kind = self.pick(["File", "Folder", "Table", ASKED[self.action]])
        subject = self.pick(["resource", "resource", "resource", self._entity(depth, known)])
        return self.pick(
            [
                f"{subject} in {folder}",
                f"resource in [{folder}, Folder::{quote(self.pick(FOLDERS))}]",
                f"{subject} is {kind}",
                f"resource is {kind} in {folder}",
                f"resource == {ASKED[self.action]}::{quote(self.pick(TEXTS))}",
                f"principal == Agent::{quote(self.pick(AGENTS))}",
                f"principal in [Agent::{quote(self.pick(AGENTS))}]",
                f"action == Action::{quote(self.pick(list(ASKED)))}",
                f"action in [Action::{quote(self.action)}]",
            ]
        )

    def _bool(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        return self.truth(min(depth, 0), known)

    def _text(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        if depth > 0 and self.draw.random() < 0.1:
            return f"if {self.truth(depth - 1, known)} then {self._text(0, known)} else {self._text(0, known)}"
        named = self.path(lambda of: of.name == "String", known)
        return named if named and self.draw.random() < 0.7 else quote(self.pick(TEXTS))

    def _number(self, depth: int, known: frozenset[tuple[str, str]]) -> str:
        if depth > 0 and self.draw.random() < 0.35:
            left, right = self._number(depth - 1, known), self._number(depth - 1, known)
            return self.pick([f"({left}) {self.pick(['+', '-', '*'])} ({right})", f"-({left})"])
        named = self.path(lambda of: of.name == "Long", known)
        return named if named and self.draw.random() < 0.6 else str(self.pick(NUMBERS))

    def _set(self, _depth: int, known: frozenset[tuple[str, str]]) -> str:
        named = self.path(lambda of: of.name == "Set" and of.element == STRING, known)
        if named and self.draw.random() < 0.6:
            return named
        return f"[{', '.join(self._text(0, known) for _ in range(self.draw.randrange(1, 4)))}]"

    def _numbers(self, _depth: int, known: frozenset[tuple[str, str]]) -> str:
        named = self.path(lambda of: of.name == "Set" and of.element == LONG, known)
        if named and self.draw.random() < 0.6:
            return named
        return f"[{', '.join(self._number(1, known) for _ in range(self.draw.randrange(1, 4)))}]"

    def _record(self, _depth: int, known: frozenset[tuple[str, str]]) -> str:
        named = self.path(lambda of: of == INNER or of == INNER.optional, known)
        fields = f"{{deep: {self._text(0, known)}, flag: {self.pick(['true', 'false'])}}}"
        return named if named and self.draw.random() < 0.6 else fields

    def _entity(self, _depth: int, _known: frozenset[tuple[str, str]]) -> str:
        kind = ASKED[self.action]
        literal = f"{kind}::{quote(self.pick(TEXTS))}"
        return self.pick(["resource", literal, f"if {self._plain(0, frozenset())} then resource else {literal}", "principal"])


def _scope(draw: Draw, about: Sequence[str]) -> tuple[str, str]:
    """A policy's scope and the action that its clauses are drawn for."""

    def pick(choices: Sequence[Item]) -> Item:
        return choices[draw.randrange(len(choices))]

    action = pick(about)
    kind = ASKED[action]
    who = pick(AGENTS)
    principal = pick(
        ["principal", "principal", f'principal == Agent::"{who}"', f'principal in Agent::"{who}"', "principal is Agent"]
    )
    actions = pick([f"action == Action::{quote(action)}"] * 3 + [f"action in [Action::{quote(action)}]"])
    target, folder = quote(pick(TEXTS)), f"Folder::{quote(pick(FOLDERS))}"
    places = ["resource", "resource", f"resource is {kind}", f"resource == {kind}::{target}"]
    if kind in ("File", "Folder"):
        places += [f"resource in {folder}", f"resource is {kind} in {folder}"]
    return f"{principal}, {actions}, {pick(places)}", action


def policy(draw: Draw, about: Sequence[str]) -> str:
    """The text of a policy without annotations; perhaps it is not valid."""
    scope, action = _scope(draw, about)
    if draw.random() < 0.1:
        scope = "principal, action, resource"
        return f"{'permit' if draw.random() < 0.5 else 'forbid'} ({scope}) when {{ context.approval.given }};"
    writer = Writer(draw, action)
    clauses = "".join(
        f" {'when' if draw.random() < 0.7 else 'unless'} {{ {writer.truth(draw.randrange(4))} }}"
        for _ in range(draw.choice([0, 1, 1, 1, 2]))
    )
    return f"{'permit' if draw.random() < 0.75 else 'forbid'} ({scope}){clauses};"


@lru_cache(maxsize=4096)
def is_valid(body: str) -> bool:
    """Whether the policy alone passes Cedar's strict validation and CXI's own checks."""
    if not validate_policies(body, HANDLE).validation_passed:
        return False
    try:
        registry([body])
    except ConfigError:
        return False
    return True


def registry(bodies: Sequence[str]) -> Registry:
    """The policies `p0`, `p1`, …"""
    text = "\n".join(f'@id("p{number}") {body}' for number, body in enumerate(bodies))
    return load([PolicySource("p", text)], SCHEMA, agents=AGENTS)


def policies(draw: Draw, count: int, about: Sequence[str] = tuple(ASKED)) -> Registry:
    """So many valid policies about these actions."""
    found: list[str] = []
    while len(found) < count:
        body = policy(draw, about)
        if is_valid(body):
            found.append(body)
    return registry(found)


def value(draw: Draw, of: CedarType) -> Any:
    """A value of the type."""
    match of.name:
        case "String":
            return draw.choice(TEXTS)
        case "Long":
            return draw.choice(NUMBERS) if draw.random() < 0.7 else draw.randrange(-10, 100)
        case "Boolean":
            return draw.random() < 0.5
        case "Set":
            assert of.element is not None
            elements = [value(draw, of.element) for _ in range(draw.randrange(4))]
            return elements if draw.random() < 0.8 else tuple(elements)
        case "Record":
            given = {
                name: value(draw, inner) for name, inner in (of.attributes or {}).items() if inner.required or draw.random() < 0.5
            }
            return given if draw.random() < 0.8 else MappingProxyType(given)


WRONG = (
    None,
    1.5,
    2**63,
    -(2**63) - 1,
    2**70,
    "\ud800",
    "a",
    7,
    True,
    [],
    ["a", 1],
    [None],
    {},
    {"__entity": {"type": "File", "id": "a"}},
    object(),
)


def spoil(draw: Draw, given: Any) -> Any:
    """The value with something of it wrong, perhaps."""
    if isinstance(given, dict | MappingProxyType) and given and draw.random() < 0.85:
        name = draw.choice(list(given))
        match draw.randrange(4):
            case 0:
                return {key: inner for key, inner in given.items() if key != name}
            case 1:
                return {**given, draw.choice(["more", "__extn", "op", "count"]): "x"}
            case _:
                return {**given, name: spoil(draw, given[name])}
    return draw.choice(WRONG)


def _uid(draw: Draw) -> tuple[str, str]:
    return ("Folder", draw.choice(FOLDERS))


def request(draw: Draw, about: Sequence[str] = tuple(ASKED)) -> PolicyRequest:
    """A request for one of these actions; about one in seven does not conform."""
    action = draw.choice(about)
    kind = ASKED[action]
    parents: tuple[tuple[str, str], ...] = ()
    ancestors: tuple[Entity, ...] = ()
    if kind in ("File", "Folder") and draw.random() < 0.8:
        parents = tuple(dict.fromkeys(_uid(draw) for _ in range(draw.randrange(4))))
    elif kind == "Table" and draw.random() < 0.3:
        parents = (("Table", draw.choice(TEXTS)),)
    if parents and draw.random() < 0.4:
        folder = record(ENTITIES["Folder"].attributes)
        ancestors = tuple(
            Entity("Folder", _uid(draw)[1], value(draw, folder), tuple(_uid(draw) for _ in range(draw.randrange(2))))
            for _ in range(draw.randrange(1, 3))
        )
    attributes = dict(value(draw, record(ENTITIES[kind].attributes)))
    context = dict(value(draw, CONTEXTS[action]))
    made = PolicyRequest(draw.choice(AGENTS), action, Entity(kind, draw.choice(TEXTS), attributes, parents), ancestors, context)
    if draw.random() < 0.85:
        return made
    resource = made.resource
    match draw.randrange(9):
        case 0:
            return replace(made, agent=draw.choice(["c", "", "\ud800"]))
        case 1:
            return replace(made, action=draw.choice(list(ASKED)))
        case 2:
            return replace(made, resource=replace(resource, id=draw.choice(["\ud800", "__entity", "x" * 300])))
        case 3:
            return replace(made, resource=replace(resource, type=draw.choice(["File", "Agent", "Nosuch", "Folder"])))
        case 4:
            return replace(made, resource=replace(resource, attributes=spoil(draw, attributes)))
        case 5:
            odd = draw.choice([("Folder", "\ud800"), ("File", "a"), ("Nosuch", "a"), (resource.type, resource.id)])
            return replace(made, resource=replace(resource, parents=(*parents, odd)))
        case 6:
            return replace(made, context={key: inner for key, inner in context.items() if draw.random() < 0.7})
        case _:
            name = draw.choice(list(context))
            return replace(made, context={**context, name: spoil(draw, context[name])})


def alike(one: Permitted | Refused, other: Permitted | Refused) -> bool:
    """Whether two answers are the same; of several things that do not fit the schema, Cedar names one, now this, now that."""
    if isinstance(one, Refused) and isinstance(other, Refused) and len(one.reasons) == len(other.reasons):
        return all(
            left == right or (left.code == right.code and {left.detail[:_UNFIT], right.detail[:_UNFIT]} == {_NOT_FIT})
            for left, right in zip(one.reasons, other.reasons, strict=True)
        )
    return one == other


_NOT_FIT = "the request does not fit the schema"
_UNFIT = len(_NOT_FIT)
