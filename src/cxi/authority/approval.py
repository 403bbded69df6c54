"""Which exact call did a person say yes to?

- An approval binds the action digest, the effect commitment, the exact display and the risks that were disclosed; any change
  voids it. One use. It never arrives over the agent's own channel.
- It gives authority to the fields that it shows, and it is a grant for one event.
"""

from __future__ import annotations

from dataclasses import dataclass

from cxi.canonical import Digest
from cxi.errors import Code, Reason
from cxi.manifest import Instant


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's yes.

    Attributes:
        id: Its name in the ledger; spent once.
        action: The action digest that was shown.
        effect: The effect commitment's digest that was shown.
        display: Digest of the exact text that was shown.
        risks: Digest of the risks disclosed.
        approver: The credential's id that said yes.
        session: The session that it is for.
        expires: When it ends.
    """

    id: str
    action: Digest
    effect: Digest
    display: Digest
    risks: Digest
    approver: str
    session: str
    expires: Instant

    def holds(self, action: Digest, effect: Digest, session: str, now: Instant) -> Reason | None:
        """None where it covers exactly this call and effect; else why not."""
        if self.session != session or self.action != action:
            return Reason(Code.APPROVAL_MISMATCH, f"approval `{self.id}` was given for another call")
        if self.effect != effect:
            return Reason(Code.SNAPSHOT_CHANGED, f"approval `{self.id}` was given for another effect of this call")
        if now >= self.expires:
            return Reason(Code.EXPIRED, f"approval `{self.id}` has expired")
        return None
