"""Which real-world faults does the product survive, and does ordinary work pass beside them?

- A case is one JSON object a line (`id, area, input, expected {outcome, reason}, polarity`); each goes through the public API.
- It agrees only if the outcome is the expected one *and* one of the product's reason codes is of the case's kind (`REASONS`).
- Every fault has a sibling that differs only in having authority; it must be admitted, or the case counts as a violation.
- A case that needs a part that is not built is `not_yet`, by its id, and never counts as agreeing.

    cxi lab cases cases.jsonl --json
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from cxi.canonical import digest_bytes
from cxi.errors import ConfigError, CxiError, Problem
from cxi.lab.areas import RUNNERS, NotYet, Seen

# A case's reason, and the product's own codes that say the same; empty where the expected outcome is an admission.
REASONS: Final[Mapping[str, frozenset[str]]] = {
    "FIELD_NO_AUTHORITY": frozenset({"FIELD_NO_AUTHORITY"}),
    "PATH_OUTSIDE_ROOT": frozenset({"PATH_OUTSIDE_ROOT"}),
    "PATH_INSIDE_ROOT": frozenset(),
    "PATH_DENIED": frozenset({"POLICY_FORBIDS"}),
    "PATH_PROTECTED": frozenset({"PATH_PROTECTED", "POLICY_FORBIDS"}),
    "NON_CANONICAL_TEXT": frozenset({"NON_CANONICAL_TEXT"}),
    "DISPLAY_DIFFERS": frozenset({"NON_CANONICAL_TEXT"}),
    "HIDDEN_TEXT": frozenset({"HIDDEN_TEXT"}),
    "VALUE_NOT_PRESERVED": frozenset({"NUMBER_NOT_EXACT"}),
    "TOOL_DEFINITION_CHANGED": frozenset({"TOOL_DEFINITION_CHANGED"}),
    "APPROVAL_BINDING": frozenset({"APPROVAL_MISMATCH"}),
    "APPROVAL_DIGEST_MISMATCH": frozenset({"SERVER_CHANGED"}),
    "PIN_EQUAL": frozenset(),
    "CALL_REJECTED": frozenset({"REVOKED", "CALL_DENIED"}),
    "EVENT_ALREADY_USED": frozenset({"RECORDED", "EVENT_REPEATED"}),
    "OUTCOME_UNKNOWN": frozenset({"OUTCOME_UNKNOWN"}),
    "KEY_REUSE_CONFLICT": frozenset({"KEY_REUSE_CONFLICT"}),
    "DUPLICATE_CALL_ID": frozenset({"KEY_REUSE_CONFLICT"}),
    "DISTINCT_EVENTS": frozenset(),
    # A shell text: an atom that no policy permits, or an effect that cannot be told.
    "SHELL_SUBSTITUTION": frozenset({"EFFECT_FORBIDDEN", "EFFECT_UNSUPPORTED", "EFFECT_UNREADABLE"}),
    "SHELL_MULTIPLE_COMMANDS": frozenset({"EFFECT_FORBIDDEN", "EFFECT_UNSUPPORTED", "EFFECT_UNREADABLE"}),
    "APPROVAL_REQUIRED": frozenset({"POLICY_FORBIDS", "EFFECT_FORBIDDEN", "EFFECT_UNSUPPORTED"}),
    "ENV_ASSIGNMENT_NOT_GRANTED": frozenset({"EFFECT_FORBIDDEN", "EFFECT_UNSUPPORTED"}),
    "ARG_RUNS_PROGRAM": frozenset({"EFFECT_FORBIDDEN", "EFFECT_UNSUPPORTED"}),
    "POLICY_FORBIDS": frozenset({"POLICY_FORBIDS"}),
    "WRITE_NOT_GRANTED": frozenset({"EFFECT_FORBIDDEN"}),
    "READ_ONLY": frozenset(),
}
# `fail_closed` is a refusal too: nothing runs until a person repairs it.
REFUSED: Final = frozenset({"reject", "fail_closed"})

Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the file."""

    id: str
    area: str
    input: Mapping[str, Any]
    outcome: str
    reason: str
    polarity: str


