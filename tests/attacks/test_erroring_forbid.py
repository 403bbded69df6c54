"""Cedar drops a `forbid` that raises an error and then says Allow: an error must deny."""

import pytest
from cedarpy import Decision, is_authorized

from cxi.errors import Refused
from cxi.policy.base import Entity, Permitted, PolicyRequest
from cxi.policy.registry import PolicySource, load
from cxi.policy.schema import ToolSurface, make_schema
from cxi.policy.vocabulary import LONG

PERMIT = '@id("calls") permit (principal, action == Action::"tool:shop.buy", resource);'
# The validator cannot know that this overflows: a sum of two Longs is a Long.
FORBID = (
    '@id("no-large-sums") @text("Nothing above 1000 is bought.") forbid (principal, action == Action::"tool:shop.buy", resource)'
    "when { context.field.price + context.field.shipping > 1000 };"
)
LARGEST = 2**63 - 1


@pytest.fixture(scope="module")
def monitor():
    schema = make_schema(["buyer"], [ToolSurface("shop.buy", "Server", {"price": LONG, "shipping": LONG})], [], [])
    return load([PolicySource("shop.cedar", PERMIT + FORBID)], schema, agents=["buyer"]).monitor()


def buy(price, shipping):
    return PolicyRequest(
        "buyer",
        "tool:shop.buy",
        Entity("Server", "shop", {"name": "shop"}),
        (),
        {"field": {"price": price, "shipping": shipping}},
    )


def test_cedar_alone_would_allow_it():
    context = {"field": {"price": LARGEST, "shipping": LARGEST}}
    request = {
        "principal": 'Agent::"buyer"',
        "action": 'Action::"tool:shop.buy"',
        "resource": 'Server::"shop"',
        "context": context,
    }
    result = is_authorized(request, PERMIT + FORBID, [])
    assert result.decision is Decision.Allow
    assert result.diagnostics.errors


def test_a_forbid_that_raises_an_error_denies_and_is_named(monitor):
    answer = monitor.decide(buy(LARGEST, LARGEST))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)
    assert "no-large-sums" in answer.reasons[0].detail
    assert "shop.cedar:1" in answer.reasons[0].needs


def test_the_same_call_without_the_error_is_decided_by_the_policies(monitor):
    assert monitor.decide(buy(10, 5)) == Permitted(("calls",))
    answer = monitor.decide(buy(1000, 5))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_FORBIDS",)
    assert answer.reasons[0].needs == "Nothing above 1000 is bought."


def test_an_erroring_permit_beside_one_that_holds_denies_too():
    schema = make_schema(["buyer"], [ToolSurface("shop.buy", "Server", {"price": LONG, "shipping": LONG})], [], [])
    other = PERMIT + FORBID.replace("no-large-sums", "odd").replace("forbid", "permit", 1)
    answer = load([PolicySource("x", other)], schema, agents=["buyer"]).monitor().decide(buy(LARGEST, 1))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_ERROR",)
