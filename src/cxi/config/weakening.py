"""What did the configuration take away from what a pack says of a tool?

- A pack is written with a server's tools in view; what is laid over it may restrict freely, and is counted where it loosens.
- Looser is: a sink that is none any more, an effect that is gone or planned from less, a protected or fixed field that became
  free, was dropped, or may come from anyone. A bounded choice is a concession of its own, and is named as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cxi.authority.contract import AdapterEffect, CallEffect, EffectContract, ListedEffect, NoEffect, Origin, ToolContract
from cxi.manifest import Role

_BOUND: Final = frozenset({Role.PROTECTED, Role.FIXED})


def weaken(before: ToolContract, after: ToolContract) -> tuple[str, ...]:
    """What is looser in a contract than it was, a text for each; empty where nothing is.

    Args:
        before: As the pack has it.
        after: As it is with the configuration laid over.
    """
    return tuple(_differ(before, after))


def _differ(before: ToolContract, after: ToolContract) -> Iterator[str]:
    name = after.name
    if before.sink and not after.sink:
        yield f"`{name}` is a sink in its pack, and none here"
    if _lost(before.effect, after.effect):
        yield f"the effect of `{name}` is less than in its pack"
    for path, field in before.fields.items():
        now = after.fields.get(path)
        if field.role in _BOUND and (now is None or now.role not in _BOUND):
            yield f"`{name}.{path}` is {field.role} in its pack, and {'dropped' if now is None else now.role} here"
        elif now is not None and Origin.ANYONE in now.origins and Origin.ANYONE not in field.origins:
            yield f"`{name}.{path}` may come from anyone here, and not in its pack"


def _lost(before: EffectContract, after: EffectContract) -> bool:
    match before, after:
        case NoEffect(), _:
            return False
        case CallEffect(), _:
            return isinstance(after, NoEffect)
        case ListedEffect(), ListedEffect():
            return not set(before.atoms) <= set(after.atoms)
        case AdapterEffect(), AdapterEffect():
            return before.adapter != after.adapter or not before.inputs.items() <= after.inputs.items()
        case _:
            return True
