"""Was the very same call decided before, and does everything that it was decided by still stand?

- Only for calls that are no sinks. `Gate.decide` is pure: what it is given, and what the world answers to its questions, is all
  that it can depend on. So a decision that is kept with both holds while both are the same.
- INVARIANT (asked-again): every question that the decision asked of the world is asked of it again, now, and the whole answer is
  compared: which file an entry is (device and inode) as well, which a plan's digest leaves out.
- What depends on time, or is spent, is not kept: a session with evidence or approvals, a field that a release may fill, a key.
- Nothing is forgotten by time; of decisions only the newest `KEPT` are kept, and none that rests on a long answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from cxi.authority.contract import Origin
from cxi.canonical import canonicalize
from cxi.effects.base import World
from cxi.effects.snapshot import Answer, Question, ask
from cxi.errors import MalformedError
from cxi.gate import Cleared, Proposal, Standing, ToolPin
from cxi.values.base import Entry

KEPT: Final = 512
LONGEST: Final = 64 * 1024  # bytes of an answer that is kept to be compared


@dataclass(frozen=True, slots=True)
class _Kept:
    """A decision with all that it was made by."""

    decision: Cleared
    standing: Standing
    pin: ToolPin
    answers: Mapping[Question, Answer]


class Recall:
    """The decisions of one session that may be made again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bytes], _Kept] = {}

    def find(self, proposal: Proposal, standing: Standing, pin: ToolPin | None, world: World) -> Cleared | None:
        """The decision about the same call, where it would be made again; None where it has to be made.

        Args:
            proposal: What is asked.
            standing: The session, now.
            pin: What the lock says of the tool, now.
            world: The world, now.
        """
        key = _name(proposal)
        kept = self._kept.get(key) if key is not None else None
        if kept is None or kept.pin is not pin or not _is_same(kept.standing, standing):
            return None
        if not all(_holds(question, answer, world) for question, answer in kept.answers.items()):
            return None
        return replace(kept.decision, proposal=proposal)

    def keep(self, decision: Cleared, standing: Standing, pin: ToolPin | None, answers: Mapping[Question, Answer]) -> None:
        """Keep a decision, where it can be made again from what is the same."""
        key = _name(decision.proposal)
        if key is None or pin is None or decision.approval or not _is_lasting(decision, standing):
            return
        if any(isinstance(answer, bytes) and len(answer) > LONGEST for answer in answers.values()):
            return
        self._kept.pop(key, None)
        while len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Kept(decision, replace(standing, segments=()), pin, dict(answers))


def _name(proposal: Proposal) -> tuple[str, bytes] | None:
    """The call's name; None where it has a key of its own, or is no JSON."""
    if proposal.idempotency_key:
        return None
    try:
        return proposal.tool, canonicalize(proposal.arguments)
    except MalformedError:  # floats among it: such a call is decided each time
        return None


def _is_lasting(decision: Cleared, standing: Standing) -> bool:
    releasable = any(Origin.RELEASE in entry.origins for entry in decision.contract.fields.values())
    return not standing.evidence and not standing.approvals and not (releasable and standing.releases)


def _is_same(one: Standing, other: Standing) -> bool:
    """Whether two states of the session are the same to a call that is no sink; untrusted segments authorize nothing."""
    return (
        one.request is other.request
        and one.task == other.task
        and one.epoch == other.epoch
        and one.state is other.state
        and one.principal is other.principal
        and one.releases is other.releases
        and other.ended is None
        and not other.evidence
        and not other.approvals
        and one.denials is other.denials
    )


def _holds(question: Question, known: Answer, world: World) -> bool:
    answer = ask(world, question)
    if isinstance(answer, Entry) and isinstance(known, Entry):
        return (
            answer.inode == known.inode
            and answer.kind is known.kind
            and answer.mode == known.mode
            and answer.links == known.links
            and answer.device == known.device
            and answer.target == known.target
        )
    return type(answer) is type(known) and answer == known
