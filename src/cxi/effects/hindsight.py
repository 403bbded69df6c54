"""Did a call happen whose outcome nobody saw? What the world can say of it afterwards, and nothing more.

- `There`: every atom shows its result now, and the world tells of every atom (`realized.tells`). That the effect is there is all
  that is claimed, not that this call made it: whoever made it, a second time would be one too many.
- `NotThere`: every atom shows exactly what was before it, and nothing that it would have changed was changed since the lease.
  Equal bytes alone are not enough: an effect that somebody undid has happened. So the last change of each file, or of the folder
  that a new name would be in, must lie before the lease, by `MARGIN`.
- `Unclear`: everything else. Partly there, changed by another, no word on an atom (a hook, a remote service), or no longer known.
- Neither says what will happen: a request that is still on its way lands later. Whoever acts on `NotThere` has to know that no
  server can still do it.
- Pure: the world and the times of last changes are parameters. Times are the file system's (ctime, inode(7)), which no program
  sets; a clock that was turned back between lease and look makes them worthless, and so the margin is no proof against it.

    >>> judge(Effect("none/1", (), Assurance.CHECKED), "/srv/repo", world, changed, 100.0)    # doctest: +SKIP
    Unclear(why=('the effect has no atom',))
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.base import Atom, Effect, World
from cxi.effects.place import join, locate
from cxi.effects.realized import differences, tells
from cxi.effects.repository import hash_blob, parse_index
from cxi.errors import Refused
from cxi.manifest import Assurance, Instant
from cxi.values.base import EntryKind, Root

MARGIN: Final = 1.0  # seconds: time stamps of some file systems are coarse, and lag behind the clock

Changed: TypeAlias = Callable[[str], Instant | None]
"""When what has this path last changed in any way (ctime), or None where there is nothing."""


@dataclass(frozen=True, slots=True)
class There:
    """Every atom of the effect is there."""

    atoms: int


@dataclass(frozen=True, slots=True)
class NotThere:
    """No atom is there, and nothing that they are about was touched since the lease."""

    atoms: int


@dataclass(frozen=True, slots=True)
class Unclear:
    """The world does not say.

    Attributes:
        why: One line a ground.
    """

    why: tuple[str, ...]


Verdict: TypeAlias = There | NotThere | Unclear


def read_effect(atoms: list[Mapping[str, JsonValue]], adapter: str, assurance: str) -> Effect:
    """The effect that a log's opened atoms tell (`Atom.to_json`)."""
    found = tuple(
        Atom(
            str(atom["kind"]),
            str(atom["target"]),
            {name: value for name, value in atom.items() if name not in ("kind", "target", "pattern")},
            pattern=atom.get("pattern") is True,
        )
        for atom in atoms
    )
    return Effect(adapter, found, Assurance(assurance))


def judge(effect: Effect, root_path: str, world: World, changed: Changed, leased: Instant) -> Verdict:
    """What the world says of an effect.

    Args:
        effect: The admitted effect.
        root_path: The root, absolute and real.
        world: The world as it is now, as the server sees it.
        changed: When a path last changed.
        leased: When the capability was leased; the effect cannot be older.
    """
    if effect.assurance is Assurance.DECLARED:
        return Unclear(("only the service that was called can say; this machine does not see its effect",))
    telling = [atom for atom in effect.atoms if atom.kind != "fs.read"]
    if not telling:
        return Unclear(("the effect has no atom",))
    if not tells(effect):
        return Unclear(("it has atoms whose result cannot be seen afterwards",))
    missing = differences(effect, root_path, world)
    if not missing:
        return There(len(telling))
    root = Root(root_path, world)
    done = tuple(line for atom in telling if (line := _before(atom, root, world, changed, leased)))
    if not done:
        return NotThere(len(telling))
    return Unclear((*missing, *done))


