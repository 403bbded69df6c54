"""What one session was given serves no other: releases, approvals, requests, grants, keys, state and answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cxi.errors import Code, OutcomeUnknown, Reason
from cxi.guard import Conversation
from cxi.ledger.base import State
from gate_case import Case, opened, start

PUT: dict[str, Any] = {"path": "src/a.py", "content": "x"}


@contextmanager
def another(case: Case, request: str = "Go on.", task: str | None = "case", agent: str = "") -> Iterator[Conversation]:
    with case.guard.session(request=request, task=task if request else None, agent=agent) as talk:
        yield talk


def test_a_request_serves_its_own_session() -> None:
    with opened("Please put src/a.py.") as case, another(case) as other:
        assert other.call("it.put", PUT).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("put", **PUT).kind == "done"


def test_a_task_and_its_grants_serve_their_own_session() -> None:
    with opened("Add the note `hello`.") as case, another(case, request="") as other:
        assert other.call("it.note", {"title": "hello"}).codes == (Code.FIELD_NO_AUTHORITY, Code.TASK_NONE)
        case.session.stop_task()
        start(other.session, "Add the note `hello`.")
        assert case.call("note", title="hello").codes == (Code.FIELD_NO_AUTHORITY, Code.TASK_NONE)
        assert other.call("it.note", {"title": "hello"}).kind == "done"


def test_a_release_and_evidence_serve_their_own_session() -> None:
    with opened("Go on. Close ticket 7.") as case, another(case, "Go on. Close ticket 7.") as other:
        assert case.call("look").kind == "done"
        assert other.call("it.put", {"path": "src/c.py", "content": "x"}).codes == (Code.FIELD_NO_AUTHORITY,)
        assert other.call("it.close", {"id": 7}).codes == (Code.POLICY_FORBIDS,)
        assert case.call("put", path="src/c.py", content="x").kind == "done"
        assert case.call("close", id=7).kind == "done"


def test_an_approval_serves_its_own_session_and_once_in_all() -> None:
    with opened("Go on.") as case, another(case) as other:
        approval = case.approval("put", PUT)
        other.session.approve(approval)
        assert other.call("it.put", PUT).codes == (Code.FIELD_NO_AUTHORITY, Code.APPROVAL_MISMATCH)
        case.session.approve(approval)
        assert case.call("put", **PUT).kind == "done"


def test_a_grants_count_is_a_sessions_own() -> None:
    request = "Add the note `hello`."
    with opened(request, tasks={"case": {"grants": {"it.note": 1}}}) as case, another(case, request) as other:
        assert case.call("note", title="hello").kind == "done"
        assert case.call("note", title="hello").codes == (Code.EVENT_REPEATED,)
        assert other.call("it.note", {"title": "hello"}).kind == "done"


def test_a_key_and_its_recorded_answer_are_a_sessions_own() -> None:
    request = "Add the notes `hello` and `bye`."
    with opened(request) as case, another(case, request) as other:
        case.tools.act = lambda _tool, arguments: f"secret of {arguments['title']}"
        assert case.call("note", "k", title="hello").kind == "done"
        found = other.call("it.note", {"title": "bye"}, idempotency_key="k")
        assert (found.kind, "hello" in str(found.result)) == ("done", False)
        assert case.call("note", "k", title="hello").kind == "recorded"


def test_state_that_one_session_wrote_is_no_trusted_state_of_another() -> None:
    with opened("Please put src/a.py.") as case, another(case) as other:
        assert case.call("put", **PUT).kind == "done"
        assert other.call("it.drop", {"files": ["src/a.py"]}).codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.call("drop", files=["src/a.py"]).kind == "done"


def test_what_is_under_way_in_one_session_blocks_the_same_occurrence_in_another_of_the_user() -> None:
    """The occurrence key names no session: an outcome that is not known yet is not known to any of them."""
    request = "Add the note `hello`."
    with opened(request) as case, another(case, request) as other:
        prepared: Any = case.session.propose("it.note", {"title": "hello"})
        assert type(prepared).__name__ == "Ready"
        assert case.call("note", title="hello").codes == (Code.IN_FLIGHT,)
        assert other.call("it.note", {"title": "hello"}).codes == (Code.IN_FLIGHT,)
        case.session.finish(prepared, OutcomeUnknown(Reason(Code.OUTCOME_UNKNOWN, "lost", where="it")))
        assert other.call("it.note", {"title": "hello"}).codes == (Code.OUTCOME_UNKNOWN,)
        case.guard.ledger.release(prepared.id, "ana", "nobody knows", State.RELEASED, case.now)
        assert other.call("it.note", {"title": "hello"}).kind == "done"


def test_a_closed_session_is_not_opened_again_and_ends_no_other() -> None:
    with opened("Add the note `hello`.") as case, another(case, "Add the note `hello`.") as other:
        case.session.close()
        again: Any = start(case.session, "Add the note `hello`.")
        assert again.codes == (Code.SESSION_UNKNOWN,)
        assert case.call("note", title="hello").codes == (Code.SESSION_UNKNOWN,)
        assert other.call("it.note", {"title": "hello"}).kind == "done"


def test_what_one_session_is_told_is_no_context_of_another() -> None:
    with opened("Go on.") as case, another(case) as other:
        case.session.receive("it", "log", "a secret")
        assert case.call("look").kind == "done"
        assert other.session.standing.segments == ()
