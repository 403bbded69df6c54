"""Does the ledger keep one call to one effect, whatever breaks? Experiment X3: faults that are really made.

- Each case is a fresh ledger, a sink that counts by itself, and a tally; a violation is a thing that must not have happened.
- The answer has the shape that all experiments share. An interrupt gives what was done until then.

    >>> run(SqliteGround(), Plan(seconds=5))["ok"]    # doctest: +SKIP
    True
"""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from cxi.errors import ConfigError, Problem
from cxi.lab.faults.contention import contention, duplicates, out_of_order
from cxi.lab.faults.ground import Ground, Plan, SqliteGround, Tally
from cxi.lab.faults.kill import kill_at_random, kill_points
from cxi.lab.faults.paper import paper
from cxi.lab.faults.storage import storage

Result: TypeAlias = dict[str, Any]


@contextmanager
def ground_of(backend: str) -> Iterator[Ground]:
    """A backend to try faults on, started where it has to be.

    Raises:
        ConfigError: where there is no such backend, or it cannot be run here.
    """
    if backend == "sqlite":
        yield SqliteGround()
        return
    if backend != "postgres":
        raise ConfigError(Problem("--backend", 0, f"no backend `{backend}`", "one of `sqlite`, `postgres`"))
    try:
        from cxi.lab.faults.postgres import PostgresGround  # noqa: PLC0415  # an optional part of the installation
        from cxi.lab.postgres_server import Unavailable  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(Problem("--backend", 0, f"{error}", "install the extra `cxi[postgres]`")) from error
    with ExitStack() as stack:
        try:
            ground = stack.enter_context(PostgresGround.started())
        except Unavailable as error:
            raise ConfigError(Problem("--backend", 0, str(error), "a server that this command can start")) from error
        yield ground


def connections(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """Cut connections, where there are any."""
    if ground.name != "sqlite":
        from cxi.lab.faults.postgres import connections as cut  # noqa: PLC0415  # an optional part of the installation

        yield from cut(ground, plan)


PARTS: Final[Sequence[Callable[[Ground, Plan], Iterator[Tally]]]] = (
    paper,
    kill_points,
    kill_at_random,
    duplicates,
    out_of_order,
    storage,
    connections,
    contention,
)


def run(ground: Ground, plan: Plan) -> Result:
    """Run every case; with `plan.consumes`, the contention alone."""
    began, done, interrupted = time.time(), list[Tally](), False
    for part in (contention,) if plan.consumes else PARTS:
        try:
            for tally in part(ground, plan):
                done.append(tally)  # an interrupt keeps what was done until then
        except KeyboardInterrupt:
            interrupted = True
            break
    violations = [violation for tally in done for violation in tally.violations]
    ten = [tally for tally in done if tally.case.startswith("paper: ")]
    refusals: Counter[str] = Counter()
    for tally in done:
        refusals.update(tally.refusals)
    return {
        "experiment": "ledger-faults",
        "inputs": {
            "files": {},
            "seeds": [plan.seed],
            "versions": {"cxi": version("cxi"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
            "backend": ground.name,
            "seconds": plan.seconds,
            "consumes": plan.consumes,
            "processes": plan.processes,
            "root": os.geteuid() == 0,
        },
        "denominators": {"cases": len(done), **_sum(done), "ten_cases": _sum(ten)},
        "figures": {
            "seconds": round(time.time() - began, 1),
            "refusals": dict(sorted(refusals.items())),
            "paper": {"cases": 10, "consumes": 29, "rejects": 19, "deduplicated": 2, "note": "its steps are not published"},
        },
        "interrupted": interrupted,
        "violations": violations,
        "ok": not violations and not interrupted,
        "cases": [tally.to_json() for tally in done],
    }


def _sum(tallies: Sequence[Tally]) -> dict[str, int]:
    return {
        "tried": sum(tally.tried for tally in tallies),
        "leases": sum(tally.leases for tally in tallies),
        "recorded": sum(tally.recorded for tally in tallies),
        "refused": sum(sum(tally.refusals.values()) for tally in tallies),
        "killed": sum(tally.killed for tally in tallies),
        "effects": sum(tally.effects for tally in tallies),
    }
