"""Each kind of expression, answered by our own evaluator and by Cedar."""

import pytest

from cxi.errors import Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.evaluator import Unsupported, compile_policy
from cxi.policy.monitor import CedarMonitor
from policy_case import SCHEMA, registry

FIELD = {
    "path": "src/*é.py",
    "amount": 7,
    "dry": True,
    "names": ["a", "b", "a"],
    "numbers": (1, 2),
    "inner": {"deep": "d", "flag": False},
    "records": [{"key": "k", "value": 1}],
    "odd_name": "\\",
}
RUN = {"result": "passed", "issuer": "i", "subject": "s", "revision": "r", "time": 5, "expires": 2**63 - 1, "score": -(2**63)}
ABOUT_CALL = PolicyRequest(
    "a",
    "tool:x.call",
    Entity("Server", "x", {"name": "x"}),
    (),
    {"field": FIELD, "evidence": {"run": RUN}, "approval": {"given": False}, "task": {"name": "", "open": False}, "effect": {}},
)
PATH = {"path": "src/a/x.py", "name": "x.py", "extension": "py", "inside_root": True, "case_sensitive": True}
FOLDED = {"path_folded": "src/a/x.py", "name_folded": "x.py", "parts_folded": ["a", "src", "x.py"]}
ABOVE = (("Folder", "src/a"), ("Folder", "src"), ("Folder", "."))
ABOUT_FILE = PolicyRequest(
    "a",
    "fs.write",
    Entity("File", "src/a/x.py", {**PATH, **FOLDED}, ABOVE),
    (),
    {"effect": {"tool": "t", "assurance": "checked"}},
)

HOLDING = [
    "true",
    "!false",
    "context.field.dry",
    "context.approval.given == false",
    "context.field.amount == 7",
    "context.field.amount != 8",
    "context.field.amount < 8 && context.field.amount <= 7 && context.field.amount > 6 && context.field.amount >= 7",
    "context.field.amount + 1 == 8 && context.field.amount - 9 == -2 && context.field.amount * -3 == -21",
    "-context.field.amount == -7",
    "context.evidence has run && context.evidence.run.expires == 9223372036854775807",
    "context.evidence has run && context.evidence.run.score == -9223372036854775808",
    "context.evidence has run && -(context.evidence.run.score + 1) == context.evidence.run.expires",
    "context.evidence has run.score",
    "!(context.field has limit)",
    "!(context.field has limit && context.field.limit < 3)",
    'context.field has "odd_name" && context.field["odd_name"] == "\\\\"',
    'context.field has odd_name && context.field.odd_name like "\\\\"',
    'context.field.path like "src/*" && context.field.path like "*.py" && context.field.path like "*\\**"',
    'context.field.path like "src/\\*\\u{e9}.py" && context.field.path like "s*r*c*/*.*y" && context.field.path like "**"',
    '!(context.field.path like "src/\\**\\u{e9}*py.py")',
    '!(context.field.path like "*src/*/*") && !(context.field.path like "")',
    'context.task.name like "" && context.task.name like "*" && !(context.task.name like "*a*")',
    'context.field.names.contains("b") && !context.field.names.contains("c")',
    'context.field.names == ["b", "a"] && ["a", "b", "b"] == context.field.names && context.field.names != ["a"]',
    'context.field.names.containsAll(["a"]) && !context.field.names.containsAll(["a", "c"])',
    'context.field.names.containsAny(["c", "a"]) && !context.field.names.containsAny(["c"])',
    "context.field.numbers.contains(2) && !context.field.numbers.isEmpty() && [2, 1] == context.field.numbers",
    'context.field has records && context.field.records.contains({key: "k", value: 1})',
    'context.field has records && !context.field.records.contains({key: "k", value: 2})',
    'context.field.inner.deep == "d" && !context.field.inner.flag && !(context.field.inner has count)',
    'context.field.inner == context.field.inner && {deep: "d", flag: false} == {flag: false, deep: "d"} && {a: 1} != {a: 2}',
    "{a: 1, b: {c: true}}.b.c",
    "[[1, 2], [3]].contains([2, 1]) && [{a: [1]}] == [{a: [1, 1]}]",
    "if context.field.dry then context.field.amount == 7 else context.field.amount == 1",
    '(if context.field.dry then "x" else "y") == "x"',
    "(if context.field.dry then context.field.inner else context.field.inner).flag == false",
    "(if context.field.dry then context.field.inner else context.field.inner) has deep",
    "true || context.evidence.run.score - 1 == 0",  # what is not reached raises no error
    "!(false && 9223372036854775807 + 1 == 0)",
    "if true then true else 9223372036854775807 + 1 == 0",
    'resource == Server::"x" && Server::"x" == resource && resource != Server::"y"',
    'resource in Server::"x" && resource in [Server::"y", Server::"x"] && !(resource in Server::"y")',
    "resource is Server && !(resource is File)",
    'principal == Agent::"a" && principal in Agent::"a" && principal in [Agent::"a", Agent::"b"] && principal is Agent',
    'action == Action::"tool:x.call" && action in [Action::"tool:x.call", Action::"fs.write"] && action != Action::"fs.write"',
    '[Server::"y", Server::"x"].contains(resource) && ![Server::"y"].contains(resource)',
    "(if context.field.dry then resource else resource) == resource",
    '(if context.field.dry then resource else resource) in Server::"x"',
    "(if context.field.dry then resource else resource) is Server",
    'resource has name && resource.name == "x"',
]
IN_FOLDERS = [
    'resource in Folder::"src" && resource in Folder::"." && !(resource in Folder::"lib")',
    'resource in [Folder::"lib", Folder::"src/a"] && !(resource in [Folder::"lib", Folder::"/"])',
    'resource is File in Folder::"src" && !(resource is File in Folder::"lib") && !(resource is Folder in Folder::"src")',
    'resource in File::"src/a/x.py" && !(resource in Folder::"src/a/x.py")',
    'resource.parts_folded.contains("src") && !resource.parts_folded.contains("sr")',
]
RAISING = [
    "context.field.amount + 9223372036854775807 == 0",
    "context.field.amount * 9223372036854775807 == 0",
    "context.evidence has run && context.evidence.run.score - 1 == 0",
    "context.evidence has run && -context.evidence.run.score == 0",
    "!(9223372036854775807 + 1 == 0)",
    "[1, 9223372036854775807 + 1].isEmpty()",
    "context.field.dry && 9223372036854775807 + 1 == 0",
    "!context.field.dry || 9223372036854775807 + 1 == 0",
]
EXTENSIONS = [
    'ip("10.0.0.1").isInRange(ip("10.0.0.0/8"))',
    'decimal("1.5").lessThan(decimal("2.5"))',
    'duration("1h").toSeconds() > 4',
]


