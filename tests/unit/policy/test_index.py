"""Policies are found by what is necessary for them to hold, and never missed."""

from dataclasses import replace

import pytest

from cxi.errors import Refused
from cxi.policy import index
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.monitor import ABSENT, CedarMonitor
from cxi.policy.necessity import needs
from policy_case import registry

SCOPE = 'principal, action == Action::"tool:x.call", resource'
CALL = PolicyRequest(
    "a",
    "tool:x.call",
    Entity("Server", "x", {"name": "x"}),
    (),
    {
        **ABSENT,
        "field": {
            "path": "src/a.py",
            "amount": 5,
            "dry": True,
            "names": ["n"],
            "numbers": [],
            "inner": {"deep": "d", "flag": True},
        },
    },
)
OVERFLOW = "context.field.amount + 9223372036854775807 == 0"


@pytest.fixture(autouse=True)
def no_few(monkeypatch):
    """File every policy, however few they are."""
    monkeypatch.setattr(index, "_FEW", 0)


def needs_of(condition, clause="when"):
    policies = registry([f"permit ({SCOPE}) {clause} {{ {condition} }};"])
    return [
        (need[0].group.how, ".".join(need[0].group.path), tuple(way.key for way in need))
        for need in needs(policies.policies["p0"].parsed)
        if len({way.group for way in need}) == 1
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('context.field.path == "x"', [("equal", "context.field.path", ("x",))]),
        ('"x" == context.field.path', [("equal", "context.field.path", ("x",))]),
        ('context.field.path != "x"', []),
        ('!(context.field.path != "x")', [("equal", "context.field.path", ("x",))]),
        ('context.field.path like "src/*.py"', [
            ("prefix", "context.field.path", ("src/",)),
            ("suffix", "context.field.path", (".py",)),
        ]),
        ('context.field.path like "src"', [("equal", "context.field.path", ("src",))]),
        ('context.field.path like "*"', []),
        ('!(context.field.path like "src")', []),
        ("context.field.amount < 5", [("range", "context.field.amount", ((-(2**63), 4),))]),
        ("5 <= context.field.amount", [("range", "context.field.amount", ((5, 2**63 - 1),))]),
        ("!(context.field.amount <= 5)", [("range", "context.field.amount", ((6, 2**63 - 1),))]),
        ("context.field.dry", [("equal", "context.field.dry", (True,))]),
        ("!context.field.dry", [("equal", "context.field.dry", (False,))]),
        ('context.field.names.contains("n")', [("holds", "context.field.names", ("n",))]),
        ('context.field.names.containsAny(["n", "m"])', [("holds", "context.field.names", ("n", "m"))]),
        ('["x", "y"].contains(context.field.path)', [("equal", "context.field.path", ("x", "y"))]),
        ('context.field.path == "x" || context.field.path == "y"', [("equal", "context.field.path", ("x", "y"))]),
        ('context.field.path == "x" || true', []),
        ('context.field.path like "*/secret/*"', [
            ("inside", "context.field.path", ("/secret/",)),
        ]),
        ('context.field.path like "*abcde*"', [
            ("inside", "context.field.path", ("abcd",)),
            ("inside", "context.field.path", ("bcde",)),
        ]),
        ('context.field.path like "*abc*"', []),
        ('context.field.names.containsAll(["n", "m"])', [
            ("holds", "context.field.names", ("n",)),
            ("holds", "context.field.names", ("m",)),
        ]),
        ('if context.field.dry then context.field.path == "x" else context.field.path == "y"', [
            ("equal", "context.field.dry", (True, False)),
            ("equal", "context.field.path", ("x", "y")),
        ]),
        ('!(context.field.path != "x" || context.field.amount < 1)', [
            ("equal", "context.field.path", ("x",)),
            ("range", "context.field.amount", ((1, 2**63 - 1),)),
        ]),
        ('resource == Server::"x"', [("equal", "resource", (("Server", "x"),))]),
        ('resource in [Server::"x", Server::"y"]', [("within", "resource", (("Server", "x"), ("Server", "y")))]),
        ('resource in [Server::"x", if context.field.dry then resource else resource]', []),
        ('[context.task.name, "y"].contains(context.field.path)', []),
        (f'{OVERFLOW} && context.field.path == "x"', []),
        (f'context.field.path == "x" && {OVERFLOW}', [("equal", "context.field.path", ("x",))]),
        (f'(if context.field.amount < 2 then {OVERFLOW} else true) && context.field.path == "x"', [
            ("range", "context.field.amount", ((-(2**63), 1), (2, 2**63 - 1))),
        ]),
    ],
)  # fmt: skip
def test_what_is_necessary_is_read_off_a_condition(condition, expected):
    assert needs_of(condition) == expected
    assert needs_of(f"!({condition})", "unless") == expected


