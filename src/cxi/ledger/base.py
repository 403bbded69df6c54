"""Has this been used?

- States of a capability: `minted → leased → done | failed | outcome_unknown`, and `revoked`, `expired`, `released`
  (`cxi.ledger.machine` draws them).
- INVARIANT (consume-before-sink): `consume` is linearizable, and durable before it answers with a lease.
- INVARIANT (one-transaction): the lease, the draw from the grant and the log entry are one transaction.
- A settlement rides on the next commit; if a crash loses it, the outcome is `outcome_unknown`.
- INVARIANT (unknown-blocks): what is leased or unknown blocks its occurrence key, the event without its session, in every session
  of the tenant's user until it is settled or a person says how it ended: a crashed program never gets its old session back.
- `consume` compares the policy epoch's row in its own transaction: an older epoch is refused.
- A failed call certainly did not happen: its draw does not count against the grant's limit, and its idempotency key may be used
  again for the same action. Its sequence number, nonce, capability and approval stay used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cxi.canonical import Digest, JsonValue
from cxi.errors import Refused
from cxi.log.entry import ChainedEntry, LogEntry
from cxi.manifest import Instant, Manifest


class State(StrEnum):
    """Where a capability stands."""

    MINTED = "minted"  # drawn by trusted code, not in the ledger yet
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"  # the effect certainly did not happen
    OUTCOME_UNKNOWN = "outcome_unknown"
    RELEASED = "released"  # never known; a person took its block away
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Draw:
    """What `consume` needs beside the manifest.

    Attributes:
        call: The call's id in the log, `a-…`.
        limit: The grant's count.
        window: The grant's window in seconds; 0 means the session.
        repeat: `refuse`, `replay` or `allow`.
        action: The action digest.
        occurrence: The event without its session (`Action.occurrence_key`): what blocks while its outcome is not known.
        deadline: The launch deadline.
        approval: Id of the approval that is spent with it, or empty.
        touches: (kind, key) of the records and paths that the effect touches, for the origin index.
        influences: Names of the sources that influenced the call, for the origin index.
    """

    call: str
    limit: int
    window: float
    repeat: str
    action: Digest
    occurrence: Digest
    deadline: Instant
    approval: str = ""
    touches: tuple[tuple[str, str], ...] = ()
    influences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """What consuming a capability yields; the only thing that a sink executor accepts. Only a ledger makes one.

    Attributes:
        manifest: What precisely is about to happen.
        manifest_digest: Its digest.
        call: The call's id in the log.
        seq: The admission's place in the log.
        deadline: The sink must be launched before this instant.
    """

    manifest: Manifest
    manifest_digest: Digest
    call: str
    seq: int
    deadline: Instant


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded answer of the same event: no second effect.

    Attributes:
        call: The id of the call that happened.
        answer: Its answer, as recorded.
    """

    call: str
    answer: JsonValue


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a launched effect ended.

    Attributes:
        state: `DONE`, `FAILED` or `OUTCOME_UNKNOWN`.
        answer: The sink's answer, to be given again on a replay; None where there is none.
        differs: What of the realized effect differs from the admitted one; empty where none was seen.
        detail: One line for the log.
    """

    state: State
    answer: JsonValue = None
    differs: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What can be shown to a third party, with the log's checkpoint.

    Attributes:
        call: The call's id.
        manifest: The manifest's digest.
        admission: The admission's seq and hash.
        settlement: The settlement's seq and hash.
        state: How it ended.
        assurance: What is known of the realized effect.
        carriage: The carriage manifest's digest, or "not claimed".
    """

    call: str
    manifest: Digest
    admission: tuple[int, Digest]
    settlement: tuple[int, Digest]
    state: State
    assurance: str
    carriage: str


