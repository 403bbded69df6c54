"""What does the machine's own disk, and its git, answer?

- `DiskWorld` is the world of the machine that it runs on. It reads only: lstat(2), readlink(2), the names in a folder, the bytes
  of a regular file that is opened without following a link.
- Of git it asks the named questions of `cxi.effects.git.QUESTIONS` and nothing else. INVARIANT (questions-run-nothing): no
  question runs a program of the repository's choosing. Hooks, monitor, pager, transports and lazy fetching are off; optional
  locks are not taken, so that nothing is written; filter drivers are taken away where git would convert a file.
- Git is asked in the environment of the server whose call is judged. INVARIANT (same-settings): the settings that the gate reads
  are those that the server's git reads - the system's, the user's, the repository's and the environment's (`GIT_CONFIG_COUNT`).
- A variable that would have the server's git act otherwise than the questions tell (`GIT_DIR`, `GIT_EXEC_PATH`, one that is not
  known) leaves every question without an answer, so that what git would do is refused. So does a `git` of a relative `PATH`.
- What git told of the index alone is told again while the file holds the same bytes; nothing is remembered by time alone.
- A question that takes longer than `TIMEOUT`, or whose answer is over `LIMIT` bytes, has no answer.

    >>> DiskWorld().entry("/").kind.value
    'folder'
"""

# The system calls themselves are meant: descriptors, flags, names that are no UTF-8.
# ruff: noqa: PTH113, PTH115, PTH116, PTH117, PTH118, PTH120, PTH208

from __future__ import annotations

import os
import re
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

_OF_SETTINGS: Final = frozenset({"config", "hooks-path"})

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
# Git's own variables that change no program that it runs and no path that it writes: whose name a commit bears, what is asked of
# a person, which transports may be used and how (no operation that is read uses one), what GitPython says of a missing git.
_IDLE: Final = frozenset(
    {
        *(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")),
        *("GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "GIT_NO_LAZY_FETCH"),
        *("GIT_PYTHON_REFRESH", "GIT_HTTP_USER_AGENT", "GIT_ADVICE"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_NO_VERIFY", "GIT_SSL_VERSION"),
    }
)
_COUNT: Final = "GIT_CONFIG_COUNT"
_COUNTED: Final = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+\Z")
# GitPython, which runs the hooks of a commit, reads the files of the settings by itself and knows none of these. Where
# `core.hooksPath` is not the same to both readers, the settings have no answer.
_UNREAD: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", _COUNT)
_MOST_COUNTED: Final = 1000
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
        environment: The whole environment of the server whose calls are judged (`cxi.sinks.process.environment`); the default is
            this process's own, in which in-process tools run.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if name in source} | _SET
        self._given = _read_counted(source)
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
        # What tells the settings runs nothing, and is told of the server's settings alone.
        overrides = list(_OVERRIDES) if question not in _OF_SETTINGS else []
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
        answer = self._ask(repository, "config", ())
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
            f"{home}/.gitconfig",
            f"{settings}/git/config",
            "/etc/gitconfig",
            *(self._environment[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if self._environment.get(name)),
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
        program = _find_git(self._environment.get("PATH", os.defpath))
        if template is None or self._given is None or program is None or not os.path.isabs(repository):
            return None
        command = _fill(template, arguments)
        if command is None:
            return None
        environment = self._environment | {
            "GIT_CEILING_DIRECTORIES": os.path.dirname(repository),
            _COUNT: str(len(self._given) + len(overrides)),
        }
        # The last one holds (git-config(1), GIT_CONFIG_COUNT): what the gate sets comes after what the server was given.
        for index, (key, value) in enumerate((*self._given, *overrides)):
            environment |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
        code, data = self._launch(program, repository, command, environment)
        if question not in _OF_SETTINGS:
            return data if code == 0 else None
        if question == "config" and (self._given or any(name in self._environment for name in _UNREAD)):
            plain = {name: text for name, text in environment.items() if name not in _UNREAD}
            other = self._launch(program, repository, command, plain)
            if other[0] != 0 or _hook_paths(data) != _hook_paths(other[1]):
                return None
        # git-config(1): 1 where the key is not set.
        return _relabel(data) if data is not None and code in ((0, 1) if question == "hooks-path" else (0,)) else None

    def _launch(
        self, program: str, repository: str, command: list[str], environment: Mapping[str, str]
    ) -> tuple[int, bytes | None]:
        """Git's exit status and what it wrote; a status of -1 where it did not run to its end."""
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *command],  # noqa: S607  # found on the server's own path, as the server does
                executable=program,
                cwd=repository,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return -1, None
        with process:
            data = _read_all(process, time.monotonic() + TIMEOUT)
            if data is None:
                process.kill()
            code = process.wait()
        return (-1, None) if data is None else (code, data)


def _hook_paths(answer: bytes | None) -> list[bytes]:
    """The values of `core.hooksPath` in an answer to `config`, in order."""
    key = b"core.hookspath"
    return [row[len(key) :] for row in (answer or b"").split(b"\0") if row == key or row.startswith(key + b"\n")]


def _read_counted(source: Mapping[str, str]) -> tuple[tuple[str, str], ...] | None:
    """The settings that an environment holds (git-config(1), `GIT_CONFIG_COUNT`).

    Returns:
        Keys and values in order; None where they cannot be read, or where another variable changes what git does.
    """
    known = {*_KEPT, *_IDLE, _COUNT}
    if any(name.startswith("GIT_") and name not in known and not _COUNTED.match(name) for name in source):
        return None
    text = source.get(_COUNT) or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_COUNTED)) and int(text) <= _MOST_COUNTED):
        return None
    pairs = [(source.get(f"GIT_CONFIG_KEY_{index}"), source.get(f"GIT_CONFIG_VALUE_{index}")) for index in range(int(text))]
    found = tuple((key, value) for key, value in pairs if key is not None and value is not None)
    return found if len(found) == len(pairs) else None


def _find_git(path: str) -> str | None:
    """The `git` that a search path names; None where there is none, or where it depends on the folder that one stands in."""
    for folder in path.split(os.pathsep):
        if not os.path.isabs(folder):
            return None
        program = os.path.join(folder, "git")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _relabel(answer: bytes) -> bytes:
    """Settings with their scopes: git calls the environment's `command`, as it would those of the gate, which are not here."""
    rows = answer.split(b"\0")
    rows[:-1:2] = [b"environment" if scope == b"command" else scope for scope in rows[:-1:2]]
    return b"\0".join(rows)


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
