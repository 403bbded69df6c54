"""The primary is killed under load and its synchronous standby is promoted: no acknowledged consume is lost, none doubles."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from backend_case import Cluster, PostgresBackend
from cxi.errors import CxiError, LedgerError
from cxi.lab.postgres_server import Server
from cxi.ledger.base import Lease, State
from cxi.ledger.postgres import PostgresLedger
from cxi.log.entry import EntryType
from ledger_case import Case, start

CALLERS = 4


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Server]]:
    """A primary with the ledger, and a standby that it waits for."""
    with Server.started() as primary:
        cluster = Cluster(primary)
        with Server.started(standby_of=primary) as standby:
            follow(cluster, standby)
            yield cluster, standby


def follow(cluster: Cluster, standby: Server) -> None:
    """From now on the primary waits for this standby, and both are in step."""
    cluster.server.set({"synchronous_standby_names": f'"{standby.folder.name}"', "synchronous_commit": "remote_apply"})
    cluster.server.reload()
    until(lambda: cluster.run("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'") == [(1,)])


def until(holds: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def both(cluster: Cluster, standby: Server) -> str:
    """An address with both servers: the one that can be written is meant."""
    ports = f"{cluster.server.port},{standby.port}"
    return f"host=127.0.0.1,127.0.0.1 port={ports} dbname=postgres user=gateway connect_timeout=2"


class Load:
    """Callers that consume without a pause, each event by two of them; what was acknowledged is written down."""

    def __init__(self, ledgers: list[PostgresLedger]) -> None:
        self.ledgers = ledgers
        self.acknowledged: list[str] = []
        self.tried = self.refused = self.faults = 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(number,)) for number in range(CALLERS)]
        for thread in self.threads:
            thread.start()

    def work(self, number: int) -> None:
        ledger = self.ledgers[number % len(self.ledgers)]
        count = 0
        while not self.stopping.is_set():
            count += 1
            name = f"{number // 2}-{count}"
            case = Case(ledger, f"c{number}-{count}")
            try:
                call = case.call(name, grant=f"g{number}-{count}", sequence=1, epoch=EPOCH, deadline=time.time() + 30)
                answer = ledger.consume(*call, time.time())
                self.tried += 1
                if isinstance(answer, Lease):
                    self.acknowledged.append(answer.call)
                    if count % 3:
                        case.settle(answer, State.DONE)
                else:
                    self.refused += 1
            except CxiError:
                self.faults += 1

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


EPOCH = (1, "")


def fail_over(pair: tuple[Cluster, Server], *, before: float, after: int) -> tuple[Load, PostgresLedger]:
    """Load, kill the primary, promote the standby, and go on until so many more were acknowledged."""
    global EPOCH  # noqa: PLW0603
    cluster, standby = pair
    address = both(cluster, standby)
    ledgers = [cluster.open(f"gateway-{n}", time.time(), conninfo=address, patience=15.0, grace=60.0, host="") for n in (1, 2)]
    start(ledgers[0], now=time.time())
    EPOCH = ledgers[0].epoch("local") or EPOCH
    load = Load(ledgers)
    until(lambda: len(load.acknowledged) > 20)
    time.sleep(before)
    cluster.server.kill()
    seen = len(load.acknowledged)
    standby.promote()
    until(lambda: len(load.acknowledged) >= seen + after, 30.0)
    load.stop()
    reader = cluster.open("reader", time.time(), conninfo=address, grace=60.0, host="")
    return load, reader


def check(load: Load, reader: PostgresLedger) -> None:
    admitted = Counter(found.entry.call for found in reader.entries() if found.entry.kind is EntryType.ADMISSION)
    assert max(admitted.values()) == 1, "none happens twice"
    assert not set(load.acknowledged) - admitted.keys(), "no acknowledged consume is lost"
    assert len(load.acknowledged) == len(set(load.acknowledged))
    # Of the two callers of one event, one had it, unless the first had settled before the second asked.
    assert PostgresBackend.differences(None, reader) == 0  # type: ignore[arg-type]
    for ledger in (*load.ledgers, reader):
        ledger.close()


def test_no_acknowledged_consume_is_lost_when_the_primary_is_killed_under_load(pair: tuple[Cluster, Server]) -> None:
    load, reader = fail_over(pair, before=random.uniform(0.2, 0.8), after=20)
    check(load, reader)


@pytest.mark.slow
def test_primaries_are_killed_one_after_the_other(pair: tuple[Cluster, Server]) -> None:
    """The promoted standby gets a standby of its own, and is killed in its turn."""
    cluster, standby = pair
    check(*fail_over(pair, before=random.uniform(0.5, 2.0), after=500))
    cluster.server, cluster.admin = standby, standby.address()
    with Server.started(standby_of=standby) as following:
        follow(cluster, following)
        check(*fail_over((cluster, following), before=random.uniform(0.5, 2.0), after=500))


def test_a_commit_that_the_standby_does_not_confirm_is_never_acknowledged(pair: tuple[Cluster, Server]) -> None:
    """The server says `COMMIT` when the wait is called off; the consume is a fault all the same, and blocks until it is known."""
    cluster, standby = pair
    with pytest.raises(LedgerError):
        cluster.open("reader", conninfo=standby.address(user="gateway"), patience=0.2)  # it cannot be written
    ledger = cluster.open(patience=0.5)
    start(ledger)
    case = Case(ledger)
    case.settle(case.lease("warm"))
    call = case.call("a")
    standby.stop()
    answers: list[object] = []

    def consume() -> None:
        try:
            answers.append(ledger.consume(*call, 2.0))
        except LedgerError as error:
            answers.append(error)

    caller = threading.Thread(target=consume)
    caller.start()

    def waiting() -> bool:
        with psycopg.connect(cluster.admin, autocommit=True, options="-c synchronous_commit=local") as connection:
            return bool(
                connection.execute(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event = 'SyncRep'"
                ).fetchall()
            )

    until(lambda: bool(answers) or (waiting(), False)[1])  # again and again: to look what was done is waited for too
    caller.join()
    assert isinstance(answers[0], LedgerError)
    standby.start()
    until(lambda: cluster.run("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'") == [(1,)])
    lease = case.lease("b", sequence=3)
    case.settle(lease)
    assert ledger.calls("local", call=call[1].call)[0].state is State.FAILED, "nobody had the lease, and now it is known"
    assert PostgresBackend(cluster).differences(ledger) == 0
    ledger.close()
