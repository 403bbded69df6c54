"""How is a grant revoked?"""

from __future__ import annotations

from cxi.ledger.base import Ledger
from cxi.manifest import Instant


def revoke_grant(ledger: Ledger, grant: str, now: Instant) -> None:
    """Nothing more from this grant, in any session."""
    ledger.revoke(grant=grant, person="operator", reason="enough", now=now)
