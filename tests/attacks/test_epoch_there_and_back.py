"""Policies change from A to B and back to A: nothing that was decided under the first A is alive under the second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cxi.errors import Code, Refused
from cxi.gate import Admissible
from cxi.guard import Guard
from cxi.log.entry import EntryType, LogEntry
from gate_case import CONTRACTS, MORE, POLICIES, Case, guarded, opened

B = POLICIES.replace('"tests"', '"lib"')
PUT: dict[str, Any] = {"path": "src/c.py", "content": "x"}


@contextmanager
def there_and_back(case: Case) -> Iterator[Guard]:
    """Another process opens B, and then A again."""
    case.place.configure(CONTRACTS, policies=B, **MORE)
    with guarded(case):
        pass
    case.place.configure(CONTRACTS, policies=POLICIES, **MORE)
    with guarded(case) as back:
        yield back


def test_the_second_a_is_a_third_epoch_of_the_same_digest() -> None:
    with opened("Go on.") as case:
        first = case.guard.epoch
        with there_and_back(case) as back:
            assert back.epoch == (first[0] + 2, first[1])


def test_sessions_grants_and_releases_of_the_first_a_act_no_more() -> None:
    with opened("Go on and fix src/a.py.") as case:
        assert case.call("look").kind == "done"
        with there_and_back(case):
            assert case.call("put", **PUT).codes == (Code.EPOCH_CHANGED,)  # by release
            assert case.call("put", path="src/a.py", content="x").codes == (Code.EPOCH_CHANGED,)  # by request and grant
            assert [name for name, _ in case.tools.calls] == ["look"]


def test_a_release_or_an_approval_of_the_first_a_gives_nothing_under_the_second() -> None:
    with opened("Go on.") as case:
        approval = case.approval("put", PUT)
        assert case.call("look").kind == "done"
        (release,) = case.session.standing.releases
        with there_and_back(case) as back, back.session(request="Go on.", task="case") as talk:
            case.talk = talk
            standing = talk.session.standing
            held = replace(standing, releases=(replace(release, task=standing.task),))
            answer: Any = case.decide("put", PUT, standing=held)
            assert answer.codes == (Code.RELEASE_VOID,)
            held = replace(standing, approvals=(replace(approval, session=talk.session.id),))
            answer = case.decide("put", PUT, standing=held)
            assert answer.codes == (Code.FIELD_NO_AUTHORITY, Code.SNAPSHOT_CHANGED)


def test_a_decision_made_under_the_first_a_is_not_drawn_under_the_second() -> None:
    with opened("Go on and fix src/a.py.") as case:
        found = case.decide("put", {**PUT, "path": "src/a.py"})
        assert isinstance(found, Admissible)
        with there_and_back(case):
            answer = case.gate.admit(found, "ab" * 16, case.now, describe=_describe(case))
            assert isinstance(answer, Refused)
            assert answer.codes == (Code.EPOCH_CHANGED,)


def _describe(case: Case) -> Any:
    def describe(_manifest: Any, found: Any) -> LogEntry:
        return LogEntry(EntryType.ADMISSION, found.proposal.call, case.session.id, {"mode": "enforce", "effect": {}})

    return describe
