"""Which one hash stands for the first n entries of a log, so that a part can be proved against it?

- The Merkle tree of RFC 9162 (section 2.1; the same as RFC 6962's): SHA-256, `0x00` before what a leaf holds, `0x01` before two
  children; no leaves give the hash of nothing. The leaf of an entry holds the 32 bytes of the entry's `hash`, and its index is
  `seq - 1`.
- A `Frontier` is all that is needed to go on: the roots of the perfect subtrees that the leaves fall into, the largest first, at
  most one for each bit of the size. A checkpoint carries it, so that the next one hashes only the entries in between.
- Pure.

    >>> frontier = Frontier()
    >>> for data in (b"", bytes(1)): frontier.append(leaf_hash(data))
    >>> frontier.size, frontier.root().hex()[:8]
    (2, 'fac54203')
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cxi.canonical import Digest

HASH_BYTES: Final = 32
EMPTY: Final = sha256(b"").digest()
_PREFIX: Final = "sha256:"


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf that holds `data`."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees together."""
    return sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """A tree that grows at its right end, in the space of its height.

    Attributes:
        size: How many leaves.
        peaks: The roots of its perfect subtrees, from the left: one for each bit of the size, the highest first.
    """

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)

    def append(self, leaf: bytes) -> None:
        """Put one leaf's hash behind the others."""
        self.graft(leaf, 0)

    def graft(self, root: bytes, height: int) -> None:
        """Put a perfect subtree of `2 ** height` leaves behind the others.

        Raises:
            ValueError: where the size is no multiple of the subtree's: it would not be a subtree there.
        """
        rest, peaks = self.size >> height, self.peaks
        if rest << height != self.size:
            raise ValueError(f"a subtree of height {height} does not stand at {self.size}")
        self.size += 1 << height
        while rest & 1:
            root = sha256(b"\x01" + peaks.pop() + root).digest()
            rest >>= 1
        peaks.append(root)

    def root(self) -> bytes:
        """The hash of all leaves (RFC 9162, 2.1.1: split at the largest power of two)."""
        if not self.peaks:
            return EMPTY
        found = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            found = node_hash(peak, found)
        return found

    def copy(self) -> Frontier:
        """One that grows by itself."""
        return Frontier(self.size, list(self.peaks))


def resume(size: int, peaks: Iterable[bytes]) -> Frontier:
    """The frontier that was left at `size`.

    Raises:
        ValueError: where there is not one peak of 32 bytes for each bit of the size.
    """
    found = list(peaks)
    if size < 0 or len(found) != size.bit_count() or any(len(peak) != HASH_BYTES for peak in found):
        raise ValueError(f"{len(found)} peaks are no frontier of {size} leaves")
    return Frontier(size, found)


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.append(leaf)
    return frontier.root()


def leaf_of(hash: Digest) -> bytes:
    """The leaf of the entry that has this hash.

    Raises:
        ValueError: where it is no digest.
    """
    return leaf_hash(read_digest(hash))


def write_digest(hash: bytes) -> Digest:
    """A tree's hash as text."""
    return _PREFIX + hash.hex()


def read_digest(text: Digest) -> bytes:
    """The 32 bytes of a digest.

    Raises:
        ValueError: where it is no digest in its one form: `sha256:` and 64 lowercase hex digits.
    """
    found = bytes.fromhex(text[len(_PREFIX) :])
    if write_digest(found) != text or len(found) != HASH_BYTES:
        raise ValueError(f"`{text[:80]}` is no digest")
    return found
