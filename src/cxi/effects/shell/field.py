"""What is one word of a command, once it is expanded?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


class Found(str):
    """A name that a glob found."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """A field of which only the beginning is known.

    Attributes:
        prefix: What it certainly begins with.
        many: Whether it may be any number of fields.
        why: What is not known.
    """

    prefix: str
    many: bool
    why: str


Field: TypeAlias = str | Hole
