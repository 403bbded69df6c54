"""May this agent do this, exactly?

- Default deny, and forbid wins. INVARIANT (no-errors): only Allow with no errors permits; Cedar drops a `forbid` that raises an
  error and may still say Allow, so any error is a denial.
- A denial names the policy by its `@id` and quotes its `@text`.
- Entities and context are checked by Cedar against the request's own action in the schema: an attribute that is missing, mistyped
  or unknown is an error, never silently absent. That costs a fifth of a decision and buys what validation presumes.
- INVARIANT (no-escapes): no key `__entity`, `__extn` or `__expr` reaches Cedar, which would read it as no record.
- Policies, schema and registry are frozen, and Cedar reads no clock: the very same question, byte for byte, is asked once.
- Ids and strings are any text: they are passed in JSON, never as Cedar's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import orjson
from cedarpy import Decision, PolicySet, Schema, is_authorized

from cxi.canonical import JsonValue
from cxi.errors import Code, Reason, Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.pattern import Question, meets_forbid
from cxi.policy.rule import Policy
from cxi.policy.schema import SchemaJson, narrow, parse
from cxi.policy.slices import Slices
from cxi.policy.vocabulary import CALL, KINDS

ESCAPES: Final = frozenset({"__entity", "__extn", "__expr"})
# What stands in the context where a request says nothing of it: nothing is known, given or open.
ABSENT: Final[Mapping[str, Mapping[str, JsonValue]]] = {
    "field": {},
    "evidence": {},
    "approval": {"given": False},
    "task": {"name": "", "open": False},
    "effect": {},
}
_RAISED: Final = re.compile(r"policy `policy(\d+)`:? ?(.*)", re.DOTALL)
_SLICES: Final = 4096  # policy sets kept parsed
_ANSWERS: Final = 4096  # answers of Cedar that are kept


class InForce(Protocol):
    """What a monitor needs of a registry."""

    @property
    def policies(self) -> Mapping[str, Policy]: ...

    @property
    def schema(self) -> SchemaJson: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """What Cedar answered: the decision, what it says of errors, and the policies that hold, by its own names."""

    decision: Decision
    errors: tuple[str, ...]
    holding: tuple[str, ...]


class CedarMonitor:
    """The monitor over a frozen registry.

    Args:
        registry: The policies in force, validated against their schema.
        whole: Ask all policies each time; the slow reference that slices are tested against.
    """

    def __init__(self, registry: InForce, *, whole: bool = False) -> None:
        self._policies: tuple[Policy, ...] = tuple(registry.policies.values())
        self._schema = registry.schema
        self._actions: frozenset[str] = frozenset(registry.schema[""]["actions"])
        self._slices = Slices.of(self._policies)
        self._forbids = tuple(policy for policy in self._policies if policy.effect == "forbid")
        self._everything = tuple(range(len(self._policies))) if whole else None
        self._answer = lru_cache(maxsize=_ANSWERS)(self._ask_cedar)
        self._handle = lru_cache(maxsize=_SLICES)(self._parse_slice)
        self._schema_of = lru_cache(maxsize=None)(self._parse_schema)
        self._met = lru_cache(maxsize=None)(self._forbids_of)

    def decide(self, request: PolicyRequest) -> Permitted | Refused:
        """Answer one request."""
        where = f"{request.action} {show(request.resource.id)}"
        if request.action not in self._actions:
            return Refused.of(Code.POLICY_ERROR, f"the schema has no action `{show(request.action)}`", where=where)
        unknown = next((key for key in request.context if key not in ABSENT), None)
        if unknown is not None:
            return Refused.of(Code.POLICY_ERROR, f"the context has no part `{show(unknown)}`", where=where)
        context = {key: request.context.get(key, absent) for key, absent in ABSENT.items()}
        met = self._meet(request, context, where)
        asked = self._ask(request, context, where)
        if met and isinstance(asked, Refused):
            # A forbid that Cedar found as well is named once.
            return Refused(tuple(dict.fromkeys((*asked.reasons, *met.reasons))))
        return met or asked

    def _ask(self, request: PolicyRequest, context: Mapping[str, JsonValue], where: str) -> Permitted | Refused:
        positions = self._everything if self._everything is not None else self._slices.of_request(request)
        resource = request.resource
        try:
            entities = orjson.dumps(_entities(request), default=_plain)
            record = orjson.dumps(context, default=_plain)
            # Any key that is an escape has its letters in the bytes; only then is it worth looking whether they are a key.
            if (b"__e" in entities or b"__e" in record) and (escape := next(_escapes(request), None)):
                detail = f"a value holds the key `{escape}`, which Cedar reads as an escape"
                return Refused.of(Code.POLICY_ERROR, detail, where=where)
            uids = (request.agent, request.action, resource.type, resource.id)
            answer = self._answer(positions, uids, entities.decode(), record.decode())
        except (TypeError, ValueError) as error:  # no JSON, or a lone surrogate
            return Refused.of(Code.POLICY_ERROR, f"the request cannot be put to Cedar: {_clip(str(error))}", where=where)
        # Cedar names policies in no order; ours is the order of the sources.
        reasons = list(self._errors(sorted(answer.errors), positions, where))
        numbers = sorted(int(name.removeprefix("policy")) for name in answer.holding)
        holding = [self._policies[positions[number]] for number in numbers]
        reasons.extend(_forbidden(policy, where) for policy in holding if policy.effect == "forbid")
        if answer.decision is Decision.Allow and not reasons:
            return Permitted(tuple(sorted(policy.id for policy in holding)))
        if reasons:
            return Refused(tuple(reasons))
        if answer.decision is not Decision.Deny:  # NoDecision always has errors; should it ever not, it is still no Allow
            return Refused.of(Code.POLICY_ERROR, "Cedar came to no decision", where=where)
        if request.action.startswith(CALL):
            return Refused.of(Code.CALL_NOT_PERMITTED, "no policy permits the call", where=where)
        return Refused.of(Code.EFFECT_FORBIDDEN, "no policy permits it", where=where)

    def _meet(self, request: PolicyRequest, context: Mapping[str, JsonValue], where: str) -> Refused | None:
        """For a glob: refuse unless each forbid is proven to miss it."""
        if request.action not in KINDS or not KINDS[request.action].exact:
            return None
        question = Question.of(request, context)
        if question is None:
            return Refused.of(Code.POLICY_ERROR, "a pattern's request names no glob on its literal folder", where=where)
        met = tuple(
            _forbidden(policy, where, "could meet what policy")
            for policy in self._met(request.action)
            if meets_forbid(policy.parsed, question)
        )
        return Refused(met) if met else None

    def _errors(self, errors: Sequence[str], positions: Sequence[int], where: str) -> Iterator[Reason]:
        for error in errors:
            raised = _RAISED.search(error)
            if raised is None:
                # Cedar quotes whole entities and contexts; only what it says of them is shown.
                yield Reason(Code.POLICY_ERROR, f"the request does not fit the schema: {_clip(_unquoted(error))}", where)
                continue
            policy = self._policies[positions[int(raised[1])]]
            yield Reason(
                Code.POLICY_ERROR,
                f"policy `{policy.id}` raised an error, and an erroring policy denies: {_clip(raised[2])}",
                where,
                f"mend `{policy.id}` ({policy.file}:{policy.line})",
            )

    def _ask_cedar(self, positions: tuple[int, ...], uids: tuple[str, str, str, str], entities: str, context: str) -> _Answer:
        """INVARIANT (whole-question): the arguments are all that Cedar is asked, so equal ones have one answer."""
        agent, action, kind, name = uids
        asked = {
            "principal": {"type": "Agent", "id": agent},
            "action": {"type": "Action", "id": action},
            "resource": {"type": kind, "id": name},
            "context": context,
        }
        result = is_authorized(asked, self._handle(positions), entities, self._schema_of(action))
        return _Answer(result.decision, tuple(result.diagnostics.errors), tuple(result.diagnostics.reasons))

    def _parse_slice(self, positions: tuple[int, ...]) -> PolicySet:
        # Cedar numbers policies in the order of the text, so `policyN` is the N-th position.
        return PolicySet.from_str("\n".join(self._policies[position].source for position in positions))

    def _parse_schema(self, action: str) -> Schema:
        return parse(narrow(self._schema, action))

    def _forbids_of(self, action: str) -> tuple[Policy, ...]:
        kinds = {action, KINDS[action].exact}
        return tuple(policy for policy in self._forbids if policy.actions is None or policy.actions & kinds)


def show(text: str) -> str:
    """An id on one line, with nothing that a reader cannot see."""
    return "".join(char if char.isprintable() and char != "`" else f"\\u{{{ord(char):x}}}" for char in text)


def _forbidden(policy: Policy, where: str, verb: str = "policy") -> Reason:
    said = f'`{policy.id}` forbids it: "{policy.text}"' if policy.text else f"`{policy.id}` forbids it"
    if verb != "policy":
        said = said.replace(" forbids it", " forbids", 1)
    return Reason(Code.POLICY_FORBIDS, f"{verb} {said}", where, policy.text)


def _escapes(request: PolicyRequest) -> Iterator[str]:
    for entity in (request.resource, *request.ancestors):
        yield from _escapes_in(entity.attributes)
    yield from _escapes_in(request.context)


def _escapes_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ESCAPES:
                yield key
            yield from _escapes_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _escapes_in(inner)


def _entities(request: PolicyRequest) -> list[dict[str, object]]:
    """The resource, and what stands above it where the resource does not say so itself.

    `in` needs no more than the resource's own parents, and no policy looks into another entity: INVARIANT (no-looking-in).
    """
    listed = set(request.resource.parents)
    further = (entity for entity in request.ancestors if not listed.issuperset(((entity.type, entity.id), *entity.parents)))
    return [_to_json(entity) for entity in (request.resource, *further)]


def _to_json(entity: Entity) -> dict[str, object]:
    return {
        "uid": {"type": entity.type, "id": entity.id},
        "attrs": dict(entity.attributes),
        "parents": [{"type": kind, "id": name} for kind, name in entity.parents],
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a `{type(value).__name__}` is not JSON")


def _unquoted(error: str) -> str:
    return error.rpartition("]: ")[2] if error.startswith("failed to parse entities") else error


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return show(line if len(line) <= 200 else f"{line[:200]}…")
