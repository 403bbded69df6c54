"""What must a request be, at least, for this policy to hold?

- A *need* is a condition that can be looked up: an attribute is a text, starts or ends with it or has it inside, a number is in
  a range, a set holds a text, the resource is in an entity. It has one or more *ways*, and is met by any of them.
- INVARIANT (necessary): where a need is not met, the policy neither holds nor raises an error, for any request that conforms to
  the schema. So a need counts only if nothing that Cedar evaluates before it could raise an error, and the validator's word that
  an attribute is never read where it is absent is relied on.
- Needs are read off the scope and off the conjuncts of the clauses, negations pushed inward; what is not understood gives none.

    >>> policies = PolicySet.from_str('permit (principal, action, resource) when { resource.path like "src/*.py" };').to_pst()
    >>> [[(way.group.how, way.key) for way in need] for need in needs(policies.static_policies["policy0"])]
    [[('prefix', 'src/')], [('suffix', '.py')]]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from cedarpy import pst

from cxi.policy.evaluator import LONG, cut, flatten

How: TypeAlias = Literal["equal", "within", "holds", "prefix", "suffix", "inside", "range"]


class Group(NamedTuple):
    """What is looked up, and how.

    Attributes:
        how: `within` is of the resource itself; all others are of the value at a path.
        path: `("resource", name)`, or `("context", part, name, …)`, or `("resource",)` for its uid, `("type",)` for its type.
    """

    how: How
    path: tuple[str, ...]


class Way(NamedTuple):
    """One way to meet a need.

    Attributes:
        group: What is looked up.
        key: What is to be found there; for a range, `(lowest, highest)`.
    """

    group: Group
    key: Hashable


Need: TypeAlias = tuple[Way, ...]

UID: Final = ("resource",)
TYPE: Final = ("type",)
_MOST: Final = 64  # ways of one need; more would file a policy in too many places
_WINDOWS: Final = (16, 8, 4)  # a text inside another is looked up by a part of such a length


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
            yield _ways(Group("equal", TYPE), [str(kind)])
        case pst.ScopeIsIn(kind, pst.EntityUid() as uid):
            yield _ways(Group("equal", TYPE), [str(kind)])
            yield _within([uid])
        case _:
            return


def _is(uid: pst.EntityUid) -> Need:
    return (Way(Group("equal", UID), (str(uid.type), uid.id)),)


def _within(uids: list[pst.EntityUid]) -> Need:
    return _ways(Group("within", UID), [(str(uid.type), uid.id) for uid in uids])


def _ways(group: Group, keys: Iterable[Hashable]) -> Need:
    return tuple(Way(group, key) for key in dict.fromkeys(keys))


def _read(expr: pst.Expr, *, wanted: bool) -> _Read:
    match expr:
        case pst.UnaryOp("not", inner):
            return _read(inner, wanted=not wanted)
        case pst.BinaryOp("and" | "or" as op):
            parts = [_read(part, wanted=wanted) for part in flatten(op, expr)]
            return _all(parts) if (op == "and") is wanted else _any(parts)
        case pst.IfThenElse(cond, yes, no):
            chosen = _all([_read(cond, wanted=True), _read(yes, wanted=wanted)])
            return _any([chosen, _all([_read(cond, wanted=False), _read(no, wanted=wanted)])])
        case pst.BinaryOp("not_eq", left, right):
            return _Read(_equal(left, right, wanted=not wanted), total(expr))
        case pst.BinaryOp("eq", left, right):
            return _Read(_equal(left, right, wanted=wanted), total(expr))
        case pst.BinaryOp("less" | "less_eq" | "greater" | "greater_eq" as op, left, right):
            return _Read(_range(op, left, right, wanted=wanted), total(expr))
        case pst.GetAttr():
            path = _path(expr)
            return _Read((_ways(Group("equal", path), [wanted]),) if path else (), total(expr))
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
    """One of them is necessary: a need of each, in all their ways.

    An earlier part that could raise an error is no matter: if its need is not met, it raises none. Of all combinations, those
    within one group are taken, and that of what is likely the rarest of each.
    """
    sure = all(part.total for part in parts)
    if not all(part.needs for part in parts):
        return _Read((), sure)
    by_group = [{need[0].group: need for need in part.needs if len({way.group for way in need}) == 1} for part in parts]
    shared = [group for group in by_group[0] if all(group in groups for groups in by_group)]
    found = [[way for groups in by_group for way in groups[group]] for group in shared]
    found.append([way for part in parts for way in min(part.needs, key=_breadth)])
    unique = dict.fromkeys(tuple(dict.fromkeys(ways)) for ways in found)
    return _Read(tuple(need for need in unique if len(need) <= _MOST), sure)


def _breadth(need: Need) -> int:
    """How much is likely to meet the need, judged by its form alone."""
    return sum(map(_breadth_of, need))


def _breadth_of(way: Way) -> int:
    match way:
        case Way(Group("equal", path), key):
            return 95 if path == TYPE else 90 if isinstance(key, bool) else 1
        case Way(Group("within" | "holds", _), _):
            return 5
        case Way(Group("range", _), _):
            return 60
        case Way(_, key):
            return max(10, 50 - len(str(key)))


def _plain(expr: pst.Expr) -> Iterator[Need]:  # noqa: C901  # one arm a construct of the language
    match expr:
        case pst.BinaryOp("in", pst.Var("resource"), pst.EntityLit(uid)):
            yield _within([uid])
        case pst.BinaryOp("in", pst.Var("resource"), pst.Set(elements)):
            uids = [element.value for element in elements if isinstance(element, pst.EntityLit)]
            if 0 < len(uids) == len(elements) <= _MOST:
                yield _within(uids)
        case pst.Is(pst.Var("resource"), kind, place):
            yield _ways(Group("equal", TYPE), [str(kind)])
            if isinstance(place, pst.EntityLit):
                yield _within([place.value])
        case pst.BinaryOp("contains", pst.Set(elements), element) if _path(element):
            keys = [one for each in elements for one in _literal(each)]
            if 0 < len(keys) == len(elements) <= _MOST:
                yield _ways(Group("equal", _path(element)), keys)
        case pst.BinaryOp("contains", base, element) if path := _path(base):
            if keys := _literal(element):
                yield _ways(Group("holds", path), keys)
        case pst.BinaryOp("contains_any", base, pst.Set(elements)) if path := _path(base):
            keys = [one for each in elements for one in _literal(each)]
            if 0 < len(keys) == len(elements) <= _MOST:
                yield _ways(Group("holds", path), keys)
        case pst.BinaryOp("contains_all", base, pst.Set(elements)) if path := _path(base):
            for each in elements:
                if keys := _literal(each):
                    yield _ways(Group("holds", path), keys)
        case pst.Like(base, pattern) if path := _path(base):
            yield from _like(path, cut(pattern))
        case _:
            return


def _like(path: tuple[str, ...], pieces: list[str]) -> Iterator[Need]:
    if len(pieces) == 1:
        yield _ways(Group("equal", path), pieces)
        return
    head, *middle, tail = pieces
    if head:
        yield _ways(Group("prefix", path), [head])
    if tail:
        yield _ways(Group("suffix", path), [tail])
    for piece in middle:
        size = next((size for size in _WINDOWS if len(piece) >= size), 0)
        for start in range(min(len(piece) - size + 1, _MOST) if size else 0):
            yield _ways(Group("inside", path), [piece[start : start + size]])


def _equal(left: pst.Expr, right: pst.Expr, *, wanted: bool) -> tuple[Need, ...]:
    for one, other in ((left, right), (right, left)):
        match one, other:
            case pst.Var("resource"), pst.EntityLit(uid) if wanted:
                return (_is(uid),)
            case _, pst.BoolLit(value) if path := _path(one):
                return (_ways(Group("equal", path), [value is wanted]),)
            case _, pst.StringLit() | pst.LongLit() if wanted and (path := _path(one)):
                return (_ways(Group("equal", path), _literal(other)),)
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
    return (_ways(Group("range", path), [span]),)


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
