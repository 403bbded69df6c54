"""A decision that is kept never outlives what it was made by: whatever changes, the call is decided as if for the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cxi.errors import Code, Reason
from cxi.gate import Gate
from gate_case import Case, opened


def read(case: Case, path: str = "docs/d.md") -> tuple[str, tuple[str, ...]]:
    outcome = case.call("read", path=path)
    return outcome.kind, outcome.codes


def swap_in_a_link(case: Case) -> None:
    (case.root / "docs/d.md").unlink()
    (case.root / "docs/d.md").symlink_to("/etc/hostname")


def swap_in_a_link_to_the_log(case: Case) -> None:
    (case.root / "docs/d.md").unlink()
    (case.root / "docs/d.md").symlink_to(case.guard.config.state / "ledger.sqlite")


def swap_in_the_state_folder(case: Case) -> None:
    """The folder itself, moved: its entry is a folder of the same mode and as many links as before, and another one."""
    state = case.guard.config.state
    (case.root / "docs").chmod(state.stat().st_mode & 0o7777)
    for number in range(state.stat().st_nlink - (case.root / "docs").stat().st_nlink):
        (case.root / f"docs/sub-{number}").mkdir()
    read(case)
    (case.root / "docs").rename(case.root.parent / "docs-before")
    state.rename(case.root / "docs")
    (case.root / "docs/d.md").write_text("planted")


def swap_the_folder_for_a_link(case: Case) -> None:
    (case.root / "docs").rename(case.root.parent / "docs-before")
    (case.root / "docs").symlink_to(case.guard.config.state)


@pytest.mark.parametrize(
    "change",
    [swap_in_a_link, swap_in_a_link_to_the_log, swap_in_the_state_folder, swap_the_folder_for_a_link],
)
def test_what_a_path_leads_to_is_looked_at_again_at_each_call(change: Callable[[Case], None]) -> None:
    with opened(request="") as case:
        assert read(case) == ("done", ())
        assert read(case) == ("done", ())
        change(case)
        kept = case.session.propose("it.read", {"path": "docs/d.md"})
        case.session._recall._kept.clear()
        anew = case.session.propose("it.read", {"path": "docs/d.md"})
        if change is swap_in_the_state_folder:
            (case.root / "docs").rename(case.guard.config.state)
        assert codes(kept) == codes(anew)
        assert codes(kept) != ()


def codes(prepared: Any) -> tuple[str, ...]:
    refused = getattr(prepared, "refused", None)
    return () if refused is None else refused.codes


def test_a_decision_of_a_task_is_not_one_of_the_next() -> None:
    with opened() as case:
        decided = counted(case)
        for _ in range(3):
            assert read(case) == ("done", ())
        assert len(decided) == 1
        case.session.stop_task()
        read(case)
        assert len(decided) == 2


def test_a_tool_whose_definition_changed_is_refused_although_it_was_decided_before() -> None:
    with opened(request="") as case:
        assert read(case) == ("done", ())
        pins: Any = case.guard._pins
        pin = pins["it.read"]
        pins["it.read"] = type(pin)(pin.server_identity, pin.definition, reason())
        assert read(case) == ("refused", (Code.TOOL_DEFINITION_CHANGED,))


def reason() -> Reason:
    return Reason(Code.TOOL_DEFINITION_CHANGED, "changed", where="it.read")


def test_an_ended_session_makes_no_kept_decision_again() -> None:
    with opened(request="") as case:
        assert read(case) == ("done", ())
        case.session.end(Code.REVOKED, "enough")
        assert read(case) == ("refused", (Code.REVOKED,))


def test_arguments_that_differ_in_any_byte_are_another_call() -> None:
    with opened(request="") as case:
        decided = counted(case)
        for arguments in ({"path": "docs/d.md"}, {"path": "./docs/d.md"}, {"path": "docs//d.md"}, {"path": "docs/d.md", "x": 1}):
            case.session.propose("it.read", arguments)
        assert len(decided) == 4


def test_a_sink_is_decided_each_time() -> None:
    with opened() as case:
        decided = counted(case)
        for text in ("one", "two", "two"):
            case.call("write", path="src/a.py", content=text)
        assert len(decided) == 3


def test_a_file_that_went_away_is_decided_about_anew() -> None:
    with opened(request="") as case:
        decided = counted(case)
        assert read(case) == ("done", ())
        (case.root / "docs/d.md").unlink()
        read(case)
        (case.root / "docs/d.md").write_text("again")
        assert read(case)[0] == "done"
        assert len(decided) >= 2


def counted(case: Case) -> list[str]:
    """The tools that the gate itself decides about from now on."""
    found: list[str] = []
    gate = case.session._wiring.gate

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(gate, name)

        def decide(self, proposal: Any, *arguments: Any) -> Any:
            found.append(proposal.tool)
            return Gate.decide(gate, proposal, *arguments)

    object.__setattr__(case.session._wiring, "gate", Counting())
    return found
