"""`cxi check`: is the configuration right, and how wide is its surface?"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from cxi.cli.open import find_config
from cxi.cli.output import Config, Json, give, say
from cxi.config.check import lint
from cxi.config.load import load
from cxi.policy.schema import render


def check(
    config: Config = "",
    schema: Annotated[bool, typer.Option("--schema", help="print the Cedar schema that policies are validated against")] = False,
    json: Json = False,
) -> None:
    """Lint the configuration, count its surface, and fail on anything unclassified."""
    loaded = load(find_config(config), environ=os.environ)
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
