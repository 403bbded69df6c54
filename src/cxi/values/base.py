"""The protocol of a value type, and the view of the world that it reads through.

- A type reads a value *as its target reads it*; two spellings of one thing have one canonical form.
- `parse` takes JSON that an agent sent, `scan` finds a type's occurrences in a text; both give the same `Value`.
- Pure: files are seen only through the `View` that the edge hands in with the `Root`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from cxi.canonical import JsonValue, canonicalize
from cxi.errors import Refused

Span: TypeAlias = tuple[int, int]  # [start, end) in code points


class EntryKind(StrEnum):
    """What stands at a path, links not followed (lstat(2))."""

    ABSENT = "absent"
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"  # a device, socket or fifo
    NOT_A_FOLDER = "not-a-folder"  # ENOTDIR: a parent is no folder
    DENIED = "denied"  # EACCES and whatever else lstat(2) answers


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer of lstat(2), and of readlink(2) for a link.

    Attributes:
        kind: What stands there.
        mode: Permission bits (`st_mode & 0o7777`); 0 where there is none.
        target: The link's text, for a link.
        device, inode: Identity of the file; 0 where there is none.
        links: Number of hard links; 0 where there is none.
        size: Bytes; 0 where there is none.
    """

    kind: EntryKind
    mode: int = 0
    target: str = ""
    device: int = 0
    inode: int = 0
    links: int = 0
    size: int = 0


class View(Protocol):
    """A read-only view of a file system. Paths are absolute POSIX paths."""

    def entry(self, path: str) -> Entry:
        """What stands at `path`, its last component not followed."""
        ...

    def names(self, path: str) -> tuple[str, ...] | None:
        """The names in a folder, sorted; None where it is no readable folder."""
        ...


@dataclass(frozen=True, slots=True)
class Root:
    """The declared root of a server's world.

    Attributes:
        path: Absolute and real (its own links resolved by the edge).
        view: What it is seen through; every read through it enters the read set.
        case_sensitive: Whether the file system tells `A` from `a`.
        normalizes: Whether it holds composed and decomposed Unicode names to be one.
    """

    path: str
    view: View
    case_sensitive: bool = True
    normalizes: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A value in canonical form.

    Attributes:
        type: The type's name, as contracts write it.
        canonical: What is compared, hashed and shown. RFC 8785-safe JSON.
        wire: What the sink is sent; equal meanings have one wire form (an absolute path, for a path).
    """

    type: str
    canonical: JsonValue
    wire: JsonValue
    _key: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def key(self) -> bytes:
        """What two values that are the same value share: the canonical bytes of type and canonical form, worked out once."""
        if not self._key:
            object.__setattr__(self, "_key", canonicalize([self.type, self.canonical]))
        return self._key


class ValueType(Protocol):
    """How values of one type are read. One class a family, one line in `values.TYPES`."""

    @property
    def name(self) -> str:
        """The name that contracts use."""
        ...

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        """Read one value.

        Args:
            raw: JSON as the agent sent it.
            where: The root against which paths resolve; other types ignore it.

        Returns:
            The value, or why it is none. Never raises for any JSON.
        """
        ...

    def scan(self, text: str, where: Root) -> Iterable[tuple[Span, Value]]:
        """Every occurrence of a value in a text, left to right, longest first, not overlapping.

        Occurrences are whole: "13" is not in "June 13th" nor in "130", "tax.py" not in "src/tax.py".
        """
        ...
