"""Is the log of a copied state folder whole, by a public key that was handed over before?

- Nothing of the folder is trusted: not its key, not its database. It is only read, through a scratch copy, and never written.
- It needs no configuration; what it needs is `ledger.sqlite`, its `-wal` where there is one, and `checkpoints.jsonl`.
- A row that is no entry is a finding, and so is a log that no checkpoint vouches for.

    >>> verify_replica(Path("copied-state"), read_public(pem))    # doctest: +SKIP
    Verified(count=20, head='sha256:56d9…', signed=20)
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.errors import LedgerError, MalformedError
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile
from cxi.log.entry import ChainedEntry, read_entry
from cxi.log.finding import Broken, Finding, FindingKind

LEDGER: Final = "ledger.sqlite"
CHECKPOINTS: Final = "checkpoints.jsonl"


def verify_replica(folder: Path, key: Ed25519PublicKey) -> Verified | Broken:
    """Check the log of a copied state folder.

    Args:
        folder: The copy.
        key: The key that is trusted to vouch for this log.

    Raises:
        LedgerError: where there is no log, or it cannot be read at all.
    """
    checkpoints = CheckpointFile(folder / CHECKPOINTS).read()
    unreadable: list[Finding] = []
    answer = verify(_entries(folder / LEDGER, unreadable), checkpoints, [key])
    findings = [*unreadable, *(answer.findings if isinstance(answer, Broken) else ())]
    if not findings and isinstance(answer, Verified) and answer.count and not answer.signed:
        detail = f"no checkpoint in `{CHECKPOINTS}` covers any of the {answer.count} entries"
        findings.append(Finding(FindingKind.MALFORMED, 0, detail))
    return Broken(tuple(findings)) if findings else answer


def _entries(ledger: Path, unreadable: list[Finding]) -> Iterator[ChainedEntry]:
    if not ledger.is_file():
        raise LedgerError(f"`{ledger}` is not there: name a copied state folder")
    with tempfile.TemporaryDirectory(prefix="cxi-replica-") as scratch:
        try:
            for suffix in ("", "-wal"):  # reading a database in WAL mode writes beside it, so it is read elsewhere
                source = ledger.with_name(ledger.name + suffix)
                if source.exists():
                    shutil.copyfile(source, Path(scratch) / source.name)
            yield from _rows(Path(scratch) / ledger.name, unreadable)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"`{ledger}` cannot be read: {error}") from error


def _rows(file: Path, unreadable: list[Finding]) -> Iterator[ChainedEntry]:
    database = sqlite3.connect(file)
    try:
        database.execute("PRAGMA trusted_schema=OFF")
        for seq, previous, content in database.execute("SELECT seq, previous, content FROM log ORDER BY seq"):
            try:
                yield read_entry({"seq": seq, "previous": previous, **orjson.loads(content)})
            except (MalformedError, ValueError, TypeError):
                unreadable.append(Finding(FindingKind.ALTERED, seq if type(seq) is int else 0, f"entry {seq} cannot be read"))
    finally:
        database.close()
