"""Where is a fault tried, and what did it do? A fresh ledger, a sink that counts by itself, and one tally a case.

- INVARIANT (independent-count): what happened is read from the sink's own file, never from the ledger or its log.
- `Site.check` holds three records against each other: the sink's file, the log, and what was acknowledged to a caller.
- A backend is a `Ground`: it makes fresh ledgers, and addresses that another process can open.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from cxi.errors import CxiError, Refused
from cxi.lab.faults import counter, worker
from cxi.lab.faults.delivery import Delivery, consume, place, prepare, settle, told
from cxi.ledger.base import Lease, Ledger, Recorded, State
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import verify
from cxi.log.entry import EntryType
from cxi.log.finding import Broken
from cxi.manifest import Instant

PATIENCE: Final = 60.0  # seconds that a child may take for one call


@dataclass(slots=True)
class Tally:
    """What one case did.

    Attributes:
        case: Its name.
        how: How the fault was made, where there are several ways.
        tried: Consumes attempted.
        leases: Consumes that were answered with a lease.
        recorded: Consumes that were answered with a recorded answer: deduplicated.
        refusals: Refused consumes, by code; `LEDGER_UNAVAILABLE` where the storage failed.
        killed: Processes that were killed with -9.
        effects: Effects that the sink counted.
        violations: What must not have happened; empty where the promise held.
    """

    case: str
    how: str = ""
    tried: int = 0
    leases: int = 0
    recorded: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    effects: int = 0
    violations: list[str] = field(default_factory=list)

    def count(self, answer: str) -> None:
        """One answer, as `told` says it."""
        self.tried += 1
        if answer == "lease":
            self.leases += 1
        elif answer == "recorded":
            self.recorded += 1
        else:
            self.refusals[answer] += 1

    def expect(self, holds: bool, what: str) -> None:
        """Note what must hold and does not."""
        if not holds:
            self.violations.append(f"{self.case}: {what}")

    def to_json(self) -> dict[str, Any]:
        """One row of the result."""
        return {
            "case": self.case,
            "how": self.how,
            "tried": self.tried,
            "leases": self.leases,
            "recorded": self.recorded,
            "refused": sum(self.refusals.values()),
            "refusals": dict(sorted(self.refusals.items())),
            "killed": self.killed,
            "effects": self.effects,
            "violations": list(self.violations),
        }


class Ground(Protocol):
    """One backend."""

    @property
    def name(self) -> str: ...

    def fresh(self, folder: Path) -> str:
        """The address of a ledger that nobody used yet.

        Args:
            folder: A scratch folder of this ledger's own.
        """
        ...

    def quiet(self) -> None:
        """Wait until it is known that killed processes are gone."""
        ...


class SqliteGround:
    """One file a ledger."""

    name = "sqlite"

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Ground]:
        """There is nothing to start."""
        yield cls()

    def quiet(self) -> None:
        """The kernel lets go of a killed process's locks before anybody hears of its end."""

    def fresh(self, folder: Path) -> str:
        """See `Ground.fresh`."""
        return f"sqlite:{folder / 'state' / 'ledger.sqlite'}"


