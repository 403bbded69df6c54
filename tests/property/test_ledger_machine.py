"""The real ledger beside a naive one: same answers, whatever the order of sessions, epochs, calls, crashes and persons."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cxi.canonical import digest
from cxi.errors import AuthorityError
from cxi.ledger.base import Lease, Outcome, Recorded, State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import AGENT, CREDENTIAL, TENANT, USER, Case, codes, open_ledger

SESSIONS = st.sampled_from(["s-1", "s-2"])
GRANTS = st.sampled_from(["g-1", "g-2"])
NAMES = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["", "", "k-1", "k-2"])
REPEATS = st.sampled_from(["refuse", "replay", "allow"])
LIMITS = st.integers(min_value=1, max_value=3)
WINDOWS = st.sampled_from([0.0, 0.0, 5.0])
OPEN = (State.LEASED, State.OUTCOME_UNKNOWN)


@dataclass
class Call:
    """What the reference knows of one call."""

    id: str
    session: str
    grant: str
    event: tuple[str, str]
    action: tuple[str, str]
    key: str
    drawn: float
    state: State = State.LEASED
    answer: object = None


@dataclass
class Reference:
    """The ledger as plain lists: slow, and short enough to be read against `ledger/base.py`."""

    epoch: tuple[int, str] | None = None
    sessions: dict[str, bool] = field(default_factory=dict)
    revoked: set[tuple[str, str]] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def activate(self, policies: str) -> tuple[int, str]:
        if self.epoch is None or self.epoch[1] != policies:
            self.epoch = ((self.epoch[0] if self.epoch else 0) + 1, policies)
        return self.epoch

    def drawn(self, session: str, grant: str) -> list[Call]:
        return [call for call in self.calls if (call.session, call.grant) == (session, grant)]

    def consume(
        self,
        call: Call,
        epoch: object,
        sequence: int,
        tokens: set[str],
        limit: int,
        window: float,
        repeat: str,
        deadline: float,
        now: float,
    ) -> tuple[str, ...]:
        if self.epoch != epoch:
            return ("EPOCH_CHANGED",)
        if not self.sessions.get(call.session):
            return ("SESSION_UNKNOWN",)
        if self.revoked & {(call.session, ""), (call.session, call.grant), ("", call.grant)}:
            return ("REVOKED",)
        if now >= deadline:
            return ("EXPIRED",)
        keyed = [old for old in self.calls if call.key and (old.session, old.key) == (call.session, call.key)]
        if keyed:
            old = keyed[-1]
            if old.action != call.action:
                return ("KEY_REUSE_CONFLICT",)
            if old.state is State.LEASED:
                return ("IN_FLIGHT",)
            if old.state is State.OUTCOME_UNKNOWN:
                return ("OUTCOME_UNKNOWN",)
            if old.state is State.DONE:
                return ("Recorded", old.id, repr(old.answer)) if repeat == "replay" else ("EVENT_REPEATED",)
        for old in self.calls:
            if old.event[1:] == call.event[1:] and old.state in OPEN:  # whichever session
                return ("IN_FLIGHT",) if old.state is State.LEASED else ("OUTCOME_UNKNOWN",)
        draws = self.drawn(call.session, call.grant)
        given = [old for old in draws if old.state is not State.FAILED and (not window or old.drawn > now - window)]
        if len(given) >= limit:
            happened = any(old.event == call.event and old.state is not State.FAILED for old in self.calls)
            return ("EVENT_REPEATED",) if happened else ("GRANT_EXHAUSTED",)
        if sequence != len(draws) + 1 or tokens & self.used:
            return ("CAPABILITY_USED",)
        self.used |= tokens
        self.calls.append(call)
        return ("Lease",)


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cxi-ledger-"))
        self.reference = Reference()
        self.now = 100.0
        self.lives = 0
        self.leases: dict[str, Lease] = {}
        self.old_epochs: list[tuple[int, str]] = []
        self.ledger: SqliteLedger
        self.case: Case
        self.open()

    def open(self) -> None:
        self.lives += 1
        self.ledger = open_ledger(self.folder / "state", f"life-{self.lives}", now=self.now)
        self.case = Case(self.ledger, f"c{self.lives}")

    def teardown(self) -> None:
        answer = verify(self.ledger.entries(), [], [])
        assert isinstance(answer, Verified), answer
        self.ledger.close()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        self.activate("A")
        self.open_session("s-1")

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(policies=st.sampled_from(["A", "B"]))
    def activate(self, policies: str) -> None:
        expected = self.reference.activate(digest(policies))
        assert self.ledger.activate(TENANT, digest(policies), self.now) == expected
        self.old_epochs.append(expected)

    @rule(session=SESSIONS)
    def open_session(self, session: str) -> None:
        closed = self.reference.sessions.get(session) is False
        try:
            self.ledger.open_session(TENANT, USER, AGENT, session, CREDENTIAL, self.now)
        except AuthorityError:
            assert closed
        else:
            assert not closed
            self.reference.sessions[session] = True

    @precondition(lambda self: len(self.reference.calls) > 4)
    @rule(session=SESSIONS)
    def close_session(self, session: str) -> None:
        self.ledger.close_session(session, self.now)
        if session in self.reference.sessions:
            self.reference.sessions[session] = False

    @precondition(lambda self: len(self.reference.calls) > 3)
    @rule(what=st.sampled_from([("s-2", ""), ("s-1", "g-2"), ("", "g-2")]))
    def revoke(self, what: tuple[str, str]) -> None:
        self.ledger.revoke(session=what[0], grant=what[1], person="ana", reason="enough", now=self.now)
        self.reference.revoked.add(what)

    @rule(
        name=NAMES,
        payload=st.sampled_from(["x", "x", "y"]),
        session=SESSIONS,
        grant=GRANTS,
        key=KEYS,
        repeat=REPEATS,
        limit=LIMITS,
        window=WINDOWS,
        skew=st.sampled_from([0, 0, 0, 0, -1, 1]),
        stale=st.booleans(),
        late=st.sampled_from([False, False, False, True]),
        again=st.sampled_from(["", "", "", "nonce", "approval"]),
    )
    def consume(
        self,
        name: str,
        payload: str,
        session: str,
        grant: str,
        key: str,
        repeat: str,
        limit: int,
        window: float,
        skew: int,
        stale: bool,
        late: bool,
        again: str,
    ) -> None:
        epoch = self.old_epochs[0] if stale else self.reference.epoch
        sequence = len(self.reference.drawn(session, grant)) + 1 + skew
        assert self.ledger.drawn(session, grant, 0.0) == sequence - 1 - skew
        deadline = self.now if late else self.now + 30
        manifest, draw, entry = self.case.call(
            name,
            payload=payload,
            session=session,
            grant=grant,
            key=key,
            repeat=repeat,
            limit=limit,
            window=window,
            sequence=sequence,
            epoch=epoch,
            deadline=deadline,
            nonce="0" * 32 if again == "nonce" else "",
            approval="p-1" if again == "approval" else "",
        )
        call = Call(draw.call, session, grant, (session, name), (name, payload), key, self.now)
        tokens = {manifest.invocation.nonce, manifest.invocation.capability} | ({draw.approval} if draw.approval else set())
        expected = self.reference.consume(call, epoch, sequence, tokens, limit, window, repeat, deadline, self.now)
        answer = self.ledger.consume(manifest, draw, entry, self.now)
        if isinstance(answer, Recorded):
            assert ("Recorded", answer.call, repr(answer.answer)) == expected
        else:
            assert codes(answer) == expected
        if isinstance(answer, Lease):
            self.leases[answer.call] = answer

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), state=st.sampled_from([State.DONE, State.DONE, State.FAILED, State.OUTCOME_UNKNOWN]))
    def settle(self, data: st.DataObject, state: State) -> None:
        lease = self.leases.pop(data.draw(st.sampled_from(sorted(self.leases))))
        answer = {"of": lease.call}
        entry = LogEntry(EntryType.SETTLEMENT, lease.call, lease.manifest.action.principal.session, {})
        receipt = self.ledger.settle(lease, Outcome(state, answer), entry, self.now)
        assert receipt.state is state
        call = next(call for call in self.reference.calls if call.id == lease.call)
        call.state, call.answer = state, answer

    @rule(clean=st.booleans())
    def crash(self, clean: bool) -> None:
        leased = [call for call in self.reference.calls if call.state is State.LEASED]
        if clean:
            self.ledger.close()
        else:
            self.ledger._writer.abandon()
            self.ledger._store._drop()
        self.open()
        self.leases.clear()
        for call in leased:
            call.state = State.OUTCOME_UNKNOWN
        alarms = [entry.entry.call for entry in self.ledger.entries() if entry.entry.kind is EntryType.ALARM]
        assert alarms[len(alarms) - len(leased) :] == [call.id for call in leased]

    @rule(data=st.data(), state=st.sampled_from([State.DONE, State.FAILED, State.RELEASED]))
    def person(self, data: st.DataObject, state: State) -> None:
        if not self.reference.calls:
            return
        call = data.draw(st.sampled_from(self.reference.calls))
        try:
            self.ledger.release(call.id, "ana", "looked", state, self.now)
        except AuthorityError:
            assert call.state is not State.OUTCOME_UNKNOWN
        else:
            assert call.state is State.OUTCOME_UNKNOWN
            call.state = state

    @invariant()
    def keys_tell_the_same(self) -> None:
        for session in ("s-1", "s-2"):
            for key in ("k-1", "k-2"):
                found = self.ledger.recorded(session, digest(["key", key]))
                known = [call for call in self.reference.calls if (call.session, call.key) == (session, key)]
                assert (found is None) == (not known)
                if found is not None:
                    assert (found[1], found[2].call) == (known[-1].state, known[-1].id)


TestLedgerMachine = LedgerMachine.TestCase
