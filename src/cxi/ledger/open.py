"""Which ledger does a configuration mean, and how is it opened?

- No address: the SQLite file in the state folder. `postgresql://…`: a PostgreSQL database, whose driver is loaded only then.
- `CXI_LEDGER` stands before what the configuration says, and an option of the command line before both.
- A chain in a PostgreSQL ledger belongs to the state folder by whose key it is signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from cxi.errors import LedgerError
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.envelope import key_id
from cxi.log.key import first_key, load_key
from cxi.manifest import Instant

if TYPE_CHECKING:
    from cxi.ledger.postgres import PostgresLedger

AnyLedger: TypeAlias = "SqliteLedger | PostgresLedger"

FILE: Final = "ledger.sqlite"
CHECKPOINTS: Final = "checkpoints.jsonl"
VARIABLE: Final = "CXI_LEDGER"
SCHEMES: Final = ("postgresql://", "postgres://")


def address_of(configured: str, environ: Mapping[str, str], given: str = "") -> str:
    """The address of the ledger; empty for the file in the state folder."""
    return given or environ.get(VARIABLE, "") or configured


def open_ledger(
    address: str, state: Path, *, tenant: str, instance: str, clock: Callable[[], Instant], beats: bool = True
) -> AnyLedger:
    """Open the ledger.

    Args:
        address: Of `address_of`.
        state: The state folder.
        tenant: The configuration's; a database that takes its role for another's is refused.
        instance: Names this writer.
        clock: Seconds since the epoch.
        beats: Whether it says that it is there, and looks for writers that are gone: a command that soon ends need not.

    Raises:
        LedgerError: where it cannot be used.
    """
    if not address:
        return SqliteLedger(state / FILE, instance=instance, now=clock())
    if not address.startswith(SCHEMES):
        raise LedgerError("the ledger's address is `postgresql://USER@HOST/DATABASE`")
    load_key(state)
    try:
        from cxi.ledger.postgres import BEAT_SECONDS, PostgresLedger  # noqa: PLC0415  # an optional part
    except ImportError as error:
        raise LedgerError("a ledger in PostgreSQL needs the extra `postgres`: `pip install 'cxi[postgres]'`") from error
    ledger = PostgresLedger(
        address,
        instance=instance,
        now=clock(),
        host=key_id(first_key(state)),
        checkpoints=state / CHECKPOINTS,
        clock=clock,
        beat=BEAT_SECONDS if beats else 0.0,
    )
    if ledger.tenant != tenant:
        ledger.close()
        raise LedgerError(f"the ledger's role is bound to tenant `{ledger.tenant}`, and the configuration is `{tenant}`'s")
    return ledger
