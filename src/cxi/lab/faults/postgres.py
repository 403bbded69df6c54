"""What if the ledger is a server, and the line to it is cut? A real PostgreSQL server of the experiment's own.

- A fresh ledger is a database of its own on one server; the server's clock decides, as it does in use.
- `Relay` stands between a ledger and the server's port. It passes bytes on, and, once armed, cuts both lines: before a request
  reaches the server, after the request and before its answer, or in the midst of the answer.
- What the caller has to get is the true answer, or a fault that no sink is called after. Never a lease that the server does not
  hold, and in the end, however often it was cut, one effect.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import psycopg

from cxi.errors import CxiError, LedgerError
from cxi.lab.faults import worker
from cxi.lab.faults.delivery import TENANT, Delivery, settle, told
from cxi.lab.faults.ground import Ground, Plan, Site, Tally, settle_unknown, site
from cxi.lab.postgres_server import Server
from cxi.ledger.base import Lease, State
from cxi.ledger.migration import bind, migrate
from cxi.log.entry import EntryType

ROLE: Final = "gateway"
PATIENCE: Final = 20.0


class PostgresGround:
    """One database a ledger, on one server."""

    name = "postgres"

    def __init__(self, server: Server) -> None:
        self.server = server
        self._count = 0
        self.run("postgres", f"CREATE ROLE {ROLE} LOGIN")

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[PostgresGround]:
        """A server that runs while the block does.

        Raises:
            Unavailable: where there is no PostgreSQL here.
        """
        with Server.started() as server:
            yield cls(server)

    def fresh(self, folder: Path) -> str:  # noqa: ARG002  # the server has a folder of its own
        """See `Ground.fresh`."""
        self.run("postgres", f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
        self._count += 1
        self.run("postgres", f"CREATE DATABASE {self.database}")
        admin = self.server.address(database=self.database)
        migrate(admin)
        bind(admin, role=ROLE, tenant=TENANT)
        return self.server.address(database=self.database, user=ROLE)

    def quiet(self) -> None:
        """Wait until the server has seen that killed clients are gone."""
        until = time.monotonic() + PATIENCE
        count = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{ROLE}'"  # noqa: S608  # constants of this module
        while self.run("postgres", count) != [(0,)] and time.monotonic() < until:
            time.sleep(0.01)

    def cut(self) -> int:
        """End every session of gateways; how many."""
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'"  # noqa: S608  # as above
        return len(self.run("postgres", end))

    @property
    def database(self) -> str:
        """The database of the freshest ledger."""
        return f"site_{self._count}"

    def run(self, database: str, statement: str) -> list[tuple[Any, ...]]:
        """Do this as the superuser."""
        with psycopg.connect(self.server.address(database=database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description is not None else []


class Cut(StrEnum):
    """When a relay cuts."""

    BEFORE_THE_REQUEST = "before the request reaches the server"
    BEFORE_THE_ANSWER = "after the request, before its answer"
    WITHIN_THE_ANSWER = "in the midst of the answer"


class Relay:
    """A TCP relay to the server that cuts what it is told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._armed: Cut | None = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut) -> None:
        """Cut the next line on which a request is sent."""
        with self._lock:
            self._armed = cut

    def close(self) -> None:
        """Take no more lines; those that are open end with the processes at their ends."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            state: dict[str, Cut | None] = {"pending": None}
            for source, target, requests in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=(source, target, requests, state), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, requests: bool, state: dict[str, Cut | None]) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if requests:
                    with self._lock:
                        cut, self._armed = self._armed, None
                    if cut is Cut.BEFORE_THE_REQUEST:
                        self.cuts += 1
                        break
                    state["pending"] = cut if cut is not None else state["pending"]
                elif state["pending"] is not None:
                    self.cuts += 1
                    if state["pending"] is Cut.WITHIN_THE_ANSWER:
                        target.sendall(data[: len(data) // 2])
                    break
                target.sendall(data)
        for line in (source, target):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()


def connections(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Every cut, in `consume` and in `settle`; sessions that are ended at random; the server killed with -9."""
    if isinstance(ground, PostgresGround):
        for step in ("consume", "settle"):
            for cut in Cut:
                yield _cut_once(ground, plan, step, cut)
        yield ended_at_random(ground, plan)
        yield server_killed(ground, plan)


