"""Does a work tree hold what its index says?

- As `git diff-files --raw -z` tells it: the stat data of the index against lstat(2), and the bytes of a file that is as young as
  the index (read-cache.c, `ie_match_stat`; diff-lib.c, `run_diff_files`).
- Where two builds of git would differ (nanoseconds, the device), where bytes would have to be converted, and of whatever is no
  plainly staged file or link, there is no answer.

    row = Comparison("/srv/repo", {}, stamp, lambda path: None).compare(entry)
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Final

from cxi.effects.repository import hash_blob
from cxi.sinks.index import Staged
from cxi.sinks.look import look

_NULL: Final = b"0" * 40
_EMPTY_BLOB: Final = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
_REWRITING: Final = frozenset({"filter", "ident", "working-tree-encoding"})  # attributes that change any byte
# Settings under which git compares files otherwise.
_COMPARING: Final = ("core.trustctime", "core.checkstat", "core.symlinks", "core.ignorestat", "core.sparsecheckout")


class Comparison:
    """One pass over a work tree.

    Args:
        work_tree: Absolute.
        settings: The repository's.
        stamp: The time of the index file (s, ns).
        attributes: Tells the names of a path's attributes; None where it cannot.
    """

    def __init__(
        self,
        work_tree: str,
        settings: Mapping[str, tuple[str, ...]],
        stamp: tuple[int, int],
        attributes: Callable[[str], frozenset[str] | None],
    ) -> None:
        self._stamp, self._attributes = stamp, attributes
        self._prefix = os.fsencode(work_tree) + b"/"
        self._ways: dict[bytes, bool] = {b"": True}  # folder to whether no link is on the way to it
        modes = settings.get("core.filemode", ("true",))
        self._executable = {"true": True, "false": False}.get(modes[-1].lower())
        self._converts = "core.autocrlf" in settings
        self._plain = not any(name in settings for name in _COMPARING)

    def compare(self, entry: Staged) -> bytes | None:
        """One row of raw output, or nothing where it is unchanged; None where git has to tell."""
        if (
            entry.stage
            or entry.assumed
            or entry.skipped
            or entry.intended
            or entry.mode == 0o160000
            or self._executable is None
            or not self._plain
        ):
            return None
        try:
            status = os.lstat(self._prefix + entry.path)
        except (FileNotFoundError, NotADirectoryError):
            return _row(entry, 0, b"D")
        except (OSError, ValueError):
            return None
        if not self._is_straight(entry.path.rpartition(b"/")[0]):
            return _row(entry, 0, b"D")
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFLNK):
            return None
        if kind != stat.S_IFMT(entry.mode):
            return _row(entry, self._mode(entry, status), b"T")
        changed = self._is_changed(entry, status)
        if changed is None:
            return None
        return _row(entry, self._mode(entry, status), b"M") if changed else b""

    def _is_changed(self, entry: Staged, status: os.stat_result) -> bool | None:
        """None where it depends on how git was built, or on what it would make of the bytes."""
        changed_s, changed_ns, modified_s, modified_ns, device, *rest = entry.stat
        whole = (changed_s, modified_s, *rest)
        mtime, ctime = divmod(status.st_mtime_ns, 1_000_000_000), divmod(status.st_ctime_ns, 1_000_000_000)
        if whole != (
            ctime[0] & 0xFFFFFFFF,
            mtime[0] & 0xFFFFFFFF,
            status.st_ino & 0xFFFFFFFF,
            status.st_uid & 0xFFFFFFFF,
            status.st_gid & 0xFFFFFFFF,
            status.st_size & 0xFFFFFFFF,
        ):
            return True
        if status.st_size > 0xFFFFFFFF:
            return None
        if self._executable and stat.S_ISREG(entry.mode) and (entry.mode ^ status.st_mode) & 0o100:
            return True
        if not rest[-1] and entry.blob != _EMPTY_BLOB:
            return True  # git marks so what it has to look at (`ce_smudge_racily_clean_entry`)
        # Nanoseconds count, and the device does, where git was built so (USE_NSEC, USE_STDEV).
        exact = (changed_ns, modified_ns, device) == (ctime[1], mtime[1], status.st_dev & 0xFFFFFFFF)
        if not self._stamp[0]:
            return None
        if self._stamp[0] > modified_s:
            return False if exact else None
        # As young as the index: git compares the bytes.
        same = self._holds(entry, status)
        if same is None:
            return None
        if same:
            return False if exact else None
        return True if not exact or self._stamp <= (modified_s, modified_ns) else None

    def _holds(self, entry: Staged, status: os.stat_result) -> bool | None:
        """Whether a file's bytes are the staged blob; None where git would convert them."""
        if not stat.S_ISREG(status.st_mode):
            return None
        path = os.fsdecode(entry.path)
        seen = look(os.fsdecode(self._prefix) + path, through_links=False)
        attributes = self._attributes(path)
        if seen is None or len(seen) != 6 or attributes is None or not attributes.isdisjoint(_REWRITING):
            return None
        # Rules of line endings change nothing but a CR on the way in (convert.c, `crlf_to_git`).
        if b"\r" in seen[5] and (attributes or self._converts):
            return None
        return hash_blob(seen[5]) == entry.blob.hex()

    def _is_straight(self, folder: bytes) -> bool:
        known = self._ways.get(folder)
        if known is None:
            above = self._is_straight(folder.rpartition(b"/")[0])
            known = self._ways[folder] = above and stat.S_ISDIR(os.lstat(self._prefix + folder).st_mode)
        return known

    def _mode(self, entry: Staged, status: os.stat_result) -> int:
        """The mode that git gives a file (read-cache.c, `ce_mode_from_stat`)."""
        if stat.S_ISLNK(status.st_mode):
            return 0o120000
        if not self._executable:
            return entry.mode if stat.S_ISREG(entry.mode) else 0o100644
        return 0o100755 if status.st_mode & 0o100 else 0o100644


def _row(entry: Staged, mode: int, status: bytes) -> bytes:
    """One row of `--raw -z` output: what is in the work tree has no object name."""
    return b":%06o %06o %s %s %s\0%s\0" % (entry.mode, mode, entry.blob.hex().encode(), _NULL, status, entry.path)
