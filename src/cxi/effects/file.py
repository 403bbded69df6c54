"""What would a file server's tool really do to the files?

- Kind `file`: `op` is a literal: `=write` (the default), `=append`, `=edit`, `=create_directory`, `=move`, `=delete`, `=copy`,
  `=read`, `=list`, `=tree`, `=search`.
- `before` and `after` are digests of exact bytes; the same bytes are no atom. A move is `fs.delete` and `fs.create` with
  `renamed_from`; a folder is expanded to everything below it, links kept.
- A file with other names (hard links) is written under all of them: each name below the root is an atom too (`maybe`: a server
  that replaces the file leaves the others alone), and where not all of them are found, the write is refused.
- A path was resolved by its type already. Where a link still stands there (`final: keep`), a deletion is of the link; a write is
  refused, and so is a move: some servers move the link, others what it leads to. Links below a moved folder go with it.
- A new name that is another Unicode spelling of one that is there is refused: some servers take it for that one.
- A change inside a git folder or of a hook is a `git.*` atom as well (`cxi.effects.hidden`).

    inputs: {path: path, content: content}
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.base import Atom, Effect, Snapshot
from cxi.effects.edit import apply
from cxi.effects.given import GivenPath, give, give_flag, give_path, give_paths, give_text
from cxi.effects.hidden import git_atoms
from cxi.effects.place import below, join, name
from cxi.errors import Code, Refused
from cxi.manifest import Assurance, CanonicalCall
from cxi.values.base import Entry, EntryKind

_Plan: TypeAlias = Callable[[CanonicalCall, Mapping[str, str], Snapshot], tuple[Atom, ...] | Refused]


class FileAdapter:
    """Reads the calls of a file server."""

    kind: Final = "file"
    version: Final = 1
    inputs: Final = frozenset(
        {"op", "path", "paths", "content", "edits", "old", "new", "source", "destination", "dry_run", "pattern", "excluded"}
    )

    def plan(self, call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> Effect | Refused:
        """What the call would do to the files."""
        operation = give_text(call, inputs, "op") if "op" in inputs else "write"
        if isinstance(operation, Refused):
            return operation
        plan = _OPERATIONS.get(operation or "")
        if plan is None:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"file operation `{operation}` is not known", where="op")
        atoms = plan(call, inputs, snapshot)
        if isinstance(atoms, Refused):
            return atoms
        for atom in atoms:
            try:
                f"{atom.target}{atom.attributes.get('to', '')}".encode()
            except UnicodeEncodeError:
                return Refused.of(Code.EFFECT_UNSUPPORTED, f"the name {atom.target!r} is not UTF-8", where=atom.field)
        return Effect(f"{self.kind}/{self.version}", (*atoms, *git_atoms(snapshot, atoms)), Assurance.CHECKED)


# --- writing


def _write(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    place, content = give_path(call, inputs, "path", snapshot), _content(call, inputs)
    if isinstance(place, Refused):
        return place
    if isinstance(content, Refused):
        return content
    return _store(snapshot, place, content)


def _append(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    place, content = give_path(call, inputs, "path", snapshot), _content(call, inputs)
    if isinstance(place, Refused):
        return place
    if isinstance(content, Refused):
        return content
    before = snapshot.content(place.path) if snapshot.entry(place.path).kind is EntryKind.FILE else b""
    if before is None:
        return _unreadable(place)
    return _store(snapshot, place, before + content)


def _edit(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    place, edits, dry = give_path(call, inputs, "path", snapshot), _edits(call, inputs), give_flag(call, inputs, "dry_run")
    if isinstance(place, Refused):
        return place
    if isinstance(edits, Refused):
        return edits
    if isinstance(dry, Refused):
        return dry
    if dry:
        return (Atom("fs.read", place.target, {}, field=place.field),)
    kind = snapshot.entry(place.path).kind
    if kind is not EntryKind.FILE:
        return Refused.of(Code.EFFECT_INEXACT, f"`{place.target}` is no file to edit ({kind})", where=place.field)
    before = snapshot.content(place.path)
    if before is None:
        return _unreadable(place)
    after = apply(before, edits, where=inputs.get("edits", "edits"))
    return after if isinstance(after, Refused) else _store(snapshot, place, after)


def _store(snapshot: Snapshot, place: GivenPath, after: bytes) -> tuple[Atom, ...] | Refused:
    """The atoms of a file that is to hold exactly these bytes."""
    entry = snapshot.entry(place.path)
    match entry.kind:
        case EntryKind.ABSENT:
            refused = _refuse_parents(snapshot, place)
            return refused or (Atom("fs.create", place.target, {"after": digest_bytes(after)}, field=place.field),)
        case EntryKind.FILE:
            before = snapshot.content(place.path)
            if before is None:
                return _unreadable(place)
            if before == after:
                return ()
            attributes: dict[str, JsonValue] = {"before": digest_bytes(before), "after": digest_bytes(after), **_mode(entry)}
            if entry.links > 1:
                return _store_shared(snapshot, place, entry, attributes)
            return (Atom("fs.write", place.target, attributes, field=place.field),)
        case EntryKind.LINK:
            return Refused.of(
                Code.EFFECT_UNSUPPORTED, f"`{place.target}` is a link, and a write goes through it", where=place.field
            )
        case EntryKind.FOLDER | EntryKind.NOT_A_FOLDER:
            return Refused.of(Code.EFFECT_INEXACT, f"`{place.target}` is no place for a file ({entry.kind})", where=place.field)
        case _:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{place.target}` is no ordinary file ({entry.kind})", where=place.field)


def _store_shared(
    snapshot: Snapshot, place: GivenPath, entry: Entry, attributes: Mapping[str, JsonValue]
) -> tuple[Atom, ...] | Refused:
    """A write of a file that has other names: they are looked for below the root."""
    standing = below(snapshot, snapshot.root.path, where=place.field)
    if isinstance(standing, Refused):
        return standing
    same = (entry.device, entry.inode)
    others = [found.path for found in standing if (found.entry.device, found.entry.inode) == same and found.path != place.path]
    if len(others) + 1 < entry.links:
        missing = entry.links - len(others) - 1
        return Refused.of(
            Code.EFFECT_INEXACT,
            f"`{place.target}` has {missing} other names (hard links) outside the root",
            where=place.field,
            needs="a person replaces the file by a copy",
        )
    shared = {**attributes, "links": entry.links}
    through: dict[str, JsonValue] = {**shared, "maybe": True, "through": place.target}
    return (
        Atom("fs.write", place.target, shared, field=place.field),
        *(Atom("fs.write", name(snapshot.root, path), through, field=place.field) for path in others),
    )


def _create_directory(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    place = give_path(call, inputs, "path", snapshot)
    if isinstance(place, Refused):
        return place
    kind = snapshot.entry(place.path).kind
    if kind is EntryKind.FOLDER:
        return ()
    if kind is not EntryKind.ABSENT:
        return Refused.of(Code.EFFECT_INEXACT, f"`{place.target}` is no place for a folder ({kind})", where=place.field)
    return _refuse_parents(snapshot, place) or (Atom("fs.mkdir", place.target, {}, field=place.field),)


# --- moving


def _move(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    ends = _ends(call, inputs, snapshot)
    if isinstance(ends, Refused):
        return ends
    source, destination = ends
    gone = _delete_below(snapshot, source)
    made = _create_below(snapshot, source, destination, renamed=True)
    if isinstance(gone, Refused):
        return gone
    return made if isinstance(made, Refused) else (*gone, *made)


def _copy(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    ends = _ends(call, inputs, snapshot)
    if isinstance(ends, Refused):
        return ends
    source, destination = ends
    made = _create_below(snapshot, source, destination, renamed=False)
    if isinstance(made, Refused):
        return made
    if any(atom.kind == "fs.symlink" for atom in made):
        return Refused.of(Code.EFFECT_UNSUPPORTED, "servers differ on whether a copy follows links", where=source.field)
    return (Atom("fs.read", source.target, {}, field=source.field), *made)


def _delete(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    places = give_paths(call, inputs, ("path", "paths"), snapshot)
    if isinstance(places, Refused):
        return places
    atoms: dict[str, Atom] = {}
    for place in places:
        gone = _delete_below(snapshot, place)
        if isinstance(gone, Refused):
            return gone
        atoms |= {atom.target: atom for atom in gone}
    return tuple(atoms.values())


def _ends(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[GivenPath, GivenPath] | Refused:
    """Source and destination, where the one is there and the other is free."""
    source, destination = give_path(call, inputs, "source", snapshot), give_path(call, inputs, "destination", snapshot)
    if isinstance(source, Refused):
        return source
    if isinstance(destination, Refused):
        return destination
    kind = snapshot.entry(destination.path).kind
    if kind is not EntryKind.ABSENT:
        return Refused.of(
            Code.EFFECT_INEXACT, f"`{destination.target}` is there already, or cannot be ({kind})", where=destination.field
        )
    if snapshot.entry(source.path).kind is EntryKind.LINK:
        return Refused.of(
            Code.EFFECT_UNSUPPORTED, f"`{source.target}` is a link: servers differ on what is moved", where=source.field
        )
    if destination.path.startswith(join(source.path, "")):
        return Refused.of(Code.EFFECT_INEXACT, f"`{destination.target}` is below what is moved", where=destination.field)
    return _refuse_parents(snapshot, destination) or (source, destination)


def _delete_below(snapshot: Snapshot, place: GivenPath) -> tuple[Atom, ...] | Refused:
    """The atoms of what stands at a place going away, and everything below it; what a folder holds goes before it."""
    entry = snapshot.entry(place.path)
    if entry.kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER) or place.path == snapshot.root.path:
        return Refused.of(Code.EFFECT_INEXACT, f"`{place.target}` is absent, or the root itself", where=place.field)
    own = _held(snapshot, place.path, entry, place)
    if isinstance(own, Refused):
        return own
    if entry.kind is not EntryKind.FOLDER:
        return (Atom("fs.delete", place.target, _before(own), field=place.field),)
    standing = below(snapshot, place.path, where=place.field)
    if isinstance(standing, Refused):
        return standing
    atoms = [Atom("fs.rmdir", place.target, {}, field=place.field)]
    for found in standing:
        target = name(snapshot.root, found.path)
        held = _held(snapshot, found.path, found.entry, place)
        if isinstance(held, Refused):
            return held
        if found.entry.kind is EntryKind.FOLDER:
            atoms.append(Atom("fs.rmdir", target, {}, field=place.field))
        else:
            atoms.append(Atom("fs.delete", target, _before(held), field=place.field))
    return tuple(reversed(atoms))


def _create_below(snapshot: Snapshot, source: GivenPath, destination: GivenPath, *, renamed: bool) -> tuple[Atom, ...] | Refused:
    """The atoms of everything at and below the source coming to stand at the destination."""
    entry = snapshot.entry(source.path)
    standing = [(source.path, entry)]
    if entry.kind is EntryKind.FOLDER:
        found = below(snapshot, source.path, where=source.field)
        if isinstance(found, Refused):
            return found
        standing += [(item.path, item.entry) for item in found]
    atoms: list[Atom] = []
    for path, item in standing:
        target = name(snapshot.root, destination.path + path[len(source.path) :])
        origin: dict[str, JsonValue] = {"renamed_from": name(snapshot.root, path)} if renamed else {}
        held = _held(snapshot, path, item, source)
        if isinstance(held, Refused):
            return held
        match item.kind:
            case EntryKind.FOLDER:
                atoms.append(Atom("fs.mkdir", target, origin, field=destination.field))
            case EntryKind.LINK:
                atoms.append(Atom("fs.symlink", target, {**held, **origin}, field=destination.field))
            case _:
                atoms.append(Atom("fs.create", target, {**held, **_mode(item), **origin}, field=destination.field))
    return tuple(atoms)


# --- reading


def _read(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    places = give_paths(call, inputs, ("path", "paths"), snapshot)
    if isinstance(places, Refused):
        return places
    return tuple(Atom("fs.read", place.target, {}, field=place.field) for place in places)


def _read_below(call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> tuple[Atom, ...] | Refused:
    """A tree, or a search by name, shows the names in every folder at and below a path, and no file's content."""
    places = give_paths(call, inputs, ("path", "paths"), snapshot)
    if isinstance(places, Refused):
        return places
    atoms: list[Atom] = []
    for place in places:
        atoms.append(Atom("fs.read", place.target, {}, field=place.field))
        if snapshot.entry(place.path).kind is not EntryKind.FOLDER:
            continue
        standing = below(snapshot, place.path, where=place.field)
        if isinstance(standing, Refused):
            return standing
        atoms.extend(
            Atom("fs.read", name(snapshot.root, found.path), {}) for found in standing if found.entry.kind is EntryKind.FOLDER
        )
    return tuple(atoms)


