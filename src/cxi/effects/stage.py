"""What would `git add` and `git reset` do to the index?

- `git add` takes up what `git diff-files` reports and what is untracked and not ignored; each path is read and hashed here, with
  git's own line-ending rules (convert.c), so that `after` is the exact blob.
- Where a filter driver decides the blob, the driver is a `proc.exec` atom and `after` is not known.
- Staging a deletion is `op: stage` with no `after`; a path that stands in the way of a staged one (`a` and `a/b`) goes.
- `git reset` (GitPython's `index.reset()`) makes the index HEAD's tree: each path that differs is `op: unstage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cxi.canonical import JsonValue
from cxi.effects.base import Atom
from cxi.effects.given import GivenPath, give_paths
from cxi.effects.place import LIMIT, parents
from cxi.effects.repository import EXECUTABLE, LINK, PLAIN, SUBMODULE, Blob, Repository, hash_blob, parse_raw, unique
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall
from cxi.values.base import EntryKind

_MOST_NAMED: Final = 100  # paths; of more, all that was modified is asked for
_MAGIC: Final = frozenset("*?[\\")
_UNKNOWN: Final = ""  # the object name of a blob that a filter driver decides
_PRINTED_CONTROLS: Final = b"\b\t\x1b\x0c"


def plan_add(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:
    """`git add -- files…`."""
    given = give_paths(call, inputs, ("files",), repository.snapshot)
    if isinstance(given, Refused):
        return given
    index = repository.index()
    if isinstance(index, Refused):
        return index
    flagged = repository.flagged()
    if flagged is not None:
        return flagged
    candidates = _candidates(repository, given, index)
    if isinstance(candidates, Refused):
        return candidates
    blobs = _blobs(repository, candidates, index)
    if isinstance(blobs, Refused):
        return blobs
    filtered = repository.filters([path for path, blob in blobs.items() if blob is not None], "clean")
    if isinstance(filtered, Refused):
        return filtered
    atoms = []
    for path, blob in (blobs | _displaced(blobs, index)).items():
        after = (blob[0], _UNKNOWN) if blob is not None and path in filtered else blob
        if after != index.get(path):
            atoms.append(_index_atom(repository, path, "stage", index.get(path), after, candidates.get(path, "")))
    cleaners = repository.cleaners() if atoms else ()
    if isinstance(cleaners, Refused):
        return cleaners
    return _with_programs(repository, atoms, [*(atom for path in filtered for atom in filtered[path]), *cleaners])


def plan_reset(repository: Repository, call: CanonicalCall, inputs: Mapping[str, str]) -> tuple[Atom, ...] | Refused:  # noqa: ARG001
    """GitPython's `index.reset()`: the index becomes HEAD's tree, the work tree is left."""
    head = repository.head()
    if isinstance(head, Refused):
        return head
    under_way = repository.under_way()
    if under_way is not None:
        return under_way
    if head[1] is None:
        return Refused.of(Code.EFFECT_INEXACT, "there is no commit to reset to", where="repository")
    tree, index = repository.tree(head[1]), repository.index()
    if isinstance(tree, Refused):
        return tree
    if isinstance(index, Refused):
        return index
    differing = [path for path in sorted(tree.keys() | index.keys()) if tree.get(path) != index.get(path)]
    atoms = [_index_atom(repository, path, "unstage", index.get(path), tree.get(path), "") for path in differing]
    return _with_programs(repository, atoms, [])


def _with_programs(repository: Repository, atoms: list[Atom], programs: Iterable[Atom]) -> tuple[Atom, ...] | Refused:
    """The atoms, and what git runs when it writes an index."""
    if not atoms:
        return ()
    if len(atoms) > LIMIT:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"more than {LIMIT} paths change", needs="name fewer at once")
    hooks = repository.hooks("post-index-change")
    if isinstance(hooks, Refused):
        return hooks
    return (*atoms, *unique((*programs, *hooks)))


def _candidates(repository: Repository, given: tuple[GivenPath, ...], index: Mapping[str, Blob]) -> dict[str, str] | Refused:
    """Each path that could be staged, to the field that names it or a folder above it."""
    named: list[tuple[GivenPath, str]] = []
    for item in given:
        path = repository.inside(item.path)
        refused = _refuse_path(repository, item, path)
        if path is None or refused is not None:
            return refused or Refused.of(Code.EFFECT_INEXACT, f"`{item.target}` is outside the repository", where=item.field)
        named.append((item, path))
    paths = [path for _, path in named]
    modified = repository.ask("modified", *(paths if "." not in paths and len(paths) <= _MOST_NAMED else ()))
    if modified is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what was modified")
    dirty = {path for path, _, _ in parse_raw(modified)}
    found: dict[str, str] = {}
    for item, path in named:
        answer = repository.ask("untracked", *(() if path == "." else (path,)))
        if answer is None:
            return Refused.of(Code.EFFECT_UNREADABLE, "git does not say what is untracked", where=item.field)
        untracked = [row for row in answer.decode("utf-8", "surrogateescape").split("\0") if row]
        tracked = [known for known in index if path in (".", known) or known.startswith(f"{path}/")]
        if any(row.endswith("/") for row in untracked) or any(index[known][0] == SUBMODULE for known in tracked):
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{item.target}` holds another repository", where=item.field)
        kind = repository.snapshot.entry(item.path).kind
        if not tracked and not untracked and kind is not EntryKind.FOLDER:
            return Refused.of(Code.EFFECT_INEXACT, f"`{item.target}` is absent or ignored: git would refuse it", where=item.field)
        for known in (*(known for known in tracked if known in dirty), *untracked):
            found.setdefault(known, item.field)
        if len(found) > LIMIT:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"more than {LIMIT} paths change", where=item.field)
    return found


def _refuse_path(repository: Repository, item: GivenPath, path: str | None) -> Refused | None:
    if path is None:
        return Refused.of(Code.EFFECT_INEXACT, f"`{item.target}` is outside the repository", where=item.field)
    if _MAGIC & set(path) or path.startswith(":"):
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{path}` is a pattern to git", where=item.field, needs="name each file")
    if path.split("/")[0].lower() == ".git":
        return Refused.of(Code.EFFECT_INEXACT, f"`{item.target}` is git's own", where=item.field)
    if _beyond_link(repository, path):
        return Refused.of(Code.EFFECT_INEXACT, f"`{item.target}` is beyond a link", where=item.field)
    return None


def _beyond_link(repository: Repository, path: str) -> bool:
    """Whether a folder above a path, in the work tree, is a link: to git the path is then absent."""
    for parent in parents(repository.absolute(path)):
        if len(parent) <= len(repository.path):
            return False
        if repository.snapshot.entry(parent).kind is EntryKind.LINK:
            return True
    return False


def _displaced(blobs: Mapping[str, Blob | None], index: Mapping[str, Blob]) -> dict[str, Blob | None]:
    """What goes because a file is staged where a folder was, or below what was a file (read-cache.c, `has_dir_name`)."""
    staged = {path for path, blob in blobs.items() if blob is not None}
    above = {path[:at] for path in staged for at in range(len(path)) if path[at] == "/"}
    gone = {path for path in index if path in above or any(path[:at] in staged for at in range(len(path)) if path[at] == "/")}
    return dict.fromkeys(sorted(gone - blobs.keys()), None)


def _index_atom(repository: Repository, path: str, op: str, before: Blob | None, after: Blob | None, field: str) -> Atom:
    attributes: dict[str, JsonValue] = {"op": op}
    if before is not None:
        attributes["before"] = before[1]
    if after is not None and after[1] != _UNKNOWN:
        attributes["after"] = after[1]
    if after is None:
        attributes["gone"] = True
    if before is not None and after is not None and before[0] != after[0]:
        attributes["mode"] = after[0]
    if repository.place.target != ".":
        attributes["repository"] = repository.place.target
    return Atom("git.index", repository.target(path), attributes, field=field)


# --- the blob that a work tree file becomes


@dataclass(frozen=True, slots=True)
class _Ending:
    """How git treats a file's line endings on the way in (convert.c, `convert_attrs`)."""

    converts: bool
    guesses: bool  # only what looks like text, and was not stored with CRLF


