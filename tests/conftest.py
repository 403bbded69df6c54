"""What every test stands on: no network beyond loopback, a state folder of its own, and reproducible examples."""

from __future__ import annotations

import ipaddress
import os
import runpy
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# `ci` is the same on every machine and run; `full` looks further (make test-full).
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "full", deadline=None, max_examples=600, print_blob=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the promises whose tests have not landed."""
    promises = runpy.run_path(str(Path(__file__).with_name("requirements.py")))["PROMISES"]
    waiting = [promise.id for promise in promises if promise.pending]
    if waiting:
        terminalreporter.section(f"{len(waiting)} of {len(promises)} promises wait for their tests")
        terminalreporter.line(", ".join(waiting))


class NetworkReached(AssertionError):
    """A test tried to leave the machine."""


def refuse_beyond_loopback(host: object) -> None:
    """Raise unless the host is this machine by its number, or `localhost`."""
    if host is None:
        return
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if name in ("", "localhost"):
        return
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        raise NetworkReached(f"a test looked up `{name}`") from None
    mapped = getattr(address, "ipv4_mapped", None)
    if not (address.is_loopback or address.is_unspecified or (mapped is not None and mapped.is_loopback)):
        raise NetworkReached(f"a test reached for `{name}`")


def _guard(monkeypatch: pytest.MonkeyPatch, name: str, position: int) -> None:
    """Guard a method of sockets whose argument at `position` is an address; -1 means the last one."""
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[position]
        if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
            refuse_beyond_loopback(address[0])
        return original(self, *arguments)

    monkeypatch.setattr(socket.socket, name, guarded)


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Guard sockets and name look-ups of this process. What a test starts is a real program: its test keeps it on loopback."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, position in (("connect", 0), ("connect_ex", 0), ("sendto", -1)):
            _guard(monkeypatch, name, position)
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
            original = getattr(socket, name)

            def guarded(host: object, *rest: Any, _original: Any = original, **named: Any) -> Any:
                refuse_beyond_loopback(host)
                return _original(host, *rest, **named)

            monkeypatch.setattr(socket, name, guarded)
        yield


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own `$XDG_STATE_HOME`, and git without the machine's settings.

    The folder's name is short: a control socket's path has to fit into 108 bytes (unix(7)).
    """
    with tempfile.TemporaryDirectory(prefix="cxi-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture(scope="session")
def _postgres_server() -> Iterator[Any]:
    """A PostgreSQL server with the ledger's database, for this test process."""
    from backend_case import cluster  # noqa: PLC0415  # most tests need no database
    from cxi.lab.postgres_server import Unavailable, find_programs, run_as  # noqa: PLC0415

    try:
        find_programs(), run_as()
    except Unavailable as error:
        pytest.skip(str(error))
    with cluster() as found:
        yield found


@pytest.fixture
def postgres(_postgres_server: Any) -> Any:
    """The PostgreSQL server, its ledger empty (`backend_case.Cluster`)."""
    _postgres_server.clear()
    return _postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """One empty ledger (`backend_case.Backend`): each test runs over both stores."""
    from backend_case import PostgresBackend, SqliteBackend  # noqa: PLC0415

    if request.param == "sqlite":
        return SqliteBackend(tmp_path / "state")
    return PostgresBackend(request.getfixturevalue("postgres"))


@pytest.fixture(scope="session")
def cxi_corpora() -> Path:
    """The folder of recorded runs, which are too large for the repository; `CXI_CORPORA` names it."""
    named = os.environ.get("CXI_CORPORA", "")
    if not named:
        pytest.skip("CXI_CORPORA does not name a folder of recorded runs")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"CXI_CORPORA names `{named}`, which is no folder")
    return folder
