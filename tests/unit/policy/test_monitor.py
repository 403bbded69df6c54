from dataclasses import replace

import cedarpy
import pytest

from cxi.errors import Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.monitor import CedarMonitor, show
from cxi.policy.registry import PolicySource, load
from cxi.policy.vocabulary import KINDS

ANYONE = '@id("all") permit (principal, action, resource);'


def codes(answer):
    assert isinstance(answer, Refused)
    return answer.codes


def call(agent="maintainer", tool="tool:files.write_file", **context):
    field = {"path": "src/tax.py"} if tool == "tool:files.write_file" else {}
    return PolicyRequest(agent, tool, Entity("Server", "files", {"name": "files"}), (), {"field": field, **context})


def test_a_call_that_no_policy_permits_has_its_own_code(monitor_of):
    monitor = monitor_of('@id("w") permit (principal, action == Action::"fs.write", resource);')
    assert codes(monitor.decide(call())) == ("CALL_NOT_PERMITTED",)


def test_a_call_is_permitted_on_its_fields(monitor_of):
    monitor = monitor_of(
        '@id("w") permit (principal, action == Action::"tool:files.write_file", resource == Server::"files")'
        'when { context.field.path like "src/*" };'
    )
    assert monitor.decide(call()) == Permitted(("w",))
    assert codes(monitor.decide(call(field={"path": "etc/x"}))) == ("CALL_NOT_PERMITTED",)


def test_every_permit_that_holds_is_named(monitor_of, ask):
    monitor = monitor_of('@id("z") permit (principal, action == Action::"fs.write", resource);', ANYONE)
    assert monitor.decide(ask("fs.write", "a")) == Permitted(("all", "z"))


def test_a_forbid_wins_and_every_one_is_a_reason(monitor_of, ask):
    monitor = monitor_of(
        ANYONE,
        '@id("f1") @text("Not one.") forbid (principal, action == Action::"fs.write", resource);'
        '@id("f2") forbid (principal, action, resource is File) when { resource.name == "a" };',
    )
    answer = monitor.decide(ask("fs.write", "a"))
    assert codes(answer) == ("POLICY_FORBIDS",)
    assert [reason.needs for reason in answer.reasons] == ["Not one.", ""]
    assert ["f1" in answer.reasons[0].detail, "f2" in answer.reasons[1].detail] == [True, True]


def test_an_unknown_agent_is_refused(monitor_of, ask):
    assert codes(monitor_of(ANYONE).decide(ask("fs.write", "a", agent="nobody"))) == ("POLICY_ERROR",)


def test_an_unknown_action_is_refused(monitor_of, ask):
    assert codes(monitor_of(ANYONE).decide(replace(ask("fs.write", "a"), action="fs.wrote"))) == ("POLICY_ERROR",)
    assert codes(monitor_of(ANYONE).decide(call(tool="tool:files.nosuch"))) == ("POLICY_ERROR",)


def test_an_unknown_part_of_the_context_is_refused(monitor_of):
    assert codes(monitor_of(ANYONE).decide(call(user={}))) == ("POLICY_ERROR",)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"path": "a"},
        {"inside_root": "yes"},
        {"parts_folded": [1]},
        {"more": "x"},
        {"name": None},
        {"name": 1.5},
        {"name": ["a"]},
    ],
)
def test_an_entity_that_does_not_fit_the_schema_is_refused(monitor_of, ask, attributes):
    request = ask("fs.write", "a")
    whole = (
        {**request.resource.attributes, **attributes}
        if attributes and len(attributes) == 1 and "path" not in attributes
        else attributes
    )
    wrong = replace(request, resource=replace(request.resource, attributes=whole))
    assert codes(monitor_of(ANYONE).decide(wrong)) == ("POLICY_ERROR",)


@pytest.mark.parametrize(
    "context",
    [
        {"field": {}},  # a required field is missing
        {"field": {"path": 7}},
        {"field": {"path": "a", "more": "x"}},
        {"approval": {}},
        {"approval": {"given": "true"}},
        {"task": {"name": "x"}},
        {"evidence": {"test_run": {"result": "passed"}}},  # no issuer, subject, …
        {"evidence": {"other": {}}},
        {"effect": {"nosuch": True}},
        {"field": {"path": "\ud800"}},
        {"field": {"path": 2**70}},
        {"field": {"path": object()}},
    ],
)
def test_a_context_that_does_not_fit_the_schema_is_refused(monitor_of, context):
    assert codes(monitor_of(ANYONE).decide(call(**context))) == ("POLICY_ERROR",)


