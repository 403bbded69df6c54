"""What would a bash text really do? See `docs/effects-shell.md`.

- `read` reads a text whole (`syntax` is what it can hold), `second` has another reader agree.
- `run` goes every way through it over a `state`; `expand` makes fields of words, `builtin` and `program` know what commands do.
- `left` makes atoms of what the ways leave.
"""

from __future__ import annotations

from cxi.effects.shell.adapter import ShellAdapter

__all__ = ["ShellAdapter"]
