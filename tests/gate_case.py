"""A scratch world for tests of the gate: one server whose in-process tools really act, a clock that tests move, real files.

    with opened() as case:
        case.talk.call("it.write", {"path": "src/a.py", "content": "x"})

Tools: `write` (a bounded choice), `put` (named in the request), `move` (a tuple), `drop` (a list of files), `note` (its effect is
the call), `close` (a ticket, only after a passed run), `stamp` (an effect that leaves no trace), `read`, and `look`, a report of
which the platform writes `run` and `files`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cxi.authority.approval import Approval
from cxi.canonical import digest
from cxi.effects.base import World
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Code, Reason
from cxi.gate import Decision, Gate, Proposal
from cxi.guard import Conversation, Guard
from cxi.lab.arena import Arena, Tools, arena, define
from cxi.provenance import RequestChannel
from cxi.session import Session
from cxi.sinks.disk import DiskWorld

NAMES = ("write", "put", "move", "drop", "note", "close", "read", "look", "stamp")
CONTRACTS: dict[str, Any] = {
    "write": {
        "effect": {"adapter": "file", "path": "path", "content": "content"},
        "fields": {
            "path": {"role": "protected", "type": "RepoPath", "from": ["request", "release", "approval", {"choice": ["inside"]}]},
            "content": {"role": "payload"},
        },
        "repeat": "replay",
    },
    "put": {
        "effect": {"adapter": "file", "path": "path", "content": "content"},
        "fields": {
            "path": {"role": "protected", "type": "RepoPath", "from": ["any-of-request", "release", "approval"]},
            "content": {"role": "payload"},
            "encoding": {"role": "fixed", "value": "utf-8"},
            "base": {"role": "fixed", "value": "${root}"},
        },
    },
    "move": {
        "effect": ["fs.delete(source)", "fs.create(destination)"],
        "fields": {
            "source": {"role": "protected", "type": "RepoPath", "from": ["request", "approval"], "together": "move"},
            "destination": {
                "role": "protected",
                "type": "RepoPath",
                "from": ["request", "approval"],
                "together": "move",
                "after": "to",
            },
        },
    },
    "drop": {
        "effect": ["fs.delete(files[])"],
        "fields": {"files[]": {"role": "protected", "type": "RepoPath", "from": ["any-of-request", "state"]}},
        "repeat": "allow",
    },
    "note": {
        "effect": "call",
        "fields": {
            "title": {"role": "protected", "type": "Text", "from": ["any-of-request"]},
            "body": {"role": "payload", "optional": True},
        },
        "repeat": "replay",
    },
    "close": {
        "effect": "call",
        "fields": {"id": {"role": "protected", "type": {"RecordId": {"form": "integer"}}, "from": ["request", "approval"]}},
    },
    "read": {
        "effect": ["fs.read(path)"],
        "fields": {"path": {"role": "protected", "type": "RepoPath", "from": ["anyone"]}},
    },
    "look": {"effect": "none", "fields": {}, "result": {"$.run": "platform", "$.files": "platform"}},
    "stamp": {
        "effect": ["fs.touch(path)"],
        "fields": {"path": {"role": "protected", "type": "RepoPath", "from": ["any-of-request"]}},
    },
}
POLICIES = """
@id("calls") @text("These tools may be called.")
permit (principal, action in [%s], resource);
@id("inside") @text("Files below src and tests may be made and changed.")
permit (principal == Agent::"agent", action in [Action::"fs.create", Action::"fs.write", Action::"fs.delete", Action::"fs.touch"],
        resource is File)
