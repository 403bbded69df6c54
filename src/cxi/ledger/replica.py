"""Is the log of a copied state folder whole, by a public key that was handed over before?

- Nothing of the folder is trusted: not its key, not its database. It is only read, through a scratch copy, and never written.
- It needs no configuration; what it needs is `ledger.sqlite`, its `-wal` where there is one, and `checkpoints.jsonl`.
- A row that is no entry is a finding, and so is a log that no checkpoint vouches for, or a ledger that is not what its log tells.

    >>> verify_replica(Path("copied-state"), read_public(pem))    # doctest: +SKIP
    Verified(count=20, head='sha256:56d9…', signed=20)
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.errors import LedgerError
from cxi.ledger.replay import Replay, read_standing
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile
from cxi.log.entry import Stored
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
    with _opened(folder / LEDGER) as database:
        standing = read_standing(database)
        replay = Replay(standing.head)
        answer = verify(replay.watch(_stored(database)), checkpoints, [key])
        findings = list(answer.findings) if isinstance(answer, Broken) else []
        if isinstance(answer, Verified) and answer.count and not answer.signed:
            detail = f"no checkpoint in `{CHECKPOINTS}` covers any of the {answer.count} entries"
            findings.append(Finding(FindingKind.UNSIGNED, 0, detail))
        findings.extend(replay.differences(standing))
    return Broken(tuple(findings)) if findings else answer


@contextmanager
def _opened(ledger: Path) -> Iterator[sqlite3.Connection]:
    """The database, through a scratch copy: reading one in WAL mode writes beside it."""
    if not ledger.is_file():
        raise LedgerError(f"`{ledger}` is not there: name a copied state folder")
    with tempfile.TemporaryDirectory(prefix="cxi-replica-") as scratch:
        try:
            for suffix in ("", "-wal"):
                source = ledger.with_name(ledger.name + suffix)
                if source.exists():
                    shutil.copyfile(source, Path(scratch) / source.name)
            with closing(sqlite3.connect(Path(scratch) / ledger.name)) as database:
                database.execute("PRAGMA trusted_schema=OFF")
                yield database
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"`{ledger}` cannot be read: {error}") from error


def _stored(database: sqlite3.Connection) -> Iterator[Stored]:
    for seq, previous, stated, content in database.execute("SELECT seq, previous, hash, content FROM log ORDER BY seq"):
        text = content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogatepass")
        yield Stored(seq if type(seq) is int else 0, str(previous), str(stated), text)
