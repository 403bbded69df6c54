"""A bash text in a scratch folder: what is planned, and what bash really does under strace."""

import contextlib
import fnmatch
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# The system's own names are meant.
# ruff: noqa: PTH113, PTH115, PTH118, PTH119, PTH120
from cxi.effects.base import Effect
from cxi.effects.shell.adapter import plan_text
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.sinks.disk import DiskWorld

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
TIMEOUT = 30
LARGEST = 4 * 1024 * 1024  # bytes of a file
_CALLS = "trace=file,process,connect,fchmod,ftruncate"
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_MAKING = {"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "symlink", "symlinkat", "link",
           "linkat", "chmod", "fchmodat", "truncate", "mknod", "mknodat", "creat"}  # fmt: skip


@dataclass(slots=True)
class Happened:
    """What bash did.

    Attributes:
        changes: (kind, target relative to the root) of every difference of the tree.
        programs: Names of the programs that were started, the shell not counted.
        reads: Files of the tree that were opened for reading, relative.
        outside: System calls that changed something outside the tree.
        connects: `host:port` of every connection beyond the machine's own sockets.
    """

    changes: set[tuple[str, str]] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    outside: list[str] = field(default_factory=list)
    connects: set[str] = field(default_factory=set)
    status: int = 0
    output: str = ""


def environment(root: Path) -> dict[str, str]:
    return {"PATH": SYSTEM_PATH, "HOME": str(root), "LC_ALL": "C.UTF-8"}


def plan(text: str, root: Path, *, cwd: str = "", closed: bool = True) -> Effect | Refused:
    env = environment(root) if closed else None
    return plan_text(text, RecordingSnapshot(DiskWorld(), str(root)), cwd=cwd, env=env)


def picture(root: Path) -> dict[str, tuple]:
    """Everything below a folder: kind, mode, what it holds, its time."""
    found: dict[str, tuple] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            held: object = None
            if stat.S_ISREG(info.st_mode):
                held = Path(path).read_bytes()
            elif stat.S_ISLNK(info.st_mode):
                held = os.readlink(path)
            mode = stat.S_IMODE(info.st_mode)
            found[os.path.relpath(path, root)] = (stat.S_IFMT(info.st_mode), mode, held, info.st_mtime_ns, info.st_ino)
    return found


def changes(before: dict[str, tuple], after: dict[str, tuple]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for path in before.keys() | after.keys():
        old, new = before.get(path), after.get(path)
        if old is not None and (new is None or new[0] != old[0] or (stat.S_ISLNK(old[0]) and old[2] != new[2])):
            found.add(("fs.rmdir" if stat.S_ISDIR(old[0]) else "fs.delete", path))
        if new is not None and (old is None or new[0] != old[0] or (stat.S_ISLNK(new[0]) and old[2] != new[2])):
            kind = {stat.S_IFDIR: "fs.mkdir", stat.S_IFLNK: "fs.symlink", stat.S_IFREG: "fs.create", stat.S_IFIFO: "fs.mkfifo"}
            found.add((kind[new[0]], path))
        if old is not None and new is not None and old[0] == new[0]:
            if stat.S_ISREG(new[0]) and old[2] != new[2]:
                found.add(("fs.write", path))
            if not stat.S_ISLNK(new[0]) and old[1] != new[1]:
                found.add(("fs.chmod", path))
    return found


def run(text: str, root: Path, log: Path, *, cwd: str = "", shell: str = "bash") -> Happened:
    """Run it for real."""
    before = picture(root)
    where = root / cwd
    # A text may write for ever (`tee -a x < x`): what it writes is limited, and all that it started is ended.
    process = subprocess.Popen(
        ["strace", "-f", "-qq", "-s", "4096", "-o", str(log), "-e", _CALLS, shell, "-c", text],
        cwd=where,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST)),  # noqa: PLW1509 - no threads here
    )
    output = b""
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        pass  # what it did until then is compared
    finally:
        for number in _members(process.pid):
            os.kill(number, signal.SIGKILL)
        process.wait()
    happened = Happened(changes(before, picture(root)), status=process.returncode, output=output.decode(errors="replace"))
    _read_log(log.read_text(encoding="utf-8", errors="surrogateescape"), root, where, happened)
    return happened


