"""What does one pass over a log's entries show?

- Whatever is not the next entry, linked to the one before it, is a finding that names the place; what is, costs one comparison.
- The pass keeps what findings and checkpoints need, and nothing for an entry that is as it should be.
- Where a link breaks, there are four stories, and the one that the next entry confirms is told: entries were put in and those
  behind them numbered anew (`inserted`); entries were taken out and those behind numbered anew (`removed`); this entry was
  altered; or the one before it was. Behind entries that were numbered anew the reading goes on by their old numbers, so that one
  change is one finding.
- An export may leave entries out: a `Skipped` run stands for them by its subtrees' roots, which only a checkpoint vouches for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cxi.canonical import Digest, JsonValue
from cxi.errors import MalformedError
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, Stored, chain
from cxi.log.finding import Finding, FindingKind
from cxi.log.proof import cover
from cxi.log.tree import Frontier, leaf_of

NEAR: Final = 1000  # entries, put in or taken out in one place and numbered anew, are looked for this far
GUESSES: Final = 100  # how often, where it is in vain


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run of entries that an export left out.

    Attributes:
        first: The first one's seq.
        last: The last one's.
        trees: The roots of the perfect subtrees that they fall into (`cxi.log.proof.cover`), from the left.
    """

    first: int
    last: int
    trees: tuple[bytes, ...]


Entry: TypeAlias = ChainedEntry | Stored
Item: TypeAlias = Entry | Skipped


@dataclass(frozen=True, slots=True)
class Point:
    """Where the log stood at a size that a checkpoint names.

    Attributes:
        hash: The hash of the entry there; empty where it was left out.
        tree: The tree up to it; None where an entry before it is missing.
    """

    hash: Digest
    tree: Frontier | None


@dataclass(slots=True)
class _Edge:
    """An entry whose link could not be followed when it came, or does not hold."""

    entry: Entry
    following: Digest | None


