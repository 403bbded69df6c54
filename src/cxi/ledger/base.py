"""Has this been used?

- States of a capability: `minted → leased → done | failed | outcome_unknown`, and `revoked`, `expired`, `released`
  (`cxi.ledger.machine` draws them).
- INVARIANT (consume-before-sink): `consume` is linearizable, and durable before it answers with a lease.
- INVARIANT (one-transaction): the lease, the draw from the grant and the log entry are one transaction.
- A settlement rides on the next commit; if a crash loses it, the outcome is `outcome_unknown`.
- INVARIANT (unknown-blocks): what is leased or unknown blocks its occurrence key, the event without its session, in every session
  of the tenant's user until it is settled or a person says how it ended: a crashed program never gets its old session back.
- `consume` compares the policy epoch's row in its own transaction: an older epoch is refused.
- A failed call certainly did not happen: its draw does not count against the grant's limit nor against a `Limit`, and its
  idempotency key may be used again for the same action. Its sequence number, nonce, capability and approval stay used.
- Counts, sums, sequences, schedules and retries are judged by `consume`, in its own transaction: nobody else can judge them.
- What can be revoked is a `Mark`; `marks_of` names every mark that stops a call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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


class MarkKind(StrEnum):
    """What can be revoked."""

    CAPABILITY = "capability"  # a capability's digest, or a delegation's revocation id
    GRANT = "grant"  # a grant's id, anywhere in the tenant
    SESSION = "session"
    TASK = "task"
    USER = "user"
    POLICY = "policy"  # a policy's @id: no effect that this policy permitted
    EPOCH = "epoch"  # the epoch's counter, as decimal digits


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that may be revoked, within a tenant.

    Attributes:
        kind: What it is.
        key: Its name.
        session: Narrows a grant to one session; empty elsewhere.
    """

    kind: MarkKind
    key: str
    session: str = ""

    def __post_init__(self) -> None:
        if not self.key or (self.session and self.kind is not MarkKind.GRANT):
            raise ValueError("a mark names something, and only a grant is narrowed to a session")

    def __str__(self) -> str:
        return f"{self.kind} `{self.key}`" + (f" of session `{self.session}`" if self.session else "")


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound that `consume` judges in its own transaction.

    Attributes:
        scope: What is counted together within the tenant, `session:s-1/fix-bug/files.write_file` or `tenant/standing/pay#amount`.
        amount: What this draw takes, not negative: 1 for a count, the items of a batch, minor units of a sum of money.
        most: The most that the scope gives within the window.
        window: Seconds; 0 means for ever.
        own: (session, grant) whose own draws count too, one each; the scope is then `scope_of` it. None where there are none.
    """

    scope: str
    amount: int
    most: int
    window: float = 0.0
    own: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError("a draw takes nothing back")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sequence: at least `times` draws of `grant` are done in a session; empty means the call's own."""

    grant: str
    times: int = 1
    session: str = ""


def scope_of(session: str, grant: str) -> str:
    """The scope of a session's grant: what those draw from to whom it was delegated."""
    return f"session:{session}/{grant}"


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
        limits: Bounds beside the grant's own count and window.
        after: What must have been done before in this session.
        not_before: The first instant at which it may be drawn; 0 means no bound.
        not_after: The first instant at which it may no longer be drawn; 0 means no bound.
        retries: How many earlier attempts of the same event key may have failed; None means no bound.
        task: The open task's name, or empty.
        delegations: The revocation ids of the delegation chain.
        lineage: (session, grant) of each delegating grant, the first giver first; revoking any of them stops this call.
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
    limits: tuple[Limit, ...] = ()
    after: tuple[Requirement, ...] = ()
    not_before: Instant = 0.0
    not_after: Instant = 0.0
    retries: int | None = None
    task: str = ""
    delegations: tuple[str, ...] = ()
    lineage: tuple[tuple[str, str], ...] = ()


