"""Which rules are in force, and what does each say?

- Everything wrong in what the operator wrote is found at once, with file, line and what mends it: `ConfigError`.
- INVARIANT (named): every policy has an `@id` that no other has, so that every decision can be named.
- INVARIANT (validated): every policy passed Cedar's strict validation against the generated schema: no unknown action,
  attribute, entity type or agent, and no access to an optional attribute without `has`.
- INVARIANT (no-looking-in): an entity literal is only compared with (`==`, `in`), never looked into (`File::"x".name`): what is
  asked about is the request's resource, and nothing else is there.
- Templates are refused: a policy that is linked at run time is in no digest.
- A `Folder` or `Table` literal that names nothing is a warning: it may name what does not exist yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Final

from cedarpy import PolicySet, Schema, pst, validate_policies

from cxi.canonical import Digest, digest
from cxi.errors import Code, ConfigError, Problem
from cxi.policy.monitor import CedarMonitor
from cxi.policy.rule import Policy
from cxi.policy.schema import SchemaJson, parse
from cxi.policy.source import Piece, PolicySource, cut, hidden_in
from cxi.policy.vocabulary import cedar_name

__all__ = ["ANNOTATIONS", "Exists", "Policy", "PolicySource", "Registry", "load", "shipped"]

ANNOTATIONS: Final = frozenset({"id", "issuer", "scope", "priority", "evidence", "text"})
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}")
_POSITION: Final = re.compile(r"policy(\d+)")
_PREFIX: Final = re.compile(r"^for policy `policy\d+`[:,] ")
_WARNED: Final = frozenset({"Folder", "Table"})

Exists = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Registry:
    """All policies in force, frozen.

    Attributes:
        policies: By `@id`, in the order of the sources.
        schema: The schema that they were validated against, in Cedar's JSON format.
        digest: The digest of all sources and the schema; part of the policy epoch.
        warnings: What is suspicious and no error.
    """

    policies: Mapping[str, Policy]
    schema: SchemaJson
    digest: Digest
    warnings: tuple[Problem, ...]

    def monitor(self) -> CedarMonitor:
        """A monitor over these policies; it keeps what Cedar has parsed, so one is made and reused."""
        return CedarMonitor(self)


def shipped() -> PolicySource:
    """The policies that come with the package: reads are permitted, secrets and git's own files are forbidden."""
    text = resources.files("cxi.policy").joinpath("shipped.cedar").read_text(encoding="utf-8")
    return PolicySource("cxi/shipped.cedar", text)


def load(sources: Sequence[PolicySource], schema: SchemaJson, *, agents: Iterable[str], exists: Exists | None = None) -> Registry:
    """Read, check and freeze all policies.

    Args:
        sources: Every file, `shipped()` among them if it is wanted.
        schema: From `make_schema`.
        agents: The agents of the configuration.
        exists: Whether a `Folder` or `Table` of this id is there; without it nothing is warned of.

    Raises:
        ConfigError: with every problem of every file.
    """
    handle = parse(schema)
    known = frozenset(agents)
    evidence = _evidence_names(schema)
    problems: list[Problem] = []
    found: dict[str, Policy] = {}
    for source in sources:
        for policy in _read(source, handle, problems):
            problems.extend(_check(policy, known, evidence))
            if not policy.id:
                continue
            if policy.id in found:
                first = found[policy.id]
                detail = f"the id `{policy.id}` is used in {first.file}:{first.line} already"
                problems.append(Problem(policy.file, policy.line, detail, "give each policy its own @id"))
            else:
                found[policy.id] = policy
    if not problems and not found:
        problems.append(Problem("policies", 0, "there is no policy at all, so nothing could ever happen", "name policy files"))
    if problems:
        raise ConfigError(*dict.fromkeys(problems))
    body = digest({"sources": sorted(source.text for source in sources), "schema": schema})
    return Registry(MappingProxyType(found), schema, body, tuple(_warn(found.values(), exists)))


def _read(source: PolicySource, handle: Schema, problems: list[Problem]) -> list[Policy]:
    """The policies of one file; whatever is wrong is added to `problems`."""
    before = len(problems)
    for line, point in hidden_in(source.text):
        problems.append(Problem(source.file, line, f"{Code.HIDDEN_TEXT}: a hidden character, {point}", "remove it"))
    pieces = cut(source.text)
    if not pieces:
        problems.append(Problem(source.file, 0, "the file holds no policy", "write one, or do not name the file"))
    if len(problems) > before:
        return []
    try:
        whole = PolicySet.from_str(source.text).to_pst()
    except ValueError as error:
        located = [item for piece in pieces for item in _syntax(source.file, piece)]
        problems.extend(located or [Problem(source.file, 0, _line(str(error)), "mend the syntax")])
        return []
    # INVARIANT (same-cut): Cedar's parser numbers policies in the order of the text, and sees exactly those that the cut sees.
    if len(whole.static_policies) + len(whole.templates) != len(pieces):
        problems.append(Problem(source.file, 0, "the file cannot be cut into its policies", "put each policy on its own lines"))
        return []
    parsed = {**whole.static_policies, **whole.templates}
    policies: list[Policy] = []
    for index, piece in enumerate(pieces):
        name = f"policy{index}"
        if name in whole.templates:
            problems.append(
                Problem(source.file, piece.line, "a template (`?principal`, `?resource`) is refused", "write each policy out")
            )
            continue
        policies.append(_policy(source.file, piece, parsed[name]))
    result = validate_policies(source.text, handle)
    for invalid in result.errors:
        number = _POSITION.fullmatch(invalid.policy_id)
        line = pieces[int(number[1])].line if number and int(number[1]) < len(pieces) else 0
        problems.append(Problem(source.file, line, _PREFIX.sub("", _line(invalid.error)), "use a name of `cxi check --schema`"))
    if not result.validation_passed and not result.errors:
        problems.append(Problem(source.file, 0, "the file does not pass Cedar's strict validation"))
    return policies


