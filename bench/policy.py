"""What does a policy decision cost, and does it grow with the policies?

- **A1**: the same requests over 100,000 policies and over the first 100 of them, so that both find the same policies holding. The
  sets are mixed: wildcards, `in` hierarchies, negation, ranges, sets, policies of any action.
- **A2**: the same requests answered by CXI's own evaluator, and by `cedarpy` over the slice that the index finds, parsed once and
  kept, as is the schema: what is left is entities and context as JSON, and Cedar.
- **Shipped**: the policies that come with CXI and the demo's, one decision an atom.

Both arms must give equal answers. CPU time. Cedar over the whole set is no arm: it is linear, and the oracle of the tests.

    python bench/policy.py [--json] [--rounds 9] [--policies 100000]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
from arms import Arm, Measured, alternate, report
from cedarpy import Decision, is_authorized

from cxi.effects.base import Atom
from cxi.effects.entity import atom_request
from cxi.errors import Refused
from cxi.manifest import Assurance
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.monitor import ABSENT, CedarMonitor, _entities
from cxi.policy.registry import PolicySource, Registry, load, shipped
from cxi.policy.schema import EvidenceSurface, ToolSurface, make_schema
from cxi.policy.vocabulary import LONG, STRING, STRINGS
from cxi.values.base import Root

AGENTS: Final = ("maintainer", "reviewer")
DEMO: Final = Path(__file__).resolve().parents[1] / "examples" / "maintainer" / "policies"
PAY: Final = ToolSurface("bank.pay", "Server", {"amount": LONG, "currency": STRING, "tags": STRINGS.optional})
SCHEMA: Final = make_schema(AGENTS, [PAY], [EvidenceSurface("test-run", {})], [])
FEW: Final = 100

Answer = tuple[bool, tuple[str, ...]]

# One of each a number; %n is the number, %k and %j the ends of its range.
_MAINTAINER: Final = 'principal == Agent::"maintainer"'
_REQUESTS: Final = 'action == Action::"http.request"'
_WRITES: Final = 'action in [Action::"fs.write", Action::"fs.create"]'
_PAYS: Final = 'action == Action::"tool:bank.pay", resource == Server::"bank"'
_READS: Final = 'action in [Action::"fs.read", Action::"fs.read_any"]'
_UPDATES: Final = 'action == Action::"db.update"'
_PASSED: Final = 'context.evidence has test_run && context.evidence.test_run.result == "passed"'
_SOURCES: Final = 'resource in Folder::"team%n/src" || resource in Folder::"team%n/tests"'
_BETWEEN: Final = "context.field.amount >= %k && context.field.amount < %j"
_HTTPS: Final = '!(resource has port && resource.port < 1024) && !(resource.scheme != "https")'
MIXED: Final = (
    f'permit ({_MAINTAINER}, {_WRITES}, resource) when {{ {_SOURCES} }} unless {{ resource.name like "*.pem" }};',
    f'forbid (principal, {_WRITES}, resource) when {{ resource.path like "team%n/*/generated*.py" }};',
    f'forbid (principal, {_WRITES}, resource) when {{ resource.path like "*/vault%n/*" || resource.name == "lock%n" }};',
    'permit (principal, action == Action::"fs.read", resource in Folder::"team%n");',
    f'forbid (principal, {_READS}, resource) when {{ resource.name_folded like "*.secret%n" }};',
    f'permit (principal, {_PAYS}) when {{ {_BETWEEN} && context.field.currency != "XXX" }};',
    f'forbid (principal, {_PAYS}) when {{ context.field has tags && context.field.tags.contains("hold%n") }};',
    f'permit ({_MAINTAINER}, {_REQUESTS}, resource) when {{ resource.host like "*.team%n.example" && {_HTTPS} }};',
    f'forbid (principal, {_UPDATES}, resource == Table::"table%n") unless {{ {_PASSED} }};',
    'permit (principal == Agent::"reviewer", action, resource is Table) when { ["table%n", "view%n"].contains(resource.name) };',
    'forbid (principal, action, resource) when { context.task.open && context.task.name == "frozen%n" };',
)


def mixed(count: int) -> Registry:
    """So many policies, as many of each kind."""
    bodies = [
        MIXED[position % len(MIXED)]
        .replace("%n", str(number := position // len(MIXED)))
        .replace("%k", str(number * 10))
        .replace("%j", str(number * 10 + 10))
        for position in range(count)
    ]
    text = "\n".join(f'@id("p{position}") {body}' for position, body in enumerate(bodies))
    return load([PolicySource("mixed.cedar", text)], SCHEMA, agents=AGENTS)


def atom(kind: str, target: str, agent: str = "maintainer", **attributes: Any) -> PolicyRequest:
    """A request for one atom, made as the gate makes it."""
    made = atom_request(
        Atom(kind, target, attributes),
        agent=agent,
        root=Root("/repo", None),  # type: ignore[arg-type]  # nothing looks
        evidence={},
        approval=False,
        task="fix-bug",
        tool="files.write_file",
        assurance=Assurance.CHECKED,
    )
    assert isinstance(made, PolicyRequest)
    return made


def pay(amount: int, *tags: str) -> PolicyRequest:
    """A request for a call."""
    field = {"amount": amount, "currency": "EUR", "tags": list(tags)}
    return PolicyRequest("maintainer", "tool:bank.pay", Entity("Server", "bank", {"name": "bank"}), (), {"field": field})


ASKED: Final = [
    *(
        atom("fs.write", f"team{n}/{folder}/a/b.py", before="a" * 64, after="b" * 64)
        for n in (0, 3, 8)
        for folder in ("src", "x")
    ),
    *(atom("fs.write", f"team4/src/{path}") for path in ("generated_1.py", "vault2/key", "lock5")),
    atom("fs.write", "docs/index.md"),
    *(atom("fs.read", f"team{n}/deep/er/and/deeper/x.{ending}") for n in (1, 8) for ending in ("py", "secret2")),
    *(pay(amount, *tags) for amount in (5, 55, 80) for tags in ((), ("fine", "hold1"))),
    *(atom("http.request", f"GET https://api.team{n}.example{port}/x") for n in (2, 7) for port in ("", ":80", ":8080")),
    *(atom("db.update", f"table{n}", agent) for n in (0, 5) for agent in AGENTS),
]
SHIPPED: Final = [
    atom("fs.write", "src/tax/rounding.py", before="a" * 64, after="b" * 64),
    atom("fs.read", "src/tax/rounding.py"),
    atom("fs.read", "config/.env.local"),
    atom("fs.write", ".github/workflows/ci.yml", before="a" * 64, after="b" * 64),
    atom("git.index", "src/tax/rounding.py", op="add"),
    atom("git.commit", ".", message="Fix the rounding"),
]


def said(answer: Permitted | Refused) -> Answer:
    """What two ways must agree on."""
    if isinstance(answer, Permitted):
        return True, answer.by
    return False, tuple(sorted(f"{reason.code} {reason.detail}" for reason in answer.reasons))


def own(monitor: CedarMonitor, requests: list[PolicyRequest]) -> Callable[[], list[Answer]]:
    """All requests, by the monitor."""

    def decide() -> list[Permitted | Refused]:
        return [monitor.decide(request) for request in requests]

    return decide  # type: ignore[return-value]  # `said` makes it so, outside the clock


def sliced(monitor: CedarMonitor, requests: list[PolicyRequest]) -> Callable[[], list[Any]]:
    """All requests, by the index, a slice that is parsed already, and cedarpy; with no text for a refusal."""

    def decide() -> list[Any]:
        answers = []
        for request in requests:
            context = {**ABSENT, **request.context}
            above = {(request.resource.type, request.resource.id), *request.resource.parents}
            found = monitor._index.find(request.agent, request.action, request.resource, above, context)  # noqa: SLF001
            positions = tuple(sorted(set(found)))
            asked = {
                "principal": {"type": "Agent", "id": request.agent},
                "action": {"type": "Action", "id": request.action},
                "resource": {"type": request.resource.type, "id": request.resource.id},
                "context": orjson.dumps(context).decode(),
            }
            entities = orjson.dumps(_entities(request)).decode()
            result = is_authorized(asked, monitor._handle(positions), entities, monitor._schema_of(request.action))  # noqa: SLF001
            answers.append((result, positions))
        return answers

    return decide


def read(monitor: CedarMonitor, requests: list[PolicyRequest], answers: list[Any]) -> list[Answer]:
    """cedarpy's answers, worded as the monitor words them."""
    found: list[Answer] = []
    for request, (result, positions) in zip(requests, answers, strict=True):
        assert not result.diagnostics.errors
        holding = tuple(sorted(positions[int(name.removeprefix("policy"))] for name in result.diagnostics.reasons))
        answer = monitor._answer(holding, request)  # noqa: SLF001
        assert isinstance(answer, Permitted) is (result.decision is Decision.Allow)
        found.append(said(answer))
    return found