def _before(atom: Atom, root: Root, world: World, changed: Changed, leased: Instant) -> str:
    """Why an atom may have happened all the same; empty where it certainly has not."""
    repository = atom.attributes.get("repository")
    path = locate(root, str(repository or ".") if atom.kind in _GIT else atom.target)
    if isinstance(path, Refused):
        return f"{atom.kind} `{atom.target}`: its place cannot be found"
    if atom.kind in ("git.commit", "git.checkout"):
        return ""  # the ref that it moves is an atom of its own, and is judged
    look = _LOOKS.get(atom.kind)
    if look is None:
        return f"{atom.kind} `{atom.target}`: nothing shows that it did not happen"
    problem = look(atom, path, world)
    if not problem:
        touched = next((place for place in _places(atom, path, world) if not _older(place, changed, leased)), None)
        problem = f"`{touched}` was changed after the lease" if touched is not None else ""
    return f"{atom.kind} `{atom.target}`: {problem}" if problem else ""


def _older(path: str, changed: Changed, leased: Instant) -> bool:
    """Whether nothing with this name was made, changed or taken away since the lease."""
    while (last := changed(path)) is None:
        if path == "/":
            return False
        path = posixpath.dirname(path)  # what is not there would have changed the folder that it is not in
    return last < leased - MARGIN


def _places(atom: Atom, path: str, world: World) -> tuple[str, ...]:
    """Everything that would have changed."""
    if atom.kind not in _GIT:
        return (path, posixpath.dirname(path)) if atom.kind not in ("fs.write", "fs.chmod") else (path,)
    git = join(path, ".git")
    if world.entry(git).kind is not EntryKind.FOLDER:
        return ("/",)  # kept elsewhere: never old enough
    if atom.kind == "git.index":
        return (join(git, "index"),)
    ref = str(atom.attributes.get("ref", "HEAD"))
    return (join(git, "HEAD"), join(git, "packed-refs"), *((join(git, ref),) if ref.startswith("refs/") else ()))


def _same_bytes(atom: Atom, path: str, world: World) -> str:
    before, data = atom.attributes.get("before"), world.content(path)
    if not isinstance(before, str):
        return "what was before it is not known"
    if data is None:
        return "cannot be read"
    now = f"git-blob:{hash_blob(data)}" if before.startswith("git-blob:") else digest_bytes(data)
    return "" if now == before else "holds neither what was before nor what was to be" if not _after(atom, now) else "is there"


def _after(atom: Atom, now: str) -> bool:
    return atom.attributes.get("after") == now


def _absent(atom: Atom, path: str, world: World) -> str:  # noqa: ARG001  # one signature for all looks
    kind = world.entry(path).kind
    return "" if kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER) else f"something is there ({kind})"


def _still_there(atom: Atom, path: str, world: World) -> str:
    kind = world.entry(path).kind
    if kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
        return "is gone"
    return _same_bytes(atom, path, world) if isinstance(atom.attributes.get("before"), str) else ""


def _index(atom: Atom, path: str, world: World) -> str:
    answer = world.git(path, "index", ())
    index = parse_index(answer) if answer is not None else None
    if index is None or isinstance(index, Refused):
        return "the index cannot be read"
    repository = str(atom.attributes.get("repository", "."))
    inside = atom.target if repository == "." else atom.target.removeprefix(f"{repository}/")
    entry, before = index.get(inside), atom.attributes.get("before")
    return "" if (entry[1] if entry is not None else None) == before else "is staged otherwise than before"


def _ref(atom: Atom, path: str, world: World) -> str:
    ref, before = atom.attributes.get("ref"), atom.attributes.get("before", "")
    if not isinstance(ref, str):
        return "which ref is not known"
    symbolic = isinstance(before, str) and before.startswith("refs/")
    answer = world.git(path, "symbolic" if symbolic else "resolve", (ref,))
    now = answer.decode("utf-8", "surrogateescape").strip() if answer is not None else ""
    return "" if now == (before or "") else "names something else than before"


_GIT: Final = frozenset({"git.index", "git.ref"})
_LOOKS: Final[Mapping[str, Callable[[Atom, str, World], str]]] = MappingProxyType(
    {
        "fs.create": _absent,
        "fs.mkdir": _absent,
        "fs.symlink": _absent,
        "fs.write": _same_bytes,
        "fs.delete": _still_there,
        "fs.rmdir": _still_there,
        "git.index": _index,
        "git.ref": _ref,
    }
)