class Sink:
    """The counter's process."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "sink")
        self.file = folder / "effects"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", counter.__file__, self.address, str(self.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt is the experiment's own, not its sink's
        )
        if self._process.stdout is None or self._process.stdout.readline() != "ready\n":
            raise AssertionError("the counter did not start")

    def effects(self) -> list[tuple[str, str]]:
        """(event, call) of everything that happened, in order."""
        if not self.file.exists():
            return []
        return [(event, call) for event, call in (line.split() for line in self.file.read_text().splitlines())]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@dataclass(slots=True)
class Site:
    """One ledger under one fault.

    Attributes:
        ground: The backend.
        address: The ledger.
        folder: The scratch folder.
        sink: The counter.
        tally: What was done.
        acknowledged: The calls whose lease was answered to somebody, in this process or another.
        open: What is open here.
        processes: What was started and may still run.
    """

    ground: Ground
    address: str
    folder: Path
    sink: Sink
    tally: Tally
    acknowledged: list[str] = field(default_factory=list)
    open: list[Ledger] = field(default_factory=list)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _instances: int = 0

    def ledger(self, now: Instant | None = None) -> Ledger:
        """Open the ledger here, as one more writer."""
        self._instances += 1
        found = place(self.address, f"parent-{self._instances}", time.time() if now is None else now)
        self.open.append(found)
        return found

    def shut(self) -> None:
        """Close what is open here."""
        while self.open:
            self.open.pop().close()

    def consume(self, ledger: Ledger, delivery: Delivery, *, now: Instant | None = None, deadline: Instant = 0.0) -> Any:
        """Consume one delivery, and count the answer."""
        answer = consume(ledger, delivery, time.time() if now is None else now, deadline=deadline)
        self.tally.count(told(answer))
        if isinstance(answer, Lease):
            self.acknowledged.append(answer.call)
        return answer

    def perform(
        self, ledger: Ledger, delivery: Delivery, *, mode: str = "do", now: Instant | None = None
    ) -> Lease | Recorded | Refused:
        """Consume, launch and settle."""
        answer: Lease | Recorded | Refused = self.consume(ledger, delivery, now=now)
        if isinstance(answer, Lease):
            state = worker.launch(self.sink.address, answer, mode)
            settle(ledger, answer, state, time.time() if now is None else now)
        return answer

    def child(self, delivery: Delivery, *, mode: str = "do", die: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Have another process carry a delivery through; what it said before it ended, or died."""
        self._instances += 1
        plan = {
            "address": self.address,
            "instance": f"child-{self._instances}",
            "sink": self.sink.address,
            "delivery": json.loads(delivery.to_text()),
            "mode": mode,
            "die": dict(die or {}),
        }
        done = subprocess.run(
            [sys.executable, "-m", "cxi.lab.faults.worker", json.dumps(plan)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=environment(),
            start_new_session=True,
        )
        said = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode == -9:
            self.tally.killed += 1
            self.ground.quiet()
        if done.returncode not in (0, -9):
            self.tally.violations.append(f"{self.tally.case}: a child failed: {done.stderr.strip().splitlines()[-1:]}")
        answers = [line["consume"] for line in said if "consume" in line]
        for answer in answers:
            self.tally.count(answer)
        if "lease" in answers:
            self.acknowledged.append(delivery.call)
        if not answers:
            self.tally.tried += 1
        return said

    def together(self, count: int, work: Callable[[int], None]) -> None:
        """Do this in that many threads at once; a fault in one is a violation."""

        def run(number: int) -> None:
            try:
                work(number)
            except CxiError as error:
                self.tally.violations.append(f"{self.tally.case}: a caller got a fault: {error}")

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def happened(self, event: str) -> int:
        """How often the sink saw an event."""
        return sum(name == f"/repo/{event}" for name, _ in self.sink.effects())

    def check(self, *, most: int = 1) -> None:
        """Hold the sink's file, the log and the acknowledgements against each other.

        Args:
            most: How often one event may have happened.
        """
        tally, effects = self.tally, self.sink.effects()
        tally.effects = len(effects)
        ledger = self.ledger()
        admitted = Counter(chained.entry.call for chained in ledger.entries() if chained.entry.kind is EntryType.ADMISSION)
        for call, count in admitted.items():
            tally.expect(count == 1, f"`{call}` has {count} leases")
        for call, count in Counter(call for _, call in effects).items():
            tally.expect(call in admitted, f"`{call}` happened without a lease")
            tally.expect(count == 1, f"`{call}` happened {count} times")
        for event, count in Counter(event for event, _ in effects).items():
            tally.expect(count <= most, f"`{event}` happened {count} times")
        for call in self.acknowledged:
            tally.expect(call in admitted, f"`{call}` was acknowledged, and the log does not know it")
        for problem in problems(ledger):
            tally.violations.append(f"{tally.case}: {problem}")
        self.shut()


def problems(ledger: Ledger) -> list[str]:
    """What is wrong with the log, and with the ledger as the log tells it."""
    if isinstance(ledger, SqliteLedger):
        standing = ledger.standing()
        replay = Replay(standing.head)
        answers = [verify(replay.watch(ledger.entries()), [], [])]
        differences = replay.differences(standing)
    else:
        from cxi.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an optional part of the installation

        if not isinstance(ledger, PostgresLedger):
            raise AssertionError("a ledger of another kind")
        answers = [verify(ledger.entries(origin=origin), [], []) for origin in ledger.origins()]
        differences = ledger.differences()
    found = [finding for answer in answers if isinstance(answer, Broken) for finding in answer.findings]
    return [f"log entry {finding.seq}: {finding.kind}: {finding.detail}" for finding in (*found, *differences)]


def settle_unknown(ledger: Ledger, site: Site, calls: Sequence[str]) -> None:
    """A person looks at the sink's own file, and says how these unknown calls ended."""
    happened = {call for _, call in site.sink.effects()}
    for call in calls:
        state = State.DONE if call in happened else State.FAILED
        ledger.release(call, "operator", "looked at the sink's file", state, time.time())


@contextmanager
def site(ground: Ground, case: str, *, how: str = "", within: Path | None = None) -> Iterator[Site]:
    """A fresh ledger with one epoch and one session, its sink and its tally; gone afterwards.

    Args:
        ground: The backend.
        case: The case's name.
        how: How the fault is made.
        within: Where the ledger's files go; a scratch folder where None.
    """
    folder = Path(tempfile.mkdtemp(prefix="cxi-faults-")).resolve()
    place_of = within or folder
    made = Site(ground, ground.fresh(place_of), folder, Sink(folder), Tally(case, how))
    try:
        try:
            prepare(made.ledger(), time.time())
            made.shut()
            yield made
        except CxiError as error:
            made.tally.violations.append(f"{case}: broken off by a fault that the case does not expect: {error}")
    finally:
        for process in made.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        with suppress(CxiError):
            made.shut()
        made.sink.close()
        shutil.rmtree(folder, ignore_errors=True)


def environment() -> dict[str, str]:
    """What a child needs to find this same program."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is tried.

    Attributes:
        seconds: About how long the cases that run against the clock take, all together.
        seed: For everything that is drawn at random.
        consumes: Contended keys of the stress case, each tried by every process; 0 to go by the clock.
        processes: Of the contention.
        report: One line of progress.
    """

    seconds: float = 20.0
    seed: int = 1
    consumes: int = 0
    processes: int = 2
    report: Callable[[str], None] = lambda _line: None
