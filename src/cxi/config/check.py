"""How much does this configuration leave to whom?

- `lint` reads a loaded configuration (whose errors ended before) against the locked tool definitions. It counts the surface and
  names what a person should look at, each with file, line and what would mend it.
- An error is a gap: something that a server offers and no contract classifies, so that every call of it would be refused.
- So is what the configuration loosens of a pack, or of what a server says of itself, unless it says `weakens: true` there.
- A warning is a concession or a doubt: a bounded choice, `effect: call`, a policy literal that names nothing, an unpinned server.
- The counts are the denominators of every claim: nothing is left out of them.

    >>> report = lint(configuration)                        # doctest: +SKIP
    >>> report.failed, report.lines()[0]                    # doctest: +SKIP
    (False, 'surface: 3 servers, 27 tools, 61 fields (14 protected, …)')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cxi.authority.contract import CallEffect, Choice, FieldContract, Origin, ToolContract
from cxi.canonical import JsonValue
from cxi.config.lock import ToolPin
from cxi.config.model import Configuration
from cxi.config.naming import route
from cxi.config.surface import reads_payload
from cxi.errors import Problem
from cxi.manifest import Role
from cxi.values.hidden import hidden

_RELOCK: Final = "a person runs `cxi lock`"


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should look at.

    Attributes:
        severity: Whether the check fails for it.
        problem: What, where, and what would mend it.
    """

    severity: Severity
    problem: Problem

    def __str__(self) -> str:
        return f"{self.severity}: {self.problem}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    Attributes:
        counts: The surface, by what is counted.
        findings: Errors first, then by file and line.
    """

    counts: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def lines(self) -> tuple[str, ...]:
        """The report, line by line, plain."""
        count = self.counts
        errors = sum(finding.severity is Severity.ERROR for finding in self.findings)
        surface = (
            "surface: {servers} servers, {tools} tools ({sinks} sinks), {methods} methods, {fields} fields",
            "fields: {protected} protected ({releasable} releasable), {payload} payload, {opaque} opaque, {fixed} fixed",
            "concessions: {choices} bounded choices, {anyone} from anyone, {effect_call} `effect: call`, {weakened} weakened",
            "declassifiers: {declassifiers}, validators: {validators}, evidence sources: {evidence}",
            "policies: {permits} permit, {forbids} forbid",
            "prose sources: {prose}, pinned and protected, carried by nothing in this version",
            "locked: {locked_tools} tools, {locked_fields} fields",
            "gaps: {unclassified} unclassified, {lacking} contracts without a tool",
        )
        return (
            *(line.format_map(count) for line in surface),
            *map(str, self.findings),
            f"{errors} errors, {len(self.findings) - errors} warnings",
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The report for programs."""
        return {
            "failed": self.failed,
            "counts": dict(self.counts),
            "findings": [
                {
                    "severity": str(finding.severity),
                    "file": finding.problem.file,
                    "line": finding.problem.line,
                    "detail": finding.problem.detail,
                    "mend": finding.problem.mend,
                }
                for finding in self.findings
            ],
        }


