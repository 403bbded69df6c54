"""An agent plants a record in one session for a declassifier to find in the next: it is skipped until a person endorses it."""

from __future__ import annotations

from typing import Any

import pytest

from cxi.errors import Code, NotStarted, OutcomeUnknown, Reason
from gate_case import Case, opened


def released(case: Case) -> list[Any]:
    """What a later session's declassifier gives."""
    with case.guard.session(request="Go on.", task="case") as later:
        assert later.call("it.look", {}).kind == "done"
        return [release.value.canonical for release in later.session.standing.releases]


def test_a_file_that_no_call_touched_is_released() -> None:
    with opened("Go on.") as case:
        assert case.call("read", path="src/c.py").kind == "done"  # looking at it leaves no trace
        assert released(case) == ["src/c.py"]


def test_a_path_that_an_admitted_call_wrote_is_skipped_here_and_later_until_a_person_endorses_it() -> None:
    with opened("Go on.") as case:
        assert case.call("write", path="src/c.py", content="planted").kind == "done"
        assert case.call("look").kind == "done"
        assert case.session.standing.releases == ()
        assert released(case) == []
        touched = case.guard.ledger.touched("local")
        assert {key for _, key in touched} == {"src/c.py"}
        for kind, key in touched:
            case.guard.ledger.endorse("local", kind, key, "ana", case.now)
        assert released(case) == ["src/c.py"]


def test_a_path_that_a_refused_call_asked_for_is_skipped_later() -> None:
    with opened("Go on.") as case:
        assert case.call("put", path="src/c.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)
        assert released(case) == []


def test_a_call_that_the_ledger_refused_is_indexed_as_well() -> None:
    with opened("Please put src/a.py and src/c.py.", tasks={"case": {"grants": {"it.put": 1}}}) as case:
        assert case.call("put", path="src/a.py", content="x").kind == "done"
        assert case.call("put", path="src/c.py", content="x").codes == (Code.GRANT_EXHAUSTED,)
        assert released(case) == []


def test_a_path_whose_outcome_is_unknown_is_skipped_here_and_later() -> None:
    with opened("Go on.") as case:
        case.tools.act = lambda tool, arguments: case.act(tool, arguments) if tool == "look" else ""
        case.tools.faults.append(OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer")))
        assert case.call("write", path="src/c.py", content="x").kind == "failed"
        assert case.call("look").kind == "done"
        assert case.session.standing.releases == ()
        assert released(case) == []


@pytest.mark.parametrize("spelling", ["./src/c.py", "docs/../src/c.py"])
def test_spelling_a_path_otherwise_does_not_hide_it(spelling: str) -> None:
    with opened("Go on.") as case:
        assert case.call("write", path=spelling, content="planted").kind == "done"
        case.report = {"files": ["src/c.py", f"{case.root}/src/c.py"]}
        assert released(case) == []


def test_the_target_of_an_atom_is_indexed_beside_the_field() -> None:
    with opened("Move src/a.py to src/e.py.") as case:
        assert case.talk.call("it.move", {"source": "src/a.py", "destination": "src/e.py"}).kind == "done"
        case.report = {"files": ["src/e.py", "src/c.py"]}
        assert released(case) == ["src/c.py"]


def test_the_index_names_who_could_have_influenced_the_call() -> None:
    with opened("Go on.") as case:
        assert case.call("look").kind == "done"
        assert case.call("write", path="src/b.py", content="x").kind == "done"
        assert case.guard.ledger.touched("local")["RepoPath", "src/b.py"] == ("it.look",)


def test_a_call_that_certainly_did_not_happen_leaves_this_session_as_it_was() -> None:
    with opened("Go on.") as case:
        case.tools.act = lambda tool, arguments: case.act(tool, arguments) if tool == "look" else ""
        case.tools.faults.append(NotStarted(Reason(Code.SINK_DOWN, "down")))
        assert case.call("write", path="src/c.py", content="x").kind == "failed"
        assert case.call("look").kind == "done"
        assert len(case.session.standing.releases) == 1
