"""`cxi lock`: a person accepts what servers list now. Nothing else writes `cxi.lock`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cxi.canonical import JsonValue
from cxi.cli.open import open_config
from cxi.cli.output import RED, YELLOW, Config, Json, give, note, say

if TYPE_CHECKING:
    from cxi.config.model import Configuration


def lock(
    config: Config = "",
    diff: Annotated[
        bool, typer.Option("--diff", help="only show what differs from the present pins; exit 1 if anything does")
    ] = False,
    json: Json = False,
) -> None:
    """Start every server once, and pin its program, arguments and tool definitions, the prose sources and declassifiers' code."""
    from cxi.config.lock import PinStanding, compare, make_lock, write_lock

    loaded = open_config(config, pinned=False)
    listings = {name: listing(loaded, name) for name in loaded.servers}
    states = [
        state for name, tools in listings.items() for state in compare(loaded.lock, name, loaded.servers[name].identity, tools)
    ]
    changed = [state for state in states if state.state is not PinStanding.OK]
    if json:
        give(
            {
                "written": not diff,
                "tools": [
                    {"tool": f"{s.server}.{s.tool}", "state": str(s.state), "digest": s.digest, "difference": s.difference}
                    for s in states
                ],
            }
        )
    else:
        for state in changed if loaded.lock is not None else ():
            say(f" {state.state:<15} {state.server}.{state.tool}", YELLOW if state.state is PinStanding.UNPINNED else RED)
            if state.difference and state.state is not PinStanding.UNPINNED:
                say(state.difference)
    if diff:
        if not json:
            say(f"{len(changed)} of {len(states)} tools differ from `{loaded.lock_file.name}`")
        raise typer.Exit(1 if changed else 0)
    write_lock(loaded.lock_file, make_lock(loaded, listings))
    if not json:
        say(f"wrote {loaded.lock_file.name}: {len(listings)} servers, {len(states)} tools, {len(loaded.prose)} prose sources")


def listing(loaded: Configuration, name: str) -> Sequence[Mapping[str, JsonValue]]:
    """What a server lists, started once for it.

    Raises:
        NotStarted: where it cannot be started, or does not answer in time.
    """
    from cxi.guard import launch_of
    from cxi.sinks.mcp import BlockingUpstream

    server = loaded.servers[name]
    upstream = BlockingUpstream(
        launch_of(server, os.environ), admit=lambda _server, _tools: {}, start_timeout=server.limits.start
    )
    note(f"starting server `{name}` (at most {server.limits.start:g} s) …")
    try:
        return upstream.start()
    finally:
        upstream.close()