class Ledger(Protocol):
    """The one store of what has been used. All methods raise `LedgerError` where the storage fails: the gate refuses."""

    def activate(self, tenant: str, digest: Digest, now: Instant) -> tuple[int, Digest]:
        """Make these policies, contracts, declassifiers and pins the tenant's epoch.

        The counter rises exactly if the digest differs from the present epoch's. Logged as EPOCH.

        Returns:
            The epoch in force.
        """
        ...

    def epoch(self, tenant: str) -> tuple[int, Digest] | None:
        """The epoch in force."""
        ...

    def open_session(self, tenant: str, user: str, agent: str, session: str, credential: str, now: Instant) -> None: ...
    def close_session(self, session: str, now: Instant) -> None: ...

    def drawn(self, session: str, grant: str, since: Instant) -> int:
        """How many draws the grant gave in this session after an instant; the next sequence is the total plus one.

        Failed draws are among them; `consume` alone judges the limit.
        """
        ...

    def recorded(self, session: str, idempotency_key: Digest) -> tuple[Digest, State, Recorded] | None:
        """(action digest, state, answer) of the latest call that used this key in this session."""
        ...

    def consume(self, manifest: Manifest, draw: Draw, entry: LogEntry, now: Instant) -> Lease | Recorded | Refused:
        """Spend one capability.

        In one durable transaction, in this order:

        1. the tenant's epoch row equals the manifest's, else `EPOCH_CHANGED`;
        2. the session is open and bound to the manifest's principal, else `SESSION_UNKNOWN`; nothing in question is revoked,
           else `REVOKED`; `now` is before the deadline, else `EXPIRED`;
        3. a used idempotency key: another action is `KEY_REUSE_CONFLICT`; the same action is `Recorded` where `repeat` is
           `replay` and it is done, `IN_FLIGHT` while leased, `OUTCOME_UNKNOWN` where it is unknown, else `EVENT_REPEATED`;
           a call that failed or that a person released gave its key back for the same action;
        4. an equal occurrence key, of whichever session, that is leased is `IN_FLIGHT`, unknown is `OUTCOME_UNKNOWN`;
        5. the grant's draws are under its limit in its window, else `EVENT_REPEATED` where this event key happened
           already, else `GRANT_EXHAUSTED`; the manifest's sequence is the next one, and nonce and capability are new, else
           `CAPABILITY_USED`; an approval is unspent, else `CAPABILITY_USED`;
        6. the capability is leased, the touches are indexed, the entry is chained, all is synced.
        """
        ...

    def settle(self, lease: Lease, outcome: Outcome, entry: LogEntry, now: Instant) -> Receipt:
        """Write how it ended, once; a second settlement raises `AuthorityError`. Not synced by itself."""
        ...

    def append(self, entry: LogEntry, now: Instant, *, durable: bool = False) -> ChainedEntry:
        """Chain an entry that spends nothing."""
        ...

    def recover(self, now: Instant) -> Sequence[str]:
        """Turn leases of writers that are gone into `outcome_unknown`; the calls' ids."""
        ...

    def release(self, call: str, person: str, reason: str, state: State, now: Instant) -> None:
        """A person says how an unknown outcome ended (`DONE` or `FAILED`), or that it no longer blocks (`RELEASED`).

        Logged as PERSON.

        Raises:
            AuthorityError: where the call is not in `outcome_unknown`, or the state is another.
        """
        ...

    def revoke(self, *, session: str = "", grant: str = "", person: str, reason: str, now: Instant) -> None:
        """No further lease in this session (and of this grant, where one is named); with no session, of this grant anywhere."""
        ...

    def touched(self, tenant: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The origin index: (kind, key) to the influences, of all that is not endorsed."""
        ...

    def touch(
        self, tenant: str, touches: Iterable[tuple[str, str]], influences: tuple[str, ...], call: str, now: Instant
    ) -> None:
        """Index what a refused or unknown call touched."""
        ...

    def endorse(self, tenant: str, kind: str, key: str, person: str, now: Instant) -> None:
        """A person vouches for a record or path; logged as PERSON."""
        ...

    def entries(self, start: int = 1) -> Iterable[ChainedEntry]:
        """The log, in order."""
        ...

    def close(self) -> None: ...
