"""The gateway's own service over a door that is open: all is admitted, so that what it relays can be looked at alone.

    python open_gateway.py PLAN     # JSON: `servers`, `state`, and what else is read below

The journal has a line for each proposal, for how each one was finished, and for each text received.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cxi.errors import Code, Refused
from cxi.gateway import service
from cxi.ledger.base import Lease
from cxi.manifest import Action, Assurance, CanonicalCall, Commitment, Invocation, Manifest, Principal
from cxi.reply import refusal_result
from cxi.session import Answered, Finished, Ready
from cxi.sinks.base import Answer, Clearance

METHODS = ("resources/read", "resources/subscribe", "prompts/get", "completion/complete")


def lease_for(call: CanonicalCall, id: str, deadline: float) -> Lease:
    principal = Principal("t", "u", "a", "s")
    action = Action(principal, "sha256:0", "sha256:0", call)
    effect = Commitment("none/1", "sha256:0", "sha256:0", (), Assurance.DECLARED, (1, "sha256:0"), "a")
    manifest = Manifest(action, (), effect, Invocation("g", "sha256:0", 1, "0" * 32, "sha256:0"))
    return Lease(manifest, "sha256:0", id, 1, deadline)


class OpenDoor:
    """A session that says yes, unless the plan says no."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.id = "s-open"
        self._plan = plan
        self._count = 0
        self._journal = Path(plan["journal"]).open("a", buffering=1) if "journal" in plan else None  # noqa: SIM115

    def write(self, **entry: Any) -> None:
        if self._journal is not None:
            self._journal.write(json.dumps(entry) + "\n")

    def propose(self, tool: str, arguments: Any, *, idempotency_key: str = "", later: bool = False) -> Ready | Answered:
        self._count += 1
        number = f"a-{self._count}"
        self.write(event="propose", id=number, tool=tool, arguments=arguments, key=idempotency_key)
        if tool in self._plan.get("refuse", ()):
            refused = Refused.of(Code.FIELD_NO_AUTHORITY, "the plan says no", where="x")
            return Answered(number, refusal_result(tool, refused, number), "refused", refused)
        server, _, name = tool.partition(".")
        call = CanonicalCall(server, name, (), arguments)
        warrant: Any = Clearance(call, number)
        if tool in self._plan.get("sinks", ()):
            warrant = lease_for(call, number, time.time() + self._plan.get("lease", 60.0))
        return Ready(number, warrant, SimpleNamespace(tool=tool))

    def catch_up(self) -> None:
        """Nothing is left for later here."""

    def finish(self, prepared: Ready, answer: Any, *, later: bool = False) -> Finished:
        if isinstance(answer, Answer):
            self.write(event="finish", id=prepared.id, outcome="failed" if answer.failed else "answered")
            return Finished(prepared.id, answer.result)
        self.write(event="finish", id=prepared.id, outcome=type(answer).__name__, code=str(answer.reason.code))
        refused = Refused((answer.reason,))
        return Finished(prepared.id, refusal_result("it", refused, prepared.id), None, refused)

    def refuse(self, tool: str, refused: Refused) -> Answered:
        self._count += 1
        number = f"a-{self._count}"
        self.write(event="refuse", id=number, tool=tool, codes=list(refused.codes))
        return Answered(number, refusal_result(tool, refused, number), "refused", refused)

    def receive(self, server: str, kind: str, text: str) -> None:
        self.write(event="receive", server=server, kind=kind, text=text[:2000])

    def start_task(self, request: str, task: str | None, **_: Any) -> str:
        self.write(event="task", request=request, task=task)
        return task or "request"

    def add_request(self, text: str, **_: Any) -> None:
        self.write(event="add", request=text)

    def stop_task(self) -> None:
        self.write(event="stop")

    def close(self) -> None:
        self.write(event="close")


class OpenGuard:
    """As much of a guard as the service uses."""

    def __init__(self, plan: dict[str, Any], file: Path) -> None:
        self._plan = plan
        self.launches = {
            name: SimpleNamespace(
                name=name,
                command=tuple(server["command"]),
                env=server.get("env", {}),
                cwd=server.get("cwd"),
                timeout=server.get("timeout", 20.0),
                max_message=server.get("max_message", 16 * 1024 * 1024),
            )
            for name, server in plan["servers"].items()
        }
        limits = {
            name: SimpleNamespace(limits=SimpleNamespace(start=server.get("start", 20.0)))
            for name, server in plan["servers"].items()
        }
        sinks = {name: SimpleNamespace(name=name, sink=True) for name in plan.get("sinks", ())}
        names = [f"{server}.{method}" for server in plan["servers"] for method in plan.get("methods", METHODS)]
        methods = {name: SimpleNamespace(name=name) for name in names}
        self.config: Any = SimpleNamespace(
            file=file,
            state=Path(plan["state"]),
            tasks={"fix-bug": ()},
            servers=limits,
            contracts=sinks,
            methods=methods,
            idempotency_meta_key="cxi.dev/idempotency-key",
        )

    def admit_listing(self, server: str, tools: Any) -> dict[str, Refused | None]:
        changed = Refused.of(Code.TOOL_DEFINITION_CHANGED, "not as pinned")
        return {tool["name"]: changed if f"{server}.{tool['name']}" in self._plan.get("unpinned", ()) else None for tool in tools}

    def open_session(self, **_: Any) -> OpenDoor:
        return OpenDoor(self._plan)


def main() -> None:
    plan = json.loads(sys.argv[1])
    service.START_PATIENCE = plan.get("start_patience", 10.0)
    guard: Any = OpenGuard(plan, Path(plan["state"]) / "cxi.yaml")
    with service._apart(None) as out:
        asyncio.run(service.relay_stdio(guard, plan.get("request"), plan.get("task"), sys.stdin.buffer, out))


if __name__ == "__main__":
    main()
