"""What is left when the process is killed? SIGKILL at every step of a call, and at random instants.

- At each point between the steps, and before each statement inside `consume` and `settle`, a real process kills itself with -9.
- Then the same call is delivered again by a process of its own, and, where it is unknown, once more after a person has looked at
  the sink. Whatever happened before: in the end the event has happened exactly once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxi.errors import Code
from cxi.lab.faults.delivery import Delivery, told
from cxi.lab.faults.ground import Ground, Plan, Site, Tally, settle_unknown, site
from cxi.lab.faults.runner import Runner
from cxi.lab.faults.worker import POINTS
from cxi.ledger.base import Ledger
from cxi.log.entry import EntryType

LEAST_LIVES: Final = 3
MODES: Final[Mapping[str, str]] = {POINTS[3]: "late"}


def kill_points(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Killed at each point between the steps, and at each statement inside a transaction."""
    for point in POINTS:
        plan.report(f"kill -9: {point}")
        with site(ground, f"kill -9 {point}") as at:
            _die_and_deliver_again(at, {"at": point}, mode=MODES.get(point, "do"))
        yield at.tally
    if ground.name == "sqlite":  # elsewhere the server carries the transaction out, and the cut connections are the case
        with site(ground, "statements") as at:
            said = at.child(Delivery("pay", "a-1", grant="pay", key="k", repeat="replay"))
        counts = {line["statements"]: line["count"] for line in said if "statements" in line}
        for step in ("consume", "settle"):
            for statement in range(1, counts[step] + 1):
                plan.report(f"kill -9: inside {step}, statement {statement} of {counts[step]}")
                with site(ground, f"kill -9 inside {step}, statement {statement} of {counts[step]}") as at:
                    _die_and_deliver_again(at, {"in": step, "statement": statement})
                yield at.tally


def _die_and_deliver_again(at: Site, die: Mapping[str, Any], *, mode: str = "do") -> None:
    first = Delivery("pay", "a-1", grant="pay", key="k", repeat="replay")
    at.child(first, mode=mode, die=die)
    at.tally.expect(at.tally.killed == 1, "the process was not killed where it should be")
    _wait_for_late_effect(at, mode)
    said = at.child(first.again("a-2"))
    answer = next(line["consume"] for line in said if "consume" in line)
    if answer == Code.OUTCOME_UNKNOWN:
        ledger = at.ledger()
        at.tally.expect(at.happened("pay") <= 1, "the event happened twice while its outcome was unknown")
        settle_unknown(ledger, at, ["a-1"])
        answer = told(at.perform(ledger, first.again("a-3")))
        at.shut()
    at.tally.expect(answer in ("lease", "recorded"), f"the last delivery was answered with `{answer}`")
    at.tally.expect(at.happened("pay") == 1, f"in the end the event happened {at.happened('pay')} times")
    at.check()


def _wait_for_late_effect(at: Site, mode: str) -> None:
    """An effect that was on its way when its process died lands now."""
    until = time.monotonic() + 5
    while mode == "late" and not at.happened("pay") and time.monotonic() < until:
        time.sleep(0.01)


def kill_at_random(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Processes that work without a pause, each killed at an instant drawn at random; one after the other on one ledger."""
    rng = random.Random(plan.seed)  # noqa: S311
    until = time.monotonic() + plan.seconds * 0.3
    with site(ground, "kill -9 at random instants") as at:
        life = 0
        while life < LEAST_LIVES or time.monotonic() < until:
            life += 1
            plan.report(f"kill -9: at random instants, life {life}")
            _one_life(at, life, rng.uniform(0.02, 0.35))
            ledger = at.ledger()
            settle_unknown(ledger, at, _unknown(ledger))
            at.shut()
        at.check()
    yield at.tally


def _one_life(at: Site, life: int, seconds: float) -> None:
    runner = Runner(at, f"life-{life}", name=f"life-{life}", say=True)
    runner.go()
    time.sleep(seconds)
    for line in runner.kill():
        answer, _, call = line.partition(" ")
        at.tally.count(answer)
        if answer == "lease":
            at.acknowledged.append(call)


def _unknown(ledger: Ledger) -> list[str]:
    """The calls that recovery made unknown, and of which no person has said anything."""
    told_of = {chained.entry.call for chained in ledger.entries() if chained.entry.kind is EntryType.PERSON}
    return [
        chained.entry.call
        for chained in ledger.entries()
        if chained.entry.kind is EntryType.ALARM and chained.entry.call not in told_of
    ]
