"""What does a change of a file mean to git?

- A path with a component that some file system takes for `.git` is git's own: a change there is `git.hook`, `git.ref` or
  `git.config` as well, beside its `fs.*` atom.
- A path in the folder that `core.hooksPath` names is a hook, wherever that folder stands.
- What is in the git folder and none of the others is `git.config`, the kind that can do most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cxi.canonical import JsonValue
from cxi.effects.base import Atom, Snapshot
from cxi.effects.given import GivenPath
from cxi.effects.place import folded, join, locate
from cxi.effects.repository import Repository, parse_settings
from cxi.errors import Refused
from cxi.values.base import EntryKind

_CHANGES: Final = frozenset(
    {"fs.create", "fs.write", "fs.delete", "fs.chmod", "fs.symlink", "fs.link", "fs.mkdir", "fs.rmdir", "fs.mkfifo", "fs.touch"}
)
_REFS: Final = frozenset({"head", "refs", "packed-refs", "logs", "orig_head", "fetch_head", "merge_head", "shallow"})
# `git~1` is what NTFS calls it to old programs; git refuses it in trees for that reason (path.c, `is_ntfs_dotgit`).
_NAMES: Final = frozenset({".git", "git~1"})


def git_atoms(snapshot: Snapshot, atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """The `git.*` atoms that go with some `fs.*` atoms."""
    changes = [atom for atom in atoms if atom.kind in _CHANGES]
    if not changes:
        return ()
    hooks = [folded(folder) for folder in _hook_folders(snapshot)]
    found: dict[tuple[str, str], Atom] = {}
    for atom in changes:
        path = locate(snapshot.root, atom.target)
        if isinstance(path, Refused):
            continue
        kind = _kind(folded(path), hooks)
        if kind:
            operation: dict[str, JsonValue] = {"op": "delete" if atom.kind in ("fs.delete", "fs.rmdir") else "write"}
            found.setdefault((kind, atom.target), Atom(kind, atom.target, operation, field=atom.field))
    return tuple(found.values())


def _kind(parts: tuple[str, ...], hooks: list[tuple[str, ...]]) -> str:
    if any(parts[: len(folder)] == folder or folder[: len(parts)] == parts for folder in hooks):
        return "git.hook"
    last = max((at for at, part in enumerate(parts) if part in _NAMES), default=-1)
    if last < 0:
        return ""
    inside = parts[last + 1 :]
    # A submodule's git folder stands in `modules/<name>`, a linked worktree's in `worktrees/<name>`.
    if inside and inside[0] in _REFS:
        return "git.ref"
    return "git.hook" if "hooks" in inside else "git.config"


def _hook_folders(snapshot: Snapshot) -> tuple[str, ...]:
    """Where the root's own repository looks for hooks outside its git folder."""
    root = snapshot.root.path
    if snapshot.entry(join(root, ".git")).kind not in (EntryKind.FOLDER, EntryKind.FILE):
        return ()
    answer = snapshot.git(root, "config", ())
    if answer is None:
        return ()
    settings, included = parse_settings(answer)
    repository = Repository(snapshot, GivenPath("", ".", root), settings, included)
    return repository.hook_folders() if "core.hookspath" in settings else ()
