"""Is this log whole?

- `verify` recomputes every hash from what the entries tell, follows the links, and holds the result against signed checkpoints.
- It names what is wrong: `removed`, `reordered`, `repeated`, `altered`, `truncated`, and checkpoints that are `forged` or
  `malformed`.
- Where a link breaks, the entry before it was altered, unless a checkpoint vouches for that entry or the later entry holds
  exactly with
  the link put right; then the later one was.
- Entries after the last checkpoint are linked, but a cut at the end cannot be seen there: `Verified.signed` says how far
  signatures reach.

    >>> verify([], [], [])
    Verified(count=0, head='sha256:0000000000000000000000000000000000000000000000000000000000000000', signed=0)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, digest_bytes
from cxi.errors import MalformedError
from cxi.log.checkpoint import Head, check
from cxi.log.entry import GENESIS, ChainedEntry, chain
from cxi.log.finding import Broken, Finding, FindingKind


@dataclass(frozen=True, slots=True)
class Verified:
    """The log is whole.

    Attributes:
        count: How many entries.
        head: The last one's hash.
        signed: How many of them checkpoints cover.
    """

    count: int
    head: Digest
    signed: int = 0


@dataclass(slots=True)
class _Reading:
    """What one pass over the entries leaves behind: two digests an entry, and the entries whose link looks wrong."""

    previous: dict[int, Digest]
    hashes: dict[int, Digest]
    suspects: dict[int, ChainedEntry]
    findings: list[Finding]
    highest: int = 0


def verify(
    entries: Iterable[ChainedEntry], checkpoints: Iterable[JsonValue], public_keys: Iterable[Ed25519PublicKey]
) -> Verified | Broken:
    """Check a log from its first entry on.

    Args:
        entries: All entries, in the order in which they stand.
        checkpoints: DSSE envelopes, in any order.
        public_keys: The keys that are trusted to vouch for this log.
    """
    reading = _read(entries)
    keys = tuple(public_keys)
    heads, findings = _check_all(checkpoints, keys)
    vouched = {head.size: head.hash for head in heads}
    found = [*reading.findings, *_removed(reading), *_links(reading, vouched), *_against(reading, heads), *findings]
    if found:
        found.sort(key=lambda finding: (finding.seq, finding.kind))
        return Broken(tuple(_distinct(found)))
    signed = max((head.size for head in heads), default=0)
    return Verified(reading.highest, reading.hashes.get(reading.highest, GENESIS), signed)


def follow(rows: Iterable[tuple[int, Digest, Digest, bytes]], last: tuple[int, Digest]) -> tuple[int, Digest] | Finding:
    """Check that what stands behind a vouched entry follows from it: what a new signature over the head has to rest on.

    Args:
        rows: (seq, previous, hash, content) as they are stored, from the vouched entry on, in order.
        last: The vouched entry's seq and hash; (0, `GENESIS`) for the whole log.

    Returns:
        The last entry's seq and hash, or the first thing that is wrong.
    """
    size, vouched = last
    seq, head = max(size - 1, 0), GENESIS
    for number, previous, stored, content in rows:
        if number != seq + 1:
            return Finding(FindingKind.REMOVED, seq + 1, f"entry {seq + 1} is missing")
        if number > size and previous != head:
            return Finding(FindingKind.ALTERED, number, f"entry {number} does not name the hash of the entry before it")
        found = chain(number, previous, digest_bytes(content))
        if found != stored or (number == size and found != vouched):
            return Finding(FindingKind.ALTERED, number, f"entry {number} does not have its hash")
        seq, head = number, found
    if seq < size:
        return Finding(FindingKind.TRUNCATED, seq + 1, f"a checkpoint covers {size} entries, and the last one is {seq}")
    return seq, head


def _distinct(findings: list[Finding]) -> Iterable[Finding]:
    """An altered entry can be seen by its link and by a checkpoint; it is named once. Each bad checkpoint is named."""
    seen: set[tuple[FindingKind, int]] = set()
    for finding in findings:
        if finding.seq and (finding.kind, finding.seq) in seen:
            continue
        seen.add((finding.kind, finding.seq))
        yield finding


def _read(entries: Iterable[ChainedEntry]) -> _Reading:
    reading = _Reading({}, {0: GENESIS}, {}, [])
    before = GENESIS
    for entry in entries:
        seq = entry.seq
        found = _hash(entry)
        if not found:
            reading.findings.append(Finding(FindingKind.ALTERED, seq, f"entry {seq} holds what no log holds"))
        if seq < 1:
            reading.findings.append(Finding(FindingKind.ALTERED, seq, f"an entry claims place {seq}"))
            continue
        if seq in reading.previous:
            reading.findings.append(Finding(FindingKind.REPEATED, seq, f"two entries claim place {seq}"))
            continue
        if seq < reading.highest:
            reading.findings.append(Finding(FindingKind.REORDERED, seq, f"entry {seq} stands after entry {reading.highest}"))
        reading.previous[seq] = entry.previous
        reading.hashes[seq] = found
        if entry.previous != before:
            reading.suspects[seq] = entry
        before = found
        reading.highest = max(reading.highest, seq)
    return reading


def _hash(entry: ChainedEntry) -> Digest:
    """The entry's hash, or empty where it holds what has no canonical form."""
    try:
        return entry.hash
    except MalformedError:
        return ""


