"""Is this log whole?

- `verify` recomputes every hash from what the entries tell, follows the links, and holds chain and tree against signed
  checkpoints, each of which must be signed by the key that reigned there.
- It names what is wrong: `removed`, `inserted`, `reordered`, `repeated`, `altered`, `truncated` (`cxi.log.reading` tells them
  apart), and checkpoints that are `forged`, `malformed`, or of an `unknown-key` or a `retired-key`.
- Where a link breaks, the entry before it was altered, unless a checkpoint vouches for that entry or the later entry holds
  exactly with the link put right; then the later one was.
- What is rewritten with all hashes behind it has no broken link: the first checkpoint behind it shows it, and between which two.
- Entries after the last checkpoint are linked, but a cut or a rewrite at the end cannot be seen there: `Verified.signed` says how
  far signatures reach.

    >>> verify([], [], []).count
    0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import Digest, JsonValue
from cxi.log.checkpoint import Head, check, claimed
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.log.reading import Item, Reading
from cxi.log.succession import Reigns, judge, succeed
from cxi.log.tree import Frontier, write_digest


@dataclass(frozen=True, slots=True)
class Verified:
    """The log is whole.

    Attributes:
        count: How many entries.
        head: The last one's hash; empty where an export left it out, and of several logs together.
        signed: How many of them checkpoints cover.
        root: The Merkle root over all of them.
    """

    count: int
    head: Digest
    signed: int = 0
    root: Digest = field(default="", compare=False)


def verify(
    entries: Iterable[Item],
    checkpoints: Iterable[JsonValue],
    public_keys: Iterable[Ed25519PublicKey],
    *,
    origin: str = "",
    introductions: Iterable[JsonValue] = (),
    show: Callable[[bytes], None] | None = None,
) -> Verified | Broken:
    """Check a log from its first entry on.

    Args:
        entries: All entries, in the order in which they stand; with runs of them left out where it is an export.
        checkpoints: DSSE envelopes and notes, in any order.
        public_keys: The keys that are trusted to vouch for this log.
        origin: The log's name, where it is known: a checkpoint of another log is a finding.
        introductions: Keys that were introduced before this log began.
        show: Is shown each leaf of the tree on the way, in order: for proofs (`cxi.log.proof.Prover.append`).
    """
    envelopes = tuple(checkpoints)
    reading = Reading(frozenset(head.size for head in map(claimed, envelopes) if head is not None), show)
    reading.read(entries)
    introduced = [*((0, one) for one in introductions), *reading.introductions]
    reigns, unsuited = succeed(public_keys, introduced)
    heads, findings = _check_all(envelopes, reigns, origin)
    vouched = {head.size: head.hash for head in heads if head.hash}
    found = [*reading.findings, *reading.gaps(), *reading.links(vouched), *unsuited]
    found += _against(reading, heads, min((finding.seq for finding in found), default=reading.place + 1))
    found += findings
    held = [head for head in heads if reigns[head.signer].trusted and _holds(head, reading)]
    if reading.skipped > max((head.size for head in held if head.root), default=0):
        detail = f"entries up to {reading.skipped} are left out, and no checkpoint vouches for the tree over them"
        found.append(Finding(FindingKind.UNSIGNED, reading.skipped, detail))
    if found:
        found.sort(key=lambda finding: (finding.seq, finding.kind))
        return Broken(tuple(_distinct(found)))
    signed = max((head.size for head in held), default=0)
    return Verified(reading.place, reading.head, signed, write_digest(reading.tree.root()) if reading.tree is not None else "")


def verify_all(
    chains: Mapping[str, Iterable[Item]],
    checkpoints: Iterable[JsonValue],
    public_keys: Iterable[Ed25519PublicKey],
    *,
    introductions: Sequence[JsonValue] = (),
    show: Mapping[str, Callable[[bytes], None]] | None = None,
) -> Mapping[str, Verified | Broken]:
    """Check several logs under one set of keys: a ledger of many writers has one chain each.

    Args:
        chains: The entries by the log's name.
        checkpoints: Of all of them.
        public_keys: As for `verify`.
        introductions: As for `verify`.
        show: As for `verify`, by the log's name.

    Returns:
        The answer by the log's name. A log that only a checkpoint knows of is among them, as one that is truncated; checkpoints
        that name no log are under the empty name.
    """
    keys = tuple(public_keys)
    groups: dict[str, list[JsonValue]] = {name: [] for name in chains}
    for envelope in checkpoints:
        head = claimed(envelope)
        groups.setdefault("" if head is None else head.origin, []).append(envelope)
    return {
        name: verify(chains.get(name, ()), group, keys, origin=name, introductions=introductions, show=(show or {}).get(name))
        for name, group in groups.items()
    }


def fold(answers: Mapping[str, Verified | Broken]) -> Verified | Broken:
    """One answer for several logs: every finding, with the log's name where there are several; else how many entries in all."""
    findings = [
        replace(finding, detail=f"{name}: {finding.detail}" if len(answers) > 1 and name else finding.detail)
        for name, answer in answers.items()
        if isinstance(answer, Broken)
        for finding in answer.findings
    ]
    if findings:
        return Broken(tuple(findings))
    whole = [answer for answer in answers.values() if isinstance(answer, Verified)]
    if len(whole) == 1:
        return whole[0]
    return Verified(sum(one.count for one in whole), "", sum(one.signed for one in whole))


