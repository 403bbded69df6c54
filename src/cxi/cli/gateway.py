"""`cxi gateway`: the endpoint that an MCP client starts in place of its servers."""

from __future__ import annotations

from typing import Annotated

import typer

from cxi.cli.open import find_config
from cxi.cli.output import Config


def gateway(
    config: Config = "",
    request: Annotated[str, typer.Option("--request", help="open a task at once, with these words")] = "",
    as_: Annotated[str, typer.Option("--as", help="the task of the configuration, with --request")] = "",
    ledger: Annotated[
        str,
        typer.Option(
            "--ledger",
            envvar="CXI_LEDGER",
            show_envvar=True,
            help="postgresql://USER@HOST/DATABASE: a ledger of many gateways; a password belongs into PGPASSFILE",
        ),
    ] = "",
    activate: Annotated[
        bool, typer.Option("--activate", help="put these files in force, though gateways at work run under others")
    ] = False,
) -> None:
    """Serve MCP over standard input and output, with all configured servers behind the gate."""
    from cxi.gateway import serve  # asyncio and the relay load only where they are needed

    raise typer.Exit(serve(find_config(config), request=request or None, task=as_ or None, ledger=ledger, activate=activate))
