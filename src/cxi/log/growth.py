"""Did this log only grow since somebody kept a checkpoint of it?

- Who holds an older checkpoint is given a newer one and a consistency proof (RFC 9162, 2.1.4), and needs no entry: where the
  older tree is not the beginning of the newer one, something before the older checkpoint was altered, removed or put in.
- Both are signed by the key that was pinned, or by one that it introduced.
- Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import JsonValue
from cxi.log.checkpoint import check
from cxi.log.finding import Broken, FindingKind
from cxi.log.proof import Consistent, check_consistency
from cxi.log.succession import line
from cxi.log.tree import read_digest

_KEYS: Final = frozenset({"checkpoint", "introductions", "proof"})


def verify_growth(old: JsonValue, growth: JsonValue, public_key: Ed25519PublicKey) -> Consistent | Broken:
    """Whether the newer checkpoint's log begins with the older one's. Never raises for any JSON.

    Args:
        old: The older checkpoint, as it was kept: an envelope, or a note.
        growth: `{checkpoint, introductions, proof}`.
        public_key: The key that was pinned.
    """
    if not isinstance(growth, Mapping) or growth.keys() != _KEYS:
        return Broken.of(FindingKind.MALFORMED, 0, "not a newer checkpoint with its proof")
    introductions, proof = growth["introductions"], growth["proof"]
    if not isinstance(introductions, list) or not isinstance(proof, list):
        return Broken.of(FindingKind.MALFORMED, 0, "introductions and proof are lists")
    keys = line(public_key, introductions)
    before, after = check(old, keys), check(growth["checkpoint"], keys)
    if isinstance(before, Broken):
        return before
    if isinstance(after, Broken):
        return after
    if before.origin != after.origin:
        return Broken.of(FindingKind.MISMATCHED, 0, f"the checkpoints are of `{before.origin[:80]}` and `{after.origin[:80]}`")
    if not before.root or not after.root:
        return Broken.of(FindingKind.MALFORMED, 0, "a checkpoint without a tree")
    try:
        parts = [read_digest(str(part)) for part in proof]
    except ValueError as error:
        return Broken.of(FindingKind.MALFORMED, 0, str(error))
    return check_consistency(before.size, after.size, read_digest(before.root), read_digest(after.root), parts)
