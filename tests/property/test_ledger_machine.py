"""The real ledger beside the pure model: same answers, whatever the order of sessions, epochs, calls, crashes and persons."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backend_case import Backend, PostgresBackend, SqliteBackend
from cxi.canonical import digest
from cxi.errors import AuthorityError, Code, Refused
from cxi.ledger import model
from cxi.ledger.base import Lease, Limit, Mark, MarkKind, Outcome, Recorded, Requirement, State, marks_of
from cxi.ledger.model import Ask, Book
from cxi.log.entry import EntryType, LogEntry
from ledger_case import AGENT, CREDENTIAL, TENANT, USER, Case, codes

SESSIONS = st.sampled_from(["s-1", "s-2"])
GRANTS = st.sampled_from(["g-1", "g-2"])
NAMES = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["", "", "k-1", "k-2"])
REPEATS = st.sampled_from(["refuse", "replay", "allow"])
LIMITS = st.integers(min_value=1, max_value=3)
BOUNDS = st.sampled_from(
    [
        (),
        (),
        (),
        (Limit("calls", 1, 3),),
        (Limit("sum", 3, 7, 5.0), Limit("calls", 1, 4)),
        (Limit("sum", 2, 9), Limit("sum", 4, 9, 5.0)),
    ]
)
AFTER = st.sampled_from([(), (), (), (Requirement("g-1"),), (Requirement("g-2", 2),)])
SCHEDULES = st.sampled_from([(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (104.0, 0.0), (0.0, 106.0)])
RETRIES = st.sampled_from([None, None, 0, 1])
WINDOWS = st.sampled_from([0.0, 0.0, 5.0])


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.backend = self.fresh()
        self.book = Book()
        self.closed: set[str] = set()
        self.answers: dict[str, object] = {}
        self.now = 100.0
        self.lives = 0
        self.leases: dict[str, Lease] = {}
        self.old_epochs: list[tuple[int, str]] = []
        self.ledger: Any
        self.case: Case
        self.open()

    def fresh(self) -> Backend:
        """An empty ledger."""
        self.folder = Path(tempfile.mkdtemp(prefix="cxi-ledger-"))
        return SqliteBackend(self.folder / "state")

    def open(self) -> None:
        self.lives += 1
        self.ledger = self.backend.open(f"life-{self.lives}", self.now)
        self.case = Case(self.ledger, f"c{self.lives}")

    def teardown(self) -> None:
        assert self.backend.differences(self.ledger) == 0
        self.ledger.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize()
    def begin(self) -> None:
        self.activate("A")
        self.open_session("s-1")

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(policies=st.sampled_from(["A", "B"]))
    def activate(self, policies: str) -> None:
        expected = (1, digest(policies))
        if self.book.epoch is not None:
            expected = self.book.epoch if self.book.epoch[1] == expected[1] else (self.book.epoch[0] + 1, expected[1])
        self.book = replace(self.book, epoch=expected)
        assert self.ledger.activate(TENANT, digest(policies), self.now) == expected
        self.old_epochs.append(expected)

    @rule(session=SESSIONS)
    def open_session(self, session: str) -> None:
        try:
            self.ledger.open_session(TENANT, USER, AGENT, session, CREDENTIAL, self.now)
        except AuthorityError:
            assert session in self.closed
        else:
            assert session not in self.closed
            self.book = replace(self.book, sessions=self.book.sessions | {session})

    @precondition(lambda self: len(self.book.rows) > 4)
    @rule(session=SESSIONS)
    def close_session(self, session: str) -> None:
        self.ledger.close_session(session, self.now)
        if session in self.book.sessions:
            self.closed.add(session)
            self.book = replace(self.book, sessions=self.book.sessions - {session})

    @precondition(lambda self: len(self.book.rows) > 3)
    @rule(
        mark=st.sampled_from(
            [
                Mark(MarkKind.SESSION, "s-2"),
                Mark(MarkKind.GRANT, "g-2", "s-1"),
                Mark(MarkKind.GRANT, "g-2"),
                Mark(MarkKind.EPOCH, "2"),
                Mark(MarkKind.TASK, "fix"),
                Mark(MarkKind.USER, "another"),
            ]
        )
    )
    def revoke(self, mark: Mark) -> None:
        self.ledger.revoke(TENANT, mark, person="ana", reason="enough", now=self.now)
        self.book = replace(self.book, revoked=self.book.revoked | {mark})

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
        bounds=BOUNDS,
        after=AFTER,
        schedule=SCHEDULES,
        retries=RETRIES,
        task=st.sampled_from(["", "fix"]),
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
        bounds: tuple[Limit, ...],
        after: tuple[Requirement, ...],
        schedule: tuple[float, float],
        retries: int | None,
        task: str,
    ) -> None:
        epoch = self.old_epochs[0] if stale else self.book.epoch
        assert epoch is not None
        sequence = len(self.book.draws(session, grant)) + 1 + skew
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
        not_before, not_after = schedule
        draw = replace(draw, limits=bounds, after=after, not_before=not_before, not_after=not_after, retries=retries, task=task)
        ask = Ask(
            draw.call,
            session,
            grant,
            name,
            f"{name} {payload}",
            sequence,
            epoch,
            deadline,
            key,
            limit,
            window,
            repeat,
            tokens=frozenset({manifest.invocation.nonce, *([draw.approval] if draw.approval else [])}),
            marks=frozenset(marks_of(manifest, draw)),
            limits=bounds,
            after=after,
            not_before=not_before,
            not_after=not_after,
            retries=retries,
        )
        expected = model.consume(self.book, ask, now=self.now, writer=f"life-{self.lives}")
        answer = self.ledger.consume(manifest, draw, entry, self.now)
        match expected:
            case Book():
                assert isinstance(answer, Lease), answer
                self.book = expected
                self.leases[answer.call] = answer
            case model.Row():
                assert isinstance(answer, Recorded), answer
                assert (answer.call, answer.answer) == (expected.ask.capability, self.answers[expected.ask.capability])
            case Code():
                assert codes(answer) == (expected,)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), state=st.sampled_from([State.DONE, State.DONE, State.FAILED, State.OUTCOME_UNKNOWN]))
    def settle(self, data: st.DataObject, state: State) -> None:
        lease = self.leases.pop(data.draw(st.sampled_from(sorted(self.leases))))
        answer = {"of": lease.call}
        entry = LogEntry(EntryType.SETTLEMENT, lease.call, lease.manifest.action.principal.session, {})
        receipt = self.ledger.settle(lease, Outcome(state, answer), entry, self.now)
        assert receipt.state is state
        self.answers[lease.call] = answer
        self.book = _moved(model.settle(self.book, lease.call, state))

    @rule(clean=st.booleans())
    def crash(self, clean: bool) -> None:
        leased = [row.ask.capability for row in self.book.rows if row.state is State.LEASED]
        if clean:
            self.ledger.close()
        else:
            self.backend.crash(self.ledger)
        self.open()
        self.leases.clear()
        self.book = model.recover(self.book, frozenset())
        alarms = [entry.entry.call for entry in self.ledger.entries() if entry.entry.kind is EntryType.ALARM]
        assert alarms[len(alarms) - len(leased) :] == leased

    @rule(data=st.data(), state=st.sampled_from([State.DONE, State.FAILED, State.RELEASED]))
    def person(self, data: st.DataObject, state: State) -> None:
        if not self.book.rows:
            return
        row = data.draw(st.sampled_from(self.book.rows))
        said = model.release(self.book, row.ask.capability, state)
        try:
            self.ledger.release(row.ask.capability, "ana", "looked", state, self.now)
        except AuthorityError:
            assert isinstance(said, Refused)
        else:
            self.book = _moved(said)

    @invariant()
    def keys_tell_the_same(self) -> None:
        for session in ("s-1", "s-2"):
            for key in ("k-1", "k-2"):
                found = self.ledger.recorded(session, digest(["key", key]))
                known = [row for row in self.book.rows if (row.ask.session, row.ask.key) == (session, key)]
                assert (found is None) == (not known)
                if found is not None:
                    assert (found[1], found[2].call) == (known[-1].state, known[-1].ask.capability)


def _moved(book: Book | Refused) -> Book:
    assert isinstance(book, Book), book
    return book


TestLedgerMachine = LedgerMachine.TestCase


class PostgresMachine(LedgerMachine):
    """The same over a PostgreSQL server, by the clock that is given."""

    cluster: ClassVar[Any] = None

    def fresh(self) -> Backend:
        self.folder = Path("/nonexistent")
        self.cluster.clear()
        return PostgresBackend(self.cluster)


@pytest.fixture(scope="module")
def _cluster(_postgres_server: Any) -> None:
    PostgresMachine.cluster = _postgres_server


@pytest.mark.usefixtures("_cluster")
class TestPostgresMachine(PostgresMachine.TestCase):
    settings = settings(PostgresMachine.TestCase.settings, max_examples=max(settings().max_examples // 5, 12))
