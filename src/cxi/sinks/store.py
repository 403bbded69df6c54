"""Which commits and trees does a repository hold?

- An object is what its name says: every commit and tree is hashed before it is believed, whoever told it. A loose one is read
  here; of a packed one git is asked once.
- INVARIANT (same-store): what is known of an object holds while its loose file is the same, or absent as it was, and while
  `objects/pack` holds the same files. An object that is gone, and one whose file was changed, is read or asked for anew. A pack
  that was written over in place, with its length kept, still stands for what its objects' names say.
- Replaced objects, grafts and alternates are git's to follow: a store with one of them tells nothing.

    Store(reading, Objects()).commit("4b82…")
"""

# ruff: noqa: PTH208

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cxi.sinks.ground import is_absent
from cxi.sinks.look import ABSENT, look, witness
from cxi.sinks.reading import Reading

EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_MOST_PACKS: Final = 200  # files; beyond these git is quicker
_MOST_KNOWN: Final = 20_000  # objects
_LARGEST: Final = 16 * 1024 * 1024  # bytes of a tree or a commit
_DEEPEST: Final = 100  # folders in folders
_COMMIT: Final = re.compile(rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)author ")
_MODES: Final = frozenset({b"100644", b"100755", b"120000", b"160000", b"40000"})
_FOLDER: Final = b"40000"

TreeEntry: TypeAlias = tuple[bytes, bytes, str]  # mode, name, object
Listing: TypeAlias = Mapping[bytes, tuple[bytes, str]]  # path to mode and object, in order
_File: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's tree and its parents."""

    tree: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """A parsed object, and where it stood: the identity of its loose file, or the files of packs."""

    loose: _File
    packs: tuple[object, ...]
    object: Commit | tuple[TreeEntry, ...]


@dataclass(slots=True)
class Objects:
    """What is known of a repository's objects. Each is set whole and read whole."""

    known: dict[str, _Known] = field(default_factory=dict)


