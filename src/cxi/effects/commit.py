"""What would a commit of the index record, and which programs would run?

- The server commits by GitPython's `index.commit`: hooks `pre-commit`, `commit-msg`, `post-commit`; no signing, no editor.
- The tree is computed here from the index, so the atom names exactly what is recorded; a hook that would run could change it, and
  is an atom of its own.
- Nothing staged is no atoms: the server refuses it. A merge under way is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping

from cxi.canonical import JsonValue
from cxi.effects.base import Atom
from cxi.effects.given import give_text
from cxi.effects.place import LIMIT
from cxi.effects.repository import Repository, hash_tree
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall


def plan_commit(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """GitPython's `index.commit(message)`."""
    message = give_text(call, inputs, "message")
    if isinstance(message, Refused):
        return message
    head = repository.head()
    if isinstance(head, Refused):
        return head
    under_way = repository.under_way()
    if under_way is not None:
        return under_way
    ref, parent = head
    index, changes = repository.index(), repository.staged(parent)
    if isinstance(index, Refused):
        return index
    if isinstance(changes, Refused):
        return changes
    if not changes:
        return ()
    if len(changes) > LIMIT:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"more than {LIMIT} paths are staged")
    hooks = repository.hooks("pre-commit", "commit-msg", "post-commit")
    if isinstance(hooks, Refused):
        return hooks
    branch = ref.removeprefix("refs/heads/")
    tree = hash_tree(index)
    shared: dict[str, JsonValue] = {"tree": tree, "repository": repository.place.target}
    commit: dict[str, JsonValue] = {"branch": branch, "paths": [repository.target(path) for path, _, _ in changes]}
    moved: dict[str, JsonValue] = {"op": "update" if parent else "create", "branch": branch, "ref": ref}
    if parent is not None:
        commit["parent"] = parent
        moved["before"] = parent
    if message is not None:
        commit["message"] = message
    return (Atom("git.commit", branch, commit | shared), Atom("git.ref", ref, moved | shared), *hooks)
