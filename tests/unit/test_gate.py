"""May this happen, now, once? Each step by itself, all reasons at once and in the order of the steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from cxi.authority.contract import AdapterEffect, ListedAtom, ListedEffect
from cxi.authority.grant import Grant
from cxi.canonical import digest
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Code, Reason, Refused
from cxi.gate import Admissible, Cleared, Gate, NoOp, Proposal, ToolPin
from cxi.ledger.base import Lease, Recorded, State
from cxi.log.entry import EntryType, LogEntry
from gate_case import Case, opened, start

WRITE = {"path": "src/a.py", "content": "after\n"}


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    """One world for all that only decides: nothing here spends or writes."""
    with opened("Please fix src/a.py. Move src/b.py to src/e.py. Add the note `hello`. Close ticket 7.") as found:
        yield found


def codes(decision: object) -> tuple[str, ...]:
    return decision.codes if isinstance(decision, Refused) else (type(decision).__name__,)


def admit(case: Case, admissible: object, nonce: str = "") -> Lease | Recorded | Refused:
    assert isinstance(admissible, Admissible), admissible

    def describe(manifest: Any, found: Admissible) -> LogEntry:
        body = {"mode": "enforce", "tool": found.proposal.tool, "effect": {}, "hidden": {}}
        return LogEntry(EntryType.ADMISSION, found.proposal.call, case.session.id, body)

    return case.gate.admit(admissible, nonce or case.entropy(16).hex(), case.now, describe=describe)


# --- before the steps: the tool and its pin


def test_a_tool_that_no_server_offers_is_unknown(case: Case) -> None:
    assert codes(case.decide("nothing", {})) == (Code.TOOL_UNKNOWN,)


def test_a_tool_that_no_contract_describes_is_uncontracted(case: Case) -> None:
    gate = replace(case.gate, pins={**case.gate.pins, "it.extra": ToolPin(digest("server"), digest("tool"))})
    assert codes(case.decide("extra", {}, gate=gate)) == (Code.TOOL_UNCONTRACTED,)


def test_a_contracted_tool_that_its_server_does_not_list_is_unknown(case: Case) -> None:
    gate = replace(case.gate, pins={})
    assert codes(case.decide("write", WRITE, gate=gate)) == (Code.TOOL_UNKNOWN,)


@pytest.mark.parametrize("code", [Code.TOOL_UNPINNED, Code.TOOL_DEFINITION_CHANGED, Code.SERVER_CHANGED])
def test_what_the_lock_refuses_is_refused_before_anything_is_read(case: Case, code: Code) -> None:
    pin = replace(case.gate.pins["it.write"], refused=Reason(code, "it differs"))
    gate = replace(case.gate, pins={**case.gate.pins, "it.write": pin})
    assert codes(case.decide("write", {"nonsense": 1}, gate=gate)) == (code,)


def test_a_session_that_has_ended_decides_nothing(case: Case) -> None:
    ended = replace(case.session.standing, ended=Reason(Code.REVOKED, "a person ended it"))
    assert codes(case.decide("look", {}, standing=ended)) == (Code.REVOKED,)


# --- 1 canonicalize


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "src/a.py"}, (Code.FIELD_MISSING,)),
        ({**WRITE, "mode": "x"}, (Code.FIELD_UNCLASSIFIED,)),
        ({"path": 5, "content": "x"}, (Code.FIELD_TYPE,)),
        ({"path": "a\0b", "content": "x"}, (Code.PATH_MALFORMED,)),
        ({"path": "../x", "content": "x"}, (Code.PATH_OUTSIDE_ROOT,)),
        ({"path": 2**60, "content": "x"}, (Code.NUMBER_NOT_EXACT,)),
        ([], (Code.FIELD_TYPE,)),
        (None, (Code.FIELD_TYPE,)),
        ({"path": "../x", "mode": 1}, (Code.FIELD_MISSING, Code.FIELD_UNCLASSIFIED, Code.PATH_OUTSIDE_ROOT)),
    ],
)
def test_a_call_that_cannot_be_read_whole_is_refused_with_all_that_is_wrong(
    case: Case, arguments: Any, expected: tuple[str, ...]
) -> None:
    assert codes(case.decide("write", arguments)) == expected


def test_two_spellings_of_one_call_are_one_action_and_what_is_sent_is_written_anew(case: Case) -> None:
    one = case.decide("put", {"content": "after\n", "path": "docs/.././src//a.py"})
    two = case.decide("put", {"path": f"{case.root}/src/a.py", "content": "after\n", "encoding": "utf-8"})
    assert isinstance(one, Admissible)
    assert isinstance(two, Admissible)
    assert one.action.digest == two.action.digest
    assert one.action.event_key() == two.action.event_key()
    sent = {"base": str(case.root), "content": "after\n", "encoding": "utf-8", "path": f"{case.root}/src/a.py"}
    assert one.action.call.arguments == two.action.call.arguments == sent


def test_a_fixed_field_of_another_value_is_refused(case: Case) -> None:
    assert codes(case.decide("put", {**WRITE, "encoding": "latin-1"})) == (Code.FIELD_NOT_FIXED,)


# --- 2 field authority


def test_what_only_untrusted_text_names_has_no_authority(case: Case) -> None:
    assert codes(case.decide("put", {"path": "src/c.py", "content": "x"})) == (Code.FIELD_NO_AUTHORITY,)


def test_a_tuple_is_authorized_as_one(case: Case) -> None:
    assert isinstance(case.decide("move", {"source": "src/b.py", "destination": "src/e.py"}), Admissible)
    assert Code.TUPLE_SPLIT in codes(case.decide("move", {"source": "src/a.py", "destination": "src/e.py"}))


def test_a_choice_is_open_inside_its_policy_and_closed_outside(case: Case) -> None:
    inside = case.decide("write", {"path": "tests/new.py", "content": "x"})
    assert isinstance(inside, Admissible)
    assert [(item.kind, item.reference) for item in inside.evidence] == [("choice", "inside")]
    outside = case.decide("write", {"path": "docs/new.md", "content": "x"})
    assert codes(outside) == (Code.FIELD_NO_AUTHORITY, Code.EFFECT_FORBIDDEN)


def test_a_choice_is_bounded_by_the_policy_that_it_names_and_by_no_other_permit() -> None:
    anywhere = '@id("anywhere") @text("x") permit (principal, action in [Action::"fs.create", Action::"fs.write"], resource);'
    with opened(policies=anywhere) as case:
        assert codes(case.decide("write", {"path": "docs/new.md", "content": "x"})) == (Code.FIELD_NO_AUTHORITY,)
        assert isinstance(case.decide("write", {"path": "src/new.md", "content": "x"}), Admissible)


# --- 3 exact effect


def test_an_effect_that_cannot_be_read_is_refused_beside_everything_else(case: Case) -> None:
    (case.root / "src/link.py").symlink_to(case.root / "docs/d.md")
    (case.root / "src/out.py").symlink_to("/etc/hostname")
    try:
        assert codes(case.decide("write", {"path": "src/out.py", "content": "x"})) == (Code.PATH_OUTSIDE_ROOT,)
        # the path is what the link leads to, and that is outside of the choice
        assert codes(case.decide("write", {"path": "src/link.py", "content": "x"})) == (
            Code.FIELD_NO_AUTHORITY,
            Code.EFFECT_FORBIDDEN,
        )
    finally:
        (case.root / "src/link.py").unlink()
        (case.root / "src/out.py").unlink()


def test_a_stated_effect_that_does_not_fit_what_is_there_is_inexact_and_still_needs_a_grant(case: Case) -> None:
    bare = replace(case.session.standing, grants=())
    answer = case.decide("move", {"source": "src/none.py", "destination": "src/c.py"}, standing=bare)
    assert codes(answer)[-2:] == (Code.EFFECT_INEXACT, Code.GRANT_MISSING)


def test_cxis_own_files_are_never_touched_whatever_policies_say() -> None:
    anywhere = '@id("anywhere") @text("x") permit (principal, action in [Action::"fs.create", Action::"fs.write"], resource);'
    with opened("Please put src/b.py.", policies=anywhere, prose=["../workspace/src/b.py"]) as case:
        assert codes(case.decide("put", {"path": "src/b.py", "content": "x"})) == (Code.PATH_PROTECTED,)
        assert codes(case.decide("move", {"source": "src/b.py", "destination": "src/e.py"})) == (
            Code.FIELD_NO_AUTHORITY,
            Code.PATH_PROTECTED,
        )
        assert isinstance(case.decide("read", {"path": "src/b.py"}), Cleared)


def test_an_adapter_that_is_not_built_in_is_unsupported(case: Case) -> None:
    contract = replace(case.gate.contracts["it.write"], effect=AdapterEffect("tape", {}))
    gate = replace(case.gate, contracts={**case.gate.contracts, "it.write": contract})
    assert codes(case.decide("write", WRITE, gate=gate)) == (Code.EFFECT_UNSUPPORTED,)


def test_a_tool_that_says_it_is_no_sink_but_would_act_is_refused(case: Case) -> None:
    contract = replace(case.gate.contracts["it.read"], effect=ListedEffect((ListedAtom("fs.write", "path"),)))
    gate = replace(case.gate, contracts={**case.gate.contracts, "it.read": contract})
    assert codes(case.decide("read", {"path": "src/a.py"}, gate=gate)) == (Code.EFFECT_UNSUPPORTED,)


def test_an_effect_that_is_the_call_has_no_atoms_and_is_declared(case: Case) -> None:
    found = case.decide("note", {"title": "hello"})
    assert isinstance(found, Admissible)
    assert (found.effect.atoms, str(found.effect.assurance), found.commitment.authorized_by) == ((), "declared", ("calls",))


# --- 4 policy


def test_the_call_needs_a_permit_of_its_own(case: Case) -> None:
    gate = replace(case.gate, monitor=_Without(case.gate.monitor, "tool:it.write"))
    assert codes(case.decide("write", WRITE, gate=gate)) == (Code.CALL_NOT_PERMITTED,)


def test_each_atom_needs_a_permit_and_each_denial_is_named(case: Case) -> None:
    request = "Please move docs/d.md to docs/e.md."
    with opened(request) as other:
        answer = other.decide("move", {"source": "docs/d.md", "destination": "docs/e.md"})
        assert isinstance(answer, Refused)
        assert [(reason.code, reason.where) for reason in answer.reasons] == [
            (Code.EFFECT_FORBIDDEN, "fs.delete docs/d.md"),
            (Code.EFFECT_FORBIDDEN, "fs.create docs/e.md"),
        ]


def test_evidence_opens_what_a_policy_asks_it_for() -> None:
    with opened("Close ticket 7.") as case:
        assert codes(case.decide("close", {"id": 7})) == (Code.POLICY_FORBIDS,)
        assert codes(case.decide("close", {"id": 9})) == (Code.FIELD_NO_AUTHORITY, Code.POLICY_FORBIDS)
        case.report = {"run": {"result": "failed"}}
        assert case.call("look").kind == "done"
        assert codes(case.decide("close", {"id": 7})) == (Code.POLICY_FORBIDS,)
        case.report = {"run": {"result": "passed"}}
        assert case.call("look").kind == "done"
        assert isinstance(case.decide("close", {"id": 7}), Admissible)
        assert codes(case.decide("close", {"id": 9})) == (Code.FIELD_NO_AUTHORITY,)
        case.now += 3600
        assert codes(case.decide("close", {"id": 7})) == (Code.POLICY_FORBIDS,)


def test_a_policy_sees_whether_a_person_approved_exactly_this() -> None:
    asks = (
        '@id("asks") @text("Notes need a person.") forbid (principal, action == Action::"tool:it.note", resource) '
        "unless { context.approval.given };"
    )
    with opened("Add the note `hello`.", policies=asks) as case:
        assert codes(case.decide("note", {"title": "hello"})) == (Code.POLICY_FORBIDS,)
        case.session.approve(case.approval("note", {"title": "hello"}))
        assert isinstance(case.decide("note", {"title": "hello"}), Admissible)
        assert codes(case.decide("note", {"title": "hello", "body": "more"})) == (Code.POLICY_FORBIDS,)


def test_a_policy_sees_which_task_is_open() -> None:
    only = (
        '@id("only") @text("x") forbid (principal, action == Action::"tool:it.note", resource) '
        'unless { context.task.open && context.task.name == "case" };'
    )
    with opened("Add the note `hello`.", policies=only) as case:
        assert isinstance(case.decide("note", {"title": "hello"}), Admissible)
        start(case.session, "Add the note `hello`.", None)
        assert codes(case.decide("note", {"title": "hello"})) == (Code.POLICY_FORBIDS, Code.GRANT_MISSING)


# --- the grant


def test_with_no_task_open_nothing_is_granted_and_the_refusal_says_how_to_open_one(case: Case) -> None:
    bare = replace(case.session.standing, request=None, task="", grants=())
    answer = case.decide("note", {"title": "hello"}, standing=bare)
    assert isinstance(answer, Refused)
    assert answer.codes == (Code.FIELD_NO_AUTHORITY, Code.TASK_NONE)
    assert "cxi task start" in answer.reasons[-1].helps


def test_a_task_that_does_not_grant_the_tool_gives_no_event(case: Case) -> None:
    bare = replace(case.session.standing, grants=())
    assert codes(case.decide("note", {"title": "hello"}, standing=bare)) == (Code.GRANT_MISSING,)
    other = replace(case.session.standing, grants=(Grant("case/it.put", "it.put", 1),))
    assert codes(case.decide("note", {"title": "hello"}, standing=other)) == (Code.GRANT_MISSING,)


def test_a_grant_holds_for_the_values_that_it_names(case: Case) -> None:
    def granting(**constraints: tuple[Any, ...]) -> Any:
        grant = Grant("case/it.put", "it.put", 1, constraints=MappingProxyType(constraints))
        return replace(case.session.standing, grants=(grant,))

    assert isinstance(case.decide("put", WRITE, standing=granting(path=("src/a.py", "src/x.py"))), Admissible)
    assert codes(case.decide("put", WRITE, standing=granting(path=("src/x.py",)))) == (Code.GRANT_MISSING,)
    assert codes(case.decide("put", WRITE, standing=granting(nothing=("src/a.py",)))) == (Code.GRANT_MISSING,)


def test_a_grant_of_a_list_holds_for_each_of_its_items() -> None:
    with opened("Please drop src/a.py and src/b.py.") as case:
        grant = Grant("g", "it.drop", 1, constraints={"files[]": ("src/a.py",)})
        standing = replace(case.session.standing, grants=(grant,))
        assert isinstance(case.decide("drop", {"files": ["src/a.py"]}, standing=standing), Admissible)
        assert codes(case.decide("drop", {"files": ["src/a.py", "src/b.py"]}, standing=standing)) == (Code.GRANT_MISSING,)


def test_a_grant_ends_in_time_and_another_that_fits_takes_its_place(case: Case) -> None:
    ended = Grant("ended", "it.note", 1, expires=case.now)
    live = Grant("live", "it.note", 1, expires=case.now + 1)
    assert codes(case.decide("note", {"title": "hello"}, standing=replace(case.session.standing, grants=(ended,)))) == (
        Code.EXPIRED,
    )
    found = case.decide("note", {"title": "hello"}, standing=replace(case.session.standing, grants=(ended, live)))
    assert isinstance(found, Admissible)
    assert found.grant.id == "live"


# --- all of it at once


def test_a_refusal_names_every_reason_in_the_order_of_the_steps(case: Case) -> None:
    bare = replace(case.session.standing, grants=())
    arguments = {"source": "src/a.py", "destination": "docs/e.md"}
    answer = case.decide("move", arguments, standing=bare)
    assert isinstance(answer, Refused)
    assert [reason.code for reason in answer.reasons] == [
        Code.FIELD_NO_AUTHORITY,  # 2, one a field
        Code.FIELD_NO_AUTHORITY,
        Code.EFFECT_FORBIDDEN,  # 4
        Code.GRANT_MISSING,  # 5
    ]
    gate = replace(case.gate, monitor=_Without(case.gate.monitor, "tool:it.move"))
    contract = replace(case.gate.contracts["it.move"], sink=False)
    gate = replace(gate, contracts={**case.gate.contracts, "it.move": contract})
    answer = case.decide("move", arguments, gate=gate, standing=bare)
    assert isinstance(answer, Refused)
    assert [reason.code for reason in answer.reasons] == [
        Code.FIELD_NO_AUTHORITY,  # 2
        Code.FIELD_NO_AUTHORITY,
        Code.EFFECT_UNSUPPORTED,  # 3, one an atom
        Code.EFFECT_UNSUPPORTED,
        Code.CALL_NOT_PERMITTED,  # 4, the call first
        Code.EFFECT_FORBIDDEN,
    ]


def test_an_approval_that_does_not_hold_says_why_behind_the_reasons_that_it_does_not_lift(case: Case) -> None:
    arguments = {"path": "src/c.py", "content": "x"}
    approval = case.approval("put", arguments)
    held = replace(case.session.standing, approvals=(approval,))
    assert isinstance(case.decide("put", arguments, standing=held), Admissible)
    late = replace(case.session.standing, approvals=(replace(approval, expires=case.now),))
    assert codes(case.decide("put", arguments, standing=late)) == (Code.FIELD_NO_AUTHORITY, Code.EXPIRED)
    other = replace(case.session.standing, approvals=(replace(approval, session="s-other"),))
    assert codes(case.decide("put", arguments, standing=other)) == (Code.FIELD_NO_AUTHORITY, Code.APPROVAL_MISMATCH)
    effect = replace(case.session.standing, approvals=(replace(approval, effect=digest("another")),))
    assert codes(case.decide("put", arguments, standing=effect)) == (Code.FIELD_NO_AUTHORITY, Code.SNAPSHOT_CHANGED)


def test_an_approval_is_a_grant_of_its_own_and_lifts_no_policy(case: Case) -> None:
    bare = replace(case.session.standing, grants=())
    approval = case.approval("put", WRITE)
    found = case.decide("put", WRITE, standing=replace(bare, approvals=(approval,)))
    assert isinstance(found, Admissible)
    assert (found.approval, found.grant.id, found.grant.count) == (approval.id, f"approval/{approval.id}", 1)
    outside = {"path": "docs/d.md", "content": "x"}
    approved = replace(bare, approvals=(case.approval("put", outside),))
    assert codes(case.decide("put", outside, standing=approved)) == (Code.EFFECT_FORBIDDEN,)


# --- what comes out


def test_a_read_is_cleared_and_needs_no_grant(case: Case) -> None:
    bare = replace(case.session.standing, request=None, task="", grants=())
    found = case.decide("read", {"path": "docs/d.md"}, standing=bare)
    assert isinstance(found, Cleared)
    assert "calls" in found.authorized_by
    assert [atom.kind for atom in found.effect.atoms] == ["fs.read"]


def test_a_sink_that_would_change_nothing_is_a_no_op_that_still_needs_fields_and_the_calls_permit(case: Case) -> None:
    same = {"path": "src/a.py", "content": "before\n"}
    assert isinstance(case.decide("write", same), NoOp)
    assert isinstance(case.decide("put", same, standing=replace(case.session.standing, grants=())), NoOp)
    gate = replace(case.gate, monitor=_Without(case.gate.monitor, "tool:it.put"))
    assert codes(case.decide("put", same, gate=gate)) == (Code.CALL_NOT_PERMITTED,)
    assert codes(case.decide("put", {"path": "docs/d.md", "content": "before\n"})) == (Code.FIELD_NO_AUTHORITY,)


def test_the_same_action_under_the_same_key_is_recorded_where_the_contract_replays(case: Case) -> None:
    first = case.decide("write", WRITE)
    assert isinstance(first, Admissible)
    prior = (first.action.digest, State.DONE, Recorded("a-1", {"x": 1}))
    assert case.decide("write", WRITE, idempotency_key=digest("k"), prior=prior) == prior[2]
    for state in (State.FAILED, State.LEASED, State.OUTCOME_UNKNOWN):
        assert isinstance(case.decide("write", WRITE, prior=(prior[0], state, prior[2])), Admissible)  # the ledger judges
    conflict = case.decide("write", {**WRITE, "content": "other"}, prior=prior)
    assert codes(conflict) == (Code.KEY_REUSE_CONFLICT,)
    put = case.decide("put", WRITE)
    assert isinstance(put, Admissible)
    again = case.decide("put", WRITE, prior=(put.action.digest, State.DONE, prior[2]))
    assert isinstance(again, Admissible)  # `repeat: refuse`: the ledger says so


def test_a_decision_is_pure_and_equal_for_equal_inputs(case: Case) -> None:
    one, two = case.decide("write", WRITE), case.decide("write", WRITE)
    assert isinstance(one, Admissible)
    assert isinstance(two, Admissible)
    assert (one.action, one.commitment, one.evidence, one.reads) == (two.action, two.commitment, two.evidence, two.reads)
    before = len(case.log())
    case.decide("write", {"path": "docs/x", "content": ""})
    assert len(case.log()) == before


# --- 5 the event


def test_a_lease_names_the_manifest_of_all_three_authorities(case: Case) -> None:
    with opened() as other:
        found = other.decide("write", WRITE)
        lease = admit(other, found)
        assert isinstance(lease, Lease)
        assert isinstance(found, Admissible)
        manifest = lease.manifest
        assert lease.manifest_digest == manifest.digest
        assert (manifest.action, manifest.effect, manifest.evidence) == (found.action, found.commitment, found.evidence)
        assert (manifest.invocation.grant, manifest.invocation.sequence) == ("case/it.write", 1)
        assert manifest.effect.policy_epoch == other.guard.epoch


def test_the_ledger_judges_an_equal_event_that_is_under_way(case: Case) -> None:
    with opened() as other:
        assert isinstance(admit(other, other.decide("write", WRITE)), Lease)
        assert codes(admit(other, other.decide("write", {**WRITE, "content": "another"}))) == (Code.IN_FLIGHT,)
        assert isinstance(admit(other, other.decide("write", {"path": "src/new.py", "content": ""})), Lease)


def test_a_nonce_serves_once(case: Case) -> None:
    with opened() as other:
        assert isinstance(admit(other, other.decide("write", WRITE), "ab" * 16), Lease)
        again = admit(other, other.decide("write", {"path": "src/new.py", "content": ""}), "ab" * 16)
        assert codes(again) == (Code.CAPABILITY_USED,)


def test_a_draw_that_another_caller_took_is_drawn_again(case: Case) -> None:
    with opened() as other:
        first, second = other.decide("write", WRITE), other.decide("write", {"path": "src/new.py", "content": ""})
        ledger = other.gate.ledger
        racing = _Racing(ledger, lambda: admit(other, second))
        gate = replace(other.gate, ledger=racing)
        other.session._wiring = replace(other.session._wiring, gate=gate)
        lease = admit(other, first)
        assert isinstance(lease, Lease)
        assert lease.manifest.invocation.sequence == 2


def test_the_reach_of_a_call_is_told_for_sinks_alone(case: Case) -> None:
    def reach(tool: str, arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        snapshot = RecordingSnapshot(case.session._wiring.world, str(case.root))
        return case.gate.reach(Proposal("a-0", tool, arguments), snapshot).touches

    assert reach("it.write", {"path": "docs/x", "content": ""}) == (("RepoPath", "docs/x"), ("path", "docs/x"))
    assert reach("it.move", {"source": "none", "destination": "docs/x"}) == (("RepoPath", "docs/x"), ("RepoPath", "none"))
    assert reach("it.read", {"path": "docs/d.md"}) == reach("it.write", {}) == reach("it.none", {}) == ()


class _Without:
    """A monitor that permits nothing for one action."""

    def __init__(self, monitor: Any, action: str) -> None:
        self._monitor, self._action = monitor, action

    def decide(self, request: Any) -> Any:
        if request.action == self._action:
            return Refused.of(Code.CALL_NOT_PERMITTED, "no policy permits the call")
        return self._monitor.decide(request)


class _Racing:
    """A ledger in front of which another caller is once faster, between the look and the draw."""

    def __init__(self, ledger: Any, race: Any) -> None:
        self._ledger, self._race = ledger, race

    def drawn(self, *arguments: Any) -> int:
        found: int = self._ledger.drawn(*arguments)
        if self._race is not None:
            race, self._race = self._race, None
            race()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def test_the_gate_has_no_way_to_a_sink() -> None:
    assert {"execute", "call", "launch"}.isdisjoint(dir(Gate))
