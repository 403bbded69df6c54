"""What is left of everything that the ways of a text did? The atoms.

- A file that the text made and removed again is none, nor is one that got its own bytes.
- What not every way does has `maybe`; where ways differ in an attribute, it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.base import Atom, Snapshot
from cxi.effects.place import join, name
from cxi.effects.shell.state import Kept, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import Entry, EntryKind

_NOTHING = (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER)


def collect(states: Sequence[State], snapshot: Snapshot) -> tuple[Atom, ...]:
    """The atoms of all ways."""
    if len(states) == 1:
        return tuple(_atoms(states[0], snapshot).values())
    found: dict[tuple[str, ...], Atom] = {}
    counts: dict[tuple[str, ...], int] = {}
    for state in states:
        for key, atom in _atoms(state, snapshot).items():
            counts[key] = counts.get(key, 0) + 1
            before = found.get(key)
            if before is None:
                found[key] = atom
            elif before.attributes != atom.attributes:
                same = {k: v for k, v in before.attributes.items() if atom.attributes.get(k) == v}
                found[key] = Atom(atom.kind, atom.target, same, atom.pattern)
    return tuple(
        atom if counts[key] == len(states) else Atom(atom.kind, atom.target, {**atom.attributes, "maybe": True}, atom.pattern)
        for key, atom in found.items()
    )


def _atoms(state: State, snapshot: Snapshot) -> dict[tuple[str, ...], Atom]:
    found = dict(state.acts)
    gone: list[Atom] = []
    for path in sorted(state.disk):
        for left in _differences(state, snapshot, path, state.disk[path]):
            atom = Atom(left.kind, left.target, {**left.attributes, "maybe": True}) if path in state.shaken else left
            if atom.kind in ("fs.delete", "fs.rmdir"):
                gone.append(atom)
            else:
                found[atom.kind, atom.target] = atom
    for atom in reversed(gone):
        found[atom.kind, atom.target] = atom
    return found


def _differences(state: State, snapshot: Snapshot, path: str, after: Node) -> Iterator[Atom]:
    before = snapshot.entry(path)
    target = name(snapshot.root, path)
    there, here = before.kind in _NOTHING, after.kind in _NOTHING
    if there and here:
        return
    moved: dict[str, JsonValue] = {"renamed_from": name(snapshot.root, after.origin)} if after.origin else {}
    if before.kind is EntryKind.FILE and after.kind is EntryKind.FILE:
        if after.same_as:
            yield Atom("fs.link", target, {"to": name(snapshot.root, after.same_as)})
        yield from _rewritten(state, snapshot, path, before, after)
        return
    if before.kind is EntryKind.FOLDER and after.kind is EntryKind.FOLDER:
        if before.mode != after.mode and not after.fresh:
            yield Atom("fs.chmod", target, {"mode": f"{after.mode:o}"})
        if after.touched:
            yield Atom("fs.touch", target, {})
        return
    if before.kind is EntryKind.LINK and after.kind is EntryKind.LINK and before.target == after.target:
        return
    if not there:
        if before.kind is EntryKind.FOLDER:
            yield Atom("fs.rmdir", target, {})
        elif before.kind is EntryKind.LINK:
            yield Atom("fs.delete", target, {"to": before.target})
        else:
            yield Atom("fs.delete", target, _digest("before", snapshot.content(path)))
    match after.kind:
        case EntryKind.ABSENT | EntryKind.NOT_A_FOLDER:
            return
        case EntryKind.FILE if after.same_as:
            yield Atom("fs.link", target, {"to": name(snapshot.root, after.same_as)})
        case EntryKind.FILE:
            mode: dict[str, JsonValue] = {"mode": f"{after.mode:o}"} if after.mode & 0o7111 else {}
            yield Atom("fs.create", target, {**_digest("after", state.bytes_of(after.data)), **mode, **moved})
        case EntryKind.FOLDER:
            yield Atom("fs.mkdir", target, moved)
        case EntryKind.LINK:
            yield Atom("fs.symlink", target, {"to": after.target, **moved})
        case EntryKind.OTHER:
            yield Atom("fs.mkfifo", target, moved)
        case _:
            raise Stop(KNOW, f"`{target}` is no file, folder or link")


def _rewritten(state: State, snapshot: Snapshot, path: str, before: Entry, after: Node) -> Iterator[Atom]:
    """A file that is still one."""
    target = name(snapshot.root, path)
    same = after.data == Kept(path)
    bytes_before = None if same else snapshot.content(path)
    bytes_after = None if same else state.bytes_of(after.data)
    if same:
        if after.touched:
            yield Atom("fs.touch", target, {})
    elif bytes_before is None or bytes_after is None or bytes_before != bytes_after:
        moved: dict[str, JsonValue] = {"renamed_from": name(snapshot.root, after.origin)} if after.origin else {}
        attributes = {**_digest("before", bytes_before), **_digest("after", bytes_after), **moved}
        yield Atom("fs.write", target, attributes)
        yield from _shared(snapshot, path, before, attributes)
    elif after.touched:
        yield Atom("fs.touch", target, {})
    if before.mode != after.mode:
        yield Atom("fs.chmod", target, {"mode": f"{after.mode:o}"})


def _shared(snapshot: Snapshot, path: str, entry: Entry, attributes: dict[str, JsonValue]) -> Iterator[Atom]:
    """The other names of a file that is written."""
    if entry.links < 2:
        return
    others: list[str] = []
    pending = [snapshot.root.path]
    while pending:
        here = pending.pop()
        for child in snapshot.names(here) or ():
            there = join(here, child)
            found = snapshot.entry(there)
            if found.kind is EntryKind.FOLDER:
                pending.append(there)
            elif (found.device, found.inode) == (entry.device, entry.inode) and there != path:
                others.append(there)
    if len(others) + 1 < entry.links:
        raise Stop(
            KNOW,
            f"`{name(snapshot.root, path)}` has other names (hard links) outside the root",
            needs="a person replaces the file by a copy",
        )
    for other in others:
        yield Atom("fs.write", name(snapshot.root, other), {**attributes, "maybe": True, "through": name(snapshot.root, path)})


def _digest(label: str, data: bytes | None) -> dict[str, JsonValue]:
    return {} if data is None else {label: digest_bytes(data)}
