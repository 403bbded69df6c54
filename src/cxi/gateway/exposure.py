"""With which capabilities and instructions do several servers look like one?

- Tools have the exposed names of `cxi.config.naming`, through its table; prompts and loggers are named alike.
- What a server says of itself is fenced in instructions, with a fence that its text cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from cxi.canonical import JsonValue
from cxi.sinks.mcp import Upstream

SEPARATOR: Final = "__"  # server names are [a-z0-9-]+: the first one ends the server's name


def split_exposed(exposed: str) -> tuple[str, str] | None:
    """The server and the own name of an exposed prompt; prompts need no table, since their own names are kept whole."""
    server, separator, own = exposed.partition(SEPARATOR)
    return (server, own) if separator and server and own else None


def merge_capabilities(upstreams: Iterable[Upstream]) -> dict[str, JsonValue]:
    """What all servers can do together, as far as the table lets it pass.

    A server that is not up may yet turn out to have anything, so anything is offered then.
    """
    servers = tuple(upstreams)
    unsure = any(not upstream.alive for upstream in servers)

    def some(name: str) -> bool:
        return unsure or any(name in upstream.capabilities for upstream in servers)

    def subscribes(upstream: Upstream) -> bool:
        resources = upstream.capabilities.get("resources")
        return isinstance(resources, Mapping) and resources.get("subscribe") is True

    found: dict[str, JsonValue] = {"tools": {"listChanged": True}}
    if some("resources"):
        found["resources"] = {"subscribe": unsure or any(map(subscribes, servers)), "listChanged": True}
    if some("prompts"):
        found["prompts"] = {"listChanged": True}
    if some("logging"):
        found["logging"] = {}
    if some("completions"):
        found["completions"] = {}
    return found


def fence_instructions(instructions: Mapping[str, str]) -> str:
    """The servers' instructions in one text, each in a fence of its own; empty where there are none."""
    parts: list[str] = []
    for server, text in instructions.items():
        if text.strip():
            runs = [len(run) for run in re.findall(r"~+", text)]
            fence = "~" * max(3, *(run + 1 for run in runs), 3)
            title = f"Untrusted text of the server `{server}` about its tools `{server}{SEPARATOR}*`:"
            parts.append(f"{title}\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts)
