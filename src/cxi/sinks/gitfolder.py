"""Which questions to git do its own files answer?

- The answer is git's own, byte for byte, or there is none and git is asked. Nothing here is kept by time: what is read is read
  anew for each question, and an answer of git is kept only under looks at *all* that it came from (`cxi.sinks.look`).
- `Ground` is what every question rests on: the program, the folders of the repository and who owns them, all files of settings.
  While it holds, `layout` and `config` are what git said.
- `index` and `index-flags` are in the bytes of the index (`cxi.sinks.index`); `modified` is the index against lstat(2)
  (`cxi.sinks.worktree`).
- `untracked` of a tracked file is nothing; of another file it is kept under the files of ignore rules.
- `attributes` are none where no file of attributes is there, else they are kept under those files.
- Whatever is not plain - links, submodules, conflicts, settings that change how git compares, paths that are not in normal form -
  is git's to answer.
"""

# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, TypeVar

from cxi.effects.git import CONVERTING
from cxi.effects.repository import parse_settings
from cxi.sinks.index import EMPTY, Index, Staged, read_index
from cxi.sinks.look import ABSENT, Look, look, witness
from cxi.sinks.plumbing import Places, Plumbing, ProgramFile
from cxi.sinks.worktree import Comparison

MOST_COMPARED: Final = 1000  # files; beyond these git is quicker
_MOST_KEPT: Final = 512

_HEAD: Final = re.compile(rb"(?:ref: refs/[^\0\n ]+|[0-9a-f]{40})\n\Z")


class Untold(Enum):
    """The files do not tell; git has to."""

    ASK = "ask"


_Name = TypeVar("_Name")
_Value = TypeVar("_Value")

