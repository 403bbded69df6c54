"""A ledger answers as `ledger/base.py` says, check by check, in its order: over each store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend_case import Backend
from cxi.canonical import digest
from cxi.errors import AuthorityError, LedgerError
from cxi.ledger.base import Lease, Mark, MarkKind, Outcome, Receipt, Recorded, State
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import TENANT, Case, codes, start


@pytest.fixture
def ledger(backend: Backend) -> Iterator[Any]:
    found = backend.open()
    start(found)
    yield found
    found.close()


@pytest.fixture
def case(ledger: Any):
    return Case(ledger)


# --- 1. the epoch


def test_the_epoch_rises_exactly_when_the_digest_differs(ledger: Any) -> None:
    assert ledger.activate(TENANT, digest("policies"), 2.0) == (1, digest("policies"))
    assert ledger.activate(TENANT, digest("other"), 2.0) == (2, digest("other"))
    assert ledger.activate(TENANT, digest("policies"), 2.0) == (3, digest("policies"))
    assert ledger.epoch(TENANT) == (3, digest("policies"))
    assert ledger.epoch("stranger") is None
    assert [entry.entry.kind for entry in ledger.entries()].count(EntryType.EPOCH) == 3


def test_an_older_epoch_with_the_same_digest_is_refused(ledger: Any, case) -> None:
    old = ledger.epoch(TENANT)
    ledger.activate(TENANT, digest("other"), 2.0)
    ledger.activate(TENANT, digest("policies"), 2.0)
    assert codes(case.consume(epoch=old)) == ("EPOCH_CHANGED",)
    assert isinstance(case.consume(), Lease)


def test_the_epoch_is_asked_before_the_session(case) -> None:
    assert codes(case.consume(session="s-9", epoch=(7, digest("policies")))) == ("EPOCH_CHANGED",)


# --- 2. session, revocation, deadline


def test_a_session_that_was_never_opened_or_is_closed_is_refused(ledger: Any, case) -> None:
    assert codes(case.consume(session="s-9")) == ("SESSION_UNKNOWN",)
    ledger.close_session("s-1", 2.0)
    assert codes(case.consume()) == ("SESSION_UNKNOWN",)


def test_a_session_is_bound_to_its_principal(case) -> None:
    assert codes(case.consume(agent="another")) == ("SESSION_UNKNOWN",)


def test_a_session_is_opened_again_only_with_the_same_binding(ledger: Any) -> None:
    ledger.open_session(TENANT, "ana", "maintainer", "s-1", "request-channel", 2.0)
    with pytest.raises(AuthorityError):
        ledger.open_session(TENANT, "ana", "maintainer", "s-1", "another", 2.0)
    ledger.close_session("s-1", 2.0)
    with pytest.raises(AuthorityError):
        ledger.open_session(TENANT, "ana", "maintainer", "s-1", "request-channel", 2.0)


# --- 4. equal events


def test_an_equal_event_waits_while_one_is_under_way_or_unknown(case) -> None:
    lease = case.lease()
    assert codes(case.consume()) == ("IN_FLIGHT",)
    assert codes(case.consume(payload="another text, the same event")) == ("IN_FLIGHT",)
    assert isinstance(case.consume("src/other.py"), Lease)
    case.settle(lease, State.OUTCOME_UNKNOWN)
    assert codes(case.consume()) == ("OUTCOME_UNKNOWN",)


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.RELEASED])
def test_a_person_ends_an_unknown_outcome(ledger: Any, case, state: State) -> None:
    case.settle(case.lease(), State.OUTCOME_UNKNOWN)
    ledger.release("a-1", "ana", "looked", state, 4.0)
    last = list(ledger.entries())[-1].entry
    assert (last.kind, last.call, last.body["state"]) == (EntryType.PERSON, "a-1", str(state))
    assert isinstance(case.consume(), Lease)


def test_a_person_ends_nothing_that_is_not_unknown(ledger: Any, case) -> None:
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


def test_a_failed_call_gives_its_draw_back_but_not_its_sequence(ledger: Any, case) -> None:
    case.settle(case.lease("a", limit=1), State.FAILED)
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 1
    assert codes(case.consume("a", limit=1, sequence=1)) == ("CAPABILITY_USED",)
    lease = case.lease("a", limit=1)
    assert lease.manifest.invocation.sequence == 2
    assert codes(case.consume("b", limit=1)) == ("GRANT_EXHAUSTED",)


def test_a_window_forgets_what_is_older_than_it(ledger: Any, case) -> None:
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


def test_a_clock_that_goes_back_does_not_confuse_the_sequence(ledger: Any, case) -> None:
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


def test_a_refusal_writes_nothing(ledger: Any, case, tmp_path: Path) -> None:
    case.lease("a", limit=1)
    before = list(ledger.entries())
    assert codes(case.consume("b", limit=1, approval="p-1", touches=(("path", "b"),))) == ("GRANT_EXHAUSTED",)
    assert list(ledger.entries()) == before
    assert ("path", "b") not in ledger.touched(TENANT)
    assert isinstance(case.consume("b", approval="p-1"), Lease), "the approval is not spent by a refusal"


# --- 6. leases, settlements, the log


def test_a_lease_names_its_place_in_the_log(ledger: Any, case) -> None:
    lease = case.lease()
    entry = next(iter(ledger.entries(lease.seq)))
    assert entry.entry.kind is EntryType.ADMISSION
    assert entry.entry.body["manifest"] == lease.manifest_digest == lease.manifest.digest


def test_a_settlement_names_its_admission_and_state(ledger: Any, case) -> None:
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


def test_an_entry_of_another_call_is_a_fault_of_the_gate(ledger: Any, case) -> None:
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


def test_touches_are_indexed_with_the_lease_and_stay_until_a_person_endorses(ledger: Any, case) -> None:
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


def test_the_log_is_one_chain_over_everything(ledger: Any, case) -> None:
    for name in "abc":
        case.settle(case.lease(name))
    ledger.append(LogEntry(EntryType.REFUSAL, "a-9", "s-1", {"reasons": ["FIELD_NO_AUTHORITY"]}), 5.0, durable=True)
    answer = verify(ledger.entries(), [], [])
    assert isinstance(answer, Verified)
    assert answer.count == len(list(ledger.entries())) == 9
    assert [entry.seq for entry in ledger.entries(4)] == [4, 5, 6, 7, 8, 9]
    head = ledger.head(6.0)
    assert (head.size, head.hash) == (answer.count, answer.head)


def test_what_append_returns_is_what_is_read(ledger: Any) -> None:
    entry = LogEntry(EntryType.READ, "a-1", "s-1", {"text": "é\U0001f600", "nested": [{"b": 1, "a": None}]})
    chained = ledger.append(entry, 1700000000.1236)
    assert list(ledger.entries())[-1] == chained
    assert list(ledger.entries())[-1].hash == chained.hash


def test_a_grant_that_is_revoked_in_the_tenant_is_revoked_in_every_later_start_of_its_task(ledger: Any, case) -> None:
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "fix/a.b", "s-1"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume("a", grant="fix/a.b")) == ("REVOKED",)
    assert codes(case.consume("a", grant="fix/a.b#2")) == ("Lease",)
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "fix/a.b"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume("b", grant="fix/a.b#2")) == ("REVOKED",)


# --- opened again


def test_everything_survives_a_clean_close(backend: Backend) -> None:
    ledger = backend.open()
    start(ledger)
    case = Case(ledger)
    case.settle(case.lease(key="k", repeat="replay"), answer="yes")
    origin, entries = ledger.origin, list(ledger.entries())
    ledger.close()
    ledger.close()
    again = backend.open("two")
    case = Case(again, "b")
    assert list(again.entries()) == entries
    assert case.consume(key="k", repeat="replay") == Recorded("a-1", "yes")
    assert again.origin == origin
    again.close()


def test_a_closed_ledger_refuses(ledger: Any, case) -> None:
    manifest, draw, entry = case.call()
    ledger.close()
    with pytest.raises(LedgerError):
        ledger.consume(manifest, draw, entry, 2.0)


# --- recovery


def test_a_lease_of_a_writer_that_is_gone_becomes_unknown(backend: Backend) -> None:
    first = backend.open()
    start(first)
    Case(first).lease("a", touches=(("path", "a"),))
    backend.crash(first)
    second = backend.open("two", now=9.0)
    alarm = list(second.entries())[-1]
    assert (alarm.entry.kind, alarm.entry.call, alarm.time) == (EntryType.ALARM, "a-1", 9.0)
    assert codes(Case(second, "b").consume("a")) == ("OUTCOME_UNKNOWN",)
    assert ("path", "a") in second.touched(TENANT)
    assert list(second.recover(9.0)) == []
    second.close()


def test_the_same_name_opened_again_recovers_its_own_past(backend: Backend) -> None:
    first = backend.open()
    start(first)
    Case(first).lease("a")
    backend.crash(first)
    again = backend.open("one")
    case = Case(again, "b")
    assert codes(case.consume("a")) == ("OUTCOME_UNKNOWN",)
    lease = case.lease("b")
    assert list(again.recover(9.0)) == [], "its own leases are alive"
    case.settle(lease)
    again.close()


def test_a_writer_that_lives_keeps_its_leases(ledger: Any, case, backend: Backend) -> None:
    lease = case.lease("a")
    other = backend.open("two")
    assert list(other.recover(9.0)) == []
    case.settle(lease)
    other.close()


def test_recovery_while_running_finds_who_crashed_meanwhile(ledger: Any, case, backend: Backend) -> None:
    other = backend.open("two")
    Case(other, "b").lease("a")
    backend.crash(other)
    assert list(ledger.recover(9.0)) == ["b-1"]
    assert codes(case.consume("a")) == ("OUTCOME_UNKNOWN",)


# --- many callers


def test_threads_that_race_for_one_grant_get_one_lease(ledger: Any) -> None:
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


def test_two_ledgers_see_each_others_calls(backend: Backend, ledger: Any, case) -> None:
    other = backend.open("two")
    second = Case(other, "b")
    for number in range(6):
        turn = (case, second)[number % 2]
        turn.settle(turn.lease(f"file-{number}"))
    assert codes(second.consume("file-0", limit=6)) == ("EVENT_REPEATED",)
    assert backend.differences(ledger) == 0
    assert list(other.entries()) == list(ledger.entries())
    other.close()
