"""The SQLite ledger answers as `ledger/base.py` says, check by check, in its order."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ledger_case
from cxi.canonical import digest
from cxi.errors import AuthorityError, LedgerError
from cxi.ledger.base import Lease, Mark, MarkKind, Outcome, Receipt, Recorded, State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import TENANT, Case, codes, open_ledger, start

SUPPORT = Path(ledger_case.__file__)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    found = open_ledger(tmp_path / "state")
    start(found)
    yield found
    found.close()


@pytest.fixture
def case(ledger: SqliteLedger):
    return Case(ledger)


# --- 1. the epoch


def test_the_epoch_rises_exactly_when_the_digest_differs(ledger: SqliteLedger) -> None:
    assert ledger.activate(TENANT, digest("policies"), 2.0) == (1, digest("policies"))
    assert ledger.activate(TENANT, digest("other"), 2.0) == (2, digest("other"))
    assert ledger.activate(TENANT, digest("policies"), 2.0) == (3, digest("policies"))
    assert ledger.epoch(TENANT) == (3, digest("policies"))
    assert ledger.epoch("stranger") is None
    assert [entry.entry.kind for entry in ledger.entries()].count(EntryType.EPOCH) == 3


def test_an_older_epoch_with_the_same_digest_is_refused(ledger: SqliteLedger, case) -> None:
    old = ledger.epoch(TENANT)
    ledger.activate(TENANT, digest("other"), 2.0)
    ledger.activate(TENANT, digest("policies"), 2.0)
    assert codes(case.consume(epoch=old)) == ("EPOCH_CHANGED",)
    assert isinstance(case.consume(), Lease)


def test_the_epoch_is_asked_before_the_session(case) -> None:
    assert codes(case.consume(session="s-9", epoch=(7, digest("policies")))) == ("EPOCH_CHANGED",)


# --- 2. session, revocation, deadline


def test_a_session_that_was_never_opened_or_is_closed_is_refused(ledger: SqliteLedger, case) -> None:
    assert codes(case.consume(session="s-9")) == ("SESSION_UNKNOWN",)
    ledger.close_session("s-1", 2.0)
    assert codes(case.consume()) == ("SESSION_UNKNOWN",)


def test_a_session_is_bound_to_its_principal(case) -> None:
    assert codes(case.consume(agent="another")) == ("SESSION_UNKNOWN",)


def test_a_session_is_opened_again_only_with_the_same_binding(ledger: SqliteLedger) -> None:
    ledger.open_session(TENANT, "ana", "maintainer", "s-1", "request-channel", 2.0)
    with pytest.raises(AuthorityError):
        ledger.open_session(TENANT, "ana", "maintainer", "s-1", "another", 2.0)
    ledger.close_session("s-1", 2.0)
    with pytest.raises(AuthorityError):
        ledger.open_session(TENANT, "ana", "maintainer", "s-1", "request-channel", 2.0)


@pytest.mark.parametrize(
    ("kind", "key", "session", "hits"),
    [
        (MarkKind.SESSION, "s-1", "", True),
        (MarkKind.GRANT, "fix/files.write_file", "s-1", True),
        (MarkKind.GRANT, "fix/files.write_file", "", True),
        (MarkKind.GRANT, "other", "s-1", False),
        (MarkKind.GRANT, "s-1", "", False),
        (MarkKind.SESSION, "s-2", "", False),
        (MarkKind.GRANT, "fix/files.write_file", "s-2", False),
        (MarkKind.CAPABILITY, digest("mine"), "", True),
        (MarkKind.CAPABILITY, digest("another"), "", False),
        (MarkKind.CAPABILITY, "d-1", "", True),
        (MarkKind.CAPABILITY, "d-2", "", True),
        (MarkKind.CAPABILITY, "d-3", "", False),
        (MarkKind.GRANT, "main/files.write_file", "", True),
        (MarkKind.GRANT, "main/files.write_file", "s-0", True),
        (MarkKind.GRANT, "main/files.write_file", "s-1", False),
        (MarkKind.SESSION, "s-0", "", True),
        (MarkKind.TASK, "fix", "", True),
        (MarkKind.TASK, "other", "", False),
        (MarkKind.USER, "ana", "", True),
        (MarkKind.USER, "maintainer", "", False),
        (MarkKind.POLICY, "src-and-tests", "", True),
        (MarkKind.POLICY, "other", "", False),
        (MarkKind.EPOCH, "1", "", True),
        (MarkKind.EPOCH, "2", "", False),
    ],
)
def test_a_revocation_ends_exactly_what_it_names(
    ledger: SqliteLedger, case, kind: MarkKind, key: str, session: str, hits: bool
) -> None:
    ledger.revoke(TENANT, Mark(kind, key, session), person="ana", reason="enough", now=2.0)
    more = {"task": "fix", "delegations": ("d-1", "d-2"), "lineage": (("s-0", "main/files.write_file"),)}
    assert codes(case.consume(capability=digest("mine"), more=more)) == (("REVOKED",) if hits else ("Lease",))


def test_a_revocation_is_its_tenants_own(ledger: SqliteLedger, case) -> None:
    ledger.revoke("other", Mark(MarkKind.USER, "ana"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume()) == ("Lease",)


@pytest.mark.parametrize(("kind", "key", "session"), [(MarkKind.SESSION, "", ""), (MarkKind.USER, "ana", "s-1")])
def test_a_mark_names_something_and_only_a_grant_is_narrowed(kind: MarkKind, key: str, session: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        Mark(kind, key, session)


def test_what_was_launched_before_a_revocation_runs_to_its_outcome(ledger: SqliteLedger, case) -> None:
    lease = case.lease()
    ledger.revoke(TENANT, Mark(MarkKind.SESSION, "s-1"), person="ana", reason="enough", now=2.0)
    assert case.settle(lease).state is State.DONE


@pytest.mark.parametrize(("now", "answer"), [(9.999, "Lease"), (10.0, "EXPIRED"), (11.0, "EXPIRED")])
def test_the_deadline_is_the_first_instant_that_is_too_late(case, now: float, answer: str) -> None:
    assert codes(case.consume(deadline=10.0, now=now)) == (answer,)


# --- 3. idempotency keys


def test_a_replay_gets_the_recorded_answer_and_draws_nothing(ledger: SqliteLedger, case) -> None:
    case.settle(case.lease(key="k", repeat="replay"), answer={"content": [1.5, "é", "\ud800"], "n": 2**70})
    before = len(list(ledger.entries()))
    answer = case.consume(key="k", repeat="replay")
    assert answer == Recorded("a-1", {"content": [1.5, "é", "\ud800"], "n": 2**70})
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 1
    assert len(list(ledger.entries())) == before


def test_a_key_that_was_used_for_another_action_conflicts(case) -> None:
    case.settle(case.lease(key="k", repeat="replay"))
    assert codes(case.consume(key="k", repeat="replay", payload="another")) == ("KEY_REUSE_CONFLICT",)


def test_a_key_is_its_sessions_own(ledger: SqliteLedger, case) -> None:
    ledger.open_session(TENANT, "ana", "maintainer", "s-2", "request-channel", 1.0)
    case.settle(case.lease(key="k", repeat="replay"))
    assert isinstance(case.consume(key="k", repeat="replay", session="s-2"), Lease)


@pytest.mark.parametrize(
    ("state", "repeat", "code"),
    [
        (None, "replay", "IN_FLIGHT"),
        (State.OUTCOME_UNKNOWN, "replay", "OUTCOME_UNKNOWN"),
        (State.DONE, "refuse", "EVENT_REPEATED"),
        (State.DONE, "allow", "EVENT_REPEATED"),
        (State.DONE, "replay", "Recorded"),
        (State.FAILED, "replay", "Lease"),
        (State.FAILED, "refuse", "Lease"),
    ],
)
def test_the_same_key_and_action_again(case, state: State | None, repeat: str, code: str) -> None:
    lease = case.lease(key="k", repeat=repeat)
    if state is not None:
        case.settle(lease, state)
    assert codes(case.consume(key="k", repeat=repeat)) == (code,)


def test_recorded_tells_the_latest_call_of_a_key(ledger: SqliteLedger, case) -> None:
    key = digest(["key", "k"])
    assert ledger.recorded("s-1", key) is None
    case.settle(case.lease(key="k", repeat="replay"), State.FAILED)
    lease = case.lease(key="k", repeat="replay")
    assert ledger.recorded("s-1", key) == (lease.manifest.action.digest, State.LEASED, Recorded("a-2", None))
    case.settle(lease, answer="yes")
    assert ledger.recorded("s-1", key) == (lease.manifest.action.digest, State.DONE, Recorded("a-2", "yes"))


def test_an_answer_that_nobody_can_ask_for_is_not_kept(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    case.settle(case.lease(), answer="a private answer")
    ledger.close()
    assert b"a private answer" not in (tmp_path / "state" / "ledger.sqlite").read_bytes()


# --- 4. equal events


def test_an_equal_event_waits_while_one_is_under_way_or_unknown(case) -> None:
    lease = case.lease()
    assert codes(case.consume()) == ("IN_FLIGHT",)
    assert codes(case.consume(payload="another text, the same event")) == ("IN_FLIGHT",)
    assert isinstance(case.consume("src/other.py"), Lease)
    case.settle(lease, State.OUTCOME_UNKNOWN)
    assert codes(case.consume()) == ("OUTCOME_UNKNOWN",)


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.RELEASED])
def test_a_person_ends_an_unknown_outcome(ledger: SqliteLedger, case, state: State) -> None:
    case.settle(case.lease(), State.OUTCOME_UNKNOWN)
    ledger.release("a-1", "ana", "looked", state, 4.0)
    last = list(ledger.entries())[-1].entry
    assert (last.kind, last.call, last.body["state"]) == (EntryType.PERSON, "a-1", str(state))
    assert isinstance(case.consume(), Lease)


def test_a_person_ends_nothing_that_is_not_unknown(ledger: SqliteLedger, case) -> None:
    lease = case.lease()
    for call, state in (("a-1", State.DONE), ("a-9", State.DONE)):
        with pytest.raises(AuthorityError):
            ledger.release(call, "ana", "guess", state, 4.0)
    case.settle(lease, State.OUTCOME_UNKNOWN)
    for state in (State.OUTCOME_UNKNOWN, State.LEASED, State.REVOKED, State.EXPIRED, State.MINTED):
        with pytest.raises(AuthorityError):
            ledger.release("a-1", "ana", "guess", state, 4.0)


# --- 5. limits, sequence, what is used once


def test_the_limit_ends_the_grant(case) -> None:
    case.settle(case.lease("a", limit=2))
    case.settle(case.lease("b", limit=2))
    assert codes(case.consume("c", limit=2)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("a", limit=2)) == ("EVENT_REPEATED",)
    assert isinstance(case.consume("a", limit=3), Lease), "the grant's count covers it"


def test_a_failed_call_gives_its_draw_back_but_not_its_sequence(ledger: SqliteLedger, case) -> None:
    case.settle(case.lease("a", limit=1), State.FAILED)
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 1
    assert codes(case.consume("a", limit=1, sequence=1)) == ("CAPABILITY_USED",)
    lease = case.lease("a", limit=1)
    assert lease.manifest.invocation.sequence == 2
    assert codes(case.consume("b", limit=1)) == ("GRANT_EXHAUSTED",)


def test_a_window_forgets_what_is_older_than_it(ledger: SqliteLedger, case) -> None:
    for name, now in (("a", 100.0), ("b", 130.0)):
        case.settle(case.lease(name, limit=2, window=60.0, now=now))
    assert codes(case.consume("c", limit=2, window=60.0, now=159.999)) == ("GRANT_EXHAUSTED",)
    assert isinstance(case.consume("c", limit=2, window=60.0, now=160.0), Lease)
    assert ledger.drawn("s-1", "fix/files.write_file", 129.0) == 2
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 3


def test_a_clock_that_goes_back_opens_no_window(case) -> None:
    case.settle(case.lease("a", limit=1, window=60.0, now=1000.0))
    assert codes(case.consume("b", limit=1, window=60.0, now=500.0)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("b", limit=1, window=60.0, now=1059.0)) == ("GRANT_EXHAUSTED",)


def test_a_clock_that_goes_back_does_not_confuse_the_sequence(ledger: SqliteLedger, case) -> None:
    case.settle(case.lease("a", now=1000.0))
    case.settle(case.lease("b", now=500.0))
    assert codes(case.consume("c", sequence=2)) == ("CAPABILITY_USED",)
    assert case.lease("c", now=400.0).manifest.invocation.sequence == 3
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 3


@pytest.mark.parametrize("sequence", [0, 1, 3])
def test_only_the_next_sequence_is_drawn(case, sequence: int) -> None:
    case.settle(case.lease("a"))
    assert codes(case.consume("b", sequence=sequence)) == ("CAPABILITY_USED",)


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("what", [{"nonce": "f" * 32}, {"capability": digest("one")}, {"approval": "p-1"}])
def test_nonce_capability_and_approval_are_used_once(case, what: dict[str, str], settled: bool) -> None:
    lease = case.lease("a", **what)
    if settled:
        case.settle(lease, State.FAILED)
    assert codes(case.consume("b", **what)) == ("CAPABILITY_USED",)
    assert codes(case.consume("b", **what, grant="another grant")) == ("CAPABILITY_USED",)
    assert isinstance(case.consume("b"), Lease)


def test_a_refusal_writes_nothing(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    case.lease("a", limit=1)
    before = list(ledger.entries())
    assert codes(case.consume("b", limit=1, approval="p-1", touches=(("path", "b"),))) == ("GRANT_EXHAUSTED",)
    assert list(ledger.entries()) == before
    assert ("path", "b") not in ledger.touched(TENANT)
    assert isinstance(case.consume("b", approval="p-1"), Lease), "the approval is not spent by a refusal"


# --- 6. leases, settlements, the log


def test_a_lease_names_its_place_in_the_log(ledger: SqliteLedger, case) -> None:
    lease = case.lease()
    entry = next(iter(ledger.entries(lease.seq)))
    assert entry.entry.kind is EntryType.ADMISSION
    assert entry.entry.body["manifest"] == lease.manifest_digest == lease.manifest.digest


def test_a_settlement_names_its_admission_and_state(ledger: SqliteLedger, case) -> None:
    lease = case.lease()
    receipt = case.settle(lease, State.DONE)
    admission, settlement = ledger.entries_of("a-1")
    assert isinstance(receipt, Receipt)
    assert receipt.admission == (admission.seq, admission.hash)
    assert receipt.settlement == (settlement.seq, settlement.hash)
    assert settlement.entry.body["admission"] == [admission.seq, admission.hash]
    assert settlement.entry.body["state"] == "done"
    assert (receipt.assurance, receipt.carriage, receipt.manifest) == ("checked", "not claimed", lease.manifest_digest)


def test_a_second_settlement_is_a_fault(case) -> None:
    lease = case.lease()
    case.settle(lease)
    for state in (State.DONE, State.FAILED):
        with pytest.raises(AuthorityError):
            case.settle(lease, state)


def test_a_lease_that_the_ledger_did_not_make_is_a_fault(case) -> None:
    lease = case.lease()
    forged = Lease(lease.manifest, digest("another"), lease.call, lease.seq, lease.deadline)
    with pytest.raises(AuthorityError):
        case.settle(forged)


def test_an_entry_of_another_call_is_a_fault_of_the_gate(ledger: SqliteLedger, case) -> None:
    manifest, draw, entry = case.call()
    for wrong in (
        LogEntry(EntryType.REFUSAL, entry.call, entry.session, entry.body),
        LogEntry(entry.kind, "a-7", entry.session, entry.body),
        LogEntry(entry.kind, entry.call, "s-7", entry.body),
    ):
        with pytest.raises(ValueError):
            ledger.consume(manifest, draw, wrong, 2.0)
    lease = case.lease()
    with pytest.raises(ValueError):
        ledger.settle(lease, Outcome(State.LEASED), LogEntry(EntryType.SETTLEMENT, lease.call, "s-1", {}), 2.0)


def test_touches_are_indexed_with_the_lease_and_stay_until_a_person_endorses(ledger: SqliteLedger, case) -> None:
    lease = case.lease("a", touches=(("path", "a"), ("RecordId", "7")), influences=("ci", "web"))
    both = {("path", "a"): ("ci", "web"), ("RecordId", "7"): ("ci", "web")}
    assert ledger.touched(TENANT) == both
    case.settle(lease)
    assert ledger.touched(TENANT) == both
    ledger.touch(TENANT, [("path", "b")], (), "a-9", 4.0)
    ledger.touch(TENANT, [("path", "a")], ("mail",), "a-9", 4.0)
    assert ledger.touched(TENANT) == {("path", "a"): ("ci", "mail", "web"), ("RecordId", "7"): ("ci", "web"), ("path", "b"): ()}
    ledger.endorse(TENANT, "path", "a", "ana", 5.0)
    assert ledger.touched(TENANT) == {("RecordId", "7"): ("ci", "web"), ("path", "b"): ()}
    assert ledger.touched("stranger") == {}
    last = list(ledger.entries())[-1].entry
    assert last.kind is EntryType.PERSON
    assert "path" not in str(last.body["endorsed"])


def test_the_log_is_one_chain_over_everything(ledger: SqliteLedger, case) -> None:
    for name in "abc":
        case.settle(case.lease(name))
    ledger.append(LogEntry(EntryType.REFUSAL, "a-9", "s-1", {"reasons": ["FIELD_NO_AUTHORITY"]}), 5.0, durable=True)
    answer = verify(ledger.entries(), [], [])
    assert isinstance(answer, Verified)
    assert answer.count == len(list(ledger.entries())) == 9
    assert [entry.seq for entry in ledger.entries(4)] == [4, 5, 6, 7, 8, 9]
    head = ledger.head(6.0)
    assert (head.size, head.hash) == (answer.count, answer.head)


def test_what_append_returns_is_what_is_read(ledger: SqliteLedger) -> None:
    entry = LogEntry(EntryType.READ, "a-1", "s-1", {"text": "é\U0001f600", "nested": [{"b": 1, "a": None}]})
    chained = ledger.append(entry, 1700000000.1236)
    assert list(ledger.entries())[-1] == chained
    assert list(ledger.entries())[-1].hash == chained.hash


# --- the file


def test_everything_survives_a_clean_close(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    start(ledger)
    case = Case(ledger)
    case.settle(case.lease(key="k", repeat="replay"), answer="yes")
    origin, entries = ledger.origin, list(ledger.entries())
    ledger.close()
    ledger.close()
    again = open_ledger(tmp_path / "state", "two")
    case = Case(again, "b")
    assert (again.origin, list(again.entries())) == (origin, entries)
    assert case.consume(key="k", repeat="replay") == Recorded("a-1", "yes")
    assert not (tmp_path / "state" / "writers" / "one.lock").exists()
    again.close()


def test_a_closed_ledger_refuses(ledger: SqliteLedger, case) -> None:
    manifest, draw, entry = case.call()
    ledger.close()
    with pytest.raises(LedgerError):
        ledger.consume(manifest, draw, entry, 2.0)


def test_files_are_this_users_alone(ledger: SqliteLedger, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(LedgerError):
        open_ledger(folder)
    folder.chmod(0o700)
    open_ledger(folder).close()


def test_a_database_that_others_can_open_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    open_ledger(tmp_path / "state").close()
    path = tmp_path / "state" / "ledger.sqlite"
    path.chmod(0o644)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state")
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state")


def test_another_programs_database_and_another_version_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    open_ledger(folder).close()
    for pragma in ("user_version=99", "application_id=7"):
        connection = sqlite3.connect(folder / "ledger.sqlite")
        connection.execute(f"PRAGMA {pragma}")
        connection.close()
        with pytest.raises(LedgerError):
            open_ledger(folder)


def test_an_instance_is_one_writer_at_a_time(ledger: SqliteLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cxi.ledger.writer._TRIES", 1)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state", "one")
    for name in ("", "../x", ".hidden", "a b"):
        with pytest.raises(LedgerError):
            open_ledger(tmp_path / "state", name)


def test_a_fork_must_open_its_own(ledger: SqliteLedger, case, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.getpid()
    monkeypatch.setattr("cxi.log.store.os.getpid", lambda: pid + 1)
    with pytest.raises(LedgerError):
        case.consume(sequence=1)


# --- recovery


def crash(ledger: SqliteLedger) -> None:
    """What a killed process leaves: no settlement, no clean close, the lock gone."""
    ledger._writer.abandon()
    ledger._store._drop()


def test_a_lease_of_a_writer_that_is_gone_becomes_unknown(tmp_path: Path) -> None:
    first = open_ledger(tmp_path / "state")
    start(first)
    Case(first).lease("a", touches=(("path", "a"),))
    crash(first)
    second = open_ledger(tmp_path / "state", "two", now=9.0)
    alarm = list(second.entries())[-1]
    assert (alarm.entry.kind, alarm.entry.call, alarm.time) == (EntryType.ALARM, "a-1", 9.0)
    assert codes(Case(second, "b").consume("a")) == ("OUTCOME_UNKNOWN",)
    assert ("path", "a") in second.touched(TENANT)
    assert list(second.recover(9.0)) == []
    second.close()


def test_the_same_name_opened_again_recovers_its_own_past(tmp_path: Path) -> None:
    first = open_ledger(tmp_path / "state")
    start(first)
    Case(first).lease("a")
    crash(first)
    again = open_ledger(tmp_path / "state", "one")
    case = Case(again, "b")
    assert codes(case.consume("a")) == ("OUTCOME_UNKNOWN",)
    lease = case.lease("b")
    assert list(again.recover(9.0)) == [], "its own leases are alive"
    case.settle(lease)
    again.close()


def test_a_writer_that_lives_keeps_its_leases(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    lease = case.lease("a")
    other = open_ledger(tmp_path / "state", "two")
    assert list(other.recover(9.0)) == []
    case.settle(lease)
    other.close()


def test_recovery_while_running_finds_who_crashed_meanwhile(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    other = open_ledger(tmp_path / "state", "two")
    Case(other, "b").lease("a")
    crash(other)
    assert list(ledger.recover(9.0)) == ["b-1"]
    assert codes(case.consume("a")) == ("OUTCOME_UNKNOWN",)
    assert not (tmp_path / "state" / "writers" / "two.lock").exists()


# --- many callers


def test_threads_that_race_for_one_grant_get_one_lease(ledger: SqliteLedger) -> None:
    barrier, answers = threading.Barrier(8), []

    def race(number: int) -> None:
        manifest, draw, entry = Case(ledger, f"t{number}").call(f"file-{number}", limit=1, sequence=1)
        barrier.wait()
        answers.append(ledger.consume(manifest, draw, entry, 2.0))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Lease) for answer in answers) == 1
    assert {codes(answer) for answer in answers} == {("Lease",), ("GRANT_EXHAUSTED",)}
    assert isinstance(verify(ledger.entries(), [], []), Verified)


def test_two_ledgers_on_one_file_make_one_chain(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    other = open_ledger(tmp_path / "state", "two")
    second = Case(other, "b")
    for number in range(6):
        turn = (case, second)[number % 2]
        turn.settle(turn.lease(f"file-{number}"))
    answer = verify(ledger.entries(), [], [])
    assert isinstance(answer, Verified)
    assert list(other.entries()) == list(ledger.entries())
    other.close()


# --- one sync


TRACED = """
import runpy, sys
from pathlib import Path
parts = runpy.run_path(sys.argv[1])
ledger = parts["open_ledger"](Path(sys.argv[2]))
parts["start"](ledger)
case = parts["Case"](ledger)
mark = lambda name: Path(f"/nonexistent/{name}").exists()
for number in range(5):
    call = case.call(f"file-{number}")
    mark("consume")
    lease = ledger.consume(*call, 2.0)
    mark("sink")
    case.settle(lease)
    ledger.append(parts["LogEntry"](parts["EntryType"].READ, "a", "s-1", {}), 2.0)
    mark("settled")
