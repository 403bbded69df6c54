"""How does a log, or a part of it, leave the machine so that it can still be verified?

- JSON lines, each one canonical (RFC 8785), in this order: `{"log": {v, origin, size}}`; `{"checkpoint": …}` and
  `{"introduction": …}`, as many as there are; then the entries as they are chained, each with its `hash`.
- What a filter leaves out stands as one line a run, `{"skipped": {first, last, trees}}`: the roots of the few perfect subtrees
  that the run falls into. So a part of a log verifies against the whole log's signed root, and shows nothing of the rest.
- `verify_export` streams: it needs a public key and nothing else.
- A part shows what it shows is in the log. That nothing in between would have matched the filter is the exporter's word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import JsonValue, canonicalize
from cxi.errors import MalformedError
from cxi.log.chain import Verified, verify
from cxi.log.entry import ChainedEntry, read_entry
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.log.reading import Item, Skipped
from cxi.log.tree import leaf_of, node_hash, read_digest, write_digest

VERSION: Final = 1


def write_export(
    origin: str,
    size: int,
    checkpoints: Iterable[JsonValue],
    introductions: Iterable[JsonValue],
    entries: Iterable[ChainedEntry],
    keep: Callable[[ChainedEntry], bool],
) -> Iterator[bytes]:
    """The lines of an export, each with its line feed.

    Args:
        origin: The log's name.
        size: How many entries the log has, for this export.
        checkpoints: Of this log; one of them of `size` entries.
        introductions: How each key introduced the next.
        entries: All entries from the first to the one at `size`, whatever the filter.
        keep: Which of them are shown.
    """
    yield _line({"log": {"v": VERSION, "origin": origin, "size": size}})
    for envelope in checkpoints:
        yield _line({"checkpoint": envelope})
    for envelope in introductions:
        yield _line({"introduction": envelope})
    run: _Run | None = None
    for entry in entries:
        place = entry.hash
        if keep(entry):
            if run is not None:
                yield run.line()
            run = None
            yield _line({**entry.to_json(), "hash": place})
            continue
        run = run or _Run(entry.seq, entry.seq)
        run.append(leaf_of(place))
    if run is not None:
        yield run.line()


def verify_export(lines: Iterable[bytes], public_keys: Iterable[Ed25519PublicKey]) -> Verified | Broken:
    """What an export proves, or what is wrong with it. Never raises for any bytes.

    Args:
        lines: The file's lines.
        public_keys: The keys that are trusted to vouch for this log.
    """
    reader = _Reader(iter(lines))
    reader.read_preamble()
    answer = verify(reader.items(), reader.checkpoints, public_keys, origin=reader.origin, introductions=reader.introductions)
    findings = [*reader.findings, *(answer.findings if isinstance(answer, Broken) else ())]
    if isinstance(answer, Verified) and answer.count > answer.signed:
        detail = f"no checkpoint covers the entries from {answer.signed + 1} to {answer.count}"
        findings.append(Finding(FindingKind.UNSIGNED, answer.signed + 1, detail))
    return Broken(tuple(findings)) if findings else answer


@dataclass(slots=True)
class _Run:
    """Entries that are left out, as the subtrees that they fall into."""

    first: int
    following: int
    _parts: list[tuple[int, int, bytes]] = field(default_factory=list)  # the first leaf's index, the height, the root

    def append(self, leaf: bytes) -> None:
        start, height, root = self.following - 1, 0, leaf
        while self._parts and self._parts[-1][1] == height and not self._parts[-1][0] >> height & 1:
            start, _, left = self._parts.pop()
            root, height = node_hash(left, root), height + 1
        self._parts.append((start, height, root))
        self.following += 1

    def line(self) -> bytes:
        trees: list[JsonValue] = [write_digest(root) for _, _, root in self._parts]
        return _line({"skipped": {"first": self.first, "last": self.following - 1, "trees": trees}})


@dataclass(slots=True)
class _Reader:
    """The lines of an export, read once."""

    lines: Iterator[bytes]
    origin: str = ""
    checkpoints: list[JsonValue] = field(default_factory=list)
    introductions: list[JsonValue] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _number: int = 0
    _place: int = 0
    _ahead: Mapping[str, JsonValue] | None = None

    def read_preamble(self) -> None:
        """Everything before the first entry."""
        for record in self._records():
            match dict(record):
                case {"log": {"v": 1, "origin": str(origin), "size": int()}} if not self.origin:
                    self.origin = origin
                case {"checkpoint": envelope, **rest} if not rest:
                    self.checkpoints.append(envelope)
                case {"introduction": envelope, **rest} if not rest:
                    self.introductions.append(envelope)
                case _:
                    self._ahead = record
                    break
        if not self.origin:
            self._bad("the first line names no log of version 1")

    def items(self) -> Iterator[Item]:
        """The entries, and the runs that are left out."""
        if self._ahead is not None:
            yield from self._item(self._ahead)
        for record in self._records():
            yield from self._item(record)

    def _item(self, record: Mapping[str, JsonValue]) -> Iterator[Item]:
        try:
            match dict(record):
                case {"skipped": {"first": int(first), "last": int(last), "trees": list(trees)}} if len(record) == 1:
                    item: Item = Skipped(first, last, tuple(read_digest(str(tree)) for tree in trees))
                    self._place = last
                case {"hash": str(hash), **rest}:
                    item = replace(read_entry(rest), stated=hash)
                    self._place = item.seq
                case _:
                    self._bad("neither an entry nor what stands for entries that are left out")
                    return
        except (MalformedError, ValueError):
            self._bad("not what it claims to be")
            return
        yield item

    def _records(self) -> Iterator[Mapping[str, JsonValue]]:
        for line in self.lines:
            self._number += 1
            try:
                record = orjson.loads(line)
                if isinstance(record, dict) and _line(record) == line:
                    yield record
                    continue
            except (ValueError, MalformedError):
                pass
            self._bad("not a whole line of canonical JSON")

    def _bad(self, detail: str) -> None:
        self.findings.append(Finding(FindingKind.MALFORMED, self._place + 1, f"line {self._number}: {detail}"))


def _line(value: Mapping[str, JsonValue]) -> bytes:
    return canonicalize(value) + b"\n"
