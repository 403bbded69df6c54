"""What does one policy say of one request, without asking Cedar?

- A policy that Cedar parsed and strictly validated is compiled to one Python expression over the request's plain values. What it
  says is what Cedar says: tested against `cedarpy`, never assumed.
- INVARIANT (conforming): a predicate is asked of a request only that conforms to the schema (`cxi.policy.checker`); with Cedar's
  strict validation that fixes the type of every expression, and leaves overflow as the one error that can be met.
- INVARIANT (unsure): whatever is not certain here raises, and whoever asks then asks Cedar: overflow, a value of a type that
  validation rules out, an entity other than the request's own. A kind of expression that is not known makes its policy
  `Unsupported`. Nothing here answers an error; so the order in which two operands are read is of no consequence.
- No text of a policy becomes code: literals are names bound to values, and the code is joined from the fragments below.

    >>> policies = PolicySet.from_str('permit (principal, action, resource is File) when { resource.name like "*.py" };').to_pst()
    >>> asks = compile_policy(policies.static_policies["policy0"])
    >>> asks("maintainer", "fs.write", "File", "src/a.py", {"name": "a.py"}, {("File", "src/a.py"), ("Folder", "src")}, {})
    True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeAlias

from cedarpy import pst

from cxi.canonical import JsonValue

Predicate: TypeAlias = Callable[
    [str, str, str, str, Mapping[str, JsonValue], Set[tuple[str, str]], Mapping[str, Mapping[str, JsonValue]]], bool
]
# agent, action, resource type, resource id, the resource's attributes, the resource and all it is in, context
_ARGUMENTS: Final = "agent, action, kind, name, attributes, above, context"
LONG: Final = 2**63  # a Long is from -LONG to LONG - 1


class Unsupported(Exception):  # what the compiler says of a policy
    """The policy has an expression of a kind that is not compiled: Cedar is asked."""


class Unsure(Exception):  # what a predicate says of a request
    """The policy's answer is not certain here: Cedar is asked."""


class Uid(NamedTuple):
    """An entity as a value; a set is a list, so that none passes for the other."""

    type: str
    id: str


def compile_policy(policy: pst.Template) -> Predicate:
    """Compile one policy, scope and clauses.

    Raises:
        Unsupported: It has an expression that is not compiled.
    """
    writer = _Writer()
    try:
        body = writer.policy(policy)
        made: Predicate = eval(f"lambda {_ARGUMENTS}: {body}", writer.bound)  # noqa: S307  # fragments of this file, and names
    except (SyntaxError, RecursionError, MemoryError) as error:  # nested deeper than Python compiles
        raise Unsupported(f"nested too deep: {error}") from error
    return made


