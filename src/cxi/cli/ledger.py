"""`cxi ledger`: which calls were leased, how they ended, and what a person does about those of which nobody knows.

Exit codes: 0 done; 1 refused, not known, or something is left unknown; 2 the command line is wrong; 3 the ledger cannot be used.
"""

from __future__ import annotations

import getpass
import time
from typing import TYPE_CHECKING, Annotated

import typer

from cxi.cli.open import open_book
from cxi.cli.output import DIM, GREEN, PLAIN, RED, YELLOW, Config, Json, fail, give, note, say

if TYPE_CHECKING:
    from cxi.canonical import JsonValue
    from cxi.cli.book import Book
    from cxi.ledger.base import CallRecord, Mark

app = typer.Typer(help="leased calls, unknown outcomes, revocations, endorsements", no_args_is_help=True)
Reason = Annotated[str, typer.Option("--reason", help="why, for the log")]
Call = Annotated[str, typer.Argument(help="the call's id, a-…")]
COLORS = {"done": GREEN, "failed": DIM, "released": DIM, "leased": YELLOW, "outcome_unknown": RED}
MOST = 1_000_000


@app.command("list")
def list_calls(
    state: Annotated[
        list[str], typer.Option("--state", help="only this state; repeatable: leased, done, failed, outcome_unknown, released")
    ] = [],  # noqa: B006  # typer reads the default, nothing changes it
    session: Annotated[str, typer.Option("--session", help="only this session")] = "",
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="at most so many, the newest")] = 50,
    config: Config = "",
    json: Json = False,
) -> None:
    """One line a leased call, newest first: its state, tool and values, and the grant that it drew from."""
    from cxi.ledger.base import State

    states = [State(name) for name in state if name in KNOWN]
    if len(states) < len(state):
        fail(f"--state takes one of {', '.join(f'`{name}`' for name in KNOWN)}")
        raise typer.Exit(2)
    with open_book(config) as book:
        found = book.ledger.calls(book.config.tenant, states=states, session=session, most=last)
        rows = [_told(book, record) for record in found]
    _show(rows, json=json)


@app.command("unknown")
def unknown(config: Config = "", json: Json = False) -> None:
    """Calls whose outcome is not known; each blocks equal events. `cxi ledger reconcile` asks the world."""
    from cxi.ledger.base import State

    with open_book(config) as book:
        found = book.ledger.calls(book.config.tenant, states=[State.OUTCOME_UNKNOWN, State.LEASED], most=MOST)
        rows = [_told(book, record) for record in reversed(found)]
    if json:
        give({"calls": rows})
        return
    for row in rows:
        say(f" {row['id']}  {row['tool']}  {row['shown']}  {row['state']}")
    say(f"{len(rows)} unknown")


@app.command("show")
def show(call: Call, config: Config = "", json: Json = False) -> None:
    """One call: what the ledger holds of it, and every entry of the log that is about it."""
    with open_book(config) as book:
        record = _find(book, call)
        entries = book.ledger.entries_of(call)
        row = _told(book, record) | {
            "user": record.user,
            "agent": record.agent,
            "manifest": record.manifest,
            "writer": record.writer,
            "settled": record.settled,
            "entries": [chained.to_json() for chained in entries],
        }
    if json:
        give(row)
        return
    for name in ("id", "state", "tool", "shown", "grant", "session", "user", "agent", "manifest", "writer"):
        say(f" {name:<9} {row[name]}", COLORS.get(str(row["state"]), PLAIN) if name == "state" else PLAIN)
    for chained in entries:
        body = chained.entry.body
        told = [str(body[name]) for name in ("state", "person", "reason", "alarm") if name in body]
        say(f" entry {chained.seq:<6} {_time(chained.time)}  {chained.entry.kind:<10} {', '.join(dict.fromkeys(told))}")
    say(f"explain: cxi explain {call}", DIM)


