"""Could a glob meet what a policy forbids?

- Asked of every forbid whose scope has the pattern's kind or its exact kind: `fs.write` for `fs.write_any`.
- A forbid is read in three values over all paths that the glob could name: holds for all, for none, or unsure. Only "for none" is
  a proof; everything that is not understood is unsure, and unsure is refused.
- INVARIANT (pattern-place): a glob that is absolute names nothing inside the root; `cxi.effects.entity` refuses one that could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cedarpy import pst

from cxi.canonical import JsonValue
from cxi.policy.base import PolicyRequest
from cxi.policy.glob import Glob, Shape, literal_folder
from cxi.policy.vocabulary import KINDS, fold

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Question:
    """A request on a glob, as its forbids are read.

    Attributes:
        agent: The principal.
        kinds: The pattern's kind and its exact kind.
        types: The resource types that what the glob names can have.
        glob: The glob.
        context: The request's context; what it says of the effect is of the glob, not of each path.
    """

    agent: str
    kinds: frozenset[str]
    types: frozenset[str]
    glob: Glob
    context: Mapping[str, JsonValue]

    @classmethod
    def of(cls, request: PolicyRequest, filled: Mapping[str, JsonValue]) -> Question | None:
        """The question that a request on a pattern's kind asks, or None where it names no glob of its resource.

        Args:
            request: The request.
            filled: Its context, whole.
        """
        kind = KINDS[request.action]
        glob = request.context.get("effect", {}).get("pattern")
        if not isinstance(glob, str) or literal_folder(glob) != request.resource.id or not kind.exact:
            return None
        types = frozenset({"Folder", KINDS[kind.exact].resource})
        context = {key: value for key, value in filled.items() if key != "effect"}
        return cls(request.agent, frozenset({kind.name, kind.exact}), types, Glob.of(glob), context)


def meets_forbid(forbid: pst.Template, question: Question) -> bool:
    """Whether the forbid could hold for something that the glob names. False is a proof."""
    if _scope(forbid.principal, "principal", question) is False:
        return False
    if _action(forbid.action, question) is False:
        return False
    if _scope(forbid.resource, "resource", question) is False:
        return False
    for clause in forbid.clauses:
        match clause:
            case pst.When(expr):
                if _truth(expr, question) is False:
                    return False
            case pst.Unless(expr):
                if _truth(expr, question) is True:
                    return False
    return True


def _action(constraint: pst.ActionConstraint, question: Question) -> bool | None:
    match constraint:
        case pst.ScopeAny():
            return None
        case pst.ActionEq(entity):
            return None if entity.id in question.kinds else False
        case pst.ActionIn(entities):
            return None if any(entity.id in question.kinds for entity in entities) else False


def _scope(constraint: pst.PrincipalOrResourceConstraint, name: pst.VarName, question: Question) -> bool | None:
    match constraint:
        case pst.ScopeAny():
            return True
        case pst.ScopeEq(pst.EntityUid() as uid):
            return _is_uid(name, uid, question)
        case pst.ScopeIn(pst.EntityUid() as uid):
            return _in_uid(name, uid, question)
        case pst.ScopeIs(kind):
            return _is_type(name, str(kind), question)
        case pst.ScopeIsIn(kind, pst.EntityUid() as uid):
            return _both(_is_type(name, str(kind), question), _in_uid(name, uid, question))
        case _:
            return None


def _is_type(name: pst.VarName, kind: str, question: Question) -> bool | None:
    if name == "principal":
        return kind == "Agent"
    if name != "resource":
        return None
    if kind not in question.types:
        return False
    return True if len(question.types) == 1 else None


def _is_uid(name: pst.VarName, uid: pst.EntityUid, question: Question) -> bool | None:
    kind = str(uid.type)
    if name == "principal":
        return kind == "Agent" and uid.id == question.agent
    if name == "action":
        return None if uid.id in question.kinds else False
    if name != "resource" or kind not in question.types:
        return False if name == "resource" else None
    return None if question.glob.could_be(uid.id) else False


def _in_uid(name: pst.VarName, uid: pst.EntityUid, question: Question) -> bool | None:
    if name != "resource":
        return _is_uid(name, uid, question)
    kind = str(uid.type)
    if kind == "File":
        return _is_uid(name, uid, question)
    if kind != "Folder":
        return False
    if question.glob.is_in(uid.id):
        return True
    return None if question.glob.could_be_in(uid.id) else False


def _truth(expr: pst.Expr, question: Question) -> bool | None:  # noqa: C901  # one arm a construct of the language
    """What a condition is over all that the glob could name: True for all, False for none, None unsure."""
    match expr:
        case pst.BoolLit(value):
            return value
        case pst.UnaryOp("not", arg):
            inner = _truth(arg, question)
            return None if inner is None else not inner
        case pst.BinaryOp("and", left, right):
            return _both(_truth(left, question), _truth(right, question))
        case pst.BinaryOp("or", left, right):
            return _either(_truth(left, question), _truth(right, question))
        case pst.BinaryOp("in", pst.Var(name), right):
            return _any_of(name, right, question)
        case pst.BinaryOp("eq" | "not_eq" as op, left, right):
            same = _equal(left, right, question)
            return same if op == "eq" or same is None else not same
        case pst.BinaryOp("contains", pst.GetAttr(pst.Var("resource"), "parts_folded"), pst.StringLit(component)):
            return None if question.glob.could_hold(component) else False
        case pst.Is(pst.Var(name), kind, inside):
            found = _is_type(name, str(kind), question)
            return found if inside is None else _both(found, _any_of(name, inside, question))
        case pst.Like(pst.GetAttr(pst.Var("resource"), attribute), elements):
            shape = Shape.like(elements)
            return None if shape is None else _like(attribute, shape, question)
        case pst.GetAttr(pst.Var("resource"), "inside_root"):
            return not question.glob.folder.startswith("/")
        case pst.HasAttr(base, attributes):
            found_value = _value(base, question)
            for attribute in attributes:
                if found_value is None:
                    return None
                found_value = _attribute(found_value, attribute)
            return found_value is not None and found_value[0] is not _MISSING
        case pst.GetAttr():
            known = _value(expr, question)
            return known[0] if known is not None and isinstance(known[0], bool) else None
        case _:
            return None


def _any_of(name: pst.VarName, right: pst.Expr, question: Question) -> bool | None:
    match right:
        case pst.EntityLit(uid):
            return _in_uid(name, uid, question)
        case pst.Set(elements):
            found: bool | None = False
            for element in elements:
                found = _either(found, _in_uid(name, element.value, question) if isinstance(element, pst.EntityLit) else None)
            return found
        case _:
            return None


def _like(attribute: str, shape: Shape, question: Question) -> bool | None:
    glob = question.glob
    if attribute in ("name", "name_folded"):
        return None if glob.could_be_named(shape) else False
    if attribute in ("path", "path_folded"):
        return None if glob.path.meets(shape) else False
    if attribute == "extension":
        return None if glob.could_be_named(Shape((None, *shape.parts))) else False
    return None


def _equal(left: pst.Expr, right: pst.Expr, question: Question) -> bool | None:
    match left, right:
        case (pst.Var(name), pst.EntityLit(uid)) | (pst.EntityLit(uid), pst.Var(name)):
            return _is_uid(name, uid, question)
        case (pst.GetAttr(pst.Var("resource"), attribute), pst.StringLit(text)) | (
            pst.StringLit(text),
            pst.GetAttr(pst.Var("resource"), attribute),
        ):
            return _like(attribute, Shape(tuple(fold(text))), question) if text.isascii() else None
        case _:
            one, two = _value(left, question), _value(right, question)
            if one is None or two is None or type(one[0]) is not type(two[0]) or not isinstance(one[0], str | bool | int):
                return None
            return bool(one[0] == two[0])


def _value(expr: pst.Expr, question: Question) -> tuple[object] | None:
    """The value of a literal or of a path into the context, in a box; None where it is not known."""
    match expr:
        case pst.StringLit(value) | pst.LongLit(value) | pst.BoolLit(value):
            return (value,)
        case pst.Var("context"):
            return (question.context,)
        case pst.GetAttr(base, attribute):
            inner = _value(base, question)
            found = None if inner is None else _attribute(inner, attribute)
            return None if found is None or found[0] is _MISSING else found
        case _:
            return None


def _attribute(box: tuple[object], name: str) -> tuple[object] | None:
    inner = box[0]
    if not isinstance(inner, Mapping) or name == "effect":
        return (_MISSING,) if inner is _MISSING else None
    return (inner[name],) if name in inner else (_MISSING,)


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return True if left and right else None


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return False if left is False and right is False else None
