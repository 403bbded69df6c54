"""The protocol of an effect adapter: what would this call really do?

- `plan(call, snapshot)` is pure: an adapter learns of the world through the snapshot alone, and every read enters the read set.
- What an adapter cannot read whole, it refuses; it never guesses. An effect is complete: every atom that the sink would apply.
- Atom kinds and targets are those of `docs/effects.md`; their Cedar types are in `cxi.policy.vocabulary`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cxi.canonical import Digest, JsonValue, canonicalize, digest
from cxi.errors import Refused
from cxi.manifest import Assurance, CanonicalCall, FieldValue
from cxi.values.base import Entry, Root, View


@dataclass(frozen=True, slots=True)
class Atom:
    """One indivisible thing that a call does.

    Attributes:
        kind: The Cedar action, `fs.write`.
        target: Canonical: relative to the root when inside it, absolute when outside.
        attributes: What else is known (`before`, `after`, `to`, `renamed_from`, `op`, `argv`, …), RFC 8785-safe.
        pattern: Whether the target is a glob; in policy a pattern is its own kind.
        field: The concrete field (`path`, `files[0]`) whose value the target is, or empty where it is computed.
    """

    kind: str
    target: str
    attributes: Mapping[str, JsonValue]
    pattern: bool = False
    field: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        return {"kind": self.kind, "target": self.target, **({"pattern": True} if self.pattern else {}), **self.attributes}


@dataclass(frozen=True, slots=True)
class Effect:
    """Everything that a call would do under a snapshot.

    Attributes:
        adapter: Adapter and version, `file/1`.
        atoms: All atoms; empty means a no-op.
        assurance: What can be known of the realized effect.
        derived: Values that the adapter read out of payloads (`query.rows`), for the field step.
    """

    adapter: str
    atoms: tuple[Atom, ...]
    assurance: Assurance
    derived: tuple[FieldValue, ...] = ()

    @property
    def digest(self) -> Digest:
        """Digest of the atoms, in canonical order."""
        return digest(sorted((atom.to_json() for atom in self.atoms), key=canonicalize))


class World(View, Protocol):
    """Everything that the edge can answer about the present state. Each method is one question of a read set."""

    def entry(self, path: str) -> Entry:
        """See `View.entry`."""
        ...

    def names(self, path: str) -> tuple[str, ...] | None:
        """See `View.names`."""
        ...

    def content(self, path: str) -> bytes | None:
        """The bytes of a regular file, not through a link; None where it cannot be read or is over 64 MiB."""
        ...

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """The answer to one of the named read-only questions of `cxi.effects.git.QUESTIONS`, or None where git refuses."""
        ...


class Holding(Protocol):
    """A world that can read what several questions have in common once, for those of one plan or of one comparison."""

    def hold(self) -> World: ...


class Snapshot(Protocol):
    """A world that remembers what was asked of it. `root.view` is this same snapshot."""

    @property
    def root(self) -> Root: ...

    def entry(self, path: str) -> Entry: ...
    def names(self, path: str) -> tuple[str, ...] | None: ...
    def content(self, path: str) -> bytes | None: ...
    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None: ...

    @property
    def reads(self) -> Mapping[tuple[str, ...], Digest]:
        """The read set so far: (question, argument, …) to the digest of the answer."""
        ...


class Adapter(Protocol):
    """How one payload language or tool family is read. One file each, one line in `effects.ADAPTERS`."""

    @property
    def kind(self) -> str:
        """The name that contracts use, `file`."""
        ...

    @property
    def version(self) -> int: ...

    @property
    def inputs(self) -> frozenset[str]:
        """The names that a contract must or may map to its fields (`path`, `content`); checked at load."""
        ...

    def plan(self, call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> Effect | Refused:
        """What the call would do.

        Args:
            call: The call, read whole.
            inputs: From the adapter's own names to the contract's field names, and to literals written `=text`.
            snapshot: The world, through which all is read.
        """
        ...
