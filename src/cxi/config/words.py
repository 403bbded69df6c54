"""Which names may a contract use, and what does a value in the configuration mean?

- The names are those of the rooms below: value types, adapters with their inputs and reads, atom kinds, Cedar types, validators.
  Nothing is listed twice, so nothing here can go stale.
- A value that the operator writes (`where: {path: [src/a.py]}`) is read by the field's own type against the real root.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cxi.authority.contract import FieldContract, TypeRef
from cxi.authority.declassifier import VALIDATORS
from cxi.canonical import JsonValue, canonicalize
from cxi.config.contract import Known
from cxi.config.field import Types
from cxi.config.task import ReadValue
from cxi.effects import ADAPTERS
from cxi.errors import Code, Refused
from cxi.policy.vocabulary import ENTITIES, KINDS
from cxi.sinks.disk import DiskWorld, case_rule
from cxi.values import TYPES, value_type
from cxi.values.base import Root
from cxi.values.parameter import BadParameter

# The ops of each adapter that change nothing. A mistake here is found at the call: the gate refuses any other atom of a tool that
# says it is no sink.
READ_OPS: Final = MappingProxyType(
    {
        "file": frozenset({"read", "list", "tree", "search"}),
        "git": frozenset({"status", "diff_unstaged", "diff_staged", "diff", "log", "show", "branch"}),
        "shell": frozenset[str](),  # a text may do anything
    }
)
LONG_TYPES: Final = frozenset({"Integer"})  # types whose canonical form is an integer


def known_words() -> Known:
    """Everything that contracts may name."""
    return Known(
        types=Types(frozenset(TYPES), _doubt_type),
        adapters=MappingProxyType({kind: adapter.inputs for kind, adapter in ADAPTERS.items()}),
        reads=READ_OPS,
        kinds=MappingProxyType({name: kind.resource for name, kind in KINDS.items() if not kind.exact}),
        targets=frozenset(ENTITIES),
    )


def validators() -> Collection[str]:
    """The names of the validators that a declassifier may ask for."""
    return frozenset(VALIDATORS)


def _doubt_type(ref: TypeRef) -> tuple[str, str] | None:
    try:
        value_type(ref.name, ref.parameters)
    except BadParameter as error:
        return error.detail, error.mend
    return None


def read_value(root: Path) -> ReadValue:
    """A reader of single values against the real root."""
    case_sensitive, normalizes = case_rule(str(root))
    where = Root(str(root), DiskWorld(), case_sensitive, normalizes)

    def read(field: FieldContract, raw: JsonValue) -> JsonValue | Refused:
        """The canonical form that every type which reads the value gives it."""
        refused: list[Refused] = []
        found: list[JsonValue] = []
        for ref in field.types:
            try:
                value = value_type(ref.name, ref.parameters).parse(raw, where)
            except BadParameter as error:
                value = Refused.of(Code.FIELD_TYPE, error.detail, needs=error.mend)
            if isinstance(value, Refused):
                refused.append(value)
            elif canonicalize(value.canonical) not in map(canonicalize, found):
                found.append(value.canonical)
        if len(found) == 1:
            return found[0]
        if found:
            return Refused.of(Code.FIELD_TYPE, "several types read the value as different things")
        return refused[0] if refused else Refused.of(Code.FIELD_TYPE, "the field has no type")

    return read
