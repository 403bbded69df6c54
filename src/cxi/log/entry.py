"""What is one line of the log?

- An entry is written once, in the ledger's own transaction; its chain fields are set there.
- `hash = SHA-256(canonical({seq, previous, time_ms, kind, session, body}))`, and `previous` is the hash before it.
- Values and secrets enter as salted commitments (`cxi.log.commitment`); openings live in a store of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cxi.canonical import Digest, JsonValue, digest
from cxi.manifest import Instant


class EntryType(StrEnum):
    """What an entry tells."""

    SESSION = "session"  # opened, closed
    TASK = "task"  # started, stopped
    EPOCH = "epoch"  # a new policy epoch
    READ = "read"  # a call that is no sink
    ADMISSION = "admission"
    REFUSAL = "refusal"
    SETTLEMENT = "settlement"
    NO_OP = "no-op"
    RECORDED = "recorded"  # a recorded answer was given again
    RELEASE = "release"
    PERSON = "person"  # an act of a person: endorsement, release of an unknown outcome, revocation
    ALARM = "alarm"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry before it is chained.

    Attributes:
        kind: What it tells.
        call: The call's id, `a-19c4…`, or empty.
        session: The session's id, or empty.
        body: RFC 8785-safe JSON.
    """

    kind: EntryType
    call: str
    session: str
    body: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ChainedEntry:
    """An entry in its place.

    Attributes:
        seq: From 1, without gaps.
        previous: The hash of the entry before; `sha256:` and 64 zeros for the first.
        time: When it was written, by the writer's clock.
        entry: The entry.
    """

    seq: int
    previous: Digest
    time: Instant
    entry: LogEntry

    @property
    def hash(self) -> Digest:
        return digest(
            {
                "seq": self.seq,
                "previous": self.previous,
                "time_ms": int(self.time * 1000),
                "kind": str(self.entry.kind),
                "call": self.entry.call,
                "session": self.entry.session,
                "body": self.entry.body,
            }
        )


GENESIS: Digest = "sha256:" + "0" * 64
