"""How is git asked?

- Only the named questions of `cxi.effects.git.QUESTIONS`, and where its system-wide files are. INVARIANT (questions-run-nothing):
  no question runs a program of the repository's choosing. Hooks, monitor, pager, transports and lazy fetching are off; optional
  locks are not taken, so that nothing is written; filter drivers are taken away where git would convert a file.
- Git is asked in the environment of the server whose call is judged. INVARIANT (same-settings): the settings that the gate reads
  are those that the server's git reads - the system's, the user's, the repository's and the environment's (`GIT_CONFIG_COUNT`).
- A variable that would have the server's git act otherwise than the questions tell (`GIT_DIR`, `GIT_EXEC_PATH`, one that is not
  known) leaves every question without an answer, so that what git would do is refused. So does a `git` of a relative `PATH`.
- A question that takes longer than `TIMEOUT`, or whose answer is over `LIMIT` bytes, has no answer.

    >>> Plumbing({"PATH": "relative"}).ask("/srv/repo", "config", ()) is None
    True
"""

# The system calls themselves are meant: descriptors, flags, names that are no UTF-8.
# ruff: noqa: PTH116, PTH117, PTH118, PTH120

from __future__ import annotations

import os
import re
import select
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from cxi.effects.git import QUESTIONS

LIMIT: Final = 64 * 1024 * 1024
TIMEOUT: Final = 20.0  # seconds

_CHUNK: Final = 64 * 1024
_OF_SETTINGS: Final = frozenset({"config", "origins", "hooks-path"})

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

ProgramFile: TypeAlias = tuple[str, int, int, int, int, int]  # path, device, inode, size, modified, changed


@dataclass(frozen=True, slots=True)
class Places:
    """The files that a build of git reads for every user (git-config(1), gitattributes(5)), absolute.

    Attributes:
        settings: Usually `/etc/gitconfig`.
        attributes: Usually `/etc/gitattributes`.
    """

    settings: str
    attributes: str


class Plumbing:
    """The git of one server.

    Args:
        source: The whole environment of the server.
    """

    def __init__(self, source: Mapping[str, str]) -> None:
        self.environment: Mapping[str, str] = {name: source[name] for name in _KEPT if name in source} | _SET
        self._given = _read_counted(source)
        self._programs = _name_programs(self.environment.get("PATH", os.defpath)) if self._given is not None else ()
        plain = {name: text for name, text in self.environment.items() if name not in (*_UNREAD, "HOME", "TMPDIR")}
        self._plain = tuple(sorted(plain.items()))

    def find(self) -> ProgramFile | None:
        """The program, as it is now; None where there is none, or where nothing can be asked."""
        for program in self._programs:
            try:
                status = os.stat(program)
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) and os.access(program, os.X_OK):
                return program, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return None

    def ask(self, repository: str, question: str, arguments: tuple[str, ...], drivers: Sequence[str] = ()) -> bytes | None:
        """One question to a new process.

        Args:
            repository: The work tree, absolute.
            question: A name of `QUESTIONS`.
            arguments: Its own arguments.
            drivers: The filter drivers that are to be taken away.
        """
        template, program = QUESTIONS.get(question), self.find()
        if template is None or self._given is None or program is None or not os.path.isabs(repository):
            return None
        command = _fill(template, arguments)
        if command is None:
            return None
        # What tells the settings runs nothing, and is told of the server's settings alone.
        overrides = list(_OVERRIDES) if question not in _OF_SETTINGS else []
        for driver in drivers:
            # An empty command is none (convert.c, `apply_filter`); `required` would make its absence an error.
            overrides += [(f"filter.{driver}.{key}", "") for key in ("clean", "smudge", "process")]
            overrides.append((f"filter.{driver}.required", "false"))
        environment = {
            **self.environment,
            "GIT_CEILING_DIRECTORIES": os.path.dirname(repository),
            _COUNT: str(len(self._given) + len(overrides)),
        }
        # The last one holds (git-config(1), GIT_CONFIG_COUNT): what the gate sets comes after what the server was given.
        for index, (key, value) in enumerate((*self._given, *overrides)):
            environment[f"GIT_CONFIG_KEY_{index}"], environment[f"GIT_CONFIG_VALUE_{index}"] = key, value
        code, data = _launch(program[0], repository, command, environment)
        if question not in _OF_SETTINGS:
            return data if code == 0 else None
        if question == "config" and (self._given or any(name in self.environment for name in _UNREAD)):
            plain = {name: text for name, text in environment.items() if name not in _UNREAD}
            other = _launch(program[0], repository, command, plain)
            if other[0] != 0 or _hook_paths(data) != _hook_paths(other[1]):
                return None
        # git-config(1): 1 where the key is not set.
        if data is None or code not in ((0, 1) if question == "hooks-path" else (0,)):
            return None
        return data if question == "origins" else _relabel(data)

    def places(self, program: ProgramFile) -> Places | None:
        """Where this program's system-wide files are; None where it does not tell."""
        return _ask_places(program, self._plain)


@lru_cache(maxsize=16)  # a program that is replaced is another one
def _ask_places(program: ProgramFile, variables: tuple[tuple[str, str], ...]) -> Places | None:
    environment = dict(variables)
    told = [_launch(program[0], "/", ["var", name], environment) for name in ("GIT_CONFIG_SYSTEM", "GIT_ATTR_SYSTEM")]
    texts = [os.fsdecode(data or b"").rstrip("\n") for code, data in told if code == 0]
    if len(texts) < len(told):
        # Before 2.41 git tells the one to an editor only; both stand in one folder (Makefile, `ETC_GITATTRIBUTES`).
        code, data = _launch(program[0], "/", ["config", "--system", "--edit"], environment | {"GIT_EDITOR": "echo"})
        text = os.fsdecode(data or b"").rstrip("\n") if code == 0 else ""
        texts = [text, os.path.join(os.path.dirname(text), "gitattributes")]
    return Places(*texts) if all(os.path.isabs(text) and "\n" not in text for text in texts) else None


def _launch(program: str, folder: str, command: list[str], environment: Mapping[str, str]) -> tuple[int, bytes | None]:
    """Git's exit status and what it wrote; a status of -1 where it did not run to its end."""
    try:
        process = subprocess.Popen(
            ["git", "--no-pager", *command],  # noqa: S607  # found on the server's own path, as the server does
            executable=program,
            cwd=folder,
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


def _name_programs(path: str) -> tuple[str, ...]:
    """Where a search path looks for `git`; it ends at a folder that depends on the one that someone stands in."""
    folders = path.split(os.pathsep)
    count = next((at for at, folder in enumerate(folders) if not os.path.isabs(folder)), len(folders))
    return tuple(os.path.join(folder, "git") for folder in folders[:count])


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
