"""Does a request conform to the schema of its own action?

- Cedar refuses a request whose entities or context do not: an attribute that is missing, unknown or of another type. The same is
  read here, from the same schema, in Python's own values.
- INVARIANT (conforming): what passes here passes Cedar's validation. What does not pass is not refused here: Cedar is asked, who
  refuses it and says why. So to be too strict costs time, and nothing else.
- A text without a UTF-8 form (a lone surrogate) does not conform: JSON has none for it.
- Records are closed, and the schema names no escape (`__entity`, `__extn`, `__expr`), so that none passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

from cxi.canonical import JsonValue
from cxi.policy.base import Entity, PolicyRequest

ESCAPES: Final = frozenset({"__entity", "__extn", "__expr"})
_LONG: Final = 2**63
_RECORDS: Final = (dict, MappingProxyType)

# Raises `Unfit`, or adds every text that it saw.
_Check: TypeAlias = Callable[[object, list[str]], None]


class Unfit(Exception):  # what a request is
    """The request does not conform, or it is not certain that it does."""


@dataclass(frozen=True, slots=True)
class Checker:
    """What a request of one action must be.

    Attributes:
        agents: The principals that there are.
        resources: The types that its resource may have.
        attributes: By entity type, the check of an entity's attributes.
        parents: By entity type, the types that it can be in.
        context: The check of the whole context.
    """

    agents: frozenset[str]
    resources: frozenset[str]
    attributes: Mapping[str, _Check]
    parents: Mapping[str, frozenset[str]]
    context: _Check

    @classmethod
    def of(cls, schema: Mapping[str, Any], action: str) -> Self | None:
        """The checker for one action of a schema in Cedar's JSON format; None where the schema has what is not known here."""
        body = schema[""]
        asked = body["actions"][action]
        if len(schema) != 1 or asked.get("memberOf") or set(asked["appliesTo"]["principalTypes"]) != {"Agent"}:
            return None
        try:
            context = _type(asked["appliesTo"]["context"])
            attributes, parents = _entities(body["entityTypes"])
        except (_Unknown, KeyError):
            return None
        agents = frozenset(body["entityTypes"]["Agent"].get("enum", ()))
        return cls(agents, frozenset(asked["appliesTo"]["resourceTypes"]) & attributes.keys(), attributes, parents, context)

    def check(self, request: PolicyRequest, context: Mapping[str, Mapping[str, JsonValue]]) -> set[tuple[str, str]]:
        """The resource and all that it is in.

        Args:
            request: The request; its action is the checker's.
            context: Its context, whole.

        Raises:
            Unfit: It does not conform, or it is not certain that it does.
        """
        resource = request.resource
        kind = resource.type
        if request.agent not in self.agents or kind not in self.resources:
            raise Unfit
        texts = [resource.id]
        self.attributes[kind](resource.attributes, texts)
        self.context(context, texts)
        parents = resource.parents
        if parents:
            allowed = self.parents[kind]
            for above, name in parents:
                if above not in allowed:
                    raise Unfit
                texts.append(name)
        found = {*parents}
        if request.ancestors:
            further = [
                entity for entity in request.ancestors if not found.issuperset(((entity.type, entity.id), *entity.parents))
            ]
            if further:
                found = self._climb(resource, further, texts)
        uid = (kind, resource.id)
        if uid in found:
            raise Unfit  # it is in itself
        found.add(uid)
        try:
            joined = "".join(texts)
            if not joined.isascii():
                joined.encode()
        except (TypeError, UnicodeEncodeError) as error:
            raise Unfit from error
        return found

    def _climb(self, resource: Entity, further: Collection[Entity], texts: list[str]) -> set[tuple[str, str]]:
        """All that a resource is in by the entities that are given to Cedar with it."""
        given = {(resource.type, resource.id): resource.parents}
        for entity in further:
            texts.append(entity.id)
            self.attributes[entity.type](entity.attributes, texts)
            for above, name in entity.parents:
                if above not in self.parents[entity.type]:
                    raise Unfit
                texts.append(name)
            given[entity.type, entity.id] = entity.parents
        if len(given) != len(further) + 1:
            raise Unfit  # one is given twice
        return _closed(given)