def marks_of(manifest: Manifest, draw: Draw) -> tuple[Mark, ...]:
    """Every mark that would stop this call.

    A task that is started again in its session draws from `…#2`: it is another grant there, and the same one in the tenant.
    """
    principal, invocation, effect = manifest.action.principal, manifest.invocation, manifest.effect
    lineage = (*draw.lineage, (principal.session, invocation.grant))
    found = [
        *(Mark(MarkKind.CAPABILITY, key) for key in (invocation.capability, *draw.delegations)),
        *(Mark(MarkKind.GRANT, grant, session) for session, grant in lineage),
        *(Mark(MarkKind.GRANT, name) for _, grant in lineage for name in (grant, grant.partition("#")[0])),
        *(Mark(MarkKind.SESSION, session) for session, _ in lineage),
        *((Mark(MarkKind.TASK, draw.task),) if draw.task else ()),
        Mark(MarkKind.USER, principal.user),
        *(Mark(MarkKind.POLICY, policy) for policy in effect.authorized_by),
        Mark(MarkKind.EPOCH, str(effect.policy_epoch[0])),
    ]
    return tuple(dict.fromkeys(found))


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


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What the ledger itself knows of a call.

    Attributes:
        call: Its id in the log.
        session: Its session.
        user: The session's user.
        agent: The session's agent.
        grant: The grant that it was drawn from.
        state: Where it stands.
        manifest: Its manifest's digest.
        seq: The admission's place in the log.
        drawn: When it was drawn.
        settled: The settlement's place in the log; None where there is none.
        writer: The instance that admitted it.
    """

    call: str
    session: str
    user: str
    agent: str
    grant: str
    state: State
    manifest: Digest
    seq: int
    drawn: Instant
    settled: int | None
    writer: str


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a ledger holds for one tenant.

    Attributes:
        calls: How many calls stand in each state; states without one are left out.
        sessions: How many sessions were opened.
        open_sessions: How many of them are open.
        entries: How many entries the whole log has.
        revoked: How many marks are revoked.
        epoch: The epoch in force.
        bytes: What the whole ledger takes on the disk.
    """

    calls: Mapping[State, int]
    sessions: int
    open_sessions: int
    entries: int
    revoked: int
    epoch: tuple[int, Digest] | None
    bytes: int


class Ledger(Protocol):
    """The one store of what has been used. All methods raise `LedgerError` where the storage fails: the gate refuses."""

    def activate(self, tenant: str, digest: Digest, now: Instant, *, explicit: bool = False) -> tuple[int, Digest]:
        """Make these policies, contracts, declassifiers and pins the tenant's epoch.

        The counter rises exactly if the digest differs from the present epoch's. Logged as EPOCH. A ledger of several hosts does
        so only where no other gateway is at work, or a person said `explicit`; else it raises `ConfigError`.

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
        2. the session is open and bound to the manifest's principal, and the sessions of its lineage are not closed, else
           `SESSION_UNKNOWN`; none of `marks_of` is revoked, else `REVOKED`; `now` is before the deadline and `not_after`, else
           `EXPIRED`, and not before `not_before`, else `NOT_YET`;
        3. a used idempotency key: another action is `KEY_REUSE_CONFLICT`; the same action is `Recorded` where `repeat` is
           `replay` and it is done, `IN_FLIGHT` while leased, `OUTCOME_UNKNOWN` where it is unknown, else `EVENT_REPEATED`;
           a call that failed or that a person released gave its key back for the same action;
        4. an equal occurrence key, of whichever session, that is leased is `IN_FLIGHT`, unknown is `OUTCOME_UNKNOWN`;
        5. the grant's draws, and those from its `scope_of`, are under its limit in its window, else `EVENT_REPEATED` where
           this event key happened already, else `GRANT_EXHAUSTED`; each `Limit` in order has room for its amount, else
           `LIMIT_REACHED`; each `Requirement` is met, else `SEQUENCE_UNMET`; no more attempts of this event key have failed
           than `retries`, else `RETRIES_EXHAUSTED`; the manifest's sequence is the next one, and nonce and capability are new,
           else `CAPABILITY_USED`; an approval is unspent, else `CAPABILITY_USED`;
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

    def revoke(self, tenant: str, mark: Mark, *, person: str, reason: str, now: Instant) -> None:
        """No further lease that this mark stops (`marks_of`); what was launched runs to its outcome. Logged as PERSON."""
        ...

    def calls(
        self, tenant: str, *, states: Collection[State] = (), session: str = "", call: str = "", most: int = 1000
    ) -> Sequence[CallRecord]:
        """The calls of a tenant, newest first.

        Args:
            tenant: Whose.
            states: Only calls in one of these; empty means any.
            session: Only of this session; empty means any.
            call: Only the one with this id; empty means any.
            most: No more than this many.
        """
        ...

    def stats(self, tenant: str) -> Stats:
        """How much there is."""
        ...

    def vacuum(self, before: Instant, now: Instant) -> int:
        """Drop what no check needs any more: settled calls drawn before an instant whose sessions are closed.

        The log stays whole, and tells of it. What a window still counts errs on the side of counting too much.

        Returns:
            How many calls were dropped.
        """
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
