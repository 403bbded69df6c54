"""`cxi task`: the request channel. The words go over the control socket of a running gateway, which the agent does not hold."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cxi.cli.open import open_config
from cxi.cli.output import Config, Json, fail, give, say

app = typer.Typer(help="start, stop and list tasks", no_args_is_help=True)
Session = Annotated[str, typer.Option("--session", help="which gateway's session, where several run")]


@app.command("start")
def start(
    request: Annotated[str, typer.Argument(help="what you want, in your own words")],
    as_: Annotated[str, typer.Option("--as", help="the task of the configuration that grants what it may do")] = "",
    config: Config = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Open a task: your words become the trusted request, and the task's grants hold."""
    _tell(config, {"op": "task.start", "request": request, "as": as_ or None, "session": session}, json=json)


@app.command("add")
def add(
    request: Annotated[str, typer.Argument(help="a further message, in your own words")],
    config: Config = "",
    session: Session = "",
    json: Json = False,
) -> None:
    """Add a message to the open task."""
    _tell(config, {"op": "task.add", "request": request, "session": session}, json=json)


@app.command("stop")
def stop(config: Config = "", session: Session = "", json: Json = False) -> None:
    """Close the task: its request, grants and releases end."""
    _tell(config, {"op": "task.stop", "session": session}, json=json)


@app.command("list")
def list_(config: Config = "", json: Json = False) -> None:
    """Running gateways, their sessions and open tasks."""
    _tell(config, {"op": "task.list"}, json=json)


def _tell(config: str, message: dict[str, Any], *, json: bool) -> None:
    from cxi.gateway.control import control

    answer = control(open_config(config), message)
    if json:
        give(answer)
    elif "error" in answer:
        fail(str(answer["error"]))
    else:
        say(str(answer.get("text", "done")))
    if "error" in answer:
        raise typer.Exit(1)
