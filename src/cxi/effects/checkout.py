"""What would switching to a branch do to the work tree, and which ref would a new branch be?

- `git checkout <name>` is the two-tree merge of read-tree(1): a path that is the same in both trees is left alone, local changes
  and all; a path that differs is written only if the index and the work tree still hold the old version.
- Whatever git itself would refuse (local changes, untracked files in the way) is refused here; a path that it would overwrite
  because it is ignored is refused too.
- `before` and `after` of a path are blob names, `git-blob:<hex>`; `after` is left out where a filter or an end-of-line rule
  decides the bytes. Folders that become empty go: `fs.rmdir`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from cxi.canonical import JsonValue
from cxi.effects.base import Atom
from cxi.effects.given import give_text
from cxi.effects.place import LIMIT, parents
from cxi.effects.repository import (
    EXECUTABLE,
    LINK,
    SUBMODULE,
    Blob,
    Change,
    Repository,
    changed_between,
    hash_blob,
    parse_raw,
    unique,
)
from cxi.effects.revision import REVISION
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall
from cxi.values.base import EntryKind

_HOOKS: Final = ("reference-transaction", "post-index-change", "post-checkout")
# Attributes under which the bytes of a file are not those of its blob.
_CONVERTING: Final = (b"eol", b"text", b"crlf", b"ident", b"working-tree-encoding", b"filter")


def plan_branch(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """GitPython's `create_head(branch, base)`: one ref, written as a file; no hook runs."""
    branch, base = give_text(call, inputs, "branch"), give_text(call, inputs, "base")
    if isinstance(branch, Refused):
        return branch
    if isinstance(base, Refused):
        return base
    head = repository.head()
    if isinstance(head, Refused):
        return head
    ref = f"refs/heads/{(branch or '').removeprefix('refs/heads/')}"
    where = inputs.get("branch", "branch")
    if not branch or branch.startswith("-") or repository.ask("ref-format", ref) is None:
        return Refused.of(Code.EFFECT_INEXACT, f"`{branch}` is no name of a branch", where=where)
    if repository.resolve(ref) is not None or repository.ask("symbolic", ref) is not None:
        return Refused.of(Code.EFFECT_INEXACT, f"branch `{branch}` exists", where=where)
    commit = _base(repository, base, head)
    if isinstance(commit, Refused):
        return commit
    attributes: dict[str, JsonValue] = {"op": "create", "branch": ref.removeprefix("refs/heads/"), "ref": ref, "after": commit}
    return (Atom("git.ref", ref, attributes | {"repository": repository.place.target}, field=_field(call, where)),)


def plan_checkout(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """`git checkout <name>`."""
    where = inputs.get("branch", "branch")
    start = _start(repository)
    if isinstance(start, Refused):
        return start
    ref, present = start
    text = give_text(call, inputs, "branch")
    aim = text if isinstance(text, Refused) else _aim(repository, text or "", where)
    if isinstance(aim, Refused):
        return aim
    branch, commit = aim
    if text in ("HEAD", "@"):
        return ()  # to git this is no switch
    new_ref = f"refs/heads/{branch}" if branch else ""
    if present == commit and new_ref == ("" if ref == "HEAD" else ref):
        return ()
    old, new, index = repository.tree(present), repository.tree(commit), repository.index()
    if isinstance(old, Refused):
        return old
    if isinstance(new, Refused):
        return new
    if isinstance(index, Refused):
        return index
    changes = changed_between(old, new)
    files = _work_tree(repository, changes, index, new)
    if isinstance(files, Refused):
        return files
    hooks = repository.hooks(*_HOOKS)
    cleaners = repository.cleaners()
    if isinstance(hooks, Refused):
        return hooks
    if isinstance(cleaners, Refused):
        return cleaners
    atoms, programs = files
    place: dict[str, JsonValue] = {"repository": repository.place.target}
    moved: dict[str, JsonValue] = {
        "op": "update",
        "ref": "HEAD",
        "before": present if ref == "HEAD" else ref,
        "after": new_ref or commit,
    }
    named: dict[str, JsonValue] = {"after": commit, **({"branch": branch} if branch else {})}
    return (
        Atom("git.checkout", branch or commit, named | place, field=_field(call, where) if branch else ""),
        Atom("git.ref", "HEAD", moved | place),
        *atoms,
        *unique((*programs, *cleaners, *hooks)),
    )


def _start(repository: Repository) -> tuple[str, str] | Refused:
    """HEAD's ref and commit, where nothing is in the way of a plan."""
    head = repository.head()
    if isinstance(head, Refused):
        return head
    for refused in (repository.under_way(), repository.flagged()):
        if refused is not None:
            return refused
    if head[1] is None:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "the branch has no commit yet", where="repository")
    return head[0], head[1]


