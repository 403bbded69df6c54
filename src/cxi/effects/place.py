"""Where does a canonical path stand, and what stands there?

- A canonical path is relative to the root when inside it (`.` is the root), absolute when outside.
- `locate` makes it absolute, `name` makes it canonical again; neither reads the world.
- `below` lists everything under a folder, links kept, and stops at `LIMIT` entries: what cannot be listed whole is refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cxi.effects.base import Snapshot
from cxi.errors import Code, Refused
from cxi.policy.vocabulary import fold
from cxi.values.base import Entry, EntryKind, Root, View

LIMIT: Final = 10_000  # entries that one effect may expand to


@dataclass(frozen=True, slots=True)
class Standing:
    """Something below a folder.

    Attributes:
        path: Absolute.
        entry: What stands there.
    """

    path: str
    entry: Entry


def locate(root: Root, canonical: str, *, where: str = "") -> str | Refused:
    """The absolute path of a canonical one.

    Returns:
        The path; or `PATH_MALFORMED` where it is not in canonical form, which a value type never hands on.
    """
    parts = canonical.removeprefix("/").split("/")
    if canonical == ".":
        return root.path
    if not canonical or "\0" in canonical or (canonical != "/" and any(part in ("", ".", "..") for part in parts)):
        return Refused.of(Code.PATH_MALFORMED, f"`{canonical}` is not in canonical form", where=where)
    return canonical if canonical.startswith("/") else join(root.path, canonical)


def join(folder: str, name: str) -> str:
    """`name` below `folder`."""
    return f"{folder.rstrip('/')}/{name}"


def name(root: Root, path: str) -> str:
    """The canonical form of an absolute path."""
    if path == root.path:
        return "."
    prefix = join(root.path, "")
    return path.removeprefix(prefix) if path.startswith(prefix) else path


def below(snapshot: Snapshot, folder: str, *, where: str = "") -> tuple[Standing, ...] | Refused:
    """Everything under a folder, depth first, each folder before what it holds; links are not followed."""
    found: list[Standing] = []
    pending = [folder]
    while pending:
        here = pending.pop()
        names = snapshot.names(here)
        if names is None:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{here}` cannot be listed", where=where)
        if len(found) + len(names) > LIMIT:
            return Refused.of(
                Code.EFFECT_UNSUPPORTED, f"`{folder}` holds more than {LIMIT} entries", where=where, needs="name smaller folders"
            )
        for child in names:
            path = join(here, child)
            entry = snapshot.entry(path)
            found.append(Standing(path, entry))
            if entry.kind is EntryKind.FOLDER:
                pending.append(path)
    return tuple(found)


def parents(path: str) -> Iterator[str]:
    """Every folder above an absolute path, nearest first, `/` last."""
    while path != "/":
        path = posixpath.dirname(path)
        yield path


@lru_cache(maxsize=4096)
def folded(path: str) -> tuple[str, ...]:
    """The folded components of an absolute path."""
    return tuple(fold(part) for part in path.split("/") if part)


def _is_straight(view: View, path: str) -> bool:
    """Whether nothing on a path's way is a link, and nothing in its text is to be taken out: most paths."""
    if path[:1] != "/" or path[-1:] == "/" or "/." in path or "//" in path:
        return path == "/"
    end = path.find("/", 1)
    while end > 0:
        if view.entry(path[:end]).kind is EntryKind.LINK:
            return False
        end = path.find("/", end + 1)
    return view.entry(path).kind is not EntryKind.LINK


def follow(view: View, path: str) -> str | None:
    """The absolute path with every link resolved as the kernel would; what is absent stays as it is named.

    Returns:
        None for more than 40 links (path_resolution(7)).
    """
    if _is_straight(view, path):
        return path
    done: list[str] = []
    pending = [part for part in reversed(path.split("/")) if part]
    links = 0
    while pending:
        part = pending.pop()
        if part == ".":
            continue
        if part == "..":
            del done[-1:]
            continue
        here = "/" + "/".join([*done, part])
        entry = view.entry(here)
        if entry.kind is EntryKind.LINK:
            links += 1
            if links > 40:
                return None
            if entry.target.startswith("/"):
                done = []
            pending.extend(piece for piece in reversed(entry.target.split("/")) if piece)
        else:
            done.append(part)
    return "/" + "/".join(done)
