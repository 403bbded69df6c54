"""May this agent do this, exactly?

- Default deny, and forbid wins. INVARIANT (no-errors): only Allow with no errors permits; Cedar drops a `forbid` that raises an
  error and may still say Allow, so any error is a denial.
- A denial names the policy by its `@id` and quotes its `@text`.
- Entities and context are checked against the request's own action in the schema: an attribute that is missing, mistyped or
  unknown is an error, never silently absent. That buys what validation presumes.
- Our own evaluator answers what is certain: a conforming request (`cxi.policy.checker`), of which the policies that the index
  finds (`cxi.policy.index`) each hold or do not (`cxi.policy.evaluator`). INVARIANT (cedar-last): at any doubt, whatever it is,
  Cedar is asked anew and its answer stands; all errors are Cedar's, in its words.
- INVARIANT (no-escapes): no key `__entity`, `__extn` or `__expr` reaches Cedar, which would read it as no record.
- Ids and strings are any text: they are passed to Cedar in JSON, never as Cedar's syntax.
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
from cxi.policy.checker import ESCAPES, Checker
from cxi.policy.evaluator import Predicate, Unsupported, Unsure, compile_policy
from cxi.policy.index import Index
from cxi.policy.pattern import Question, meets_forbid
from cxi.policy.rule import Policy
from cxi.policy.schema import SchemaJson, narrow, parse
from cxi.policy.slices import Slices
from cxi.policy.vocabulary import CALL, KINDS

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
_PERMITS: Final = 4096  # answers that name the same permits are one object


class InForce(Protocol):
    """What a monitor needs of a registry."""

    @property
    def policies(self) -> Mapping[str, Policy]: ...

    @property
    def schema(self) -> SchemaJson: ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is known of one action before it is asked about.

    Attributes:
        checker: What its requests must be; None where only Cedar can say.
        exact: For a pattern's kind: the kind on one target, else empty.
    """

    checker: Checker | None
    exact: str


