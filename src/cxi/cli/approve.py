"""`cxi approve`: what waits for a person, and the answer, over the control socket, which the agent does not hold."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cxi.cli.open import open_config
from cxi.cli.output import Config, Json, fail, give, say

app = typer.Typer(help="say yes or no to calls that wait for a person", no_args_is_help=True)
Session = Annotated[str, typer.Option("--session", help="which gateway's session, where several run")]
Id = Annotated[str, typer.Argument(help="the request, `p-…`")]


@app.command("list")
def list_(config: Config = "", session: Session = "", json: Json = False) -> None:
    """The calls that wait, oldest first."""
    found = _pending(config, session)
    if json:
        give({"pending": found})
        return
    for one in found:
        say(f" {one['id']}  {one['tool']}  {one['call']}  {'; '.join(one['risks'])}")
    say(f"{len(found)} waiting")


@app.command("show")
def show(id: Id, config: Config = "", session: Session = "", json: Json = False) -> None:
    """Exactly what you would say yes to."""
    one = _find(id, _pending(config, session))
    if json:
        give(one)
    else:
        say(str(one["display"]))


@app.command("grant")
def grant(
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask again")] = False,
    config: Config = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Say yes to exactly what is shown, once; any change voids it."""
    one = _find(id, _pending(config, session))
    if not yes:
        say(str(one["display"]))
        if not sys.stdin.isatty():
            fail("nobody is there to be asked: read what is shown, then give `--yes`")
            raise typer.Exit(2)
        typer.confirm("Grant it, once?", abort=True)
    _answer(config, session, one, "grant", json=json)


@app.command("deny")
def deny(id: Id, config: Config = "", session: Session = "", json: Json = False) -> None:
    """Say no: this very call is refused from now on, whatever grants there are."""
    _answer(config, session, _find(id, _pending(config, session)), "deny", json=json)


def _pending(config: str, session: str) -> list[dict[str, Any]]:
    from cxi.gateway.control import control

    answer = control(open_config(config), {"op": "approve.list", "session": session})
    if "error" in answer:
        fail(str(answer["error"]))
        raise typer.Exit(1)
    found: Any = answer["pending"]
    return list(found)


def _find(id: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    for one in found:
        if one["id"] == id:
            return one
    names = ", ".join(f"`{one['id']}`" for one in found) or "nothing"
    fail(f"nothing waits under `{id}`; {names} waits")
    raise typer.Exit(1)


def _answer(config: str, session: str, one: dict[str, Any], verdict: str, *, json: bool) -> None:
    from cxi.gateway.control import control

    # The digests are those of what was shown here: a request that changed meanwhile is not what was answered.
    message = {"op": "approve.answer", "pending": one["id"], "action": one["action"], "shown": one["shown"], "verdict": verdict}
    answer = control(open_config(config), {**message, "session": session})
    if json:
        give(answer)
    elif "error" in answer:
        fail(str(answer["error"]))
    else:
        say(str(answer["text"]))
    if "error" in answer:
        raise typer.Exit(1)
