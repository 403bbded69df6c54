"""Which object does a ref name?

- Loose refs and `packed-refs` in their usual form (gitrepository-layout(5), git-pack-refs(1)): `HEAD`, branches, tags and remote
  branches whose names are plain. Whatever else stands there is git's to read.
- A loose ref goes before a packed one; a symbolic ref is followed as often as git follows it.

    read_ref("/srv/repo/.git", "HEAD")
"""

from __future__ import annotations

import re
from typing import Final

from cxi.sinks.look import ABSENT, look
from cxi.sinks.untold import Untold

_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_NAME: Final = re.compile(rf"(?!.*(?:\.\.|\.lock(?:/|\Z)|\.(?:/|\Z)))(?:HEAD|refs/(?:heads|tags|remotes)(?:/{_PART})+)\Z")
_LOOSE: Final = re.compile(rb"(?:ref: ([^\0\n ]+)|([0-9a-f]{40}))\n\Z")
_PACKED: Final = re.compile(rb"# pack-refs with:.* sorted ?\n")
_DEEPEST: Final = 5  # symbolic refs in a row (refs.h, SYMREF_MAXDEPTH)


def is_plain_ref(name: str) -> bool:
    """Whether a name is one that is read here."""
    return _NAME.match(name) is not None


def read_ref(git: str, name: str) -> str | Untold | None:
    """The object that a ref names; None where there is no such ref."""
    end = follow_ref(git, name)
    if isinstance(end, Untold):
        return end
    return _read(git, end, packed=True)[1]


def read_symbolic(git: str, name: str) -> str | Untold | None:
    """The ref that a symbolic ref leads to in the end; None where it is not symbolic."""
    end = follow_ref(git, name)
    return None if end == name else end


def follow_ref(git: str, name: str) -> str | Untold:
    """The last of the refs that lead on from one."""
    for _ in range(_DEEPEST):
        if not is_plain_ref(name):
            return Untold.ASK
        target, found = _read(git, name)
        if isinstance(found, Untold):
            return found
        if not target:
            return name
        name = target
    return Untold.ASK


def _read(git: str, name: str, *, packed: bool = False) -> tuple[str, str | Untold | None]:
    """(the ref that a file names, or empty; the object that it names, or None)."""
    seen = look(f"{git}/{name}", through_links=False)
    if seen == ABSENT:
        return "", find_packed(git, name) if packed else None
    found = _LOOSE.match(seen[5]) if seen is not None and len(seen) == 6 else None
    if found is None or found[2] == b"0" * 40:
        return "", Untold.ASK
    return (found[1] or b"").decode("utf-8", "surrogateescape"), found[2].decode() if found[2] is not None else None


def find_packed(git: str, name: str) -> str | Untold | None:
    """The object that `packed-refs` has for a ref; None where it has none."""
    seen = look(f"{git}/packed-refs", through_links=False)
    if seen == ABSENT:
        return None
    if (
        seen is None
        or len(seen) != 6
        or not seen[5].startswith(b"# pack-refs with:")
        or b" sorted" not in seen[5].partition(b"\n")[0]
    ):
        return Untold.ASK
    rows = re.findall(rb"^(.*) " + re.escape(name.encode()) + rb"$", seen[5], re.MULTILINE)
    if not rows:
        return None
    return rows[0].decode() if len(rows) == 1 and re.fullmatch(rb"[0-9a-f]{40}", rows[0]) else Untold.ASK
