"""Requests that wait for a person, and answers that count for exactly what the person saw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.authority.approval import Approval
from cxi.authority.desk import MOST, PATIENCE, SERVES, Answer, Denial, Desk, Pending, Verdict, Waiting
from cxi.canonical import digest
from cxi.errors import Code, Refused


def pending(name: str, **other: Any) -> Pending:
    made = Pending(
        f"p-{name}", f"a-{name}", "it.note", "s-1", digest(["action", name]), digest(["effect", name]), digest(["event", name]),
        f"May it do {name}?", (f"risk of {name}",), PATIENCE,
    )  # fmt: skip
    return replace(made, **other)


def asked(*names: str, needs: int = 1) -> Desk:
    desk = Desk(needs=needs)
    for name in names:
        desk, waits = desk.ask(pending(name), 0.0)
        assert isinstance(waits, Pending)
    return desk


def answer(name: str, verdict: Verdict = Verdict.GRANT, *, about: str = "", by: str = "ana") -> Answer:
    other = pending(about or name)
    return Answer(f"p-{name}", other.action, other.shown, verdict, by)


def codes(made: object) -> tuple[str, ...]:
    return made.codes if isinstance(made, Refused) else ()


def test_a_yes_is_an_approval_of_exactly_what_was_shown() -> None:
    desk, made = asked("a").answer(answer("a"), 5.0)
    assert isinstance(made, Approval)
    one = pending("a")
    assert (made.action, made.effect, made.display, made.session) == (one.action, one.effect, one.shown, one.session)
    assert (made.approver, made.expires) == ("ana", 5.0 + SERVES)
    assert desk.open == ()


def test_a_request_is_answered_once() -> None:
    desk, _ = asked("a").answer(answer("a"), 5.0)
    assert codes(desk.answer(answer("a"), 6.0)[1]) == (Code.APPROVAL_MISMATCH,)


def test_of_answers_that_were_swapped_neither_counts_and_both_requests_are_void() -> None:
    desk, first = asked("a", "b").answer(answer("a", Verdict.DENY, about="b"), 1.0)
    desk, second = desk.answer(answer("b", about="a"), 1.0)
    assert codes(first) == codes(second) == (Code.APPROVAL_MISMATCH,)
    assert (desk.open, desk.denials) == ((), ())


def test_an_answer_to_another_display_of_the_same_call_is_no_answer() -> None:
    changed = replace(answer("a"), shown=digest("another text"))
    assert codes(asked("a").answer(changed, 1.0)[1]) == (Code.APPROVAL_MISMATCH,)


def test_a_late_answer_is_too_late() -> None:
    desk, made = asked("a").answer(answer("a"), PATIENCE)
    assert codes(made) == (Code.EXPIRED,)
    assert desk.open == ()


def test_one_request_an_event_and_an_equal_one_waits_already() -> None:
    desk = asked("a")
    again, waits = desk.ask(replace(pending("a"), id="p-later", call="a-later"), 1.0)
    assert waits == pending("a")
    assert again == desk
    other, refused = desk.ask(replace(pending("a"), id="p-other", action=digest("other contents")), 1.0)
    assert codes(refused) == (Code.APPROVAL_MISMATCH,)
    assert other == desk


def test_a_flood_asks_nobody() -> None:
    desk = asked(*map(str, range(MOST)))
    same, refused = desk.ask(pending("more"), 1.0)
    assert codes(refused) == (Code.TOO_LARGE,)
    assert same == desk
    later, waits = desk.ask(replace(pending("more"), expires=PATIENCE * 3), PATIENCE + 1)
    assert isinstance(waits, Pending)
    assert later.open == (waits,)


def test_a_no_holds_until_a_yes_to_the_very_same_call() -> None:
    desk, made = asked("a").answer(answer("a", Verdict.DENY), 3.0)
    assert isinstance(made, Denial)
    action = pending("a").action
    assert desk.denied(action, "", since=0.0) == made
    assert codes(desk.ask(pending("a"), 4.0)[1]) == (Code.CALL_DENIED,)
    desk = replace(desk, open=(pending("a", id="p-again"),))  # a person asked for it again themselves
    desk, yes = desk.answer(replace(answer("a"), pending="p-again"), 5.0)
    assert isinstance(yes, Approval)
    assert desk.denied(action, "", since=0.0) is None


def test_a_no_to_a_key_is_a_no_to_whatever_comes_under_it() -> None:
    desk = Desk().deny(Denial("", digest("c2"), "ana", 2.0))
    assert desk.denied(digest("any"), digest("c2"), since=0.0) is not None
    assert desk.denied(digest("any"), digest("c3"), since=0.0) is None
    assert desk.denied(digest("any"), "", since=0.0) is None


def test_two_persons_are_two_persons() -> None:
    desk, first = asked("a", needs=2).answer(answer("a"), 1.0)
    assert isinstance(first, Waiting)
    assert first.missing == 1
    desk, same = desk.answer(answer("a"), 2.0)
    assert isinstance(same, Waiting)
    desk, made = desk.answer(answer("a", by="ben"), 3.0)
    assert isinstance(made, Approval)
    assert made.approver == "ana,ben"


def test_a_no_of_one_person_ends_what_another_said_yes_to() -> None:
    desk, _ = asked("a", needs=2).answer(answer("a"), 1.0)
    desk, made = desk.answer(answer("a", Verdict.DENY, by="ben"), 2.0)
    assert isinstance(made, Denial)
    assert desk.open == ()


NAMES = ("a", "b", "c")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "answer", "wait"]), st.sampled_from(NAMES), st.sampled_from(NAMES),
            st.sampled_from(list(Verdict)), st.sampled_from(["ana", "ben"]),
        ),
        max_size=30,
    ),
    st.integers(1, 2),
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_an_approval_is_only_ever_of_a_call_that_enough_persons_saw_and_said_yes_to(
    steps: list[tuple[str, str, str, Verdict, str]], needs: int
) -> None:
    desk, now, said = Desk(needs=needs), 0.0, dict[str, set[str]]()
    for act, name, about, verdict, by in steps:
        now += 1.0
        match act:
            case "ask":
                desk, waits = desk.ask(replace(pending(name), expires=now + 5), now)
                if isinstance(waits, Pending) and not waits.votes:
                    said[name] = set()
            case "wait":
                now += 4.0
            case _:
                open_before = {one.id: one for one in desk.open}
                desk, made = desk.answer(answer(name, verdict, about=about, by=by), now)
                if name == about and verdict is Verdict.GRANT and f"p-{name}" in open_before:
                    said.setdefault(name, set()).add(by)
                if isinstance(made, Approval):
                    assert name == about
                    assert now < open_before[f"p-{name}"].expires
                    assert set(made.approver.split(",")) <= said[name]
                    assert len(made.approver.split(",")) >= needs
                    assert made.action == pending(name).action
        assert len({one.event for one in desk.open}) == len(desk.open)
