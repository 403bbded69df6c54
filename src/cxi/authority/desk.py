"""Which calls wait for a person, and what was said of each?

- A refusal that a yes would cure waits as one open request an event key, and only so many a session: a flood asks nobody
  anything.
- An answer names the request *and* the digests of the call and of the display that the person saw. INVARIANT (bound-answer): one
  that names another call or display is no answer, whichever request it was delivered to, and the request it was delivered to is
  void: of two answers that were swapped neither does anything.
- A yes counts once a person, and `needs` persons are needed; a no of anyone is a no. INVARIANT (no-wins): a call that a person
  denied is refused, whatever grants there are, until a person approves that very call afterwards.
- Pure: a desk is a value, and each step gives the next one.

    >>> desk, _ = Desk().ask(pending, now=0.0)                                    # doctest: +SKIP
    >>> desk, yes = desk.answer(Answer("p-1", action, display, Verdict.GRANT, "uid:1000"), now=1.0)   # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from cxi.authority.approval import Approval
from cxi.canonical import Digest, digest
from cxi.errors import Code, Reason, Refused
from cxi.manifest import Instant

MOST: Final = 16  # open requests of a session
PATIENCE: Final = 900.0  # seconds that a request waits for its answer
SERVES: Final = 600.0  # seconds that a yes may be used in
MOST_DENIALS: Final = 1000  # that are remembered; the oldest go first


class Verdict(StrEnum):
    """What a person says."""

    GRANT = "grant"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for a person.

    Attributes:
        id: `p-…`.
        call: The refused call's id in the log.
        tool: The tool.
        session: Whose call it is.
        action: The action digest.
        effect: The effect commitment's digest.
        event: The event key.
        display: The exact text that the person is shown.
        risks: What is disclosed, one line each; they are in the display too.
        expires: When it is too late to answer.
        votes: The credentials that said yes so far.
    """

    id: str
    call: str
    tool: str
    session: str
    action: Digest
    effect: Digest
    event: Digest
    display: str
    risks: tuple[str, ...]
    expires: Instant
    votes: frozenset[str] = frozenset()

    @property
    def shown(self) -> Digest:
        """Digest of the display."""
        return digest(self.display)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came over the approver's channel.

    Attributes:
        pending: The request that it was delivered to.
        action: The action digest of the call that the person saw.
        shown: Digest of the display that the person saw.
        verdict: Yes or no.
        approver: The credential that the channel checked.
    """

    pending: str
    action: Digest
    shown: Digest
    verdict: Verdict
    approver: str


@dataclass(frozen=True, slots=True)
class Denial:
    """A person's no, to a call by its action or by its idempotency key.

    Attributes:
        action: The action digest, or empty.
        key: The idempotency key's digest, or empty.
        by: Who said it.
        at: When.
        agent: Whose call it was, where it was another session's that is of the same delegations; empty means the session's own.
    """

    action: Digest
    key: Digest
    by: str
    at: Instant
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A yes that needs further persons.

    Attributes:
        pending: The request, with the votes so far.
        missing: How many more are needed.
    """

    pending: Pending
    missing: int


@dataclass(frozen=True, slots=True)
class Desk:
    """The open requests and the denials of one session.

    Attributes:
        open: The requests that wait, oldest first.
        denials: What was denied, oldest first.
        needs: How many persons have to say yes.
    """

    open: tuple[Pending, ...] = ()
    denials: tuple[Denial, ...] = ()
    needs: int = 1

    def ask(self, pending: Pending, now: Instant) -> tuple[Desk, Pending | Refused]:
        """Put a request on the desk.

        Returns:
            The next desk, and the request that waits now: an equal one that waited already, or this one. `Refused` where the same
            event waits with another call or effect, where too many wait, or where a person denied the call.
        """
        desk = self.sweep(now)
        if desk.denied(pending.action, "", since=0.0) is not None:
            return desk, Refused.of(Code.CALL_DENIED, "a person said no to this call", where=pending.tool)
        for other in desk.open:
            if other.event == pending.event:
                if (other.action, other.effect, other.display) == (pending.action, pending.effect, pending.display):
                    return desk, other
                detail = f"`{other.id}` waits for an answer about the same event, with other contents"
                return desk, Refused.of(Code.APPROVAL_MISMATCH, detail, where=pending.tool)
        if len(desk.open) >= MOST:
            return desk, Refused.of(Code.TOO_LARGE, f"{MOST} requests wait for a person already", where=pending.tool)
        return replace(desk, open=(*desk.open, pending)), pending

    def answer(self, answer: Answer, now: Instant) -> tuple[Desk, Approval | Denial | Waiting | Refused]:
        """Take an answer.

        Returns:
            The next desk, and what the answer makes.
        """
        found = next((pending for pending in self.open if pending.id == answer.pending), None)
        if found is None:
            return self, Refused.of(Code.APPROVAL_MISMATCH, f"nothing waits under `{answer.pending}`", where=answer.pending)
        without = replace(self, open=tuple(pending for pending in self.open if pending is not found))
        if now >= found.expires:
            return without, Refused.of(Code.EXPIRED, f"`{found.id}` waited too long for its answer", where=found.id)
        if (answer.action, answer.shown) != (found.action, found.shown):
            detail = f"the answer is about another call or display than `{found.id}`, which is void now"
            return without, Refused.of(Code.APPROVAL_MISMATCH, detail, where=found.id)
        if answer.verdict is Verdict.DENY:
            denial = Denial(found.action, "", answer.approver, now)
            return without.deny(denial), denial
        votes = found.votes | {answer.approver}
        if len(votes) < self.needs:
            voted = replace(found, votes=votes)
            kept = tuple(voted if pending is found else pending for pending in self.open)
            return replace(self, open=kept), Waiting(voted, self.needs - len(votes))
        approval = Approval(
            id=found.id,
            action=found.action,
            effect=found.effect,
            display=found.shown,
            risks=digest(list(found.risks)),
            approver=",".join(sorted(votes)),
            session=found.session,
            expires=now + SERVES,
        )
        # The newest word about this very call counts.
        lifted = tuple(denial for denial in without.denials if denial.action != found.action)
        return replace(without, denials=lifted), approval

    def deny(self, denial: Denial) -> Desk:
        """Remember a no; what waits of the same call waits no longer."""
        kept = tuple(pending for pending in self.open if not denial.action or pending.action != denial.action)
        return replace(self, open=kept, denials=(*self.denials, denial)[-MOST_DENIALS:])

    def denied(self, action: Digest, key: Digest, *, since: Instant) -> Denial | None:
        """The denial of a call that was said at or after an instant."""
        for denial in reversed(self.denials):
            if denial.at >= since and ((denial.action and denial.action == action) or (denial.key and denial.key == key)):
                return denial
        return None

    def sweep(self, now: Instant) -> Desk:
        """Without what waited too long."""
        kept = tuple(pending for pending in self.open if now < pending.expires)
        return self if len(kept) == len(self.open) else replace(self, open=kept)


def denied_reason(denial: Denial, tool: str) -> Reason:
    """Why a denied call is refused."""
    return Reason(Code.CALL_DENIED, f"`{denial.by}` said no to this call", where=tool)