@dataclass(slots=True)
class Reading:
    """One pass, and what it leaves behind.

    Attributes:
        sizes: Where checkpoints want to know how the log stood.
        show: Is shown each leaf of the tree on the way.
        place: The seq of the last entry, as the chain counts.
        head: Its hash; empty where it was left out of an export.
        tree: The tree over all; None once an entry was missing.
        points: How the log stood, by size.
        introductions: (seq, envelope) of the entries that introduce keys.
        skipped: The seq of the last entry that was left out.
        findings: What was wrong, but for links (`links`) and gaps (`gaps`).
    """

    sizes: frozenset[int]
    show: Callable[[bytes], None] | None = None
    place: int = 0
    head: Digest = GENESIS
    tree: Frontier | None = field(default_factory=Frontier)
    points: dict[int, Point] = field(default_factory=dict)
    introductions: list[tuple[int, JsonValue]] = field(default_factory=list)
    skipped: int = 0
    findings: list[Finding] = field(default_factory=list)
    _shift: int = 0
    _guesses: int = GUESSES
    _gaps: list[tuple[int, int]] = field(default_factory=list)
    _hashes: dict[int, Digest] = field(default_factory=lambda: {0: GENESIS})  # of the neighbours of edges
    _edges: dict[int, _Edge] = field(default_factory=dict)
    _recent: deque[Digest] = field(default_factory=lambda: deque([GENESIS], NEAR + 1))

    def __post_init__(self) -> None:
        self._note(0, GENESIS)

    def read(self, items: Iterable[Item]) -> None:
        """Go over all of them."""
        source = _Peekable(items)
        for item in source:
            if isinstance(item, Skipped):
                self._skip(item)
            elif item.seq - self._shift == self.place + 1 and item.previous == self.head:
                self._next(item, self.place + 1, _hash(item, self.place + 1))
            else:
                self._judge(item, source.peek())

    def gaps(self) -> Iterator[Finding]:
        """One finding a gap, at its first missing place."""
        for first, last in self._gaps:
            count = last - first + 1
            missing = "1 entry is" if count == 1 else f"{count} entries are"
            yield Finding(FindingKind.REMOVED, first, f"{missing} missing from {first} on")

    def links(self, vouched: dict[int, Digest]) -> Iterator[Finding]:
        """The links that do not hold, with which side of each was altered.

        Args:
            vouched: The hashes that checkpoints vouch for, by size.
        """
        for seq, edge in self._edges.items():
            before = self._hashes.get(seq - 1)
            if before is None or edge.entry.previous == before:
                continue
            following = edge.following
            if following is None and seq + 1 in self._edges:
                following = self._edges[seq + 1].entry.previous
            content = _content(edge.entry)
            right = chain(seq, before, content) if content else ""
            exact = bool(right) and right in (following, vouched.get(seq))
            if seq == 1 or exact or vouched.get(seq - 1) == before:
                yield Finding(FindingKind.ALTERED, seq, f"entry {seq} does not name the hash of the entry before it")
            else:
                yield Finding(FindingKind.ALTERED, seq - 1, f"entry {seq - 1} does not have the hash that entry {seq} names")

    def _next(self, entry: Entry, place: int, hash: Digest) -> None:
        """Take the entry at its place, behind all others."""
        if not hash:
            self._found(FindingKind.ALTERED, entry.seq, f"entry {entry.seq} holds what no log holds")
        elif entry.stated and entry.stated != hash:
            self._found(FindingKind.ALTERED, entry.seq, f"entry {entry.seq} does not have the hash that is stated for it")
        self.place, self.head = place, hash
        self._recent.append(hash)
        if self.tree is not None:
            if hash:
                leaf = leaf_of(hash)
                self.tree.append(leaf)
                if self.show is not None:
                    self.show(leaf)
            else:
                self.tree = None
        if place in self.sizes:
            self._note(place, hash)
        introduction = _introduction(entry)
        if introduction is not None:
            self.introductions.append((place, introduction))

    def _note(self, place: int, hash: Digest) -> None:
        self.points[place] = Point(hash, None if self.tree is None else self.tree.copy())

    def _skip(self, run: Skipped) -> None:
        spans = cover(run.first - 1, run.last) if 0 < run.first <= run.last else []
        if len(spans) != len(run.trees) or not spans or run.first != self.place + 1:
            self._found(FindingKind.MALFORMED, max(run.first, 0), "entries are left out, and what stands for them does not fit")
            self.tree = None
            return
        if self.tree is not None:
            for (_, height), root in zip(spans, run.trees, strict=True):
                self.tree.graft(root, height)
        self.place, self.head, self.skipped = run.last, "", run.last
        self._recent.clear()
        if run.last in self.sizes:
            self._note(run.last, "")

    def _judge(self, entry: Entry, following: Item | None) -> None:
        """Something about this entry is not as it should be."""
        seq = entry.seq - self._shift
        link = None
        if isinstance(following, ChainedEntry | Stored) and following.seq == entry.seq + 1:
            link = following.previous
        if entry.seq < 1 or seq < 1:
            self._found(FindingKind.ALTERED, entry.seq, f"an entry claims place {entry.seq}")
        elif seq <= self.place:
            self._judge_late(entry, seq)
        elif seq > self.place + 1:
            self._hashes[self.place] = self.head
            self._gaps.append((self.place + 1, seq - 1))
            self._edges[seq] = _Edge(entry, link)
            self.tree = None
            self._next(entry, seq, _hash(entry, seq))
        elif not self.head:  # behind what was left out, its link says nothing yet; the checkpoint's root does
            self._next(entry, seq, _hash(entry, seq))
        elif not self._is_renumbered(entry, seq, link):
            self._hashes[self.place] = self.head
            self._edges[seq] = _Edge(entry, link)
            self._next(entry, seq, _hash(entry, seq))

    def _judge_late(self, entry: Entry, seq: int) -> None:
        """It stands behind one with a higher number."""
        at = bisect_right(self._gaps, seq, key=lambda gap: gap[0]) - 1
        first, last = self._gaps[at] if at >= 0 else (0, -1)
        if not first <= seq <= last:
            self._found(FindingKind.REPEATED, entry.seq, f"two entries claim place {entry.seq}")
            return
        self._found(FindingKind.REORDERED, entry.seq, f"entry {entry.seq} stands after entry {self.place + self._shift}")
        self._gaps[at : at + 1] = [gap for gap in ((first, seq - 1), (seq + 1, last)) if gap[0] <= gap[1]]
        self._hashes[seq] = _hash(entry, seq)
        self._edges[seq] = _Edge(entry, None)
        if seq in self.sizes:
            self.points[seq] = Point(self._hashes[seq], None)

    def _is_renumbered(self, entry: Entry, seq: int, following: Digest | None) -> bool:
        """Whether the chain goes on here by other numbers; then it is followed by those."""
        content = _content(entry)
        if not content:
            return False
        for count in range(1, len(self._recent)):
            if entry.previous == self._recent[-1 - count] and following in (None, chain(seq - count, entry.previous, content)):
                first = entry.seq - count
                self._found(
                    FindingKind.INSERTED, first, f"{_entries(count)} put in from {first} on, and those behind numbered anew"
                )
                for _ in range(count):
                    self._recent.pop()
                self._go_on(entry, count)
                return True
        for count in range(1, NEAR + 1) if following is not None and self._guesses else ():
            if following == chain(seq + count, entry.previous, content):
                detail = f"{_entries(count)} taken out before {entry.seq}, and those behind numbered anew"
                self._found(FindingKind.REMOVED, entry.seq, detail)
                self._recent.clear()
                self._go_on(entry, -count)
                return True
        self._guesses -= 1 if self._guesses else 0
        return False

    def _go_on(self, entry: Entry, shift: int) -> None:
        self._shift += shift
        seq = entry.seq - self._shift
        self.tree = None
        self.points = {size: point for size, point in self.points.items() if size < seq}
        self.introductions = [one for one in self.introductions if one[0] < seq]
        self._next(entry, seq, _hash(entry, seq))

    def _found(self, kind: FindingKind, seq: int, detail: str) -> None:
        self.findings.append(Finding(kind, seq, detail))


class _Peekable:
    """An iterator that can be asked what comes next."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._ahead: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            yield item
            while self._ahead:
                yield self._ahead.pop()

    def peek(self) -> Item | None:
        """The next one, which stays where it is; None at the end."""
        if not self._ahead:
            self._ahead.extend(item for item in (next(self._items, None),) if item is not None)
        return self._ahead[0] if self._ahead else None


def _hash(entry: Entry, seq: int) -> Digest:
    """The entry's hash at a place, or empty where it holds what has no canonical form."""
    content = _content(entry)
    try:
        return chain(seq, entry.previous, content) if content else ""
    except MalformedError:
        return ""


def _content(entry: Entry) -> Digest:
    try:
        return entry.content
    except (MalformedError, ValueError, OverflowError):  # the latter two: a time that is no number
        return ""


_KEY: Final = f'"kind":"{EntryType.KEY}"'.encode()  # as canonical text has it


def _introduction(entry: Entry) -> JsonValue:
    """The introduction of a key that the entry holds, or None where it is of another kind."""
    if isinstance(entry, Stored):
        if _KEY not in entry.text:  # INVARIANT (one-reign): canonical text cannot hide it
            return None
        try:
            entry = entry.read()
        except MalformedError:
            return None
    return entry.entry.body.get("introduction", {}) if entry.entry.kind is EntryType.KEY else None


def _entries(count: int) -> str:
    return "1 entry was" if count == 1 else f"{count} entries were"
