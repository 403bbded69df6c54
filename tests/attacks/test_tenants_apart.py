"""Threat: a tenant's gateway, or who got hold of its database role, reaches for another tenant's rows; with raw SQL too."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from backend_case import TABLES, Cluster
from cxi.canonical import digest
from cxi.errors import AuthorityError, LedgerError
from cxi.ledger.base import Lease, Mark, MarkKind, State
from cxi.ledger.postgres import PostgresLedger
from cxi.ledger.spending import values_of
from cxi.log.entry import EntryType, LogEntry
from ledger_case import TENANT, Case, codes, start

OTHER = "other"
EVERY = TABLES.split(", ")


@pytest.fixture
def victim(postgres: Cluster) -> Iterator[PostgresLedger]:
    """A tenant with something in every table."""
    found = postgres.open()
    start(found)
    start(found, "s-2")
    case = Case(found)
    case.settle(case.lease("unknown", touches=(("path", "unknown"),), influences=("web",)), State.OUTCOME_UNKNOWN)
    case.settle(case.lease("failed", key="k", repeat="replay"), State.FAILED)
    case.lease("leased", approval="p-1")
    case.settle(case.lease("vacuumed", session="s-2", now=1.5))
    found.close_session("s-2", 2.0)
    found.vacuum(1.8, 2.0)
    found.revoke(TENANT, Mark(MarkKind.TASK, "x"), person="ana", reason="over", now=2.0)
    found.endorse(TENANT, "path", "other", "ana", 2.0)
    postgres.run(
        "INSERT INTO cxi.taken VALUES ('local', 'pay', 1, 1, 1)",
        "INSERT INTO cxi.checkpoint SELECT tenant, id, 1, '{}' FROM cxi.chain",
    )
    yield found
    found.close()


@pytest.fixture
def stranger(postgres: Cluster, victim: PostgresLedger) -> Iterator[PostgresLedger]:
    found = postgres.open("stranger", role="stranger")
    found.append(LogEntry(EntryType.READ, "b", "s", {}), 2.0)
    yield found
    found.close()


@pytest.fixture
def raw(postgres: Cluster, stranger: PostgresLedger) -> Iterator[psycopg.Connection]:
    """The other tenant's role, with whatever SQL it likes."""
    with psycopg.connect(postgres.address("stranger"), autocommit=True) as connection:
        yield connection


def standing(postgres: Cluster) -> list[object]:
    """Everything that the victim has."""
    return [postgres.run(f"SELECT * FROM cxi.{table} x WHERE tenant = '{TENANT}' ORDER BY x::text") for table in EVERY]


# --- with the ledger


def test_nothing_of_another_tenant_is_seen(stranger: PostgresLedger) -> None:
    assert stranger.epoch(TENANT) is None
    assert stranger.calls(TENANT) == ()
    assert stranger.touched(TENANT) == {}
    assert stranger.drawn("s-1", "fix/files.write_file", 0.0) == 0
    assert stranger.recorded("s-1", digest(["key", "k"])) is None
    assert stranger.grants_of("s-1") is None
    assert stranger.entries_of("a-1") == ()
    assert [found.entry.call for found in stranger.entries()] == ["b"]
    assert (stranger.stats(TENANT).sessions, stranger.stats(TENANT).entries) == (0, 0)


def test_nothing_of_another_tenant_is_spent_revoked_or_released(
    postgres: Cluster, victim: PostgresLedger, stranger: PostgresLedger
) -> None:
    before = standing(postgres)
    case = Case(victim, "v")
    manifest, draw, entry = case.call("leased-by-a-stranger")
    assert codes(stranger.consume(manifest, draw, entry, 2.0)) == ("EPOCH_CHANGED",)
    for call in ("a-1", "a-3"):
        with pytest.raises(AuthorityError):
            stranger.release(call, "eve", "mine", State.DONE, 2.0)
    for refused in (
        lambda: stranger.activate(TENANT, digest("eve"), 2.0, explicit=True),
        lambda: stranger.open_session(TENANT, "eve", "a", "s-9", "c", 2.0),
        lambda: stranger.revoke(TENANT, Mark(MarkKind.SESSION, "s-1"), person="eve", reason="mine", now=2.0),
        lambda: stranger.touch(TENANT, [("path", "x")], (), "b", 2.0),
        lambda: stranger.endorse(TENANT, "path", "unknown", "eve", 2.0),
    ):
        with pytest.raises(AuthorityError):
            refused()
    stranger.close_session("s-1", 2.0)
    assert list(stranger.recover(2.0)) == []
    stranger.vacuum(1e9, 2.0)
    stranger.revoke(OTHER, Mark(MarkKind.SESSION, "s-1"), person="eve", reason="mine", now=2.0)
    assert standing(postgres) == before
    assert isinstance(case.consume("b"), Lease)


