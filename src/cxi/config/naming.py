"""Under which name does a client see a tool, and which tool does a name mean?

- A tool is exposed as `server__tool`, of at most 64 of `[A-Za-z0-9_-]`; a character that clients do not take is written `_`.
- Server names have no `_`, so the first `__` is always the border.
- Two tools that would have one exposed name are a start-up error, never a guess.

    >>> expose("files", "write_file")
    'files__write_file'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from cxi.errors import Problem

LONGEST: Final = 64
_UNTAKEN: Final = re.compile(r"[^A-Za-z0-9_-]")


def expose(server: str, tool: str) -> str:
    """The exposed name of a tool; it may be too long, which `route` refuses."""
    return f"{server}__{_UNTAKEN.sub('_', tool)}"


def route(tools: Iterable[tuple[str, str]]) -> tuple[Mapping[str, tuple[str, str]], tuple[Problem, ...]]:
    """The routing table.

    Args:
        tools: (server, tool) of all tools.

    Returns:
        Exposed name to (server, tool), of all that can be exposed, and a problem for each that cannot: its name is too long, or
        another tool has it. Of two that collide, neither is in the table.
    """
    claims: dict[str, list[tuple[str, str]]] = {}
    for server, tool in dict.fromkeys(tools):
        claims.setdefault(expose(server, tool), []).append((server, tool))
    table: dict[str, tuple[str, str]] = {}
    problems: list[Problem] = []
    for name, claimants in claims.items():
        server, tool = claimants[0]
        if len(claimants) > 1:
            shown = " and ".join(f"`{one}.{other}`" for one, other in claimants)
            problems.append(Problem(f"server `{server}`", 0, f"{shown} would both be exposed as `{name}`", "leave one out"))
        elif len(name) > LONGEST:
            detail = f"`{server}.{tool}` would be exposed as `{name}`, which is longer than {LONGEST}"
            problems.append(Problem(f"server `{server}`", 0, detail, "give the server a shorter name"))
        else:
            table[name] = (server, tool)
    return MappingProxyType(table), tuple(problems)
