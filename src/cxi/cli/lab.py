"""`cxi lab`: experiments over the public API; one result shape for all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cxi.cli.output import DIM, GREEN, RED, YELLOW, Json, fail, give, note, say

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


@app.command("ledger-model")
def ledger_model(
    capabilities: Annotated[int, typer.Option("--capabilities", min=1, max=3, help="how many are drawn")] = 3,
    actors: Annotated[int, typer.Option("--actors", min=1, max=4, help="processes that consume, launch, settle and crash")] = 3,
    ticks: Annotated[int, typer.Option("--ticks", min=0, max=3, help="how often time passes")] = 0,
    power_cuts: Annotated[int, typer.Option("--power-cuts", min=0, max=2, help="how often the whole machine stops")] = 0,
    json: Json = False,
) -> None:
    """Every interleaving of a small world: which states there are, and that each rule of the ledger is needed."""
    from cxi.lab.interleavings import bounds, run

    result = run(bounds(capabilities=capabilities, actors=actors, ticks=ticks, power_cuts=power_cuts), report=note)
    if json:
        give(result)
    else:
        for row in result["rules"]:
            say(f" without: {row['without']}", YELLOW)
            say(f"  breaks: {row['breaks']}")
            say(f"      by: {', '.join(row['by'])}")
        counts = result["denominators"]
        say(f"{counts['states']:,} states, {counts['transitions']:,} transitions, {counts['invariants']} invariants", GREEN)
        for violation in result["violations"]:
            fail(str(violation))
    raise typer.Exit(0 if result["ok"] else 1)


@app.command("ledger-faults")
def ledger_faults(
    backend: Annotated[str, typer.Option("--backend", help="`sqlite`, or `postgres` with a server of its own")] = "sqlite",
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="about how long what runs against the clock takes")] = 20.0,
    consumes: Annotated[
        int, typer.Option("--consumes", min=0, help="the contention alone: this many keys, each tried by every process")
    ] = 0,
    processes: Annotated[int, typer.Option("--processes", min=1, max=64, help="of the contention")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="for what is drawn at random")] = 1,
    json: Json = False,
) -> None:
    """Faults that are really made, and a sink that counts by itself: kill -9, contention, full and damaged disks, clocks."""
    from cxi.lab.faults.ground import Plan
    from cxi.lab.ledger_faults import ground_of, run

    with ground_of(backend) as ground:
        result = run(ground, Plan(seconds, seed, consumes, processes, note))
    if json:
        give(result)
    else:
        for row in result["cases"]:
            codes = ", ".join(f"{code} {count}" for code, count in row["refusals"].items())
            say(
                f" {'!!' if row['violations'] else 'ok'}  {row['case']:<52} tried {row['tried']:<7} leases {row['leases']:<7}"
                f" again {row['recorded']:<4} effects {row['effects']:<7} {codes}",
                RED if row["violations"] else GREEN,
            )
            if row["how"]:
                say(f"     {row['how']}", DIM)
        counts = result["denominators"]
        say(", ".join(f"{name} {count:,}" for name, count in counts.items() if isinstance(count, int)))
        for violation in result["violations"]:
            fail(str(violation))
    if result["interrupted"]:
        fail("interrupted: what is shown was done until then")
        raise typer.Exit(130)
    raise typer.Exit(0 if result["ok"] else 1)


@app.command("shell-corpus")
def shell_corpus(
    corpora: Annotated[Path, typer.Option("--corpora", envvar="CXI_CORPORA", help="the folder of the public traces")],
    json: Json = False,
) -> None:
    """Every shell command of two public corpora, planned against what its run had shown by then."""
    from cxi.lab.shell_corpus import run

    result = run(corpora)
    if json:
        give(result)
    else:
        for reason, count in result["refused"].items():
            say(f" {count:>4}  {reason}", YELLOW)
        say(", ".join(f"{name} {count}" for name, count in result["denominators"].items()))
        say(", ".join(f"{name} {figure}" for name, figure in result["figures"].items()), GREEN)
    raise typer.Exit(0 if result["ok"] else 1)
