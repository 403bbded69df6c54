"""What does the shell know at one point of one way through a text?

- A `State` is one way: where a status is not known, the way is split, and the plan is the union over all ways.
- The disk is the snapshot under an overlay of what the text did so far; what is left of it at the end are the `fs.*` atoms.
- A path is absolute and real here: `State.resolve` walks one as the kernel does (path_resolution(7)), through links.
- `opaque`: a program ran whose writes are not known. What it does is its own atom's; what is absent may be there since.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from cxi.canonical import JsonValue
from cxi.effects.base import Atom, Snapshot
from cxi.effects.place import LIMIT, join, name
from cxi.effects.shell.guarded import is_guarded
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.syntax import Command
from cxi.errors import Code
from cxi.values.base import EntryKind

LIKELY: Final = -1  # success, unless the machine itself fails (permissions, a full disk)
STEPS: Final = 20_000  # commands that one text runs, over all ways
_TEMPORARY: Final = ("/dev/fd/", "/proc/self/fd/")


@dataclass(frozen=True, slots=True)
class Kept:
    """The bytes that the snapshot has at a path."""

    path: str


Data: TypeAlias = bytes | Kept | None  # None: not known


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at a path.

    Attributes:
        kind: As in `Entry`.
        mode: Permission bits.
        data: A file's bytes.
        target: A link's text.
        fresh: For a folder: the text made it, so that nothing is in it but what the text put there.
        origin: Where it was moved from.
        same_as: The path that it is a hard link of.
        links: How many names the file has.
        touched: Whether its times were set.
    """

    kind: EntryKind
    mode: int = 0o644
    data: Data = None
    target: str = ""
    fresh: bool = False
    origin: str = ""
    same_as: str = ""
    links: int = 1
    touched: bool = False


