"""How does a value enter the log without being readable there?

- `commit(value, salt)` is the digest of value and salt together: it binds (SHA-256) and, with a random salt of 16 bytes or more
  that is
  kept elsewhere, it hides values that could be guessed.
- An `Opening` is what shows the value later; openings live in an erasable store (`cxi.log.opening`). With its opening gone a
  commitment says nothing more, and the chain still verifies.

    >>> opening = conceal("src/tax.py", bytes(16))
    >>> opens(opening, opening.commitment)
    True
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from cxi.canonical import Digest, JsonValue, canonicalize, compose, digest_bytes

SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Opening:
    """What shows a committed value.

    Attributes:
        commitment: The commitment.
        salt: Its salt.
        canonical: The value's canonical bytes.
    """

    commitment: Digest
    salt: bytes
    canonical: bytes

    @property
    def value(self) -> JsonValue:
        """The value."""
        found: JsonValue = json.loads(self.canonical)
        return found


def commit(value: JsonValue, salt: bytes) -> Digest:
    """The commitment to a value.

    Args:
        value: Any JSON value; finite floats are allowed.
        salt: Random, at least 16 bytes, used once.

    Raises:
        ValueError: where the salt is too short to hide anything.
        MalformedError: where the value is no JSON.
    """
    return _commit(canonicalize(value, floats=True), salt)


def conceal(value: JsonValue, salt: bytes) -> Opening:
    """Commit to a value and keep what opens it.

    Raises:
        ValueError: as `commit`.
        MalformedError: as `commit`.
    """
    return conceal_bytes(canonicalize(value, floats=True), salt)


def conceal_bytes(canonical: bytes, salt: bytes) -> Opening:
    """`conceal` for a value whose canonical bytes are known.

    Raises:
        ValueError: as `commit`.
    """
    return Opening(_commit(canonical, salt), salt, canonical)


def opens(opening: Opening, commitment: Digest) -> bool:
    """Whether the opening is of this commitment. Public data: nothing is compared in secret."""
    if opening.commitment != commitment or len(opening.salt) < SALT_BYTES:
        return False
    return _commit(opening.canonical, opening.salt) == commitment


def _commit(canonical: bytes, salt: bytes) -> Digest:
    if len(salt) < SALT_BYTES:
        raise ValueError(f"a salt has at least {SALT_BYTES} bytes")
    return digest_bytes(compose({"salt": b'"%b"' % salt.hex().encode(), "value": canonical}))
