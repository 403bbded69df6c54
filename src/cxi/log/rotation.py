"""How does one key take the place of another, whatever crashes in between?

1. The present key signs the head: whatever was changed before is found now, and not carried over.
2. An entry of kind `key` is chained, in which the present key introduces the next. From here on the present one signs no more.
3. The next key signs the head: its first checkpoint, behind the last one of the key before it.
4. The introduction is kept for receipts, and the next key is put in the present one's place.

- Each step is durable before the next, and done again it does nothing: `rotate` after a crash ends what was begun.
- A program that runs meanwhile signs with the key that the folder has when it signs (`cxi.log.key`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue
from cxi.errors import LedgerError, MalformedError
from cxi.log.checkpoint import CheckpointFile, Head, check
from cxi.log.entry import ChainedEntry, EntryType, LogEntry, Stored
from cxi.log.envelope import key_id
from cxi.log.finding import Broken
from cxi.log.key import NEXT_NAME, add_introduction, load_key, prepare_next, promote_next
from cxi.log.succession import introduce, read_introduction
from cxi.manifest import Instant


class Log(Protocol):
    """What a rotation needs of a ledger."""

    @property
    def origin(self) -> str: ...
    def append(self, entry: LogEntry, now: Instant, *, durable: bool = False) -> ChainedEntry: ...
    def stored(self, start: int = 1) -> Iterable[Stored]: ...
    def sign_head(self, key: Ed25519PrivateKey, now: Instant, *, after: Ed25519PublicKey | None = None) -> Head: ...


@dataclass(frozen=True, slots=True)
class Rotated:
    """One key took the place of another.

    Attributes:
        by: The id of the key that was retired.
        key: The id of the one that reigns now.
        seq: The entry that says so.
    """

    by: Digest
    key: Digest
    seq: int


def rotate(folder: Path, checkpoints: CheckpointFile, log: Log, now: Instant, *, person: str, reason: str) -> Rotated:
    """Retire the folder's key, and let a new one reign.

    Args:
        folder: Where the keys are.
        checkpoints: Of this log.
        log: The log.
        now: The time that the entry and the checkpoints state.
        person: Who does it, for the log.
        reason: Why, for the log.

    Raises:
        LedgerError: where the head cannot be signed, or the storage fails; then it can be done again.
    """
    resumed = (folder / NEXT_NAME).exists()
    present, following = load_key(folder), prepare_next(folder)
    by, to = key_id(present.public_key()), key_id(following.public_key())
    envelope = checkpoints.last(log.origin)
    signed = envelope is not None and isinstance(check(envelope, (following.public_key(),)), Head)
    begun = _introduced(log, to) if resumed else None
    if begun is None:
        log.sign_head(present, now)
        introduction = introduce(present, following.public_key(), now)
        body: dict[str, JsonValue] = {"act": "rotate", "person": person, "reason": reason, "introduction": introduction}
        seq = log.append(LogEntry(EntryType.KEY, "", "", body), now, durable=True).seq
    else:
        seq, introduction = begun
    if not signed:
        log.sign_head(following, now, after=present.public_key())
    add_introduction(folder, introduction)
    promote_next(folder)
    return Rotated(by, to, seq)


def _introduced(log: Log, key: Digest) -> tuple[int, dict[str, JsonValue]] | None:
    """The entry in which a rotation that was cut off introduced this key already."""
    for row in log.stored():
        if b'"introduction"' not in row.text:
            continue
        try:
            body: Mapping[str, JsonValue] = row.read().entry.body
        except MalformedError as error:
            raise LedgerError(f"log entry {row.seq} cannot be read") from error
        match body.get("introduction"):
            case dict(envelope):
                answer = read_introduction(envelope)
                if not isinstance(answer, Broken) and key_id(answer.key) == key:
                    return row.seq, envelope
            case _:
                pass
    return None
