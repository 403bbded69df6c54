"""A bare view of the real file system, for tests of what reads through a `View`."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass, field

from cxi.values.base import Entry, EntryKind, Root


@dataclass
class OsView:
    """lstat(2), readlink(2) and the names of a folder. `asked` is every path that was asked for."""

    asked: list[str] = field(default_factory=list)

    def entry(self, path: str) -> Entry:
        self.asked.append(path)
        try:
            found = os.lstat(path)
            mode = found.st_mode
            target = os.readlink(path) if stat.S_ISLNK(mode) else ""  # noqa: PTH115  # a Path would tidy the text
        except FileNotFoundError:
            return Entry(EntryKind.ABSENT)
        except NotADirectoryError:
            return Entry(EntryKind.NOT_A_FOLDER)
        except (OSError, ValueError):
            return Entry(EntryKind.DENIED)
        kind = EntryKind.OTHER
        for is_kind, known in ((stat.S_ISLNK, EntryKind.LINK), (stat.S_ISDIR, EntryKind.FOLDER), (stat.S_ISREG, EntryKind.FILE)):
            if is_kind(mode):
                kind = known
        return Entry(kind, stat.S_IMODE(mode), target, found.st_dev, found.st_ino, found.st_nlink, found.st_size)

    def names(self, path: str) -> tuple[str, ...] | None:
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208
        except OSError:
            return None


@dataclass
class FoldingView:
    """Files in memory on a file system that folds case, or normalizes names, as APFS and NTFS do.

    Attributes:
        files: Paths as they are spelled on disk; folders are implied.
        folds: Whether `A` is `a`.
        normalizes: Whether composed is decomposed.
    """

    files: tuple[str, ...]
    folds: bool = True
    normalizes: bool = True

    def entry(self, path: str) -> Entry:
        wanted = self._key(path.rstrip("/"))
        if any(self._key(known) == wanted for known in self.files):
            return Entry(EntryKind.FILE)
        return Entry(EntryKind.FOLDER if self._below(path) else EntryKind.ABSENT)

    def names(self, path: str) -> tuple[str, ...] | None:
        return self._below(path)

    def _below(self, path: str) -> tuple[str, ...] | None:
        folder = self._key(path.rstrip("/") + "/")
        found = set()
        for known in self.files:
            parts = known.split("/")
            for depth in range(1, len(parts)):
                if self._key("/".join(parts[:depth]) + "/") == folder:
                    found.add(parts[depth])
        return tuple(sorted(found)) or None

    def _key(self, path: str) -> str:
        path = unicodedata.normalize("NFC", path) if self.normalizes else path
        return unicodedata.normalize("NFC", path.casefold()) if self.folds else path


@dataclass(frozen=True)
class EmptyView:
    """A file system with nothing on it."""

    def entry(self, path: str) -> Entry:
        return Entry(EntryKind.FOLDER if path in ("/", "/root") else EntryKind.ABSENT)

    def names(self, path: str) -> tuple[str, ...] | None:
        return () if path in ("/", "/root") else None


NOWHERE = Root("/root", EmptyView())