class CedarMonitor:
    """The monitor over a frozen registry.

    Args:
        registry: The policies in force, validated against their schema.
        own: Answer by our own evaluator where that is certain; without, Cedar is asked each time.
        whole: Ask Cedar all policies each time; the slow reference that all else is tested against.
    """

    def __init__(self, registry: InForce, *, own: bool = True, whole: bool = False) -> None:
        self._policies: tuple[Policy, ...] = tuple(registry.policies.values())
        self._schema = registry.schema
        self._own = own and not whole
        self._actions: frozenset[str] = frozenset(registry.schema[""]["actions"])
        self._index = Index.of(self._policies if self._own else ())
        self._predicates: list[Predicate | None] = [None] * len(self._policies)
        self._slices = Slices.of(self._policies)
        self._forbids = tuple(policy for policy in self._policies if policy.effect == "forbid")
        self._everything = tuple(range(len(self._policies))) if whole else None
        self._handle = lru_cache(maxsize=_SLICES)(self._parse_slice)
        self._schema_of = lru_cache(maxsize=None)(self._parse_schema)
        self._asked = lru_cache(maxsize=None)(self._know)
        self._met = lru_cache(maxsize=None)(self._forbids_of)
        self._permitted = lru_cache(maxsize=_PERMITS)(self._permits)

    def decide(self, request: PolicyRequest) -> Permitted | Refused:
        """Answer one request."""
        if request.action not in self._actions:
            return Refused.of(Code.POLICY_ERROR, f"the schema has no action `{show(request.action)}`", where=_where(request))
        asked = self._asked(request.action)
        context = request.context if len(request.context) == len(ABSENT) else {**ABSENT, **request.context}
        checker = asked.checker
        answer = self._evaluate(request, context, checker) if checker is not None else self._ask(request, context)
        return self._meet(request, context, answer) if asked.exact else answer

    def _know(self, action: str) -> _Asked:
        exact = KINDS[action].exact if action in KINDS else ""
        return _Asked(Checker.of(self._schema, action) if self._own else None, exact)

    def _evaluate(
        self, request: PolicyRequest, context: Mapping[str, Mapping[str, JsonValue]], checker: Checker
    ) -> Permitted | Refused:
        """Our own answer; Cedar's, where ours is not certain."""
        resource, agent, action = request.resource, request.agent, request.action
        found: Sequence[int] | None = None
        predicates = self._predicates
        try:
            above = checker.check(request, context)
            found = self._index.find(agent, action, resource, above, context)
            holding = [
                position
                for position in found
                if (predicates[position] or self._compile(position))(
                    agent, action, resource.type, resource.id, resource.attributes, above, context
                )
            ]
        except Exception:  # noqa: BLE001  # INVARIANT (cedar-last): no error is an answer of ours
            return self._ask(request, context, found)
        return self._answer(tuple(sorted(set(holding))) if len(holding) > 1 else tuple(holding), request)

    def _compile(self, position: int) -> Predicate:
        try:
            predicate = compile_policy(self._policies[position].parsed)
        except Unsupported:
            predicate = _unsure
        self._predicates[position] = predicate
        return predicate

    def _answer(self, holding: tuple[int, ...], request: PolicyRequest) -> Permitted | Refused:
        """What the policies that hold come to, where none raised an error. Forbid wins."""
        if permitted := self._permitted(holding):
            return permitted
        where = _where(request)
        forbids = [self._policies[position] for position in holding if self._policies[position].effect == "forbid"]
        if forbids:
            return Refused(tuple(_forbidden(policy, where) for policy in forbids))
        if request.action.startswith(CALL):
            return Refused.of(Code.CALL_NOT_PERMITTED, "no policy permits the call", where=where)
        return Refused.of(Code.EFFECT_FORBIDDEN, "no policy permits it", where=where)

    def _permits(self, holding: tuple[int, ...]) -> Permitted | None:
        policies = [self._policies[position] for position in holding]
        if not policies or any(policy.effect == "forbid" for policy in policies):
            return None
        return Permitted(tuple(sorted(policy.id for policy in policies)))

    def _ask(
        self, request: PolicyRequest, context: Mapping[str, Mapping[str, JsonValue]], found: Sequence[int] | None = None
    ) -> Permitted | Refused:
        """Cedar's answer; any error is a refusal.

        Args:
            request: The request.
            context: Its context, whole.
            found: The policies that the index found for it, if it conforms; else those of its scope are asked.
        """
        where = _where(request)
        unknown = next((key for key in request.context if key not in ABSENT), None)
        if unknown is not None:
            return Refused.of(Code.POLICY_ERROR, f"the context has no part `{show(unknown)}`", where=where)
        if self._everything is not None:
            positions = self._everything
        else:
            positions = tuple(sorted(set(found))) if found is not None else self._slices.of_request(request)
        resource = request.resource
        try:
            entities = orjson.dumps(_entities(request), default=_plain)
            record = orjson.dumps(context, default=_plain)
            # Any key that is an escape has its letters in the bytes; only then is it worth looking whether they are a key.
            if (b"__e" in entities or b"__e" in record) and (escape := next(_escapes(request), None)):
                detail = f"a value holds the key `{escape}`, which Cedar reads as an escape"
                return Refused.of(Code.POLICY_ERROR, detail, where=where)
            asked = {
                "principal": {"type": "Agent", "id": request.agent},
                "action": {"type": "Action", "id": request.action},
                "resource": {"type": resource.type, "id": resource.id},
                "context": record.decode(),
            }
            result = is_authorized(asked, self._handle(positions), entities.decode(), self._schema_of(request.action))
        except (TypeError, ValueError) as error:  # no JSON, or a lone surrogate
            return Refused.of(Code.POLICY_ERROR, f"the request cannot be put to Cedar: {_clip(str(error))}", where=where)
        # Cedar names policies in no order; ours is the order of the sources.
        reasons = list(self._errors(sorted(result.diagnostics.errors, key=_raised_by), positions, where))
        holding = sorted(positions[int(name.removeprefix("policy"))] for name in result.diagnostics.reasons)
        if result.decision is Decision.Allow and not reasons:
            return Permitted(tuple(sorted(self._policies[position].id for position in holding)))
        if reasons:
            policies = [self._policies[position] for position in holding]
            return Refused((*reasons, *(_forbidden(policy, where) for policy in policies if policy.effect == "forbid")))
        if result.decision is not Decision.Deny:  # NoDecision always has errors; should it ever not, it is still no Allow
            return Refused.of(Code.POLICY_ERROR, "Cedar came to no decision", where=where)
        return self._answer(tuple(holding), request)

    def _meet(self, request: PolicyRequest, context: Mapping[str, JsonValue], asked: Permitted | Refused) -> Permitted | Refused:
        """For a glob: refuse unless each forbid is proven to miss it."""
        question = Question.of(request, context)
        where = _where(request)
        if question is None:
            met = Refused.of(Code.POLICY_ERROR, "a pattern's request names no glob on its literal folder", where=where)
        else:
            found = [policy for policy in self._met(request.action) if meets_forbid(policy.parsed, question)]
            if not found:
                return asked
            met = Refused(tuple(_forbidden(policy, where, "could meet what policy") for policy in found))
        # A forbid that Cedar found as well is named once.
        return Refused(tuple(dict.fromkeys((*asked.reasons, *met.reasons)))) if isinstance(asked, Refused) else met

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
    if text.isprintable() and "`" not in text:
        return text
    return "".join(char if char.isprintable() and char != "`" else f"\\u{{{ord(char):x}}}" for char in text)


def _where(request: PolicyRequest) -> str:
    return f"{request.action} {show(request.resource.id)}"


def _raised_by(error: str) -> tuple[int, str]:
    raised = _RAISED.search(error)
    return (int(raised[1]) if raised else -1, error)


def _unsure(*_asked: object) -> bool:
    """The predicate of a policy that is not compiled."""
    raise Unsure


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
