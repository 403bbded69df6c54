"""What do refs, commits and trees say, in the words of git's plumbing?

- `symbolic` and `resolve` of plain refs (`cxi.sinks.ref`) and of full names of commits, with `^{commit}`, `^{tree}` or `^1`.
- `tree`, `staged` and `changed` of commits whose trees are known (`cxi.sinks.store`). Where a file stands in one tree and a
  folder in the other, the order of the answer is git's own affair.

    tell_history(reading, Store(reading, Objects()), "resolve", ("HEAD^{commit}",))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cxi.sinks.ground import kind_of
from cxi.sinks.reading import Reading
from cxi.sinks.ref import find_packed, is_plain_ref, read_ref, read_symbolic
from cxi.sinks.store import EMPTY_TREE, Store
from cxi.sinks.untold import Told, Untold

_NULL: Final = b"0" * 40
_HEX: Final = re.compile(r"[0-9a-f]{40}\Z")
_REVISION: Final = re.compile(r"(.*?)(|\^\{commit\}|\^\{tree\}|\^1)\Z")
_SUBMODULE: Final = b"160000"


def tell_history(reading: Reading, store: Store, question: str, arguments: tuple[str, ...]) -> Told:
    """The answer to `symbolic`, `resolve`, `type`, `tree`, `staged` or `changed`, where files tell it."""
    git = f"{reading.repository}/.git"
    match question, arguments:
        case "symbolic", (name,):
            return _line(read_symbolic(git, name))
        case "resolve", (text,):
            return _resolve(reading, store, text)
        case "type", (name,) if _HEX.match(name):
            return b"commit\n" if store.is_commit(name) else Untold.ASK
        case "tree", (name,) if _HEX.match(name) and name != EMPTY_TREE:
            paths = store.listing(name)
            return _list(paths) if paths is not None else Untold.ASK
        case "staged", (name,) if _HEX.match(name):
            return _staged(reading, store, name)
        case "changed", (before, after) if _HEX.match(before) and _HEX.match(after):
            if reading.index() is None:  # which git reads for its attributes, and refuses where it is broken
                return Untold.ASK
            old, new = store.listing(before), store.listing(after)
            return _compare(old, new) if old is not None and new is not None else Untold.ASK
        case _:
            return Untold.ASK


def _resolve(reading: Reading, store: Store, text: str) -> Told:
    """`git rev-parse --verify`."""
    found = _REVISION.match(text)
    if found is None:
        return Untold.ASK
    base, end = found.groups()
    name = base if _HEX.match(base) else _find_ref(f"{reading.repository}/.git", base)
    if isinstance(name, Untold) or not end:
        return _line(name)
    if end == "^1":
        parents = store.parents(name)
        return Untold.ASK if parents is None else _line(parents[0] if parents else None)
    commit = store.commit(name)
    if commit is None:
        return Untold.ASK
    return _line(name if end == "^{commit}" else commit.tree)


def _find_ref(git: str, name: str) -> str | Untold:
    """The object that a ref names, by its full name or as a branch's short one (gitrevisions(7))."""
    if not is_plain_ref(name):
        branch = f"refs/heads/{name}"
        others = (name, f"refs/{name}", f"refs/tags/{name}")  # each would go before the branch
        if name.startswith("refs/") or not is_plain_ref(branch):
            return Untold.ASK
        if any(kind_of(f"{git}/{other}") or find_packed(git, other) is not None for other in others):
            return Untold.ASK
        name = branch
    found = read_ref(git, name)
    # What is absent under its full name could be the tail of another's: `refs/heads/refs/heads/x`.
    return found if found is not None else Untold.ASK


def _staged(reading: Reading, store: Store, commit: str) -> Told:
    """`git diff-index --cached --ita-invisible-in-index`."""
    found = reading.index()
    paths = store.listing(commit)
    if found is None or found[0].conflicts or paths is None:
        return Untold.ASK
    held = {entry.path: (b"%06o" % entry.mode, entry.blob.hex()) for entry in found[0].entries if not entry.intended}
    return _compare(paths, held)


def _compare(before: Mapping[bytes, tuple[bytes, str]], after: Mapping[bytes, tuple[bytes, str]]) -> Told:
    """Raw output (git-diff-tree(1)) of two sets of paths."""
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    names = set(changed)
    rows: list[bytes] = []
    for path in changed:
        old, new = before.get(path), after.get(path)
        at = path.find(b"/")
        while at > 0:
            if path[:at] in names:
                return Untold.ASK
            at = path.find(b"/", at + 1)
        if _SUBMODULE in ((old or new or (b"", ""))[0], (new or old or (b"", ""))[0]):
            return Untold.ASK
        kind = b"A" if old is None else b"D" if new is None else b"M" if old[0][:3] == new[0][:3] else b"T"
        sides = [(side[0], side[1].encode()) if side is not None else (b"000000", _NULL) for side in (old, new)]
        rows.append(b":%s %s %s %s %s\0%s\0" % (sides[0][0], sides[1][0], sides[0][1], sides[1][1], kind, path))
    return b"".join(rows)


def _list(paths: Mapping[bytes, tuple[bytes, str]]) -> bytes:
    """As `git ls-tree -r -z` writes it."""
    return b"".join(
        b"%s %s %s\t%s\0" % (mode, b"commit" if mode == _SUBMODULE else b"blob", blob.encode(), path)
        for path, (mode, blob) in paths.items()
    )


def _line(name: str | Untold | None) -> Told:
    return f"{name}\n".encode("utf-8", "surrogateescape") if isinstance(name, str) else name
