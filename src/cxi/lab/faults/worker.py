"""One process that carries one delivery through, and dies where it is told to.

    python -m cxi.lab.faults.worker PLAN

- The plan is a JSON object: `address`, `instance`, `sink` (the counter's socket), `delivery`, `mode` (of the sink), and `die`:
  `{"at": POINT}` or `{"in": "consume" | "settle", "statement": N}`. Dying is kill(2) with SIGKILL of the process itself.
- `POINTS` are between the steps. Inside a transaction, the N-th statement that SQLite starts is the point; the ledger is asked
  nothing for that: `sqlite3.connect` is what is wrapped.
- What was acknowledged is said at once, a JSON object a line: `{"consume": "lease"}`, `{"settled": "done"}`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from cxi.lab.faults.delivery import Delivery, consume, place, settle, told
from cxi.ledger.base import Lease, State

POINTS: Final = (
    "before the consume",
    "after the commit, before it is acknowledged",
    "after the acknowledgement, before the launch",
    "during the sink, before the effect",
    "during the sink, after the effect",
    "after the sink, before the settlement",
    "after the settlement",
    "after the clean close",
)


class Doom:
    """Where this process dies."""

    def __init__(self, die: Mapping[str, Any]) -> None:
        self._at = die.get("at")
        self._within = die.get("in")
        self._statement = int(die.get("statement", 0))
        self._armed = ""
        self._seen = 0

    def reach(self, point: str) -> None:
        """A point between the steps."""
        if self._at == point:
            _die()

    def arm(self, step: str) -> None:
        """A step begins, or with an empty name is over; says how many statements it had."""
        if self._armed:
            _say({"statements": self._armed, "count": self._seen})
        self._armed, self._seen = step, 0

    def statement(self, _text: str) -> None:
        """SQLite starts a statement."""
        if self._armed:
            self._seen += 1
            if self._armed == self._within and self._seen == self._statement:
                _die()

    def watch(self) -> None:
        """Have every database connection tell of its statements."""
        connect = sqlite3.connect

        def watched(*arguments: Any, **more: Any) -> sqlite3.Connection:
            database: sqlite3.Connection = connect(*arguments, **more)
            database.set_trace_callback(self.statement)
            return database

        sqlite3.connect = watched  # type: ignore[assignment]


def work(plan: Mapping[str, Any]) -> None:
    """Carry it through, or die on the way."""
    doom = Doom(plan.get("die", {}))
    doom.watch()
    ledger = place(plan["address"], plan["instance"], time.time())
    doom.reach(POINTS[0])
    doom.arm("consume")
    answer = consume(ledger, Delivery.from_json(plan["delivery"]), time.time())
    doom.reach(POINTS[1])
    _say({"consume": told(answer)})
    doom.arm("")
    if isinstance(answer, Lease):
        doom.reach(POINTS[2])
        state = launch(plan["sink"], answer, plan.get("mode", "do"), doom)
        doom.reach(POINTS[5])
        doom.arm("settle")
        settle(ledger, answer, state, time.time())
        _say({"settled": str(state)})
        doom.arm("")
        doom.reach(POINTS[6])
    ledger.close()
    doom.reach(POINTS[7])


def launch(sink: str, lease: Lease, mode: str, doom: Doom | None = None) -> State:
    """Have the sink do it; what is known of it afterwards."""
    event = lease.manifest.action.call.arguments["path"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(sink)
        connection.sendall(f"{event} {lease.call} {mode}\n".encode())
        lines = connection.makefile("r", encoding="utf-8")
        if mode == "late":
            lines.readline()
            if doom is not None:
                doom.reach(POINTS[3])
            return State.OUTCOME_UNKNOWN  # nobody waits for it any longer; it happens all the same
        if mode == "mute":
            return State.OUTCOME_UNKNOWN
        answer = lines.readline().strip()
        if doom is not None:
            doom.reach(POINTS[4])
        return {"done": State.DONE, "failed": State.FAILED}.get(answer, State.OUTCOME_UNKNOWN)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def _say(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
