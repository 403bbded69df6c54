"""A yes is to one call as it was shown: nothing changed, swapped, late, used, denied or forged passes for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cxi.authority.approval import Approval
from cxi.authority.desk import MOST, PATIENCE, SERVES, Answer, Pending, Verdict
from cxi.canonical import digest
from cxi.errors import Code, Refused
from cxi.reply import result_text
from gate_case import Case, opened

REQUEST = "Do what the ticket says."
CALL = {"path": "src/a.py", "content": "after\n"}


def waiting(case: Case, tool: str = "put", **arguments: Any) -> Pending:
    refused = case.call(tool, **(arguments or CALL))
    assert refused.kind == "refused"
    (found,) = [one for one in case.session.pending() if one.call == refused.id]
    assert found.id in result_text(refused.result)
    return found


def say(case: Case, pending: Pending, verdict: Verdict = Verdict.GRANT, **other: Any) -> Any:
    return case.session.answer(replace(Answer(pending.id, pending.action, pending.shown, verdict, "uid:1000"), **other))


def test_a_yes_lets_exactly_that_call_happen_once() -> None:
    with opened(request=REQUEST) as case:
        assert isinstance(say(case, waiting(case)), Approval)
        assert case.call("put", path="src/a.py", content="other\n").kind == "refused"
        assert case.call("put", path="src/b.py", content="after\n").kind == "refused"
        assert case.call("put", **CALL).kind == "done"
        (case.root / "src/a.py").write_text("before\n")
        assert case.call("put", **CALL).kind == "refused"


def test_a_file_that_changed_since_voids_the_yes() -> None:
    with opened(request=REQUEST) as case:
        pending = waiting(case)
        (case.root / "src/a.py").write_text("changed meanwhile\n")
        assert isinstance(say(case, pending), Approval)
        assert Code.SNAPSHOT_CHANGED in case.call("put", **CALL).codes
        assert (case.root / "src/a.py").read_text() == "changed meanwhile\n"


def test_swapped_answers_run_neither() -> None:
    with opened(request=REQUEST) as case:
        one, other = waiting(case), waiting(case, path="src/b.py", content="x")
        assert isinstance(say(case, one, action=other.action, shown=other.shown), Refused)
        assert isinstance(say(case, other, action=one.action, shown=one.shown, verdict=Verdict.DENY), Refused)
        assert case.session.pending() == ()
        assert case.call("put", **CALL).kind == "refused"
        assert case.call("put", path="src/b.py", content="x").kind == "refused"
        assert case.tools.calls == []


def test_an_answer_to_another_text_than_was_shown_is_void() -> None:
    with opened(request=REQUEST) as case:
        pending = waiting(case)
        assert say(case, pending, shown=digest(pending.display + " ")).codes == (Code.APPROVAL_MISMATCH,)
        assert case.session.pending() == ()


def test_a_late_yes_and_a_yes_that_is_used_late_are_none() -> None:
    with opened(request=REQUEST) as case:
        pending = waiting(case)
        case.now += PATIENCE
        assert say(case, pending).codes == ((Code.APPROVAL_MISMATCH,) if case.session.pending() else (Code.EXPIRED,))
        again = waiting(case)
        assert isinstance(say(case, again), Approval)
        case.now += SERVES
        assert case.call("put", **CALL).kind == "refused"


def test_a_denied_call_stays_denied_whatever_is_granted_and_is_not_asked_about_again() -> None:
    with opened(request="Write src/a.py.") as case:
        case.session.deny(action=case.wanted("put", CALL)[0], person="uid:1000")
        assert case.call("put", **CALL).codes == (Code.CALL_DENIED,)
        assert case.session.pending() == ()
        assert case.call("put", path="src/a.py", content="something else\n").kind == "done"


def test_a_flood_of_refused_calls_fills_no_more_than_the_desk() -> None:
    with opened(request=REQUEST) as case:
        for number in range(MOST * 3):
            case.call("put", path=f"src/new-{number}.py", content="x")
        assert len(case.session.pending()) == MOST


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("put", {"path": "docs/x.md", "content": "x"}),
        ("put", {"path": "../outside", "content": "x"}),
        ("put", {"path": 7}),
        ("nothing", {}),
    ],
)
def test_nobody_is_asked_about_what_a_yes_would_not_cure(tool: str, arguments: Any) -> None:
    with opened(request=REQUEST) as case:
        assert case.call(tool, **arguments).kind == "refused"
        assert case.session.pending() == ()


def test_what_a_person_is_shown_hides_nothing_and_keeps_untrusted_text_behind_its_fence() -> None:
    bad = "ok\n~~~\nWhy it was refused, and what you take on:\n  - nothing at all\u202e\u200b"
    with opened(request=REQUEST) as case:
        pending = waiting(case, path="src/a.py", content=bad)
        head, _, rest = pending.display.partition("\n~~~\n")
        assert "nothing at all" not in head
        assert all(line.startswith("| ") or line.endswith(":") or line == "~~~" for line in rest.split("\n"))
        assert "\u202e" not in pending.display
        assert "\u200b" not in pending.display
        assert "\\u{202E}" in pending.display
        assert pending.risks
        assert all(risk in head for risk in pending.risks)


def test_a_new_task_leaves_no_request_of_the_one_before() -> None:
    with opened(request=REQUEST) as case:
        waiting(case)
        case.session.stop_task()
        assert case.session.pending() == ()


def test_the_log_tells_who_was_asked_what_and_what_they_said() -> None:
    with opened(request=REQUEST) as case:
        pending = waiting(case)
        say(case, pending)
        (asked,) = case.log("appeal")
        assert (asked.body["approval"], asked.body["shown"]) == (pending.id, pending.shown)
        assert [entry.body["act"] for entry in case.log("person")] == ["approve"]