@app.command("reconcile")
def reconcile(
    calls: Annotated[list[str] | None, typer.Argument(help="only these calls; all unknown ones where none is named")] = None,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="you vouch that no server which an ended gateway left behind still runs")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be written, and write nothing")] = False,
    config: Config = "",
    json: Json = False,
) -> None:
    """Ask the files and git what really happened to unknown calls; write what is certain, and say why of the rest.

    `done` where every atom of the effect is there. `failed` where none is, nothing of it was touched since the lease, and
    `--stopped` is given. Everything else stays unknown: `cxi ledger release` is for a person who knows more.
    """
    from cxi.cli.reconcile import look
    from cxi.ledger.base import State

    findings = []
    with open_book(config) as book:
        if calls:
            records = [_find(book, call) for call in calls]
            for record in records:
                if record.state is not State.OUTCOME_UNKNOWN:
                    fail(f"`{record.call}` is `{record.state}`, not `{State.OUTCOME_UNKNOWN}`: there is nothing to reconcile")
                    raise typer.Exit(1)
        else:
            records = list(book.ledger.calls(book.config.tenant, states=[State.OUTCOME_UNKNOWN], most=MOST))
        for number, record in enumerate(reversed(records), start=1):
            note(f"{number} of {len(records)}: {record.call}")
            now = time.time()
            finding = look(book, record, now, stopped=stopped)
            findings.append(finding)
            if finding.state is not State.OUTCOME_UNKNOWN and not dry_run:
                reason = f"reconciled: {'; '.join(finding.why)}"
                book.ledger.release(record.call, getpass.getuser(), reason, finding.state, now)
    left = sum(finding.state is State.OUTCOME_UNKNOWN for finding in findings)
    if json:
        rows: list[JsonValue] = [finding.to_json() for finding in findings]
        give({"calls": rows, "written": 0 if dry_run else len(findings) - left, "left": left})
    else:
        for finding in findings:
            tool = f"{finding.story.tool}  {finding.story.shown}" if finding.story is not None else ""
            say(f" {finding.record.call}  {finding.state}  {tool}", COLORS[finding.state])
            for line in finding.why:
                say(f"     {line}", DIM)
        verb = "would be reconciled" if dry_run else "reconciled"
        say(f"{len(findings) - left} {verb}, {left} left: `cxi ledger release` is for a person who knows how they ended")
    raise typer.Exit(1 if left else 0)


@app.command("release")
def release(
    call: Call,
    outcome: Annotated[
        str,
        typer.Option("--as", help="`done` or `failed`: what really happened; `released`: nobody knows, and it may happen again"),
    ],
    reason: Reason,
    config: Config = "",
    json: Json = False,
) -> None:
    """Say how an unknown outcome ended, so that its event is no longer blocked."""
    from cxi.ledger.base import State

    if outcome not in ("done", "failed", "released"):
        fail("--as takes `done`, `failed` or `released`")
        raise typer.Exit(2)
    with open_book(config) as book:
        book.ledger.release(call, getpass.getuser(), reason, State(outcome), time.time())
    if json:
        give({"id": call, "state": outcome})
        return
    say(f"{call}: {outcome}")


@app.command("revoke")
def revoke(
    reason: Reason,
    session: Annotated[str, typer.Option("--session", help="a session; with --grant, only that grant of it")] = "",
    grant: Annotated[str, typer.Option("--grant", help="a grant, in every session or in the one that is named")] = "",
    task: Annotated[str, typer.Option("--task", help="a task of the configuration, however often it is started")] = "",
    user: Annotated[str, typer.Option("--user", help="everything of a user")] = "",
    policy: Annotated[str, typer.Option("--policy", help="every effect that this policy permits, by its @id")] = "",
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="everything of a policy epoch, by its counter")] = 0,
    capability: Annotated[str, typer.Option("--capability", help="a capability's digest, or a delegation's id")] = "",
    config: Config = "",
    json: Json = False,
) -> None:
    """No further effect of a session, grant, task, user, policy, epoch or capability. What was launched runs to its outcome.

    What neither the ledger nor the configuration knows is an error: a typing mistake revokes nothing.
    """
    from cxi.ledger.base import Mark, MarkKind

    named = [
        *([Mark(MarkKind.GRANT, grant, session)] if grant else [Mark(MarkKind.SESSION, session)] if session else []),
        *([Mark(MarkKind.TASK, task)] if task else []),
        *([Mark(MarkKind.USER, user)] if user else []),
        *([Mark(MarkKind.POLICY, policy)] if policy else []),
        *([Mark(MarkKind.EPOCH, str(epoch))] if epoch else []),
        *([Mark(MarkKind.CAPABILITY, capability)] if capability else []),
    ]
    if len(named) != 1:
        fail("name one thing to revoke: --session, --grant (with --session or without), --task, --user, --policy, --epoch or")
        fail("--capability")
        raise typer.Exit(2)
    (mark,) = named
    with open_book(config) as book:
        problem = _foreign(book, mark)
        if problem:
            fail(problem)
            raise typer.Exit(1)
        book.ledger.revoke(book.config.tenant, mark, person=getpass.getuser(), reason=reason, now=time.time())
    if json:
        give({"revoked": str(mark.kind), "key": mark.key, "session": mark.session})
        return
    say(f"revoked: {mark}")


@app.command("endorse")
def endorse(
    kind: Annotated[str, typer.Argument(help="`path`, or a value type such as `RecordId`")],
    key: Annotated[str, typer.Argument(help="the path or record")],
    config: Config = "",
    json: Json = False,
) -> None:
    """Vouch for a record or path that an earlier session touched, so that declassifiers may read it again."""
    with open_book(config) as book:
        book.ledger.endorse(book.config.tenant, kind, key, getpass.getuser(), time.time())
    if json:
        give({"endorsed": kind, "key": key})
        return
    say(f"endorsed: {kind} {key}")


