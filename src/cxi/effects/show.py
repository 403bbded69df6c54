"""What would a git server's reading tools show, and which programs would they run?

- Each path whose content is shown is `fs.read`. What shows names and messages only reads the folder: `.` for status, `.git` for
  log and branch; every reading tool has at least one such atom.
- `git status` and `git diff` write the index when it is out of date, so that `post-index-change` could run; they ask the monitor
  and look into submodules; `git diff` runs external diff and textconv drivers, and filters where a work tree file is compared.
- A revision is a name, not a language: what could name more than one thing is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cxi.effects.base import Atom
from cxi.effects.given import give_text
from cxi.effects.place import LIMIT
from cxi.effects.repository import EMPTY_TREE, SUBMODULE, Blob, Change, Repository, parse_raw, unique
from cxi.effects.revision import REVISION
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall


def plan_status(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """`git status`: names only."""
    changes = _modified(repository)
    if isinstance(changes, Refused):
        return changes
    return _reads(repository, (), _paths(changes), refreshes=True)


def plan_diff_unstaged(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """`git diff`: the work tree against the index."""
    changes = _modified(repository)
    if isinstance(changes, Refused):
        return changes
    return _reads(repository, _paths(changes), _paths(changes), refreshes=True, views=True)


def plan_diff_staged(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """`git diff --cached`: the index against HEAD."""
    head = repository.head()
    if isinstance(head, Refused):
        return head
    answer = repository.ask("staged", head[1] or EMPTY_TREE)
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what is staged")
    return _reads(repository, _paths(parse_raw(answer)), (), refreshes=True, views=True)


def plan_diff(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """`git diff <revision>`: the work tree against a commit."""
    revision = _revision(repository, call, inputs)
    if isinstance(revision, Refused):
        return revision
    commit = repository.resolve(f"{revision}^{{commit}}")
    if commit is None:
        return Refused.of(Code.EFFECT_INEXACT, f"`{revision}` names no commit", where=inputs.get("revision", ""))
    answer = repository.ask("differs", commit)
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what differs")
    paths = _paths(parse_raw(answer))
    return _reads(repository, paths, paths, refreshes=True, views=True)


def plan_log(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """`git log`: commits and their messages."""
    return (Atom("fs.read", repository.target(".git"), {}),)


def plan_branch_list(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """`git branch`: the names of branches."""
    return (Atom("fs.read", repository.target(".git"), {}),)


def plan_show(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """The content of `revision:path`, or a commit's changes against its first parent (`git diff-tree -p --no-ext-diff`)."""
    text = give_text(call, inputs, "revision")
    if isinstance(text, Refused):
        return text
    where = inputs.get("revision", "")
    revision, colon, path = (text or "").partition(":")
    if not REVISION.fullmatch(revision):
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{text}` is no plain revision", where=where)
    if colon:
        parts = path.removesuffix("/").split("/")
        if any(part in ("", ".", "..") for part in parts) and path:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{path}` is no plain path", where=where)
        shown = repository.target(path.removesuffix("/") or ".")
        return (Atom("fs.read", shown, {"revision": revision}, field=_field(call, where)),)
    commit = repository.resolve(f"{revision}^{{commit}}")
    named = repository.resolve(revision)
    kind = repository.ask("type", named) if named is not None else None
    if commit is None or kind is None or kind.strip() not in (b"commit", b"tag"):
        return Refused.of(
            Code.EFFECT_UNSUPPORTED, f"`{revision}` names no commit", where=where, needs="a commit, or `commit:path`"
        )
    parent = repository.resolve(f"{commit}^1")
    answer = repository.ask("changed", parent or EMPTY_TREE, commit)
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, f"the changes of `{commit}` cannot be read", where=where)
    return _reads(repository, _paths(parse_raw(answer)), (), base=".git")


def _reads(
    repository: Repository,
    shown: tuple[str, ...],
    compared: tuple[str, ...],
    *,
    base: str = ".",
    refreshes: bool = False,
    views: bool = False,
) -> tuple[Atom, ...] | Refused:
    """The reads, and what runs on the way.

    Args:
        repository: Where.
        shown: Paths whose content is shown.
        compared: Work tree files that git converts to compare them.
        base: The folder whose names are shown.
        refreshes: Whether it asks the monitor, looks into submodules and may write the index.
        views: Whether it shows files by their diff drivers.
    """
    if len(shown) > LIMIT:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"more than {LIMIT} paths are shown")
    reads = [Atom("fs.read", repository.target(path), {}) for path in (base, *shown)]
    programs: list[Atom] = []
    viewers = repository.viewers(shown) if views else ()
    # An external viewer is handed the old version as a work tree file, so that git smudges it (diff.c, `prep_temp_blob`).
    smudged = repository.filters(shown, "smudge") if viewers else {}
    hooks = repository.hooks("post-index-change") if refreshes else ()
    cleaners = repository.cleaners() if refreshes else ()
    for found in (repository.filters(compared, "clean"), smudged, viewers, hooks, cleaners):
        if isinstance(found, Refused):
            return found
        programs.extend(atom for atoms in found.values() for atom in atoms) if isinstance(found, dict) else programs.extend(found)
    if refreshes:
        index = repository.index()
        if isinstance(index, Refused):
            return index
        programs += _submodules(repository, index)
    return (*reads, *unique(programs))


def _submodules(repository: Repository, index: Mapping[str, Blob]) -> Iterable[Atom]:
    """Into each submodule git goes with the submodule's own settings (submodule.c, `is_submodule_modified`)."""
    for path, (mode, _) in index.items():
        if mode == SUBMODULE:
            yield Atom(
                "proc.exec", "git", {"argv": ["git", "status", "--porcelain=2"], "inputs": {}, "folder": repository.target(path)}
            )


def _modified(repository: Repository) -> tuple[Change, ...] | Refused:
    answer = repository.ask("modified")
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what was modified")
    return parse_raw(answer)


def _paths(changes: Iterable[Change]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path, _, _ in changes))


def _revision(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> str | Refused:  # noqa: ARG001
    text = give_text(call, inputs, "revision")
    if isinstance(text, Refused):
        return text
    if not REVISION.fullmatch(text or ""):
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{text}` is no plain revision", where=inputs.get("revision", ""))
    return text or ""


def _field(call: CanonicalCall, reference: str) -> str:
    leaves = call.at(reference)
    return leaves[0].path if leaves else ""