def _closed(given: Mapping[tuple[str, str], tuple[tuple[str, str], ...]]) -> set[tuple[str, str]]:
    """What the first of the given entities is in; nothing among them may be in itself."""
    done: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def above(uid: tuple[str, str], open_: tuple[tuple[str, str], ...]) -> set[tuple[str, str]]:
        if uid in open_:
            raise Unfit
        if uid not in done:
            found: set[tuple[str, str]] = set()
            for parent in given.get(uid, ()):
                found |= {parent, *above(parent, (*open_, uid))}
            done[uid] = found
        return done[uid]

    every = [above(uid, ()) for uid in given]
    return every[0]


class _Unknown(Exception):  # the schema has a type that is not known here
    pass


def _entities(types: Mapping[str, Any]) -> tuple[dict[str, _Check], dict[str, frozenset[str]]]:
    attributes: dict[str, _Check] = {}
    parents: dict[str, frozenset[str]] = {}
    for name, of in types.items():
        if "enum" in of:
            continue
        if not of.keys() <= {"memberOfTypes", "shape"}:
            raise _Unknown
        attributes[name] = _type(of["shape"])
        reached: set[str] = set()
        waiting = list(of.get("memberOfTypes", ()))
        while waiting:
            if (kind := waiting.pop()) not in reached:
                reached.add(kind)
                waiting += types[kind].get("memberOfTypes", ())
        parents[name] = frozenset(reached)
    return attributes, parents


def _type(of: Mapping[str, Any]) -> _Check:
    match of:
        case {"type": "String"}:
            return _string
        case {"type": "Boolean"}:
            return _boolean
        case {"type": "Long"}:
            return _number
        case {"type": "Set", "element": {"type": "String"}}:
            return _strings
        case {"type": "Set", "element": element}:
            return _set_of(_type(element))
        case {"type": "Record", "attributes": attributes} if not of.get("additionalAttributes"):
            return _record(attributes)
        case _:
            raise _Unknown


def _string(value: object, texts: list[str]) -> None:
    if type(value) is not str:
        raise Unfit
    texts.append(value)


def _boolean(value: object, _texts: list[str]) -> None:
    if value is not True and value is not False:
        raise Unfit


def _number(value: object, _texts: list[str]) -> None:
    if type(value) is not int or not -_LONG <= value < _LONG:
        raise Unfit


def _strings(value: object, texts: list[str]) -> None:
    if type(value) is not list and type(value) is not tuple:
        raise Unfit
    for element in value:
        if type(element) is not str:
            raise Unfit
    texts += value


def _set_of(check: _Check) -> _Check:
    def elements(value: object, texts: list[str]) -> None:
        if type(value) is not list and type(value) is not tuple:
            raise Unfit
        for element in value:
            check(element, texts)

    return elements


def _record(attributes: Mapping[str, Any]) -> _Check:
    if ESCAPES & attributes.keys():
        raise _Unknown
    checks = {name: (_type(of), int(of.get("required", True))) for name, of in attributes.items()}
    required = sum(must for _, must in checks.values())

    def fields(value: object, texts: list[str]) -> None:
        if type(value) not in _RECORDS:
            raise Unfit
        given = 0
        for name, inner in value.items():  # type: ignore[attr-defined]  # it is a mapping
            found = checks.get(name)
            if found is None:
                raise Unfit
            check, must = found
            given += must
            if check is _string:  # most are; a call less
                if type(inner) is not str:
                    raise Unfit
                texts.append(inner)
            else:
                check(inner, texts)
        if given != required:
            raise Unfit

    return fields
