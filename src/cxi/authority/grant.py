"""Which right existed before anything was proposed, and which one-time capability is drawn from it?

- A grant comes from the task that the person chose, a standing rule or an approval; never because a call was proposed.
- A capability is drawn from one grant, for one action digest and one effect commitment; its digest names it in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cxi.canonical import Digest, JsonValue, digest
from cxi.manifest import Instant, Nonce


@dataclass(frozen=True, slots=True)
class Grant:
    """A right to call a tool.

    Attributes:
        id: `fix-bug/files.write_file`.
        tool: The tool's name.
        count: How many events at most in a session.
        window: Seconds over which `count` is counted; 0 means the whole session.
        constraints: Contract field name to the canonical values that it may have; empty means any that has authority.
        expires: After this instant it grants nothing; 0 means with its session.
    """

    id: str
    tool: str
    count: int
    window: float = 0.0
    constraints: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=lambda: MappingProxyType({}))
    expires: Instant = 0.0


@dataclass(frozen=True, slots=True)
class Capability:
    """A one-time right, drawn by trusted code.

    Attributes:
        grant: The grant's id.
        session: Where it may be used.
        action: The action digest.
        effect: The effect commitment's digest.
        sequence: Which draw of the grant, from 1.
        nonce: Random.
        expires: The launch deadline.
    """

    grant: str
    session: str
    action: Digest
    effect: Digest
    sequence: int
    nonce: Nonce
    expires: Instant

    @property
    def digest(self) -> Digest:
        return digest(
            {
                "grant": self.grant,
                "session": self.session,
                "action": self.action,
                "effect": self.effect,
                "sequence": self.sequence,
                "nonce": self.nonce,
                "expires": int(self.expires * 1000),
            }
        )


def mint(
    grant: Grant, *, session: str, action: Digest, effect: Digest, sequence: int, nonce: Nonce, expires: Instant
) -> Capability:
    """Draw the `sequence`-th capability of a grant for exactly one action and effect."""
    deadline = min(expires, grant.expires) if grant.expires else expires
    return Capability(grant.id, session, action, effect, sequence, nonce, deadline)
