"""Which paths could a glob name, at most?

- A glob is read as coarsely as any program reads it: what is not plainly literal may be anything. A "no" is a proof.
- A target's glob is canonical: `*`, `?` and `[…]` stay within one component, `**` crosses components (an adapter whose program
  lets `*` cross writes `**`); braces, backslashes and extended globs may be anything below the literal folder.
- Everything is compared folded (`cxi.policy.vocabulary.fold`), so that a glob on a case-insensitive root misses nothing.

    >>> literal_folder("src/*.py"), literal_folder("**/x"), literal_folder("/etc/*.d/a")
    ('src', '.', '/etc')
    >>> Glob.of("src/*.py").could_be_named(Shape.of("*.pem"))
    False
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from cedarpy import pst

from cxi.policy.vocabulary import fold

_MAGIC: Final = re.compile(r"[*?\[{\\]|[@!+]\(")
_OPAQUE: Final = re.compile(r"[{\\]|[@!+?*]\(")
_CLASS: Final = re.compile(r"\[[!^]?[^\]\[/!^][^\]\[/]*\]")  # a class that every program reads alike
_PART: Final = re.compile(r"\*+|\?|\[[^\]]*\]|.", re.DOTALL)


def literal_folder(glob: str) -> str:
    """The longest folder that holds whatever the glob names; `.` is the root."""
    parts = glob.split("/")
    kept: list[str] = []
    for part in parts[:-1]:
        if _MAGIC.search(part):
            break
        kept.append(part)
    joined = "/".join(kept)
    return joined or ("/" if glob.startswith("/") else ".")


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder itself or something in it. Both canonical, both folded or neither."""
    if folder == ".":
        return not path.startswith("/")
    if folder == "/":
        return path.startswith("/")
    return path == folder or path.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class Shape:
    """A set of texts: characters, `WITHIN` for any text without a slash, and `None` for any text.

    Attributes:
        parts: The characters and gaps, in order.
    """

    parts: tuple[str | None, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """The shape of a text in which `*` is any text (Cedar's `like`)."""
        return cls(tuple(None if char == "*" else char for char in fold(text)))

    @classmethod
    def like(cls, pattern: tuple[pst.PatternElem, ...]) -> Self | None:
        """The shape of a `like` pattern, or None where it has other than ASCII: folding could then move its characters."""
        parts: list[str | None] = []
        for element in pattern:
            match element:
                case pst.Wildcard():
                    parts.append(None)
                case pst.Char(char):
                    if not char.isascii():
                        return None
                    parts.append(char.lower())
        return cls(tuple(parts))

    def meets(self, other: Shape) -> bool:
        """Whether some text has both shapes."""
        return _meets(self.parts, other.parts)


WITHIN: Final = "within"
ANY: Final = Shape((None,))


@lru_cache(maxsize=4096)
def _meets(left: tuple[str | None, ...], right: tuple[str | None, ...]) -> bool:
    """Walk both at once, over the set of places where they can stand together: O(len · len).

    What two gaps share can be left out of a text that has both shapes, so a gap takes only characters of the other shape.
    """
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        i, j = at
        if i == len(left) and j == len(right):
            return True
        one = left[i] if i < len(left) else ""
        two = right[j] if j < len(right) else ""
        for gap, other, past, taken in ((one, two, (i + 1, j), (i, j + 1)), (two, one, (i, j + 1), (i + 1, j))):
            if gap is None or gap == WITHIN:
                todo.append(past)
                if other and (gap is None or other != "/"):
                    todo.append(taken)
        if one and one == two:
            todo.append((i + 1, j + 1))
    return False


def _opaque(glob: str) -> bool:
    return _OPAQUE.search(glob) is not None or "[" in _CLASS.sub("", glob)


def _shape(part: str) -> Shape:
    """What one component, or a whole glob, can be; characters beyond ASCII may be anything (folding moves them)."""
    if _opaque(part):
        return ANY
    pieces = _PART.findall(part)
    return Shape(tuple(_piece(piece) for piece in pieces))


def _piece(piece: str) -> str | None:
    if piece.startswith("**"):
        return None
    return piece.lower() if len(piece) == 1 and piece.isascii() and piece not in "*?[" else WITHIN


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob target.

    Attributes:
        folder: Its longest literal folder, as spelled.
        path: What a path that it names looks like, whole.
        parts: What its components look like; None where it may have others than those (`**`, braces).
        name: What the last component looks like.
    """

    folder: str
    path: Shape
    parts: tuple[Shape, ...] | None
    name: Shape

    @classmethod
    def of(cls, glob: str) -> Self:
        """Read a glob, as coarsely as any program reads it."""
        pieces = glob.split("/")
        folder = literal_folder(glob)
        if _opaque(glob):
            return cls(folder, ANY, None, ANY)
        # `a/**/b` names `a/b` too, and `a/**` may name `a`: the slash beside `**` goes into the gap.
        whole = _shape(re.sub(r"/?\*\*+/?", "**", glob))
        if "**" in glob:
            return cls(folder, whole, None, ANY if "**" in pieces[-1] else _shape(pieces[-1]))
        parts = tuple(_shape(piece) for piece in pieces if piece)
        return cls(folder, whole, parts, parts[-1] if parts else ANY)

    def could_be(self, path: str) -> bool:
        """Whether it could name this very path."""
        if not within(fold(path), fold(self.folder)):
            return False
        if self.parts is None:
            return _literal(path).meets(self.path)
        parts = _components(path)
        return len(parts) == len(self.parts) and self._begins_as(parts)

    def could_be_in(self, folder: str) -> bool:
        """Whether it could name this folder or something in it."""
        here, there = fold(self.folder), fold(folder)
        if within(here, there):
            return True
        if not within(there, here):
            return False
        if self.parts is None:
            return Shape((*_literal(folder).parts, "/", None)).meets(self.path) or self.could_be(folder)
        parts = _components(folder)
        return len(parts) <= len(self.parts) and self._begins_as(parts)

    def _begins_as(self, parts: list[str]) -> bool:
        return all(_literal(part).meets(shape) for part, shape in zip(parts, self.parts or (), strict=False))

    def is_in(self, folder: str) -> bool:
        """Whether all that it names is in this folder, spelled so."""
        return within(self.folder, folder)

    def could_be_named(self, shape: Shape) -> bool:
        """Whether the last component could have this shape."""
        return self.name.meets(shape)

    def could_hold(self, component: str) -> bool:
        """Whether one of the components could be this, folded."""
        if self.parts is None:
            return True
        wanted = Shape(tuple(fold(component))) if component.isascii() else ANY
        return any(part.meets(wanted) for part in self.parts)


def _components(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _literal(text: str) -> Shape:
    """A literal path or component; characters beyond ASCII may be anything, as in `_shape`."""
    return Shape(tuple(char.lower() if char.isascii() else WITHIN for char in text))
