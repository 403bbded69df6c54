"""What does the machine's own disk, and its git, answer?

- `DiskWorld` is the world of the machine that it runs on. It reads only: lstat(2), readlink(2), the names in a folder, the bytes
  of a regular file that is opened without following a link.
- Of git it asks the named questions of `cxi.effects.git.QUESTIONS` and nothing else. INVARIANT (questions-run-nothing): no
  question runs a program of the repository's choosing. Hooks, monitor, pager, transports and lazy fetching are off; optional
  locks are not taken, so that nothing is written; filter drivers are taken away where git would convert a file.
- What the server's git sees otherwise (system and user settings, replaced objects) is left as it is: the answer is the server's.
- What git told of the index alone is told again while the file holds the same bytes; nothing is remembered by time alone.
- A question that takes longer than `TIMEOUT`, or whose answer is over `LIMIT` bytes, has no answer.

    >>> DiskWorld().entry("/").kind.value
    'folder'
"""

# The system calls themselves are meant: descriptors, flags, names that are no UTF-8.
# ruff: noqa: PTH115, PTH116, PTH117, PTH118, PTH120, PTH208

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cxi.canonical import Digest, digest_bytes
from cxi.effects.git import CONVERTING, QUESTIONS
from cxi.values.base import Entry, EntryKind

LIMIT: Final = 64 * 1024 * 1024
TIMEOUT: Final = 20.0  # seconds
_SETTLED: Final = 0.1  # seconds after which a file's time stamps tell two versions apart

_CHUNK: Final = 64 * 1024
_OF_INDEX: Final = frozenset({"index", "index-flags"})  # questions that the index file answers by itself

_NOTHING: Final = Entry(EntryKind.ABSENT)

# What git gets of the environment: enough to find its program and its settings, nothing that redirects it (git(1)).
_KEPT: Final = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
_SET: Final = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}
_OVERRIDES: Final = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("diff.external", ""),
    ("protocol.allow", "never"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
)


@dataclass(frozen=True, slots=True)
class _Settings:
    """An answer to `config` that holds while the files that it came from do not change."""

    answer: bytes
    signature: tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _OfIndex:
    """An answer that holds while the index file and the settings are these."""

    held: tuple[Digest, bytes]
    answer: bytes