Told: TypeAlias = bytes | Untold
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


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, and what it holds under."""

    key: Key
    under: tuple[object, ...]
    answer: bytes


class GitFolder:
    """The git folders of one server's world.

    Args:
        plumbing: Its git.
    """

    def __init__(self, plumbing: Plumbing) -> None:
        self._plumbing = plumbing
        # Each is set whole and read whole, so threads need no lock.
        self._grounds: dict[str, Ground] = {}
        self._included: dict[str, tuple[str, ...]] = {}
        self._kept: dict[tuple[str, str, tuple[str, ...]], Kept] = {}
        self._indexes: dict[str, tuple[bytes, Index | None]] = {}

    def answer(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """What git answers."""
        ground = self._stand(repository)
        if ground is None:
            return self._ask(repository, question, arguments, None)
        told: Told = Untold.ASK
        match question:
            case "layout" if not arguments:
                told = ground.layout
            case "config" if not arguments:
                told = ground.config
            case "index" | "index-flags" if not arguments:
                found = self._index(repository)
                if found is None:
                    return self._keep_index(ground, question)
                told = found[0].listing() if question == "index" else found[0].flags()
            case "modified":
                told = self._modified(ground, arguments)
            case "untracked" if len(arguments) == 1:
                return self._untracked(ground, arguments[0])
            case "attributes" if arguments:
                return self._attributes(ground, arguments)
            case "hooks-path" | "ref-format":
                return self._keep(ground, question, arguments)
            case _:
                pass
        return told if isinstance(told, bytes) else self._ask(repository, question, arguments, ground)

    def _ask(self, repository: str, question: str, arguments: tuple[str, ...], ground: Ground | None) -> bytes | None:
        if question not in CONVERTING:
            return self._plumbing.ask(repository, question, arguments)
        settings = ground.config if ground is not None else self._plumbing.ask(repository, "config", ())
        return self._plumbing.ask(repository, question, arguments, _drivers(settings)) if settings is not None else None

    # --- what every question rests on

    def _stand(self, repository: str) -> Ground | None:
        known = self._grounds.get(repository)
        included = self._included.get(repository, ())
        now = time.time_ns()
        key = self._key(repository, included)
        if key is None:
            return None
        if known is not None and known.key == key:
            return known
        before = _witnesses(key.looks, now)
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
                    _put(self._included, repository, names)
                return None  # from the next question on these are looked at too
        if self._key(repository, included) != key or _witnesses(key.looks, now) != before:
            return None
        ground = Ground(repository, key, layout, config, settings, included)
        _put(self._grounds, repository, ground)
        return ground

    def _key(self, repository: str, included: tuple[str, ...]) -> Key | None:
        """None where the repository is not plain: the text of the path is then not where it really stands."""
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
        if head is None or len(head) != 6 or not _HEAD.match(head[5]) or not _is_absent(f"{git}/commondir"):
            return None
        places = self._plumbing.places(program)
        files = (*self._files(repository, places), *included) if places is not None else ()
        looks = _look_all(files)
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
        return tuple(os.path.join(repository, file) for file in files)

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

    # --- answers that are kept

    def _keep(
        self,
        ground: Ground,
        question: str,
        arguments: tuple[str, ...],
        files: Iterable[str] = (),
        more: Callable[[], object] = lambda: None,
        *,
        beside: tuple[str, ...] = (),
        only: bytes | None = None,
    ) -> bytes | None:
        """Git's answer, from memory while the ground and all else that it depends on are equal.

        Args:
            ground: As it is now.
            question: Its name.
            arguments: Its own arguments.
            files: Files whose bytes it depends on.
            more: Tells what else it depends on.
            beside: Files that must not change while git is asked, because `more` tells of them.
            only: The one answer that may be kept; None for any.
        """
        now, names = time.time_ns(), tuple(dict.fromkeys(files))
        under = _look_all(names), more()
        if under[0] is None:
            return self._ask(ground.repository, question, arguments, ground)
        name = (ground.repository, question, arguments)
        known = self._kept.get(name)
        if known is not None and known.key == ground.key and known.under == under:
            return known.answer
        before = _witnesses((*under[0], *((path, look(path) or (-1,)) for path in beside)), now)
        answer = self._ask(ground.repository, question, arguments, ground)
        if answer is None or before is None or only not in (None, answer):
            return answer
        after = _look_all(names), more()
        if after[0] is None or after != under or self._key(ground.repository, ground.included) != ground.key:
            return answer
        if _witnesses((*after[0], *((path, look(path) or (-1,)) for path in beside)), now) == before:
            _put(self._kept, name, Kept(ground.key, under, answer))
        return answer

    # --- the index

    def _index(self, repository: str) -> tuple[Index, tuple[int, int]] | None:
        """The index, and the time of its file (s, ns)."""
        seen = look(f"{repository}/.git/index", through_links=False)
        if seen == ABSENT:
            return EMPTY, (0, 0)
        if seen is None or len(seen) != 6:
            return None
        data, stamp = seen[5], divmod(seen[3], 1_000_000_000)
        known = self._indexes.get(repository)
        if known is None or known[0] != data:
            known = data, read_index(data)
            _put(self._indexes, repository, known)
        return (known[1], stamp) if known[1] is not None else None

    def _keep_index(self, ground: Ground, question: str) -> bytes | None:
        """Git's listing of an index that is not read here."""
        file = f"{ground.repository}/.git/index"
        seen = look(file, through_links=False)
        # Of a split and of a sparse index other files are a part (gitformat-index(5)); in a path's name it only costs a question.
        if seen is None or len(seen) != 6 or b"link" in seen[5] or b"sdir" in seen[5]:
            return self._ask(ground.repository, question, (), ground)
        return self._keep(ground, question, (), (file,))

    def _modified(self, ground: Ground, paths: tuple[str, ...]) -> Told:
        """`git diff-files --raw -z`, of some paths or of all."""
        found = self._index(ground.repository)
        if found is None or found[0].conflicts or not all(map(is_plain, paths)):
            return Untold.ASK
        index, stamp = found
        entries = list(_choose(index, [os.fsencode(path) for path in paths]))
        if len(entries) > MOST_COMPARED:
            return Untold.ASK

        def attributes(path: str) -> frozenset[str] | None:
            answer = self._attributes(ground, (path,)) if is_plain(path) else None
            return frozenset(os.fsdecode(answer).split("\0")[1::3]) if answer is not None else None

        comparison = Comparison(ground.repository, ground.settings, stamp, attributes)
        rows: list[bytes] = []
        for entry in entries:
            row = comparison.compare(entry)
            if row is None:
                return Untold.ASK
            rows.append(row)
        return b"".join(rows)

    # --- ignore rules and attributes

    def _untracked(self, ground: Ground, path: str) -> bytes | None:
        """`git ls-files --others --exclude-standard -z`, of one file."""
        question, repository, name = "untracked", ground.repository, os.fsencode(path)
        folders = _folders(path)

        def way() -> tuple[object, ...] | None:
            """Whether the path is in the index; None where it is not a file in folders of this repository's own."""
            found = self._index(repository)
            plain = (
                found is not None
                and not found[0].conflicts
                and not found[0].holds_below(name)
                and _kind(f"{repository}/{path}") in (stat.S_IFREG, stat.S_IFLNK)
                and all(_kind(f"{repository}/{folder}") == stat.S_IFDIR for folder in folders[1:])
                and all(_is_absent(f"{repository}/{folder}/.git") for folder in folders[1:])
                # A submodule, or a file where the work tree has a folder.
                and not any(os.fsencode(folder) in found[0].by_path for folder in folders[1:])
            )
            return (name in found[0].by_path,) if plain and found is not None else None

        here = way() if is_plain(path) else None
        if here == (True,):
            return b""
        user = self._user_file(ground, "core.excludesfile", "ignore")
        rules = [f"{repository}/{join(folder, '.gitignore')}" for folder in folders]
        folds = any(ground.settings.get(key, ("false",))[-1] != "false" for key in ("core.ignorecase", "core.precomposeunicode"))
        if here is None or user is None or folds or any(_kind(rule) == stat.S_IFLNK for rule in rules):
            return self._ask(repository, question, (path,), ground)
        files = (*rules, user, f"{repository}/.git/info/exclude")
        return self._keep(ground, question, (path,), files, way, only=name + b"\0")

    def _attributes(self, ground: Ground, paths: tuple[str, ...]) -> bytes | None:
        """`git check-attr -z -a`, of some paths."""
        question, repository = "attributes", ground.repository
        found, user = self._index(repository), self._user_file(ground, "core.attributesfile", "attributes")
        if found is None or found[0].conflicts or user is None or not all(map(is_plain, paths)) or "attr.tree" in ground.settings:
            return self._ask(repository, question, paths, ground)
        names = [join(folder, ".gitattributes") for folder in dict.fromkeys(each for path in paths for each in _folders(path))]
        rules = [f"{repository}/{name}" for name in names]
        shared = (ground.key.places.attributes, user, f"{repository}/.git/info/attributes")

        def staged() -> tuple[bytes | None, ...] | None:
            """What the index has where the work tree has no such file: git reads that (gitattributes(5))."""
            present = self._index(repository)
            if present is None or present[0].conflicts:
                return None
            entries = [present[0].by_path.get(os.fsencode(name)) for name in names]
            return tuple(
                entry.blob if entry is not None and _is_absent(rule) else None for entry, rule in zip(entries, rules, strict=True)
            )

        if all(map(_is_absent, (*rules, *shared))) and staged() == (None,) * len(names):
            return b""
        if any(_kind(rule) == stat.S_IFLNK for rule in rules):
            return self._ask(repository, question, paths, ground)
        return self._keep(ground, question, paths, (*rules, *shared), staged, beside=(f"{repository}/.git/index",))

    def _user_file(self, ground: Ground, key: str, name: str) -> str | None:
        """The user's own file of rules; None where it cannot be told."""
        environment = self._plumbing.environment
        home, values = environment.get("HOME", ""), ground.settings.get(key, ())
        if not values:
            values = (f"{environment.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/{name}",)
        value = values[-1]
        if value.startswith("~/") and home:
            value = home + value[1:]
        return value if value.startswith("/") else None


