"""The same effect proposed again under another id: an event is known by what it is, not by what the agent calls it."""

from __future__ import annotations

from typing import Any

import pytest

from cxi.errors import AuthorityError, Code, OutcomeUnknown, Reason
from cxi.ledger.base import State
from gate_case import guarded, opened, start

ONE = {"case": {"grants": {"it.put": 1, "it.note": 1, "it.move": 1}}}
PUT: dict[str, Any] = {"path": "src/a.py", "content": "x"}


def test_a_new_idempotency_key_makes_no_new_event() -> None:
    with opened("Add the note `hello`.", tasks=ONE) as case:
        assert case.call("note", "k1", title="hello").kind == "done"
        for key in ("k2", "K1", "k1 ", "", "x" * 1000):
            assert case.call("note", key, title="hello").codes == (Code.EVENT_REPEATED,)
        assert case.call("note", "k1", title="hello").kind == "recorded"
        assert len(case.tools.calls) == 1


def test_another_spelling_or_payload_makes_no_new_event() -> None:
    with opened("Please fix src/a.py.", tasks=ONE) as case:
        assert case.call("put", "k1", **PUT).kind == "done"
        for spelling in ("./src/a.py", "src//a.py", "docs/../src/a.py", f"{case.root}/src/a.py"):
            for content in ("y", "x\n"):
                assert case.call("put", spelling + content, path=spelling, content=content).codes == (Code.EVENT_REPEATED,)
        assert len(case.tools.calls) == 1


def test_a_replay_is_of_the_same_session_only_and_needs_authority_of_its_own() -> None:
    with opened("Add the note `hello`.", tasks=ONE) as case:
        assert case.call("note", "k1", title="hello").kind == "done"
        with case.guard.session(request="Go on.", task="case") as other:
            assert other.call("it.note", {"title": "hello"}, idempotency_key="k1").codes == (Code.FIELD_NO_AUTHORITY,)
        assert len(case.tools.calls) == 1


def test_a_call_whose_outcome_is_unknown_is_not_made_again_under_any_id() -> None:
    with opened("Add the note `hello`.") as case:
        case.tools.faults.append(OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer in time")))
        assert case.call("note", "k1", title="hello").kind == "failed"
        for key in ("k1", "k2", ""):
            assert case.call("note", key, title="hello").codes == (Code.OUTCOME_UNKNOWN,)
        assert len(case.tools.calls) == 1


def test_a_restart_forgets_no_event_that_is_unknown() -> None:
    with opened("Add the note `hello`.") as case:
        with guarded(case) as first:
            session = first.open_session()
            start(session, "Add the note `hello`.")
            prepared: Any = session.propose("it.note", {"title": "hello"})
            assert type(prepared).__name__ == "Ready"  # launched, and never heard of again
        with guarded(case) as second:
            # the writer is gone, so nobody knows how it ended, and only a person can say so
            with pytest.raises(AuthorityError):
                second.ledger.release("a-none", "ana", "looked", State.FAILED, case.now)
            second.ledger.release(prepared.id, "ana", "looked", State.FAILED, case.now)


def test_a_forged_lease_settles_nothing() -> None:
    with opened("Add the note `hello`.") as case:
        prepared: Any = case.session.propose("it.note", {"title": "hello"})
        answer = case.tools.execute(prepared.warrant)
        first = case.session.finish(prepared, answer)
        assert first.receipt is not None
        again = case.session.finish(prepared, answer)
        assert (again.receipt, again.refused is not None) == (None, True)
        assert len(case.log("settlement")) == 1


def test_the_order_of_fields_and_items_makes_no_new_event_of_a_tuple() -> None:
    with opened("Move src/a.py to src/e.py.", tasks=ONE) as case:
        assert case.talk.call("it.move", {"source": "src/a.py", "destination": "src/e.py"}).kind == "done"
        (case.root / "src/e.py").rename(case.root / "src/a.py")
        again = case.talk.call("it.move", {"destination": "src/e.py", "source": "src/a.py"})
        assert again.codes == (Code.EVENT_REPEATED,)
