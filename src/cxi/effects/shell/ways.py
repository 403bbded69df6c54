"""How do the ways through a text part and join?"""

from __future__ import annotations

from typing import Final

from cxi.effects.shell.state import LIKELY, State
from cxi.effects.shell.stop import KNOW, Stop

WAYS: Final = 64  # ways through a text at once


def split(state: State, *, ask: bool) -> tuple[list[State], list[State]]:
    """The ways in which a status is success, and those in which it is not.

    Args:
        state: The way; it goes on in one of the two.
        ask: Whether a likely success may be none.
    """
    if state.status == 0:
        return [state], []
    if state.status == LIKELY:
        if not ask:
            return [state], []
    elif state.status is not None:
        return [], [state]
    other = state.copy()
    state.status, other.status = 0, 1
    return [state], [other]


def merge(states: list[State]) -> list[State]:
    """Ways without those that are equal.

    Raises:
        Stop: there are too many.
    """
    if len(states) < 2:
        return states
    kept = list({state.key(): state for state in states}.values())
    if len(kept) > WAYS:
        raise Stop(KNOW, f"more than {WAYS} ways through the text", needs="split the text into several calls")
    return kept


def restore(outer: State, inner: State) -> State:
    """The shell as it was, with what a subshell did to the world."""
    back = outer.copy()
    # The inner way ends here, so that what it did can be taken over as it is.
    back.disk, back.acts, back.buffers, back.listed = inner.disk, inner.acts, inner.buffers, inner.listed
    back.opaque, back.shaken = inner.opaque, inner.shaken
    back.looked, back.changed = inner.looked, inner.changed
    return back
