"""One turn after another: what is launched, what is answered without launching, what is kept, and what ends."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi import session as room
from cxi.canonical import digest
from cxi.errors import Code, LedgerError, NotStarted, OutcomeUnknown, Reason, Refused
from cxi.ledger.base import State
from cxi.provenance import RequestChannel
from cxi.reply import render_refusal, result_text
from cxi.session import Answered, Ready
from cxi.sinks.base import Answer, Clearance
from gate_case import NAMES, Case, guarded, opened, start

LOST = OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer in time"))
DOWN = NotStarted(Reason(Code.SINK_DOWN, "not running"))


def failing(case: Case, *, after: bool) -> None:
    """The next call reports an error, after it acted or without acting."""
    execute = case.tools.execute

    class Failing:
        def execute(self, warrant: Any) -> Answer:
            if after:
                execute(warrant)
            case.talk._executors["it"] = case.tools  # type: ignore[index]
            return Answer({"content": [{"type": "text", "text": "no"}], "isError": True}, failed=True)

    case.talk._executors["it"] = Failing()  # type: ignore[index]


# --- a turn that is launched


def test_what_is_admitted_reaches_the_sink_once_written_anew_and_leaves_a_receipt() -> None:
    with opened() as case:
        outcome = case.call("put", path="./src/../src/a.py", content="after\n")
        assert (outcome.kind, outcome.codes) == ("done", ())
        sent = {"base": str(case.root), "content": "after\n", "encoding": "utf-8", "path": f"{case.root}/src/a.py"}
        assert case.tools.calls == [("put", sent)]
        assert (case.root / "src/a.py").read_text() == "after\n"
        assert outcome.receipt is not None
        assert (outcome.receipt.state, outcome.receipt.assurance, outcome.receipt.carriage) == (
            State.DONE,
            "checked",
            "not claimed",
        )
        admission, settlement = case.log("admission", "settlement")
        assert admission.body["manifest"] == settlement.body["manifest"] == outcome.receipt.manifest
        assert (admission.body["grant"], admission.body["sequence"], admission.body["limit"]) == ("case/it.put", 1, 20)


def test_a_read_is_launched_with_a_clearance_and_leaves_no_receipt() -> None:
    with opened(request="") as case:
        prepared = case.session.propose("it.read", {"path": "docs/d.md"})
        assert isinstance(prepared, Ready)
        assert isinstance(prepared.warrant, Clearance)
        finished = case.session.finish(prepared, case.tools.execute(prepared.warrant))
        assert (finished.receipt, finished.refused) == (None, None)
        assert len(case.log("read")) == 1


# --- answered without a launch


def test_a_refusal_is_a_tool_result_that_names_codes_and_helps_and_nothing_was_called() -> None:
    with opened() as case:
        outcome = case.call("write", path="docs/x.md", content="x")
        assert outcome.kind == "refused"
        assert outcome.result["isError"] is True
        codes = [Code.FIELD_NO_AUTHORITY, Code.EFFECT_FORBIDDEN]
        assert outcome.result["_meta"] == {"cxi.dev/refusal": {"call": outcome.id, "codes": codes}}
        text = result_text(outcome.result)
        assert all(word in text for word in (*codes, "needs:", "nothing was changed", f"cxi explain {outcome.id}"))
        assert case.tools.calls == []
        assert [entry.body["reasons"] for entry in case.log("refusal")] == [codes]


def test_a_no_op_is_answered_without_calling_the_sink_and_spends_nothing() -> None:
    with opened() as case:
        for _ in range(30):  # more than the grant gives
            assert case.call("write", path="src/a.py", content="before\n").kind == "no-op"
        assert case.tools.calls == []
        assert case.guard.ledger.drawn(case.session.id, "case/it.write", 0.0) == 0
        assert case.call("write", path="src/a.py", content="x").kind == "done"


def test_the_same_call_under_the_same_key_gets_the_recorded_answer_and_no_second_effect() -> None:
    with opened() as case:
        first = case.call("write", "k1", path="src/a.py", content="x")
        (case.root / "src/a.py").write_text("since\n")
        again = case.call("write", "k1", path="src/a.py", content="x")
        assert (first.kind, again.kind, again.result) == ("done", "recorded", first.result)
        assert len(case.tools.calls) == 1
        assert (case.root / "src/a.py").read_text() == "since\n"
        assert [entry.body["of"] for entry in case.log("recorded")] == [first.id]
        assert case.call("write", "k2", path="src/a.py", content="x").kind == "done"
        assert case.call("write", path="src/a.py", content="y").kind == "done"


def test_a_contract_that_refuses_repeats_refuses_the_same_key() -> None:
    with opened() as case:
        assert case.call("put", "k1", path="src/a.py", content="x").kind == "done"
        (case.root / "src/a.py").write_text("since\n")
        assert case.call("put", "k1", path="src/a.py", content="x").codes == (Code.EVENT_REPEATED,)
        assert len(case.tools.calls) == 1


@pytest.mark.parametrize("second", [("write", {"content": "y"}), ("put", {}), ("read", {})])
@pytest.mark.parametrize("first", [("write", {}), ("read", {}), ("write", {"content": "before\n"})])
def test_a_key_names_one_action_whatever_the_calls_are(first: Any, second: Any) -> None:
    def arguments(tool: str, more: Any) -> Any:
        return {"path": "src/a.py", **({} if tool == "read" else {"content": "x"}), **more}

    with opened() as case:
        assert case.call(first[0], "k", **arguments(*first)).kind in ("done", "no-op")
        before = len(case.tools.calls)
        outcome = case.call(second[0], "k", **arguments(*second))
        if first == second == ("read", {}):
            assert outcome.kind == "done"
        else:
            assert outcome.codes == (Code.KEY_REUSE_CONFLICT,)
            assert len(case.tools.calls) == before


def test_a_key_that_stood_for_a_no_op_serves_the_same_action_later() -> None:
    with opened() as case:
        assert case.call("write", "k", path="src/a.py", content="before\n").kind == "no-op"
        (case.root / "src/a.py").write_text("since\n")
        assert case.call("write", "k", path="src/a.py", content="before\n").kind == "done"


# --- between the draw and the sink


def test_what_changes_between_draw_and_sink_is_refused_and_the_draw_is_given_back() -> None:
    with opened(tasks={"case": {"grants": {"it.write": 1}}}) as case:
        case.meanwhile = lambda: (case.root / "src/a.py").write_text("meanwhile\n")
        outcome = case.call("write", path="src/a.py", content="x")
        assert (outcome.kind, outcome.codes) == ("refused", (Code.SNAPSHOT_CHANGED,))
        assert case.tools.calls == []
        assert (case.root / "src/a.py").read_text() == "meanwhile\n"
        assert [entry.body["state"] for entry in case.log("settlement")] == [State.FAILED]
        assert case.call("write", path="src/a.py", content="x").kind == "done"  # 1 of 1
        assert case.call("write", path="src/a.py", content="y").codes == (Code.EVENT_REPEATED,)


def test_a_release_whose_source_changed_between_draw_and_sink_is_refused() -> None:
    with opened("Please go on.") as case:
        assert case.call("look").kind == "done"

        def replace_by_link() -> None:
            (case.root / "src/c.py").unlink()
            (case.root / "src/c.py").symlink_to(case.root / "src/b.py")

        case.meanwhile = replace_by_link
        assert case.call("put", path="src/c.py", content="x").codes == (Code.SNAPSHOT_CHANGED,)
        assert (case.root / "src/b.py").read_text() == "before\n"


def test_openings_that_cannot_be_kept_launch_nothing_and_give_the_draw_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tasks={"case": {"grants": {"it.write": 1}}}) as case:
        openings = case.session._wiring.openings
        put, faults = openings.put, [LedgerError("the disk is full")]

        def failing(*arguments: Any, **named: Any) -> None:
            if faults and str(case.log()[-1].kind) == "admission":
                raise faults.pop()
            put(*arguments, **named)

        monkeypatch.setattr(openings, "put", failing)
        assert case.call("write", path="src/a.py", content="x").codes == (Code.LEDGER_UNAVAILABLE,)
        assert case.tools.calls == []
        assert case.call("write", path="src/a.py", content="x").kind == "done"


# --- at and after the sink


def test_a_sink_that_does_something_else_is_told_and_its_event_counts() -> None:
    with opened() as case:
        case.tools.act = lambda _tool, arguments: Path(arguments["path"]).write_text("other\n") and "done"
        outcome = case.call("write", path="src/a.py", content="x")
        assert (outcome.kind, outcome.codes) == ("failed", (Code.EFFECT_DIFFERS,))
        assert outcome.result["isError"] is True
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.DONE
        assert case.log("settlement")[0].body["differs"] == 1


def test_a_sink_that_fails_with_nothing_changed_gives_the_draw_back_and_its_error_is_relayed() -> None:
    with opened(tasks={"case": {"grants": {"it.write": 1}}}) as case:
        failing(case, after=False)
        outcome = case.call("write", path="src/a.py", content="x")
        assert (outcome.kind, outcome.result["isError"]) == ("done", True)
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.FAILED
        assert case.call("write", path="src/a.py", content="x").kind == "done"


def test_a_sink_that_fails_after_it_acted_has_acted() -> None:
    with opened(tasks={"case": {"grants": {"it.write": 1}}}) as case:
        failing(case, after=True)
        outcome = case.call("write", path="src/a.py", content="x")
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.DONE
        assert case.call("write", path="src/a.py", content="y").codes == (Code.EVENT_REPEATED,)


@pytest.mark.parametrize("tool", ["note", "stamp"])
def test_a_failure_of_what_cannot_be_seen_still_counts(tool: str) -> None:
    arguments = {"title": "hello"} if tool == "note" else {"path": "src/a.py"}
    with opened("Add the note `hello` on src/a.py.", tasks={"case": {"grants": {f"it.{tool}": 1}}}) as case:
        failing(case, after=False)
        outcome = case.call(tool, **arguments)
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.DONE
        assert case.call(tool, **arguments).codes == (Code.EVENT_REPEATED,)


def test_what_certainly_did_not_start_may_be_proposed_again() -> None:
    with opened(tasks={"case": {"grants": {"it.write": 1}}}) as case:
        case.tools.act = lambda _tool, _arguments: ""
        case.tools.faults.append(DOWN)
        outcome = case.call("write", "k", path="src/a.py", content="x")
        assert (outcome.kind, outcome.codes) == ("failed", (Code.SINK_DOWN,))
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.FAILED
        case.tools.act = case.act
        assert case.call("write", "k", path="src/a.py", content="x").kind == "done"


@pytest.mark.parametrize("tool", ["note", "stamp"])
def test_an_unknown_outcome_blocks_its_event_and_no_other_until_a_person_says_how_it_ended(tool: str) -> None:
    key, other = ("title", "bye") if tool == "note" else ("path", "src/b.py")
    mine = "hello" if tool == "note" else "src/a.py"
    with opened("Add the notes `hello` and `bye` on src/a.py and src/b.py.") as case:
        case.tools.faults.append(LOST)
        lost = case.call(tool, **{key: mine})
        assert (lost.kind, lost.codes) == ("failed", (Code.SINK_TIMEOUT,))
        assert lost.receipt is not None
        assert lost.receipt.state is State.OUTCOME_UNKNOWN
        for _ in range(2):
            assert case.call(tool, **{key: mine}).codes == (Code.OUTCOME_UNKNOWN,)
        assert case.call(tool, **{key: other}).kind == "done"
        case.guard.ledger.release(lost.id, "ana", "looked", State.FAILED, case.now)
        assert case.call(tool, **{key: mine}).kind == "done"


def test_an_unknown_outcome_whose_effect_can_be_seen_is_reconciled() -> None:
    with opened() as case:
        case.tools.faults.append(LOST)  # raised after the act
        outcome = case.call("write", path="src/a.py", content="x")
        assert outcome.codes == (Code.SINK_TIMEOUT,)
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.DONE
        assert case.call("write", path="src/a.py", content="y").kind == "done"


def test_an_unknown_outcome_whose_effect_is_not_there_stays_unknown() -> None:
    with opened() as case:
        case.tools.act = lambda _tool, _arguments: ""
        case.tools.faults.append(LOST)
        outcome = case.call("write", path="src/a.py", content="x")
        assert outcome.receipt is not None
        assert outcome.receipt.state is State.OUTCOME_UNKNOWN
        assert case.call("write", path="src/a.py", content="x").codes == (Code.OUTCOME_UNKNOWN,)


def test_an_executor_that_raises_anything_else_leaves_its_outcome_unknown() -> None:
    with opened() as case:
        case.tools.act = lambda _tool, _arguments: str(1 // 0)
        outcome = case.call("write", path="src/a.py", content="x")
        assert (outcome.kind, outcome.codes) == ("failed", (Code.OUTCOME_UNKNOWN,))
        assert case.call("write", path="src/a.py", content="x").codes == (Code.OUTCOME_UNKNOWN,)
        assert case.call("read", path="src/a.py").codes == (Code.OUTCOME_UNKNOWN,)  # a read blocks nothing
        case.tools.act = case.act
        assert case.call("read", path="src/a.py").kind == "done"


def test_a_lease_is_settled_once() -> None:
    with opened() as case:
        prepared = case.session.propose("it.write", {"path": "src/a.py", "content": "x"})
        assert isinstance(prepared, Ready)
        answer = case.tools.execute(prepared.warrant)
        assert case.session.finish(prepared, answer).refused is None
        again = case.session.finish(prepared, answer)
        assert again.refused is not None
        assert again.receipt is None


# --- the ledger


def test_a_ledger_that_cannot_be_written_refuses_and_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as case:
        ledger = case.guard.ledger

        def full(*_arguments: Any, **_named: Any) -> None:
            raise LedgerError("database or disk is full")

        for name in ("consume", "drawn"):
            with monkeypatch.context() as patch:
                patch.setattr(ledger, name, full)
                outcome = case.call("write", path="src/a.py", content="x")
                assert outcome.kind == "refused"
                assert Code.LEDGER_UNAVAILABLE in outcome.codes
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "append", full)
            assert Code.LEDGER_UNAVAILABLE in case.call("read", path="src/a.py").codes
            assert case.call("write", path="docs/x", content="x").codes == (
                Code.FIELD_NO_AUTHORITY,
                Code.EFFECT_FORBIDDEN,
                Code.LEDGER_UNAVAILABLE,
            )
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "recorded", full)
            assert Code.LEDGER_UNAVAILABLE in case.call("write", "k", path="src/a.py", content="x").codes
        assert case.tools.calls == []
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "settle", full)
            outcome = case.call("write", path="src/a.py", content="x")
            assert (outcome.kind, outcome.codes, outcome.receipt) == ("failed", (Code.LEDGER_UNAVAILABLE,), None)
        # its outcome was never written, so an equal event waits
        assert case.call("write", path="src/a.py", content="y").codes == (Code.IN_FLIGHT,)


# --- the task


def test_a_task_gives_what_it_grants_and_takes_it_away_when_it_stops() -> None:
    with opened(request="") as case:
        put = {"path": "src/a.py", "content": "x"}
        assert case.call("put", **put).codes == (Code.FIELD_NO_AUTHORITY, Code.TASK_NONE)
        assert start(case.session, "Please fix src/a.py.") == "case"
        assert case.call("look").kind == "done"
        assert case.session.standing.releases
        assert case.call("put", **put).kind == "done"
        case.session.stop_task()
        assert case.call("put", path="src/a.py", content="y").codes == (Code.FIELD_NO_AUTHORITY, Code.TASK_NONE)
        assert (case.session.standing.releases, case.session.standing.evidence) == ((), ())
        case.session.stop_task()  # a second time does nothing
        assert [entry.body["act"] for entry in case.log("task")] == ["start", "stop"]


def test_a_new_task_ends_the_one_before_with_its_releases_and_approvals() -> None:
    with opened("Please fix src/a.py.") as case:
        assert case.call("look").kind == "done"
        case.session.approve(case.approval("note", {"title": "hello"}))
        start(case.session, "Please fix src/b.py.", "case")
        standing = case.session.standing
        assert (standing.releases, standing.approvals, standing.evidence) == ((), (), ())
        assert case.call("put", path="src/a.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("put", path="src/c.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("put", path="src/b.py", content="x").kind == "done"


def test_a_later_message_is_part_of_the_open_task() -> None:
    with opened("Please fix src/a.py.") as case:
        assert case.call("put", path="src/b.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)
        added = case.session.add_request("Please fix src/b.py as well.", channel=RequestChannel.HOST_API, credential="host")
        assert added is None
        assert case.call("put", path="src/b.py", content="x").kind == "done"
        case.session.stop_task()
        refused = case.session.add_request("Please fix src/b.py as well.", channel=RequestChannel.HOST_API, credential="host")
        assert refused is not None
        assert refused.codes == (Code.TASK_NONE,)


@pytest.mark.parametrize(
    ("words", "task", "credential", "code"),
    [
        ("go", "nothing", "host", Code.TASK_NONE),
        ("", "case", "host", Code.TASK_NONE),
        (" \n", "case", "host", Code.TASK_NONE),
        ("go", "case", "", Code.SESSION_UNKNOWN),
    ],
)
def test_what_opens_no_task(words: str, task: str, credential: str, code: Code) -> None:
    with opened(request="") as case:
        answer: Any = case.session.start_task(words, task, channel=RequestChannel.HOST_API, credential=credential)
        assert answer.codes == (code,)
        assert case.session.standing.request is None


def test_a_task_without_a_name_grants_nothing_whatever_tasks_are_called() -> None:
    tasks = {"case": {"grants": {"it.note": 1}}, "request": {"grants": {"it.put": 20}}}
    with opened(request="", tasks=tasks) as case:
        start(case.session, "Please fix src/a.py.", None)
        assert case.call("put", path="src/a.py", content="x").codes == (Code.GRANT_MISSING,)
        start(case.session, "Please fix src/a.py.", "request")
        assert case.call("put", path="src/a.py", content="x").kind == "done"


def test_a_task_ends_in_its_time() -> None:
    with opened("Please fix src/a.py.", "timed") as case:
        assert case.call("put", path="src/a.py", content="x").kind == "done"
        case.now += 599
        assert case.call("put", path="src/a.py", content="y").kind == "done"
        case.now += 1
        assert case.call("put", path="src/a.py", content="z").codes == (Code.FIELD_NO_AUTHORITY, Code.EXPIRED)
        assert case.session.standing.request is None
        assert [entry.body["act"] for entry in case.log("task")] == ["start", "expire"]
        start(case.session, "Please fix src/a.py.", "timed")
        assert case.call("put", path="src/a.py", content="z").kind == "done"


def test_a_grant_counts_over_its_window() -> None:
    tasks = {"case": {"grants": {"it.drop": {"count": 1, "window": "1m"}}}}
    with opened("Please drop src/a.py and src/b.py.", tasks=tasks) as case:
        assert case.call("drop", files=["src/a.py"]).kind == "done"
        assert case.call("drop", files=["src/b.py"]).codes == (Code.GRANT_EXHAUSTED,)
        case.now += 61
        assert case.call("drop", files=["src/b.py"]).kind == "done"


def test_a_grant_holds_for_the_values_of_its_where() -> None:
    tasks = {"case": {"grants": {"it.put": {"count": 5, "where": {"path": ["./src/a.py"]}}}}}
    with opened("Please fix src/a.py and src/b.py.", tasks=tasks) as case:
        assert case.call("put", path="src/a.py", content="x").kind == "done"
        assert case.call("put", path="src/b.py", content="x").codes == (Code.GRANT_MISSING,)


# --- releases and state


def test_a_release_opens_its_one_field_until_its_time() -> None:
    with opened("Please go on.") as case:
        put = {"path": "src/c.py", "content": "x"}
        assert case.call("put", **put).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("look").kind == "done"
        assert case.call("put", path="src/z.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)  # W beside it
        assert case.call("drop", files=["src/c.py"]).codes == (Code.FIELD_NO_AUTHORITY,)
        case.now += 3599
        assert case.call("put", **put).kind == "done"
        case.now += 1
        assert case.call("put", path="src/c.py", content="y").codes == (Code.RELEASE_VOID,)


def test_a_release_is_void_under_another_epoch_and_another_task() -> None:
    with opened("Please go on.") as case:
        assert case.call("look").kind == "done"
        standing = case.session.standing
        put = {"path": "src/c.py", "content": "x"}
        (release,) = standing.releases
        for changed, code in (
            (replace(release, policy_epoch=(standing.epoch[0] + 1, standing.epoch[1])), Code.RELEASE_VOID),
            (replace(release, policy_epoch=(standing.epoch[0], digest("b"))), Code.RELEASE_VOID),
            (replace(release, task="other"), Code.RELEASE_VOID),
            (replace(release, destination="it.write.path"), Code.FIELD_NO_AUTHORITY),
        ):
            answer: Any = case.decide("put", put, standing=replace(standing, releases=(changed,)))
            assert answer.codes == (code,)


def test_a_release_is_void_when_what_its_validators_read_changed() -> None:
    with opened("Please go on.") as case:
        assert case.call("look").kind == "done"
        (case.root / "src/c.py").unlink()
        assert case.call("put", path="src/c.py", content="x").codes == (Code.RELEASE_VOID,)


def test_reading_again_renews_releases_and_keeps_earlier_candidates() -> None:
    with opened("Please go on.") as case:
        for _ in range(5):
            assert case.call("look").kind == "done"
        assert [release.value.canonical for release in case.session.standing.releases] == ["src/c.py"]
        case.report = {"files": ["src/b.py", "src/c.py"]}
        assert case.call("look").kind == "done"
        assert {release.value.canonical for release in case.session.standing.releases} == {"src/b.py", "src/c.py"}


def test_a_flood_of_releases_holds_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_RELEASES", 2)
    with opened("Please go on.") as case:
        assert case.call("look").kind == "done"
        assert len(case.session.standing.releases) == 1
        case.report = {"files": ["src/a.py", "src/b.py", "src/c.py"]}
        assert case.call("look").kind == "done"
        assert case.session.standing.releases == ()
        assert case.call("put", path="src/c.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)


def test_a_failed_read_releases_nothing() -> None:
    with opened("Please go on.") as case:
        failing(case, after=False)
        assert case.call("look").kind == "done"
        assert case.session.standing.releases == ()


def test_what_a_trusted_field_named_and_a_call_wrote_is_trusted_state() -> None:
    with opened("Please fix src/a.py.") as case:
        assert case.call("look").kind == "done"
        assert case.call("drop", files=["src/c.py"]).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("put", path="src/c.py", content="x").kind == "done"  # by release
        assert case.call("write", path="src/b.py", content="x").kind == "done"  # by choice: W steered it
        assert case.call("drop", files=["src/b.py"]).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("drop", files=["src/c.py"]).kind == "done"


# --- approvals


def test_an_approval_serves_exactly_one_call() -> None:
    with opened("Please go on.") as case:
        put = {"path": "src/c.py", "content": "x"}
        case.session.approve(case.approval("put", put))
        assert [entry.body["act"] for entry in case.log("person")] == ["approve"]
        assert case.call("put", **{**put, "content": "y"}).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("put", **put).kind == "done"
        (case.root / "src/c.py").write_text("before\n")
        assert case.call("put", **put).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.session.standing.approvals == ()


def test_an_approval_that_was_spent_cannot_be_added_again() -> None:
    with opened("Please go on.") as case:
        put = {"path": "src/c.py", "content": "x"}
        approval = case.approval("put", put)
        case.session.approve(approval)
        assert case.call("put", **put).kind == "done"
        (case.root / "src/c.py").write_text("before\n")
        case.session.approve(approval)
        assert case.call("put", **put).codes == (Code.EVENT_REPEATED,)
        assert len(case.tools.calls) == 1


def test_the_effect_that_a_person_approved_is_the_one_that_happens() -> None:
    with opened("Please go on.") as case:
        put = {"path": "src/c.py", "content": "x"}
        case.session.approve(case.approval("put", put))
        (case.root / "src/c.py").write_text("since\n")
        assert case.call("put", **put).codes == (Code.FIELD_NO_AUTHORITY, Code.SNAPSHOT_CHANGED)


def test_an_approval_of_a_read_serves_once() -> None:
    contract = {
        "peek": {
            "effect": ["fs.read(path)"],
            "fields": {"path": {"role": "protected", "type": "RepoPath", "from": ["approval"]}},
        }
    }
    calls = '@id("peek") @text("x") permit (principal, action == Action::"tool:it.peek", resource);'
    with opened("Go on.", contracts=contract, policies=calls, names=(*NAMES, "peek")) as case:
        case.session.approve(case.approval("peek", {"path": "docs/d.md"}))
        assert case.call("peek", path="docs/d.md").kind == "done"
        assert case.call("peek", path="docs/d.md").codes == (Code.FIELD_NO_AUTHORITY,)


# --- ends


def test_a_closed_session_decides_nothing_and_can_be_closed_twice() -> None:
    with opened() as case:
        case.session.close()
        case.session.close()
        assert case.call("read", path="src/a.py").codes == (Code.SESSION_UNKNOWN,)
        assert [entry.body["act"] for entry in case.log("session")] == ["open", "close"]


def test_a_session_that_was_ended_is_closed_in_the_ledger_as_well() -> None:
    with opened() as case:
        case.session.end(Code.REVOKED, "a person ended it")
        assert case.call("read", path="src/a.py").codes == (Code.REVOKED,)
        case.session.close()
        assert [entry.body["act"] for entry in case.log("session")] == ["open", "close"]


def test_a_call_after_the_guard_was_closed_is_refused() -> None:
    with opened() as case:
        with guarded(case) as second:
            session = second.open_session()
            start(session, "Please fix src/a.py.")
        prepared = session.propose("it.put", {"path": "src/a.py", "content": "x"})
        assert isinstance(prepared, Answered)
        assert prepared.refused is not None
        assert Code.LEDGER_UNAVAILABLE in prepared.refused.codes


def test_equal_calls_at_once_have_one_effect() -> None:
    with opened(tasks={"case": {"grants": {"it.note": 1}}}, request="Add the note `hello`.") as case:
        outcomes: list[Any] = []
        threads = [threading.Thread(target=lambda: outcomes.append(case.call("note", title="hello"))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcome.kind for outcome in outcomes) == ["done", *["refused"] * 5]
        assert len(case.tools.calls) == 1


# --- whatever an agent sends

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3),
    max_leaves=8,
)


def test_no_call_that_an_agent_can_send_raises_or_reaches_a_sink() -> None:
    with opened() as case:

        @settings(max_examples=80)
        @given(
            st.sampled_from(["it.write", "it.move", "it.drop", "it.note", "it.close"]) | st.text(st.characters(codec=None)),
            _JSON | st.dictionaries(st.sampled_from(["path", "content", "files", "title", "id"]), _JSON),
            st.text(st.characters(codec=None), max_size=5),
        )
        def send(tool: str, arguments: Any, key: str) -> None:
            outcome = case.talk.call(tool, arguments, idempotency_key=key)
            assert outcome.kind == "refused"
            assert outcome.result["isError"] is True
            render_refusal(tool, outcome.refused, outcome.id).encode("utf-8", "replace")  # type: ignore[arg-type]
            repr(outcome.result).encode()

        send()
        assert case.tools.calls == []


@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("it.\ud800", {}, ""),
        ("it.write\udfff", {"path": "src/a.py", "content": "x"}, ""),
        ("it.write", {"path": "src/\ud800.py", "content": "x"}, ""),
        ("it.write", {"path": "src/a.py", "content": "\ud800"}, ""),
        ("it.write", {"path": "src/a.py", "content": "x", "\ud800": 1}, ""),
        ("it.write", {"path": "src/a.py", "content": "x"}, "\ud800"),
    ],
)
def test_text_without_a_utf8_form_is_refused_wherever_it_stands(tool: str, arguments: Any, key: str) -> None:
    with opened() as case:
        outcome = case.talk.call(tool, arguments, idempotency_key=key)
        assert outcome.kind == "refused"
        json.dumps(outcome.result, ensure_ascii=False).encode()
        assert case.tools.calls == []


def test_nesting_without_end_is_refused() -> None:
    with opened() as case:
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        assert case.call("note", title="a", body=deep).kind == "refused"


def test_a_name_that_is_too_long_is_no_tools() -> None:
    with opened() as case:
        outcome = case.talk.call("it.write" + "x" * 10_000, {})
        assert outcome.codes == (Code.TOOL_UNKNOWN,)
        assert len(str(outcome.result)) < 2000


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "\ud800"}]},
        {"content": [{"type": "image", "data": "\udfff", "n": 2**70}]},
        {"content": [{"type": "odd", "value": {1, 2}}]},
        {"content": "text"},
        {"structuredContent": {"a": [float("nan")]}},
        {},
    ],
)
def test_whatever_a_tool_answers_is_kept_as_text_and_relayed_as_it_came(result: Any) -> None:
    with opened() as case:

        class Odd:
            def execute(self, _warrant: Any) -> Answer:
                return Answer(result, failed=False)

        case.talk._executors["it"] = Odd()  # type: ignore[index]
        outcome = case.call("look")
        assert (outcome.kind, outcome.result) == ("done", result)
        case.session.standing.segments[-1].text.encode()


# --- the log


def test_values_stand_in_the_log_as_salted_commitments_whose_openings_can_be_erased() -> None:
    secret = "zq-secret-value"
    with opened(f"Add the note `{secret}`. Please put `src/{secret}.py`.") as case:
        assert case.call("note", "k", title=secret, body=secret).kind == "done"
        assert case.call("note", "k", title=secret, body=secret).kind == "recorded"
        assert case.call("put", path=f"src/{secret}.py", content=secret).kind == "done"
        assert case.call("put", path=f"docs/{secret}.py", content=secret).kind == "refused"
        assert case.call("note", title=secret + "x").kind == "refused"
        assert case.call("read", path=f"src/{secret}.py").kind == "done"
        case.report = {"files": [f"src/{secret}.py", "src/a.py", secret], "run": {"result": "passed", "x": secret}}
        assert case.call("look").kind == "done"
        entries = case.log()
        assert {str(entry.kind) for entry in entries} >= {
            "task",
            "admission",
            "settlement",
            "refusal",
            "read",
            "release",
            "recorded",
        }
        assert not any(secret in repr(entry) for entry in entries)
        # a person who has the openings sees them, until they are erased
        hidden: Any = case.log("admission")[0].body["hidden"]
        store = case.guard._openings
        found = store.get(hidden["field:title"])
        assert found is not None
        assert found.value == secret
        store.erase(session=case.session.id)
        assert store.get(hidden["field:title"]) is None


def test_two_equal_values_have_two_commitments() -> None:
    with opened("Add the note `hello`.") as case:
        for _ in range(2):
            assert case.call("note", title="hello").kind == "done"
        first, second = (entry.body["hidden"]["field:title"] for entry in case.log("admission"))
        assert first != second


def test_a_task_that_a_person_starts_again_grants_anew_and_keeps_nothing_of_the_last() -> None:
    with opened("Please fix src/a.py.") as case:
        outcomes = [case.call("put", path="src/a.py", content=str(number)) for number in range(40)]
        assert outcomes[0].kind == "done"
        assert outcomes[-1].codes == (Code.EVENT_REPEATED,)
        case.session.start_task("Please fix src/a.py.", "case", channel=RequestChannel.HOST_API, credential="host")
        assert not case.session.standing.state
        assert case.call("put", path="src/a.py", content="x").kind == "done"


# --- what is left for later


def test_a_read_that_is_logged_later_is_in_the_log_before_it_is_answered() -> None:
    with opened(request="") as case:
        prepared = case.session.propose("it.read", {"path": "docs/d.md"}, later=True)
        assert isinstance(prepared, Ready)
        assert case.log("read") == []
        case.session.catch_up()
        assert len(case.log("read")) == 1
        again = case.session.propose("it.read", {"path": "docs/d.md"}, later=True)
        assert isinstance(again, Ready)
        assert case.session.finish(again, case.tools.execute(again.warrant), later=True).refused is None
        assert len(case.log("read")) == 2


def test_nothing_is_decided_before_what_came_earlier_is_settled_and_kept() -> None:
    with opened() as case:
        prepared = case.session.propose("it.put", {"path": "src/a.py", "content": "x"}, later=True)
        assert isinstance(prepared, Ready)
        finished = case.session.finish(prepared, case.tools.execute(prepared.warrant), later=True)
        assert (finished.receipt, finished.refused) == (None, None)
        assert case.log("settlement") == []
        seen = len(case.session.standing.segments)
        assert case.call("write", path="src/a.py", content="x").kind == "no-op"
        assert len(case.log("settlement")) == 1
        assert len(case.session.standing.segments) == seen + 1


@pytest.mark.parametrize("end", ["close", "stop_task", "refuse"])
def test_what_was_left_for_later_is_done_before_a_session_goes_on_or_ends(end: str) -> None:
    with opened() as case:
        prepared = case.session.propose("it.put", {"path": "src/a.py", "content": "x"}, later=True)
        assert isinstance(prepared, Ready)
        case.session.finish(prepared, case.tools.execute(prepared.warrant), later=True)
        if end == "refuse":
            case.session.refuse("it.put", Refused.of(Code.TOOL_UNKNOWN, "no"))
        else:
            getattr(case.session, end)()
        assert len(case.log("settlement")) == 1


def test_a_read_whose_entry_cannot_be_written_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(request="") as case:
        prepared = case.session.propose("it.read", {"path": "docs/d.md"}, later=True)
        assert isinstance(prepared, Ready)
        with monkeypatch.context() as patch:
            patch.setattr(case.guard.ledger, "append", failing_append)
            case.session.catch_up()
        finished = case.session.finish(prepared, case.tools.execute(prepared.warrant), later=True)
        assert finished.refused is not None
        assert finished.refused.codes == (Code.LEDGER_UNAVAILABLE,)
        assert case.call("read", path="docs/d.md").kind == "done"


def test_a_settlement_that_cannot_be_written_is_told_by_the_next_call_and_blocks_the_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as case:
        prepared = case.session.propose("it.put", {"path": "src/a.py", "content": "x"}, later=True)
        assert isinstance(prepared, Ready)
        assert case.session.finish(prepared, case.tools.execute(prepared.warrant), later=True).refused is None
        with monkeypatch.context() as patch:
            patch.setattr(case.guard.ledger, "settle", failing_append)
            case.session.catch_up()
        assert case.call("read", path="docs/d.md").codes == (Code.LEDGER_UNAVAILABLE,)
        assert case.call("read", path="docs/d.md").kind == "done"
        assert case.call("put", path="src/a.py", content="y").codes == (Code.IN_FLIGHT,)


def failing_append(*arguments: Any, **named: Any) -> None:
    raise LedgerError("the disk is full")
