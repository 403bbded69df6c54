"""What only the PostgreSQL ledger does: cut connections, writers on several hosts, the server's clock, several gateways."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from backend_case import Cluster, PostgresBackend
from cutting_relay import Relay
from cxi.canonical import digest
from cxi.errors import AuthorityError, ConfigError, LedgerError
from cxi.lab.postgres_server import Server
from cxi.ledger.base import Lease, Outcome, State
from cxi.ledger.machine import STEPS, Event
from cxi.ledger.migration import bind, describe, migrate
from cxi.ledger.postgres import PostgresLedger
from cxi.log.chain import Verified, verify
from cxi.log.entry import EntryType, LogEntry
from ledger_case import TENANT, Case, codes, start


@pytest.fixture
def ledger(postgres: Cluster) -> Iterator[PostgresLedger]:
    found = postgres.open()
    start(found)
    yield found
    found.close()


@pytest.fixture
def case(ledger: PostgresLedger) -> Case:
    return Case(ledger)


@pytest.fixture
def relay(postgres: Cluster) -> Iterator[Relay]:
    with Relay(postgres.server.port) as found:
        yield found


@pytest.fixture
def relayed(postgres: Cluster, relay: Relay) -> Iterator[PostgresLedger]:
    address = f"host=127.0.0.1 port={relay.port} dbname=postgres user=gateway"
    found = postgres.open("relayed", conninfo=address, patience=1.0)
    start(found)
    warm = Case(found, "warm")  # every statement is prepared: what is lost is the answer to the statement itself
    warm.settle(warm.lease("warm", grant="warm"))
    found.append(LogEntry(EntryType.READ, "warm", "s-1", {}), 1.0, durable=True)
    yield found
    found.abandon()


def admissions(ledger: PostgresLedger) -> list[str]:
    found = [chained.entry.call for chained in ledger.entries() if chained.entry.kind is EntryType.ADMISSION]
    return [call for call in found if not call.startswith("warm")]


# --- connections that are cut


@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_consume_that_is_cut_is_answered_with_what_the_server_did(relay: Relay, relayed: PostgresLedger, what: str) -> None:
    case = Case(relayed)
    call = case.call("a")
    relay.lose(what)
    lease = relayed.consume(*call, 2.0)
    assert isinstance(lease, Lease)
    assert admissions(relayed) == ["a-1"]
    assert codes(relayed.consume(*call, 2.0)) == ("IN_FLIGHT",)
    case.settle(lease)
    assert PostgresBackend.differences(None, relayed) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_settlement_that_is_cut_is_written_once(relay: Relay, relayed: PostgresLedger, what: str) -> None:
    case = Case(relayed)
    lease = case.lease("a")
    relay.lose(what)
    receipt = case.settle(lease)
    admission, settlement = relayed.entries_of("a-1")
    assert (receipt.admission, receipt.settlement) == (
        (admission.seq, admission.hash),
        (settlement.seq, settlement.hash),
    )
    assert PostgresBackend.differences(None, relayed) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["request", "answer"])
def test_an_entry_that_is_cut_is_written_once(relay: Relay, relayed: PostgresLedger, what: str) -> None:
    relay.lose(what)
    entry = LogEntry(EntryType.REFUSAL, "a-9", "s-1", {"reasons": ["TASK_NONE"]})
    chained = relayed.append(entry, 2.0, durable=True)
    assert [found for found in relayed.entries() if found.entry.call == "a-9"] == [chained]


@pytest.mark.parametrize("what", ["request", "answer"])
def test_what_a_person_does_is_done_once_whatever_is_cut(relay: Relay, relayed: PostgresLedger, what: str) -> None:
    case = Case(relayed)
    case.settle(case.lease("a"), State.OUTCOME_UNKNOWN)
    relay.lose(what)
    relayed.release("a-1", "ana", "looked", State.FAILED, 4.0)
    assert relayed.calls(TENANT)[0].state is State.FAILED
    relay.lose(what)
    assert relayed.activate(TENANT, digest("other"), 5.0) == (2, digest("other"))
    assert relayed.epoch(TENANT) == (2, digest("other"))


def test_a_consume_whose_answer_is_lost_for_good_gives_no_lease_and_blocks_nothing(
    relay: Relay, relayed: PostgresLedger, ledger: PostgresLedger
) -> None:
    case = Case(relayed, "b")
    call = case.call("a")
    other = case.call("b", sequence=2)
    relay.lose("answer", shut=True)
    with pytest.raises(LedgerError):
        relayed.consume(*call, 2.0)
    assert admissions(ledger) == ["b-1"], "the server did it, and nobody was told"
    assert codes(Case(ledger, "c").consume("a")) == ("IN_FLIGHT",), "so far it may be under way"
    relay.reopen()
    assert isinstance(relayed.consume(*other, 2.0), Lease)
    last = [found.entry for found in ledger.entries() if found.entry.call == "b-1"][-1]
    assert (last.kind, last.body["state"]) == (EntryType.SETTLEMENT, "failed")
    assert isinstance(Case(ledger, "c").consume("a", limit=9), Lease)


def test_a_consume_that_never_arrived_leaves_nothing(relay: Relay, relayed: PostgresLedger, ledger: PostgresLedger) -> None:
    call = Case(relayed, "b").call("a")
    relay.lose("request", shut=True)
    with pytest.raises(LedgerError):
        relayed.consume(*call, 2.0)
    assert admissions(ledger) == []
    relay.reopen()
    assert isinstance(relayed.consume(*call, 2.0), Lease)


def test_a_process_that_ends_without_knowing_leaves_an_unknown_outcome(
    postgres: Cluster, relay: Relay, relayed: PostgresLedger, ledger: PostgresLedger
) -> None:
    call = Case(relayed, "b").call("a")
    relay.lose("answer", shut=True)
    with pytest.raises(LedgerError):
        relayed.consume(*call, 2.0)
    relayed.abandon()
    while postgres.run("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid NOT IN (SELECT pid FROM pg_stat_activity)"):
        pass
    assert list(ledger.recover(3.0)) == ["b-1"]
    assert codes(Case(ledger, "c").consume("a")) == ("OUTCOME_UNKNOWN",)


def test_a_session_that_the_server_ended_is_opened_again(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    lease = case.lease("a")
    postgres.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'")
    case.settle(lease)
    postgres.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'")
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 1
    case.settle(case.lease("b"))
    assert len(ledger.origins()) == 1
    assert PostgresBackend(postgres).differences(ledger) == 0


# --- many callers


def test_callers_of_several_threads_share_one_transaction_and_one_callers_refusal_is_its_own(ledger: PostgresLedger) -> None:
    answers: dict[int, object] = {}
    calls = {number: Case(ledger, f"t{number}").call(f"f-{number % 20}", grant=f"g-{number}", sequence=1) for number in range(40)}
    ready = threading.Barrier(len(calls))

    def work(number: int) -> None:
        ready.wait()
        answers[number] = ledger.consume(*calls[number], 2.0)

    threads = [threading.Thread(target=work, args=(number,)) for number in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = sorted(codes(answer) for answer in answers.values())
    assert told == [("IN_FLIGHT",)] * 20 + [("Lease",)] * 20
    assert isinstance(verify(ledger.entries(), [], []), Verified)


def test_a_text_that_no_database_holds_harms_nobody_else(ledger: PostgresLedger, case: Case) -> None:
    manifest, draw, entry = case.call("a", grant="a\x00b", sequence=1)
    with pytest.raises(LedgerError):
        ledger.consume(manifest, draw, entry, 2.0)
    with pytest.raises(LedgerError):
        ledger.touch(TENANT, [("path", "\udc80")], (), "a-9", 2.0)
    assert isinstance(case.consume("b"), Lease)


def test_two_gateways_that_race_get_one_lease_a_call_and_wait_for_no_common_head(
    postgres: Cluster, ledger: PostgresLedger
) -> None:
    other = postgres.open("two")
    ledgers, leases = (ledger, other), [0, 0]
    rounds = 60

    def work(which: int) -> None:
        for number in range(rounds):
            call = Case(ledgers[which], f"w{which}-{number}").call(f"f-{number}", grant=f"g-{number}", sequence=1, limit=1)
            leases[which] += isinstance(ledgers[which].consume(*call, 2.0), Lease)

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(leases) == rounds
    assert len(ledger.origins()) == 1 + bool(leases[1])
    assert PostgresBackend(postgres).differences(ledger) == 0
    other.close()


# --- writers that are gone


def test_a_writer_without_a_session_is_not_gone_before_the_grace(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    lease = case.lease("a")
    postgres.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'")
    patient = postgres.open("two", grace=60.0)
    assert list(patient.recover(9.0)) == []
    case.settle(lease)
    patient.close()


def test_a_writer_with_a_session_is_not_gone_however_long_it_is_silent(
    postgres: Cluster, ledger: PostgresLedger, case: Case
) -> None:
    lease = case.lease("a")
    postgres.run("UPDATE cxi.chain SET seen = 'epoch'")
    other = postgres.open("two", grace=60.0)
    assert list(other.recover(9.0)) == []
    case.settle(lease)
    other.close()


def test_a_writer_that_was_taken_for_gone_goes_on_with_another_chain(
    postgres: Cluster, ledger: PostgresLedger, case: Case
) -> None:
    lease = case.lease("a")
    postgres.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'")
    other = postgres.open("two")
    assert codes(Case(other, "b").consume("a")) == ("OUTCOME_UNKNOWN",)
    with pytest.raises(AuthorityError):
        case.settle(lease)
    case.settle(case.lease("b"))
    assert other.calls(TENANT, call="a-1")[0].state is State.OUTCOME_UNKNOWN
    assert PostgresBackend(postgres).differences(other) == 0
    other.close()


def test_a_writer_that_beats_is_seen_and_buries_the_dead_by_itself(postgres: Cluster) -> None:
    first = postgres.open("first")
    start(first)
    Case(first).lease("a")
    second = postgres.open("second", beat=0.05)
    PostgresBackend(postgres).crash(first)
    end = time.monotonic() + 10
    while not second.calls(TENANT, states=[State.OUTCOME_UNKNOWN]):
        assert time.monotonic() < end
    second.close()


def test_an_instance_is_one_writer_at_a_time(postgres: Cluster, ledger: PostgresLedger) -> None:
    with pytest.raises(LedgerError):
        postgres.open("one")


def test_a_chain_is_continued_by_its_host_alone(postgres: Cluster) -> None:
    origins = []
    for instance, host in (("one", "x"), ("two", "y"), ("three", "x"), ("four", "")):
        ledger = postgres.open(instance, host=host)
        ledger.append(LogEntry(EntryType.READ, instance, "s", {}), 1.0)
        origins.append(ledger.origin)
        ledger.close()
    assert origins[0] == origins[2]
    assert len(set(origins)) == 3


# --- the server's clock


def test_the_servers_clock_decides_and_not_the_callers(postgres: Cluster) -> None:
    postgres.clear(clock="server")
    ledger = postgres.open(now=time.time())
    now = time.time()
    start(ledger, now=now)
    case = Case(ledger)
    assert codes(case.consume("a", now=now - 1e6, deadline=now - 60.0)) == ("EXPIRED",)
    assert codes(case.consume("a", now=now + 1e6, deadline=now + 60.0)) == ("Lease",)
    assert codes(case.consume("b", now=0.0, deadline=now + 60.0, limit=1, window=60.0)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("b", now=now + 1e6, deadline=now + 60.0, limit=1, window=60.0)) == ("GRANT_EXHAUSTED",)
    assert codes(case.consume("b", now=now + 1e6, deadline=now + 60.0, more={"not_before": now + 600.0})) == ("NOT_YET",)
    assert abs(ledger.calls(TENANT)[0].drawn - now) < 60.0
    ledger.close()


# --- epochs of several gateways


def test_other_files_are_not_put_in_force_while_a_gateway_is_at_work(
    postgres: Cluster, ledger: PostgresLedger, case: Case
) -> None:
    other = postgres.open("two", grace=60.0)
    with pytest.raises(ConfigError):
        other.activate(TENANT, digest("other"), 2.0)
    assert other.epoch(TENANT) == (1, digest("policies"))
    assert isinstance(case.consume("a"), Lease)
    assert other.activate(TENANT, digest("policies"), 2.0) == (1, digest("policies"))
    assert other.activate(TENANT, digest("other"), 2.0, explicit=True) == (2, digest("other"))
    assert codes(case.consume("b", epoch=(1, digest("policies")))) == ("EPOCH_CHANGED",)
    other.close()


def test_other_files_are_put_in_force_where_nobody_is_at_work(postgres: Cluster, ledger: PostgresLedger) -> None:
    reader = postgres.open("reader", grace=60.0)
    reader.append(LogEntry(EntryType.READ, "a", "s", {}), 1.0)
    ledger.close()
    assert reader.activate(TENANT, digest("other"), 2.0) == (2, digest("other"))
    reader.close()


# --- servers that cannot be relied on


@pytest.mark.parametrize("setting", ["fsync = off", "synchronous_commit = off", "synchronous_commit = local"])
def test_a_server_that_does_not_wait_for_the_disk_is_refused(postgres: Cluster, setting: str) -> None:
    name, _, value = setting.partition(" = ")
    standbys = "'*'" if value == "local" else "''"
    try:
        if name == "fsync":
            postgres.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        else:
            postgres.run(f"ALTER ROLE gateway SET {setting}")
        if value == "local":
            postgres.run(f"ALTER SYSTEM SET synchronous_standby_names = {standbys}", "SELECT pg_reload_conf()")
        for _ in range(100):
            try:
                postgres.open().close()
            except LedgerError:
                return
            time.sleep(0.02)
        pytest.fail("it was opened")
    finally:
        # Before anything that would wait for a standby that is not there.
        with psycopg.connect(postgres.admin, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = local")
            for statement in (
                "ALTER SYSTEM RESET fsync",
                "ALTER SYSTEM RESET synchronous_standby_names",
                "ALTER ROLE gateway RESET ALL",
                "SELECT pg_reload_conf()",
            ):
                connection.execute(statement)


def test_a_server_that_stopped_waiting_for_the_disk_leases_nothing(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    call = case.call("a")
    postgres.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        end = time.monotonic() + 10
        while True:
            try:
                ledger.consume(*call, 2.0)
            except LedgerError:
                break
            assert time.monotonic() < end
            call = case.call(f"a{time.monotonic()}")
    finally:
        postgres.run("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def test_a_role_that_is_bound_to_no_tenant_is_refused(postgres: Cluster) -> None:
    with pytest.raises(LedgerError):
        postgres.open(role="nobodys")


@pytest.mark.parametrize("role", ["gateway", "postgres", "not there"])
def test_only_a_role_that_cannot_set_it_aside_is_bound_and_to_one_tenant(postgres: Cluster, role: str) -> None:
    with pytest.raises(LedgerError):
        bind(postgres.admin, role=role, tenant="another")


def test_a_database_without_a_ledger_or_with_a_newer_one_is_refused(postgres: Cluster) -> None:
    postgres.run("CREATE DATABASE empty")
    try:
        with pytest.raises(LedgerError):
            postgres.open(conninfo=postgres.server.address(database="empty", user="gateway"))
    finally:
        postgres.run("DROP DATABASE empty WITH (FORCE)")
    assert migrate(postgres.admin) == 1, "migrating again does nothing"
    postgres.run("INSERT INTO cxi.migration VALUES (99, 'from the future')")
    try:
        with pytest.raises(LedgerError):
            migrate(postgres.admin)
        with pytest.raises(LedgerError):
            postgres.open()
    finally:
        postgres.run("DELETE FROM cxi.migration WHERE version = 99")


def test_a_server_that_is_stopped_is_a_fault_and_then_serves_again() -> None:
    with Server.started() as server:
        cluster = Cluster(server)
        ledger = cluster.open(patience=0.2)
        start(ledger)
        case = Case(ledger)
        case.settle(case.lease("a"))
        call = case.call("b")
        server.stop()
        with pytest.raises(LedgerError):
            ledger.consume(*call, 2.0)
        with pytest.raises(LedgerError):
            ledger.drawn("s-1", "g", 0.0)
        with pytest.raises(LedgerError):
            cluster.open("two")
        server.start()
        assert isinstance(ledger.consume(*call, 2.0), Lease)
        assert PostgresBackend(cluster).differences(ledger) == 0
        ledger.close()


def test_a_full_disk_is_a_fault_and_nothing_is_leased(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    """A table space of its own has a quota here: the server's own error for a full disk (53100) is raised by a trigger."""
    postgres.run(
        "CREATE OR REPLACE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON cxi.log FOR EACH ROW EXECUTE FUNCTION public.full()",
    )
    call = case.call("a")
    try:
        with pytest.raises(LedgerError):
            ledger.consume(*call, 2.0)
    finally:
        postgres.run("DROP TRIGGER full_disk ON cxi.log")
    assert isinstance(ledger.consume(*call, 2.0), Lease)


