"""Is this entry in that log, and is that log the same one, only longer?

- Inclusion and consistency proofs of RFC 9162 (2.1.3, 2.1.4): a proof is a list of subtree roots, about one for each doubling of
  the size. Whoever has two roots from somewhere else checks with it, and needs no entry.
- A `Prover` picks the subtrees of a proof out of leaves that stream by, and keeps only what is asked for.
- The verifiers answer `Included | Consistent | Broken`; they never raise for what they were given to judge.
- Pure.

    prover = inclusion(index=2, size=7)
    for leaf in leaves: prover.append(leaf)
    check_inclusion(2, 7, leaf, prover.proof(), root)     # Included(index=2, size=7)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cxi.log.finding import Broken, FindingKind
from cxi.log.tree import HASH_BYTES, Frontier, node_hash

Span: TypeAlias = tuple[int, int]  # the first leaf's index, and the one after the last


@dataclass(frozen=True, slots=True)
class Included:
    """The leaf is in the tree.

    Attributes:
        index: Its place, from 0.
        size: The tree's size.
    """

    index: int
    size: int


@dataclass(frozen=True, slots=True)
class Consistent:
    """The older tree is the beginning of the newer one.

    Attributes:
        old: The older one's size.
        size: The newer one's.
    """

    old: int
    size: int


@dataclass(slots=True)
class Prover:
    """Collects the roots of some spans of leaves, which are handed in one after another.

    Attributes:
        spans: In the order of the proof; they do not overlap.
        at: How many leaves went by.
    """

    spans: Sequence[Span]
    at: int = 0
    _waiting: list[Span] = field(init=False)
    _open: Frontier = field(default_factory=Frontier)
    _found: dict[Span, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting = sorted(self.spans, reverse=True)

    def append(self, leaf: bytes) -> None:
        """Show it the next leaf."""
        at = self.at
        self.at = at + 1
        if not self._waiting or at < self._waiting[-1][0]:
            return
        self._open.append(leaf)
        if self.at == self._waiting[-1][1]:
            self._found[self._waiting.pop()] = self._open.root()
            self._open = Frontier()

    def proof(self) -> list[bytes]:
        """The roots, in the order of the proof.

        Raises:
            ValueError: where leaves are still to come.
        """
        if self._waiting:
            raise ValueError(f"{self.at} leaves are too few: one up to {self._waiting[0][1]} is asked for")
        return [self._found[span] for span in self.spans]


def inclusion(index: int, size: int) -> Prover:
    """What proves that leaf `index` is in the tree of `size` leaves.

    Raises:
        ValueError: where there is no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not one of {size}")
    return Prover(tuple(_inclusion(index, 0, size)))


def consistency(old: int, size: int) -> Prover:
    """What proves that the tree of `old` leaves is the beginning of that of `size`; nothing has to be shown for 0, or for all.

    Raises:
        ValueError: where the older one is larger.
    """
    if not 0 <= old <= size:
        raise ValueError(f"{old} leaves are no part of {size}")
    return Prover(tuple(_consistency(old, 0, size, known=True)) if 0 < old < size else ())


def cover(first: int, last: int) -> list[tuple[Span, int]]:
    """The fewest perfect subtrees that leaves `first` up to (not with) `last` fall into, with their heights, from the left."""
    found: list[tuple[Span, int]] = []
    while first < last:
        aligned = (first & -first).bit_length() - 1 if first else last.bit_length()
        height = min(aligned, (last - first).bit_length() - 1)
        found.append(((first, first + (1 << height)), height))
        first += 1 << height
    return found


def check_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes) -> Included | Broken:
    """Whether the leaf is at its place in the tree that has this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size or any(len(part) != HASH_BYTES for part in proof):
        return Broken.of(FindingKind.MALFORMED, index + 1, "not an inclusion proof for this size")
    at, last, found = index, size - 1, leaf
    for part in proof:
        if last == 0:
            return Broken.of(FindingKind.MISMATCHED, index + 1, "the inclusion proof is too long")
        if at & 1 or at == last:
            found = node_hash(part, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, part)
        at, last = at >> 1, last >> 1
    if last != 0 or found != root:
        return Broken.of(FindingKind.MISMATCHED, index + 1, f"entry {index + 1} is not in the tree of this root")
    return Included(index, size)


def check_consistency(old: int, size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]) -> Consistent | Broken:
    """Whether the older tree is the beginning of the newer one (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= size or any(len(part) != HASH_BYTES for part in proof):
        return Broken.of(FindingKind.MALFORMED, old, "not a consistency proof for these sizes")
    if old in (0, size):
        fits = not proof and (old == 0 or old_root == root)
        return Consistent(old, size) if fits else _forked(old, size)
    parts = list(proof) if old & (old - 1) else [old_root, *proof]  # a perfect tree is a subtree of the newer one
    if not parts:
        return _forked(old, size)
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    before = after = parts[0]
    for part in parts[1:]:
        if last == 0:
            return _forked(old, size)
        if at & 1 or at == last:
            before, after = node_hash(part, before), node_hash(part, after)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            after = node_hash(after, part)
        at, last = at >> 1, last >> 1
    return Consistent(old, size) if last == 0 and (before, after) == (old_root, root) else _forked(old, size)


def _forked(old: int, size: int) -> Broken:
    return Broken.of(FindingKind.FORKED, old, f"the log of {old} entries is not the beginning of the one of {size}")


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def _inclusion(index: int, first: int, last: int) -> Iterator[Span]:
    """PATH of RFC 9162, 2.1.3.1: the deepest sibling first."""
    if last - first == 1:
        return
    middle = first + _split(last - first)
    if index < middle:
        yield from _inclusion(index, first, middle)
        yield (middle, last)
    else:
        yield from _inclusion(index, middle, last)
        yield (first, middle)


def _consistency(old: int, first: int, last: int, *, known: bool) -> Iterator[Span]:
    """SUBPROOF of RFC 9162, 2.1.4.1; `known`: the verifier has the older tree's root itself."""
    if old == last:
        if not known:
            yield (first, last)
        return
    middle = first + _split(last - first)
    if old <= middle:
        yield from _consistency(old, first, middle, known=known)
        yield (middle, last)
    else:
        yield from _consistency(old, middle, last, known=False)
        yield (first, middle)
