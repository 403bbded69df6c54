"""Which values of the call does an adapter read?

- A contract maps an adapter's own names to its fields (`path: destination`) or to literals written `=text`.
- A list field has one value an item, in the order of the items (`files[2]` before `files[10]`).
- A name that is mapped to a field which the call lacks gives nothing; whether that is an error, the adapter says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cxi.canonical import JsonValue
from cxi.effects.base import Snapshot
from cxi.effects.place import locate
from cxi.effects.place import name as canonical
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall


@dataclass(frozen=True, slots=True)
class Given:
    """One value.

    Attributes:
        field: The concrete field, `files[0]`; empty for a literal.
        value: Its canonical value.
    """

    field: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class GivenPath:
    """One path.

    Attributes:
        field: The concrete field; empty for a literal.
        target: Canonical.
        path: Absolute.
    """

    field: str
    target: str
    path: str


def give(call: CanonicalCall, reference: str) -> tuple[Given, ...]:
    """The values of a contract's field, or of a literal written `=text`."""
    if reference.startswith("="):
        return (Given("", reference[1:]),)
    leaves = call.at(reference) or call.at(f"{reference}[]")
    return tuple(sorted((Given(leaf.path, leaf.value.canonical) for leaf in leaves), key=lambda item: _order(item.field)))


def give_text(call: CanonicalCall, inputs: Mapping[str, str], name: str) -> str | Refused | None:
    """The one text that is given under a name; None where there is none."""
    found = give(call, inputs[name]) if name in inputs else ()
    if not found or (len(found) == 1 and found[0].value is None):
        return None
    if len(found) > 1 or not isinstance(found[0].value, str):
        return Refused.of(Code.EFFECT_UNREADABLE, f"`{name}` is not one text", where=found[0].field or name)
    return found[0].value


def give_flag(call: CanonicalCall, inputs: Mapping[str, str], name: str) -> bool | Refused:
    """The flag that is given under a name; absent is false."""
    for item in give(call, inputs[name]) if name in inputs else ():
        if item.value in (True, "true"):
            return True
        if item.value not in (False, None, "false"):
            return Refused.of(Code.EFFECT_UNREADABLE, f"`{name}` is neither true nor false", where=item.field)
    return False


def give_paths(
    call: CanonicalCall, inputs: Mapping[str, str], names: tuple[str, ...], snapshot: Snapshot
) -> tuple[GivenPath, ...] | Refused:
    """All paths that are given under these names; at least one."""
    found: list[GivenPath] = []
    for name in names:
        for item in give(call, inputs[name]) if name in inputs else ():
            if not isinstance(item.value, str):
                return Refused.of(Code.EFFECT_UNREADABLE, f"`{name}` is not a path", where=item.field or name)
            path = locate(snapshot.root, item.value, where=item.field or name)
            if isinstance(path, Refused):
                return path
            found.append(GivenPath(item.field, canonical(snapshot.root, path), path))
    if not found:
        return Refused.of(Code.EFFECT_UNREADABLE, f"no `{names[0]}` is given", where=names[0])
    return tuple(found)


def give_path(call: CanonicalCall, inputs: Mapping[str, str], name: str, snapshot: Snapshot) -> GivenPath | Refused:
    """The one path that is given under a name."""
    found = give_paths(call, inputs, (name,), snapshot)
    if isinstance(found, Refused):
        return found
    if len(found) > 1:
        return Refused.of(Code.EFFECT_UNREADABLE, f"more than one `{name}` is given", where=found[1].field)
    return found[0]


def _order(field: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", field))