def test_what_a_request_leaves_out_counts_as_not_given(monitor_of):
    monitor = monitor_of(
        '@id("given") permit (principal, action, resource) when { context.approval.given || context.task.open };',
    )
    assert codes(monitor.decide(call())) == ("CALL_NOT_PERMITTED",)
    assert monitor.decide(call(approval={"given": True})) == Permitted(("given",))


@pytest.mark.parametrize(
    "id", ['a"b', 'x"; permit(principal,action,resource);//', "a\nb", 'File::"x"', "\\", "\u202e", "é", "'", "", "*"]
)
def test_an_id_is_any_text(monitor_of, ask, id):
    monitor = monitor_of('@id("one") permit (principal, action == Action::"fs.write", resource == File::"good");')
    request = replace(ask("fs.write", "good"), resource=replace(ask("fs.write", "good").resource, id=id))
    assert codes(monitor.decide(request)) == ("EFFECT_FORBIDDEN",)
    assert "\n" not in monitor.decide(request).reasons[0].where
    assert monitor_of(ANYONE).decide(request) == Permitted(("all",))


def test_what_is_shown_of_an_id_is_one_visible_line():
    assert show("a\nb\u202ec`é") == "a\\u{a}b\\u{202e}c\\u{60}é"


def test_policies_about_something_else_are_not_asked(monitor_of, ask):
    many = "".join(
        f'@id("p{n}") permit (principal, action == Action::"fs.write", resource in Folder::"d{n}");' for n in range(200)
    )
    monitor = monitor_of(many, '@id("t") permit (principal, action == Action::"db.update", resource == Table::"t");')
    assert monitor.decide(ask("fs.write", "d7/x/y")) == Permitted(("p7",))
    assert len(monitor._slices.of_request(ask("fs.write", "d7/x/y"))) == 1
    assert monitor._slices.of_request(ask("fs.write", "other")) == ()


def test_every_kind_can_be_asked_and_permitted(monitor_of, ask):
    monitor = monitor_of(ANYONE)
    for kind in KINDS.values():
        if not kind.exact:
            assert monitor.decide(ask(kind.name, "a:b")) == Permitted(("all",)), kind.name
            if kind.pattern:
                assert monitor.decide(ask(kind.name, "a/*", pattern=True)) == Permitted(("all",)), kind.name


def test_an_ordinary_question_is_not_put_to_cedar_and_any_doubtful_one_is(monitor_of, ask, monkeypatch):
    asked = []
    monkeypatch.setattr("cxi.policy.monitor.is_authorized", lambda *given: asked.append(given) or cedarpy.is_authorized(*given))
    monitor = monitor_of('@id("w") permit (principal, action == Action::"fs.write", resource) when { context.task.open };')
    opened, closed = (
        replace(ask("fs.write", "a"), context={**ask("fs.write", "a").context, "task": {"name": "", "open": is_open}})
        for is_open in (True, False)
    )
    assert monitor.decide(opened) == Permitted(("w",))
    assert codes(monitor.decide(closed)) == ("EFFECT_FORBIDDEN",)
    assert not asked
    assert codes(monitor.decide(replace(opened, agent="nobody"))) == ("POLICY_ERROR",)
    resource = replace(opened.resource, attributes={**opened.resource.attributes, "name": 1})
    assert codes(monitor.decide(replace(opened, resource=resource))) == ("POLICY_ERROR",)
    assert len(asked) == 2


def test_a_monitor_without_its_own_evaluator_asks_cedar_each_time(schema, ask, monkeypatch):
    asked = []
    monkeypatch.setattr("cxi.policy.monitor.is_authorized", lambda *given: asked.append(given) or cedarpy.is_authorized(*given))
    monitor = CedarMonitor(load([PolicySource("p", ANYONE)], schema, agents=["maintainer"]), own=False)
    assert [monitor.decide(ask("fs.write", "a")) for _ in range(2)] == [Permitted(("all",))] * 2
    assert len(asked) == 2
