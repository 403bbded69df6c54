"""One process that consumes without a pause: keys of its own, or the same keys as others, in the same order.

    python -m cxi.lab.faults.racer PLAN

- The plan is a JSON object: `address`, `instance`, `sink`, `name` of the keys, `first` and `count`, `seconds` (0: no end), `say`,
  `pace` and `lane`.
- With `pace`, a file that all racers share, none is more than `AHEAD` keys before the slowest: every key is really raced for.
- It says `ready`, waits for a line, and works. A key is tried once: who gets the lease launches and settles.
- With `say` every answer is a line, `ANSWER CALL`, written when it was acknowledged, and waits for each effect. At the end one
  line of JSON tells how often each answer came, and what the slowest and the middle consume took, in seconds.
"""

from __future__ import annotations

import json
import mmap
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cxi.lab.faults.delivery import LIFE, TENANT, Delivery, place, settle, told
from cxi.ledger.base import Lease, State

AHEAD: Final = 256  # keys
OVER: Final = 2**63  # where a racer is that has come to its end


class Pace:
    """How far each racer is, 8 bytes each in a shared file."""

    def __init__(self, file: Path, lane: int) -> None:
        self._lane = lane
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 0)
        self._lanes = memoryview(self._memory).cast("Q")

    def keep(self, number: int) -> None:
        """Say how far this racer is, and wait for those that are too far behind."""
        self._lanes[self._lane] = number
        while number != OVER and number - min(self._lanes) > AHEAD:
            time.sleep(0.0005)


def race(plan: Mapping[str, Any]) -> None:
    """Try every key once."""
    ledger = place(plan["address"], plan["instance"], time.time())
    epoch = ledger.epoch(TENANT)
    if epoch is None:
        raise AssertionError("a site has an epoch")
    pace = Pace(Path(plan["pace"]), plan["lane"]) if plan["pace"] else None
    answers: Counter[str] = Counter()
    took: list[float] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sink:
        sink.connect(plan["sink"])
        lines = sink.makefile("r", encoding="utf-8")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        began = time.time()
        for number in range(plan["first"], plan["first"] + plan["count"]):
            now = time.time()
            if pace is not None:
                pace.keep(number)
            if plan["seconds"] and now - began >= plan["seconds"]:
                break
            name = f"{plan['name']}-{number}"
            # Every process submits the same capability: drawn once, known to all, spent by one.
            delivery = Delivery(
                name, f"{plan['instance']}/{number}", grant=name, limit=1, sequence=1, capability=name, nonce=name
            )
            manifest, draw, entry = delivery.build(epoch, 1, now + LIFE)
            start = time.perf_counter()
            answer = ledger.consume(manifest, draw, entry, now)
            took.append(time.perf_counter() - start)
            said = told(answer)
            answers[said] += 1
            if plan["say"]:
                sys.stdout.write(f"{said} {delivery.call}\n")
                sys.stdout.flush()
            if isinstance(answer, Lease):
                sink.sendall(f"/repo/{name} {answer.call} {'do' if plan['say'] else 'count'}\n".encode())
                if plan["say"]:
                    lines.readline()
                settle(ledger, answer, State.DONE, time.time())
        seconds = time.time() - began
        if pace is not None:
            pace.keep(OVER)
        sink.sendall(b"- - sync\n")
        lines.readline()
    ledger.close()
    took.sort()
    figures = {"seconds": seconds, "worst": took[-1], "median": took[len(took) // 2]} if took else {"seconds": seconds}
    sys.stdout.write(json.dumps({"answers": answers, **figures}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    race(json.loads(sys.argv[1]))
