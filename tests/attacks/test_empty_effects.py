"""A call that is made to look as if it did nothing: no atoms never means that all is allowed, or that nothing is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cxi.errors import Code, ConfigError, Refused
from gate_case import CONTRACTS, opened


def codes(answer: Any) -> tuple[str, ...]:
    return answer.codes if isinstance(answer, Refused) else (type(answer).__name__,)


def test_a_payload_without_atoms_never_reaches_the_sink() -> None:
    """The server might do more than its contract says: what is planned to be nothing is answered, not called."""
    with opened() as case:
        case.tools.act = lambda _tool, _arguments: pytest.fail("it was called")
        assert case.call("write", path="src/a.py", content="before\n").kind == "no-op"
        assert case.tools.calls == []


def test_no_atoms_are_no_way_past_field_authority_or_the_calls_permit() -> None:
    with opened() as case:
        assert case.call("put", path="docs/d.md", content="before\n").codes == (Code.FIELD_NO_AUTHORITY,)
        case.session.stop_task()
        assert case.call("put", path="src/a.py", content="before\n").codes == (Code.FIELD_NO_AUTHORITY,)
        assert case.tools.calls == []


def test_an_effect_that_is_the_call_has_no_atoms_and_still_needs_permit_and_grant() -> None:
    with opened("Add the note `hello`.") as case:
        bare = replace(case.session.standing, grants=())
        assert codes(case.decide("note", {"title": "hello"}, standing=bare)) == (Code.GRANT_MISSING,)
        assert case.call("note", title="hello").kind == "done"
        assert len(case.tools.calls) == 1  # it is called, for nobody knows that it does nothing


def test_an_empty_list_names_nothing_and_is_refused() -> None:
    with opened("Please drop src/a.py.") as case:
        assert case.call("drop", files=[]).kind == "refused"
        assert case.tools.calls == []


def test_what_cannot_be_planned_is_not_planned_as_nothing() -> None:
    with opened("Please put src/a.py.") as case:
        (case.root / "src/a.py").unlink()
        (case.root / "src/a.py").mkdir()
        assert case.call("put", path="src/a.py", content="x").codes == (Code.EFFECT_INEXACT,)
        assert case.call("put", path="src/a.py/", content="x").kind == "refused"
        assert case.tools.calls == []


@pytest.mark.parametrize("effect", [[], "", None, {}])
def test_a_contract_cannot_state_an_empty_effect(effect: Any) -> None:
    contract = {**CONTRACTS["note"], "effect": effect}
    with pytest.raises(ConfigError), opened(contracts={"note": contract}):
        pytest.fail("it opened")


def test_a_tool_that_says_it_has_no_effect_gets_no_lease() -> None:
    with opened() as case:
        prepared: Any = case.session.propose("it.look", {})
        assert type(prepared.warrant).__name__ == "Clearance"
