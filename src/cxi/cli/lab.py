"""`cxi lab`: experiments over the public API; one result shape for all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cxi.cli.output import GREEN, RED, YELLOW, Json, fail, give, say

app = typer.Typer(help="experiments: what does it stop, and at what cost?", no_args_is_help=True)


@app.callback()
def lab() -> None:
    """Experiments: what does it stop, and at what cost?"""


@app.command("cases")
def cases(
    file: Annotated[Path, typer.Argument(help="cases, one JSON object a line", exists=True, dir_okay=False, readable=True)],
    json: Json = False,
) -> None:
    """Real-world faults through the public API, each with its outcome and mapped reason; what is not built yet is `not_yet`."""
    from cxi.lab.cases import run  # experiments load only when they are called

    result = run(file)
    if json:
        give(result)
    else:
        for row in result["cases"]:
            color = {"agrees": GREEN, "disagrees": RED, "not_yet": YELLOW}[row["verdict"]]
            say(f" {row['verdict']:<9} {row['id']:<5} {row['area']:<12} {row['outcome']:<12} {row['reason']}", color)
        counts = result["denominators"]
        say(", ".join(f"{name} {count}" for name, count in counts.items()))
        for violation in result["violations"]:
            fail(str(violation))
    raise typer.Exit(0 if result["ok"] else 1)