def both(condition, request, clause="when"):
    policies = registry(
        [f"permit (principal, action == Action::{chr(34)}{request.action}{chr(34)}, resource) {clause} {{ {condition} }};"]
    )
    return policies.monitor(), CedarMonitor(policies, whole=True)


def never(*_given):
    raise AssertionError("Cedar was asked")


@pytest.mark.parametrize(("condition", "request_"), [*((c, ABOUT_CALL) for c in HOLDING), *((c, ABOUT_FILE) for c in IN_FOLDERS)])
def test_an_expression_holds_as_in_cedar_and_cedar_is_not_asked(condition, request_, monkeypatch):
    for clause in ("when", "unless"):
        own, whole = both(condition, request_, clause)
        expected = whole.decide(request_)
        assert isinstance(expected, Permitted if clause == "when" else Refused), expected
        with monkeypatch.context() as patch:
            patch.setattr("cxi.policy.monitor.is_authorized", never)
            assert own.decide(request_) == expected


@pytest.mark.parametrize("condition", RAISING)
def test_an_error_is_cedars_to_word_and_denies(condition):
    own, whole = both(condition, ABOUT_CALL)
    answer = own.decide(ABOUT_CALL)
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)
    assert answer == whole.decide(ABOUT_CALL)


@pytest.mark.parametrize("condition", EXTENSIONS)
def test_what_is_not_compiled_is_asked_of_cedar(condition):
    own, whole = both(condition, ABOUT_CALL)
    assert own.decide(ABOUT_CALL) == whole.decide(ABOUT_CALL) == Permitted(("p0",))
    with pytest.raises(Unsupported):
        compile_policy(own._policies[0].parsed)


def test_an_erroring_policy_denies_though_another_permits():
    condition = "context.field.amount + 9223372036854775807 == 0"
    policies = registry(
        [
            "permit (principal, action, resource);",
            f'forbid (principal, action == Action::"tool:x.call", resource) when {{ {condition} }};',
        ]
    )
    answer = policies.monitor().decide(ABOUT_CALL)
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)


@pytest.mark.parametrize(
    "condition",
    [
        " || ".join(f'context.field.path == "{number}"' for number in range(90)),
        f"{'(if context.field.dry then ' * 30}context.field.dry{' else false)' * 30}",
        "-(" * 45 + "context.field.amount" + ")" * 45 + " < 0",
    ],
)
def test_a_deep_condition_is_compiled_or_asked(condition):
    own, whole = both(condition, ABOUT_CALL)
    assert own.decide(ABOUT_CALL) == whole.decide(ABOUT_CALL)


def test_no_text_of_a_policy_becomes_code(monkeypatch):
    texts = ['\\"', "__import__", "k0", "{}", "')", "'''", "\\n"]
    for text in texts:
        own, whole = both(f'context.task.name == "{text}" || context.field.path like "*{text}*"', ABOUT_CALL)
        monkeypatch.setattr("cxi.policy.monitor.is_authorized", never)
        assert isinstance(own.decide(ABOUT_CALL), Refused)
        monkeypatch.undo()
        assert own.decide(ABOUT_CALL) == whole.decide(ABOUT_CALL)


def test_the_schema_of_these_tests_has_every_type():
    fields = SCHEMA[""]["actions"]["tool:x.call"]["appliesTo"]["context"]["attributes"]["field"]["attributes"]
    assert {of["type"] for of in fields.values()} == {"String", "Long", "Boolean", "Set", "Record"}