def test_a_commit_that_fails_leases_nothing(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    """A constraint that is looked at by COMMIT itself: the statement before it succeeded."""
    postgres.run(
        "CREATE OR REPLACE FUNCTION public.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'late'; END $$",
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON cxi.log DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION public.late()",
    )
    call = case.call("a")
    try:
        with pytest.raises(LedgerError):
            ledger.consume(*call, 2.0)
    finally:
        postgres.run("DROP TRIGGER late ON cxi.log")
    assert admissions(ledger) == []
    assert isinstance(ledger.consume(*call, 2.0), Lease)


def test_a_log_that_lost_what_was_durable_is_written_no_further(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    lease = case.lease("a")
    postgres.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gateway'",
        f"DELETE FROM cxi.log WHERE seq = {lease.seq}",
    )
    with pytest.raises(LedgerError):
        case.consume("b", sequence=2)
    with pytest.raises(LedgerError):
        case.consume("b", sequence=2)


def test_a_fork_must_open_its_own(ledger: PostgresLedger, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger._line, "_pid", -1)
    with pytest.raises(LedgerError):
        case.consume(sequence=1)
    monkeypatch.undo()


# --- what the database does is what the machine says


def test_the_database_moves_states_as_the_machine_does(postgres: Cluster, ledger: PostgresLedger, case: Case) -> None:
    for number, state in enumerate((State.DONE, State.FAILED, State.OUTCOME_UNKNOWN)):
        lease = case.lease(f"f{number}")
        assert case.settle(lease, state).state is STEPS[State.LEASED, Event(f"settled: {str(state).split('_')[-1]}")]
        with pytest.raises(AuthorityError):
            case.settle(lease, State.DONE)
        # What a gateway may send by itself is judged by the same rules.
        with psycopg.connect(postgres.address(), autocommit=True) as connection:
            row = connection.execute(
                "SELECT settled FROM cxi.settle(%s, %s, 's-1', %s, %s, %s, %s, 'done', NULL, '{}', false)",
                (
                    ledger._line.chain,
                    ledger._line.generation,
                    lease.manifest.invocation.grant,
                    lease.manifest.invocation.sequence,
                    lease.call,
                    bytes.fromhex(lease.manifest_digest[7:]),
                ),
            ).fetchone()
            assert row == (False,)


def test_a_settlement_says_only_what_a_settlement_may(ledger: PostgresLedger, case: Case) -> None:
    lease = case.lease("a")
    for state in (State.RELEASED, State.LEASED):
        with pytest.raises(ValueError):
            ledger.settle(lease, Outcome(state), LogEntry(EntryType.SETTLEMENT, lease.call, "s-1", {}), 2.0)


# --- addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://gateway:hunter2@127.0.0.1:1/cxi",
        "host=127.0.0.1 port=1 user=gateway password=hunter2 dbname=cxi",
        "postgresql://gateway:hunter2@127.0.0.1:1/cxi?nonsense=hunter2",
        "host=127.0.0.1 hunter2",
    ],
)
def test_a_password_is_never_shown(address: str) -> None:
    with pytest.raises(LedgerError) as caught:
        PostgresLedger(address, instance="one", now=1.0)
    shown: BaseException | None = caught.value
    assert "hunter2" not in describe(address)
    assert "hunter2" not in str(shown)


# --- what it costs


def test_a_consume_reads_no_more_rows_in_a_large_ledger_than_in_a_small_one(postgres: Cluster) -> None:
    """Plans that were made for empty tables have to hold for full ones."""
    ledger = postgres.open()
    start(ledger)
    case = Case(ledger)
    count = 300
    for number in range(count):
        answer = case.lease(f"f-{number}", grant=f"g-{number % 3}", key=f"k-{number}", limit=count, sequence=number // 3 + 1)
        case.settle(answer)
    ledger.close()
    fetched = "SELECT relname, coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'cxi'"
    end = time.monotonic() + 10
    while True:
        read = dict(postgres.run(fetched))
        if read["call"]:
            break
        assert time.monotonic() < end
    for table in ("call", "open", "log", "chain", "taken", "used", "session"):
        assert read[table] < 20 * count, table
