"""`cxi ledger`: what a person does about events whose outcome is not known, sessions and origins."""

from __future__ import annotations

import getpass
import time
from typing import Annotated

import typer

from cxi.cli.log import stories
from cxi.cli.open import open_book
from cxi.cli.output import Config, Json, fail, give, say

app = typer.Typer(help="unknown outcomes, revocations, endorsements", no_args_is_help=True)
Reason = Annotated[str, typer.Option("--reason", help="why, for the log")]


@app.command("unknown")
def unknown(config: Config = "", json: Json = False) -> None:
    """Calls whose outcome is not known; each blocks equal events."""
    from cxi.ledger.base import State

    with open_book(config) as book:
        found = [story for story in stories(book) if story.state in (str(State.OUTCOME_UNKNOWN), str(State.LEASED))]
    if json:
        give({"calls": [story.to_json() for story in found]})
        return
    for story in found:
        say(f" {story.id}  {story.tool}  {story.shown}  {story.state}")
    say(f"{len(found)} unknown")


@app.command("release")
def release(
    call: Annotated[str, typer.Argument(help="the call's id")],
    outcome: Annotated[
        str,
        typer.Option("--as", help="`done` or `failed`: what really happened; `released`: nobody knows, and it may happen again"),
    ],
    reason: Reason,
    config: Config = "",
) -> None:
    """Say how an unknown outcome ended, so that its event is no longer blocked."""
    from cxi.ledger.base import State

    if outcome not in ("done", "failed", "released"):
        fail("--as takes `done`, `failed` or `released`")
        raise typer.Exit(2)
    with open_book(config) as book:
        book.ledger.release(call, getpass.getuser(), reason, State(outcome), time.time())
    say(f"{call}: {outcome}")


@app.command("revoke")
def revoke(
    reason: Reason,
    session: Annotated[str, typer.Option("--session", help="the session")],
    grant: Annotated[str, typer.Option("--grant", help="only this grant of it")] = "",
    config: Config = "",
) -> None:
    """No further effect in a session, or from one of its grants."""
    from cxi.ledger.base import Mark, MarkKind

    with open_book(config) as book:
        drawn = book.ledger.grants_of(session)
        if drawn is None:
            fail(f"no session `{session}` in this ledger; `cxi task list` and `cxi log show --json` name them")
            raise typer.Exit(1)
        granted = [*book.config.standing, *(one for task in book.config.tasks.values() for one in task.grants)]
        known = {*drawn, *(one.id for one in granted)}
        if grant and grant not in known:
            fail(f"no grant `{grant}`; one of {', '.join(f'`{name}`' for name in sorted(known)) or 'none'}")
            raise typer.Exit(1)
        mark = Mark(MarkKind.GRANT, grant, session) if grant else Mark(MarkKind.SESSION, session)
        book.ledger.revoke(book.config.tenant, mark, person=getpass.getuser(), reason=reason, now=time.time())
    say(f"revoked: {session} {grant}".rstrip())


@app.command("endorse")
def endorse(
    kind: Annotated[str, typer.Argument(help="`path`, or a value type such as `RecordId`")],
    key: Annotated[str, typer.Argument(help="the path or record")],
    config: Config = "",
) -> None:
    """Vouch for a record or path that an earlier session touched, so that declassifiers may read it again."""
    with open_book(config) as book:
        book.ledger.endorse(book.config.tenant, kind, key, getpass.getuser(), time.time())
    say(f"endorsed: {kind} {key}")
