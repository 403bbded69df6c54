"""Which key may vouch for which part of a log?

- One key reigns at a time. The reigning key introduces the next one: a DSSE envelope over `{v, by, key, time_ms}`, both keys as
  PEM, signed by `by`. The envelope stands in the log, in an entry of kind `key`; that entry ends one reign and begins the next.
- INVARIANT (one-reign): a checkpoint of `size` entries is good only from the key that reigns at `size`: what covers the entry
  that retired a key is not that key's to sign.
- Whoever pinned the first key follows the introductions forwards. Whoever pinned a later one reads the keys before it too, but
  nothing counts as signed by those: they vouch for nothing that the pinned key does not cover.
- Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue
from cxi.errors import MalformedError
from cxi.log.checkpoint import Head
from cxi.log.entry import milliseconds
from cxi.log.envelope import export_public, key_id, peek, read_public, seal, unseal
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.manifest import Instant

PAYLOAD_TYPE: Final = "application/vnd.cxi.key+json"


@dataclass(frozen=True, slots=True)
class Introduction:
    """One key vouched for the next.

    Attributes:
        by: The key that signed.
        key: The key that reigns from then on.
        time: When it was signed.
    """

    by: Ed25519PublicKey
    key: Ed25519PublicKey
    time: Instant


@dataclass(frozen=True, slots=True)
class Reign:
    """Where a key vouches.

    Attributes:
        key: The key.
        first: The seq of the entry that introduced it: no checkpoint below is its own. 0 for the first key.
        until: The seq of the entry that retired it: no checkpoint from there on is its own. None while it reigns.
        trusted: Whether it was pinned, or introduced by one that is trusted.
    """

    key: Ed25519PublicKey
    first: int = 0
    until: int | None = None
    trusted: bool = True


Reigns: TypeAlias = Mapping[Digest, Reign]


def introduce(by: Ed25519PrivateKey, key: Ed25519PublicKey, now: Instant) -> dict[str, JsonValue]:
    """Let one key vouch for the next."""
    stated: dict[str, JsonValue] = {
        "v": 1,
        "by": export_public(by.public_key()).decode(),
        "key": export_public(key).decode(),
        "time_ms": milliseconds(now),
    }
    return seal(PAYLOAD_TYPE, stated, by)


def read_introduction(envelope: JsonValue) -> Introduction | Broken:
    """What an introduction says, its signature checked against the key that it names as its signer."""
    try:
        by = read_public(str((peek(envelope) or {}).get("by")).encode("utf-8", "surrogatepass"))
        payload = unseal(envelope, PAYLOAD_TYPE, (by,))
        if isinstance(payload, Broken):
            return payload
        match dict(payload):
            case {"v": 1, "by": str(), "key": str(pem), "time_ms": int(time_ms), **rest} if not rest and type(time_ms) is int:
                return Introduction(by, read_public(pem.encode("utf-8", "surrogatepass")), time_ms / 1000)
    except MalformedError:
        pass
    return Broken.of(FindingKind.MALFORMED, 0, "not the introduction of a key")


def succeed(
    pinned: Iterable[Ed25519PublicKey], introductions: Sequence[tuple[int, JsonValue]]
) -> tuple[Reigns, tuple[Finding, ...]]:
    """Who reigns where, and which introductions are not good.

    Args:
        pinned: The keys that are trusted beforehand.
        introductions: (seq of the entry, envelope) in the order of the log; seq 0 for what was introduced before the log began.
    """
    known = {key_id(key): key for key in pinned}
    reigns = {name: Reign(key) for name, key in known.items()}
    findings: list[Finding] = []
    read: list[tuple[int, Introduction]] = []
    for seq, envelope in introductions:
        answer = read_introduction(envelope)
        if isinstance(answer, Broken):
            findings.extend(replace(finding, seq=seq) for finding in answer.findings)
        else:
            read.append((seq, answer))
    ancestors = set(known)
    for _, found in reversed(read):
        if key_id(found.key) in ancestors:
            ancestors.add(key_id(found.by))
    introduced: set[Digest] = set()  # within the log
    for seq, found in read:
        by, to = key_id(found.by), key_id(found.key)
        before = reigns.get(by) or (Reign(found.by, trusted=False) if by in ancestors else None)
        if before is None:
            findings.append(Finding(FindingKind.UNKNOWN_KEY, seq, "a key is introduced by one that nobody introduced"))
        elif before.until is not None or to in introduced or to == by or (to in reigns and reigns[to].until is not None):
            findings.append(
                Finding(FindingKind.RETIRED_KEY, seq, "a key that was retired introduces another, or is introduced again")
            )
        else:
            reigns[by] = replace(before, until=seq) if seq else before
            reigns[to] = Reign(found.key, seq, trusted=before.trusted or to in known)
            introduced |= {to} if seq else set()
    return reigns, tuple(findings)


def latest(pinned: Ed25519PublicKey, introductions: Iterable[JsonValue]) -> Ed25519PublicKey:
    """The key that introductions lead to from the pinned one."""
    return line(pinned, introductions)[-1]


def line(pinned: Ed25519PublicKey, introductions: Iterable[JsonValue]) -> list[Ed25519PublicKey]:
    """The pinned key, and those that introductions lead to from it, in their order; those of other keys are passed over."""
    found = [pinned]
    for envelope in introductions:
        answer = read_introduction(envelope)
        if not isinstance(answer, Broken) and key_id(answer.by) == key_id(found[-1]):
            found.append(answer.key)
    return found


def judge(head: Head, reigns: Reigns) -> Finding | None:
    """What is wrong with who signed a checkpoint, whose signature holds; None where it was that key's to sign."""
    reign = reigns[head.signer]
    if head.size < reign.first:
        detail = f"a checkpoint of {head.size} entries is signed by a key that entry {reign.first} introduced"
        return Finding(FindingKind.UNKNOWN_KEY, head.size, detail)
    if reign.until is not None and head.size >= reign.until:
        detail = f"a checkpoint of {head.size} entries is signed by the key that entry {reign.until} retired"
        return Finding(FindingKind.RETIRED_KEY, head.size, detail)
    return None
