"""What reaches a ledger in an experiment? One delivery of a call, small enough to be sent to another process as JSON.

- A delivery names its event, its call and its grant; manifest, draw and log entry are built from it, and are the same wherever
  they are built.
- `place` finds the ledger that an address names: `sqlite:FILE`, or a PostgreSQL URL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Self

from cxi.canonical import Digest, JsonValue, digest
from cxi.errors import Code, Refused
from cxi.ledger.base import Draw, Lease, Ledger, Outcome, Receipt, Recorded, State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.entry import EntryType, LogEntry
from cxi.manifest import Action, Assurance, CanonicalCall, Commitment, FieldValue, Instant, Invocation, Manifest, Principal, Role
from cxi.values.base import Value

TENANT: Final = "local"
USER: Final = "ana"
AGENT: Final = "agent"
SESSION: Final = "s-1"
CREDENTIAL: Final = "request-channel"
POLICIES: Final = "policies"
LIFE: Final = 30.0  # seconds until a lease's launch deadline
TRIES: Final = 8  # another draw of the same grant may come first


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of one call.

    Attributes:
        event: What would happen; equal events have equal names.
        call: This call's id. A delivery again has another one, as from a gateway.
        grant: What it draws from.
        key: The idempotency key, or empty.
        payload: What of the action is not part of the event.
        limit: The grant's count.
        window: The grant's window, in seconds.
        repeat: `refuse`, `replay` or `allow`.
        sequence: Which draw it is; 0 for the next one.
        nonce: The nonce's seed; the call's id where empty.
        capability: The capability's seed; the call's id where empty.
        session: The session.
    """

    event: str
    call: str
    grant: str = "g"
    key: str = ""
    payload: str = "text"
    limit: int = 1_000_000_000
    window: float = 0.0
    repeat: str = "refuse"
    sequence: int = 0
    nonce: str = ""
    capability: str = ""
    session: str = SESSION

    def again(self, call: str, **changes: str | int) -> Self:
        """The same call, delivered again."""
        return replace(self, call=call, **changes)  # type: ignore[arg-type]

    def to_text(self) -> str:
        """For another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """What `to_text` wrote."""
        return cls(**value)  # type: ignore[arg-type]

    def build(self, epoch: tuple[int, Digest], sequence: int, deadline: Instant) -> tuple[Manifest, Draw, LogEntry]:
        """Manifest, draw and entry for `consume`."""
        fields = (
            FieldValue("path", "path", Role.PROTECTED, Value("RepoPath", self.event, f"/repo/{self.event}")),
            FieldValue("content", "content", Role.PAYLOAD, Value("Text", self.payload, self.payload)),
        )
        call = CanonicalCall("lab", "write", fields, {"path": f"/repo/{self.event}", "content": self.payload})
        action = Action(Principal(TENANT, USER, AGENT, self.session), digest("server"), digest("definition"), call)
        atoms = digest(["atoms", self.event])
        effect = Commitment("lab/1", digest("snapshot"), atoms, ("lab",), Assurance.DECLARED, epoch, AGENT)
        invocation = Invocation(
            self.grant,
            digest(["capability", self.capability or self.call]),
            sequence,
            digest(["nonce", self.nonce or self.call])[7:39],
            action.event_key(),
            digest(["key", self.key]) if self.key else "",
        )
        manifest = Manifest(action, (), effect, invocation)
        draw = Draw(
            call=self.call,
            limit=self.limit,
            window=self.window,
            repeat=self.repeat,
            action=action.digest,
            occurrence=action.occurrence_key(),
            deadline=deadline,
        )
        body: dict[str, JsonValue] = {"mode": "enforce", "tool": "lab.write", "grant": self.grant, "sequence": sequence}
        return manifest, draw, LogEntry(EntryType.ADMISSION, self.call, self.session, body)


def place(address: str, instance: str, now: Instant) -> Ledger:
    """The ledger at an address.

    Raises:
        LedgerError: where it cannot be opened.
    """
    if address.startswith("sqlite:"):
        return SqliteLedger(Path(address.removeprefix("sqlite:")), instance=instance, now=now)
    from cxi.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an optional part of the installation

    # No grace: a writer whose session the server has ended is gone, so that no case has to wait for a minute.
    return PostgresLedger(address, instance=instance, now=now, host="lab", grace=0.0, beat=0.5)


def prepare(ledger: Ledger, now: Instant, *sessions: str) -> None:
    """One epoch, and open sessions."""
    ledger.activate(TENANT, digest(POLICIES), now)
    for session in sessions or (SESSION,):
        ledger.open_session(TENANT, USER, AGENT, session, CREDENTIAL, now)


def consume(ledger: Ledger, delivery: Delivery, now: Instant, *, deadline: Instant = 0.0) -> Lease | Recorded | Refused:
    """Consume one delivery, with the next sequence where it names none, as the gate does."""
    answer: Lease | Recorded | Refused | None = None
    for _ in range(TRIES):
        sequence = delivery.sequence or ledger.drawn(delivery.session, delivery.grant, 0.0) + 1
        epoch = ledger.epoch(TENANT) or (1, digest(POLICIES))
        manifest, draw, entry = delivery.build(epoch, sequence, deadline or now + LIFE)
        answer = ledger.consume(manifest, draw, entry, now)
        if delivery.sequence or not (isinstance(answer, Refused) and answer.codes == (Code.CAPABILITY_USED,)):
            return answer
    if answer is None:
        raise AssertionError("unreachable: at least one draw was tried")
    return answer


def settle(ledger: Ledger, lease: Lease, state: State, now: Instant) -> Receipt:
    """Settle a lease; the answer is the call's id, so that a replay can be told from another."""
    session = lease.manifest.action.principal.session
    entry = LogEntry(EntryType.SETTLEMENT, lease.call, session, {"tool": "lab.write"})
    return ledger.settle(lease, Outcome(state, {"of": lease.call}), entry, now)


def told(answer: Lease | Recorded | Refused) -> str:
    """`lease`, `recorded`, or the code of a refusal."""
    match answer:
        case Lease():
            return "lease"
        case Recorded():
            return "recorded"
        case Refused(codes=codes):
            return codes[0]
