"""What may a command's own reader ask of the machine that runs it? Apart, so that the two need not know each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cxi.effects.shell.field import Field
from cxi.effects.shell.state import State
from cxi.effects.shell.syntax import Script


class Machine(Protocol):
    """See `cxi.effects.shell.run.Machine`."""

    def capture(self, state: State, script: Script) -> bytes | None: ...

    def script(self, states: Sequence[State], script: Script) -> list[State]:
        """Every way through a list of commands."""
        ...

    def invoke(self, state: State, words: list[Field], *, functions: bool = True, builtins: bool = True) -> list[State]:
        """Run one command by its words."""
        ...
