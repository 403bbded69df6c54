"""What does the machine's own disk, and its git, answer?

- `DiskWorld` is the world of the machine that it runs on. It reads only: lstat(2), readlink(2), the names in a folder, the bytes
  of a regular file that is opened without following a link.
- Of git it answers the named questions of `cxi.effects.git.QUESTIONS` and nothing else, in the environment of the server whose
  call is judged. How git is asked, and what is never run by that: `cxi.sinks.plumbing`. Which of its answers its own files tell:
  `cxi.sinks.gitfolder`.

    >>> DiskWorld().entry("/").kind.value
    'folder'
"""

# The system calls themselves are meant: descriptors, flags, names that are no UTF-8.
# ruff: noqa: PTH115, PTH118, PTH208

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

from cxi.effects.base import World
from cxi.sinks.gitfolder import GitFolder, Pass
from cxi.sinks.plumbing import LIMIT, Plumbing
from cxi.values.base import Entry, EntryKind

_CHUNK: Final = 1024 * 1024  # bytes
_NOTHING: Final = Entry(EntryKind.ABSENT)


class DiskWorld:
    """The disk and the git of this machine.

    Args:
        environment: The whole environment of the server whose calls are judged (`cxi.sinks.process.environment`); the default is
            this process's own, in which in-process tools run.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._git = GitFolder(Plumbing(os.environ if environment is None else environment))

    def entry(self, path: str) -> Entry:
        try:
            status = os.lstat(path)
            kind = _kind(status.st_mode)
            target = os.readlink(path) if kind is EntryKind.LINK else ""
        except FileNotFoundError:
            return _NOTHING
        except NotADirectoryError:
            return Entry(EntryKind.NOT_A_FOLDER)
        except (OSError, ValueError):  # ValueError: NUL in the path
            return Entry(EntryKind.DENIED)
        return Entry(kind, stat.S_IMODE(status.st_mode), target, status.st_dev, status.st_ino, status.st_nlink, status.st_size)

    def names(self, path: str) -> tuple[str, ...] | None:
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            return tuple(sorted(os.listdir(folder)))
        except OSError:
            return None
        finally:
            os.close(folder)

    def content(self, path: str) -> bytes | None:
        try:
            # O_NONBLOCK: a fifo that stands there would hold the gate until someone writes.
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
                return None
            data = os.read(file, status.st_size + 1)
            # A file of the kernel's tells no size, and one that is written to meanwhile another one.
            while len(data) <= LIMIT and (more := os.read(file, _CHUNK)):
                data += more
        except OSError:
            return None
        finally:
            os.close(file)
        return data if len(data) <= LIMIT else None

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        return self._git.begin().answer(repository, question, arguments)

    def hold(self) -> World:
        """The same world for one pass of questions, in which what several of git's answers rest on is read once."""
        return _Held(self, self._git.begin())


class _Held:
    """A world whose git is in one pass; the rest is the world's own."""

    __slots__ = ("content", "entry", "git", "names")

    def __init__(self, world: DiskWorld, begun: Pass) -> None:
        self.entry, self.names, self.content, self.git = world.entry, world.names, world.content, begun.answer


def case_rule(path: str) -> tuple[bool, bool]:
    """How the file system under a folder compares names.

    It is told from names that are there already, so nothing is written; where none can tell, the system's usual rule is taken.

    Args:
        path: A folder, absolute and real.

    Returns:
        (whether it tells `A` from `a`, whether it holds composed and decomposed Unicode names to be one).
    """
    usual = sys.platform in ("darwin", "win32")
    try:
        here = os.listdir(path)
    except OSError:
        here = []
    candidates = [(path, name, frozenset(here)) for name in here]
    parent, own = os.path.split(path)
    if own:
        try:
            candidates.append((parent, own, frozenset(os.listdir(parent))))
        except OSError:
            candidates.append((parent, own, frozenset((own,))))
    insensitive = _same_under(candidates, str.swapcase)
    normalizes = _same_under(candidates, _respell)
    return (not usual if insensitive is None else not insensitive), (usual if normalizes is None else normalizes)


def _respell(name: str) -> str:
    """The same name, decomposed if it is composed."""
    return unicodedata.normalize("NFD" if unicodedata.is_normalized("NFC", name) else "NFC", name)


def _same_under(candidates: list[tuple[str, str, frozenset[str]]], change: Callable[[str], str]) -> bool | None:
    """Whether a name and its changed spelling are one file; None where no name can tell."""
    for folder, name, there in candidates:
        other = change(name)
        if other == name or other in there:
            continue
        try:
            first = os.lstat(os.path.join(folder, name))
        except OSError:
            continue
        try:
            second = os.lstat(os.path.join(folder, other))
        except FileNotFoundError:
            return False
        except OSError:
            continue
        return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
    return None


_KINDS: Final = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.FOLDER, stat.S_IFLNK: EntryKind.LINK}


def _kind(mode: int) -> EntryKind:
    return _KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER)
