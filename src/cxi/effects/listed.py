"""What does a tool do whose contract lists its atoms, `[fs.delete(source), fs.create(destination)]`?

- One atom for each value of each field. A field that the call lacks gives no atom that could be named, so it is refused: the
  server's default is not known.
- The list must fit what is there: `fs.create` of what exists, `fs.write` and `fs.delete` of what is absent are `EFFECT_INEXACT`.
- Deleting a folder is deleting all that it holds. A folder that moves needs the `file` adapter, which names both ends.
- Kinds are those of the vocabulary; patterns cannot be listed.

    >>> plan_listed((("fs.read", "path"),), call, snapshot).atoms[0].kind       # doctest: +SKIP
    'fs.read'
"""

from __future__ import annotations

from collections.abc import Sequence

from cxi.canonical import digest_bytes
from cxi.effects.base import Atom, Effect, Snapshot
from cxi.effects.given import GivenPath, give
from cxi.effects.hidden import git_atoms
from cxi.effects.place import below, locate, name
from cxi.errors import Code, Refused
from cxi.manifest import Assurance, CanonicalCall
from cxi.policy.vocabulary import KINDS
from cxi.values.base import EntryKind

_PRESENT = frozenset({EntryKind.FILE, EntryKind.LINK, EntryKind.OTHER})


def plan_listed(effect: Sequence[tuple[str, str]], call: CanonicalCall, snapshot: Snapshot) -> Effect | Refused:
    """What the call would do.

    Args:
        effect: (atom kind, contract's name of the field), in order.
        call: The call.
        snapshot: The world.
    """
    atoms: list[Atom] = []
    for kind, field in effect:
        if kind not in KINDS or KINDS[kind].exact:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{kind}` is no kind of the vocabulary", where=field)
        given = give(call, field)
        if not given:
            return Refused.of(Code.EFFECT_UNREADABLE, f"`{field}` is absent, so what `{kind}` is about is not known", where=field)
        for item in given:
            if not isinstance(item.value, str):
                return Refused.of(Code.EFFECT_UNREADABLE, f"the target of `{kind}` is no text", where=item.field)
            if not kind.startswith("fs."):
                atoms.append(Atom(kind, item.value, {}, field=item.field))
                continue
            path = locate(snapshot.root, item.value, where=item.field)
            if isinstance(path, Refused):
                return path
            fitted = _fit(kind, GivenPath(item.field, item.value, path), snapshot)
            if isinstance(fitted, Refused):
                return fitted
            atoms += fitted
    kinds = {atom.kind for atom in atoms}
    if "fs.rmdir" in kinds and "fs.create" in kinds:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "a folder goes and something comes", needs="the `file` adapter")
    assurance = Assurance.CHECKED if all(kind.startswith("fs.") for kind in kinds) else Assurance.DECLARED
    return Effect("listed/1", (*atoms, *git_atoms(snapshot, atoms)), assurance)


def _fit(kind: str, place: GivenPath, snapshot: Snapshot) -> list[Atom] | Refused:
    """The atoms of one kind at one place, where it fits what is there."""
    atom = Atom(kind, place.target, {}, field=place.field)
    if kind == "fs.read":
        return [atom]
    there = snapshot.entry(place.path).kind
    inexact = Refused.of(Code.EFFECT_INEXACT, f"`{kind}` of `{place.target}`, which is {there}", where=place.field)
    match kind:
        case "fs.create" | "fs.symlink" | "fs.link" | "fs.mkfifo":
            return [atom] if there is EntryKind.ABSENT else inexact
        case "fs.mkdir":
            return [atom] if there is EntryKind.ABSENT else [] if there is EntryKind.FOLDER else inexact
        case "fs.delete":
            return _delete(place, snapshot) if there in _PRESENT or there is EntryKind.FOLDER else inexact
        case "fs.rmdir":
            return [atom] if there is EntryKind.FOLDER and snapshot.names(place.path) == () else inexact
        case "fs.write":
            return [atom] if there is EntryKind.FILE and snapshot.entry(place.path).links == 1 else inexact
        case _:  # fs.chmod, fs.touch
            return [atom] if there in _PRESENT or there is EntryKind.FOLDER else inexact


def _delete(place: GivenPath, snapshot: Snapshot) -> list[Atom] | Refused:
    """A file, or a folder with all that it holds, which goes before it."""
    if place.path == snapshot.root.path:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "the root itself would go", where=place.field)
    entry = snapshot.entry(place.path)
    standing = [(place.path, entry.kind)]
    if entry.kind is EntryKind.FOLDER:
        found = below(snapshot, place.path, where=place.field)
        if isinstance(found, Refused):
            return found
        standing += [(item.path, item.entry.kind) for item in found]
    atoms: list[Atom] = []
    for path, kind in reversed(standing):
        target = name(snapshot.root, path)
        if kind is EntryKind.FOLDER:
            atoms.append(Atom("fs.rmdir", target, {}, field=place.field))
            continue
        data = snapshot.content(path) if kind is EntryKind.FILE else None
        atoms.append(Atom("fs.delete", target, {"before": digest_bytes(data)} if data is not None else {}, field=place.field))
    return atoms
