"""A world that is written down: paths with modes, texts and links, below one root. For plans over what is not on a disk.

- Folders that a path needs are there; everything that is not named is absent. Git answers nothing.

    >>> Tree("/srv", {"src/a.py": {"text": "x = 1"}}).names("/srv/src")
    ('a.py',)
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from cxi.canonical import JsonValue
from cxi.effects.place import join
from cxi.values.base import Entry, EntryKind


class Tree:
    """See the module.

    Args:
        root: The root, absolute.
        entries: Path, relative to the root or absolute, to `{"mode"?, "text" | "link" | "folder"?}`; a mode is octal text.

    Raises:
        ValueError: an entry is none.
    """

    def __init__(self, root: str, entries: Mapping[str, JsonValue]) -> None:
        self._entries: dict[str, Entry] = {"/": Entry(EntryKind.FOLDER, 0o755)}
        self._data: dict[str, bytes] = {}
        self._names: dict[str, set[str]] = {}
        self._folder(root)
        for number, (path, body) in enumerate(entries.items(), start=1):
            self._add(posixpath.normpath(path if path.startswith("/") else join(root, path)), body, number, path.endswith("/"))

    def _add(self, path: str, body: JsonValue, number: int, slash: bool) -> None:
        if not isinstance(body, Mapping):
            raise ValueError(f"`{path}` is no entry")
        given = body.get("mode")
        if isinstance(given, str):
            mode = int(given, 8) & 0o7777
        else:
            mode = given & 0o7777 if isinstance(given, int) and not isinstance(given, bool) else -1
        self._folder(posixpath.dirname(path))
        link, text = body.get("link"), body.get("text")
        if isinstance(link, str):
            self._put(path, Entry(EntryKind.LINK, 0o777, link, 1, number, 1))
        elif isinstance(text, str):
            self._data[path] = text.encode("utf-8", "surrogateescape")
            self._put(path, Entry(EntryKind.FILE, mode if mode >= 0 else 0o644, "", 1, number, 1, len(self._data[path])))
        elif slash or "folder" in body or body.keys() <= {"mode"}:
            self._folder(path)
            self._put(path, Entry(EntryKind.FOLDER, mode if mode >= 0 else 0o755))
        else:
            raise ValueError(f"`{path}` holds neither `text` nor `link`")

    def _put(self, path: str, entry: Entry) -> None:
        self._entries[path] = entry
        if path != "/":
            self._names.setdefault(posixpath.dirname(path), set()).add(posixpath.basename(path))

    def _folder(self, path: str) -> None:
        while path not in self._entries:
            self._put(path, Entry(EntryKind.FOLDER, 0o755))
            path = posixpath.dirname(path)

    def entry(self, path: str) -> Entry:
        """See `View.entry`."""
        found = self._entries.get(path)
        if found is not None:
            return found
        above = posixpath.dirname(path)
        while above not in self._entries:
            above = posixpath.dirname(above)
        return Entry(EntryKind.ABSENT if self._entries[above].kind is EntryKind.FOLDER else EntryKind.NOT_A_FOLDER)

    def names(self, path: str) -> tuple[str, ...] | None:
        """See `View.names`."""
        entry = self._entries.get(path)
        return tuple(sorted(self._names.get(path, ()))) if entry is not None and entry.kind is EntryKind.FOLDER else None

    def content(self, path: str) -> bytes | None:
        """See `World.content`."""
        return self._data.get(path)

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """See `World.git`: nothing is known."""
        del repository, question, arguments
        return None