"""


def test_consume_syncs_exactly_once_and_a_settlement_never(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: the number of syncs was not counted")
    out = tmp_path / "trace"
    command = [
        strace,
        "-f",
        "-y",
        "-o",
        str(out),
        "-e",
        "trace=fsync,fdatasync,sync_file_range,msync,pwrite64,stat,newfstatat,statx",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", TRACED, str(SUPPORT), str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here: the number of syncs was not counted")
    assert done.returncode == 0, done.stderr
    phase, syncs, riding = "", {"consume": [], "sink": [], "settled": []}, False
    for line in out.read_text().splitlines():
        if "/nonexistent/" in line:
            phase = line.partition("/nonexistent/")[2].partition('"')[0]
            if phase != "settled":
                syncs[phase].append(0)
        elif phase in ("consume", "sink") and any(
            f" {name}(" in line for name in ("fsync", "fdatasync", "msync", "sync_file_range")
        ):
            assert "ledger.sqlite-wal" in line
            syncs[phase][-1] += 1
        elif phase == "sink" and "pwrite64(" in line and "ledger.sqlite-wal" in line:
            riding = True  # the settlement is written to the file that the next consume syncs
    assert syncs["consume"] == [1] * 5
    assert syncs["sink"] == [0] * 5
    assert riding


def test_a_grant_that_is_revoked_in_the_tenant_is_revoked_in_every_later_start_of_its_task(ledger: SqliteLedger, case) -> None:
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "fix/a.b", "s-1"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume("a", grant="fix/a.b")) == ("REVOKED",)
    assert codes(case.consume("a", grant="fix/a.b#2")) == ("Lease",)
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "fix/a.b"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume("b", grant="fix/a.b#2")) == ("REVOKED",)
