"""`cxi effects`: what would a payload really do? Planned against a folder or a tree that is written down; nothing is run."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cxi.cli.output import GREEN, RED, YELLOW, Json, fail, give, say

if TYPE_CHECKING:
    from cxi.effects.base import Effect
    from cxi.errors import Refused

app = typer.Typer(help="what would a payload really do?", no_args_is_help=True)
ROOT = "/work"  # where a tree that is written down stands


@app.callback()
def effects() -> None:
    """What would a payload really do?"""


@app.command("plan")
def plan(
    payload: Annotated[str, typer.Argument(help="the payload; standard input where it is `-` or not given")] = "-",
    kind: Annotated[str, typer.Option("--kind", "--language", "-k", help="how the payload is read: shell")] = "shell",
    snapshot: Annotated[
        str, typer.Option("--snapshot", "-s", help='a folder, or JSON: {"dir", "cwd"?, "home"?, "env"?} or {"tree": {…}}')
    ] = ".",
    jsonl: Annotated[Path | None, typer.Option("--jsonl", help="cases, one JSON object a line, each answered by one")] = None,
    json: Json = False,
) -> None:
    """The atoms of a payload, or why it is refused (exit 1)."""
    if jsonl is not None:
        with jsonl.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    sys.stdout.write(json_.dumps(answer(line, number), ensure_ascii=False) + "\n")
        return
    text = sys.stdin.read() if payload == "-" else payload
    try:
        given: Any = json_.loads(snapshot) if snapshot.lstrip().startswith("{") else {"dir": snapshot}
        found = planned(kind, text, given)
    except (ValueError, KeyError, TypeError, OSError) as error:
        fail(str(error))
        raise typer.Exit(2) from None
    row = shown(found)
    if json:
        give(row)
    elif row["verdict"] == "effects":
        for atom in row["effects"]:
            rest = {key: value for key, value in atom.items() if key not in ("kind", "target", "pattern", "maybe")}
            marks = "".join(f" ({mark})" for mark in ("pattern", "maybe") if atom.get(mark))
            tail = f"  {json_.dumps(rest, ensure_ascii=False)}" if rest else ""
            say(f" {atom['kind']:<14} {atom['target']}{marks}{tail}", YELLOW if marks else GREEN)
    else:
        for reason in row["reasons"]:
            say(f" {reason['code']} {reason['where']}: {reason['detail']}", RED)
            say(f"   {reason['needs']}")
    raise typer.Exit(0 if row["verdict"] == "effects" else 1)


def answer(line: str, number: int) -> dict[str, Any]:
    """The answer to one line of a file of cases; a line that is none is refused, and hurts no other."""
    name: Any = number
    try:
        case = json_.loads(line)
        name = case.get("id", number)
        return {"id": name, **shown(planned(str(case["kind"]), str(case["payload"]), case["snapshot"]))}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        return {"id": name, "verdict": "refuse", "effects": [], "reason": f"MALFORMED_JSON: {type(error).__name__} {error}"}


def planned(kind: str, payload: str, snapshot: Mapping[str, Any]) -> Effect | Refused:
    """The plan of a payload of a kind over a snapshot that is written down.

    Raises:
        ValueError: the kind is not known, or the snapshot is none.
    """
    from cxi.effects.base import World
    from cxi.effects.shell.adapter import plan_text
    from cxi.effects.snapshot import RecordingSnapshot
    from cxi.effects.tree import Tree
    from cxi.sinks.disk import DiskWorld

    if kind != "shell":
        raise ValueError(f"no payloads of the kind `{kind}` are read")
    env = snapshot.get("env")
    if env is not None and not isinstance(env, Mapping):
        raise ValueError("`env` is no object")
    world: World
    if "tree" in snapshot:
        root = str(snapshot.get("root", ROOT))
        world = Tree(root, snapshot["tree"])
    else:
        root, world = str(Path(snapshot["dir"]).resolve(strict=True)), DiskWorld()
    cwd, home = str(snapshot.get("cwd") or ""), str(snapshot.get("home") or "")
    return plan_text(
        payload,
        RecordingSnapshot(world, root),
        cwd=cwd,
        home=home,
        env=None if env is None else {str(name): str(value) for name, value in env.items()},
    )


def shown(found: Effect | Refused) -> dict[str, Any]:
    """A plan as JSON."""
    from cxi.errors import Refused

    if isinstance(found, Refused):
        first = found.reasons[0]
        reasons = [
            {"code": str(reason.code), "where": reason.where, "detail": reason.detail, "needs": reason.helps}
            for reason in found.reasons
        ]
        return {"verdict": "refuse", "effects": [], "reason": f"{first.code}: {first.detail}", "reasons": reasons}
    return {"verdict": "effects", "effects": [atom.to_json() for atom in found.atoms], "reason": ""}
