"""Is a file still the one that was read?

- A look is the identity of a file, its times and its bytes. Two equal looks are the same file with the same bytes; two that
  differ may still hold the same bytes, and cost one more question.
- A look is settled when its times are so old that a later change has to show in them. INVARIANT (settled): an answer is kept
  under looks that were settled *before* the question was asked and are equal after it. So no file was changed and changed back
  while the answer was made, which the bytes alone would not tell; and none was there for a moment (`witness`).
- What that misses: a file system that does not keep the change time (FAT, some network file systems), a clock that is set back.

    >>> look("/no/such/file")
    ()
"""

# ruff: noqa: PTH116, PTH120

from __future__ import annotations

import os
import stat
from typing import Final, TypeAlias

Look: TypeAlias = tuple[int, int, int, int, int, bytes] | tuple[int] | tuple[()]

ABSENT: Final[Look] = ()
_NOTHING: Final[Look] = (0, 0, 0, 0, 0, b"")
MOST: Final = 8 * 1024 * 1024  # bytes of a file that is compared whole

_FINE: Final = 100_000_000  # nanoseconds after which a file's time stamps tell two versions apart
_COARSE: Final = 2_500_000_000  # the same where only whole seconds (ext3), or every other one, are kept


def look(path: str, *, through_links: bool = True) -> Look | None:
    """What stands at a path: `ABSENT`, the number of an error, or the file itself.

    Returns:
        (device, inode, size, modified, changed, bytes); None where it is no regular file, is large, or changes as it is read.
    """
    if path == os.devnull:  # as settings of nothing are usually named
        return _NOTHING
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags if through_links else flags | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return (error.errno or -1,)
    except ValueError:  # NUL
        return None
    try:
        status = os.fstat(file)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode) or size > MOST:
            return None
        data = os.read(file, size + 1)
    except OSError as error:
        return (error.errno or -1,)
    finally:
        os.close(file)
    return (status.st_dev, status.st_ino, size, status.st_mtime_ns, status.st_ctime_ns, data) if len(data) == size else None


def witness(path: str, seen: Look, now: int) -> tuple[int, ...] | None:
    """What must be the same after a question was asked, so that `seen` was all that stood at a path meanwhile.

    Args:
        path: Absolute.
        seen: What stands there.
        now: The time before it was looked at, nanoseconds.

    Returns:
        Identity and times of the file; of an absent one those of the nearest folder, in which it would have to be made. None
        where these are not settled.
    """
    if len(seen) == 1:
        return None
    found = seen[:5] if len(seen) == 6 else _folder(path)
    if found is None:
        return None
    newest = max(found[3], found[4])
    return found if now - newest > (_FINE if newest % 1_000_000_000 else _COARSE) else None


def _folder(path: str) -> tuple[int, int, int, int, int] | None:
    while path != "/":
        path = os.path.dirname(path)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return status.st_dev, status.st_ino, 0, status.st_mtime_ns, status.st_ctime_ns
    return None
