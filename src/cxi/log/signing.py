"""May the present head of a log be signed?

- INVARIANT (signed-follows): only of a chain that follows from the last checkpoint: who changed the store has no signature for it
  from the next program that closes it. The entries since then are read, no others, and hashed into the tree that the last
  checkpoint left.
- INVARIANT (one-reign): never by a key that an entry retired (`cxi.log.succession`).
- One checkpoint at a time: from the look at the last one until the next is written, no other process writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, canonicalize
from cxi.errors import LedgerError, MalformedError
from cxi.log.checkpoint import CheckpointFile, Head, check, head_of, sign
from cxi.log.entry import GENESIS, EntryType, Stored, chain
from cxi.log.envelope import key_id
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.log.succession import read_introduction
from cxi.log.tree import Frontier, leaf_of
from cxi.manifest import Instant


def sign_next(
    file: CheckpointFile,
    origin: str,
    rows: Callable[[int], Iterable[Stored]],
    key: Ed25519PrivateKey,
    now: Instant,
    *,
    sync: Callable[[], None],
    after: Ed25519PublicKey | None = None,
    earlier: Iterable[Ed25519PublicKey] = (),
) -> Head:
    """Sign the head of a log, and keep the checkpoint.

    Args:
        file: Where the log's checkpoints are.
        origin: The log's name.
        rows: The log's rows as they are stored, in order, from one seq on.
        key: The key that reigns.
        now: The time that the checkpoint states.
        sync: Makes what was read durable.
        after: Where the key is a new one, the key before it: whose the last checkpoint is.
        earlier: Keys of this installation that were retired by an entry of another log than this one: where a ledger has many
            logs, a rotation is in one of them, and the last checkpoint of the others is still an earlier key's.

    Raises:
        LedgerError: where the chain does not follow, the last checkpoint is another key's or log's, the key was retired, or the
            storage fails.
    """
    with file.turn():
        envelope = file.last(origin)
        last = Head(origin, 0, GENESIS, 0.0) if envelope is None else check(envelope, (after or key.public_key(), *earlier))
        if isinstance(last, Broken):
            raise LedgerError(f"the head is not signed: the last checkpoint is no good: {last.findings[0].detail}")
        if last.origin != origin:
            raise LedgerError("the head is not signed: the last checkpoint is another log's")
        tree = last.frontier()
        start = last.size if tree is not None else 0  # one of version 1 has no tree: it is made from the first entry on
        head = follow(rows(max(start, 1)), last, tree or Frontier(), key_id(key.public_key()), now)
        if isinstance(head, Finding):
            raise LedgerError(f"the head is not signed: the log was changed, or the key: {head.detail}")
        sync()
        file.append_in_turn(sign(head, key))
    return head


def follow(rows: Iterable[Stored], last: Head, tree: Frontier, key: Digest, now: Instant) -> Head | Finding:
    """Check that what stands behind a vouched entry follows from it: what a new signature over the head has to rest on.

    Args:
        rows: From the last entry that is in the tree on (from the first one, where none is).
        last: What is vouched for.
        tree: The tree up to there, or an empty one; it grows.
        key: The id of the key that is to sign.
        now: The time of the new head.

    Returns:
        The head, or the first thing that is wrong.
    """
    known = tree.size
    seq, head = max(known - 1, 0), GENESIS
    for row in rows:
        number = row.seq
        if number != seq + 1:
            return Finding(FindingKind.REMOVED, seq + 1, f"entry {seq + 1} is missing")
        if number > known and row.previous != head:
            return Finding(FindingKind.ALTERED, number, f"entry {number} does not name the hash of the entry before it")
        found = chain(number, row.previous, row.content)
        if found != row.stated or (number == last.size and found != last.hash):
            return Finding(FindingKind.ALTERED, number, f"entry {number} does not have its hash")
        if number > known:
            tree.append(leaf_of(found))
        if number > last.size:
            wrong = _wrong(row, key)
            if wrong is not None:
                return wrong
        seq, head = number, found
    if seq < last.size:
        return Finding(FindingKind.TRUNCATED, seq + 1, f"a checkpoint covers {last.size} entries, and the last one is {seq}")
    return head_of(last.origin, head, now, tree)


def _wrong(row: Stored, key: Digest) -> Finding | None:
    """Why a new entry is none to sign over: it is not what any reader would read, or it retired the key."""
    try:
        told = row.read()
        if canonicalize(told.entry.to_json(told.time)) != row.text:
            return Finding(FindingKind.ALTERED, row.seq, f"entry {row.seq} is not canonical text")
    except MalformedError:
        return Finding(FindingKind.ALTERED, row.seq, f"entry {row.seq} cannot be read")
    if told.entry.kind is EntryType.KEY:
        introduction = read_introduction(told.entry.body.get("introduction"))
        if not isinstance(introduction, Broken) and key_id(introduction.by) == key:
            detail = f"entry {row.seq} retired the key that is to sign; `cxi log key rotate` ends a rotation that was cut off"
            return Finding(FindingKind.RETIRED_KEY, row.seq, detail)
    return None
