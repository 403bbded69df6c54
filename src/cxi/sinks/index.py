"""What do the bytes of a git index say?

- `read_index` reads versions 2 to 4 (gitformat-index(5)) and nothing that needs another file: a split or sparse index, an
  extension that is not optional, a broken checksum or order are not read, and the caller asks git.
- The order of entries, their names as bytes and their stat data are kept as they stand: git compares a work tree with them.

    >>> read_index(b"DIRC") is None
    True
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

MOST_ENTRIES: Final = 4000  # beyond these git is quicker

_HEAD: Final = Struct(">4sII")
_FIXED: Final = Struct(">10I20sH")
_SHA1: Final = 20
_MODES: Final = frozenset({0o100644, 0o100755, 0o120000, 0o160000})
_VALID, _EXTENDED, _STAGE, _LENGTH = 0x8000, 0x4000, 0x3000, 0x0FFF  # flags of an entry
_SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x2000  # flags of an extended entry


@dataclass(frozen=True, slots=True)
class Staged:
    """One entry.

    Attributes:
        path: Relative to the work tree.
        mode: `0o100644`, …
        blob: The object's name, 20 bytes.
        stage: 0, or 1 to 3 in a conflict.
        stat: changed (s, ns), modified (s, ns), device, inode, user, group, size, each modulo 2^32 as the index holds it.
        assumed: Git is told not to look (`assume-unchanged`).
        skipped: Git is told that it is not in the work tree (`skip-worktree`).
        intended: Only intended to be added (`add -N`).
    """

    path: bytes
    mode: int
    blob: bytes
    stage: int
    stat: tuple[int, int, int, int, int, int, int, int, int]
    assumed: bool
    skipped: bool
    intended: bool


@dataclass(frozen=True, slots=True)
class Index:
    """All entries, in order.

    Attributes:
        entries: As they stand.
        by_path: The same by their names.
        conflicts: Whether a path is there in several stages.
    """

    entries: tuple[Staged, ...]
    by_path: Mapping[bytes, Staged] = field(repr=False)
    conflicts: bool

    def holds_below(self, folder: bytes) -> bool:
        """Whether a path below this one is in the index."""
        prefix = folder + b"/"
        at = bisect_left(self.entries, prefix, key=lambda entry: entry.path)
        return at < len(self.entries) and self.entries[at].path.startswith(prefix)

    def listing(self) -> bytes:
        """As `git ls-files --stage -z` writes it."""
        return b"".join(b"%06o %s %d\t%s\0" % (e.mode, e.blob.hex().encode(), e.stage, e.path) for e in self.entries)

    def flags(self) -> bytes:
        """As `git ls-files -v -z` writes it."""
        return b"".join(_tag(entry) + b" " + entry.path + b"\0" for entry in self.entries)


EMPTY: Final = Index((), {}, conflicts=False)


def read_index(data: bytes) -> Index | None:
    """Read an index file; None where git has to."""
    if len(data) < _HEAD.size + _SHA1:
        return None
    magic, version, count = _HEAD.unpack_from(data)
    end = len(data) - _SHA1
    if magic != b"DIRC" or version not in (2, 3, 4) or count > MOST_ENTRIES:
        return None
    # A checksum of zeros is none (git-config(1), `index.skipHash`).
    if data[end:] not in (hashlib.sha1(data[:end], usedforsecurity=False).digest(), bytes(_SHA1)):
        return None
    entries: list[Staged] = []
    at, before = _HEAD.size, b""
    for _ in range(count):
        found = _read_entry(data, at, end, before, version)
        if found is None:
            return None
        entry, at = found
        if entries and (before, entries[-1].stage) >= (entry.path, entry.stage):
            return None
        entries.append(entry)
        before = entry.path
    if not _extensions_are_optional(data, at, end):
        return None
    by_path = {entry.path: entry for entry in entries}
    return Index(tuple(entries), by_path, conflicts=any(entry.stage for entry in entries))


def _read_entry(data: bytes, at: int, end: int, before: bytes, version: int) -> tuple[Staged, int] | None:
    if at + _FIXED.size > end:
        return None
    cs, cn, ms, mn, device, inode, mode, user, group, size, blob, flags = _FIXED.unpack_from(data, at)
    start, at = at, at + _FIXED.size
    extended = 0
    if flags & _EXTENDED:
        if version < 3:
            return None
        extended = int.from_bytes(data[at : at + 2], "big")
        at += 2
        if extended & ~(_SKIP_WORKTREE | _INTENT_TO_ADD):
            return None
    kept = b""
    if version == 4:
        if at >= end:
            return None
        strip, at = _read_varint(data, at)
        if strip > len(before):
            return None
        kept = before[: len(before) - strip]
    stop = data.find(b"\0", at, end)
    path = kept + data[at:stop]
    if stop < 0 or not path or min(len(path), _LENGTH) != flags & _LENGTH or mode not in _MODES:
        return None
    # 1 to 8 NULs, so that the entry's length is a multiple of eight; version 4 does not pad.
    at = stop + 1 if version == 4 else start + ((stop - start + 8) & ~7)
    stat = (cs, cn, ms, mn, device, inode, user, group, size)
    assumed, skipped, intended = bool(flags & _VALID), bool(extended & _SKIP_WORKTREE), bool(extended & _INTENT_TO_ADD)
    return Staged(path, mode, blob, (flags & _STAGE) >> 12, stat, assumed, skipped, intended), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset (varint.c, `decode_varint`), and the offset behind it."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80 and at < len(data):
        byte = data[at]
        value, at = ((value + 1) << 7) | (byte & 0x7F), at + 1
    return value, at


def _extensions_are_optional(data: bytes, at: int, end: int) -> bool:
    """Whether git could leave out every extension: their names begin with a capital letter."""
    while at + 8 <= end:
        if not 65 <= data[at] <= 90:
            return False
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return at == end


def _tag(entry: Staged) -> bytes:
    tag = b"M" if entry.stage else b"S" if entry.skipped else b"H"
    return tag.lower() if entry.assumed else tag