def join(folder: str, name: str) -> str:
    """A name in a folder of the work tree; the top is empty."""
    return f"{folder}/{name}" if folder else name


def is_plain(path: str) -> bool:
    """Whether a relative path is in normal form, has no NUL and is not in a git folder."""
    return "\0" not in path and all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))


def _choose(index: Index, paths: list[bytes]) -> Iterator[Staged]:
    if len(paths) == 1 and (only := index.by_path.get(paths[0])) is not None:
        yield only
        return
    wanted, below = set(paths), tuple(path + b"/" for path in paths)
    for entry in index.entries:
        if not paths or entry.path in wanted or entry.path.startswith(below):
            yield entry


def _above(path: str) -> Iterator[str]:
    """Every folder above an absolute path but `/`."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def _folders(path: str) -> list[str]:
    """The folders of the work tree above a path, the top (empty) first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]


def _kind(path: str) -> int:
    """The file type bits; 0 where nothing stands there, -1 where it cannot be told."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError):
        return -1


def _is_absent(path: str) -> bool:
    return _kind(path) == 0


def _look_all(paths: Iterable[str]) -> Looks | None:
    found: list[tuple[str, Look]] = []
    for path in paths:
        seen = look(path)
        if seen is None:
            return None
        found.append((path, seen))
    return tuple(found)


def _witnesses(looks: Looks, now: int) -> tuple[object, ...] | None:
    found = [witness(path, seen, now) for path, seen in looks]
    return tuple(found) if None not in found else None


def _put(memory: dict[_Name, _Value], name: _Name, value: _Value) -> None:
    if len(memory) >= _MOST_KEPT:
        memory.clear()
    memory[name] = value


def _drivers(settings: bytes) -> list[str]:
    """The names of all filter drivers in an answer to `config`."""
    found = set()
    for row in settings.decode("utf-8", "surrogateescape").split("\0"):
        key = row.partition("\n")[0]
        if key.startswith("filter.") and key.count(".") >= 2:
            found.add(key[len("filter.") : key.rindex(".")])
    return sorted(found)
