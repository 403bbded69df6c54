"""How do two ways of doing one thing compare on a noisy machine?

- Two arms alternate, round by round, and which goes first alternates too; a figure is the ratio of their medians.
- Both must give equal results, else there is no ratio: a faster way to another answer is no faster way.
- A durable figure stands beside a histogram of `fdatasync` on the same disk.
- No timing is ever asserted.

    >>> alternate(Arm("a", lambda: 1), Arm("b", lambda: 1), rounds=5, calls=10).equal
    True
"""

from __future__ import annotations

import json
import math
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LEAST_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of doing it.

    Attributes:
        name: What it is.
        run: Does it once and returns its result. Results of both arms are compared with `==`.
        prepare: Called before each round, outside the clock: a fresh ledger, say.
        after: Called with each call's answer, outside the clock; what it returns is the call's result.
    """

    name: str
    run: Callable[[], Any]
    prepare: Callable[[], None] = lambda: None
    after: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out.

    Attributes:
        title: What was measured.
        arms: (measured, anchor) names.
        rounds: Seconds a call, one pair a round.
        calls: Calls a round and arm.
        equal: Whether both gave equal results in every round.
        inputs: What it was run over.
        fdatasync: Histogram of the disk, (upper bound in milliseconds, count); empty for a figure that is not durable.
    """

    title: str
    arms: tuple[str, str]
    rounds: tuple[tuple[float, float], ...]
    calls: int
    equal: bool
    inputs: Mapping[str, Any]
    fdatasync: tuple[tuple[float, int], ...] = ()

    @property
    def medians(self) -> tuple[float, float]:
        """Seconds a call of each arm."""
        first, second = zip(*self.rounds, strict=True)
        return statistics.median(first), statistics.median(second)

    @property
    def ratio(self) -> float | None:
        """Measured over anchor; None where the results differ."""
        measured, anchor = self.medians
        return measured / anchor if self.equal else None

    def to_json(self) -> dict[str, Any]:
        measured, anchor = self.medians
        return {
            "title": self.title,
            "command": command(),
            "python": sys.version.split()[0],
            "inputs": dict(self.inputs),
            "arms": list(self.arms),
            "calls": self.calls,
            "rounds": [list(pair) for pair in self.rounds],
            "median_seconds": [measured, anchor],
            "equal": self.equal,
            "ratio": self.ratio,
            "fdatasync_ms": [[bound if math.isfinite(bound) else None, count] for bound, count in self.fdatasync],
        }

    def __str__(self) -> str:
        measured, anchor = self.medians
        ratio = f"{self.ratio:.2f} x" if self.ratio is not None else "no ratio: the results differ"
        lines = [
            f"{self.title}: {ratio}",
            f"  {self.arms[0]}: {measured * 1e6:,.1f} us   {self.arms[1]}: {anchor * 1e6:,.1f} us",
            f"  {len(self.rounds)} rounds of {self.calls} calls, alternating; medians",
            f"  inputs: {json.dumps(dict(self.inputs), default=str)}",
            f"  command: {command()}",
        ]
        if self.fdatasync:
            lines.append("  fdatasync: " + "  ".join(f"<{bound:g} ms: {count}" for bound, count in self.fdatasync if count))
        return "\n".join(lines)


def alternate(
    measured: Arm,
    anchor: Arm,
    *,
    title: str = "",
    rounds: int = 7,
    calls: int = 100,
    inputs: Mapping[str, Any] | None = None,
    durable_in: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """Run both arms in turn.

    Args:
        measured: What is measured.
        anchor: What it is held against.
        title: What the figure is called; by default `measured / anchor`.
        rounds: Five or more.
        calls: Calls a round and arm.
        inputs: What it is run over, to be printed.
        durable_in: A folder on the disk whose `fdatasync` belongs beside the figure.
        clock: `time.process_time` for a figure of CPU, which other processes disturb least.

    Raises:
        ValueError: for fewer than five rounds, or no calls.
    """
    if rounds < LEAST_ROUNDS or calls < 1:
        raise ValueError("a median of fewer than five rounds says nothing")
    for arm in (measured, anchor):  # what is loaded or compiled once is no part of a call
        _round(arm, 1, clock)
    pairs: list[tuple[float, float]] = []
    equal = True
    for number in range(rounds):
        first, second = (measured, anchor) if number % 2 == 0 else (anchor, measured)
        one, one_results = _round(first, calls, clock)
        two, two_results = _round(second, calls, clock)
        equal = equal and one_results == two_results
        pairs.append((one, two) if number % 2 == 0 else (two, one))
    return Measured(
        title or f"{measured.name} / {anchor.name}",
        (measured.name, anchor.name),
        tuple(pairs),
        calls,
        equal,
        inputs or {},
        histogram(durable_in) if durable_in is not None else (),
    )


def _round(arm: Arm, calls: int, clock: Callable[[], float]) -> tuple[float, list[object]]:
    arm.prepare()
    results: list[object] = []
    taken = 0.0
    for _ in range(calls):
        start = clock()
        answer = arm.run()
        taken += clock() - start
        results.append(answer if arm.after is None else arm.after(answer))
    return taken / calls, results


BOUNDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, float("inf"))


def histogram(folder: Path, *, count: int = 200) -> tuple[tuple[float, int], ...]:
    """How long this disk takes to sync 4 KiB, `count` times over: (upper bound in milliseconds, how many)."""
    found = dict.fromkeys(BOUNDS, 0)
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            os.write(file.fileno(), b"\0" * 4096)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took = (time.perf_counter() - start) * 1e3
            found[next(bound for bound in BOUNDS if took < bound)] += 1
    return tuple(found.items())


def command() -> str:
    """The command that makes the figure again."""
    return shlex.join(["python", *sys.argv])


def report(*figures: Measured, arguments: list[str] | None = None) -> int:
    """Print figures, as text or with `--json` as one object; 1 where an arm gave another result, else 0."""
    given = sys.argv[1:] if arguments is None else arguments
    if "--json" in given:
        print(json.dumps({"figures": [figure.to_json() for figure in figures]}, indent=1, default=str))
    else:
        print("\n".join(str(figure) for figure in figures))
    return 0 if all(figure.equal for figure in figures) else 1