class _Writer:
    """Writes Python for one policy."""

    def __init__(self) -> None:
        self.bound: dict[str, Any] = dict(_BOUND)

    def bind(self, value: object) -> str:
        """A name for a literal."""
        name = f"k{len(self.bound)}"
        self.bound[name] = value
        return name

    def policy(self, policy: pst.Template) -> str:
        parts = [
            *self.scope("principal", policy.principal),
            *self.actions(policy.action),
            *self.scope("resource", policy.resource),
        ]
        for clause in policy.clauses:
            match clause:
                case pst.When(expr):
                    parts.append(self.truth(expr))
                case pst.Unless(expr):
                    parts.append(f"(not {self.truth(expr)})")
        return f"({' and '.join(parts)})" if parts else "True"

    def scope(self, name: pst.VarName, constraint: pst.PrincipalOrResourceConstraint) -> list[str]:
        match constraint:
            case pst.ScopeAny():
                return []
            case pst.ScopeEq(pst.EntityUid() as uid):
                return [self.is_uid(name, uid)]
            case pst.ScopeIn(pst.EntityUid() as uid):
                return [self.in_uids(name, [uid])]
            case pst.ScopeIs(kind):
                return [self.is_type(name, str(kind))]
            case pst.ScopeIsIn(kind, pst.EntityUid() as uid):
                return [self.is_type(name, str(kind)), self.in_uids(name, [uid])]
            case _:
                raise Unsupported("a slot")

    def actions(self, constraint: pst.ActionConstraint) -> list[str]:
        match constraint:
            case pst.ScopeAny():
                return []
            case pst.ActionEq(uid):
                return [self.is_uid("action", uid)]
            case pst.ActionIn(uids):
                return [self.in_uids("action", uids)]

    def is_uid(self, name: pst.VarName, uid: pst.EntityUid) -> str:
        kind = str(uid.type)
        match name:
            case "principal":
                return f"(agent == {self.bind(uid.id)})" if kind == "Agent" else "False"
            case "action":
                return f"(action == {self.bind(uid.id)})" if kind == "Action" else "False"
            case "resource":
                return f"(name == {self.bind(uid.id)} and kind == {self.bind(kind)})"
            case "context":
                raise Unsupported("an entity compared with the context")

    def in_uids(self, name: pst.VarName, uids: Sequence[pst.EntityUid]) -> str:
        """Agents and actions are in nothing but themselves."""
        if name != "resource":
            return f"({' or '.join(self.is_uid(name, uid) for uid in uids) or 'False'})"
        if len(uids) == 1:
            return f"({self.bind((str(uids[0].type), uids[0].id))} in above)"
        return f"(not above.isdisjoint({self.bind(frozenset((str(uid.type), uid.id) for uid in uids))}))"

    def is_type(self, name: pst.VarName, kind: str) -> str:
        match name:
            case "principal":
                return str(kind == "Agent")
            case "action":
                return str(kind == "Action")
            case "resource":
                return f"(kind == {self.bind(kind)})"
            case "context":
                raise Unsupported("the context's entity type")

    def truth(self, expr: pst.Expr) -> str:  # noqa: C901  # one arm a construct of the language
        """Code whose value is surely a bool."""
        match expr:
            case pst.BoolLit(value):
                return str(bool(value))
            case pst.UnaryOp("not", inner):
                return f"(not {self.truth(inner)})"
            case pst.UnaryOp("is_empty", inner):
                return f"is_empty({self.value(inner)})"
            case pst.BinaryOp("and" | "or" as op):
                return f"({f' {op} '.join(self.truth(part) for part in flatten(op, expr))})"
            case pst.BinaryOp("eq", left, right):
                return self.equal(left, right)
            case pst.BinaryOp("not_eq", left, right):
                return f"(not {self.equal(left, right)})"
            case pst.BinaryOp("less" | "less_eq" | "greater" | "greater_eq" as op, left, right):
                return f"{op}({self.value(left)}, {self.value(right)})"
            case pst.BinaryOp("in", left, right):
                return self.within(left, right)
            case pst.BinaryOp("contains", left, pst.StringLit(text)):
                return f"({self.bind(text)} in {self.value(left)})"
            case pst.BinaryOp("contains" | "contains_all" | "contains_any" as op, left, right):
                return f"{op}({self.value(left)}, {self.value(right)})"
            case pst.HasAttr(base, names):
                return self.has(base, names)
            case pst.Like(base, pattern):
                return self.like(base, pattern)
            case pst.Is(pst.Var(name), kind, None):
                return self.is_type(name, str(kind))
            case pst.Is(base, kind, None):
                return f"is_type({self.value(base)}, {self.bind(str(kind))})"
            case pst.Is(base, kind, pst.EntityLit() | pst.Set() | pst.Var() as place):
                return f"({self.truth(pst.Is(base, kind, None))} and {self.within(base, place)})"
            case pst.IfThenElse(cond, yes, no):
                return f"({self.truth(yes)} if {self.truth(cond)} else {self.truth(no)})"
            case _:
                return f"truth({self.value(expr)})"

    def value(self, expr: pst.Expr) -> str:  # noqa: C901  # one arm a construct of the language
        """Code for the expression's value."""
        match expr:
            case pst.StringLit(value) | pst.LongLit(value):
                return self.bind(value)
            case pst.EntityLit(uid):
                return self.bind(Uid(str(uid.type), uid.id))
            case pst.Var("context"):
                return "context"
            case pst.Var("resource"):
                return "Uid(kind, name)"
            case pst.Var("principal"):
                return f"Uid({self.bind('Agent')}, agent)"
            case pst.Var("action"):
                return f"Uid({self.bind('Action')}, action)"
            case pst.GetAttr(pst.Var("resource"), name):
                return f"attributes[{self.bind(name)}]"
            case pst.GetAttr(base, name):  # of an entity, which is no mapping: an error, so Cedar is asked
                return f"{self.value(base)}[{self.bind(name)}]"
            case pst.UnaryOp("neg", inner):
                return f"subtract(0, {self.value(inner)})"
            case pst.BinaryOp("add" | "mul" | "sub" as op, left, right):
                return f"{_ARITHMETIC[op]}({self.value(left)}, {self.value(right)})"
            case pst.IfThenElse(cond, yes, no):
                return f"({self.value(yes)} if {self.truth(cond)} else {self.value(no)})"
            case pst.Set(elements):
                return f"[{', '.join(map(self.value, elements))}]"
            case pst.Record(fields):
                return f"{{{', '.join(f'{self.bind(name)}: {self.value(field)}' for name, field in fields.items())}}}"
            case pst.BoolLit() | pst.HasAttr() | pst.Like() | pst.Is() | pst.UnaryOp("not" | "is_empty"):
                return self.truth(expr)
            case pst.BinaryOp(op) if op in _BOOLEAN:
                return self.truth(expr)
            case _:
                raise Unsupported(f"{type(expr).__name__} {getattr(expr, 'op', '')}")

    def equal(self, left: pst.Expr, right: pst.Expr) -> str:
        match left, right:
            case (pst.Var(name), pst.EntityLit(uid)) | (pst.EntityLit(uid), pst.Var(name)):
                return self.is_uid(name, uid)
            case (pst.StringLit(text), other) | (other, pst.StringLit(text)):
                return f"({self.value(other)} == {self.bind(text)})"
            case _:
                return f"same({self.value(left)}, {self.value(right)})"

    def within(self, left: pst.Expr, right: pst.Expr) -> str:
        match left, right:
            case pst.Var(name), pst.EntityLit(uid):
                return self.in_uids(name, [uid])
            case pst.Var(name), pst.Set(elements) if all(isinstance(element, pst.EntityLit) for element in elements):
                return self.in_uids(name, [element.value for element in elements if isinstance(element, pst.EntityLit)])
            case _:
                return f"within({self.value(left)}, {self.value(right)}, kind, name, above)"

    def has(self, base: pst.Expr, names: Sequence[str]) -> str:
        parts = []
        for name in names:
            match base:
                case pst.Var("resource"):
                    parts.append(f"({self.bind(name)} in attributes)")
                case pst.Var("context"):
                    parts.append(f"({self.bind(name)} in context)")
                case _:
                    parts.append(f"has({self.value(base)}, {self.bind(name)})")
            base = pst.GetAttr(base, name)
        return f"({' and '.join(parts)})"

    def like(self, base: pst.Expr, pattern: Sequence[pst.PatternElem]) -> str:
        text, pieces = self.value(base), cut(pattern)
        match pieces:
            case [whole]:
                return f"({text} == {self.bind(whole)})"
            case ["", ""]:
                return f"is_text({text})"
            case [head, ""]:
                return f"{text}.startswith({self.bind(head)})"
            case ["", tail]:
                return f"{text}.endswith({self.bind(tail)})"
            case ["", middle, ""]:
                return f"({text}.find({self.bind(middle)}) >= 0)"
            case [head, *middle, tail]:
                return f"like({text}, {self.bind(head)}, {self.bind(tuple(middle))}, {self.bind(tail)})"
            case _:
                raise Unsupported("an empty pattern")


