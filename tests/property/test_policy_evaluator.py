"""What our own evaluator, checker and index answer is what Cedar answers over the whole set of policies."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi.policy import index
from cxi.policy.monitor import CedarMonitor
from policy_case import ASKED, alike, policies, request

seeds = st.integers(min_value=0, max_value=2**64)


def disagreements(seed, requests, few):
    """Draw a registry and requests, and give those that two monitors answer differently."""
    draw = Random(seed)
    about = draw.sample(list(ASKED), draw.choice([1, 2, 4]))
    registry = policies(draw, draw.choice([2, 6, 12]), about)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_FEW", few)
        own = registry.monitor()
    whole = CedarMonitor(registry, whole=True)
    asked = [request(draw, about) for _ in range(requests)]
    return [(one, own.decide(one), whole.decide(one)) for one in asked if not alike(own.decide(one), whole.decide(one))]


@given(seeds, st.sampled_from([0, 16]))
def test_the_monitor_answers_as_cedar_does_over_the_whole_set(seed, few):
    assert not disagreements(seed, 40, few)


@pytest.mark.slow
@settings(max_examples=1000)
@given(seeds, st.sampled_from([0, 16]))
def test_the_monitor_answers_as_cedar_does_over_many_sets(seed, few):
    assert not disagreements(seed, 100, few)