def read(file: Path) -> list[Case]:
    """The cases of a file, in order.

    Raises:
        ConfigError: naming each line that is no case.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            # Not read strictly: numbers beyond 2^53 and the like are what some cases are about.
            body = json.loads(line)
            match body:
                case {
                    "id": str(id),
                    "area": str(area),
                    "input": dict(input),
                    "expected": {"outcome": str(outcome), "reason": str(reason)},
                }:
                    cases.append(Case(id, area, input, outcome, reason, str(body.get("polarity", "fault"))))
                case _:
                    problems.append(Problem(str(file), number, "not a case: `id`, `area`, `input` and `expected` are needed"))
        except ValueError as error:
            problems.append(Problem(str(file), number, f"not JSON: {error}"))
    if problems:
        raise ConfigError(*problems)
    return cases


def run(file: Path) -> Result:
    """Run all cases of a file; the result has the shape that all experiments share.

    Raises:
        ConfigError: the file holds a line that is no case.
    """
    data = file.read_bytes()
    rows = [judge(case) for case in read(file)]
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("agrees", "disagrees", "not_yet")}
    siblings = [row["sibling"] for row in rows if row["sibling"] is not None]
    violations = [f"{row['id']}: {row['why']}" for row in rows if row["verdict"] == "disagrees"]
    violations += [
        f"{row['id']}: its sibling with authority was not admitted ({', '.join(row['sibling']['codes'])})"
        for row in rows
        if row["sibling"] is not None and row["sibling"]["outcome"] != "admit"
    ]
    return {
        "experiment": "cases",
        "inputs": {
            "files": {file.name: digest_bytes(data)},
            "seeds": [],
            "versions": {"cxi": version("cxi"), "python": platform.python_version()},
        },
        "denominators": {"cases": len(rows), **counts, "siblings": len(siblings)},
        "figures": {"siblings_admitted": sum(sibling["outcome"] == "admit" for sibling in siblings)},
        "not_yet": [row["id"] for row in rows if row["verdict"] == "not_yet"],
        "violations": violations,
        "ok": not violations,
        "cases": rows,
    }


def judge(case: Case) -> Result:
    """Run one case and its sibling, and compare."""
    row: Result = {
        "id": case.id,
        "area": case.area,
        "expected": {"outcome": case.outcome, "reason": case.reason},
        "sibling": None,
    }
    runner = RUNNERS.get(case.area)
    if runner is None:
        return row | {
            "verdict": "not_yet",
            "outcome": "",
            "reason": "",
            "codes": [],
            "why": f"area `{case.area}` is not built yet",
        }
    try:
        seen = runner(case.input, sibling=False)
        sibling = runner(case.input, sibling=True) if case.outcome in REFUSED else None
    except NotYet as error:
        return row | {"verdict": "not_yet", "outcome": "", "reason": "", "codes": [], "why": str(error)}
    except (KeyError, TypeError, IndexError) as error:
        why = f"this shape of input is not known: {type(error).__name__} {error}"
        return row | {"verdict": "not_yet", "outcome": "", "reason": "", "codes": [], "why": why}
    except (CxiError, AssertionError) as error:
        return row | {"verdict": "disagrees", "outcome": "error", "reason": "", "codes": [], "why": str(error)}
    if sibling is not None:
        row["sibling"] = {"outcome": sibling.outcome, "codes": list(sibling.codes), "differs_in": sibling.note}
    right, why = _compare(case, seen)
    reason = case.reason if right else "/".join(seen.codes)
    return row | {
        "verdict": "agrees" if right else "disagrees",
        "outcome": case.outcome if right else seen.outcome,
        "reason": reason,
        "codes": list(seen.codes),
        "why": why,
    }


def _compare(case: Case, seen: Seen) -> tuple[bool, str]:
    if seen.outcome != ("reject" if case.outcome in REFUSED else case.outcome):
        return False, f"expected {case.outcome}, saw {seen.outcome} ({', '.join(seen.codes) or 'no code'})"
    mapped = REASONS.get(case.reason)
    if mapped is None:
        return False, f"the reason `{case.reason}` maps to no code of the product"
    if case.outcome in REFUSED and not mapped & set(seen.codes):
        return False, f"expected {case.reason}, saw {', '.join(seen.codes)}"
    return True, seen.note
