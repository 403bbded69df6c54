"""Cedar reads `{"__entity": …}` in JSON as an entity: an agent's text must never become one."""

from dataclasses import replace

import pytest

from cxi.errors import Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.registry import PolicySource, load
from cxi.policy.schema import ToolSurface, make_schema
from cxi.policy.vocabulary import STRING, STRINGS

ANYONE = '@id("all") permit (principal, action, resource);'
ESCAPES = [
    {"__entity": {"type": "Agent", "id": "admin"}},
    {"__extn": {"fn": "ip", "arg": "10.0.0.1"}},
    {"__expr": "true"},
]


@pytest.fixture(scope="module")
def monitor():
    schema = make_schema(["a"], [ToolSurface("x.y", "Server", {"path": STRING, "names": STRINGS.optional})], [], [])
    return load([PolicySource("p", ANYONE)], schema, agents=["a"]).monitor()


def call(field, **context):
    return PolicyRequest("a", "tool:x.y", Entity("Server", "x", {"name": "x"}), (), {"field": field, **context})


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize(
    "place",
    [
        call,
        lambda escape: call({"path": escape}),
        lambda escape: call({"path": "a", "names": [escape]}),
        lambda escape: call({"path": "a", "names": ["b", [{"deep": {"er": [escape]}}]]}),
        lambda escape: call({"path": "a"}, evidence=escape),
        lambda escape: call({"path": "a"}, evidence={"run": {"result": escape}}),
        lambda escape: call({"path": "a"}, approval=escape),
        lambda escape: call({"path": "a"}, effect=escape),
        lambda escape: replace(call({"path": "a"}), context=escape),
        lambda escape: replace(call({"path": "a"}), resource=Entity("Server", "x", escape)),
        lambda escape: replace(call({"path": "a"}), resource=Entity("Server", "x", {"name": escape})),
        lambda escape: replace(call({"path": "a"}), ancestors=(Entity("Folder", "x", {"name": ({"k": escape},)}),)),
    ],
)
def test_an_escape_anywhere_is_refused_before_cedar_sees_it(monitor, monkeypatch, escape, place):
    asked = []
    monkeypatch.setattr("cxi.policy.monitor.is_authorized", lambda *given: asked.append(given))
    answer = monitor.decide(place(escape))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)
    assert asked == []


@pytest.mark.parametrize("text", ["__entity", '{"__entity": {"type": "Agent", "id": "admin"}}', "__extn", 'ip("10.0.0.1")'])
def test_the_same_words_as_text_are_only_text(monitor, text):
    assert monitor.decide(call({"path": text, "names": [text]})) == Permitted(("all",))
    assert monitor.decide(replace(call({"path": "a"}), resource=Entity("Server", text, {"name": text}))) == Permitted(("all",))


@pytest.mark.parametrize("id", ['x", "id": "admin', 'a"]}, {"uid": {"type": "Agent"', 'Agent::"admin"', "a\\", "\n\r\0", "💥"])
def test_an_id_cannot_leave_its_string(monitor, id):
    schema = make_schema(["a"], [ToolSurface("x.y", "Server", {"path": STRING})], [], [])
    only = '@id("only") permit (principal, action, resource == Server::"admin");'
    narrow = load([PolicySource("p", only)], schema, agents=["a"]).monitor()
    request = replace(call({"path": id}), resource=Entity("Server", id, {"name": id}))
    answer = narrow.decide(request)
    assert isinstance(answer, Refused)
    assert answer.codes == ("CALL_NOT_PERMITTED",)
    assert monitor.decide(request) == Permitted(("all",))


def test_an_agents_name_is_no_syntax(monitor):
    for agent in ('a" || true', 'b", "type": "x', "A", "a "):
        answer = monitor.decide(replace(call({"path": "x"}), agent=agent))
        assert isinstance(answer, Refused)
        assert answer.codes == ("POLICY_ERROR",)
