"""`cxi ledger migrate|bind|activate`: what an operator does once, to a PostgreSQL ledger of many gateways."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cxi.cli.open import open_book
from cxi.cli.output import Config, Json, give, say
from cxi.errors import LedgerError

Admin = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="CXI_LEDGER_ADMIN",
        show_envvar=True,
        help="postgresql://ADMIN@HOST/DATABASE, as who may make roles; a password belongs into PGPASSFILE",
    ),
]


def migrate(ledger: Admin, json: Json = False) -> None:
    """Make the ledger's tables and functions in a database, or bring them to this program's version. Only ever forward."""
    _need_driver()
    from cxi.ledger.migration import VERSION
    from cxi.ledger.migration import migrate as bring

    before = bring(ledger)
    if json:
        give({"before": before, "version": VERSION})
        return
    say(f"the ledger has version {VERSION}" + ("" if before == VERSION else f"; it had {before}" if before else ", and is new"))


def bind(
    ledger: Admin,
    role: Annotated[str, typer.Option("--role", help="the database role that the tenant's gateways log in as")],
    tenant: Annotated[str, typer.Option("--tenant", help="the tenant, as `tenant:` of the configuration says it")],
) -> None:
    """Let a database role act for one tenant, and for no other. The role has to be there."""
    _need_driver()
    from cxi.ledger.migration import bind as let

    let(ledger, role=role, tenant=tenant)
    say(f"bound: {role} to {tenant}")


def activate(config: Config = "", json: Json = False) -> None:
    """Put this configuration's files in force: gateways at work under others refuse from now on, until they are started anew."""
    with open_book(config) as book:
        counter, digest = book.ledger.activate(book.config.tenant, book.config.digest, time.time(), explicit=True)
    if json:
        give({"epoch": [counter, digest]})
        return
    say(f"in force: epoch {counter}, {digest[:23]}…")


def _need_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise LedgerError("a ledger in PostgreSQL needs the extra `postgres`: `pip install 'cxi[postgres]'`") from error
