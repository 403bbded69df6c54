"""What do policies and digests see of what the operator wrote?

- A tool's surface is its typed protected fields: one text is a String, a list is a Set; a field whose types differ in Cedar is
  not seen by policies at all, so no policy can turn on it.
- A description is everything of a contract, grant or source that a decision could turn on, as JSON; the policy epoch digests it.

    >>> tool(contract).fields["path"]        # doctest: +SKIP
    CedarType(name='String', …)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cxi.authority.contract import AdapterEffect, FieldContract, ToolContract
from cxi.authority.evidence import EvidenceSource
from cxi.canonical import JsonValue
from cxi.config.words import LONG_TYPES
from cxi.manifest import Role
from cxi.policy.schema import EvidenceSurface, ToolSurface
from cxi.policy.vocabulary import BOOL, LONG, STRING, STRINGS, CedarType

_BOOLEANS: Final = frozenset({"Boolean"})


def tool(contract: ToolContract) -> ToolSurface:
    """What policies see of a tool, or of an outward MCP method."""
    payloads = {path for path, field in contract.fields.items() if field.role is Role.PAYLOAD}
    fields = {
        path: _cedar_type(field, derived=any(path.startswith((f"{payload}.", f"{payload}[]")) for payload in payloads))
        for path, field in contract.fields.items()
        if field.role in {Role.PROTECTED, Role.FIXED}
    }
    return ToolSurface(contract.name, contract.target[0], {path: kind for path, kind in fields.items() if kind is not None})


_ATTRIBUTES: Final = MappingProxyType({"String": STRING, "Long": LONG, "Boolean": BOOL, "Set": STRINGS})


def evidence(source: EvidenceSource) -> EvidenceSurface:
    """What policies see of an evidence source, beside what every record holds."""
    return EvidenceSurface(source.name, {name: _ATTRIBUTES[kind] for name, kind in source.attributes.items()})


def _cedar_type(field: FieldContract, *, derived: bool) -> CedarType | None:
    kinds = {_scalar(ref.name) for ref in field.types}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if "[]" in field.path or derived:  # an adapter may read many values of one name, or none
        return CedarType("Set", element=kind, required=False)
    return (
        kind
        if field.required and not field.nullable and field.role is Role.PROTECTED and "." not in field.path
        else kind.optional
    )


def _scalar(name: str) -> CedarType:
    if name in LONG_TYPES:
        return LONG
    return BOOL if name in _BOOLEANS else STRING


def exists_below(root: Path) -> Callable[[str, str], bool]:
    """Whether a `Folder` of a policy is there; of tables nothing is known here, so none is doubted."""

    def exists(kind: str, name: str) -> bool:
        return kind != "Folder" or (root / name).is_dir()

    return exists


def describe(thing: object) -> JsonValue:
    """A frozen dataclass of the configuration, as JSON that names its kinds."""
    match thing:
        case None | bool() | int() | str() if not isinstance(thing, Enum):
            return thing
        case Enum():
            return str(thing.value)
        case float():
            return str(thing)
        case Mapping():
            return {str(key): describe(value) for key, value in thing.items()}
        case tuple() | list():
            return [describe(item) for item in thing]
        case _ if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            parts: dict[str, Any] = {field.name: describe(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
            return {"kind": type(thing).__name__, **parts}
        case _:
            raise TypeError(type(thing).__name__)


def reads_payload(contract: ToolContract, path: str) -> bool:
    """Whether the tool's adapter reads this field."""
    if not isinstance(contract.effect, AdapterEffect):
        return False
    return any(
        path == field or path.startswith((f"{field}.", f"{field}[]")) or field.startswith((f"{path}.", f"{path}[]"))
        for field in contract.effect.inputs.values()
    )
