"""What can a policy say at all?

- The schema is made, never written: one action an atom kind, one action a tool, on the contract's target type.
- `context` is {field, evidence, approval, task, effect}, and the five are disjoint: a field cannot pass for evidence.
- A name that two things would share once it is a Cedar identifier is a start-up error, never a silent merge.

    >>> surface = ToolSurface("files.write_file", "Server", {"path": STRING})
    >>> sorted(make_schema(["maintainer"], [surface], [], [])[""])
    ['actions', 'entityTypes']
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from cedarpy import Schema

from cxi.errors import ConfigError, Problem
from cxi.policy.vocabulary import BOOL, ENTITIES, KINDS, LONG, STRING, STRINGS, CedarType, call_action, cedar_name, record

_Item = TypeVar("_Item")

SchemaJson: TypeAlias = dict[str, Any]  # Cedar's JSON schema format, as `cedarpy` takes it

# What every evidence record holds beside what its source adds (design, section 3).
EVIDENCE: Final[Mapping[str, CedarType]] = {
    "result": STRING,
    "issuer": STRING,
    "subject": STRING,
    "revision": STRING,
    "time": LONG,
    "expires": LONG,
}


@dataclass(frozen=True, slots=True)
class ToolSurface:
    """What policies see of a tool.

    Attributes:
        name: `files.write_file`.
        target_type: The Cedar type of the call's resource.
        fields: Its typed protected fields, by the contract's name (`path`, `edits[].oldText`, `query.rows`).
    """

    name: str
    target_type: str
    fields: Mapping[str, CedarType]


@dataclass(frozen=True, slots=True)
class EvidenceSurface:
    """What policies see of an evidence source.

    Attributes:
        name: `test-run`; in Cedar `context.evidence.test_run`.
        attributes: What its record holds beside `EVIDENCE`, or in place of one of its attributes.
    """

    name: str
    attributes: Mapping[str, CedarType]


def make_schema(
    agents: Iterable[str], tools: Sequence[ToolSurface], evidence: Sequence[EvidenceSurface], tasks: Iterable[str]
) -> SchemaJson:
    """The strict schema of the shipped atoms and the contracts' tools, in Cedar's JSON format.

    Args:
        agents: Every agent of the configuration; `Agent` is enumerated, so another one is an error.
        tools: One a contract.
        evidence: One a registered source.
        tasks: The names of the configured tasks; `context.task.name` is one of them, or empty.

    Raises:
        ConfigError: no agent; an unknown target type; two names that are one in Cedar.
    """
    problems: list[Problem] = []
    enumerated = sorted(set(agents))
    if not enumerated:
        problems.append(Problem("configuration", 0, "no agent is configured", "name one: `agent: maintainer`"))
    records = _named("evidence source", ((item.name, item) for item in evidence), problems)
    sources = record({name: record({**EVIDENCE, **_safe(item, problems)}).optional for name, item in records.items()})
    del tasks  # a task's name is a string to Cedar: one that is removed must not make an old policy an error
    shared = {
        "evidence": sources,
        "approval": record({"given": BOOL}),
        "task": record({"name": STRING, "open": BOOL}),
    }
    actions: dict[str, Any] = {}
    for kind in KINDS.values():
        actions[kind.name] = _action(kind.resource, {**shared, "field": record({}), "effect": record(kind.effect)})
    call_effect = record({"kinds": STRINGS.optional, "assurance": STRING.optional})
    for tool in tools:
        if tool.target_type not in ENTITIES:
            problems.append(Problem(tool.name, 0, f"unknown target type `{tool.target_type}`", f"one of {', '.join(ENTITIES)}"))
            continue
        if call_action(tool.name) in actions:
            problems.append(Problem(tool.name, 0, "the tool is there twice", "keep one contract for it"))
            continue
        fields = _named(f"field of `{tool.name}`", tool.fields.items(), problems)
        actions[call_action(tool.name)] = _action(tool.target_type, {**shared, "field": record(fields), "effect": call_effect})
    if problems:
        raise ConfigError(*problems)
    return {"": {"entityTypes": _entity_types(enumerated), "actions": actions}}


def render(schema: SchemaJson, *, human: bool = True) -> str:
    """The schema for an editor: Cedar's own syntax, or JSON.

    Raises:
        ConfigError: if it is no valid Cedar schema.
    """
    return str(parse(schema)) if human else json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False)


def parse(schema: SchemaJson) -> Schema:
    """The schema as Cedar's handle, parsed once and reused.

    Raises:
        ConfigError: if it is no valid Cedar schema.
    """
    try:
        return _parse(json.dumps(schema))
    except ValueError as error:
        raise ConfigError(Problem("configuration", 0, f"the generated policy schema is not valid: {error}")) from error


@lru_cache(maxsize=8)
def _parse(text: str) -> Schema:
    return Schema.from_json_str(text)


def narrow(schema: SchemaJson, action: str) -> SchemaJson:
    """The schema with one action only: what one request is checked against, at a cost that other tools do not raise."""
    body = schema[""]
    return {"": {"entityTypes": body["entityTypes"], "actions": {action: body["actions"][action]}}}


def _entity_types(agents: list[str]) -> dict[str, Any]:
    types: dict[str, Any] = {"Agent": {"enum": agents}}
    for name, kind in ENTITIES.items():
        types[name] = {"memberOfTypes": list(kind.parents), "shape": record(kind.attributes).to_json()}
    return types


def _action(resource: str, context: Mapping[str, CedarType]) -> dict[str, Any]:
    return {"appliesTo": {"principalTypes": ["Agent"], "resourceTypes": [resource], "context": record(context).to_json()}}


def _safe(item: EvidenceSurface, problems: list[Problem]) -> dict[str, CedarType]:
    return _named(f"attribute of evidence `{item.name}`", item.attributes.items(), problems)


def _named(what: str, items: Iterable[tuple[str, _Item]], problems: list[Problem]) -> dict[str, _Item]:
    found: dict[str, _Item] = {}
    spelled: dict[str, str] = {}
    for name, item in items:
        safe = cedar_name(name)
        if safe in found:
            detail = f"{what}: `{spelled[safe]}` and `{name}` are both `{safe}` in Cedar"
            problems.append(Problem("configuration", 0, detail, "rename one"))
        found[safe], spelled[safe] = item, name
    return found
