"""The state machine is total, and final states are final."""

from __future__ import annotations

import itertools

import pytest

from cxi.errors import Refused
from cxi.ledger.base import State
from cxi.ledger.machine import PERSONS, SETTLEMENTS, STEPS, Event, blocks, keeps_key, step

FINAL = {State.DONE, State.FAILED, State.RELEASED, State.REVOKED, State.EXPIRED}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_event_in_every_state_has_an_answer(state: State, event: Event) -> None:
    answer = step(state, event)
    assert isinstance(answer, State if (state, event) in STEPS else Refused)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_nothing_leaves_a_final_state(state: State) -> None:
    assert all(isinstance(step(state, event), Refused) for event in Event)


def test_every_state_is_reached_from_minted() -> None:
    reached = {State.MINTED}
    for _ in State:
        reached |= {after for (before, _), after in STEPS.items() if before in reached}
    assert reached == set(State)


def test_a_leased_call_is_neither_revoked_nor_expired() -> None:
    assert step(State.LEASED, Event.REVOKE) is State.LEASED
    assert step(State.LEASED, Event.EXPIRE) is State.LEASED


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.LEASED, "IN_FLIGHT"),
        (State.OUTCOME_UNKNOWN, "OUTCOME_UNKNOWN"),
        (State.DONE, "CAPABILITY_USED"),
        (State.FAILED, "CAPABILITY_USED"),
        (State.RELEASED, "CAPABILITY_USED"),
        (State.REVOKED, "REVOKED"),
        (State.EXPIRED, "EXPIRED"),
    ],
)
def test_a_second_consume_is_refused_by_the_state_that_is_in_the_way(state: State, code: str) -> None:
    answer = step(state, Event.CONSUME)
    assert isinstance(answer, Refused)
    assert answer.codes == (code,)


def test_only_open_states_block_and_only_failed_and_released_give_the_key_back() -> None:
    assert {state for state in State if blocks(state)} == {State.LEASED, State.OUTCOME_UNKNOWN}
    assert {state for state in State if not keeps_key(state)} == {State.FAILED, State.RELEASED}


def test_settlements_and_persons_end_where_their_names_say() -> None:
    assert all(step(State.LEASED, event) is state for state, event in SETTLEMENTS.items())
    assert all(step(State.OUTCOME_UNKNOWN, event) is state for state, event in PERSONS.items())
