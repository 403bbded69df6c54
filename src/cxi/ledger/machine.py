"""Which state follows, when this happens to a capability?

                 consume              settled: done, person: done
      minted ──────────────► leased ──────────────────────────────► done
       │  │                  │ │ ▲
       │  │ revoke           │ │ └─ revoke, expire: what was launched runs to its outcome
       │  └──────► revoked   │ └─ settled: failed ────────────────► failed
       │ expire              │                                        ▲
       └─────────► expired   │ settled: unknown, writer gone          │ person: failed
                             ▼                                        │
                      outcome_unknown ────────────────────────────────┘
                             │ └─ person: done ───────────────────► done
                             └─── person: released ───────────────► released

- Pure. A step that the diagram lacks is `Refused`, with the code of the state that is in the way.
- `done`, `failed`, `released`, `revoked` and `expired` are final: nothing leaves them.
- `leased` and `outcome_unknown` block their occurrence key (`blocks`).

    >>> step(State.MINTED, Event.CONSUME)
    <State.LEASED: 'leased'>
    >>> step(State.DONE, Event.CONSUME).codes
    ('CAPABILITY_USED',)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cxi.errors import Code, Refused
from cxi.ledger.base import State


class Event(StrEnum):
    """What can happen to a capability."""

    CONSUME = "consume"
    SETTLED_DONE = "settled: done"
    SETTLED_FAILED = "settled: failed"
    SETTLED_UNKNOWN = "settled: unknown"
    WRITER_GONE = "writer gone"
    PERSON_DONE = "person: done"
    PERSON_FAILED = "person: failed"
    PERSON_RELEASED = "person: released"
    REVOKE = "revoke"
    EXPIRE = "expire"


STEPS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        (State.MINTED, Event.CONSUME): State.LEASED,
        (State.MINTED, Event.REVOKE): State.REVOKED,
        (State.MINTED, Event.EXPIRE): State.EXPIRED,
        (State.LEASED, Event.SETTLED_DONE): State.DONE,
        (State.LEASED, Event.SETTLED_FAILED): State.FAILED,
        (State.LEASED, Event.SETTLED_UNKNOWN): State.OUTCOME_UNKNOWN,
        (State.LEASED, Event.WRITER_GONE): State.OUTCOME_UNKNOWN,
        (State.LEASED, Event.REVOKE): State.LEASED,
        (State.LEASED, Event.EXPIRE): State.LEASED,
        (State.OUTCOME_UNKNOWN, Event.PERSON_DONE): State.DONE,
        (State.OUTCOME_UNKNOWN, Event.PERSON_FAILED): State.FAILED,
        (State.OUTCOME_UNKNOWN, Event.PERSON_RELEASED): State.RELEASED,
    }
)

SETTLEMENTS: Final[Mapping[State, Event]] = MappingProxyType(
    {
        State.DONE: Event.SETTLED_DONE,
        State.FAILED: Event.SETTLED_FAILED,
        State.OUTCOME_UNKNOWN: Event.SETTLED_UNKNOWN,
    }
)

PERSONS: Final[Mapping[State, Event]] = MappingProxyType(
    {
        State.DONE: Event.PERSON_DONE,
        State.FAILED: Event.PERSON_FAILED,
        State.RELEASED: Event.PERSON_RELEASED,
    }
)

_IN_THE_WAY: Final[Mapping[State, Code]] = MappingProxyType(
    {
        State.LEASED: Code.IN_FLIGHT,
        State.OUTCOME_UNKNOWN: Code.OUTCOME_UNKNOWN,
        State.REVOKED: Code.REVOKED,
        State.EXPIRED: Code.EXPIRED,
    }
)


def step(state: State, event: Event) -> State | Refused:
    """The state after an event, or why the event cannot happen in this state."""
    following = STEPS.get((state, event))
    if following is not None:
        return following
    return Refused.of(_IN_THE_WAY.get(state, Code.CAPABILITY_USED), f"`{event}` cannot follow `{state}`")


def blocks(state: State) -> Code | None:
    """Why an equal event must wait while a call is in this state; None where it need not."""
    return _IN_THE_WAY[state] if state in (State.LEASED, State.OUTCOME_UNKNOWN) else None


def keeps_key(state: State) -> bool:
    """Whether a call in this state still holds its idempotency key: a failed or released one gave it back."""
    return state not in (State.FAILED, State.RELEASED)
