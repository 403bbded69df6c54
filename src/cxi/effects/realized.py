"""Is what the sink did what was admitted?

- Each `fs.*` atom is compared with the disk now: `after` with the bytes, absence with absence, a link with its text.
- `git.index` and `git.ref` atoms are compared with git now. What a hook or a filter decides has no `after`, and is not compared.
- Every folder between the root and a path, the root with it, has to be a folder still: lstat(2) follows a link on the way, so
  what stands behind one is not what was admitted. Outside the root that holds of all folders above.
- What is `maybe` may have been left undone, and only the bytes of a file that is there are compared.
- What cannot be told (`fs.touch`, a hook, a write of bytes that nobody stated) is no difference; `tells` says if there is such.
- What was not in the effect is not looked for: the assurance `checked` says that a window is open.

    >>> differences(effect, "/srv/repo", world)       # doctest: +SKIP
    ()
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.canonical import digest_bytes
from cxi.effects.base import Atom, Effect, World
from cxi.effects.place import join, locate, name
from cxi.effects.repository import hash_blob, parse_index
from cxi.errors import Refused
from cxi.values.base import EntryKind, Root

_Check: TypeAlias = Callable[[Atom, str, World], str]

_MADE: Final = frozenset({"fs.create", "fs.write", "fs.symlink", "fs.link", "fs.mkdir", "fs.mkfifo"})
_GONE: Final = frozenset({"fs.delete", "fs.rmdir"})


def differences(effect: Effect, root_path: str, world: World) -> tuple[str, ...]:
    """What of the effect is not there now.

    Args:
        effect: The admitted effect.
        root_path: The root, absolute and real.
        world: The world as it is now.

    Returns:
        One line an atom that is not realized; empty where all are.
    """
    root = Root(root_path, world)
    made = {atom.target for atom in effect.atoms if atom.kind in _MADE}
    found: list[str] = []
    for atom in effect.atoms:
        check = _CHECKS.get(atom.kind)
        path = locate(root, str(atom.attributes.get("repository", ".")) if atom.kind in _GIT else atom.target)
        if not (atom.kind.startswith("fs.") or atom.kind in _GIT) or atom.pattern or isinstance(path, Refused):
            continue
        if atom.attributes.get("maybe") is True and (atom.kind != "fs.write" or world.entry(path).kind is not EntryKind.FILE):
            continue  # it may have been left undone
        problem = _way(atom, join(path, ".git/HEAD") if atom.kind in _GIT else path, root, made)
        if not problem:
            # Where its type changes, what is made there is compared.
            remade = atom.kind in _GONE and atom.target in made
            problem = check(atom, path, world) if check is not None and not remade else ""
        if problem:
            found.append(f"{atom.kind} `{atom.target}`: {problem}")
    return tuple(found)


def _way(atom: Atom, path: str, root: Root, made: Collection[str]) -> str:
    """What is wrong with the folders on the way to a path, the root or `/` first."""
    inside = path == root.path or path.startswith(join(root.path, ""))
    top = root.path if inside else "/"
    above: list[str] = []
    while path not in (top, "/"):
        path = posixpath.dirname(path)
        above.append(path)
    for folder in reversed(above):
        kind = root.view.entry(folder).kind
        if kind is EntryKind.FOLDER:
            continue
        if atom.kind in _GONE and (kind is not EntryKind.LINK or name(root, folder) in made):
            return ""  # the folder went with it, or something else that was admitted stands in its place
        if kind is EntryKind.ABSENT:
            return "" if atom.kind == "fs.read" else "has no folder"
        return f"is reached through a {kind}"
    return ""


def tells(effect: Effect) -> bool:
    """Whether the world shows of every atom if it happened; only then is `differences` a word on the whole effect."""
    told = {atom.kind for atom in effect.atoms if _is_told(atom)}
    # A ref that moved is the commit or the checkout that moved it.
    follow = {"git.commit", "git.checkout"} if "git.ref" in told else set()
    return all(_is_told(atom) or atom.kind in follow for atom in effect.atoms)


def _is_told(atom: Atom) -> bool:
    if atom.pattern:
        return False
    match atom.kind:
        case "fs.read" | "fs.create" | "fs.delete" | "fs.mkdir" | "fs.rmdir" | "fs.symlink":
            return True  # nothing to tell, or there and not there
        case "fs.write":
            return isinstance(atom.attributes.get("after"), str)
        case "git.index":
            return atom.attributes.get("gone") is True or atom.attributes.get("after") is not None
        case "git.ref":
            return isinstance(atom.attributes.get("after") or atom.attributes.get("tree"), str)
        case _:
            return False


def _bytes(atom: Atom, path: str, world: World) -> str:
    entry = world.entry(path)
    if entry.kind is not EntryKind.FILE:
        return f"is {entry.kind}"
    after, before = atom.attributes.get("after"), atom.attributes.get("before")
    if not isinstance(after, str):
        return ""
    data = world.content(path)
    if data is None:
        return "cannot be read"
    now = f"git-blob:{hash_blob(data)}" if after.startswith("git-blob:") else digest_bytes(data)
    # Another name of a written file keeps its bytes where the server replaced the file.
    if now == after or (atom.attributes.get("maybe") is True and now == before):
        return ""
    return "holds other bytes"


def _absent(atom: Atom, path: str, world: World) -> str:  # noqa: ARG001  # one signature for all checks
    kind = world.entry(path).kind
    return "" if kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER) else f"is still there ({kind})"


def _folder(atom: Atom, path: str, world: World) -> str:  # noqa: ARG001
    kind = world.entry(path).kind
    return "" if kind is EntryKind.FOLDER else f"is {kind}"


def _standing(atom: Atom, path: str, world: World) -> str:
    kind = world.entry(path).kind
    return _bytes(atom, path, world) if kind is not EntryKind.FOLDER else ""


def _link(atom: Atom, path: str, world: World) -> str:
    entry = world.entry(path)
    to = atom.attributes.get("to")
    if entry.kind is not EntryKind.LINK:
        return f"is {entry.kind}"
    return "" if to is None or entry.target == to else "leads elsewhere"


def _index(atom: Atom, path: str, world: World) -> str:
    answer = world.git(path, "index", ())
    index = parse_index(answer) if answer is not None else None
    if index is None or isinstance(index, Refused):
        return "the index cannot be read"
    repository = str(atom.attributes.get("repository", "."))
    inside = atom.target if repository == "." else atom.target.removeprefix(f"{repository}/")
    now = index.get(inside)
    if atom.attributes.get("gone") is True:
        return "" if now is None else "is still staged"
    if now is None:
        return "is not in the index"
    mode = atom.attributes.get("mode")
    after = atom.attributes.get("after")
    return "" if after in (None, now[1]) and mode in (None, now[0]) else "is staged with other content"


def _ref(atom: Atom, path: str, world: World) -> str:
    ref, after, tree = atom.attributes.get("ref"), atom.attributes.get("after"), atom.attributes.get("tree")
    if not isinstance(ref, str):
        return ""
    if isinstance(after, str) and after.startswith("refs/"):
        return "" if _ask(world, path, "symbolic", ref) == after else "names another branch"
    if isinstance(after, str):
        return "" if _ask(world, path, "resolve", ref) == after else "names another commit"
    if isinstance(tree, str):
        if _ask(world, path, "resolve", f"{ref}^{{tree}}") != tree:
            return "records another tree"
        before = atom.attributes.get("before", "")
        if (_ask(world, path, "resolve", f"{ref}^1") or "") != before:
            return "has another parent"
    return ""


def _ask(world: World, repository: str, question: str, argument: str) -> str | None:
    answer = world.git(repository, question, (argument,))
    return answer.decode("utf-8", "surrogateescape").strip() if answer is not None else None


_GIT: Final = frozenset({"git.index", "git.ref"})
_CHECKS: Final[Mapping[str, _Check]] = MappingProxyType(
    {
        "fs.create": _bytes,
        "fs.write": _bytes,
        "fs.chmod": _standing,
        "fs.delete": _absent,
        "fs.rmdir": _absent,
        "fs.mkdir": _folder,
        "fs.symlink": _link,
        "git.index": _index,
        "git.ref": _ref,
    }
)
