"""What does every question about a repository rest on, and is it still the same?

- The program, the folders of the repository and who owns them, and every file of settings, included ones too: while these are
  equal, git takes the repository for the same (`layout`) and reads the same settings (`config`).
- A repository that is not plain - behind a link, with its git folder elsewhere, with a HEAD in an unusual form - has no ground;
  whatever is asked of it, git is asked.
- INVARIANT (settled) of `cxi.sinks.look` holds for it.

    ground = Grounds(Plumbing(os.environ)).stand("/srv/repo")
"""

# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from cxi.effects.repository import parse_settings
from cxi.sinks.look import Look, look, witness
from cxi.sinks.plumbing import Places, Plumbing, ProgramFile

_MOST_KEPT: Final = 512
_HEAD: Final = re.compile(rb"(?:ref: refs/[^\0\n ]+|[0-9a-f]{40})\n\Z")

_Name = TypeVar("_Name")
_Value = TypeVar("_Value")

Looks: TypeAlias = tuple[tuple[str, Look], ...]
Folder: TypeAlias = tuple[int, int, int, int, int]  # device, inode, mode, user, group


@dataclass(frozen=True, slots=True)
class Key:
    """All that `layout` and `config` depend on, as it is now."""

    program: ProgramFile
    places: Places
    folders: tuple[Folder, ...]
    looks: Looks
    conditions: tuple[object, ...]  # where a setting is included: the branch, and where the files really stand (`includeIf`)


@dataclass(frozen=True, slots=True)
class Ground:
    """A repository that stands, and its settings.

    Attributes:
        repository: Its work tree.
        key: Under which this holds.
        layout: Git's answer.
        config: Git's answer.
        settings: The same, read.
        included: Files that settings name.
    """

    repository: str
    key: Key
    layout: bytes
    config: bytes
    settings: Mapping[str, tuple[str, ...]]
    included: tuple[str, ...]


class Grounds:
    """The grounds of one server's repositories.

    Args:
        plumbing: Its git.
    """

    def __init__(self, plumbing: Plumbing) -> None:
        self._plumbing = plumbing
        # Each is set whole and read whole, so threads need no lock.
        self._known: dict[str, Ground] = {}
        self._included: dict[str, tuple[str, ...]] = {}

    def stand(self, repository: str) -> Ground | None:
        """The ground as it is now, from memory where it is the same; None where git has to be asked for everything."""
        known = self._known.get(repository)
        included = self._included.get(repository, ())
        now = time.time_ns()
        key = self.key(repository, included)
        if key is None:
            return None
        if known is not None and known.key == key:
            return known
        before = witnesses(key.looks, now)
        if before is None:
            return None
        layout, config = self._plumbing.ask(repository, "layout", ()), self._plumbing.ask(repository, "config", ())
        if layout is None or config is None:
            return None
        settings, includes = parse_settings(config)
        if includes:
            names = self._find_included(repository, config)
            if names is None or not set(names) <= set(included):
                if names is not None:
                    put(self._included, repository, names)
                return None  # from the next question on these are looked at too
        if self.key(repository, included) != key or witnesses(key.looks, now) != before:
            return None
        ground = Ground(repository, key, layout, config, settings, included)
        put(self._known, repository, ground)
        return ground

    def key(self, repository: str, included: tuple[str, ...]) -> Key | None:
        """What the ground depends on now; None where the repository is not plain: where it stands is then not what its path says.

        Args:
            repository: The work tree, absolute.
            included: The files that its settings name.
        """
        program = self._plumbing.find()
        if program is None or repository == "/" or not repository.startswith("/") or not is_plain(repository[1:]):
            return None
        git = f"{repository}/.git"
        try:
            for parent in _above(repository):
                if not stat.S_ISDIR(os.lstat(parent).st_mode):
                    return None
            folders = []
            for path in (repository, git, f"{git}/objects", f"{git}/refs"):
                status = os.lstat(path)
                if not stat.S_ISDIR(status.st_mode):
                    return None
                folders.append((status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid))
        except (OSError, ValueError):
            return None
        head = look(f"{git}/HEAD", through_links=False)
        if head is None or len(head) != 6 or not _HEAD.match(head[5]) or not is_absent(f"{git}/commondir"):
            return None
        places = self._plumbing.places(program)
        files = (*self._files(repository, places), *included) if places is not None else ()
        looks = look_all(files)
        if places is None or looks is None:
            return None
        home = self._plumbing.environment.get("HOME", "/")
        conditions = (head[5], *map(os.path.realpath, (home, *files))) if included else ()
        return Key(program, places, tuple(folders), looks, conditions)

    def _files(self, repository: str, places: Places) -> tuple[str, ...]:
        """Where settings could stand, whichever of them this git reads (git-config(1), FILES)."""
        environment = self._plumbing.environment
        home = environment.get("HOME", "")
        files = (
            f"{repository}/.git/config",
            f"{repository}/.git/config.worktree",
            f"{home}/.gitconfig",
            f"{environment.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config",
            places.settings,
            *(environment[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if environment.get(name)),
        )
        return tuple(file if file[:1] == "/" else os.path.join(repository, file) for file in files)

    def _find_included(self, repository: str, config: bytes) -> tuple[str, ...] | None:
        """Every file that an include names, whether or not its condition holds; None where one cannot be told."""
        answer = self._plumbing.ask(repository, "origins", ())
        rows = answer.split(b"\0")[:-1] if answer is not None else []
        if rows[2::3] != config.split(b"\0")[1::2]:
            return None
        found: dict[str, None] = {}
        for origin, row in zip(rows[1::3], rows[2::3], strict=True):
            key, _, value = row.partition(b"\n")
            if not (key.startswith((b"include.", b"includeif.")) and key.endswith(b".path")):
                continue
            if value.startswith(b"~/"):
                value = os.fsencode(self._plumbing.environment.get("HOME", "")) + value[1:]
            if not value.startswith(b"/"):
                if not origin.startswith(b"file:") or value.startswith((b"~", b"%", b":")):
                    return None
                value = os.path.join(os.path.dirname(origin[5:]), value)
            found[os.path.join(repository, os.fsdecode(value))] = None
        return tuple(found)


def is_plain(path: str) -> bool:
    """Whether a relative path is in normal form, has no NUL and is not in a git folder."""
    return "\0" not in path and all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))


def _above(path: str) -> Iterator[str]:
    """Every folder above an absolute path but `/`."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def kind_of(path: str) -> int:
    """The file type bits; 0 where nothing stands there, -1 where it cannot be told."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError):
        return -1


def is_absent(path: str) -> bool:
    """Whether nothing stands at a path."""
    return kind_of(path) == 0


def look_all(paths: Iterable[str]) -> Looks | None:
    """Looks at several files; None where there is none at one of them."""
    found: list[tuple[str, Look]] = []
    for path in paths:
        seen = look(path)
        if seen is None:
            return None
        found.append((path, seen))
    return tuple(found)


def witnesses(looks: Looks, now: int) -> tuple[object, ...] | None:
    """What must be the same after git was asked; None where one is not settled."""
    found = [witness(path, seen, now) for path, seen in looks]
    return tuple(found) if None not in found else None


def put(memory: dict[_Name, _Value], name: _Name, value: _Value) -> None:
    """Remember, within bounds."""
    if len(memory) >= _MOST_KEPT:
        memory.clear()
    memory[name] = value