def test_nothing_is_necessary_after_a_clause_that_could_raise_an_error():
    body = "forbid (principal, action, resource) when { true == true } when { context.approval.given };"
    assert [need[0].group.path for need in needs(registry([body]).policies["p0"].parsed)] == [("context", "approval", "given")]
    raising = f"forbid ({SCOPE}) when {{ {OVERFLOW} }} when {{ context.approval.given }};"
    policies = registry(["permit (principal, action, resource);", raising])
    assert list(needs(policies.policies["p1"].parsed)) == []
    answer = policies.monitor().decide(CALL)
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)


def test_an_error_before_what_is_necessary_still_denies():
    body = f'forbid ({SCOPE}) when {{ {OVERFLOW} && context.field.path == "nosuch" }};'
    policies = registry(["permit (principal, action, resource);", body])
    assert policies.monitor().decide(CALL) == CedarMonitor(policies, whole=True).decide(CALL)
    assert policies.monitor().decide(CALL).codes == ("POLICY_ERROR",)


@pytest.mark.parametrize("amount", range(2, 9))
def test_a_range_is_found_at_its_ends_and_not_beyond(amount):
    conditions = [
        *(f"context.field.amount {op} 5" for op in ("<", "<=", ">", ">=")),
        *(f"!(context.field.amount {op} 5)" for op in ("<", "<=", ">", ">=")),
        "context.field.amount >= 3 && context.field.amount < 5",
        "context.field.amount > 4 && context.field.amount < 4",
        "context.field.amount == 5 || context.field.amount == 7",
        "context.field.amount <= 3 || context.field.amount >= 7",
    ]
    policies = registry([f"permit ({SCOPE}) when {{ {one} }};" for one in conditions])
    request = replace(CALL, context={**CALL.context, "field": {**CALL.context["field"], "amount": amount}})
    assert policies.monitor().decide(request) == CedarMonitor(policies, whole=True).decide(request)


def test_of_many_policies_only_those_whose_need_is_met_are_looked_at():
    bodies = [
        *(f'permit (principal, action, resource) when {{ context.task.name == "t{n}" }};' for n in range(200)),
        *(f'forbid ({SCOPE}) when {{ context.field.path like "d{n}/*" }};' for n in range(200)),
        *(
            f"permit ({SCOPE}) when {{ context.field.amount >= {10 * n} && "
            f"context.field.amount < {10 * n + 10} && context.field.dry }};"
            for n in range(200)
        ),
    ]
    policies = registry(bodies)
    monitor = policies.monitor()
    assert monitor.decide(CALL) == CedarMonitor(policies, whole=True).decide(CALL) == Permitted(("p400",))
    assert list(monitor._index.find("a", CALL.action, CALL.resource, {("Server", "x")}, CALL.context)) == [400]


def test_a_condition_with_alternatives_of_different_kinds_is_found_by_each():
    third = "(if context.field.dry then context.field.amount == %s else false)"
    body = f'context.field.path like "%s/*" || context.field.names.contains("%s") || {third}'
    policies = registry([f"permit ({SCOPE}) when {{ {body.replace('%s', str(n))} }};" for n in range(40)])
    monitor, whole = policies.monitor(), CedarMonitor(policies, whole=True)
    for path, names, amount, expected in (("7/x", [], 99, 7), ("x", ["z", "9"], 99, 9), ("x", [], 3, 3)):
        request = replace(
            CALL, context={**CALL.context, "field": {**CALL.context["field"], "path": path, "names": names, "amount": amount}}
        )
        assert monitor.decide(request) == whole.decide(request) == Permitted((f"p{expected}",))
        assert list(monitor._index.find("a", CALL.action, CALL.resource, {("Server", "x")}, request.context)) == [expected]