def _syntax(file: str, piece: Piece) -> Iterator[Problem]:
    if not piece.ended:
        yield Problem(file, piece.line, "the last policy has no `;` at its end", "end it with `;`")
        return
    try:
        PolicySet.from_str(piece.text).to_pst()
    except ValueError as error:
        yield Problem(file, piece.line, f"not a Cedar policy: {_line(str(error))}", "mend the syntax")


def _policy(file: str, piece: Piece, parsed: pst.Template) -> Policy:
    notes = parsed.annotations
    actions: frozenset[str] | None
    match parsed.action:
        case pst.ActionEq(entity):
            actions = frozenset({entity.id})
        case pst.ActionIn(entities):
            actions = frozenset(entity.id for entity in entities)
        case pst.ScopeAny():
            actions = None
    return Policy(
        id=notes.get("id") or "",
        effect=parsed.effect,
        text=notes.get("text") or "",
        issuer=notes.get("issuer") or "",
        scope=notes.get("scope") or "",
        priority=notes.get("priority") or "",
        evidence=notes.get("evidence") or "",
        file=file,
        line=piece.line,
        source=piece.text,
        actions=actions,
        parsed=parsed,
    )


def _check(policy: Policy, agents: frozenset[str], evidence: frozenset[str]) -> Iterator[Problem]:
    file, line = policy.file, policy.line
    if not policy.id:
        yield Problem(file, line, "the policy has no `@id`", 'name it: `@id("what-it-says")`')
    elif not _ID.fullmatch(policy.id):
        yield Problem(file, line, f"the id `{policy.id}` is not of letters, digits and `._/:-`", "choose a plain id")
    for name in policy.parsed.annotations:
        if name not in ANNOTATIONS:
            yield Problem(file, line, f"unknown annotation `@{name}`", f"one of {', '.join(sorted(ANNOTATIONS))}")
    for name in filter(None, (part.strip() for part in policy.evidence.split(","))):
        if cedar_name(name) not in evidence:
            yield Problem(file, line, f"`@evidence` names no registered source: `{name}`", "register it under `evidence:`")
    if any(_looks_into(clause.expr) for clause in policy.parsed.clauses):
        yield Problem(file, line, "an entity literal is looked into", "compare with it: `resource == …`, `resource in …`")
    for uid in pst.entity_uids(policy.parsed):
        if str(uid.type) == "Agent" and uid.id not in agents:
            yield Problem(file, line, f"unknown agent `{uid.id}`", f"one of {', '.join(sorted(agents))}")


def _looks_into(expr: pst.Expr) -> bool:
    """Whether an entity literal stands where its own attributes or parents would be asked for."""
    match expr:
        case pst.EntityLit():
            return True
        case pst.BinaryOp("eq" | "not_eq", left, right):
            return any(_looks_into(side) for side in (left, right) if not isinstance(side, pst.EntityLit))
        case pst.BinaryOp("in", left, right):
            return _looks_into(left) or _looks_into_set(right)
        case pst.BinaryOp("contains" | "contains_all" | "contains_any", left, right):
            return _looks_into_set(left) or _looks_into_set(right)
        case pst.BinaryOp(_, left, right):
            return _looks_into(left) or _looks_into(right)
        case pst.UnaryOp(_, inner) | pst.GetAttr(inner, _) | pst.HasAttr(inner, _) | pst.Like(inner, _):
            return _looks_into(inner)
        case pst.Is(inner, _, within):
            return _looks_into(inner) or (within is not None and _looks_into_set(within))
        case pst.IfThenElse(one, two, three):
            return _looks_into(one) or _looks_into(two) or _looks_into(three)
        case pst.Set(elements):
            return any(_looks_into(element) for element in elements)
        case pst.Record(fields):
            return any(_looks_into(field) for field in fields.values())
        case _:
            return False


def _looks_into_set(expr: pst.Expr) -> bool:
    match expr:
        case pst.EntityLit():
            return False
        case pst.Set(elements):
            return any(_looks_into(element) for element in elements if not isinstance(element, pst.EntityLit))
        case _:
            return _looks_into(expr)


def _warn(policies: Iterable[Policy], exists: Exists | None) -> Iterator[Problem]:
    if exists is None:
        return
    for policy in policies:
        for uid in sorted(pst.entity_uids(policy.parsed), key=str):
            if str(uid.type) in _WARNED and not exists(str(uid.type), uid.id):
                yield Problem(policy.file, policy.line, f"`{uid}` names nothing that is there", "check its spelling")


def _evidence_names(schema: SchemaJson) -> frozenset[str]:
    for action in schema[""]["actions"].values():
        context = action["appliesTo"]["context"]["attributes"]
        return frozenset(context["evidence"]["attributes"])
    return frozenset()


def _line(text: str) -> str:
    return " ".join(text.split())
