"""What precisely is about to happen?

- `CanonicalCall` is the call with every field read by its type: what is asked. Its action digest holds no nonce, no sequence,
  no capability and no carriage.
- `Manifest` is the action and everything that authorizes it: evidence, effect commitment, capability, nonce, sequence,
  policy epoch, carriage. Its digest names what is about to happen, once.
- INVARIANT (worked-out-once): digests are kept, as what they are of never changes in place.
- What goes to the server is `CanonicalCall.arguments`, written anew from canonical values, never the bytes received.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from cxi.canonical import Digest, JsonValue, canonicalize, digest, digest_bytes
from cxi.values.base import Value

Instant: TypeAlias = float  # seconds since the epoch, UTC
Nonce: TypeAlias = str  # 32 hex digits


class Role(StrEnum):
    """What a field is to the gate."""

    PROTECTED = "protected"
    PAYLOAD = "payload"  # judged by its effect alone
    OPAQUE = "opaque"  # untrusted text with no authority, in a named grammar
    FIXED = "fixed"  # a constant


class Regime(StrEnum):
    """How strong the evidence for a field is (design, section 5)."""

    RESOLVED = "resolved"
    CONSTRUCTED = "constructed"
    PROJECTED = "projected"


class Assurance(StrEnum):
    """What is known of the effect that really happens (design, section 5)."""

    ATOMIC = "atomic"
    CHECKED = "checked"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. All four are bound to the session by the host."""

    tenant: str
    user: str
    agent: str
    session: str


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One leaf of a call.

    Attributes:
        path: The concrete place, `edits[0].oldText`.
        contract: The contract's name for it, `edits[].oldText`.
        role: Its role.
        value: Its canonical value; for payload and opaque fields a `Text` or `Json` value whose canonical form is the exact JSON.
    """

    path: str
    contract: str
    role: Role
    value: Value
    _digest: Digest = field(default="", init=False, repr=False, compare=False)

    @property
    def digest(self) -> Digest:
        """Digest of the value, floats allowed: how a payload stands in an action."""
        if not self._digest:
            object.__setattr__(self, "_digest", digest(self.value.canonical, floats=True))
        return self._digest


@dataclass(frozen=True, slots=True)
class CanonicalCall:
    """A call, read whole.

    Attributes:
        server: The server's configured name, `files`.
        tool: The tool's own name at its server, `write_file`.
        fields: Every leaf, in the order of their paths; fixed constants that the agent left out are among them.
        arguments: The object that the server is sent.
    """

    server: str
    tool: str
    fields: tuple[FieldValue, ...]
    arguments: Mapping[str, JsonValue]

    @property
    def name(self) -> str:
        """The tool as contracts and policies name it, `files.write_file`."""
        return f"{self.server}.{self.tool}"

    def at(self, contract: str) -> tuple[FieldValue, ...]:
        """All leaves that the contract names `contract`; a list field has one an item."""
        return tuple(leaf for leaf in self.fields if leaf.contract == contract)

    def value(self, contract: str) -> Value | None:
        """The one leaf of a field that is no list, or None where it is absent."""
        found = self.at(contract)
        return found[0].value if found else None


@dataclass(frozen=True, slots=True)
class Action:
    """What is asked (the vocabulary's action).

    Attributes:
        principal: Who acts; the session is not part of the digest.
        server_identity: Digest of the pinned program and arguments, or URL.
        tool_definition: Digest of the pinned definition.
        call: The call.
        derived: Protected values that the adapter read out of a payload, by the contract's name (`query.rows`).
    """

    principal: Principal
    server_identity: Digest
    tool_definition: Digest
    call: CanonicalCall
    derived: tuple[FieldValue, ...] = ()
    _canonical: bytes = field(default=b"", init=False, repr=False, compare=False)
    _digest: Digest = field(default="", init=False, repr=False, compare=False)

    def to_json(self) -> dict[str, JsonValue]:
        """The canonical JSON whose digest is the action digest."""
        leaves = (*self.call.fields, *self.derived)
        return {
            "tenant": self.principal.tenant,
            "user": self.principal.user,
            "agent": self.principal.agent,
            "server": self.server_identity,
            "tool": self.call.name,
            "tool_definition": self.tool_definition,
            "fields": {
                leaf.path: {"type": leaf.value.type, "value": leaf.value.canonical}
                for leaf in leaves
                if leaf.role in (Role.PROTECTED, Role.FIXED)
            },
            "payload": {leaf.path: leaf.digest for leaf in leaves if leaf.role in (Role.PAYLOAD, Role.OPAQUE)},
        }

    @property
    def canonical(self) -> bytes:
        """The canonical bytes of `to_json`."""
        if not self._canonical:
            object.__setattr__(self, "_canonical", canonicalize(self.to_json()))
        return self._canonical

    @property
    def digest(self) -> Digest:
        if not self._digest:
            object.__setattr__(self, "_digest", digest_bytes(self.canonical))
        return self._digest

    def event_key(self) -> Digest:
        """When two calls are the same event: (session, user, tool, canonical protected fields)."""
        return digest({**self._occurrence(), "session": self.principal.session})

    def occurrence_key(self) -> Digest:
        """When two calls would happen to the same things in the world, whichever session asks: the event without its session.

        A session ends with its process; what it left unknown does not.
        """
        return digest(self._occurrence())

    def _occurrence(self) -> dict[str, JsonValue]:
        return {
            "tenant": self.principal.tenant,
            "user": self.principal.user,
            "tool": self.call.name,
            "fields": {
                leaf.path: {"type": leaf.value.type, "value": leaf.value.canonical}
                for leaf in (*self.call.fields, *self.derived)
                if leaf.role is Role.PROTECTED
            },
        }


@dataclass(frozen=True, slots=True)
class FieldEvidence:
    """Why a protected field has authority.

    Attributes:
        path: The concrete field.
        regime: How strong the evidence is.
        kind: `request`, `state`, `release`, `approval`, `constant`, `choice` or `anyone`.
        reference: The clause, record, release, approval or policy that gave it.
    """

    path: str
    regime: Regime
    kind: str
    reference: str

    def to_json(self) -> dict[str, JsonValue]:
        return {"regime": str(self.regime), self.kind: self.reference}


@dataclass(frozen=True, slots=True)
class Commitment:
    """The effect commitment.

    Attributes:
        adapter: Adapter and version, `file/1`.
        snapshot: Digest of the read set.
        atoms: Digest of the atoms.
        authorized_by: Ids of the policies that permit the atoms and the call, sorted.
        assurance: What is known of the realized effect.
        policy_epoch: (counter, digest).
        principal: The agent.
    """

    adapter: str
    snapshot: Digest
    atoms: Digest
    authorized_by: tuple[str, ...]
    assurance: Assurance
    policy_epoch: tuple[int, Digest]
    principal: str

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "adapter": self.adapter,
            "snapshot": self.snapshot,
            "atoms": self.atoms,
            "authorized_by": list(self.authorized_by),
            "assurance": str(self.assurance),
        }

    @property
    def digest(self) -> Digest:
        """Digest of (atoms, snapshot, adapter and version, policy epoch, principal)."""
        return digest(
            {
                "atoms": self.atoms,
                "snapshot": self.snapshot,
                "adapter": self.adapter,
                "policy_epoch": list(self.policy_epoch),
                "principal": self.principal,
            }
        )


@dataclass(frozen=True, slots=True)
class Invocation:
    """The capability's part of a manifest.

    Attributes:
        grant: The grant that it was drawn from, `fix-bug/files.write_file`.
        capability: Digest of the capability.
        sequence: Which draw of the grant in this session, from 1.
        nonce: Random, once.
        event_key: When two calls are the same event.
        idempotency_key: The key's digest, or empty where the caller gave none.
    """

    grant: str
    capability: Digest
    sequence: int
    nonce: Nonce
    event_key: Digest
    idempotency_key: Digest = ""

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "grant": self.grant,
            "capability": self.capability,
            "sequence": self.sequence,
            "nonce": self.nonce,
            "event_key": self.event_key,
            "idempotency_key": self.idempotency_key or None,
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """The action manifest: the one thing that all three authorities bind to.

    Attributes:
        action: What is asked.
        evidence: Why each protected field has authority.
        effect: The effect commitment.
        invocation: The event.
        carriage: Digest of the carriage manifest, or None where no proxy is in place ("not claimed").
    """

    action: Action
    evidence: tuple[FieldEvidence, ...]
    effect: Commitment
    invocation: Invocation
    carriage: Digest | None = None
    version: int = field(default=1)
    _canonical: bytes = field(default=b"", init=False, repr=False, compare=False)
    _digest: Digest = field(default="", init=False, repr=False, compare=False)

    def to_json(self) -> dict[str, JsonValue]:
        return {**self._members(), "action": self.action.to_json()}

    def _members(self) -> dict[str, JsonValue]:
        return {
            "v": self.version,
            "session": self.action.principal.session,
            "evidence": {item.path: item.to_json() for item in self.evidence},
            "effect": self.effect.to_json(),
            "invocation": self.invocation.to_json(),
            "policy_epoch": list(self.effect.policy_epoch),
            "carriage": self.carriage,
        }

    @property
    def canonical(self) -> bytes:
        """The canonical bytes of `to_json`; those of the action, whose key is the first, are known already."""
        if not self._canonical:
            rest = canonicalize(self._members())
            object.__setattr__(self, "_canonical", b'{"action":%b,%b' % (self.action.canonical, rest[1:]))
        return self._canonical

    @property
    def digest(self) -> Digest:
        if not self._digest:
            object.__setattr__(self, "_digest", digest_bytes(self.canonical))
        return self._digest