def _aim(repository: Repository, text: str, where: str) -> tuple[str, str] | Refused:
    """The branch (or empty) and the commit that a name stands for; a branch goes before a tag (git-checkout(1))."""
    if not REVISION.fullmatch(text):
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{text}` is no plain revision", where=where)
    plain = not set("~^") & set(text)
    branch = text if plain and repository.resolve(f"refs/heads/{text}") is not None else ""
    commit = repository.resolve(f"refs/heads/{text}^{{commit}}" if branch else f"{text}^{{commit}}")
    if commit is None:
        return Refused.of(Code.EFFECT_INEXACT, f"`{text}` names no commit", where=where)
    if branch and repository.ask("symbolic", f"refs/heads/{text}") is not None:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"branch `{text}` is a symbolic ref", where=where)
    return branch, commit


def _base(repository: Repository, base: str | None, head: tuple[str, str | None]) -> str | Refused:
    """The commit that a new branch starts at, as `repo.references[base]` finds it by the short name of a ref."""
    ref, commit = head
    if not base:
        if ref == "HEAD" or commit is None:
            return Refused.of(Code.EFFECT_INEXACT, "HEAD is on no branch with a commit", where="base", needs="name a base branch")
        return commit
    found = [found for kind in ("heads", "remotes", "tags") if (found := repository.resolve(f"refs/{kind}/{base}^{{commit}}"))]
    if len(set(found)) != 1 or base.startswith("-"):
        return Refused.of(Code.EFFECT_INEXACT, f"`{base}` names {'no ref' if not found else 'several refs'}", where="base")
    return found[0]


def _work_tree(
    repository: Repository, changes: Sequence[Change], index: Mapping[str, Blob], new: Mapping[str, Blob]
) -> tuple[list[Atom], list[Atom]] | Refused:
    """The atoms of the work tree, and the programs that convert its files."""
    if len(changes) > LIMIT:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"more than {LIMIT} paths change")
    if repository.on("submodule.recurse") and any(mode == SUBMODULE for mode, _ in (*index.values(), *new.values())):
        return Refused.of(Code.EFFECT_UNSUPPORTED, "submodules would be checked out too")
    # What the index already holds of the new tree, git carries over with whatever the work tree has.
    applied = [change for change in changes if index.get(change[0]) != change[2]]
    rules = _conversion(repository, changes, [path for path, _, after in applied if after is not None])
    if isinstance(rules, Refused):
        return rules
    unknown, programs = rules
    removed = {path for path, _, after in applied if after is None}
    atoms: list[Atom] = []
    for change in applied:
        path, before, after = change
        if SUBMODULE in ((before or after or ("", ""))[0], (after or before or ("", ""))[0]):
            return Refused.of(Code.EFFECT_UNSUPPORTED, "a submodule changes", where=repository.target(path))
        refused = _refuse_change(repository, change, index.get(path), removed, unknown)
        if refused is not None:
            return refused
        made = _file_atoms(repository, change, exact=path not in unknown)
        if isinstance(made, Refused):
            return made
        atoms += made
    return [*atoms, *_emptied(repository, removed, [path for path, _, after in applied if after is not None])], programs


def _refuse_change(
    repository: Repository, change: Change, indexed: Blob | None, removed: set[str], unknown: set[str]
) -> Refused | None:
    """Why git would not make this change, or why it would make another (unpack-trees.c, `twoway_merge`)."""
    path, before, _ = change
    where = repository.target(path)
    entry = repository.snapshot.entry(repository.absolute(path))
    if indexed != before:
        return Refused.of(Code.EFFECT_INEXACT, f"`{where}` has staged changes that the checkout would overwrite", where=where)
    for parent in parents(repository.absolute(path)):
        if len(parent) <= len(repository.path):
            break
        kind = repository.snapshot.entry(parent).kind
        inside = repository.inside(parent)
        if kind not in (EntryKind.FOLDER, EntryKind.ABSENT, EntryKind.NOT_A_FOLDER) and inside not in removed:
            return Refused.of(Code.EFFECT_INEXACT, f"`{repository.target(inside or '')}` stands in the way", where=where)
    match entry.kind:
        case EntryKind.ABSENT | EntryKind.NOT_A_FOLDER:
            return None  # git takes an absent file for unchanged
        case EntryKind.FOLDER:
            return _refuse_folder(repository, path, removed)
        case EntryKind.FILE | EntryKind.LINK if before is not None:
            if path in unknown or _holds(repository, path, before):
                return None
            return Refused.of(Code.EFFECT_INEXACT, f"`{where}` has local changes that the checkout would overwrite", where=where)
        case _:
            return Refused.of(Code.EFFECT_INEXACT, f"`{where}` is untracked and stands in the way", where=where)


def _refuse_folder(repository: Repository, path: str, removed: set[str]) -> Refused | None:
    """A folder makes way for a file only where all that it holds goes with the old tree."""
    pending = [path]
    while pending:
        here = pending.pop()
        for child in repository.snapshot.names(repository.absolute(here)) or ("?",):
            inside = f"{here}/{child}"
            if repository.snapshot.entry(repository.absolute(inside)).kind is EntryKind.FOLDER:
                pending.append(inside)
            elif inside not in removed:
                where = repository.target(inside)
                return Refused.of(Code.EFFECT_INEXACT, f"`{where}` is untracked and stands in the way", where=where)
    return None


def _holds(repository: Repository, path: str, blob: Blob) -> bool:
    """Whether the work tree holds exactly this blob, with its kind and its execute bit."""
    entry = repository.snapshot.entry(repository.absolute(path))
    if entry.kind is EntryKind.LINK:
        return blob == (LINK, hash_blob(entry.target.encode("utf-8", "surrogateescape")))
    data = repository.snapshot.content(repository.absolute(path))
    if data is None or blob[0] == LINK:
        return False
    executable = bool(entry.mode & 0o100) == (blob[0] == EXECUTABLE) or not repository.on("core.filemode", default=True)
    return executable and hash_blob(data) == blob[1]


def _file_atoms(repository: Repository, change: Change, *, exact: bool) -> list[Atom] | Refused:
    path, before, after = change
    target = repository.target(path)
    entry = repository.snapshot.entry(repository.absolute(path))
    there = before is not None and entry.kind in (EntryKind.FILE, EntryKind.LINK)
    old: dict[str, JsonValue] = {"before": f"git-blob:{before[1]}"} if there and before is not None else {}
    if after is None:
        return [Atom("fs.delete", target, old)] if there else []
    if after[0] == LINK:
        data = repository.ask("blob", after[1])
        if data is None:
            return Refused.of(Code.EFFECT_UNREADABLE, f"the link of `{target}` cannot be read", where=target)
        made = Atom("fs.symlink", target, {"to": data.decode("utf-8", "surrogateescape")})
        return [Atom("fs.delete", target, old), made] if there else [made]
    held: dict[str, JsonValue] = {"after": f"git-blob:{after[1]}"} if exact else {}
    if after[0] == EXECUTABLE or (before is not None and before[0] == EXECUTABLE):
        held["mode"] = "755" if after[0] == EXECUTABLE else "644"
    if not there:
        return [Atom("fs.create", target, held)]
    if before is not None and before[0] == LINK:
        return [Atom("fs.delete", target, old), Atom("fs.create", target, held)]
    if before is not None and before[1] == after[1]:
        return [Atom("fs.chmod", target, held | old)]
    return [Atom("fs.write", target, old | held)]


def _emptied(repository: Repository, removed: set[str], kept: Sequence[str]) -> list[Atom]:
    """The folders that hold nothing any more, deepest first."""
    gone = set(removed)
    folders = {posixpath.dirname(path) for path in removed} - {""}
    atoms: list[Atom] = []
    occupied = {path[:at] for path in kept for at in range(len(path)) if path[at] == "/"}
    while folders:
        folder = max(folders, key=lambda path: (path.count("/"), path))
        folders.discard(folder)
        names = repository.snapshot.names(repository.absolute(folder))
        if names is None or folder in occupied or any(f"{folder}/{name}" not in gone for name in names):
            continue
        gone.add(folder)
        atoms.append(Atom("fs.rmdir", repository.target(folder), {}))
        folders |= {posixpath.dirname(folder)} - {""}
    return atoms


def _conversion(
    repository: Repository, changes: Sequence[Change], written: Sequence[str]
) -> tuple[set[str], list[Atom]] | Refused:
    """The paths whose bytes are not their blob's, and the programs that git runs for them."""
    moved = [change for change in changes if posixpath.basename(change[0]) == ".gitattributes"]
    known = [path for path, _, _ in changes]
    for _, before, after in moved:
        for blob in (before, after):
            data = repository.ask("blob", blob[1]) if blob is not None else b""
            if data is None:
                return Refused.of(Code.EFFECT_UNREADABLE, "the git attributes cannot be read")
            if any(word in data for word in _CONVERTING) or b"[attr]" in data:
                # The rules themselves change: every path is open, every driver could run.
                return set(known), list(repository.all_filters("smudge")) + list(repository.all_filters("clean"))
    programs: list[Atom] = []
    unknown: set[str] = set()
    answer = repository.ask("modified")
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what was modified")
    # Before it switches, git compares every file that looks changed, and cleans it to do so.
    compared = [*known, *(path for path, _, _ in parse_raw(answer))]
    for paths, side in ((written, "smudge"), (compared, "clean")):
        filters = repository.filters(paths, side, staged=True)
        if isinstance(filters, Refused):
            return filters
        unknown |= filters.keys()
        programs += [atom for atoms in filters.values() for atom in atoms]
    attributes = repository.attributes(known, staged=True)
    if isinstance(attributes, Refused):
        return attributes
    always = repository.on("core.autocrlf") and repository.setting("core.autocrlf").lower() != "input"
    native = repository.setting("core.eol").lower() == "crlf"
    for path, row in attributes.items():
        text = row.get("text", row.get("crlf", ""))
        # On the way out git changes bytes for CRLF work trees; on the way in, for any text rule, so that `_holds` cannot compare.
        if (
            row.get("eol") == "crlf"
            or "working-tree-encoding" in row
            or row.get("ident") == "set"
            or (text != "unset" and (always or (native and text)))
        ):
            unknown.add(path)
    return unknown, list(unique(programs))


def _field(call: CanonicalCall, reference: str) -> str:
    leaves = call.at(reference)
    return leaves[0].path if leaves else ""
