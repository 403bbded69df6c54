"""What does not conform is never answered by our own evaluator, and Cedar refuses it."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from cxi.errors import Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.checker import Checker, Unfit
from cxi.policy.monitor import ABSENT, CedarMonitor
from policy_case import SCHEMA, registry

INNER = {"deep": "d", "flag": True}
FIELD = {"path": "p", "amount": 1, "dry": False, "names": [], "numbers": [], "inner": INNER}
CALL = PolicyRequest("a", "tool:x.call", Entity("Server", "x", {"name": "x"}), (), {"field": FIELD})
PATHS = {
    "path": "a",
    "name": "a",
    "extension": "",
    "inside_root": True,
    "case_sensitive": True,
    "path_folded": "a",
    "name_folded": "a",
}
ATTRIBUTES = {**PATHS, "parts_folded": ["a"]}
UPWARD = (("Folder", "src"),)
FILE = PolicyRequest(
    "a", "fs.write", Entity("File", "a", ATTRIBUTES, UPWARD), (), {"effect": {"tool": "t", "assurance": "atomic"}}
)

ANYONE = registry(["permit (principal, action, resource);"])
WHOLE = CedarMonitor(ANYONE, whole=True)


def check(request):
    checker = Checker.of(SCHEMA, request.action)
    assert checker is not None
    return checker.check(request, {**ABSENT, **request.context})


def field(**given):
    return replace(CALL, context={"field": {**FIELD, **given}})


def folder(id, *parents, **given):
    return Entity("Folder", id, {**ATTRIBUTES, **given}, tuple(("Folder", parent) for parent in parents))


CONFORMING = [
    CALL,
    FILE,
    field(limit=-(2**63), amount=2**63 - 1, force=True, tags=("a",), other={**INNER, "count": 0}),
    field(path="\U0001f600\0\u202e", names=["é"], records=[{"key": "k", "value": 1}]),
    replace(CALL, context=MappingProxyType({"field": MappingProxyType({**FIELD, "inner": MappingProxyType(INNER)})})),
    replace(FILE, ancestors=(folder("src", "top"), folder("top"))),
    replace(FILE, resource=replace(FILE.resource, parents=())),
]
NOT_CONFORMING = [
    replace(CALL, agent="c"),
    replace(CALL, resource=Entity("Server", "\ud800", {"name": "x"})),
    replace(CALL, resource=Entity("Server", "x", {})),
    replace(CALL, resource=Entity("Server", "x", {"name": "x", "more": 1})),
    replace(CALL, resource=Entity("File", "x", ATTRIBUTES)),
    replace(CALL, resource=Entity("Nosuch", "x", {})),
    replace(CALL, resource=Entity("Server", "x", {"name": "x"}, (("Server", "y"),))),
    replace(CALL, context={}),
    replace(CALL, context={"field": FIELD, "approval": {}}),
    field(path="\ud800"),
    field(path=None),
    field(path=1),
    field(amount=True),
    field(amount=1.0),
    field(amount=2**63),
    field(amount=-(2**63) - 1),
    field(dry=0),
    field(names="a"),
    field(names=["a", 1]),
    field(names={"a": 1}),
    field(names=["\udfff"]),
    field(numbers=[1, True]),
    field(inner={**INNER, "more": 1}),
    field(inner={"deep": "d"}),
    field(inner={**INNER, "count": "1"}),
    field(records=[{"key": "k"}]),
    field(nosuch=1),
    field(inner={"__entity": {"type": "File", "id": "a"}}),
    replace(FILE, resource=replace(FILE.resource, parents=(("File", "a"),))),
    replace(FILE, resource=replace(FILE.resource, parents=(("File", "b"),))),
    replace(FILE, resource=replace(FILE.resource, parents=(("Folder", "\ud800"),))),
    replace(FILE, ancestors=(folder("src", "top"), folder("top", "src"))),
    replace(FILE, ancestors=(folder("one", "two"), folder("two", "one"))),
    replace(FILE, ancestors=(folder("top", "top"),)),
    replace(FILE, ancestors=(folder("src", "top"), folder("src", "end"))),
    replace(FILE, ancestors=(folder("src", "top", name=1),)),
    replace(FILE, ancestors=(folder("src", "\ud800"),)),
    replace(FILE, ancestors=(folder("\ud800", "top"),)),
    replace(FILE, ancestors=(Entity("Folder", "src", ATTRIBUTES, (("File", "a"),)),)),
]


@pytest.mark.parametrize("request_", CONFORMING)
def test_what_conforms_is_answered_as_by_cedar_and_cedar_is_not_asked(request_, monkeypatch):
    check(request_)
    monitor = ANYONE.monitor()
    with monkeypatch.context() as patch:
        patch.setattr("cxi.policy.monitor.is_authorized", lambda *_given: pytest.fail("Cedar was asked"))
        assert monitor.decide(request_) == Permitted(("p0",))
    assert WHOLE.decide(request_) == Permitted(("p0",))


@pytest.mark.parametrize("request_", NOT_CONFORMING)
def test_what_does_not_conform_is_refused(request_):
    with pytest.raises((Unfit, KeyError, TypeError)):
        check(request_)
    answer = ANYONE.monitor().decide(request_)
    assert isinstance(answer, Refused)
    assert answer.codes == WHOLE.decide(request_).codes == ("POLICY_ERROR",)


def test_a_resource_is_in_itself_and_in_all_above_it():
    request = replace(FILE, ancestors=(folder("src", "top"), folder("top", "end", "."), folder("aside", "other")))
    assert check(request) == {("File", "a"), *(("Folder", name) for name in ("src", "top", "end", "."))}


def test_a_schema_that_is_not_known_whole_has_no_checker():
    for spoiled in ({"type": "Extension", "name": "ipaddr"}, {"type": "Entity", "name": "File"}, {"type": "Nosuch"}):
        action = SCHEMA[""]["actions"]["fs.write"]
        context = {**action["appliesTo"]["context"]["attributes"], "more": spoiled}
        applies = {**action["appliesTo"], "context": {"type": "Record", "attributes": context}}
        schema = {"": {**SCHEMA[""], "actions": {"fs.write": {**action, "appliesTo": applies}}}}
        assert Checker.of(schema, "fs.write") is None
    grouped = {"": {**SCHEMA[""], "actions": {"fs.write": {**SCHEMA[""]["actions"]["fs.write"], "memberOf": [{"id": "fs"}]}}}}
    assert Checker.of(grouped, "fs.write") is None