def flatten(op: str, expr: pst.Expr) -> list[pst.Expr]:
    """The operands of a chain of `&&`, or of `||`, in the order of their evaluation."""
    found: list[pst.Expr] = []
    waiting = [expr]
    while waiting:
        match waiting.pop():
            case pst.BinaryOp(inner, left, right) if inner == op:
                waiting += (right, left)
            case other:
                found.append(other)
    return found


def cut(pattern: Sequence[pst.PatternElem]) -> list[str]:
    """The literal pieces between a pattern's wildcards; one more than there are wildcards."""
    pieces = [""]
    for element in pattern:
        match element:
            case pst.Char(char):
                pieces[-1] += char
            case pst.Wildcard():
                pieces.append("")
    return pieces


def _truth(value: object) -> bool:
    if value is True or value is False:
        return value
    raise Unsure


def _is_text(value: object) -> bool:
    if isinstance(value, str):
        return True
    raise Unsure


def _long(value: object) -> int:
    if type(value) is int and -LONG <= value < LONG:
        return value
    raise Unsure


def _same(left: object, right: object) -> bool:
    """Cedar's `==`: no two values of different types are equal, and a set has no order."""
    if type(left) is type(right) and isinstance(left, str | int | Uid):
        return left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and Uid not in (type(left), type(right)):
        return _holds_all(left, right) and _holds_all(right, left)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    return False


