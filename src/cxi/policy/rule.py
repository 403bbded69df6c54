"""What is one policy, once it is read?

- What a person reads (`@text`, file, line, exact source) and what Cedar reads (`parsed`) are kept side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cedarpy import pst


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy in force.

    Attributes:
        id: Its `@id`.
        effect: What it does where it holds.
        text: Its `@text`, the sentence shown to people and models; empty where it has none.
        issuer, scope, priority, evidence: Its annotations of these names, or empty.
        file, line: Where it stands.
        source: Its exact text.
        actions: The actions of its scope; None means any.
        parsed: Cedar's own reading of it.
    """

    id: str
    effect: Literal["permit", "forbid"]
    text: str
    issuer: str
    scope: str
    priority: str
    evidence: str
    file: str
    line: int
    source: str
    actions: frozenset[str] | None
    parsed: pst.Template
