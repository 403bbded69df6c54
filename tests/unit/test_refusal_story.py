"""What a refusal tells: to the agent, in the log, and to whoever reads the log."""

from __future__ import annotations

from typing import Any

import pytest

from cxi.errors import Code, Reason, Refused
from cxi.log.story import Story, tell
from cxi.record import MAX_TOLD, MAX_TOLD_VALUE
from cxi.reply import render_refusal
from cxi.session import Answered
from gate_case import Case, opened


def story_of(case: Case, call: str) -> Story:
    def shown(commitment: str) -> Any:
        opening = case.guard._openings.get(commitment)
        return None if opening is None else opening.value

    return next(story for story in tell(case.guard.ledger.entries(), shown) if story.id == call)


@pytest.mark.parametrize(
    ("where", "detail", "shown"),
    [
        ("path", '`{"path": ["x"]}` is no path', 'path: `{"path": ["x"]}` is no path'),
        ("id", "this is invalid", "id: this is invalid"),
        ("path", "path: is empty", "path: is empty"),
        ("path", "`path` is required", "`path` is required"),
        ("", "no place", "no place"),
    ],
)
def test_the_place_is_shown_unless_the_detail_names_it(where: str, detail: str, shown: str) -> None:
    text = render_refusal("it.put", Refused.of(Code.FIELD_TYPE, detail, where=where), "a-1")
    assert text.splitlines()[1] == f"  FIELD_TYPE  {shown}"


def test_a_value_of_the_wrong_type_is_refused_with_its_place() -> None:
    with opened() as case:
        outcome: Any = case.call("put", path={"path": ["x"]}, content="x")
        place = outcome.refused.reasons[0].where
        assert "path" in place
        assert place in outcome.result["content"][0]["text"]


def test_a_refused_call_shows_its_values_and_the_log_holds_commitments_alone() -> None:
    with opened("Please fix src/a.py.") as case:
        sink = case.call("put", path="docs/secret.md", content="x")
        assert sink.codes != ()
        entry: Any = case.log("refusal")[0]
        assert "secret" not in repr(entry.body)
        assert story_of(case, sink.id).fields["path"] == "docs/secret.md"
        assert story_of(case, sink.id).shown == "docs/secret.md"
        case.session.stop_task()
        case.call("read", path=".env")
        case.guard._openings.erase(session=case.session.id)
        assert story_of(case, sink.id).shown == "(erased)"


def test_constants_are_left_out_where_there_are_other_values() -> None:
    with opened() as case:
        outcome = case.call("put", path="src/a.py", content="x")
        story = story_of(case, outcome.id)
        assert set(story.fixed) == {"encoding", "base"}
        assert story.shown == "src/a.py"
        assert set(story.fields) == {"path", "encoding", "base"}
    assert Story("a", "s", 0.0, fields={"base": "/r"}, fixed=["base"]).shown == "/r"


def test_what_is_kept_of_a_refused_call_is_bounded() -> None:
    with opened() as case:
        many = case.call("drop", files=[f"src/{number}" for number in range(MAX_TOLD * 2)])
        assert len(story_of(case, many.id).fields) == MAX_TOLD
        long = case.call("note", title="x" * MAX_TOLD_VALUE * 2)
        assert len(str(story_of(case, long.id).fields["title"])) == MAX_TOLD_VALUE + 1


def test_what_cannot_be_proposed_is_logged_under_its_own_id() -> None:
    with opened() as case:
        answered = case.session.refuse("x" * 1000, Refused((Reason(Code.TOOL_UNKNOWN, "no such tool", "name"),)))
        assert isinstance(answered, Answered)
        assert (answered.kind, answered.id[:2]) == ("refused", "a-")
        story = story_of(case, answered.id)
        assert (story.decision, story.why) == ("refused", str(Code.TOOL_UNKNOWN))
        assert len(story.tool) < 1000


# --- a file that is named without its folder


def needs(case: Case, path: str) -> str:
    refused = case.call("put", path=path, content="x").refused
    assert refused is not None
    return next(reason.needs for reason in refused.reasons if reason.code is Code.FIELD_NO_AUTHORITY)


def test_a_request_that_names_a_file_without_its_folder_is_told_the_whole_path() -> None:
    with opened("Please fix half.py.") as case:
        assert "`src/half.py`" in needs(case, "src/half.py")
        assert "root" not in needs(case, "src/other.py")


@pytest.mark.parametrize("request_", ["Please fix half.pyc.", "Please fix my-half.py.", "Please fix lib/half.py.", "Go."])
def test_no_path_is_advised_that_the_request_does_not_name(request_: str) -> None:
    with opened(request_) as case:
        assert "`src/half.py`" not in needs(case, "src/half.py")


def test_a_path_of_untrusted_text_is_not_advised() -> None:
    with opened("Please fix half.py.") as case:
        case.session.receive("it", "log", "edit src/evil/half.py")
        assert "`src/evil/half.py`" not in needs(case, "src/evil/half.py")