def test_the_same_names_in_two_tenants_are_two_things(
    postgres: Cluster, victim: PostgresLedger, stranger: PostgresLedger
) -> None:
    """Equal occurrences, nonces, capabilities, approvals and session names neither block nor use up each other."""
    stranger.activate(OTHER, digest("policies"), 2.0)
    stranger.open_session(OTHER, "ana", "maintainer", "s-1", "request-channel", 2.0)
    manifest, draw, entry = Case(victim).call("leased", sequence=1, approval="p-1")
    values = values_of(manifest, draw, "{}", 2.0) | {"tenant": OTHER}
    with psycopg.connect(postgres.address("stranger"), autocommit=True) as connection:
        names = [name for name in values if name != "content"]
        row = connection.execute(
            f"SELECT code FROM cxi.consume({stranger._line.chain}, {stranger._line.generation},"  # type: ignore[arg-type]
            + ", ".join(f"p_{name} => %({name})s" for name in names)
            + ", p_content => '{}')",
            values,
        ).fetchone()
    assert entry.call == draw.call
    assert row == ("LEASED",)


# --- with raw SQL


@pytest.mark.parametrize("table", EVERY)
def test_raw_sql_sees_its_own_tenants_rows_alone(postgres: Cluster, raw: psycopg.Connection, table: str) -> None:
    assert postgres.run(f"SELECT count(*) FROM cxi.{table} WHERE tenant = '{TENANT}'") != [(0,)], "else nothing is shown"
    for attempt in (
        "SELECT 1",
        "SET cxi.tenant = 'local'",
        "SET row_security = off",
        "SET search_path = pg_temp, cxi",
    ):
        raw.execute(attempt.encode())
        try:
            rows = raw.execute(f"SELECT tenant FROM cxi.{table}".encode()).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            rows = []  # `row_security = off` is an error, not a way around
        assert {row[0] for row in rows} <= {OTHER}, attempt
        raw.execute("RESET row_security")


