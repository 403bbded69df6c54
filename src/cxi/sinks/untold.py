"""What is said where files do not tell, and git has to be asked."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias


class Untold(Enum):
    """The files do not tell."""

    ASK = "ask"


Told: TypeAlias = bytes | Untold | None  # None: git, too, would refuse
