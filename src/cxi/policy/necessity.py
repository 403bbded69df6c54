"""What must a request be, at least, for this policy to hold?

- A *need* is a condition that can be looked up: an attribute equals, starts or ends with a text, a number is in a range, a set
  holds a text, the resource is in an entity. It is met by any one of its keys.
- INVARIANT (necessary): where a need is not met, the policy neither holds nor raises an error, for any request that conforms to
  the schema. So a need counts only if nothing that Cedar evaluates before it could raise an error, and the validator's word that
  an attribute is never read where it is absent is relied on.
- Needs are read off the scope and off the conjuncts of the clauses, negations pushed inward; what is not understood gives none.

    >>> policies = PolicySet.from_str('permit (principal, action, resource) when { resource.path like "src/*.py" };').to_pst()
    >>> [(need.group.how, need.keys) for need in needs(policies.static_policies["policy0"])]
    [('prefix', ('src/',)), ('suffix', ('.py',))]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from cedarpy import pst

from cxi.policy.evaluator import LONG, cut, flatten

How: TypeAlias = Literal["equal", "within", "holds", "prefix", "suffix", "range"]


class Group(NamedTuple):
    """What is looked up, and how.

    Attributes:
        how: `within` is of the resource itself; all others are of the value at a path.
        path: `("resource", name)`, or `("context", part, name, …)`, or `("resource",)` for its uid, `("type",)` for its type.
    """

    how: How
    path: tuple[str, ...]


class Need(NamedTuple):
    """One condition that is necessary.

    Attributes:
        group: What is looked up.
        keys: Any one of them meets it; for a range, `(lowest, highest)`.
    """

    group: Group
    keys: tuple[Hashable, ...]


UID: tuple[str, ...] = ("resource",)
_TYPE: tuple[str, ...] = ("type",)
_MOST = 16  # keys of one need; more would file a policy in too many places


@dataclass(slots=True)
class _Read:
    """What is necessary for an expression to have a value, and whether its evaluation can raise an error."""

    needs: tuple[Need, ...]
    total: bool


def needs(policy: pst.Template) -> Iterator[Need]:
    """What is necessary for the policy to hold, beside its principal and its actions."""
    yield from _scope(policy.resource)
    for clause in policy.clauses:
        read = _read(clause.expr, wanted=isinstance(clause, pst.When))
        yield from read.needs
        if not read.total:
            return


def _scope(constraint: pst.PrincipalOrResourceConstraint) -> Iterator[Need]:
    match constraint:
        case pst.ScopeEq(pst.EntityUid() as uid):
            yield _is(uid)
        case pst.ScopeIn(pst.EntityUid() as uid):
            yield _within([uid])
        case pst.ScopeIs(kind):
            yield Need(Group("equal", _TYPE), (str(kind),))
        case pst.ScopeIsIn(kind, pst.EntityUid() as uid):
            yield Need(Group("equal", _TYPE), (str(kind),))
            yield _within([uid])
        case _:
            return


def _is(uid: pst.EntityUid) -> Need:
    return Need(Group("equal", UID), ((str(uid.type), uid.id),))


def _within(uids: list[pst.EntityUid]) -> Need:
    return Need(Group("within", UID), tuple((str(uid.type), uid.id) for uid in uids))


def _read(expr: pst.Expr, *, wanted: bool) -> _Read:
    match expr:
        case pst.UnaryOp("not", inner):
            return _read(inner, wanted=not wanted)
        case pst.BinaryOp("and" | "or" as op):
            parts = [_read(part, wanted=wanted) for part in flatten(op, expr)]
            return _all(parts) if (op == "and") is wanted else _any(parts)
        case pst.IfThenElse(cond, yes, no):
            parts = [_read(cond, wanted=True), _read(yes, wanted=wanted), _read(no, wanted=wanted)]
            return _Read((), all(part.total for part in parts))
        case pst.BinaryOp("not_eq", left, right):
            return _Read(_equal(left, right, wanted=not wanted), total(expr))
        case pst.BinaryOp("eq", left, right):
            return _Read(_equal(left, right, wanted=wanted), total(expr))
        case pst.BinaryOp("less" | "less_eq" | "greater" | "greater_eq" as op, left, right):
            return _Read(_range(op, left, right, wanted=wanted), total(expr))
        case pst.GetAttr():
            path = _path(expr)
            return _Read((Need(Group("equal", path), (wanted,)),) if path else (), total(expr))
        case _:
            return _Read(tuple(_plain(expr)) if wanted else (), total(expr))


def _all(parts: list[_Read]) -> _Read:
    """All of them are necessary; one after an error that could be raised is none."""
    found: list[Need] = []
    for part in parts:
        found += part.needs
        if not part.total:
            return _Read(tuple(found), total=False)
    return _Read(tuple(found), total=True)


def _any(parts: list[_Read]) -> _Read:
    """One of them is necessary: a need that each has in the same group, with the keys of all.

    An earlier part that could raise an error is no matter: if its need is not met, it raises none.
    """
    common = {need.group: need.keys for need in parts[0].needs}
    for part in parts[1:]:
        mine = {need.group: need.keys for need in part.needs}
        common = {group: (*keys, *mine[group]) for group, keys in common.items() if group in mine}
    wide = tuple(Need(group, tuple(dict.fromkeys(keys))) for group, keys in common.items())
    return _Read(tuple(need for need in wide if len(need.keys) <= _MOST), all(part.total for part in parts))


def _plain(expr: pst.Expr) -> Iterator[Need]:
    match expr:
        case pst.BinaryOp("in", pst.Var("resource"), pst.EntityLit(uid)):
            yield _within([uid])
        case pst.BinaryOp("in", pst.Var("resource"), pst.Set(elements)):
            uids = [element.value for element in elements if isinstance(element, pst.EntityLit)]
            if len(uids) == len(elements) <= _MOST:
                yield _within(uids)
        case pst.Is(pst.Var("resource"), kind, place):
            yield Need(Group("equal", _TYPE), (str(kind),))
            if isinstance(place, pst.EntityLit):
                yield _within([place.value])
        case pst.BinaryOp("contains", pst.Set(elements), element) if _path(element):
            keys = [one for each in elements for one in _literal(each)]
            if len(keys) == len(elements) <= _MOST:
                yield Need(Group("equal", _path(element)), tuple(keys))
        case pst.BinaryOp("contains", base, element) if path := _path(base):
            if keys := _literal(element):
                yield Need(Group("holds", path), tuple(keys))
        case pst.BinaryOp("contains_any", base, pst.Set(elements)) if path := _path(base):
            keys = [one for each in elements for one in _literal(each)]
            if len(keys) == len(elements) <= _MOST:
                yield Need(Group("holds", path), tuple(keys))
        case pst.Like(base, pattern) if path := _path(base):
            yield from _like(path, cut(pattern))
        case _:
            return


def _like(path: tuple[str, ...], pieces: list[str]) -> Iterator[Need]:
    if len(pieces) == 1:
        yield Need(Group("equal", path), (pieces[0],))
        return
    if pieces[0]:
        yield Need(Group("prefix", path), (pieces[0],))
    if pieces[-1]:
        yield Need(Group("suffix", path), (pieces[-1],))


def _equal(left: pst.Expr, right: pst.Expr, *, wanted: bool) -> tuple[Need, ...]:
    for one, other in ((left, right), (right, left)):
        match one, other:
            case pst.Var("resource"), pst.EntityLit(uid) if wanted:
                return (_is(uid),)
            case _, pst.BoolLit(value) if path := _path(one):
                return (Need(Group("equal", path), (value is wanted,)),)
            case _, pst.StringLit() | pst.LongLit() if wanted and (path := _path(one)):
                return (Need(Group("equal", path), tuple(_literal(other))),)
    return ()


_FLIPPED = {"less": "greater", "less_eq": "greater_eq", "greater": "less", "greater_eq": "less_eq"}
_NEGATED = {"less": "greater_eq", "less_eq": "greater", "greater": "less_eq", "greater_eq": "less"}


def _range(op: str, left: pst.Expr, right: pst.Expr, *, wanted: bool) -> tuple[Need, ...]:
    if isinstance(left, pst.LongLit):
        op, left, right = _FLIPPED[op], right, left
    path = _path(left)
    if not path or not isinstance(right, pst.LongLit):
        return ()
    bound = right.value
    match op if wanted else _NEGATED[op]:
        case "less":
            span = (-LONG, bound - 1)
        case "less_eq":
            span = (-LONG, bound)
        case "greater":
            span = (bound + 1, LONG - 1)
        case _:
            span = (bound, LONG - 1)
    return (Need(Group("range", path), (span,)),)


def _literal(expr: pst.Expr) -> list[Hashable]:
    match expr:
        case pst.StringLit(value) | pst.LongLit(value) | pst.BoolLit(value):
            return [value]
        case _:
            return []


def _path(expr: pst.Expr) -> tuple[str, ...]:
    """`resource.name` or `context.effect.op` as a path, or an empty one."""
    names: list[str] = []
    while isinstance(expr, pst.GetAttr):
        names.append(expr.attr)
        expr = expr.base
    match expr:
        case pst.Var("resource") if len(names) == 1:
            return ("resource", *names)
        case pst.Var("context") if len(names) > 1:
            return ("context", *reversed(names))
        case _:
            return ()


_SURE = frozenset(
    {"eq", "not_eq", "less", "less_eq", "greater", "greater_eq", "and", "or", "in", "contains", "contains_all", "contains_any"}
)


def total(expr: pst.Expr) -> bool:
    """Whether the expression, in a validated policy, raises no error for any conforming request."""
    waiting: list[pst.Expr] = [expr]
    while waiting:
        match waiting.pop():
            case pst.Var() | pst.BoolLit() | pst.LongLit() | pst.StringLit() | pst.EntityLit():
                pass
            case pst.UnaryOp("not" | "is_empty", inner) | pst.GetAttr(inner, _) | pst.HasAttr(inner, _) | pst.Like(inner, _):
                waiting.append(inner)
            case pst.BinaryOp(op, left, right) if op in _SURE:
                waiting += (left, right)
            case pst.Is(inner, _, place):
                waiting += (inner,) if place is None else (inner, place)
            case pst.IfThenElse(cond, yes, no):
                waiting += (cond, yes, no)
            case pst.Set(elements):
                waiting += elements
            case pst.Record(fields):
                waiting += fields.values()
            case _:  # arithmetic overflows; an extension's value may be out of its range
                return False
    return True