class _Check:
    """One run: counts and findings."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []

    def note(self, severity: Severity, place: str, detail: str, mend: str) -> None:
        file, line = self.config.place(place)
        self.findings.append(Finding(severity, Problem(file, line, detail, mend)))


def lint(config: Configuration) -> CheckReport:
    """Check a loaded configuration.

    Args:
        config: From `cxi.config.load.load`.
    """
    check = _Check(config)
    _count_surface(check)
    for contract in (*config.contracts.values(), *config.methods.values()):
        _look_at_contract(check, contract)
    _look_at_weakening(check)
    _look_at_grants(check)
    for server in config.servers:
        _look_at_server(check, server)
    _look_at_prose(check)
    check.findings.extend(Finding(Severity.WARNING, problem) for problem in config.registry.warnings)
    findings = sorted(
        dict.fromkeys(check.findings), key=lambda one: (one.severity is not Severity.ERROR, one.problem.file, one.problem.line)
    )
    return CheckReport(MappingProxyType(dict(check.counts)), tuple(findings))


def _count_surface(check: _Check) -> None:
    config, counts = check.config, check.counts
    contracts = (*config.contracts.values(), *config.methods.values())
    fields = [field for contract in contracts for field in contract.fields.values()]
    effects = [policy.effect for policy in config.registry.policies.values()]
    counts.update(
        {
            "servers": len(config.servers),
            "tools": len(config.contracts),
            "methods": len(config.methods),
            "sinks": sum(contract.sink for contract in contracts),
            "fields": len(fields),
            **{str(role): sum(field.role is role for field in fields) for role in Role},
            "releasable": sum(Origin.RELEASE in field.origins for field in fields),
            "choices": sum(isinstance(origin, Choice) for field in fields for origin in field.origins),
            "anyone": sum(Origin.ANYONE in field.origins for field in fields),
            "effect_call": sum(isinstance(contract.effect, CallEffect) for contract in contracts),
            "declassifiers": len(config.declassifiers),
            "validators": len({name for item in config.declassifiers for name in item.validate}),
            "evidence": len(config.evidence),
            "permits": effects.count("permit"),
            "forbids": effects.count("forbid"),
            "prose": len(config.prose),
            "tasks": len(config.tasks),
            "weakened": 0,
            "unclassified": 0,
            "lacking": 0,
            "locked_tools": 0,
            "locked_fields": 0,
        }
    )


def _look_at_weakening(check: _Check) -> None:
    for name, weakened in check.config.weakened.items():
        for detail in weakened.details:
            _weaken(check, name, detail)


def _weaken(check: _Check, name: str, detail: str) -> None:
    weakened = check.config.weakened.get(name)
    check.counts["weakened"] += 1
    if weakened is not None and weakened.said:
        check.note(Severity.WARNING, name, detail, "restore it, unless it is meant: `weakens: true` says so")
    else:
        check.note(Severity.ERROR, name, detail, "restore it; if it is meant, write `weakens: true` on the tool")


def _look_at_hints(check: _Check, contract: ToolContract, locked: ToolPin) -> None:
    """A server's annotations are no authority, so they may only restrict: a tool that says it acts is no read."""
    hints = locked.definition.get("annotations")
    if contract.sink or not isinstance(hints, Mapping):
        return
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True:
        _weaken(check, contract.name, f"the server says that `{contract.name}` changes things; its contract says it is no sink")


def _look_at_contract(check: _Check, contract: ToolContract) -> None:
    name = contract.name
    if isinstance(contract.effect, CallEffect):
        check.note(
            Severity.WARNING,
            name,
            f"`{name}` has `effect: call`: no policy sees what it does",
            "state its atoms, if the vocabulary has them",
        )
    for path, field in contract.fields.items():
        for origin in field.origins:
            if isinstance(origin, Choice):
                policies = ", ".join(f"`{policy}`" for policy in origin.policies)
                check.note(
                    Severity.WARNING,
                    f"{name}.{path}",
                    f"untrusted text may choose `{name}.{path}` inside {policies}",
                    "keep it if any member may be chosen; else remove the choice",
                )
        # A payload is judged by its effect alone, so one that the effect does not read is not judged at all.
        unread = contract.sink and field.role is Role.PAYLOAD and not field.narrows and not reads_payload(contract, path)
        if unread and not isinstance(contract.effect, CallEffect):
            check.note(
                Severity.WARNING,
                f"{name}.{path}",
                f"no effect of `{name}` reads the payload `{path}`, so nothing judges it",
                "give it to the adapter, or make it protected or opaque",
            )


def _look_at_grants(check: _Check) -> None:
    config = check.config
    for task in config.tasks.values():
        for grant in task.grants:
            if not config.contracts[grant.tool].sink:
                check.note(
                    Severity.WARNING,
                    f"tasks {task.name}",
                    f"`{grant.id}` grants a tool that is no sink",
                    "remove it: such a call needs no grant",
                )


