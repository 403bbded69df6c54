"""Who wins where many want the same? Processes and threads that submit one capability each to one ledger.

- Every process tries every key, all in the same order and from the same moment: a key has one winner, and every other try is
  refused. Attempted and accepted are counted apart.
- A duplicate delivery under one idempotency key is answered with the recorded answer once the first is done.
- Answers may come in any order, twice, or for another lease; a settlement is written once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cxi.errors import AuthorityError, Code
from cxi.lab.faults import worker
from cxi.lab.faults.delivery import Delivery, settle, told
from cxi.lab.faults.ground import Ground, Plan, Site, Tally, site
from cxi.lab.faults.runner import Runner
from cxi.ledger.base import Lease, State


def contention(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Processes on the same keys, by the clock or, with `consumes`, by number."""
    seconds = 0.0 if plan.consumes else plan.seconds * 0.3
    how = f"{plan.processes} processes, {'until every key is tried' if plan.consumes else f'{seconds:g} s'}"
    with site(ground, "contention", how=how) as at:
        plan.report(f"contention: {how}")
        pace, count = at.folder / "pace", plan.consumes or 1_000_000_000
        pace.write_bytes(bytes(8 * plan.processes))
        runners = [
            Runner(at, f"racer-{lane}", name="key", count=count, seconds=seconds, pace=pace, lane=lane)
            for lane in range(plan.processes)
        ]
        for runner in runners:
            runner.go()
        found = [runner.wait() for runner in runners]
        _count(at, found)
        slowest = max(one["seconds"] for one in found)
        shares = [one["answers"].get("lease", 0) / max(at.tally.leases, 1) for one in found]
        at.tally.how = (
            f"{how}; {at.tally.leases / slowest:,.0f} leases and {at.tally.tried / slowest:,.0f} tries a second, shares "
            f"{' '.join(f'{share:.0%}' for share in shares)}, worst wait {max(one['worst'] for one in found) * 1e3:,.1f} ms"
        )
        plan.report("contention: holding sink, log and answers against each other")
        at.check()
        tally = at.tally
        tally.expect(tally.effects == tally.leases, f"{tally.leases} leases and {tally.effects} effects")
        keys = max(sum(one["answers"].values()) for one in found)
        tally.expect(tally.leases == keys, f"{keys} keys were tried and {tally.leases} had a winner")
        if plan.consumes:
            tally.expect(tally.tried == plan.consumes * plan.processes, f"{tally.tried} tries")
    yield at.tally


def measure_shares(ground: Ground, processes: int, seconds: float) -> dict[str, float]:
    """Processes with keys of their own on one ledger.

    Returns:
        `share`: what the slowest got of its fair part; `wait`: the longest consume over the median one; `rate`: leases a second.
    """
    with site(ground, "shares") as at:
        runners = [Runner(at, f"racer-{number}", name=f"own-{number}", seconds=seconds) for number in range(processes)]
        for runner in runners:
            runner.go()
        found = [runner.wait() for runner in runners]
    counts = [one["answers"].get("lease", 0) for one in found]
    return {
        "share": min(counts) * processes / max(sum(counts), 1),
        "wait": max(one["worst"] for one in found) / found[counts.index(max(counts))]["median"],
        "rate": sum(counts) / seconds,
    }


def _count(at: Site, found: list[dict[str, Any]]) -> None:
    for one in found:
        answers: Mapping[str, int] = one["answers"]
        for answer, count in answers.items():
            at.tally.tried += count
            if answer == "lease":
                at.tally.leases += count
            else:
                at.tally.refusals[answer] += count


def duplicates(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Eight deliveries of each of a few calls, under one key each, from two writers at once."""
    plan.report("duplicate deliveries")
    with site(ground, "duplicate deliveries", how="2 writers, 8 threads, 8 calls") as at:
        ledgers = [at.ledger(), at.ledger()]
        answers: dict[str, list[str]] = {f"mail-{n}": [] for n in range(8)}

        def deliver(thread: int) -> None:
            for event, seen in answers.items():
                delivery = Delivery(event, f"{event}/{thread}", grant=event, key=event, repeat="replay", limit=8)
                seen.append(told(at.perform(ledgers[thread % 2], delivery)))

        at.together(8, deliver)
        again = [told(at.perform(ledgers[0], Delivery(e, f"{e}/z", grant=e, key=e, repeat="replay"))) for e in answers]
        at.tally.expect(set(again) == {"recorded"}, f"after the answer a delivery again got {sorted(set(again))}")
        for event, seen in answers.items():
            at.tally.expect(seen.count("lease") == 1, f"`{event}` had {seen.count('lease')} leases")
            others = {*seen} - {"lease", "recorded", Code.IN_FLIGHT, Code.CAPABILITY_USED}
            at.tally.expect(not others, f"`{event}` was answered with {sorted(others)}")
        at.shut()
        at.check()
    yield at.tally


def out_of_order(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Answers that come in reverse, twice, late, and for another lease."""
    plan.report("answers out of order")
    with site(ground, "answers out of order", how="reversed, twice, after a recovery, for another lease") as at:
        ledger = at.ledger()
        leases: list[Lease] = []
        for number in range(6):
            answer = at.consume(ledger, Delivery(f"pay-{number}", f"a-{number}"))
            if isinstance(answer, Lease):
                leases.append(answer)
                worker.launch(at.sink.address, answer, "do")
        for lease in reversed(leases[1:]):
            settle(ledger, lease, State.DONE, time.time())
        for lease in leases[1:]:
            _settles_not(at, lease, State.FAILED)
        swapped = replace(leases[0], manifest=leases[1].manifest, manifest_digest=leases[1].manifest_digest)
        _settles_not(at, swapped, State.FAILED)
        at.shut()
        at.check()
    yield at.tally


def _settles_not(at: Site, lease: Lease, state: State) -> None:
    try:
        settle(at.open[0] if at.open else at.ledger(), lease, state, time.time())
    except AuthorityError:
        return
    at.tally.expect(False, f"`{lease.call}` was settled a second time, or by another's answer")
