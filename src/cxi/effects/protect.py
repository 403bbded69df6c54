"""Would an effect touch CXI's own files?

- No policy lifts this (design, section 0). A protected path is of kind `write` (no atom but a read may touch it) or `any` (keys,
  ledger, log, openings, the control socket, the state folder: nothing may).
- An atom touches a protected path if it is at it or below it, however the names are spelled (folded case, any Unicode form), by
  way of links, or by another name of the same file (device and inode); if it changes a folder above it; if its glob could cover
  it; if it makes a link to it.
- Reading a folder above a protected path shows names only, and is no touch.

    >>> own = observe({"/srv/repo/cxi.yaml": "write"}, snapshot)            # doctest: +SKIP
    >>> [str(reason.code) for reason in touches(effect, own, snapshot)]     # doctest: +SKIP
    ['PATH_PROTECTED']
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from cxi.effects.base import Atom, Effect, Snapshot
from cxi.effects.place import folded, follow, join, locate
from cxi.errors import Code, Reason, Refused
from cxi.values.base import View

Protection: TypeAlias = Literal["write", "any"]
Identity: TypeAlias = tuple[int, int]  # (device, inode)
Parts: TypeAlias = tuple[str, ...]  # a path's folded components

_PATH_KINDS: Final = ("fs.", "git.index", "git.hook", "git.config")
_GLOB: Final = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """CXI's own files.

    Attributes:
        paths: Absolute paths to their kind. A folder stands for all that it holds.
        identities: (device, inode) of those that exist, to their kind.
    """

    paths: Mapping[str, Protection] = field(default_factory=lambda: MappingProxyType({}))
    identities: Mapping[Identity, Protection] = field(default_factory=lambda: MappingProxyType({}))
    # Worked out once: by folded components, the paths themselves, and the folders above them with one of them each.
    _at: Mapping[Parts, tuple[str, Protection]] = field(init=False, repr=False, compare=False)
    _above: Mapping[Parts, str] = field(init=False, repr=False, compare=False)
    _above_any: Mapping[Parts, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at: dict[Parts, tuple[str, Protection]] = {}
        above: dict[Parts, str] = {}
        above_any: dict[Parts, str] = {}
        for path, kind in self.paths.items():
            parts = folded(path)
            if at.get(parts, (path, "write"))[1] == "write":
                at[parts] = (path, kind)
            for count in range(len(parts) + 1):
                above.setdefault(parts[:count], path)
                if kind == "any":
                    above_any.setdefault(parts[:count], path)
        object.__setattr__(self, "_at", MappingProxyType(at))
        object.__setattr__(self, "_above", MappingProxyType(above))
        object.__setattr__(self, "_above_any", MappingProxyType(above_any))

    def held_at(self, path: str, *, reads: bool, through: bool) -> str | None:
        """The protected path that an absolute path is at, below or (where that counts) above.

        Args:
            path: Absolute.
            reads: Whether it is only read there.
            through: Whether all below it is meant.
        """
        parts = folded(path)
        for count in range(len(parts) + 1):
            held = self._at.get(parts[:count])
            if held is not None and (held[1] == "any" or not reads):
                return held[0]
        if reads:
            return self._above_any.get(parts) if through else None
        return self._above.get(parts)


def observe(paths: Mapping[str, Protection], view: View) -> ProtectedPaths:
    """The protected paths with all that a view knows of them: where their links lead, and which files they are now."""
    found: dict[str, Protection] = {}
    identities: dict[Identity, Protection] = {}
    for path, kind in paths.items():
        for place in (path, follow(view, path) or path):
            found[place] = "any" if "any" in (kind, found.get(place)) else kind
            entry = view.entry(place)
            if entry.inode:
                known = identities.get((entry.device, entry.inode))
                identities[entry.device, entry.inode] = "any" if "any" in (kind, known) else kind
    return ProtectedPaths(MappingProxyType(found), MappingProxyType(identities))


def touches(effect: Effect, protected: ProtectedPaths, snapshot: Snapshot) -> tuple[Reason, ...]:
    """Why the effect may not happen at all; empty where it leaves CXI's files alone."""
    reasons: list[Reason] = []
    for atom in effect.atoms:
        hit = _touched(atom, protected, snapshot)
        if hit is not None:
            reasons.append(Reason(Code.PATH_PROTECTED, f"`{hit}` is CXI's own", where=f"{atom.kind} `{atom.target}`"))
    return tuple(dict.fromkeys(reasons))


def _touched(atom: Atom, protected: ProtectedPaths, snapshot: Snapshot) -> str | None:
    """The protected path that an atom touches."""
    reads = atom.kind.startswith("fs.read")
    identities = protected.identities
    for path, through in _places(atom, snapshot):
        held = protected.held_at(path, reads=reads, through=through)
        if held is not None:
            return held
        place = path
        while True:
            entry = snapshot.entry(place)
            same = identities.get((entry.device, entry.inode)) if entry.inode else None
            if same == "any" or (same == "write" and not reads):
                return place
            if place == "/":
                break
            place = place[: place.rfind("/")] or "/"
    return None


def _places(atom: Atom, snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    """The absolute paths that an atom is about, as named and as resolved, each with whether all below it is meant."""
    if not atom.kind.startswith(_PATH_KINDS):
        return
    targets = [(atom.target, atom.pattern)]
    to = atom.attributes.get("to")
    if isinstance(to, str) and atom.kind in ("fs.symlink", "fs.link"):
        targets.append((posixpath.join(posixpath.dirname(atom.target), to), False))
    for target, pattern in targets:
        literal = _literal(target) if pattern else target
        path = locate(snapshot.root, literal)
        if isinstance(path, Refused):
            # Only a link's text is not canonical: it is read as the kernel would read it.
            path = literal if literal.startswith("/") else join(snapshot.root.path, literal)
        yield posixpath.normpath(path), pattern
        resolved = follow(snapshot, path)
        # A chain of links without end leads nowhere; the kernel refuses it.
        if resolved is not None and resolved != path:
            yield resolved, pattern


def _literal(pattern: str) -> str:
    """The longest folder of a glob that holds no glob character."""
    parts = pattern.split("/")
    kept = []
    for part in parts:
        if _GLOB.search(part):
            break
        kept.append(part)
    return "/".join(kept) or ("/" if pattern.startswith("/") else ".")
