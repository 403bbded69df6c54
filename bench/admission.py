"""What does one admission cost, beside the least that any gate would have to do?

- **CPU**: `Session.propose` of a file write that is admitted, all of it on a file system in memory, against `rfc8785` and SHA-256
  of the same manifest, the same `cedarpy` calls (one an atom, one for the call, over the same parsed policies, schema and JSON
  text) and SHA-256 of the content, which is all that a file write's payload needs of a parser. `time.process_time`.
- **Durable**: the same turn on a disk, against one durable SQLite commit of one row on the same disk. Wall clock.
- **Replays**: a second call under the same idempotency key, recorded or refused, against an admission. Wall clock, on the disk.
- **Syncs**: how often anything is synced between the proposal and the sink, counted by strace(1).

The writes are really done and settled between the calls, outside the clock. What is random is drawn from a counter, so that both
arms are about the same manifests.

    python bench/admission.py [--json] [--rounds 15] [--calls 40] [--disk FOLDER] [--memory FOLDER] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import json
import os
import pstats
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import rfc8785
from arms import Arm, Measured, alternate, report
from cedarpy import is_authorized

from cxi.config.load import load
from cxi.config.lock import make_lock, write_lock
from cxi.errors import Refused
from cxi.guard import HOST, Guard
from cxi.ledger.base import Lease
from cxi.policy import monitor
from cxi.policy.base import Permitted, PolicyRequest
from cxi.policy.monitor import CedarMonitor
from cxi.policy.rule import Policy
from cxi.policy.schema import SchemaJson
from cxi.provenance import RequestChannel
from cxi.reply import text_result
from cxi.session import Answered, Ready, Session
from cxi.sinks.base import Answer

POLICIES: Final = Path(__file__).resolve().parents[1] / "examples" / "maintainer" / "policies"
REQUEST: Final = "Fix the failing rounding test in src/tax.py and commit."
TARGET: Final = "src/tax.py"
TOOL: Final = "files.write_file"
NOW: Final = 1_750_000_000.0
DEFINITION: Final = {
    "name": "write_file",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
}


def content(number: int) -> str:
    """About a kilobyte of source, another one for each number."""
    lines = "".join(f"def step_{index}(amount):\n    return amount * {number} + {index}\n\n\n" for index in range(20))
    return f'"""Version {number}."""\n\n{lines}'


class Place:
    """A repository, a configuration over it, and a session with an open task; made anew for each round."""

    def __init__(self, base: Path, *, repeat: str = "replay") -> None:
        self.base = base
        self.repo = base / "repo"
        self.number = 0
        self._drawn = 0
        self._stack = ExitStack()
        self.session: Session
        shutil.rmtree(base, ignore_errors=True)
        for folder in ("repo/src", "repo/tests", "repo/docs", "cxi"):
            (base / folder).mkdir(parents=True)
        for index in range(20):
            (self.repo / "src" / f"part_{index}.py").write_text(content(index), encoding="utf-8")
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.repo)], check=True)
        shutil.copytree(POLICIES, base / "cxi" / "policies")
        self.file = base / "cxi" / "cxi.yaml"
        tools = {"write_file": {"repeat": repeat}}
        body = {
            "version": 1,
            "agent": "maintainer",
            "root": str(self.repo),
            "state": str(base / "state"),
            "policies": ["policies/*.cedar"],
            "servers": {"files": {"command": ["true"], "pack": "filesystem", "tools": tools}},
            "tasks": {"fix-bug": {"grants": {TOOL: 100_000}}},
        }
        self.file.write_text(json.dumps(body), encoding="utf-8")  # JSON is YAML
        config = load(self.file, environ=os.environ, pinned=False)
        write_lock(config.lock_file, make_lock(config, {"files": [DEFINITION]}))

    def draw(self, count: int) -> bytes:
        """Bytes that look random and are the same in every round."""
        self._drawn += 1
        return hashlib.shake_128(b"%d" % self._drawn).digest(count)

    def open(self) -> None:
        """A fresh state folder, the file as it was, a guard and a session."""
        self.close()
        shutil.rmtree(self.base / "state", ignore_errors=True)
        (self.repo / TARGET).write_text(content(0), encoding="utf-8")
        self.number = self._drawn = 0
        guard = self._stack.enter_context(Guard.open(self.file, clock=lambda: NOW, entropy=self.draw))
        guard.admit_listing("files", [DEFINITION])
        self.session = guard.open_session()
        started = self.session.start_task(REQUEST, "fix-bug", channel=RequestChannel.HOST_API, credential=HOST)
        if started != "fix-bug":
            raise SystemExit(str(started))

    def close(self) -> None:
        """Close what `open` opened."""
        self._stack.close()

    def propose(self, key: str = "") -> Ready:
        """The next write, up to its sink."""
        self.number += 1
        prepared = self.session.propose(TOOL, {"path": TARGET, "content": content(self.number)}, idempotency_key=key)
        if isinstance(prepared, Answered):
            raise SystemExit(f"not admitted: {prepared.result}")
        return prepared

    def settle(self, prepared: Ready) -> Ready:
        """Write what was admitted, and settle it."""
        lease = prepared.warrant
        assert isinstance(lease, Lease)
        arguments = lease.manifest.action.call.arguments
        (self.repo / TARGET).write_text(str(arguments["content"]), encoding="utf-8")
        finished = self.session.finish(prepared, Answer(text_result("written"), failed=False))
        if finished.refused is not None:
            raise SystemExit(str(finished.refused))
        return prepared


@contextmanager
def place(folder: Path, *, repeat: str = "replay") -> Iterator[Place]:
    """A place in a scratch folder of its own."""
    base = Path(tempfile.mkdtemp(prefix="cxi-bench-", dir=folder)).resolve()
    made = Place(base / "place", repeat=repeat)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(base, ignore_errors=True)


Result = tuple[str, int, str]  # the manifest's digest, how many Cedar requests were allowed, the content's digest


def result_of(prepared: Ready) -> Result:
    """What both arms must agree on."""
    lease = prepared.warrant
    assert isinstance(lease, Lease)
    (atom,) = prepared.decision.effect.atoms
    return lease.manifest.digest, 1 + len(prepared.decision.effect.atoms), str(atom.attributes["after"])


@dataclass(frozen=True, slots=True)
class InForce:
    """What a monitor is made over."""

    policies: Mapping[str, Policy]
    schema: SchemaJson


@contextmanager
def hear() -> Iterator[list[tuple[Any, ...]]]:
    """What Cedar is asked meanwhile, by monitors that answer nothing themselves."""
    asked: list[tuple[Any, ...]] = []
    real, decide = monitor.is_authorized, CedarMonitor.decide
    references: dict[CedarMonitor, CedarMonitor] = {}

    def record(*arguments: Any) -> Any:
        asked.append(arguments)
        return real(*arguments)

    def ask(own: CedarMonitor, request: PolicyRequest) -> Permitted | Refused:
        if own not in references:
            policies = {policy.id: policy for policy in own._policies}  # noqa: SLF001
            references[own] = CedarMonitor(InForce(policies, own._schema), own=False)  # noqa: SLF001
        return decide(references[own], request)

    monitor.is_authorized = record  # type: ignore[attr-defined]  # the questions are heard
    CedarMonitor.decide = ask  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        monitor.is_authorized, CedarMonitor.decide = real, decide  # type: ignore[attr-defined, method-assign]  # as it was


def measure_cpu(memory: Path, rounds: int, calls: int) -> Measured:
    """The decision and the admission, in CPU time."""
    with place(memory) as here:
        # One round is recorded: the manifests, and what Cedar was asked.
        recorded: list[tuple[Mapping[str, Any], list[tuple[Any, ...]], bytes]] = []
        with hear() as asked:
            here.open()
            for _ in range(calls):
                asked.clear()
                lease = here.settle(here.propose()).warrant
                assert isinstance(lease, Lease)
                sent = str(lease.manifest.action.call.arguments["content"]).encode()
                recorded.append((lease.manifest.to_json(), list(asked), sent))
        position = iter(recorded)

        def rewind() -> None:
            nonlocal position
            position = iter(recorded)

        def least() -> Result:
            manifest, requests, sent = next(position)
            named = "sha256:" + hashlib.sha256(rfc8785.dumps(manifest)).hexdigest()  # type: ignore[arg-type]  # plain JSON
            allowed = sum(is_authorized(*request).allowed for request in requests)
            return named, allowed, "sha256:" + hashlib.sha256(sent).hexdigest()

        # Between its calls the anchor does what the other arm does between its own, so that neither finds a warmer cache.
        with place(memory) as elsewhere:
            elsewhere.open()

            def meanwhile(result: Result) -> Result:
                elsewhere.settle(elsewhere.propose())
                return result

            def finish(ready: Ready) -> Result:
                return result_of(here.settle(ready))

            return _alternate_cpu(here, recorded[0], rounds, calls, finish, Arm(ANCHOR, least, rewind, meanwhile))


ANCHOR: Final = "rfc8785 + SHA-256 + cedarpy + SHA-256 of the content"


def _alternate_cpu(
    here: Place,
    first: tuple[Mapping[str, Any], list[tuple[Any, ...]], bytes],
    rounds: int,
    calls: int,
    finish: Callable[[Ready], Result],
    anchor: Arm,
) -> Measured:
    manifest, requests, sent = first
    return alternate(
        Arm("propose, admitted", here.propose, here.open, finish),
        anchor,
        title="admission, CPU",
        rounds=rounds,
        calls=calls,
        inputs={
            "manifest bytes": len(rfc8785.dumps(manifest)),  # type: ignore[arg-type]  # plain JSON
            "content bytes": len(sent),
            "cedar requests": len(requests),
            "policies": len(here.session._wiring.gate.monitor._policies),  # noqa: SLF001  # type: ignore[attr-defined]  # what is benched
            "state": "in memory (tmpfs)" if here.base.is_relative_to("/dev/shm") else "on a disk",
        },
        clock=time.process_time,
    )


class Bare:
    """One durable SQLite commit of one row."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database: sqlite3.Connection | None = None

    def open(self) -> None:
        self.close()
        for file in self._folder.glob("bare.sqlite*"):
            file.unlink()
        self._database = sqlite3.connect(self._folder / "bare.sqlite", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("CREATE TABLE row (seq INTEGER PRIMARY KEY, content TEXT NOT NULL)")

    def commit(self) -> None:
        """Raises: AssertionError: it is not open."""
        assert self._database is not None
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("INSERT INTO row (content) VALUES (?)", ("x" * 1000,))
        self._database.execute("COMMIT")

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def measure_durable(disk: Path, rounds: int, calls: int) -> Measured:
    """The whole of it, beside one durable commit."""
    with place(disk) as here:
        bare = Bare(here.base)
        try:
            return alternate(
                Arm("propose, admitted", here.propose, here.open, lambda ready: here.settle(ready) and None),
                Arm("one durable commit of one row", bare.commit, bare.open),
                title="admission / one durable commit, wall clock",
                rounds=rounds,
                calls=calls,
                inputs={"row bytes": 1000, "journal": "WAL, synchronous=FULL"},
                durable_in=here.base,
            )
        finally:
            bare.close()


def measure_replay(disk: Path, rounds: int, calls: int, *, repeat: str) -> Measured:
    """A second call under the same key, beside an admission under a key of its own."""
    with place(disk, repeat=repeat) as one, place(disk, repeat=repeat) as other:

        def begin() -> None:
            one.open()
            one.settle(one.propose("first"))
            one.settle(one.propose("second"))

        def again() -> Any:
            return one.session.propose(TOOL, {"path": TARGET, "content": content(1)}, idempotency_key="first")

        def kind(answer: Any) -> bool:
            if not isinstance(answer, Answered) or answer.kind != ("recorded" if repeat == "replay" else "refused"):
                raise SystemExit(f"not what was expected: {answer}")
            return True

        def fresh() -> Ready:
            return other.propose(f"key-{other.number}")

        title = "a replay that is answered from the record" if repeat == "replay" else "a replay that is refused"
        return alternate(
            Arm("the same key again", again, begin, kind),
            Arm("an admission", fresh, other.open, lambda ready: bool(other.settle(ready))),
            title=f"{title} / an admission, wall clock",
            rounds=rounds,
            calls=calls,
            inputs={"repeat": repeat},
            durable_in=one.base,
        )


CALLS: Final = ("fsync", "fdatasync", "msync", "sync_file_range")


def count_syncs(disk: Path, calls: int) -> str:
    """How often anything is synced before the sink, and until the settlement, by strace."""
    strace = shutil.which("strace")
    if strace is None:
        return "syncs: strace is not installed, so they were not counted"
    with tempfile.NamedTemporaryFile("r", dir=disk) as out:
        command = [strace, "-f", "-o", out.name, "-e", f"trace={','.join(CALLS)},stat,newfstatat,statx"]
        done = subprocess.run(
            [*command, sys.executable, __file__, "--traced", str(calls), "--disk", str(disk)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return f"syncs: not counted: {done.stderr.strip().splitlines()[-1:]}"
        phase, found = "", {"proposed": [0] * calls, "sink": [0] * calls}
        number = -1
        for line in out.read().splitlines():
            if "/nonexistent/" in line:
                phase = line.partition("/nonexistent/")[2].partition('"')[0]
                number += phase == "proposed"
            elif phase in found and any(f" {name}(" in line for name in CALLS):
                found[phase][number] += 1
    return (
        f"syncs from the proposal to the sink: {sorted(set(found['proposed']))}; from the sink to the settlement's end:"
        f" {sorted(set(found['sink']))}; {calls} admissions"
    )


def traced(disk: Path, calls: int) -> None:
    """What runs under strace; the marks are questions for files that are nowhere."""
    with place(disk) as here:
        here.open()
        here.settle(here.propose())
        for _ in range(calls):
            Path("/nonexistent/proposed").exists()
            ready = here.propose()
            Path("/nonexistent/sink").exists()
            here.settle(ready)
            Path("/nonexistent/settled").exists()


def profile(memory: Path, calls: int) -> None:
    """Where the time of an admission goes, by function."""
    with place(memory) as here:
        here.open()
        here.settle(here.propose())
        profiler = cProfile.Profile()
        for _ in range(calls):
            ready = profiler.runcall(here.propose)
            here.settle(ready)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(45)
    pstats.Stats(profiler).strip_dirs().sort_stats("cumulative").print_stats(60)


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()), help="a folder on a real disk")
    memory = Path("/dev/shm")  # tmpfs on Linux
    parser.add_argument("--memory", type=Path, default=memory if memory.is_dir() else Path(tempfile.gettempdir()))
    parser.add_argument("--only", choices=("cpu", "durable", "replay", "syncs"))
    parser.add_argument("--profile", action="store_true", help="where an admission's time goes, instead of figures")
    parser.add_argument("--traced", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.traced:
        traced(options.disk, options.traced)
        return 0
    if options.profile:
        profile(options.memory, options.calls)
        return 0
    sizes = (options.rounds, options.calls)
    measures: tuple[tuple[str, Callable[[], Measured]], ...] = (
        ("cpu", lambda: measure_cpu(options.memory, *sizes)),
        ("durable", lambda: measure_durable(options.disk, *sizes)),
        ("replay", lambda: measure_replay(options.disk, *sizes, repeat="replay")),
        ("replay", lambda: measure_replay(options.disk, *sizes, repeat="refuse")),
    )
    code = report(*(measure() for name, measure in measures if options.only in (None, name)))
    if options.only in (None, "syncs") and not options.json:
        print(count_syncs(options.disk, 20))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