def _set(value: object) -> Sequence[object]:
    if isinstance(value, list | tuple) and type(value) is not Uid:
        return value
    raise Unsure


def _holds(whole: object, element: object) -> bool:
    elements = _set(whole)
    return element in elements if type(element) is str else any(_same(element, other) for other in elements)


def _holds_all(whole: object, part: object) -> bool:
    return all(_holds(whole, element) for element in _set(part)) if _set(whole) else not _set(part)


def _holds_any(whole: object, part: object) -> bool:
    return any(_holds(whole, element) for element in _set(part)) if _set(whole) else _set(part) is None


def _has(base: object, name: str) -> bool:
    if isinstance(base, Mapping):
        return name in base
    raise Unsure


def _is_type(value: object, kind: str) -> bool:
    if type(value) is Uid:
        return value.type == kind
    raise Unsure


def _within(left: object, right: object, kind: str, name: str, above: Set[tuple[str, str]]) -> bool:
    places = [right] if type(right) is Uid else _set(right)
    if type(left) is not Uid or any(type(place) is not Uid for place in places):
        raise Unsure
    if left == (kind, name):
        return any(place in above for place in places)
    if left.type in ("Agent", "Action"):
        return left in places
    raise Unsure  # the parents of another entity


def _like(text: str, head: str, middle: Sequence[str], tail: str) -> bool:
    """Each piece at its first place after the one before; in any match it is there or further on, so that none is missed."""
    at, end = len(head), len(text) - len(tail)
    if at > end or not text.startswith(head) or not text.endswith(tail):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


_ARITHMETIC: Final = {"add": "add", "sub": "subtract", "mul": "multiply"}
_BOOLEAN: Final = frozenset(
    {"eq", "not_eq", "less", "less_eq", "greater", "greater_eq", "and", "or", "in", "contains", "contains_all", "contains_any"}
)
_BOUND: Final[Mapping[str, Any]] = {
    "__builtins__": {},
    "True": True,
    "False": False,
    "Uid": Uid,
    "truth": _truth,
    "is_text": _is_text,
    "is_empty": lambda value: not _set(value),
    "same": _same,
    "less": lambda left, right: _long(left) < _long(right),
    "less_eq": lambda left, right: _long(left) <= _long(right),
    "greater": lambda left, right: _long(left) > _long(right),
    "greater_eq": lambda left, right: _long(left) >= _long(right),
    "add": lambda left, right: _long(_long(left) + _long(right)),
    "subtract": lambda left, right: _long(_long(left) - _long(right)),
    "multiply": lambda left, right: _long(_long(left) * _long(right)),
    "contains": _holds,
    "contains_all": _holds_all,
    "contains_any": _holds_any,
    "has": _has,
    "is_type": _is_type,
    "within": _within,
    "like": _like,
}
