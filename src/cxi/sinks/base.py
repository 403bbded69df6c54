"""Who carries it out?

- A sink executor takes a `Lease` and nothing else; what it needs of the call is in the lease's manifest.
- A tool that is no sink is reached with a `Clearance`, which only the gate makes.
- An executor raises `NotStarted` where the effect certainly did not begin, `OutcomeUnknown` where it may have; anything else that
  escapes counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cxi.canonical import JsonValue
from cxi.ledger.base import Lease
from cxi.manifest import CanonicalCall


@dataclass(frozen=True, slots=True)
class Clearance:
    """The gate's yes to a call that is no sink.

    Attributes:
        call: The call, read whole.
        id: The call's id in the log.
    """

    call: CanonicalCall
    id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered.

    Attributes:
        result: The MCP `CallToolResult` as JSON.
        failed: Whether the tool itself reports an error (`isError`).
    """

    result: Mapping[str, JsonValue]
    failed: bool


class Executor(Protocol):
    """One server's way to its tools."""

    def execute(self, warrant: Lease | Clearance) -> Answer:
        """Call the tool that the warrant names, with exactly its arguments.

        Raises:
            NotStarted: the effect did not begin.
            OutcomeUnknown: it may have happened.
        """
        ...
