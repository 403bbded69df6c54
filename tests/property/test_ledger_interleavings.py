"""Every interleaving of small worlds keeps the ledger's invariants, and without any one rule some invariant breaks."""

from __future__ import annotations

import pytest

from cxi.lab.interleavings import Explored, bounds, explore, run, without
from cxi.ledger.model import EXPECTED, Invariant, Rule


def whole(explored: Explored) -> None:
    print(f"{explored.states:,} states, {explored.transitions:,} transitions")
    assert explored.broken == {}


def test_three_actors_and_three_capabilities_break_nothing_in_any_order() -> None:
    explored = explore(bounds(capabilities=3, actors=3, ticks=0, power_cuts=0))
    whole(explored)
    assert explored.states > 40_000


def test_time_power_cuts_and_two_deliveries_break_nothing_in_any_order() -> None:
    whole(explore(bounds(capabilities=2, actors=3)))


@pytest.mark.slow
def test_three_actors_with_time_and_power_cuts_break_nothing_in_any_order() -> None:
    whole(explore(bounds(capabilities=3, actors=3)))


def test_who_is_called_which_changes_nothing() -> None:
    named = explore(bounds(capabilities=2, actors=3, ticks=0, power_cuts=0), symmetry=False)
    same = explore(bounds(capabilities=2, actors=3, ticks=0, power_cuts=0))
    whole(named)
    whole(same)
    assert named.states > same.states


@pytest.mark.parametrize("rule", Rule)
def test_without_one_rule_the_invariant_that_rests_on_it_breaks(rule: Rule) -> None:
    assert without(rule) is not None


def test_every_rule_has_an_invariant_and_every_invariant_a_rule() -> None:
    assert set(EXPECTED) == set(Rule)
    assert set(EXPECTED.values()) == set(Invariant)


def test_the_experiment_counts_what_it_saw() -> None:
    result = run(bounds(capabilities=1, actors=2))
    assert (result["ok"], result["violations"]) == (True, [])
    assert result["denominators"]["transitions"] > result["denominators"]["states"] > 500
    assert all(row["by"] for row in result["rules"])