def _distinct(findings: list[Finding]) -> Iterable[Finding]:
    """An altered entry can be seen by its link and by a checkpoint; it is named once. Each bad checkpoint is named."""
    seen: set[tuple[FindingKind, int]] = set()
    for finding in findings:
        if finding.seq and (finding.kind, finding.seq) in seen:
            continue
        seen.add((finding.kind, finding.seq))
        yield finding


def _check_all(envelopes: Sequence[JsonValue], reigns: Reigns, origin: str) -> tuple[list[Head], list[Finding]]:
    heads: list[Head] = []
    findings: list[Finding] = []
    keys = [reign.key for reign in reigns.values()]
    for number, envelope in enumerate(envelopes, start=1):
        answer = check(envelope, keys)
        if isinstance(answer, Broken):
            findings.extend(replace(finding, detail=f"checkpoint {number}: {finding.detail}") for finding in answer.findings)
        elif (wrong := judge(answer, reigns)) is not None:
            findings.append(wrong)
        elif origin and answer.origin != origin:
            detail = f"checkpoint {number} is of the log `{answer.origin[:80]}`, and this one is `{origin}`"
            findings.append(Finding(FindingKind.MALFORMED, 0, detail))
        else:
            heads.append(answer)
    if len({head.origin for head in heads}) > 1:
        findings.append(Finding(FindingKind.MALFORMED, 0, "the checkpoints are of several logs"))
    return heads, findings


def _against(reading: Reading, heads: list[Head], sound: int) -> Iterator[Finding]:
    """Where the log is not what checkpoints vouch for.

    Args:
        reading: The log.
        heads: What the checkpoints state.
        sound: The first place that something is wrong with anyway: behind it the tree is another, and says nothing more.
    """
    furthest = max((head.size for head in heads), default=0)
    if furthest > reading.place:
        detail = f"a checkpoint covers {furthest} entries, and the last one is {reading.place}"
        yield Finding(FindingKind.TRUNCATED, reading.place + 1, detail)
    agreed = 0
    for head in sorted(heads, key=lambda head: head.size):
        point = reading.points.get(head.size)
        if point is None:
            continue
        if point.hash and head.hash and point.hash != head.hash:
            detail = f"entry {head.size} does not have the hash that a checkpoint vouches for"
        elif head.size < sound and point.tree is not None and head.root and write_digest(point.tree.root()) != head.root:
            detail = f"the tree over {head.size} entries does not have the root that a checkpoint vouches for"
        else:
            agreed = head.size
            continue
        first, last = _narrow(head, point.tree, agreed)
        where = f"entry {first}" if first == last else f"an entry from {first} to {last}"
        yield Finding(FindingKind.ALTERED, head.size, f"{detail}: {where} is another than it was, or all from there on are")


def _narrow(head: Head, tree: Frontier | None, agreed: int) -> tuple[int, int]:
    """Between which entries the first difference lies, by the subtrees that the checkpoint states."""
    start = 0
    for stated, peak in zip(head.peaks, tree.peaks if tree is not None else (), strict=False):
        end = start + (1 << ((head.size - start).bit_length() - 1))
        if write_digest(peak) != stated:
            return max(start, agreed) + 1, end
        start = end
    return agreed + 1, head.size


def _holds(head: Head, reading: Reading) -> bool:
    """Whether there was anything to hold the checkpoint against."""
    point = reading.points.get(head.size)
    return point is not None and bool((point.hash and head.hash) or (point.tree is not None and head.root))