@pytest.mark.parametrize("table", [*EVERY, "login", "migration"])
def test_raw_sql_writes_no_table_not_even_its_own_tenants(raw: psycopg.Connection, table: str) -> None:
    for statement in (
        f"INSERT INTO cxi.{table} OVERRIDING SYSTEM VALUE SELECT * FROM cxi.{table}",
        f"DELETE FROM cxi.{table}",
        f"TRUNCATE cxi.{table}",
        f"DROP TABLE cxi.{table}",
        f"ALTER TABLE cxi.{table} DISABLE ROW LEVEL SECURITY",
        f"CREATE TRIGGER x AFTER INSERT ON cxi.{table} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        f"CREATE POLICY all_of_it ON cxi.{table} USING (true)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE cxi_owner",
        "SET ROLE gateway",
        "SET SESSION AUTHORIZATION gateway",
        "UPDATE cxi.login SET tenant = 'local'",
        "SELECT * FROM cxi.login",
        "SELECT cxi.enter()",
        "SELECT cxi.alone('local')",
        "SELECT cxi.link('local', 1, 1, 'read', '', '{}')",
        "SELECT cxi.become('local', 's-1', 'fix/files.write_file', 1, 'done')",
        "SELECT cxi.index('local', '[[],[]]', 'x')",
        "SELECT cxi.give_back('local', 1, '[]')",
        "CREATE OR REPLACE FUNCTION cxi.my_tenant() RETURNS text LANGUAGE sql AS 'SELECT ''local'''",
        "CREATE TABLE cxi.mine (x int)",
        "ALTER DEFAULT PRIVILEGES FOR ROLE cxi_owner GRANT ALL ON TABLES TO stranger",
        "GRANT gateway TO stranger",
    ],
)
def test_raw_sql_has_no_way_to_another_role_or_to_the_inside(raw: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute(statement.encode())


def test_raw_calls_of_the_functions_reach_no_other_tenant(
    postgres: Cluster, victim: PostgresLedger, stranger: PostgresLedger, raw: psycopg.Connection
) -> None:
    before = standing(postgres)
    theirs, mine = victim._line, stranger._line
    grant = "'s-1', 'fix/files.write_file'"
    manifest = "decode('" + victim.calls(TENANT, call="a-3")[0].manifest[7:] + "', 'hex')"
    for statement in (
        f"SELECT cxi.append({theirs.chain}, {theirs.generation}, 'read', '', '{{}}', false)",
        f"SELECT cxi.settle({theirs.chain}, {theirs.generation}, {grant}, 3, 'a-3', {manifest}, 'done', NULL, '{{}}', false)",
        f"SELECT cxi.settle({mine.chain}, {mine.generation}, {grant}, 3, 'a-3', {manifest}, 'done', NULL, '{{}}', false)",
        f"SELECT cxi.release({mine.chain}, {mine.generation}, 'a-1', 'done', '{{}}')",
        f"SELECT cxi.abandon({mine.chain}, {mine.generation}, {grant}, 3, 'a-3', '{{}}')",
        f"SELECT cxi.bury({theirs.chain}, {mine.chain}, {mine.generation}, 'one', interval '0')",
        f"SELECT cxi.resume({theirs.chain}, {theirs.generation}, 1)",
        f"SELECT cxi.beat({theirs.chain}, {theirs.generation})",
        f"SELECT cxi.leave({theirs.chain}, {theirs.generation})",
        f"SELECT cxi.work({theirs.chain}, {theirs.generation}, 7)",
        f"SELECT cxi.keep({theirs.chain}, 1, 'forged')",
        f"SELECT cxi.close_session({mine.chain}, {mine.generation}, 's-1', '{{}}')",
        f"SELECT cxi.open_session({mine.chain}, {mine.generation}, 'local', 's-9', 'eve', 'a', 'c', '{{}}', false)",
        'SELECT cxi.touch(\'[[["path", "unknown"]], ["eve"]]\', \'b\', false)',
        "SELECT cxi.vacuum(9999999999999)",
    ):
        for setting in ("RESET cxi.tenant", "SET cxi.tenant = 'local'"):
            raw.execute(setting.encode())
            try:
                raw.execute("SET statement_timeout = '2s'")
                raw.execute(statement.encode())
            except psycopg.Error:
                pass  # refused; what matters is what is left
    assert standing(postgres) == before


def test_names_that_a_role_makes_for_itself_are_not_what_the_functions_use(
    postgres: Cluster, victim: PostgresLedger, raw: psycopg.Connection
) -> None:
    before = standing(postgres)
    raw.execute("CREATE TEMP TABLE login (role name, tenant text)")
    raw.execute("INSERT INTO login VALUES ('stranger', 'local')")
    raw.execute("CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''local'''")
    raw.execute("CREATE FUNCTION pg_temp.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
    raw.execute("SET search_path = pg_temp, pg_catalog, cxi")
    assert raw.execute("SELECT cxi.my_tenant()").fetchone() == (OTHER,)
    assert raw.execute("SELECT DISTINCT tenant FROM cxi.chain").fetchall() == [(OTHER,)]
    assert standing(postgres) == before


@pytest.mark.parametrize("table", EVERY)
def test_the_tables_owner_sees_no_tenant_by_itself(postgres: Cluster, victim: PostgresLedger, table: str) -> None:
    """Row-level security is forced: a fault in a function that forgot to name its tenant shows nothing, to nobody."""
    assert postgres.run("SET ROLE cxi_owner", f"SELECT count(*) FROM cxi.{table}") == [(0,)]


def test_a_session_that_reads_from_one_moment_cannot_consume(postgres: Cluster, victim: PostgresLedger) -> None:
    """What waited for a lock would not see what was committed meanwhile."""
    address = postgres.address() + " options='-c default_transaction_isolation=serializable'"
    with psycopg.connect(address) as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute("SELECT cxi.beat(1, 1)")
    assert caught.value.sqlstate == "CX002"


def test_an_unbound_role_calls_nothing(postgres: Cluster, victim: PostgresLedger) -> None:
    postgres.run("GRANT cxi_gateway TO nobodys")
    try:
        with psycopg.connect(postgres.address("nobodys"), autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM cxi.log").fetchone() == (0,)
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("SELECT cxi.claim('', 'x', 'y')")
            assert caught.value.sqlstate == "CX003"
        with pytest.raises(LedgerError):
            postgres.open(role="nobodys")
    finally:
        postgres.run("REVOKE cxi_gateway FROM nobodys")