# --- parts


def _content(call: CanonicalCall, inputs: Mapping[str, str]) -> bytes | Refused:
    text = give_text(call, inputs, "content")
    if isinstance(text, Refused):
        return text
    where = inputs.get("content", "content")
    if text is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "no content is given", where=where)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return Refused.of(Code.EFFECT_UNREADABLE, "the content has no UTF-8 form", where=where)


def _edits(call: CanonicalCall, inputs: Mapping[str, str]) -> list[tuple[str, str]] | Refused:
    """The edits: a whole list of {oldText, newText}, or the two texts of each in fields of their own."""
    where = inputs.get("edits", inputs.get("old", "edits"))
    unread = Refused.of(Code.EFFECT_UNREADABLE, "the edits are no list of old and new texts", where=where)
    whole = call.value(inputs["edits"]) if "edits" in inputs else None
    if whole is not None and isinstance(whole.canonical, list | tuple):
        pairs: list[tuple[JsonValue, JsonValue]] = []
        for item in whole.canonical:
            if not isinstance(item, Mapping) or set(item) != {"oldText", "newText"}:
                return unread
            pairs.append((item["oldText"], item["newText"]))
    else:
        prefix = inputs.get("edits", "edits")
        old = give(call, inputs.get("old", f"{prefix}[].oldText"))
        new = give(call, inputs.get("new", f"{prefix}[].newText"))
        if len(old) != len(new):
            return unread
        pairs = [(one.value, other.value) for one, other in zip(old, new, strict=True)]
    if not pairs:
        return Refused.of(Code.EFFECT_UNREADABLE, "no edits are given", where=where)
    found: list[tuple[str, str]] = []
    for one, other in pairs:
        if not isinstance(one, str) or not isinstance(other, str):
            return unread
        found.append((one, other))
    return found