def _cut_once(ground: PostgresGround, plan: Plan, step: str, cut: Cut) -> Tally:
    plan.report(f"connection cut in {step}: {cut}")
    with site(ground, f"connection cut in {step}", how=str(cut)) as at:
        relay = Relay(ground.server.port)
        host = ground.server.address(database=ground.database, user=ROLE, tcp=True)
        direct, at.address = at.address, host.replace(f"port={ground.server.port}", f"port={relay.port}")
        first = Delivery("pay", "a-1", grant="pay", key="k", repeat="replay")
        ledger = at.ledger()
        at.perform(ledger, Delivery("warm", "w-1"))
        try:
            if step == "consume":
                ledger.drawn(first.session, first.grant, 0.0)
                relay.arm(cut)
                at.perform(ledger, Delivery("pay", "a-1", grant="pay", key="k", repeat="replay", sequence=1))
            else:
                answer = at.consume(ledger, first)
                if isinstance(answer, Lease):
                    worker.launch(at.sink.address, answer, "do")
                    relay.arm(cut)
                    settle(ledger, answer, State.DONE, time.time())
        except LedgerError:
            at.tally.refusals["LEDGER_UNAVAILABLE"] += 1
        at.tally.expect(relay.cuts == 1, f"{relay.cuts} lines were cut")
        at.tally.expect(at.happened("pay") <= 1, "it happened twice")
        with suppress(CxiError):
            at.shut()
        at.open.clear()
        relay.close()
        at.address = direct
        ground.quiet()
        _finish(at, first)
        at.check()
    return at.tally


def _finish(at: Site, first: Delivery) -> None:
    """Deliver again until it is done: in the end it has happened once."""
    ledger = at.ledger()
    answer = ""
    for attempt in range(2):
        answer = told(at.perform(ledger, first.again(f"b-{attempt}")))
        if answer in ("lease", "recorded"):
            break
        settle_unknown(ledger, at, [record.call for record in ledger.calls(TENANT, states=[State.OUTCOME_UNKNOWN])])
    at.tally.expect(answer in ("lease", "recorded"), f"the last delivery was answered with `{answer}`")
    at.tally.expect(at.happened(first.event) == 1, f"in the end it happened {at.happened(first.event)} times")


def ended_at_random(ground: PostgresGround, plan: Plan) -> Tally:
    """Sessions that the server ends while calls are under way."""
    rng = random.Random(plan.seed)  # noqa: S311
    with site(ground, "sessions ended at random", how="pg_terminate_backend") as at:
        plan.report("sessions ended at random")
        ledger, over = at.ledger(), threading.Event()

        def end() -> None:
            while not over.wait(rng.uniform(0.01, 0.3)):
                ground.cut()

        ending = threading.Thread(target=end)
        ending.start()
        try:
            _work(at, ledger, time.monotonic() + max(2.0, plan.seconds * 0.1))
        finally:
            over.set()
            ending.join()
        _end(at, ground)
    return at.tally


def server_killed(ground: PostgresGround, plan: Plan) -> Tally:
    """The whole server killed with -9 under load, three times, and started again."""
    with site(ground, "server killed", how="SIGKILL to the postmaster and all that it started, 3 times") as at:
        for life in range(3):
            plan.report(f"server killed, life {life + 1}")
            ledger, over = at.ledger(), threading.Event()
            worked = threading.Thread(
                target=_work, args=(at, ledger, time.monotonic() + 60), kwargs={"until": over, "life": life}
            )
            worked.start()
            time.sleep(0.4)
            ground.server.kill()
            at.tally.killed += 1
            over.set()
            worked.join()
            with suppress(CxiError):
                at.shut()
            at.open.clear()
            ground.server.start()
        _end(at, ground)
    return at.tally


def _work(at: Site, ledger: Any, end: float, *, until: threading.Event | None = None, life: int = 0) -> None:
    number = 0
    while time.monotonic() < end and not (until is not None and until.is_set()):
        number += 1
        try:
            at.perform(ledger, Delivery(f"pay-{life}-{number}", f"a-{life}-{number}", grant=f"g-{number % 5}"))
        except LedgerError:
            at.tally.count("LEDGER_UNAVAILABLE")


def _end(at: Site, ground: PostgresGround) -> None:
    """What nobody knows is looked up; then every event can happen, and none twice."""
    with suppress(CxiError):
        at.shut()
    at.open.clear()
    ground.quiet()
    ledger = at.ledger()
    told_of = [chained.entry.call for chained in ledger.entries() if chained.entry.kind is EntryType.PERSON]
    unknown = [record.call for record in ledger.calls(TENANT, states=[State.OUTCOME_UNKNOWN], most=1_000_000)]
    settle_unknown(ledger, at, [call for call in unknown if call not in told_of])
    at.shut()
    at.check()
