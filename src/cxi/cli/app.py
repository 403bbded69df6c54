"""The command tree. Each command's own module is loaded when it is called, so that `cxi --help` is quick."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from cxi.cli import approve, check, database, effects, explain, gateway, lab, ledger, lock, log, task

app = typer.Typer(
    name="cxi",
    help="Context-to-execution integrity: what has authority happens, what has none does not, and each refusal says why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="gateway")(gateway.gateway)
app.add_typer(task.app, name="task")
app.add_typer(approve.app, name="approve")
app.add_typer(log.app, name="log")
app.command(name="explain")(explain.explain)
app.command(name="check")(check.check)
app.command(name="lock")(lock.lock)
app.add_typer(ledger.app, name="ledger")
for command in (database.migrate, database.bind, database.activate):
    ledger.app.command(name=command.__name__)(command)
app.add_typer(effects.app, name="effects")
app.add_typer(lab.app, name="lab")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cxi {version('cxi')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="the version, and nothing else")
    ] = False,
) -> None:
    """Context-to-execution integrity: what has authority happens, what has none does not, and each refusal says why."""