def _blobs(repository: Repository, candidates: Iterable[str], index: Mapping[str, Blob]) -> dict[str, Blob | None] | Refused:
    """What each path would be in the index; None where it would go."""
    paths = list(candidates)
    attributes = repository.attributes(paths)
    if isinstance(attributes, Refused):
        return attributes
    found: dict[str, Blob | None] = {}
    for path in paths:
        blob = _blob(repository, path, index.get(path), attributes.get(path, {}))
        if isinstance(blob, Refused):
            return blob
        found[path] = blob
    return found


def _blob(repository: Repository, path: str, before: Blob | None, attributes: Mapping[str, str]) -> Blob | Refused | None:
    where = repository.target(path)
    entry = repository.snapshot.entry(repository.absolute(path))
    if entry.kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER, EntryKind.FOLDER) or _beyond_link(repository, path):
        return None
    if entry.kind is EntryKind.LINK:
        return LINK, hash_blob(entry.target.encode("utf-8", "surrogateescape"))
    data = repository.snapshot.content(repository.absolute(path)) if entry.kind is EntryKind.FILE else None
    if data is None:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"`{where}` is no file that can be read whole", where=where)
    if attributes.get("working-tree-encoding", "unset") != "unset" or ("ident" in attributes and b"$Id" in data):
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"git would convert `{where}` by its attributes", where=where)
    stored = _convert(repository, data, before, attributes)
    if stored is None:
        return Refused.of(Code.EFFECT_UNREADABLE, f"the present blob of `{where}` cannot be read", where=where)
    return _mode(repository, entry.mode, before), hash_blob(stored)


