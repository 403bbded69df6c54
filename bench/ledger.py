"""What does it cost to spend a capability once, alone, among many, and a second time?

- **C1, the ledger's part**: one `consume` of one caller, against one durable SQLite commit of one row on the same disk.
- **C2**: 64 callers of one ledger, against the same number of consumes by one caller alone; and the 99th percentile of a caller's
  wait against the median of a lone consume.
- **C3**: processes that share one file, each with keys of its own: the share of the slowest, and the longest wait against the
  median; beside it the same processes on plain SQLite (`BEGIN IMMEDIATE` with a busy timeout).
- **C4**: refusing a replay against an accept; and how many bytes the write-ahead log grew by (none).
- **C5**: 8 ledgers with a connection each on a PostgreSQL server of its own, against 8 clients of pgbench that run one prepared
  insert of a row of the same size; transactions a second.

Manifests are built before the clock starts, and leases are settled after it stopped. Both arms answer what is compared: that all
were accepted.

    python bench/ledger.py [--json] [--only c1,c2,c3,c4,c5] [--rounds 7] [--callers 64] [--processes 4] [--disk FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from arms import Arm, Measured, alternate, histogram, report

from cxi.lab.faults.contention import measure_shares
from cxi.lab.faults.delivery import LIFE, SESSION, TENANT, Delivery, place, prepare, settle
from cxi.lab.faults.ground import SqliteGround
from cxi.lab.faults.postgres import ROLE, PostgresGround
from cxi.ledger.base import Lease, Ledger, State

ROW: Final = 900  # bytes: about what a consume writes to `log` and `call`
PLAIN: Final = "CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT"


class Bench:
    """One ledger, and manifests that nobody used yet."""

    def __init__(self, address: str, instance: str = "bench") -> None:
        self.ledger: Ledger = place(address, instance, time.time())
        prepare(self.ledger, time.time())
        epoch = self.ledger.epoch(TENANT)
        assert epoch is not None
        self.epoch = epoch
        self.count = 0
        self.leases: list[Lease] = []
        self.ready: list[Any] = []
        self.drawn: dict[str, int] = {}

    def build(self, grant: str, prefix: str = "") -> Any:
        """One more call of a grant: what `consume` takes."""
        self.count += 1
        self.drawn[grant] = self.drawn.get(grant, self.ledger.drawn(SESSION, grant, 0.0)) + 1
        delivery = Delivery(f"event-{prefix}{self.count}", f"a-{prefix}{self.count}", grant=grant)
        return delivery.build(self.epoch, self.drawn[grant], time.time() + LIFE * 100)

    def stock(self, count: int, grants: int = 1, prefix: str = "") -> None:
        """Settle what is leased, and build the next calls, outside the clock."""
        while self.leases:
            settle(self.ledger, self.leases.pop(), State.DONE, time.time())
        self.drawn.clear()  # calls of the last stock that nobody used took no place in their grant
        self.ready = [self.build(f"g-{prefix}{number % grants}", prefix) for number in range(count)]

    def consume(self, call: Any = None) -> bool:
        """Consume the next call; whether it was accepted."""
        answer = self.ledger.consume(*(call if call is not None else self.ready.pop()), time.time())
        if isinstance(answer, Lease):
            self.leases.append(answer)
        return isinstance(answer, Lease)


class Plain:
    """One row a durable commit, as little as SQLite can do."""

    def __init__(self, file: Path, *, timeout: float = 10.0) -> None:
        self.database = sqlite3.connect(file, isolation_level=None, timeout=timeout, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=WAL").fetchone()
        self.database.execute("PRAGMA synchronous=FULL")
        self.database.execute(PLAIN.replace("TABLE", "TABLE IF NOT EXISTS"))
        self.body = "x" * ROW

    def insert(self) -> bool:
        """One durable commit."""
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("INSERT INTO row (body) VALUES (?)", (self.body,))
        self.database.execute("COMMIT")
        return True


def c1(disk: Path, rounds: int, calls: int) -> list[Measured]:
    """One consume against one commit."""
    bench, plain = Bench(SqliteGround().fresh(disk / "c1")), Plain(disk / "c1-plain.sqlite")
    arm = Arm("consume", bench.consume, prepare=lambda: _ordered(bench, calls + 1))
    anchor = Arm("one durable commit of one row", plain.insert)
    inputs = {"callers": 1, "row bytes": ROW}
    title = "C1 (the ledger's part): consume / one durable commit"
    return [alternate(arm, anchor, title=title, rounds=rounds, calls=calls, inputs=inputs, durable_in=disk)]


def _ordered(bench: Bench, count: int) -> None:
    bench.stock(count)
    bench.ready.reverse()  # a grant's draws have an order, and `consume` takes from the end


def c2(disk: Path, rounds: int, callers: int, each: int) -> list[Measured]:
    """Many callers of one ledger against one alone."""
    many, alone = Bench(SqliteGround().fresh(disk / "c2-many")), Bench(SqliteGround().fresh(disk / "c2-alone"))
    waits: list[float] = []
    lone: list[float] = []
    total = callers * each

    def together() -> int:
        accepted = [0] * callers

        def call(number: int, calls: list[Any]) -> None:
            for one in calls:
                start = time.perf_counter()
                accepted[number] += many.consume(one)
                waits.append(time.perf_counter() - start)

        batches = [many.ready[number::callers] for number in range(callers)]
        threads = [threading.Thread(target=call, args=pair) for pair in enumerate(batches)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(accepted)

    def single() -> int:
        accepted = 0
        for one in alone.ready:
            start = time.perf_counter()
            accepted += alone.consume(one)
            lone.append(time.perf_counter() - start)
        return accepted

    found = alternate(
        Arm(f"{callers} callers", together, prepare=lambda: many.stock(total, callers)),
        Arm("one caller", single, prepare=lambda: alone.stock(total)),
        title=f"C2: {total} consumes by {callers} callers / by one (goal: <= 0.25)",
        rounds=rounds,
        calls=1,
        inputs={"callers": callers, "consumes each": each},
        durable_in=disk,
    )
    waits.sort()
    p99 = waits[int(len(waits) * 0.99)]
    found.inputs.update(  # type: ignore[attr-defined]
        {
            "a caller's wait, ms": {"median": _ms(statistics.median(waits)), "p99": _ms(p99), "worst": _ms(waits[-1])},
            "a lone consume, ms": {"median": _ms(statistics.median(lone)), "p99": _ms(sorted(lone)[int(len(lone) * 0.99)])},
            "p99 among many / median alone (goal: <= 3)": round(p99 / statistics.median(lone), 2),
        }
    )
    return [found]


def c3(disk: Path, rounds: int, processes: int, seconds: float) -> dict[str, Any]:
    """Fairness between processes, beside plain SQLite; rounds alternate."""
    ours: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    for number in range(rounds):
        ours.append(measure_shares(SqliteGround(), processes, seconds))
        plain.append(_plain_shares(disk / f"c3-{number}.sqlite", processes, seconds))
    return {
        "title": f"C3: {processes} processes on one file, {rounds} rounds of {seconds:g} s (goals: share >= 0.5, wait <= 20)",
        "slowest share of its fair part": {"ledger": _middle(ours, "share"), "plain SQLite": _middle(plain, "share")},
        "worst wait / median": {"ledger": _middle(ours, "wait"), "plain SQLite": _middle(plain, "wait")},
        "commits a second": {"ledger": _middle(ours, "rate"), "plain SQLite": _middle(plain, "rate")},
        "rounds": {"ledger": ours, "plain SQLite": plain},
        "fdatasync_ms": histogram(disk),
    }


def _middle(rounds: list[dict[str, float]], name: str) -> float:
    return round(statistics.median(one[name] for one in rounds), 3)


def _plain_shares(file: Path, processes: int, seconds: float) -> dict[str, float]:
    Plain(file).database.close()
    command = [sys.executable, __file__, "--plain-racer", str(file), "--seconds", str(seconds)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    found = [json.loads(racer.communicate()[0]) for racer in racers]
    counts = [one["count"] for one in found]
    return {
        "share": min(counts) * processes / max(sum(counts), 1),
        "wait": max(one["worst"] for one in found) / max(found, key=lambda one: one["count"])["median"],
        "rate": sum(counts) / seconds,
    }


def race_plain(file: Path, seconds: float) -> None:
    """One process on plain SQLite; it waits for a line, and says how it went."""
    plain, took = Plain(file, timeout=seconds), []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        try:
            plain.insert()
        except sqlite3.OperationalError:
            continue  # the timeout was over before its turn came
        finally:
            took.append(time.perf_counter() - start)
    took.sort()
    count = plain.database.total_changes
    sys.stdout.write(json.dumps({"count": count, "median": took[len(took) // 2], "worst": took[-1]}) + "\n")


def c4(disk: Path, rounds: int, calls: int) -> list[Measured]:
    """A refused replay against an accept."""
    folder = disk / "c4"
    bench = Bench(SqliteGround().fresh(folder))
    bench.stock(1)
    again = bench.ready[0]
    bench.consume(again)
    bench.stock(0)
    wal = folder / "state" / "ledger.sqlite-wal"
    grown: list[int] = []

    def refuse() -> bool:
        before = wal.stat().st_size
        answer = bench.ledger.consume(*again, time.time())
        grown.append(wal.stat().st_size - before)
        return not isinstance(answer, Lease)

    found = alternate(
        Arm("refused replay", refuse),
        Arm("accept", bench.consume, prepare=lambda: _ordered(bench, calls + 1)),
        title="C4: refusing a replay / accepting (goal: <= 0.25)",
        rounds=rounds,
        calls=calls,
        inputs={},
        durable_in=disk,
    )
    found.inputs["bytes that the write-ahead log grew by"] = sum(grown)  # type: ignore[index]
    return [found]


def c5(rounds: int, clients: int, each: int) -> dict[str, Any]:
    """PostgreSQL: consumes a second over so many connections, beside pgbench; rounds alternate."""
    with PostgresGround.started() as ground:
        benches = [Bench(ground.fresh(Path()), "bench-0")]
        address = ground.server.address(database=ground.database, user=ROLE)
        benches += [Bench(address, f"bench-{number}") for number in range(1, clients)]
        ground.run(ground.database, "CREATE TABLE row (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)")
        script = ground.server.folder / "insert.sql"
        script.write_text(f"INSERT INTO row (body) VALUES (repeat('x', {ROW}));\n")
        command = [str(ground.server.program("pgbench")), "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-t", str(each)]
        command += ["-f", str(script), "-h", str(ground.server.folder), "-p", str(ground.server.port), "-U", "postgres"]
        ours: list[float] = []
        anchor: list[float] = []
        accepted = 0
        for number in range(rounds + 1):  # the first one warms up
            for index, bench in enumerate(benches):
                bench.stock(each, prefix=f"{index}-")
            accepted, rate = _together(benches)
            shown = subprocess.run([*command, ground.database], capture_output=True, text=True, check=True).stdout
            tps = float(next(line for line in shown.splitlines() if line.startswith("tps")).split()[2])
            if number:
                ours.append(rate)
                anchor.append(tps)
        for bench in benches:
            bench.stock(0)
            bench.ledger.close()
        synced = histogram(Path(tempfile.gettempdir()))
    ratio = statistics.median(ours) / statistics.median(anchor)
    return {
        "title": f"C5: {clients} connections to PostgreSQL, consumes a second / pgbench's prepared insert (goal: >= 0.85)",
        "ratio": round(ratio, 3) if accepted == clients * each else None,
        "consumes a second": round(statistics.median(ours), 1),
        "pgbench's inserts a second": round(statistics.median(anchor), 1),
        "each": each,
        "rounds": [[round(a, 1), round(b, 1)] for a, b in zip(ours, anchor, strict=True)],
        "fdatasync_ms": synced,
    }


def _together(benches: list[Bench]) -> tuple[int, float]:
    """Every ledger consumes its stock in a thread of its own: how many were accepted, and how many a second."""
    accepted = [0] * len(benches)

    def work(index: int) -> None:
        for call in benches[index].ready:
            accepted[index] += benches[index].consume(call)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(benches))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(accepted), sum(accepted) / (time.perf_counter() - start)


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="c1,c2,c3,c4,c5")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--disk", type=Path, default=None, help="a folder on the disk that is measured")
    parser.add_argument("--plain-racer", type=Path, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plain_racer is not None:
        race_plain(given.plain_racer, given.seconds)
        return 0
    wanted = given.only.split(",")
    disk = Path(tempfile.mkdtemp(prefix="cxi-bench-", dir=given.disk))
    figures: list[Measured] = []
    try:
        parts: dict[str, Callable[[], list[Measured]]] = {
            "c1": lambda: c1(disk, given.rounds, given.calls),
            "c2": lambda: c2(disk, given.rounds, given.callers, given.each),
            "c4": lambda: c4(disk, given.rounds, given.calls),
        }
        for name, part in parts.items():
            if name in wanted:
                figures.extend(part())
        tables = [c3(disk, max(given.rounds, 5), given.processes, given.seconds)] if "c3" in wanted else []
        tables += [c5(max(given.rounds, 5), 8, given.calls)] if "c5" in wanted else []
    finally:
        shutil.rmtree(disk, ignore_errors=True)
    if given.json:
        print(json.dumps({"figures": [one.to_json() for one in figures], "tables": tables}, indent=1, default=str))
        return 0 if all(one.equal for one in figures) else 1
    code = report(*figures, arguments=[]) if figures else 0
    for table in tables:
        print(table.pop("title"))
        for name, value in table.items():
            if name != "rounds":
                print(f"  {name}: {value}")
    return code


if __name__ == "__main__":
    sys.exit(main())