ABSENT: Final = Node(EntryKind.ABSENT, 0)
FOLDER: Final = Node(EntryKind.FOLDER, 0o755, fresh=True)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a descriptor: `outer` (the caller's), `null`, `file`, `buffer`, `closed`, `device`."""

    kind: str
    path: str = ""
    key: int = 0


OUTER: Final = End("outer")
NULL: Final = End("null")
CLOSED: Final = End("closed")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: its value, None where it is not known."""

    value: str | None
    exported: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A path as the kernel resolves it; `problem` is ENOENT, ENOTDIR or ELOOP where it does not resolve up to its last part."""

    path: str
    problem: str = ""


@dataclass(slots=True)
class State:
    """One way. See the module."""

    snapshot: Snapshot
    cwd: str
    variables: dict[str, Variable]
    closed_world: bool  # whether a variable that is not there is unset, and not just unknown
    initial: dict[str, Variable] = field(default_factory=dict)  # as the caller has them
    old: str | None = None
    disk: dict[str, Node] = field(default_factory=dict)
    acts: dict[tuple[str, ...], Atom] = field(default_factory=dict)
    functions: dict[str, Command] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    zero: str | None = None
    options: frozenset[str] = frozenset()
    fds: dict[int, End] = field(default_factory=lambda: {0: OUTER, 1: OUTER, 2: OUTER})
    buffers: dict[int, Data] = field(default_factory=dict)
    listed: dict[int, tuple[tuple[str, ...], bool] | None] = field(default_factory=dict)  # lines of a buffer, in some order
    status: int | None = 0
    flow: str = ""  # exit, return, break, continue
    levels: int = 0
    loops: int = 0  # loops around
    round: int | None = 0  # the status of a loop's last round
    returns: int = 0  # functions and sourced files around
    opaque: bool = False
    shaken: frozenset[str] = frozenset()  # what was changed before such a program ran, which may have changed it again
    looked: set[str] | None = None
    changed: set[str] | None = None
    depth: int = 0
    guarded: int = 0  # inside a condition, where `set -e` is not heeded

    def copy(self) -> State:
        """The same, to go another way from here."""
        other = object.__new__(State)
        for slot in _SLOTS:
            value = getattr(self, slot)
            setattr(other, slot, value.copy() if slot in _OWN and value is not None else value)
        return other

    def key(self) -> tuple[object, ...]:
        """Equal for two ways that go on alike and did the same."""
        return (
            self.cwd,
            self.old,
            self.status,
            self.round,
            self.flow,
            self.levels,
            self.opaque,
            self.shaken,
            self.options,
            self.parameters,
            frozenset(self.variables.items()),
            frozenset(self.disk.items()),
            frozenset(self.acts),
            frozenset(self.fds.items()),
            frozenset(self.buffers.items()),
            frozenset(self.listed.items()),
            tuple(self.functions),
        )

    # --- the disk

    def look(self, path: str) -> Node:
        """What stands at a real path, its last part not followed."""
        if self.looked is not None:
            self.looked.add(path)
        if self.disk:
            node = self.disk.get(path)
            if node is not None:
                return node
            above = path
            while above != "/":
                above = posixpath.dirname(above)
                node = self.disk.get(above)
                if node is not None and (node.kind is not EntryKind.FOLDER or node.fresh):
                    return ABSENT
        entry = self.snapshot.entry(path)
        if entry.kind is EntryKind.DENIED:
            raise Stop(KNOW, f"`{self.show(path)}` cannot be looked at")
        data = Kept(path) if entry.kind is EntryKind.FILE else None
        return Node(entry.kind, entry.mode, data, entry.target, links=max(entry.links, 1))

    def names(self, path: str) -> list[str]:
        """The names in a real folder."""
        if self.looked is not None:
            self.looked.add(path + "/")
        own = self.disk.get(path)
        base: Iterable[str] = ()
        if own is None or not own.fresh:
            found = self.snapshot.names(path)
            if found is None:
                raise Stop(KNOW, f"`{self.show(path)}` cannot be listed")
            base = found
        names = set(base)
        if self.disk:
            prefix = join(path, "")
            for there, node in self.disk.items():
                if there.startswith(prefix) and "/" not in (rest := there[len(prefix) :]) and rest:
                    (names.discard if node.kind is EntryKind.ABSENT else names.add)(rest)
        return sorted(names)

    def put(self, path: str, node: Node) -> None:
        """Let something stand at a real path."""
        if self.changed is not None:
            self.changed.add(path)
        self.disk[path] = node
        if path in self.shaken:
            self.shaken -= {path}

    def bytes_of(self, data: Data) -> bytes | None:
        """The bytes, where they are known; reads the snapshot."""
        if isinstance(data, Kept):
            return None if self.opaque else self.snapshot.content(data.path)
        return data

    def below(self, path: str) -> list[tuple[str, Node]]:
        """Everything under a real folder, each folder before what it holds; links are not followed."""
        found: list[tuple[str, Node]] = []
        pending = [path]
        while pending:
            here = pending.pop()
            for child in self.names(here):
                there = join(here, child)
                node = self.look(there)
                found.append((there, node))
                if node.kind is EntryKind.FOLDER:
                    pending.append(there)
            if len(found) > LIMIT:
                raise Stop(KNOW, f"`{self.show(path)}` holds more than {LIMIT} entries", needs="name smaller folders")
        return found

    # --- paths

    def resolve(self, text: str, *, follow: bool = True, base: str = "") -> Place:
        """Where a path leads that a program was given; `follow` says whether a link in its last place is followed."""
        if "\0" in text or not text:
            return Place("", "ENOENT")
        rest = [part for part in reversed((text if text[0] == "/" else f"{base or self.cwd}/{text}").split("/")) if part]
        folder = text.endswith(("/", "/."))
        done: list[str] = []
        links = 0
        while rest:
            part = rest.pop()
            if part == ".":
                continue
            if part == "..":
                del done[-1:]
                continue
            here = "/" + "/".join((*done, part))
            last = not rest
            node = self.look(here)
            if node.kind is EntryKind.LINK and (not last or follow or folder):
                links += 1
                if here.startswith("/proc/"):
                    raise Stop(KNOW, f"`{text}` is a view of a process, which is not the one that will look")
                if links > 40:
                    return Place(here, "ELOOP")
                if node.target.startswith("/"):
                    done = []
                if not node.target:
                    return Place(here, "ENOENT")
                rest.extend(piece for piece in reversed(node.target.split("/")) if piece)
                folder = folder or node.target.endswith("/")
                continue
            if not last:
                if node.kind is EntryKind.ABSENT and self.opaque and not {".", ".."} & set(rest):
                    # A program may have made the folder.
                    return Place(join(here, "/".join(reversed(rest))))
                if node.kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
                    return Place(here, "ENOENT" if node.kind is EntryKind.ABSENT else "ENOTDIR")
                if node.kind is not EntryKind.FOLDER:
                    return Place(here, "ENOTDIR")
            elif node.kind is EntryKind.NOT_A_FOLDER or (folder and node.kind in (EntryKind.FILE, EntryKind.OTHER)):
                return Place(here, "ENOTDIR")
            done.append(part)
        return Place("/" + "/".join(done))

    def look_through(self, text: str, *, follow: bool = True) -> EntryKind:
        """What a path that was given leads to; `ABSENT` where it leads nowhere."""
        place = self.resolve(text, follow=follow)
        return EntryKind.ABSENT if place.problem else self.look(place.path).kind

    def show(self, path: str) -> str:
        """The canonical form of a real path."""
        return name(self.snapshot.root, path)

    # --- what is done

    def act(self, kind: str, target: str, attributes: Mapping[str, JsonValue] | None = None, *, pattern: bool = False) -> None:
        """Something that is not left on the disk: a program, a read, a connection."""
        given = attributes or {}
        argv = given.get("argv")
        key = (kind, target, str(argv) if argv is not None else "", "*" if pattern else "")
        if key not in self.acts:
            self.acts[key] = Atom(kind, target, given, pattern)

    def read(self, path: str) -> None:
        """A real path is read."""
        self.act("fs.read", self.show(path))

    # --- descriptors

    def write(self, fd: int, data: bytes | None) -> None:
        """Bytes go out of a descriptor; None where they are not known."""
        end = self.fds.get(fd, CLOSED)
        if end.kind == "buffer":
            if end.key in self.listed or self.buffers.get(end.key) != b"":
                self.listed[end.key] = None  # more than one writer: no list
            before = self.buffers.get(end.key)
            self.buffers[end.key] = before + data if isinstance(before, bytes) and data is not None else None
        elif end.kind == "file" and data != b"":
            node = self.look(end.path)
            if node.kind is EntryKind.FILE:
                known = None if data is None else self.bytes_of(node.data)
                self.put(end.path, replace(node, data=None if known is None or data is None else known + data))

    def cloud(self) -> None:
        """A program ran whose writes are not known."""
        self.opaque = True
        self.shaken = frozenset(self.disk)
        for path, node in self.disk.items():
            if isinstance(node.data, bytes):
                self.disk[path] = replace(node, data=None)

    def noise(self) -> None:
        """A program may have written anything to its standard output and error."""
        self.write(1, None)
        self.write(2, None)

    def take(self, *, whole: bool = True) -> bytes | None:
        """What a program reads from its standard input, where it is known; what is left of it is then not."""
        end = self.fds.get(0, CLOSED)
        if end.kind in ("null", "closed"):
            return b""
        if end.kind != "buffer":
            return None
        data = self.buffers.get(end.key)
        self.buffers[end.key] = b"" if whole and data is not None else None
        if end.path and self.look(end.path).data != data:
            return None  # read before, or written since it was opened
        return self.bytes_of(data)

    def listing(self) -> tuple[tuple[str, ...], bool] | None:
        """The lines of the standard input, in some order; whether it has all of them, or perhaps fewer."""
        end = self.fds.get(0, CLOSED)
        return self.listed.get(end.key) if end.kind == "buffer" else None

    def list_out(self, lines: tuple[str, ...], *, exact: bool) -> None:
        """The lines that a program printed, in some order. A buffer that got anything else has none."""
        end = self.fds.get(1, CLOSED)
        if end.kind == "buffer" and self.fds.get(2, CLOSED) != end and end.key not in self.listed:
            self.listed[end.key] = (lines, exact)

    # --- variables

    def value(self, variable: str) -> str | None:
        """A variable's value: empty where it is unset, None where it is not known."""
        found = self.variables.get(variable)
        if found is not None:
            return found.value
        return "" if self.closed_world else None

    def assign(self, variable: str, value: str | None, *, exported: bool | None = None) -> None:
        """Set a variable; what it changes beyond its own value is refused."""
        if is_guarded(variable):
            raise Stop(KNOW, f"setting `{variable}` changes what programs do", needs="leave the variable alone")
        if f"readonly {variable}" in self.options:
            raise Stop(KNOW, f"`{variable}` cannot be set any more, which ends what follows")
        before = self.variables.get(variable)
        out = exported if exported is not None else (before.exported if before is not None else not self.closed_world)
        self.variables[variable] = Variable(value, out)


_SLOTS: Final = tuple(State.__slots__)
_OWN: Final = frozenset({"variables", "disk", "acts", "functions", "fds", "buffers", "listed", "looked", "changed"})


def too_many(steps: int) -> None:
    """Refuse a text that would run too long to be read."""
    if steps > STEPS:
        raise Stop(Code.TOO_LARGE, f"more than {STEPS} commands would run")