def _look_at_server(check: _Check, server: str) -> None:
    config = check.config
    pin = config.lock.servers.get(server) if config.lock is not None else None
    place = f"server {server}"
    if pin is None:
        check.note(Severity.WARNING, place, f"server `{server}` is not pinned: all of its tools are refused", _RELOCK)
        return
    if pin.identity != config.servers[server].identity:
        check.note(Severity.ERROR, place, f"the program or arguments of server `{server}` differ from its pin", _RELOCK)
    check.counts["locked_tools"] += len(pin.tools)
    _, problems = route((server, tool) for tool in pin.tools)
    for problem in problems:
        check.note(Severity.ERROR, place, problem.detail, problem.mend)
    contracts = {contract.tool: contract for contract in config.contracts.values() if contract.server == server}
    for tool, locked in pin.tools.items():
        if tool not in contracts:
            check.counts["unclassified"] += 1
            check.note(
                Severity.ERROR,
                place,
                f"no contract describes `{server}.{tool}`",
                "add it under `tools:`, or use a pack that has it",
            )
            continue
        _look_at_schema(check, contracts[tool], locked)
        _look_at_hints(check, contracts[tool], locked)
        for text in _texts(locked.definition):
            if any(found.kind != "confusable" for found in hidden(text)):
                check.note(
                    Severity.WARNING,
                    place,
                    f"the definition of `{server}.{tool}` holds hidden characters",
                    "read it with `cxi lock --diff`",
                )
                break
    for tool in contracts.keys() - pin.tools.keys():
        check.counts["lacking"] += 1
        check.note(
            Severity.WARNING,
            f"{server}.{tool}",
            f"server `{server}` has no tool `{tool}`, which its pack describes",
            "nothing, if the server is older",
        )


def _look_at_schema(check: _Check, contract: ToolContract, locked: ToolPin) -> None:
    """The properties of the tool's input schema that the contract does not name, and what it names that the schema lacks."""
    schema = locked.definition.get("inputSchema")
    if not isinstance(schema, Mapping):
        return
    offered = list(_properties(schema, schema, "", 0))
    check.counts["locked_fields"] += len(offered)
    for path in offered:
        if not any(_classifies(field, path) for field in contract.fields.values()):
            check.counts["unclassified"] += 1
            check.note(
                Severity.ERROR,
                contract.name,
                f"the field `{path}` of `{contract.name}` is unclassified",
                f"add `{path}:` with a role to its contract",
            )
    closed = schema.get("additionalProperties") is False
    top = {path.split(".")[0].removesuffix("[]") for path in offered}
    for path in contract.fields:
        if closed and path.split(".")[0].removesuffix("[]") not in top:
            check.note(
                Severity.WARNING,
                f"{contract.name}.{path}",
                f"the tool `{contract.name}` has no field `{path}`",
                "remove it, unless the server is older",
            )


def _classifies(field: FieldContract, path: str) -> bool:
    """Whether a field of the contract names the property, holds it whole, or lies below it."""
    whole = field.role in {Role.PAYLOAD, Role.OPAQUE, Role.FIXED}
    return (
        field.path == path
        or (whole and path.startswith((f"{field.path}.", f"{field.path}[]")))
        or field.path.startswith((f"{path}.", f"{path}[]"))
    )


def _properties(schema: Mapping[str, JsonValue], whole: Mapping[str, JsonValue], at: str, depth: int) -> Iterator[str]:
    """The leaves that a JSON Schema offers, by the contract's kind of path; what cannot be followed is a leaf itself."""
    if depth > 8:
        return
    schema = _follow(schema, whole)
    several = [schema.get(key) for key in ("anyOf", "oneOf", "allOf")]
    branches = [inner for listed in several if isinstance(listed, list) for inner in listed if isinstance(inner, Mapping)]
    properties = schema.get("properties")
    items = schema.get("items")
    found: list[str] = []
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            path = f"{at}.{name}" if at else name
            below = list(_properties(inner, whole, path, depth + 1)) if isinstance(inner, Mapping) else []
            found.extend(below or [path])
    if isinstance(items, Mapping) and at:
        found.extend(list(_properties(items, whole, f"{at}[]", depth + 1)) or [f"{at}[]"])
    for branch in branches:
        found.extend(_properties(branch, whole, at, depth + 1))
    yield from dict.fromkeys(found)


def _follow(schema: Mapping[str, JsonValue], whole: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """The schema that a local `$ref` names."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found: JsonValue = whole
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else schema


def _texts(value: JsonValue) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _look_at_prose(check: _Check) -> None:
    if check.config.lock is None:
        for source in check.config.prose:
            check.note(Severity.WARNING, "prose", f"the prose source `{source.file}` is not pinned", _RELOCK)