@app.command("stats")
def stats(config: Config = "", json: Json = False) -> None:
    """How many calls in which state, sessions, entries, revocations; the epoch in force, and the file's size."""
    with open_book(config) as book:
        found = book.ledger.stats(book.config.tenant)
    calls = {str(state): count for state, count in sorted(found.calls.items())}
    if json:
        give(
            {
                "calls": calls,
                "sessions": found.sessions,
                "open_sessions": found.open_sessions,
                "entries": found.entries,
                "revoked": found.revoked,
                "epoch": list(found.epoch) if found.epoch is not None else None,
                "bytes": found.bytes,
            }
        )
        return
    say(f" calls     {sum(calls.values()):,}  ({', '.join(f'{state} {count:,}' for state, count in calls.items()) or 'none'})")
    say(f" sessions  {found.sessions:,}, of which {found.open_sessions:,} are open")
    say(f" log       {found.entries:,} entries")
    say(f" revoked   {found.revoked:,}")
    say(f" epoch     {f'{found.epoch[0]}, {found.epoch[1]}' if found.epoch is not None else 'none'}")
    say(f" size      {found.bytes:,} bytes")


@app.command("vacuum")
def vacuum(
    days: Annotated[int, typer.Option("--older-than", min=0, help="only what was drawn more than this many days ago")] = 30,
    config: Config = "",
    json: Json = False,
) -> None:
    """Drop rows that no check needs any more: settled calls of closed sessions. Never the log, never an unknown call."""
    with open_book(config) as book:
        now = time.time()
        count = book.ledger.vacuum(now - days * 86_400, now)
    if json:
        give({"dropped": count})
        return
    say(f"dropped: {count} calls")


KNOWN = ("leased", "done", "failed", "outcome_unknown", "released")


def _find(book: Book, call: str) -> CallRecord:
    """The ledger's row of a call, its newest where an id was used twice."""
    found = book.ledger.calls(book.config.tenant, call=call, most=1)
    if not found:
        fail(f"no leased call `{call}` in this ledger; `cxi ledger list` names them, `cxi explain {call}` tells of refused ones")
        raise typer.Exit(1)
    return found[0]


def _told(book: Book, record: CallRecord) -> dict[str, JsonValue]:
    from cxi.cli.reconcile import story_of

    found = story_of(book, record)
    story = found[1] if found is not None else None
    return {
        "id": record.call,
        "state": str(record.state),
        "tool": story.tool if story is not None else "",
        "shown": story.shown if story is not None else "",
        "fields": dict(story.fields) if story is not None else {},
        "grant": record.grant,
        "session": record.session,
        "drawn": round(record.drawn, 3),
        "seq": record.seq,
    }


def _show(rows: list[dict[str, JsonValue]], *, json: bool) -> None:
    if json:
        give({"calls": rows})
        return
    for row in rows:
        line = f" {row['id']}  {row['state']:<15} {row['tool']:<24} {str(row['shown'])[:40]:<40} {row['grant']}"
        say(line, COLORS.get(str(row["state"]), PLAIN))
    say(f"{len(rows)} calls", DIM)


def _foreign(book: Book, mark: Mark) -> str:
    """Why a mark names nothing here; empty where it names something."""
    from cxi.ledger.base import MarkKind

    config = book.config
    granted = [*config.standing, *(one for task in config.tasks.values() for one in task.grants)]
    of_session = mark.session if mark.kind is MarkKind.GRANT else mark.key if mark.kind is MarkKind.SESSION else ""
    if of_session and (drawn := book.ledger.grants_of(of_session)) is None:
        return f"no session `{of_session}` in this ledger; `cxi task list` and `cxi log show --json` name them"
    known = {mark.key}
    match mark.kind:
        case MarkKind.GRANT:
            used = drawn if of_session and drawn is not None else {row.grant for row in _all(book)}
            known = {*used, *(one.id for one in granted)}
        case MarkKind.TASK:
            known = set(config.tasks)
        case MarkKind.USER:
            known = {config.user, *(row.user for row in _all(book))}
        case MarkKind.POLICY:
            known = set(config.registry.policies)
        case MarkKind.EPOCH:
            in_force = book.ledger.epoch(config.tenant)
            known = {str(number) for number in range(1, (in_force[0] if in_force is not None else 0) + 1)}
        case MarkKind.SESSION | MarkKind.CAPABILITY:
            pass  # a session was looked up above; of capabilities the ledger keeps digests alone
    if mark.key in known:
        return ""
    return f"no {mark.kind} `{mark.key}`; one of {', '.join(f'`{name}`' for name in sorted(known)[:50]) or 'none'}"


def _all(book: Book) -> list[CallRecord]:
    return list(book.ledger.calls(book.config.tenant, most=MOST))


def _time(instant: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(instant))