def _removed(reading: _Reading) -> Iterable[Finding]:
    """One finding a gap, at its first missing place."""
    start = 0
    for seq in range(1, reading.highest + 2) if len(reading.previous) != reading.highest else ():
        if seq in reading.previous or seq > reading.highest:
            if start:
                count = seq - start
                missing = "1 entry is" if count == 1 else f"{count} entries are"
                yield Finding(FindingKind.REMOVED, start, f"{missing} missing from {start} on")
            start = 0
        else:
            start = start or seq


def _links(reading: _Reading, vouched: dict[int, Digest]) -> Iterable[Finding]:
    for seq, previous in reading.previous.items():
        before = reading.hashes.get(seq - 1)
        if before is None or previous == before:
            continue
        mended = reading.suspects.get(seq)
        following = reading.previous.get(seq + 1)
        right = _hash(replace(mended, previous=before)) if mended is not None else ""
        exact = bool(right) and right in (following, vouched.get(seq))
        if seq == 1 or exact or vouched.get(seq - 1) == before:
            yield Finding(FindingKind.ALTERED, seq, f"entry {seq} does not name the hash of the entry before it")
        else:
            yield Finding(FindingKind.ALTERED, seq - 1, f"entry {seq - 1} does not have the hash that entry {seq} names")


def _check_all(checkpoints: Iterable[JsonValue], keys: tuple[Ed25519PublicKey, ...]) -> tuple[list[Head], list[Finding]]:
    heads: list[Head] = []
    findings: list[Finding] = []
    for number, envelope in enumerate(checkpoints, start=1):
        answer = check(envelope, keys)
        if isinstance(answer, Head):
            heads.append(answer)
        else:
            findings.extend(replace(finding, detail=f"checkpoint {number}: {finding.detail}") for finding in answer.findings)
    if len({head.origin for head in heads}) > 1:
        findings.append(Finding(FindingKind.MALFORMED, 0, "the checkpoints are of several logs"))
    return heads, findings


def _against(reading: _Reading, heads: list[Head]) -> Iterable[Finding]:
    furthest = max((head.size for head in heads), default=0)
    if furthest > reading.highest:
        detail = f"a checkpoint covers {furthest} entries, and the last one is {reading.highest}"
        yield Finding(FindingKind.TRUNCATED, reading.highest + 1, detail)
    for head in heads:
        found = reading.hashes.get(head.size)
        if found is not None and found != head.hash:
            detail = f"entry {head.size} does not have the hash that a checkpoint vouches for"
            yield Finding(FindingKind.ALTERED, head.size, detail)
