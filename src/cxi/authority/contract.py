"""What is each field of a tool, and where may its values come from?

- A contract names *every* field; what it does not name is refused (`FIELD_UNCLASSIFIED`).
- A field path is dotted; a list's items are `[]`: `path`, `files[]`, `edits[].oldText`. A value that an adapter reads out of
  a payload is named behind it: `query.rows`.
- A contract is data: it is read by `cxi.config`, checked at load, and frozen.
- `anyone` is for tools that are no sink only; a bounded choice names the policy that bounds it. `cxi check` counts both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from cxi.canonical import JsonValue
from cxi.manifest import Role


class Origin(StrEnum):
    """Where a protected value may come from."""

    REQUEST = "request"  # exactly one candidate in the trusted request
    ANY_OF_REQUEST = "any-of-request"  # any candidate that the request names in an affirmed clause
    STATE = "state"  # trusted state: the session's own constants (root, repository) and registries
    RELEASE = "release"
    APPROVAL = "approval"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Choice:
    """A bounded choice: any member of the set that these policies permit.

    Attributes:
        policies: `@id`s of permits; one of them must itself permit every atom whose target is the value.
    """

    policies: tuple[str, ...]


AllowedOrigin: TypeAlias = Origin | Choice


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A value type with its parameters, `Enum {values: [a, b]}` or `RepoPath {final: keep}`."""

    name: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class FieldContract:
    """One field.

    Attributes:
        path: The contract's name of the field.
        role: Its role.
        types: For a protected or fixed field: the alternatives; exactly one must read the value. Empty for payload and opaque.
        origins: For a protected field: where it may come from, at least one.
        together: The name of the tuple that it belongs to, or empty.
        after: In the request the value follows this word (`to`), or empty.
        required: Whether its absence is refused (inside an item, within each item).
        nullable: Whether JSON null may stand for absence.
        fixed: For a fixed field: the constant, sent always. `${root}` is the root's path.
        grammar: For an opaque field: `plain`, `markdown`, `html`, …
        narrows: Whether giving it makes a read partial (a limit, a filter, a cursor), so that nothing is released from it.
        max_items: For list fields, how many items at most; 0 means 1,000.
    """

    path: str
    role: Role
    types: tuple[TypeRef, ...] = ()
    origins: tuple[AllowedOrigin, ...] = ()
    together: str = ""
    after: str = ""
    required: bool = True
    nullable: bool = False
    fixed: JsonValue = None
    grammar: str = ""
    narrows: bool = False
    max_items: int = 0


@dataclass(frozen=True, slots=True)
class NoEffect:
    """`effect: none`: the tool is no sink; it needs the call's permit only."""


@dataclass(frozen=True, slots=True)
class CallEffect:
    """`effect: call`: the vocabulary has no kind for what it does. Counted by `cxi check`. Assurance `declared`."""


@dataclass(frozen=True, slots=True)
class ListedAtom:
    """`fs.delete(source)`: one atom for each value of a field.

    Attributes:
        kind: The atom kind.
        field: The contract's name of the field whose canonical value is the target.
    """

    kind: str
    field: str


@dataclass(frozen=True, slots=True)
class ListedEffect:
    """`effect: [fs.delete(source), fs.create(destination)]`."""

    atoms: tuple[ListedAtom, ...]


@dataclass(frozen=True, slots=True)
class AdapterEffect:
    """`effect: {adapter: file, path: path, content: content}`.

    Attributes:
        adapter: A key of `effects.ADAPTERS`.
        inputs: The adapter's own names to field names, or to literals written `=text`.
    """

    adapter: str
    inputs: Mapping[str, str]


EffectContract: TypeAlias = NoEffect | CallEffect | ListedEffect | AdapterEffect


class Writer(StrEnum):
    """Who writes a part of a tool's result."""

    PLATFORM = "platform"
    OUTSIDER = "outsider"


@dataclass(frozen=True, slots=True)
class ResultContract:
    """Who writes what of a result.

    Attributes:
        positions: JSONPath (RFC 9535) of the result's JSON, or `content` for all of it, to its writer. What no position
            names was written by an outsider.
        complete: JSONPath to a boolean that the platform writes and that is true where the read is whole; empty where the
            result is whole whenever no `narrows` field was given.
    """

    positions: tuple[tuple[str, Writer], ...] = ()
    complete: str = ""


class Repeat(StrEnum):
    """What a second event with the same event key gets."""

    REFUSE = "refuse"
    REPLAY = "replay"
    ALLOW = "allow"


# Kinds that change nothing and leave the host nowhere: a call whose effect has only these is no sink.
READS = frozenset({"fs.read", "fs.read_any", "db.select"})


@dataclass(frozen=True, slots=True)
class ToolContract:
    """Everything that CXI knows of a tool.

    Attributes:
        server: The configured server.
        tool: The tool's own name.
        fields: By the contract's name.
        effect: What it does.
        sink: Whether it can have a side effect, or sends a chosen string off the host.
        target: (Cedar type, id or field name) of the call's resource; the default is ("Server", server).
        result: Who writes its result.
        repeat: What a second event gets.
    """

    server: str
    tool: str
    fields: Mapping[str, FieldContract]
    effect: EffectContract
    sink: bool
    target: tuple[str, str]
    result: ResultContract = ResultContract()
    repeat: Repeat = Repeat.REFUSE

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"