def _members(session: int) -> list[int]:
    """The processes of a session that are left."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def _read_log(text: str, root: Path, where: Path, happened: Happened) -> None:
    pending: dict[str, str] = {}
    folders: dict[str, str] = {}
    first = ""
    for raw in text.splitlines():
        pid, _, line = raw.partition(" ")
        line = line.strip()
        first = first or pid
        if line.endswith("<unfinished ...>"):
            pending[pid] = line[: -len("<unfinished ...>")]
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", line)
        if resumed:
            line = pending.pop(pid, "") + resumed[1]
        call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+|\?)", line)
        if call is None or call[3].startswith("-") or call[3] == "?":
            continue
        name, arguments = call[1], call[2]
        here = folders.get(pid, str(where))
        if name in ("clone", "clone3", "fork", "vfork"):
            folders[call[3]] = here
            continue
        paths = [_unescape(found) for found in re.findall(_QUOTED, arguments)]
        if name == "chdir" and paths:
            folders[pid] = os.path.normpath(os.path.join(here, paths[0]))
        elif name == "execve":
            base = os.path.basename(paths[0])
            if base not in ("bash", "sh", "dash"):
                happened.programs.add(base)
        elif name == "connect" and "AF_INET" in arguments:
            happened.connects.add(arguments)
        elif name in ("open", "openat") and paths:
            _opened(arguments, os.path.join(here, paths[0]), paths[0], root, happened)
        elif name in _MAKING and paths:
            # A path below a descriptor of a folder is below what was opened before.
            beside = bool(re.match(r"\d", arguments)) or bool(re.search(r", \d+, \"", arguments))
            made = paths[1:] if name.startswith(("link", "rename")) and len(paths) > 1 else paths[-1:]
            for path in [*made, *(paths[:1] if name.startswith("rename") else ())]:
                full = os.path.join(here, path)
                if not _within(full, root) and (path.startswith("/") or not beside):
                    happened.outside.append(f"{name} {full}")


def _opened(arguments: str, full: str, given: str, root: Path, happened: Happened) -> None:
    writes = any(flag in arguments for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"))
    relative_fd = not arguments.startswith("AT_FDCWD") and not given.startswith("/")
    if relative_fd:
        return
    if writes:
        if not _within(full, root) and not full.startswith(("/dev/", "/proc/")):
            happened.outside.append(f"{full}")
        return
    real = os.path.realpath(full)
    if _within(real, root) and os.path.isfile(real):
        happened.reads.add(os.path.relpath(real, root))


def _within(path: str, root: Path) -> bool:
    real = os.path.realpath(os.path.dirname(path))
    return real == str(root) or real.startswith(f"{root}/") or path == str(root)


def _unescape(text: str) -> str:
    return re.sub(
        r"\\([0-7]{1,3}|.)",
        lambda found: chr(int(found[1], 8)) if found[1].isdigit() else {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1]),
        text,
    ).encode("latin-1", "replace").decode("utf-8", "replace")  # fmt: skip


def misses(effect: Effect, happened: Happened, root: Path) -> list[str]:
    """What happened and is in no atom of the plan."""
    exact = {(atom.kind, atom.target) for atom in effect.atoms if not atom.pattern}
    globs = [(atom.kind, atom.target) for atom in effect.atoms if atom.pattern]
    programs = {os.path.basename(atom.target) for atom in effect.atoms if atom.kind == "proc.exec"}
    programs |= {ALIASES.get(program, program) for program in programs}
    found = [f"{kind} {target}" for kind, target in sorted(happened.changes) if not _covered(kind, target, exact, globs)]
    found += [f"proc.exec {program}" for program in sorted(happened.programs - programs) if not _aliased(program, programs)]
    found += [f"fs.read {target}" for target in sorted(happened.reads) if not _read(target, exact, globs)]
    found += [f"outside: {line}" for line in happened.outside if not _outside(line, exact, globs)]
    if happened.connects and not any(kind == "net.connect" for kind, _ in exact):
        found += [f"net.connect {line}" for line in happened.connects]
    return found


ALIASES = {"awk": "mawk", "egrep": "grep", "fgrep": "grep", "gunzip": "gzip", "zcat": "gzip"}


def _aliased(program: str, programs: set[str]) -> bool:
    return program in programs or (program == "gzip" and "gunzip" in programs)


def _covered(kind: str, target: str, exact: set, globs: list) -> bool:
    if (kind, target) in exact or any(one == kind and _matches(glob, target) for one, glob in globs):
        return True
    # A hard link is a name of a file; a file that is linked is created.
    return kind == "fs.create" and ("fs.link", target) in exact


def _matches(glob: str, target: str) -> bool:
    return fnmatch.fnmatchcase(target, glob.replace("**", "*"))


def _read(target: str, exact: set, globs: list) -> bool:
    # A file that the text wrote itself tells nothing when it is read again.
    return _covered("fs.read", target, exact, globs) or any(
        (kind, target) in exact for kind in ("fs.create", "fs.write", "fs.symlink")
    )


def _outside(line: str, exact: set, globs: list) -> bool:
    path = os.path.normpath(line.partition(" ")[2] if not line.startswith("/") else line)
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return any(target in (path, real) for _, target in exact) or any(
        _matches(glob, path) for _, glob in globs if glob.startswith("/")
    )


def extras(effect: Effect, happened: Happened) -> list[str]:
    """What was planned for certain among the files, and did not happen."""
    kinds = {"fs.create", "fs.write", "fs.delete", "fs.mkdir", "fs.rmdir", "fs.symlink", "fs.chmod"}
    planned = {(a.kind, a.target) for a in effect.atoms if a.kind in kinds and not a.pattern and not a.attributes.get("maybe")}
    return [f"{kind} {target}" for kind, target in sorted(planned - happened.changes)]


def clear(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)


__all__ = ["Happened", "changes", "clear", "extras", "misses", "picture", "plan", "run"]
