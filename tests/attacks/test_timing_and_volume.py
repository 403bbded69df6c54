"""An outsider chooses how much and when: results, calls and keys without end leave memory bounded and decisions as they were."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from cxi import session as room
from cxi.errors import Code
from gate_case import Case, opened


def kept(case: Case) -> int:
    return sum(len(segment.text) for segment in case.session.standing.segments)


def decides(case: Case) -> None:
    """What has authority happens, and what has none does not."""
    (case.root / "src/a.py").write_text("before\n")
    assert case.call("put", path="src/a.py", content="x").kind == "done"
    assert case.call("put", path="src/b.py", content="x").codes == (Code.FIELD_NO_AUTHORITY,)


def test_results_without_end_are_kept_up_to_a_bound() -> None:
    with opened("Please fix src/a.py.") as case:
        text = "src/b.py " * 300_000
        for _ in range(room.MAX_CONTEXT // room.MAX_SEGMENT + 3):
            case.session.receive("it", "log", text)
        assert kept(case) <= room.MAX_CONTEXT
        assert all(len(segment.text) <= room.MAX_SEGMENT for segment in case.session.standing.segments)
        decides(case)


def test_many_small_results_are_kept_up_to_a_bound() -> None:
    with opened("Please fix src/a.py.") as case:
        for number in range(2 * room.MAX_SEGMENTS):
            case.session.receive("it", "log", f"line {number}: src/b.py")
        assert len(case.session.standing.segments) == room.MAX_SEGMENTS
        assert case.session.standing.segments[-1].text.startswith(f"line {2 * room.MAX_SEGMENTS - 1}")
        decides(case)


def test_what_a_flood_pushed_out_is_still_an_influence() -> None:
    with opened("Go on.") as case:
        assert case.call("look").kind == "done"
        for number in range(room.MAX_SEGMENTS + 1):
            case.session.receive("noise", "log", str(number))
        assert "it.look" not in {segment.source.name for segment in case.session.standing.segments}
        assert case.call("write", path="src/b.py", content="x").kind == "done"
        assert set(case.guard.ledger.touched("local")["RepoPath", "src/b.py"]) == {"it.look", "noise"}


def test_reading_without_end_keeps_one_release_a_value() -> None:
    with opened("Go on and fix src/a.py.") as case:
        for _ in range(50):
            assert case.call("look").kind == "done"
        assert len(case.session.standing.releases) == 1
        assert len(case.session.standing.evidence) == 1
        decides(case)


def test_a_result_of_one_huge_list_releases_nothing_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("Please fix src/a.py.") as case:
        case.report = {"files": [f"src/{number}.py" for number in range(20_000)]}
        assert case.call("look").kind == "done"
        assert case.session.standing.releases == ()
        decides(case)


def test_keys_of_reads_without_end_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_READ_KEYS", 20)
    with opened("Please fix src/a.py.") as case:
        for number in range(60):
            assert case.call("read", f"key-{number}", path="src/b.py").kind == "done"
        assert len(case.session._idle_keys) == 20
        assert case.call("read", "key-59", path="src/a.py").codes == (Code.KEY_REUSE_CONFLICT,)
        decides(case)


def test_refused_calls_without_end_draw_nothing_from_a_grant() -> None:
    with opened("Please fix src/a.py.", tasks={"case": {"grants": {"it.put": 1}}}) as case:
        for number in range(200):
            assert case.call("put", f"k{number}", path=f"src/{number}.py", content="x").kind == "refused"
        decides(case)
        assert case.tools.calls[0][0] == "put"
        assert len(case.tools.calls) == 1


def test_a_huge_call_is_refused_in_few_words() -> None:
    with opened() as case:
        flood: Any = {f"field-{number}": number for number in range(20_000)}
        outcome = case.talk.call("it.put", {"path": "src/a.py", "content": "x", **flood})
        assert outcome.codes == (Code.FIELD_UNCLASSIFIED,)
        assert sys.getsizeof(str(outcome.result)) < 50_000
        outcome = case.call("drop", files=["src/a.py"] * 5000)
        assert outcome.codes == (Code.TOO_LARGE,)


def test_time_that_goes_back_revives_nothing() -> None:
    with opened("Please fix src/a.py.", "timed") as case:
        case.now += 600
        assert Code.EXPIRED in case.call("put", path="src/a.py", content="x").codes
        case.now -= 600
        assert case.call("put", path="src/a.py", content="x").kind == "refused"
        assert case.tools.calls == []