def _mode(repository: Repository, mode: int, before: Blob | None) -> str:
    if repository.on("core.filemode", default=True):
        return EXECUTABLE if mode & 0o100 else PLAIN
    return EXECUTABLE if before is not None and before[0] == EXECUTABLE else PLAIN


def _convert(repository: Repository, data: bytes, before: Blob | None, attributes: Mapping[str, str]) -> bytes | None:
    """The bytes that git stores (convert.c, `crlf_to_git`); None where it depends on a blob that cannot be read."""
    if b"\r\n" not in data:
        return data
    ending = _ending(repository, attributes)
    if not ending.converts or (ending.guesses and _binary(data)):
        return data
    if ending.guesses and before is not None and before[0] != LINK:
        stored = repository.ask("blob", before[1])
        if stored is None:
            return None
        if b"\r\n" in stored and not _binary(stored):
            return data
    return data.replace(b"\r\n", b"\n")


def _ending(repository: Repository, attributes: Mapping[str, str]) -> _Ending:
    action = _text_action(attributes.get("text", ""))
    if action == "undefined":
        action = _text_action(attributes.get("crlf", ""))
    if action != "binary" and attributes.get("eol") in ("lf", "crlf") and action != "auto":
        action = "text"
    if action == "undefined":
        automatic = repository.setting("core.autocrlf").lower()
        action = "auto" if automatic == "input" or repository.on("core.autocrlf") else "binary"
    return _Ending(converts=action != "binary", guesses=action == "auto")


def _text_action(value: str) -> str:
    return {"set": "text", "unset": "binary", "input": "text", "auto": "auto"}.get(value, "undefined")


def _binary(data: bytes) -> bool:
    """Whether git holds it to be no text (convert.c, `gather_stats` and `convert_is_binary`)."""
    text = data.replace(b"\r\n", b"")
    if b"\r" in text or b"\0" in text:
        return True
    rest = text.replace(b"\n", b"")
    strange = sum(rest.count(bytes([code])) for code in (*range(32), 127) if code not in _PRINTED_CONTROLS)
    printable = len(rest) - strange
    if data.endswith(b"\x1a"):
        strange -= 1
    return (printable >> 7) < strange