class Store:
    """A repository's objects in one pass.

    Args:
        reading: The pass.
        objects: What earlier passes found.
    """

    def __init__(self, reading: Reading, objects: Objects) -> None:
        self._reading, self._objects = reading, objects
        self._git = f"{reading.repository}/.git"
        self._packs = self._list_packs() if self._is_plain() else None

    def commit(self, name: str) -> Commit | None:
        """The commit of this name; None where it is none, or cannot be told."""
        found = self._find(name)
        if found is None and self._packs is not None:
            body = self._reading.ask("commit", (name,))
            if body is not None and _hash(b"commit", body) == name:
                found = self._learn(name, _parse(b"commit", body), ())
        return found if isinstance(found, Commit) else None

    def parents(self, name: str) -> tuple[str, ...] | None:
        """A commit's parents as git sees them; None where that cannot be told."""
        commit = self.commit(name)
        return commit.parents if commit is not None and is_absent(f"{self._git}/shallow") else None

    def is_commit(self, name: str) -> bool:
        """Whether that is known; whatever else it is, git tells."""
        return isinstance(self._find(name), Commit)

    def listing(self, commit: str) -> Listing | None:
        """Every path of a commit's tree, in order; of the empty tree none. None where it cannot be told."""
        if commit == EMPTY_TREE:
            return {}
        found = self.commit(commit)
        if found is None:
            return None
        paths = self._walk(found.tree)
        if paths is None:
            answer = self._reading.ask("tree", (commit,))
            paths = self._learn_tree(answer, found.tree) if answer is not None else None
        return paths

    def _walk(self, root: str) -> Listing | None:
        paths: dict[bytes, tuple[bytes, str]] = {}
        pending: list[tuple[bytes, TreeEntry]] = [(b"", (_FOLDER, b"", root))]
        while pending:
            above, (mode, name, blob) = pending.pop()
            if mode != _FOLDER:
                paths[above + name] = mode, blob
                continue
            tree = self._find(blob) if blob != EMPTY_TREE else ()
            if not isinstance(tree, tuple) or above.count(b"/") > _DEEPEST:
                return None
            here = above + name + b"/" if name else b""
            pending += [(here, entry) for entry in reversed(tree)]
        return paths

    def _learn_tree(self, answer: bytes, root: str) -> Listing | None:
        """What git lists, where it hashes to the tree that the commit names; every folder in it is known from then on."""
        paths: dict[bytes, tuple[bytes, str]] = {}
        for row in answer.split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, _, blob = head.split(b" ")
            paths[path] = mode, blob.decode()
        if any(path.count(b"/") > _DEEPEST for path in paths):
            return None
        trees: dict[str, tuple[TreeEntry, ...]] = {}
        if _fold(list(paths.items()), trees) != root:
            return None
        for name, tree in trees.items():
            self._learn(name, tree, ())
        return paths

    def _find(self, name: str) -> Commit | tuple[TreeEntry, ...] | None:
        """The object, read or known."""
        if self._packs is None:
            return None
        path = f"{self._git}/objects/{name[:2]}/{name[2:]}"
        try:
            status = os.lstat(path)
            loose: _File = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except (FileNotFoundError, NotADirectoryError):
            loose = ()
        except OSError:
            return None
        known = self._objects.known.get(name)
        if known is not None and known.loose == loose and (loose or known.packs == self._packs):
            return known.object
        return self._read_loose(name, path) if loose else None

    def _read_loose(self, name: str, path: str) -> Commit | tuple[TreeEntry, ...] | None:
        now, seen = time.time_ns(), look(path, through_links=False)
        if seen is None or len(seen) != 6:
            return None
        try:
            reader = zlib.decompressobj()
            data = reader.decompress(seen[5], _LARGEST)
        except zlib.error:
            return None
        head, _, body = data.partition(b"\0")
        kind, _, size = head.partition(b" ")
        if not reader.eof or size != str(len(body)).encode() or _hash(kind, body) != name:
            return None
        found = _parse(kind, body)
        settled = witness(path, seen, now) is not None
        return self._learn(name, found, seen[:5]) if settled else found

    def _learn(
        self, name: str, found: Commit | tuple[TreeEntry, ...] | None, loose: _File
    ) -> Commit | tuple[TreeEntry, ...] | None:
        if found is not None and self._packs is not None:
            if len(self._objects.known) >= _MOST_KNOWN:
                self._objects.known.clear()
            self._objects.known[name] = _Known(loose, self._packs, found)
        return found

    def _is_plain(self) -> bool:
        git = self._git
        if not all(map(is_absent, (f"{git}/refs/replace", f"{git}/objects/info/alternates", f"{git}/info/grafts"))):
            return False
        packed = look(f"{git}/packed-refs", through_links=False)
        return packed == ABSENT or (packed is not None and len(packed) == 6 and b" refs/replace/" not in packed[5])

    def _list_packs(self) -> tuple[object, ...] | None:
        folder = f"{self._git}/objects/pack"
        try:
            names = sorted(os.listdir(folder))
            if len(names) > _MOST_PACKS:
                return None
            found: list[object] = []
            for name in names:
                status = os.lstat(f"{folder}/{name}")
                # Git touches a pack that has an object which it would have written (object-file.c, `freshen_packed_object`).
                times = () if name.endswith(".pack") else (status.st_mtime_ns, status.st_ctime_ns)
                found.append((name, status.st_dev, status.st_ino, status.st_size, *times))
        except FileNotFoundError:
            return ()
        except OSError:
            return None
        return tuple(found)


def _parse(kind: bytes, body: bytes) -> Commit | tuple[TreeEntry, ...] | None:
    """A commit or a tree in its usual form (gitformat-pack(5), git-mktree(1))."""
    if kind == b"commit":
        found = _COMMIT.match(body)
        return Commit(found[1].decode(), tuple(row[7:].decode() for row in found[2].split(b"\n")[:-1])) if found else None
    if kind != b"tree":
        return None
    entries: list[TreeEntry] = []
    at = 0
    while at < len(body):
        space, end = body.find(b" ", at), body.find(b"\0", at)
        mode, name = body[at:space], body[space + 1 : end]
        if not at < space < end or end + 21 > len(body) or mode not in _MODES or not name or b"/" in name:
            return None
        entries.append((mode, name, body[end + 1 : end + 21].hex()))
        at = end + 21
    return tuple(entries)


def _fold(paths: list[tuple[bytes, tuple[bytes, str]]], trees: dict[str, tuple[TreeEntry, ...]]) -> str:
    """The name of the tree of some paths; it and all below it are entered."""
    entries: list[TreeEntry] = []
    below: dict[bytes, list[tuple[bytes, tuple[bytes, str]]]] = {}
    for path, held in paths:
        head, slash, rest = path.partition(b"/")
        if slash:
            if head not in below:
                below[head] = []
                entries.append((_FOLDER, head, ""))
            below[head].append((rest, held))
        else:
            entries.append((held[0], head, held[1]))
    whole = tuple((mode, name, blob or _fold(below[name], trees)) for mode, name, blob in entries)
    name = _hash(b"tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(blob) for mode, name, blob in whole))
    trees[name] = whole
    return name


def _hash(kind: bytes, body: bytes) -> str:
    return hashlib.sha1(kind + b" %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