when { resource in Folder::"src" || resource in Folder::"tests" };
@id("verified-before-closing") @evidence("test-run") @text("A ticket is closed only after a passed run.")
forbid (principal, action == Action::"tool:it.close", resource)
unless { context.evidence has test_run && context.evidence.test_run.result == "passed" };
""" % ", ".join(f'Action::"tool:it.{name}"' for name in NAMES)  # noqa: UP031  # braces are Cedar's
GRANTS: dict[str, Any] = {f"it.{name}": 20 for name in NAMES if name not in ("read", "look")}
MORE: dict[str, Any] = {
    "tasks": {"case": {"grants": GRANTS}, "timed": {"grants": GRANTS, "expires": "10m"}, "bare": {"grants": {"it.stamp": 1}}},
    "evidence": {
        "test-run": {
            "from": {"tool": "it.look", "path": "$.run", "written_by": "platform"},
            "subject": "none",
            "expires": "1h",
        }
    },
    "declassifiers": {
        "failing": {
            "from": {"tool": "it.look", "path": "$.files[*]", "written_by": "platform"},
            "type": "RepoPath",
            "validate": ["regular-file"],
            "to": "it.put.path",
            "selection": "all",
            "expires": "1h",
        }
    },
}


@dataclass
class Case:
    """One opened world.

    Attributes:
        place: The scratch folder.
        tools: The server.
        guard: The opened configuration.
        talk: A session.
        now: The clock, in seconds; tests move it.
        report: What `look` answers.
        meanwhile: Done once, right after the next draw and before the sink.
    """

    place: Arena
    tools: Tools
    file: Path
    now: float = 1_000_000.0
    report: Any = field(default_factory=lambda: {"run": {"result": "passed"}, "files": ["src/c.py"], "log": "see src/z.py"})
    meanwhile: Callable[[], object] | None = None
    guard: Guard = field(init=False)
    talk: Conversation = field(init=False)
    counter: Iterator[int] = field(default_factory=itertools.count)

    @property
    def root(self) -> Path:
        return self.place.root

    @property
    def session(self) -> Session:
        return self.talk.session

    @property
    def gate(self) -> Gate:
        return self.session._wiring.gate

    def call(self, tool: str, key: str = "", /, **arguments: Any) -> Any:
        return self.talk.call(f"it.{tool}", arguments, idempotency_key=key)

    def act(self, tool: str, arguments: Mapping[str, Any]) -> str:
        match tool:
            case "write" | "put":
                Path(arguments["path"]).write_text(arguments["content"], encoding="utf-8")
            case "move":
                Path(arguments["source"]).rename(arguments["destination"])
            case "drop":
                for path in arguments["files"]:
                    Path(path).unlink()
            case "read":
                return Path(arguments["path"]).read_text(encoding="utf-8")
            case "look":
                return json.dumps(self.report)
        return "done"

    def entropy(self, size: int) -> bytes:
        return next(self.counter).to_bytes(size, "big")

    def decide(self, tool: str, arguments: Any, *, gate: Gate | None = None, standing: Any = None, **more: Any) -> Decision:
        """One decision, nothing spent."""
        wiring = self.session._wiring
        snapshot = RecordingSnapshot(wiring.world, wiring.root)
        proposal = Proposal(f"a-{next(self.counter)}", f"it.{tool}", arguments, **more)
        return (gate or self.gate).decide(proposal, standing or self.session.standing, snapshot, self.now)

    def wanted(self, tool: str, arguments: Any) -> tuple[str, str]:
        """(action digest, effect commitment) that an approval of this call has to bind."""
        probe = _Probe()
        standing = self.session.standing
        self.decide(tool, arguments, standing=_with(standing, approvals=(*standing.approvals, probe)))
        return probe.seen

    def approval(self, tool: str, arguments: Any, **other: Any) -> Approval:
        """A person's yes to exactly this call, but for what `other` says."""
        action, effect = self.wanted(tool, arguments)
        bound: dict[str, Any] = {
            "id": f"yes-{next(self.counter)}",
            "action": action,
            "effect": effect,
            "display": digest("shown"),
            "risks": digest("told"),
            "approver": "uid:1000",
            "session": self.session.id,
            "expires": self.now + 600,
        }
        return Approval(**(bound | other))

    def log(self, *kinds: str) -> list[Any]:
        return [item.entry for item in self.guard.ledger.entries() if not kinds or str(item.entry.kind) in kinds]


class _Probe:
    """Stands where an approval stands and notes what it is compared with."""

    id, action, expires = "probe", "", 0.0
    seen = ("", "")

    def holds(self, action: str, effect: str, session: str, now: float) -> Reason:
        self.seen = (action, effect)
        return Reason(Code.APPROVAL_MISMATCH, "a probe")


def _with(standing: Any, **changes: Any) -> Any:
    return replace(standing, **changes)


class TurningWorld(DiskWorld):
    """The disk, with something that happens in the midst: at the first question after the draw."""

    def __init__(self) -> None:
        super().__init__()
        self.case: Case | None = None

    def entry(self, path: str) -> Any:
        self._turn()
        return super().entry(path)

    def content(self, path: str) -> Any:
        self._turn()
        return super().content(path)

    def _turn(self) -> None:
        case = self.case
        if case is not None and case.meanwhile is not None and hasattr(case, "guard"):
            last = case.log()[-1]
            if str(last.kind) == "admission":
                work, case.meanwhile = case.meanwhile, None
                work()


@contextmanager
def opened(
    request: str = "Please fix src/a.py.",
    task: str | None = "case",
    *,
    contracts: Mapping[str, Any] | None = None,
    policies: str = "",
    base: str = POLICIES,
    names: tuple[str, ...] = NAMES,
    **more: Any,
) -> Iterator[Case]:
    """Configure, pin and open; a session with a task where there is a request."""
    with arena() as place:
        for name in ("src/a.py", "src/b.py", "src/c.py", "docs/d.md"):
            (place.root / name).parent.mkdir(parents=True, exist_ok=True)
            (place.root / name).write_text("before\n", encoding="utf-8")
        file = place.configure({**CONTRACTS, **(contracts or {})}, policies=base + policies, **{**MORE, **more})
        tools = Tools(define(names))
        place.pin(file, tools)
        case = Case(place, tools, file)
        tools.act = case.act
        world = TurningWorld()
        world.case = case
        with guarded(case, world=world) as guard:
            case.guard = guard
            with guard.session(request=request, task=task if request else None) as case.talk:
                yield case


@contextmanager
def guarded(case: Case, *, world: World | None = None) -> Iterator[Guard]:
    """The configuration opened (again), with the case's tools attached."""
    with Guard.open(case.file, environ=case.place.environ, clock=lambda: case.now, entropy=case.entropy, world=world) as guard:
        guard.attach("it", case.tools, case.tools.definitions)
        yield guard


def start(session: Session, request: str, task: str | None = "case") -> object:
    return session.start_task(request, task, channel=RequestChannel.HOST_API, credential="host")
