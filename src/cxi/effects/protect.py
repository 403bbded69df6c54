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
from cxi.effects.place import folded, follow, join, locate, parents
from cxi.errors import Code, Reason, Refused
from cxi.values.base import View

Protection: TypeAlias = Literal["write", "any"]
Identity: TypeAlias = tuple[int, int]  # (device, inode)

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
    rows = [(folded(path), path, kind) for path, kind in protected.paths.items()]
    reasons: list[Reason] = []
    for atom in effect.atoms:
        hit = _touched(atom, rows, protected.identities, snapshot)
        if hit is not None:
            reasons.append(Reason(Code.PATH_PROTECTED, f"`{hit}` is CXI's own", where=f"{atom.kind} `{atom.target}`"))
    return tuple(dict.fromkeys(reasons))


def _touched(
    atom: Atom,
    rows: list[tuple[tuple[str, ...], str, Protection]],
    identities: Mapping[Identity, Protection],
    snapshot: Snapshot,
) -> str | None:
    """The protected path that an atom touches."""
    reads = atom.kind.startswith("fs.read")
    for path, through in _places(atom, snapshot):
        parts = folded(path)
        for own, spelled, kind in rows:
            if reads and kind != "any":
                continue
            at_or_below = parts[: len(own)] == own
            above = own[: len(parts)] == parts
            if at_or_below or (above and (through or not reads)):
                return spelled
        for place in (path, *parents(path)):
            entry = snapshot.entry(place)
            same = identities.get((entry.device, entry.inode)) if entry.inode else None
            if same == "any" or (same == "write" and not reads):
                return place
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
