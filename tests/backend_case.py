"""The ledgers that every test of what a ledger does runs over: an SQLite file, and a PostgreSQL server that the tests start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg

from cxi.lab.postgres_server import Server
from cxi.ledger.migration import bind, migrate
from cxi.ledger.postgres import PostgresLedger
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from ledger_case import TENANT, open_ledger

GATEWAY = "gateway"
TABLES = "tenant, session, revoked, chain, log, call, open, failure, taken, used, touch, endorsed, checkpoint"


class Backend(Protocol):
    """One empty ledger, opened as often as a test likes."""

    name: str

    def open(self, instance: str = "one", now: float = 1.0) -> Any: ...
    def crash(self, ledger: Any) -> None: ...
    def differences(self, ledger: Any) -> int: ...


class SqliteBackend:
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, instance: str = "one", now: float = 1.0) -> SqliteLedger:
        return open_ledger(self.folder, instance, now)

    def crash(self, ledger: SqliteLedger) -> None:
        """What a killed process leaves: no settlement, no clean close, the lock gone."""
        ledger._writer.abandon()
        ledger._store._drop()

    def differences(self, ledger: SqliteLedger) -> int:
        """How often the ledger is not what its log tells; the log itself is whole."""
        standing = ledger.standing()
        replay = Replay(standing.head)
        assert isinstance(verify(replay.watch(ledger.entries()), [], []), Verified)
        return len(replay.differences(standing))


class Cluster:
    """A server with the ledger's database, made once a test process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.admin = server.address()
        migrate(self.admin)
        self.run(f"CREATE ROLE {GATEWAY} LOGIN", "CREATE ROLE stranger LOGIN", "CREATE ROLE nobodys LOGIN")
        self.clear()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Do this as the superuser; the rows of the last statement."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def clear(self, *, clock: str = "given") -> None:
        """An empty ledger of two tenants."""
        self.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename IN ('gateway', 'stranger')",
            "SET session_replication_role = replica",
            *(f"DELETE FROM cxi.{table}" for table in TABLES.split(", ")),
            "DELETE FROM cxi.login",
        )
        bind(self.admin, role=GATEWAY, tenant=TENANT, clock=clock)
        bind(self.admin, role="stranger", tenant="other", clock=clock)

    def address(self, role: str = GATEWAY, *, tcp: bool = False) -> str:
        return self.server.address(user=role, tcp=tcp)

    def open(self, instance: str = "one", now: float = 1.0, *, role: str = GATEWAY, **more: Any) -> PostgresLedger:
        """Open the ledger with no grace and no beat of its own, so that nothing depends on time."""
        more = {"host": "host", "grace": 0.0, "beat": 0.0, "patience": 5.0, **more}
        return PostgresLedger(more.pop("conninfo", self.address(role)), instance=instance, now=now, **more)


class PostgresBackend:
    name = "postgres"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def open(self, instance: str = "one", now: float = 1.0) -> PostgresLedger:
        return self.cluster.open(instance, now)

    def crash(self, ledger: PostgresLedger) -> None:
        """What a killed process leaves: no settlement, no clean close, the session gone."""
        pid = ledger._line._connection.info.backend_pid if ledger._line._connection is not None else 0
        ledger.abandon()
        while self.cluster.run(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
            pass

    def differences(self, ledger: PostgresLedger) -> int:
        """As `SqliteBackend.differences`, and every chain is whole."""
        for origin in ledger.origins():
            assert isinstance(verify(ledger.entries(origin=origin), [], []), Verified)
        return len(ledger.differences())


@contextmanager
def cluster() -> Iterator[Cluster]:
    with Server.started() as server:
        yield Cluster(server)