def measure(
    title: str, requests: list[PolicyRequest], measured: Arm, anchor: Arm, rounds: int, inputs: dict[str, Any]
) -> Measured:
    """A figure of CPU; a call is all requests once."""
    answered = [True for _, answer in zip(requests, measured.run(), strict=True) if isinstance(answer, Permitted)]
    about = {"requests a call": len(requests), "permitted of them": len(answered), **inputs}
    return alternate(measured, anchor, title=title, rounds=rounds, calls=40, inputs=about, clock=time.process_time)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--policies", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    def arm(name: str, monitor: CedarMonitor, requests: list[PolicyRequest]) -> Arm:
        return Arm(name, own(monitor, requests), after=lambda answers: [said(answer) for answer in answers])

    def cedar(monitor: CedarMonitor, requests: list[PolicyRequest]) -> Arm:
        return Arm(
            "index, kept slice, cedarpy", sliced(monitor, requests), after=lambda answers: read(monitor, requests, answers)
        )

    started = time.process_time()
    registry = mixed(options.policies)
    loaded = time.process_time()
    many = registry.monitor()
    inputs = {
        "policies": options.policies,
        "load, s": round(loaded - started, 1),
        "index, s": round(time.process_time() - loaded, 1),
    }
    few = mixed(FEW).monitor()
    demo = [PolicySource(file.name, file.read_text(encoding="utf-8")) for file in sorted(DEMO.glob("*.cedar"))]
    started = time.process_time()
    ours = load([shipped(), *demo], SCHEMA, agents=AGENTS).monitor()
    for position in range(len(ours._policies)):  # noqa: SLF001
        ours._compile(position)  # noqa: SLF001
    small = {"policies": len(ours._policies), "load and compile, ms": round((time.process_time() - started) * 1e3, 1)}  # noqa: SLF001
    name, small_name = f"{options.policies:,} policies", f"{FEW} policies"
    return report(
        measure("A1", ASKED, arm(name, many, ASKED), arm(small_name, few, ASKED), options.rounds, inputs),
        measure("A2, many", ASKED, arm(name, many, ASKED), cedar(many, ASKED), options.rounds, inputs),
        measure("A2, few", ASKED, arm(small_name, few, ASKED), cedar(few, ASKED), options.rounds, {"policies": FEW}),
        measure("A2, shipped", SHIPPED, arm("shipped and demo", ours, SHIPPED), cedar(ours, SHIPPED), options.rounds, small),
        arguments=["--json"] if options.json else sys.argv[1:],
    )


if __name__ == "__main__":
    raise SystemExit(main())