def _held(snapshot: Snapshot, path: str, entry: Entry, place: GivenPath) -> dict[str, JsonValue] | Refused:
    """What a file or link holds: `after` its digest, or `to` the link's text; nothing for a folder."""
    match entry.kind:
        case EntryKind.FOLDER:
            return {}
        case EntryKind.LINK:
            return {"to": entry.target}
        case EntryKind.FILE:
            data = snapshot.content(path)
            return _unreadable(place) if data is None else {"after": digest_bytes(data)}
        case _:
            what = name(snapshot.root, path)
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{what}` is no file, folder or link ({entry.kind})", where=place.field)


def _before(held: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"before" if key == "after" else key: value for key, value in held.items()}


def _mode(entry: Entry) -> dict[str, JsonValue]:
    """The permission bits where they make the file a program."""
    return {"mode": f"{entry.mode:o}"} if entry.mode & 0o111 else {}


def _refuse_parents(snapshot: Snapshot, place: GivenPath) -> Refused | None:
    """The nearest thing above a new path has to be a folder, reached without a link, in which no other spelling of it stands."""
    child, here = posixpath.basename(place.path), posixpath.dirname(place.path)
    while (kind := snapshot.entry(here).kind) is EntryKind.ABSENT and here != "/":
        child, here = posixpath.basename(here), posixpath.dirname(here)
    if kind is not EntryKind.FOLDER:
        return Refused.of(Code.EFFECT_INEXACT, f"`{name(snapshot.root, here)}` is no folder ({kind})", where=place.field)
    composed = unicodedata.normalize("NFC", child)
    for known in snapshot.names(here) or ():
        if unicodedata.normalize("NFC", known) == composed:
            return Refused.of(Code.EFFECT_INEXACT, f"`{known!a}` is there, another spelling of the name", where=place.field)
    return None


def _unreadable(place: GivenPath) -> Refused:
    return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{place.target}` cannot be read whole", where=place.field)


_OPERATIONS: Final[MappingProxyType[str, _Plan]] = MappingProxyType(
    {
        "write": _write,
        "append": _append,
        "edit": _edit,
        "create_directory": _create_directory,
        "move": _move,
        "copy": _copy,
        "delete": _delete,
        "read": _read,
        "list": _read,
        "tree": _read_below,
        "search": _read_below,
    }
)