class DiskWorld:
    """The disk and the git of this machine.

    Args:
        environment: What the servers' git inherits; the default is this process's own environment.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if name in source} | _SET
        self._settings: dict[str, _Settings] = {}
        self._indexes: dict[tuple[str, str], _OfIndex] = {}
        self._lock = threading.Lock()

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
            with os.fdopen(os.dup(file), "rb") as stream:
                data = stream.read(LIMIT + 1)
        except OSError:
            return None
        finally:
            os.close(file)
        return data if len(data) <= LIMIT else None

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        if question == "config" and not arguments:
            return self._config(repository)
        if question in _OF_INDEX and not arguments:
            return self._of_index(repository, question)
        return self._ask(repository, question, arguments)

    def _ask(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        overrides = list(_OVERRIDES)
        if question in CONVERTING:
            settings = self._config(repository)
            if settings is None:
                return None
            for driver in _drivers(settings):
                # An empty command is none (convert.c, `apply_filter`); `required` would make its absence an error.
                overrides += [(f"filter.{driver}.{key}", "") for key in ("clean", "smudge", "process")]
                overrides.append((f"filter.{driver}.required", "false"))
        return self._run(repository, question, arguments, overrides)

    def _config(self, repository: str) -> bytes | None:
        """The settings, from memory while none of the files that could hold them has changed."""
        with self._lock:
            known = self._settings.get(repository)
        if known is not None and known.signature == self._sign(repository):
            return known.answer
        signature = self._sign(repository)
        answer = self._run(repository, "config", (), list(_OVERRIDES))
        newest = max((row[3] for row in signature), default=0)
        # An include can name any file, and can depend on the branch: such settings are asked for each time.
        if (
            answer is not None
            and b"\0include" not in answer
            and time.time_ns() - newest > _SETTLED * 1e9
            and signature == self._sign(repository)
        ):
            with self._lock:
                self._settings[repository] = _Settings(answer, signature)
        return answer

    def _of_index(self, repository: str, question: str) -> bytes | None:
        """What the index file alone tells, from memory where the file holds the very same bytes and settings are the same."""
        held = self._hold_index(repository)
        with self._lock:
            known = self._indexes.get((repository, question))
        if held is not None and known is not None and known.held == held:
            return known.answer
        answer = self._ask(repository, question, ())
        if answer is not None and held is not None and self._hold_index(repository) == held:
            with self._lock:
                self._indexes[repository, question] = _OfIndex(held, answer)
        return answer

    def _hold_index(self, repository: str) -> tuple[Digest, bytes] | None:
        """The digest of the index file, and the settings; None where the file is absent, or names further files or trees."""
        data, settings = self.content(f"{repository}/.git/index"), self._config(repository)
        # The extensions of a split and of a sparse index (gitformat-index(5)); in a path's name they only cost a question.
        if data is None or settings is None or b"link" in data or b"sdir" in data:
            return None
        return digest_bytes(data), settings

    def _sign(self, repository: str) -> tuple[tuple[str, int, int, int, int], ...]:
        home = self._environment.get("HOME", "")
        settings = self._environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
        rows = []
        for path in (
            f"{repository}/.git/config",
            f"{repository}/.git/config.worktree",
            self._environment.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig",
            f"{settings}/git/config",
            self._environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig",
        ):
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                rows.append((path, 0, 0, 0, 0))
            else:
                rows.append((path, status.st_ino, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns), status.st_dev))
        return tuple(rows)

    def _run(self, repository: str, question: str, arguments: tuple[str, ...], overrides: list[tuple[str, str]]) -> bytes | None:
        template = QUESTIONS.get(question)
        if template is None or not os.path.isabs(repository):
            return None
        command = _fill(template, arguments)
        if command is None:
            return None
        environment = self._environment | {
            "GIT_CEILING_DIRECTORIES": os.path.dirname(repository),
            "GIT_CONFIG_COUNT": str(len(overrides)),
        }
        for index, (key, value) in enumerate(overrides):
            environment |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *command],  # noqa: S607  # the servers find their git on the path too
                cwd=repository,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        with process:
            data = _read_all(process, time.monotonic() + TIMEOUT)
            if data is None:
                process.kill()
            code = process.wait()
        return data if code == 0 else None


def _read_all(process: subprocess.Popen[bytes], until: float) -> bytes | None:
    """All that a process writes until it closes its output; None where that is too much, or takes too long."""
    if process.stdout is None:
        return None
    found = bytearray()
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN)
    while (left := until - time.monotonic()) > 0 and waiting.poll(left * 1000):
        chunk = os.read(process.stdout.fileno(), _CHUNK)
        found += chunk
        if len(found) > LIMIT:
            return None
        if not chunk:
            return bytes(found)
    return None


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


def _fill(template: tuple[str, ...], arguments: tuple[str, ...]) -> list[str] | None:
    """The arguments of git; None where their number is wrong or one could be read as an option."""
    filled: list[str] = []
    used = 0
    guarded = False
    for part in template:
        guarded = guarded or part in ("--", "--end-of-options")
        if part == "{*}":
            new = list(arguments[used:])
        elif part.startswith("{"):
            if used >= len(arguments):
                return None
            new = [arguments[used]]
        else:
            filled.append(part)
            continue
        if any("\0" in item or (item.startswith("-") and not guarded) for item in new):
            return None
        used += len(new)
        filled += new
    return filled if used == len(arguments) else None


def _drivers(settings: bytes) -> list[str]:
    """The names of all filter drivers in an answer to `config`."""
    found = set()
    for row in settings.decode("utf-8", "surrogateescape").split("\0"):
        key = row.partition("\n")[0]
        if key.startswith("filter.") and key.count(".") >= 2:
            found.add(key[len("filter.") : key.rindex(".")])
    return sorted(found)
