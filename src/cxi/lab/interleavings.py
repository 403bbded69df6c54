"""Does every interleaving of a small world keep the ledger's invariants, and does each rule of the model earn its place?

- Breadth first over `cxi.ledger.model`: every reachable state once, every transition out of it, every invariant on each.
- Actors are interchangeable: states that differ only in the actors' names are one (`_same`); `symmetry=False` keeps them apart.
- Without one rule, the invariant that rests on it has to break, and the shortest way there is shown: else the rule, or the
  invariant, says nothing.

    >>> explore(bounds(capabilities=1, actors=1)).broken
    {}
"""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from cxi.ledger.base import Mark, MarkKind
from cxi.ledger.model import ALL, EXPECTED, Act, Ask, Bounds, Hand, Invariant, Rule, Whole, acts, begin, step, violations

Result: TypeAlias = dict[str, Any]
Trace: TypeAlias = tuple[Act, ...]

# What a world needs at least for a rule to matter in it; two capabilities of one key suffice for the others.
_NEEDS: Final[dict[Rule, dict[str, int]]] = {Rule.OPEN_BLOCKS: {"capabilities": 3}, Rule.LIMIT_COUNTED: {"limit": 1}}


def bounds(*, capabilities: int = 2, actors: int = 3, limit: int = 2, ticks: int = 1, power_cuts: int = 1) -> Bounds:
    """A small world: two deliveries of one call under one idempotency key, and the same event from another session with none.

    Args:
        capabilities: One to three.
        actors: Processes.
        limit: The grant's count.
        ticks: How often time passes.
        power_cuts: How often the whole machine stops.
    """
    first = Ask("c1", "s", "g", "e", "write e", 0, (0, ""), 0, "k", limit, repeat="replay", marks=frozenset({_marked("s")}))
    elsewhere = replace(first, capability="c3", session="t", key="", marks=frozenset({_marked("t")}))
    templates = (first, replace(first, capability="c2"), elsewhere)[:capabilities]
    return Bounds(actors, templates, ticks=ticks, marks=(_marked("s"),), power_cuts=power_cuts)


def _marked(session: str) -> Mark:
    return Mark(MarkKind.SESSION, session)


@dataclass(frozen=True, slots=True)
class Explored:
    """What was seen.

    Attributes:
        states: Reachable states.
        transitions: Steps out of them, refused ones among them.
        broken: By invariant that broke, the shortest way there.
        seconds: How long it took.
    """

    states: int
    transitions: int
    broken: dict[Invariant, Trace]
    seconds: float


def explore(
    world: Bounds,
    rules: frozenset[Rule] = ALL,
    *,
    until: Invariant | None = None,
    symmetry: bool = True,
    report: Callable[[int, int], None] = lambda _states, _waiting: None,
) -> Explored:
    """Visit every state that can be reached.

    Args:
        world: How much may happen.
        rules: The rules that hold.
        until: Stop where this invariant breaks; None visits everything.
        symmetry: Whether states that differ only in the actors' names are one.
        report: Called now and then with the states seen, and how many wait.
    """
    began = time.perf_counter()
    first = begin(world)
    came: dict[Whole, tuple[Whole, Act] | None] = {first: None}
    waiting = deque([first])
    broken: dict[Invariant, Trace] = {}
    transitions = 0
    while waiting and (until is None or until not in broken):
        before = waiting.popleft()
        for act in acts(before, world, rules):
            transitions += 1
            after = step(before, act, world, rules)
            for invariant in violations(before, act, after):
                broken.setdefault(invariant, (*_way(came, before), act))
            named = _same(after) if symmetry else after
            if named not in came:
                came[named] = (before, act)
                waiting.append(named)
                if len(came) % 10_000 == 0:
                    report(len(came), len(waiting))
    return Explored(len(came), transitions, broken, time.perf_counter() - began)


def _same(whole: Whole) -> Whole:
    """One state for all that differ only in which actor is which."""
    hands = tuple(sorted(whole.hands, key=lambda hand: hand or Hand("", launched=False)))
    return whole if hands == whole.hands else replace(whole, hands=hands)


def _way(came: dict[Whole, tuple[Whole, Act] | None], whole: Whole) -> Trace:
    steps: list[Act] = []
    while (link := came[whole]) is not None:
        whole, act = link
        steps.append(act)
    return tuple(reversed(steps))


def without(rule: Rule) -> Trace | None:
    """The shortest way to break what rests on a rule where it is taken away; None where nothing breaks."""
    world = bounds(actors=2, **_NEEDS.get(rule, {}))
    invariant = EXPECTED[rule]
    return explore(world, ALL - {rule}, until=invariant, symmetry=False).broken.get(invariant)


def run(world: Bounds, report: Callable[[str], None] = lambda _line: None) -> Result:
    """The experiment: all rules hold, and then without each of them in turn."""
    whole = explore(world, report=lambda states, waiting: report(f"{states:,} states, {waiting:,} waiting"))
    violated = [f"{invariant}: {_told(trace)}" for invariant, trace in whole.broken.items()]
    rows: list[Result] = []
    for rule, invariant in EXPECTED.items():
        report(f"without: {rule}")
        trace = without(rule)
        rows.append({"without": str(rule), "breaks": str(invariant), "by": [str(act) for act in trace or ()]})
        if trace is None:
            violated.append(f"without `{rule}`, `{invariant}` still holds: one of them says nothing")
    return {
        "experiment": "ledger-model",
        "inputs": {
            "files": {},
            "seeds": [],
            "versions": {"cxi": version("cxi"), "python": platform.python_version()},
            "bounds": {
                "actors": world.actors,
                "capabilities": len(world.templates),
                "ticks": world.ticks,
                "epochs": world.epochs,
                "revocations": len(world.marks),
                "power_cuts": world.power_cuts,
            },
        },
        "denominators": {
            "states": whole.states,
            "transitions": whole.transitions,
            "invariants": len(Invariant),
            "rules_taken_away": len(rows),
        },
        "figures": {"seconds": round(whole.seconds, 2), "invariants_broken": len(whole.broken)},
        "violations": violated,
        "ok": not violated,
        "rules": rows,
    }


def _told(trace: Trace) -> str:
    return ", ".join(map(str, trace))
