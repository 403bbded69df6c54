"""Which file does a path name, as the kernel reads it?

- `resolve` walks as path_resolution(7) does, over `Root.view` alone: component by component from the root (or `/`), links
  spliced (40 at most), `..` applied to where the links led, `.` and `//` dropped, a trailing slash asks for a folder. `~` is a
  name.
- A leaf may be missing, and parents too (a tool may make them), unless a `..`, or the way through a dangling link, comes after:
  there the kernel answers ENOENT.
- `final: follow` (open(2)) or `keep` (unlink(2), rename(2)): whether a link in the last place is followed.
- Canonical is relative to the root when inside it, the root itself is `.`, and absolute when outside. Wire is the absolute,
  resolved path.
- On a file system that folds case or normalizes names, canonical is as spelled on disk.
- Refused: magic links (/proc, /sys, /dev/fd), where the kernel's answer depends on who asks; characters that nobody sees.

    RepoPath().parse("src/../src//tax.py", root)  is  Value("RepoPath", "src/tax.py", "/repo/src/tax.py")
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import Entry, EntryKind, Root, Span, Value
from cxi.values.hidden import refuse_unseen
from cxi.values.parameter import Parameters
from cxi.values.path_mention import mentions

LastLink: TypeAlias = Literal["follow", "keep"]

MAX_LINKS: Final = 40  # MAXSYMLINKS of <linux/namei.h>
MAX_PATH: Final = 4095  # PATH_MAX less the NUL
MAX_NAME: Final = 255  # NAME_MAX
# Folders whose links lead where no path leads, and differently for each process (proc(5)).
_MAGIC: Final = (("proc",), ("sys",), ("dev", "fd"), ("dev", "stdin"), ("dev", "stdout"), ("dev", "stderr"))
_MAGIC_STARTS: Final = tuple(f"/{'/'.join(magic)}/" for magic in _MAGIC)
_MAGIC_SAYS: Final = "leads into a folder of magic links"


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a path leads.

    Attributes:
        path: Absolute; no link on the way, and none in the last place unless that was kept.
        entry: What stands there.
        missing: How many of its last components do not exist; 0 where it exists.
        links: The links that were followed, in order, as absolute paths.
    """

    path: str
    entry: Entry
    missing: int
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepoPath:
    """A path that, with links resolved, lies inside the root.

    Attributes:
        final: What becomes of a link in the last place.
    """

    final: LastLink = "follow"
    name: str = "RepoPath"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        found = _read(raw, where, self.final)
        if isinstance(found, Refused):
            return found
        inside = relative(found.path, where)
        if inside is None:
            return Refused.of(Code.PATH_OUTSIDE_ROOT, f"`{raw}` leads to `{found.path}`, outside the root")
        return Value(self.name, inside, found.path)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        return _scan(self, text, where)


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path anywhere on the host.

    Attributes:
        final: What becomes of a link in the last place.
    """

    final: LastLink = "follow"
    name: str = "FilePath"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        found = _read(raw, where, self.final)
        if isinstance(found, Refused):
            return found
        inside = relative(found.path, where)
        return Value(self.name, found.path if inside is None else inside, found.path)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        return _scan(self, text, where)


def make_repo_path(parameters: Mapping[str, JsonValue]) -> RepoPath:
    """`RepoPath {final: follow|keep}`.

    Raises:
        BadParameter: for anything else.
    """
    return RepoPath(_final("RepoPath", parameters))


def make_file_path(parameters: Mapping[str, JsonValue]) -> FilePath:
    """`FilePath {final: follow|keep}`.

    Raises:
        BadParameter: for anything else.
    """
    return FilePath(_final("FilePath", parameters))


def relative(path: str, root: Root) -> str | None:
    """A resolved absolute path as seen from the root: `.` for the root itself, None outside. Compared by components."""
    if path.startswith(root.path) and path[len(root.path) : len(root.path) + 1] == "/" and "//" not in path:
        return path[len(root.path) + 1 :] or "."
    base, parts = _split(root.path), _split(path)
    if parts[: len(base)] != base:
        return None
    return "/".join(parts[len(base) :]) or "."


def resolve(path: str, root: Root, *, final: LastLink = "follow") -> Resolved | Refused:
    """Walk a path as the kernel would (path_resolution(7)).

    Args:
        path: Absolute, or relative to the root.
        root: The root, and the view that everything is seen through.
        final: Whether a link in the last place is followed.

    Returns:
        Where it leads, or why the kernel or this project refuses it: `PATH_MALFORMED`, `PATH_UNRESOLVED`, `NON_CANONICAL_TEXT`.
    """
    if not path or "\0" in path or _size(path) > MAX_PATH:
        return Refused.of(Code.PATH_MALFORMED, "the path is empty, holds NUL, or is over 4095 bytes")
    unseen = refuse_unseen(path, "path")
    if unseen is not None:
        return unseen
    straight = _resolve_straight(path, root)
    if straight is not None:
        return straight
    found = _Walk(root, final).run(path)
    if isinstance(found, Resolved):
        # what a link or a folder's listing says is not the caller's text, but becomes part of the value
        unseen = refuse_unseen(found.path, "path, with links resolved,")
        return found if unseen is None else unseen
    return found


def _resolve_straight(path: str, root: Root) -> Resolved | None:
    """The resolution of most paths: of plain names, through folders, to what is there or could be. None: walk as the kernel does.

    It asks for the entries that `_Walk` would ask for, and for no others.
    """
    if not (root.case_sensitive and path.isascii()) or root.normalizes:
        return None
    if path[0] != "/":
        at = len(root.path) + 1 if root.path != "/" else 1
        path = root.path + "/" + path if root.path != "/" else "/" + path
    else:
        at = 1
    if path[-1] == "/" or "/." in path or "//" in path or len(path) > MAX_PATH or f"{path}/".startswith(_MAGIC_STARTS):
        return None
    view = root.view
    while (end := path.find("/", at)) >= 0:
        if end - at > MAX_NAME or view.entry(path[:end]).kind is not EntryKind.FOLDER:
            return None
        at = end + 1
    if len(path) - at > MAX_NAME:
        return None
    entry = view.entry(path)
    if entry.kind is EntryKind.FILE or entry.kind is EntryKind.FOLDER or entry.kind is EntryKind.OTHER:
        return Resolved(path, entry, 0, ())
    return Resolved(path, entry, 1, ()) if entry.kind is EntryKind.ABSENT else None


class _Walk:
    """One resolution. INVARIANT (folder): `here` is the components of a folder that holds no link."""

    def __init__(self, root: Root, final: LastLink) -> None:
        self.root = root
        self.keep = final == "keep"
        self.here = _split(root.path)
        self.todo: list[tuple[str, bool]] = []  # the next component last; each with whether a link brought it
        self.links: list[str] = []

    def run(self, path: str) -> Resolved | Refused:
        self._push(path, by_link=False)
        entry: Entry | None = None
        while self.todo:
            name, by_link = self.todo.pop()
            if _size(name) > MAX_NAME:
                return Refused.of(Code.PATH_MALFORMED, f"the name `{name[:32]}…` is over 255 bytes")
            entry = None
            if name == ".":
                continue
            if name == "..":
                self.here = self.here[:-1]
                continue
            entry = self.root.view.entry(_join((*self.here, name)))
            step = self._step(name, entry, by_link=by_link)
            if step is not None:
                return step
        if entry is None:
            entry = self.root.view.entry(_join(self.here))
        return self._end(self.here, entry, 0)

    def _push(self, path: str, *, by_link: bool) -> None:
        """Put a path's components before what is left. A trailing slash asks for a folder, as `.` does."""
        if path.startswith("/"):
            self.here = ()
        names = [name for name in path.split("/") if name]
        if path.endswith("/") and names:
            names.append(".")
        self.todo.extend((name, by_link) for name in reversed(names))

    def _step(self, name: str, entry: Entry, *, by_link: bool) -> Resolved | Refused | None:
        """One component that is a name: None goes on, anything else ends the walk."""
        if entry.kind not in (EntryKind.ABSENT, EntryKind.DENIED, EntryKind.NOT_A_FOLDER):
            spelled = self._spelled(name)
            if spelled is None:
                return self._refuse(f"`{name}` has no single spelling on disk")
            name = spelled
        path = (*self.here, name)
        match entry.kind:
            case EntryKind.LINK:
                return self._follow(path, entry)
            case EntryKind.FOLDER:
                self.here = path
                return self._refuse(_MAGIC_SAYS) if _is_magic(path) else None
            case EntryKind.FILE | EntryKind.OTHER:
                if self.todo:
                    return self._refuse(f"`{_join(path)}` is no folder")
                return self._end(path, entry, 0)
            case EntryKind.ABSENT:
                return self._missing(entry, name, by_link=by_link)
            case EntryKind.DENIED | EntryKind.NOT_A_FOLDER:
                return self._refuse(f"`{_join(path)}` cannot be looked at ({entry.kind})")

    def _follow(self, path: tuple[str, ...], entry: Entry) -> Resolved | Refused | None:
        if self.keep and all(name == "." for name, _ in self.todo):
            # unlink(2) and rename(2) refuse `link/` with ENOTDIR
            return self._refuse("a link with a slash behind it") if self.todo else self._end(path, entry, 0)
        if len(self.links) >= MAX_LINKS:
            return self._refuse(f"more than {MAX_LINKS} links on the way")
        if not entry.target or "\0" in entry.target or _size(entry.target) > MAX_PATH:
            return self._refuse(f"the link `{_join(path)}` cannot be read")
        self.links.append(_join(path))
        self._push(entry.target, by_link=True)
        return None

    def _missing(self, entry: Entry, name: str, *, by_link: bool) -> Resolved | Refused:
        rest = [after for after, _ in reversed(self.todo)]
        if ".." in rest or (by_link and rest):
            return self._refuse(f"`{_join((*self.here, name))}` does not exist, and the path goes on")
        names = [name, *(after for after in rest if after != ".")]
        if self.root.normalizes:
            names = [unicodedata.normalize("NFC", after) for after in names]
        if any(_size(after) > MAX_NAME for after in names):
            return Refused.of(Code.PATH_MALFORMED, "a name is over 255 bytes")
        return self._end((*self.here, *names), entry, len(names))

    def _end(self, parts: tuple[str, ...], entry: Entry, missing: int) -> Resolved | Refused:
        path = _join(parts)
        if _is_magic(parts):
            return self._refuse(_MAGIC_SAYS)
        if _size(path) > MAX_PATH:
            return Refused.of(Code.PATH_MALFORMED, "the path, with links resolved, is over 4095 bytes")
        if entry.kind in (EntryKind.DENIED, EntryKind.NOT_A_FOLDER):
            return self._refuse(f"`{path}` cannot be looked at ({entry.kind})")
        return Resolved(path, entry, missing, tuple(self.links))

    def _spelled(self, name: str) -> str | None:
        """The name of something that exists as its folder spells it, or None where that is not one name."""
        if self.root.case_sensitive and not self.root.normalizes:
            return name
        # The root's own path is spelled as on disk already; the folders above it need not be listed, nor be readable.
        base, depth = _split(self.root.path), len(self.here)
        if depth < len(base) and base[:depth] == tuple(self.here) and self._fold(base[depth]) == self._fold(name):
            return base[depth]
        names = self.root.view.names(_join(self.here))
        if names is None:
            return None
        if name in names:
            return name
        alike = [known for known in names if self._fold(known) == self._fold(name)]
        return alike[0] if len(alike) == 1 else None

    def _fold(self, name: str) -> str:
        folded = unicodedata.normalize("NFC", name) if self.root.normalizes else name
        if not self.root.case_sensitive:
            folded = folded.casefold()
        return unicodedata.normalize("NFC", folded) if self.root.normalizes else folded

    def _refuse(self, detail: str) -> Refused:
        return Refused.of(Code.PATH_UNRESOLVED, detail)


def _final(type: str, given: Mapping[str, JsonValue]) -> LastLink:
    parameters = Parameters(type, given)
    parameters.only("final")
    choices: tuple[LastLink, ...] = ("follow", "keep")
    return parameters.choice("final", choices)


def _read(raw: JsonValue, where: Root, final: LastLink) -> Resolved | Refused:
    if not isinstance(raw, str):
        return Refused.of(Code.FIELD_TYPE, "a path is a string")
    return resolve(raw, where, final=final)


def _scan(type: RepoPath | FilePath, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
    read: dict[str, Value | Refused] = {}

    def exists(path: str) -> EntryKind:
        found = resolve(path, where, final=type.final)
        return EntryKind.ABSENT if isinstance(found, Refused) else found.entry.kind

    for span, path in mentions(text, exists):
        value = read.get(path)
        if value is None:
            value = read[path] = type.parse(path, where)
        if isinstance(value, Value):
            yield span, value


def _is_magic(parts: tuple[str, ...]) -> bool:
    return any(parts[: len(magic)] == magic for magic in _MAGIC)


def _split(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


def _join(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(parts)


def _size(path: str) -> int:
    return len(path) if path.isascii() else len(path.encode("utf-8", "surrogatepass"))
