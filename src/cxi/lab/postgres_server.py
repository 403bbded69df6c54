"""How does an experiment get a real PostgreSQL server of its own?

- Debian's `postgresql` package is enough; nothing that runs already is touched. The server listens on a socket in its own
  folder and on
  a loopback port, trusts whoever reaches it, and is gone with its folder when the block ends, also after a failure.
- PostgreSQL refuses to run as root: then its processes are those of `postgres`, or of `nobody`.
- A shell stands between: where this process is killed, its pipe closes and the server is stopped all the same.

    with Server.started() as server:
        psycopg.connect(server.address())
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

SUPERUSER: Final = "postgres"
NEEDED: Final = ("initdb", "postgres", "pg_ctl", "pg_basebackup")
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "logging_collector": "off",
    "log_min_messages": "warning",
}
# Stops the server when the pipe from this process closes, however it closes.
_WRAPPER: Final = '"$@" >>"$LOG" 2>&1 </dev/null & pid=$!; read -r _ || :; kill -QUIT $pid 2>/dev/null; wait $pid'


class Unavailable(Exception):
    """There is no PostgreSQL here, or nobody to run it as."""


def find_programs() -> Path:
    """The folder of the server's programs: what `pg_config` says, else Debian's newest, else that of `PATH`.

    Raises:
        Unavailable: where there are none.
    """
    candidates: list[Path] = []
    config = shutil.which("pg_config")
    if config is not None:
        found = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        candidates.append(Path(found))
    debian = Path("/usr/lib/postgresql")
    candidates += sorted(debian.glob("*/bin"), key=lambda path: int("0" + path.parent.name.partition(".")[0]), reverse=True)
    on_path = shutil.which("postgres")
    candidates += [Path(on_path).resolve().parent] if on_path else []
    for folder in candidates:
        if all((folder / name).exists() for name in NEEDED):
            return folder
    raise Unavailable("PostgreSQL's server programs are not installed (Debian: `apt-get install postgresql`)")


def run_as() -> str | None:
    """The user that a server runs as, or None for oneself.

    Raises:
        Unavailable: where this is root and there is no other.
    """
    if os.geteuid() != 0:
        return None
    for name in (SUPERUSER, "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise Unavailable("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")


class Server:
    """One server and its folder."""

    def __init__(self, folder: Path, programs: Path, user: str | None, *, standby_of: Server | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = _free_port()
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        if standby_of is None:
            self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync")
            settings = dict(_SETTINGS)
        else:
            self._run(
                "pg_basebackup",
                "-D",
                str(self.data),
                "-d",
                f"{standby_of.address()} application_name={folder.name}",
                "-R",
                "-c",
                "fast",
            )
            settings = {}
        self.set(
            {**settings, "port": str(self.port), "listen_addresses": "'127.0.0.1'", "unix_socket_directories": f"'{folder}'"}
        )

    @classmethod
    @contextmanager
    def started(cls, *, standby_of: Server | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Self]:
        """A server that runs while the block does.

        Args:
            standby_of: The server that it follows, by streaming replication; its `application_name` is its folder's name.
            settings: More of `postgresql.conf`.

        Raises:
            Unavailable: where there is no PostgreSQL here.
        """
        programs, user = find_programs(), run_as()
        folder = Path(tempfile.mkdtemp(prefix="cxi-pg-", dir="/tmp"))  # short: a socket's path has 107 bytes
        try:
            if user is not None:
                found = pwd.getpwnam(user)
                os.chown(folder, found.pw_uid, found.pw_gid)
            server = cls(folder, programs, user, standby_of=standby_of)
            server.set(settings or {})
            try:
                server.start()
                yield server
            finally:
                server.stop()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def address(self, *, database: str = "postgres", user: str = SUPERUSER, tcp: bool = False) -> str:
        """Where it is reached, for libpq: by its socket, or by its loopback port."""
        host = "127.0.0.1" if tcp else str(self.folder)
        return f"host={host} port={self.port} dbname={database} user={user}"

    @property
    def pid(self) -> int:
        """The postmaster's."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def set(self, settings: Mapping[str, str]) -> None:
        """Add to `postgresql.conf`; what runs sees it after `reload`."""
        lines = "".join(
            f"{name} = {value if value.startswith(chr(39)) else chr(39) + value + chr(39)}\n" for name, value in settings.items()
        )
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(lines)

    def reload(self) -> None:
        """Read the settings again."""
        os.kill(self.pid, signal.SIGHUP)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self.data)]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WRAPPER, "sh", *command],
            stdin=subprocess.PIPE,
            cwd=self.folder,
            env=self._environment(),
            **self._identity(),
        )
        end = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Unavailable(f"the server did not start: {self.log()[-500:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it as fast as it can be stopped cleanly; a second time does nothing."""
        if self._process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.pid, signal.SIGINT)
        end = time.monotonic() + _STOP_SECONDS
        while (self.data / "postmaster.pid").exists() and time.monotonic() < end:
            time.sleep(0.02)
        self._close()

    def kill(self) -> None:
        """Kill it as a power cut would: SIGKILL to the postmaster and to all that it started."""
        with contextlib.suppress(OSError, ValueError):
            pid = self.pid
            children = _children(pid)
            for one in (pid, *children):
                with contextlib.suppress(OSError):
                    os.kill(one, signal.SIGKILL)
        if self._process is not None:
            self._close()

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def log(self) -> str:
        """What it wrote."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def program(self, name: str) -> Path:
        """One of its programs."""
        return self._programs / name

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _is_ready(self) -> bool:
        answer = subprocess.run(
            [str(self._programs / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)], check=False, cwd="/"
        )
        return answer.returncode == 0

    def _run(self, name: str, *arguments: str, check: bool = True) -> int:
        command: Sequence[str] = [str(self._programs / name), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False, **self._identity()
        )
        if check and done.returncode:
            raise Unavailable(f"`{name}` failed: {done.stderr[-500:]}")
        return done.returncode

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", "LOG": str(self.folder / "log")}

    def _identity(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found
