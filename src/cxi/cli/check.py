"""`cxi check`: is the configuration right, and how wide is its surface?"""

from __future__ import annotations

from typing import Annotated

import typer

from cxi.cli.open import open_config
from cxi.cli.output import Config, Json, give, say


def check(
    config: Config = "",
    schema: Annotated[bool, typer.Option("--schema", help="print the Cedar schema that policies are validated against")] = False,
    json: Json = False,
) -> None:
    """Lint the configuration, count its surface, and fail on anything unclassified."""
    from cxi.config.check import lint
    from cxi.policy.schema import render

    loaded = open_config(config)
    if schema:
        typer.echo(render(loaded.registry.schema, human=not json))
        return
    report = lint(loaded)
    if json:
        give(report.to_json())
    else:
        for line in report.lines():
            say(line)
    if report.failed:
        raise typer.Exit(1)
