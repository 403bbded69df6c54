"""Calls, draws and entries for tests of the ledger, with as little of the other rooms as possible.

Run as a program by tests that need another process:

    python ledger_case.py FOLDER INSTANCE NAME...      # lease each call, say so, and wait for standard input to end
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cxi.canonical import Digest, JsonValue, digest
from cxi.errors import Refused
from cxi.ledger.base import Draw, Lease, Outcome, Recorded, State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.entry import EntryType, LogEntry
from cxi.manifest import (
    Action,
    Assurance,
    CanonicalCall,
    Commitment,
    FieldValue,
    Invocation,
    Manifest,
    Principal,
    Role,
)
from cxi.values.base import Value

TENANT, USER, AGENT, CREDENTIAL = "local", "ana", "maintainer", "request-channel"


def open_ledger(folder: Path, instance: str = "one", now: float = 1.0) -> SqliteLedger:
    return SqliteLedger(folder / "ledger.sqlite", instance=instance, now=now)


def start(ledger: SqliteLedger, session: str = "s-1", *, policies: str = "policies", now: float = 1.0) -> None:
    ledger.activate(TENANT, digest(policies), now)
    ledger.open_session(TENANT, USER, AGENT, session, CREDENTIAL, now)


def action(name: str, *, session: str = "s-1", payload: str = "text") -> Action:
    fields = (
        FieldValue("path", "path", Role.PROTECTED, Value("RepoPath", name, f"/repo/{name}")),
        FieldValue("content", "content", Role.PAYLOAD, Value("Text", payload, payload)),
    )
    call = CanonicalCall("files", "write_file", fields, {"path": f"/repo/{name}", "content": payload})
    return Action(Principal(TENANT, USER, AGENT, session), digest("server"), digest("definition"), call)


class Case:
    """One ledger and a counter, so that each call has its own id, nonce and next sequence."""

    def __init__(self, ledger: SqliteLedger, prefix: str = "a") -> None:
        self.ledger = ledger
        self.prefix = prefix
        self.count = 0

    def call(
        self,
        name: str = "src/tax.py",
        *,
        session: str = "s-1",
        payload: str = "text",
        grant: str = "fix/files.write_file",
        key: str = "",
        sequence: int | None = None,
        nonce: str = "",
        capability: Digest = "",
        epoch: tuple[int, Digest] | None = None,
        agent: str = AGENT,
        limit: int = 20,
        window: float = 0.0,
        repeat: str = "refuse",
        deadline: float = 1e9,
        approval: str = "",
        touches: tuple[tuple[str, str], ...] = (),
        influences: tuple[str, ...] = (),
        mode: str = "enforce",
        hidden: dict[str, JsonValue] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> tuple[Manifest, Draw, LogEntry]:
        self.count += 1
        name_of_call = f"{self.prefix}-{self.count}"
        asked = action(name, session=session, payload=payload)
        if agent != AGENT:
            asked = replace(asked, principal=replace(asked.principal, agent=agent))
        in_force = epoch or self.ledger.epoch(TENANT) or (1, digest("policies"))
        commitment = Commitment(
            "file/1", digest("snapshot"), digest(["atoms", name]), ("src-and-tests",), Assurance.CHECKED, in_force, agent
        )
        invocation = Invocation(
            grant,
            capability or digest(["capability", name_of_call]),
            self.ledger.drawn(session, grant, 0.0) + 1 if sequence is None else sequence,
            nonce or digest(["nonce", name_of_call])[7:39],
            asked.event_key(),
            digest(["key", key]) if key else "",
        )
        manifest = Manifest(asked, (), commitment, invocation)
        draw = Draw(
            name_of_call, limit, window, repeat, asked.digest, asked.occurrence_key(), deadline, approval, touches, influences
        )
        draw = replace(draw, **(more or {}))
        body: dict[str, JsonValue] = {
            "mode": mode,
            "tool": "files.write_file",
            "effect": {"assurance": "checked"},
            "carriage": "not claimed",
            "hidden": hidden or {},
        }
        return manifest, draw, LogEntry(EntryType.ADMISSION, name_of_call, session, body)

    def consume(self, name: str = "src/tax.py", *, now: float = 2.0, **more: object) -> Lease | Recorded | Refused:
        manifest, draw, entry = self.call(name, **more)  # type: ignore[arg-type]
        return self.ledger.consume(manifest, draw, entry, now)

    def lease(self, name: str = "src/tax.py", **more: object) -> Lease:
        answer = self.consume(name, **more)  # type: ignore[arg-type]
        assert isinstance(answer, Lease), answer
        return answer

    def settle(self, lease: Lease, state: State = State.DONE, answer: JsonValue = None, now: float = 3.0) -> object:
        entry = LogEntry(EntryType.SETTLEMENT, lease.call, lease.manifest.action.principal.session, {"tool": "files.write_file"})
        return self.ledger.settle(lease, Outcome(state, answer), entry, now)


def codes(answer: object) -> tuple[str, ...]:
    """The codes of a refusal; what is none is shown as its type, so that the comparison fails with it."""
    return answer.codes if isinstance(answer, Refused) else (type(answer).__name__,)


def main(folder: str, instance: str, *names: str) -> None:
    """Lease each named call (`name` or `name/settle`), print how it went, and wait."""
    ledger = open_ledger(Path(folder), instance)
    case = Case(ledger, instance)
    for name in names:
        path, _, then = name.partition("!")
        answer = case.consume(path)
        if isinstance(answer, Lease) and then:
            case.settle(answer, State(then))
        print(type(answer).__name__, *codes(answer), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
