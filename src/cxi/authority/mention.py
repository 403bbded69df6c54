"""What does the request name, as the world stands now?

- Reading a request is pure but for what its types look up in the view (whether a file of that name is there), and a session asks
  again at each call. So a reading is kept with every answer that it looked up, and holds while the view gives the same answers.
- INVARIANT (asked-again): each lookup is made anew through the view that is handed in, and so enters its read set, whether the
  reading is kept or made.
- INVARIANT (shown-is-compared): a type is shown of an entry exactly what is compared: its kind and a link's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeAlias

from cxi.authority.request import Candidate, named
from cxi.provenance import TrustedRequest
from cxi.values.base import Entry, EntryKind, Root, ValueType, View

_KEPT: Final = 256  # readings: one a request and list of types


_Shown: TypeAlias = tuple[EntryKind, str]


@dataclass(frozen=True, slots=True)
class _Watch:
    """A view that remembers its answers."""

    view: View
    entries: dict[str, _Shown] = field(default_factory=dict)
    listed: dict[str, tuple[str, ...] | None] = field(default_factory=dict)

    def entry(self, path: str) -> Entry:
        entry = self.view.entry(path)
        kind, target = self.entries.setdefault(path, (entry.kind, entry.target))
        return Entry(kind, target=target)

    def names(self, path: str) -> tuple[str, ...] | None:
        return self.listed.setdefault(path, self.view.names(path))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was named, and what was looked up on the way."""

    found: tuple[Candidate, ...]
    entries: Mapping[str, _Shown]
    listed: Mapping[str, tuple[str, ...] | None]

    def holds(self, view: View) -> bool:
        for path, (kind, target) in self.entries.items():
            entry = view.entry(path)
            if entry.kind is not kind or entry.target != target:
                return False
        return all(view.names(path) == names for path, names in self.listed.items())


@dataclass(slots=True)
class _Slot:
    """Where the last reading is kept."""

    reading: _Reading | None = None


def mentioned(request: TrustedRequest | None, types: Sequence[ValueType], root: Root) -> tuple[Candidate, ...]:
    """As `cxi.authority.request.named`, whose answer it gives; a reading that still holds is not made again."""
    if request is None:
        return ()
    texts = tuple(segment.text for segment in request.segments)
    slot = _slot(texts, tuple(types), root.path, root.case_sensitive, root.normalizes)
    kept = slot.reading
    if kept is not None and kept.holds(root.view):
        return kept.found
    watch = _Watch(root.view)
    found = named(request, types, replace(root, view=watch))
    slot.reading = _Reading(found, watch.entries, watch.listed)
    return found


@lru_cache(maxsize=_KEPT)
def _slot(
    texts: tuple[str, ...],  # noqa: ARG001  # all of these are the key
    types: tuple[ValueType, ...],  # noqa: ARG001
    root: str,  # noqa: ARG001
    case_sensitive: bool,  # noqa: ARG001
    normalizes: bool,  # noqa: ARG001
) -> _Slot:
    return _Slot()
