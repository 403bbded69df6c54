"""What is wrong with a log, a checkpoint or a receipt?

- A verifier answers with a value that names every finding; it never raises for what it was given to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What was found. Stable, for programs."""

    REMOVED = "removed"  # entries are missing between others, or before the first
    INSERTED = "inserted"  # entries stand between two that follow each other
    REORDERED = "reordered"  # an entry stands after a later one
    REPEATED = "repeated"  # two entries claim one place
    ALTERED = "altered"  # an entry does not have the hash that what follows it, or a checkpoint, names
    TRUNCATED = "truncated"  # a checkpoint covers entries beyond the last
    FORGED = "forged"  # a signature does not verify
    UNKNOWN_KEY = "unknown-key"  # signed by none of the given keys, nor by one that they introduced
    RETIRED_KEY = "retired-key"  # signed by a key for what came after the next one was introduced
    FORKED = "forked"  # two checkpoints are of logs of which neither is the other's beginning
    MALFORMED = "malformed"  # not what it claims to be, in form
    MISMATCHED = "mismatched"  # the parts of a receipt do not belong together
    UNSIGNED = "unsigned"  # entries, and no checkpoint at all beside them
    DISAGREES = "disagrees"  # the ledger's rows are not what the log tells
    NOT_ENFORCED = "not-enforced"  # of shadow mode: no admission


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: What.
        seq: The entry that it is about; for a checkpoint the size that it claims; 0 where there is none.
        detail: One lowercase line.
    """

    kind: FindingKind
    seq: int
    detail: str


@dataclass(frozen=True, slots=True)
class Broken:
    """It does not verify.

    Attributes:
        findings: At least one, in the order of the entries.
    """

    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        if not self.findings:
            raise ValueError("what is broken has at least one finding")

    @classmethod
    def of(cls, kind: FindingKind, seq: int, detail: str) -> Broken:
        """Broken for one reason."""
        return cls((Finding(kind, seq, detail),))
