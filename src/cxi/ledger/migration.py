"""Does this database hold a ledger, of which version, and whose roles may use it?

- Migrations only go forward. Each is one file of `migrations/`, applied once, in one transaction, under an advisory lock; a
  database
  that is newer than this program is refused.
- Whoever migrates may make roles and owns the database or is a superuser. The ledger itself belongs to `cxi_owner`, which
  nobody logs
  in as; gateways' roles are members of `cxi_gateway`, which may call its functions and write no table.
- A role is bound to one tenant by the database, never by what a gateway says (`bind`).

    migrate("host=db dbname=cxi user=postgres")
    bind("host=db dbname=cxi user=postgres", role="acme_gateway", tenant="acme")
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from cxi.errors import LedgerError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

OWNER: Final = "cxi_owner"
GATEWAY: Final = "cxi_gateway"
MIGRATIONS: Final = ("0001-ledger.sql",)
VERSION: Final = len(MIGRATIONS)
APPLICATION: Final = "cxi"

_LOCK: Final = 4_850_771_443_501  # of this program's migrations, whatever their version
_SECRETS: Final = re.compile(r"(password|passfile|sslkey|sslpassword)", re.IGNORECASE)


def migrate(conninfo: str) -> int:
    """Bring a database to this program's version; the version that it had.

    Raises:
        LedgerError: where it is newer, the role may not, or the server cannot be reached.
    """
    owner = sql.Identifier(OWNER)
    with administer(conninfo) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        for role in (OWNER, GATEWAY):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))
        row = connection.execute("SELECT pg_has_role(%s, 'MEMBER')", (OWNER,)).fetchone()
        if row is not None and not row[0]:
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(owner))
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS cxi AUTHORIZATION {}").format(owner))
        connection.execute(sql.SQL("SET ROLE {}").format(owner))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS cxi.migration"
            " (version int PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        found = version(connection)
        if found > VERSION:
            raise LedgerError(f"the database has ledger version {found}, and this program knows {VERSION}: use a newer program")
        for number, name in enumerate(MIGRATIONS[found:], start=found + 1):
            with connection.transaction():
                connection.execute(_text(name).encode())
                connection.execute("INSERT INTO cxi.migration (version, name) VALUES (%s, %s)", (number, name))
                connection.execute(sql.SQL("GRANT SELECT ON cxi.migration TO {}").format(sql.Identifier(GATEWAY)))
        return found


def bind(conninfo: str, *, role: str, tenant: str, clock: str = "server") -> None:
    """Let a role act for one tenant, and for no other.

    Args:
        conninfo: As for `migrate`.
        role: A role that is there; it becomes a member of `cxi_gateway`.
        tenant: The tenant's name, as its configuration says it.
        clock: `server`; `given` lets the gateway's clock decide in place of the server's, for tests.

    Raises:
        LedgerError: where the role is not there, is bound to another tenant, or could set the binding aside.
    """
    with administer(conninfo) as connection:
        row = connection.execute(
            "SELECT rolsuper OR rolbypassrls, pg_has_role(rolname, %s, 'MEMBER') FROM pg_roles WHERE rolname = %s", (OWNER, role)
        ).fetchone()
        if row is None:
            raise LedgerError(f"there is no role `{role}`: make it first, with `CREATE ROLE … LOGIN`")
        if row[0] or row[1]:
            raise LedgerError(
                f"the role `{role}` could set its binding aside: it is a superuser, bypasses row security or is the owner"
            )
        with connection.transaction():
            connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(GATEWAY), sql.Identifier(role)))
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(OWNER)))
            connection.execute("SELECT set_config('cxi.tenant', %s, true)", (tenant,))
            connection.execute("INSERT INTO cxi.tenant (tenant, clock) VALUES (%s, %s) ON CONFLICT DO NOTHING", (tenant, clock))
            connection.execute("INSERT INTO cxi.login VALUES (%s, %s) ON CONFLICT DO NOTHING", (role, tenant))
            bound = connection.execute("SELECT tenant FROM cxi.login WHERE role = %s", (role,)).fetchone()
        if bound is None or bound[0] != tenant:
            raise LedgerError(f"the role `{role}` is bound to another tenant")


def version(connection: Connection) -> int:
    """The version of the ledger in this database; 0 where there is none."""
    row = connection.execute("SELECT to_regclass('cxi.migration') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM cxi.migration").fetchone()
    return int(row[0]) if row is not None else 0


@contextmanager
def administer(conninfo: str) -> Iterator[Connection]:
    """A connection for what an administrator does; its faults are `LedgerError`."""
    try:
        with psycopg.connect(conninfo, autocommit=True, application_name=APPLICATION) as connection:
            yield connection
    except psycopg.Error as error:
        raise LedgerError(f"{describe(conninfo)}: {fault(error)}") from error


def describe(conninfo: str) -> str:
    """Which database it is, to be shown: never its password."""
    try:
        found = conninfo_to_dict(conninfo)
    except Exception:  # noqa: BLE001  # what cannot be read is not shown: a part of it may be the password
        return "the ledger's address"
    shown = (f"{name}={found[name]}" for name in ("host", "port", "dbname", "user") if found.get(name))
    return "PostgreSQL (" + ", ".join(shown) + ")"


def fault(error: BaseException) -> str:
    """One line of a driver's error, without what could be a secret."""
    text = " ".join(str(error).split()) or type(error).__name__
    return type(error).__name__ if _SECRETS.search(text) and "=" in text else text


def _text(name: str) -> str:
    return resources.files("cxi.ledger").joinpath("migrations", name).read_text(encoding="utf-8")
