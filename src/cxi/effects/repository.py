"""What does this repository hold, and which programs would git run in it?

- Everything is read through the snapshot, by the named questions of `cxi.effects.git.QUESTIONS`.
- `open_repository` refuses what the plans do not model: a `.git` that is no plain folder, partial clones, sparse checkouts,
  SHA-256 and reftable repositories, a work tree elsewhere.
- A program is an atom: a hook is `git.hook` and `proc.exec`, a filter, textconv, external diff or monitor is `proc.exec`.
- Paths of git are relative to the repository, targets of atoms to the root: `Repository.target` goes from one to the other.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.base import Atom, Snapshot
from cxi.effects.given import GivenPath
from cxi.effects.place import follow, join, name
from cxi.errors import Code, Refused
from cxi.values.base import EntryKind

Blob: TypeAlias = tuple[str, str]  # (mode, object name), as `ls-files --stage` and `ls-tree` write them
Change: TypeAlias = tuple[str, Blob | None, Blob | None]  # (path, before, after)

LINK: Final = "120000"
SUBMODULE: Final = "160000"
EXECUTABLE: Final = "100755"
PLAIN: Final = "100644"
EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_COMPOUND: Final = re.compile(r"[|&;<>()$`\\{}*?\[#\n]")
_CHUNK: Final = 256 * 1024  # bytes of paths that one question names, well under what execve(2) takes

# What stands in the git folder while something is under way that a commit, a reset or a checkout would end or change.
_UNDER_WAY: Final = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "MERGE_AUTOSTASH",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, as far as plans read it.

    Attributes:
        snapshot: Through which all is read.
        place: Its work tree.
        settings: Lower-case section and key to its values in order, the last one counts.
        included: Whether a setting includes another file, so that two readers could see different settings.
    """

    snapshot: Snapshot
    place: GivenPath
    settings: Mapping[str, tuple[str, ...]]
    included: bool

    @property
    def path(self) -> str:
        """The work tree, absolute."""
        return self.place.path

    @property
    def folder(self) -> str:
        """The git folder, absolute."""
        return join(self.place.path, ".git")

    def target(self, path: str) -> str:
        """The canonical target of a path in the work tree."""
        return name(self.snapshot.root, self.absolute(path))

    def absolute(self, path: str) -> str:
        """The absolute path of a path in the work tree."""
        return join(self.path, path) if path not in ("", ".") else self.path

    def inside(self, path: str) -> str | None:
        """The repository's name for an absolute path, `.` for the work tree itself; None where it is outside."""
        if path == self.path:
            return "."
        prefix = join(self.path, "")
        return path.removeprefix(prefix) if path.startswith(prefix) else None

    def ask(self, question: str, *arguments: str) -> bytes | None:
        """One question to git."""
        return self.snapshot.git(self.path, question, arguments)

    def setting(self, key: str) -> str:
        """The last value of a setting, or empty."""
        values = self.settings.get(key, ())
        return values[-1] if values else ""

    def on(self, key: str, default: bool = False) -> bool:
        """A boolean setting, as git-config(1) reads it."""
        values = self.settings.get(key, ())
        return values[-1].lower() not in ("false", "no", "off", "0", "") if values else default

    # --- refs and objects

    def resolve(self, revision: str) -> str | None:
        """The object that a revision names."""
        answer = self.ask("resolve", revision)
        return _line(answer) if answer is not None else None

    def head(self) -> tuple[str, str | None] | Refused:
        """The ref that a commit would move (`HEAD` where it is detached), and the present commit; None on an unborn branch."""
        ref = "HEAD"
        for _ in range(5):  # SYMREF_MAXDEPTH
            answer = self.ask("symbolic", ref)
            if answer is None:
                break
            ref = _line(answer)
        else:
            return Refused.of(Code.EFFECT_UNSUPPORTED, "HEAD is a chain of more than five symbolic refs", where="HEAD")
        commit = self.resolve("HEAD^{commit}")
        if commit is None and not ref.startswith("refs/heads/"):
            return Refused.of(Code.EFFECT_UNREADABLE, "HEAD names no commit and no branch", where="HEAD")
        return ref, commit

    def tree(self, commit: str | None) -> dict[str, Blob] | Refused:
        """Every path of a commit's tree; of no commit, none."""
        if commit is None:
            return {}
        answer = self.ask("tree", commit)
        if answer is None:
            return Refused.of(Code.EFFECT_UNREADABLE, f"the tree of `{commit}` cannot be read")
        found: dict[str, Blob] = {}
        for row in _rows(answer):
            head, _, path = row.partition("\t")
            mode, _, blob = head.split(" ")
            found[path] = (mode, blob)
        return found

    def index(self) -> dict[str, Blob] | Refused:
        """Every path of the index; refused while it holds conflicts."""
        answer = self.ask("index")
        if answer is None:
            return Refused.of(Code.EFFECT_UNREADABLE, "the index cannot be read", where=self.target(".git/index"))
        return parse_index(answer)

    def staged(self, commit: str | None) -> tuple[Change, ...] | Refused:
        """What a commit would record: the index against the commit's tree.

        It is computed from both and compared with git's own answer: they differ where the index holds an entry that is no
        content yet (`git add -N`), which git and GitPython commit differently.
        """
        index, tree = self.index(), self.tree(commit)
        if isinstance(index, Refused):
            return index
        if isinstance(tree, Refused):
            return tree
        answer = self.ask("staged", commit or EMPTY_TREE)
        changes = changed_between(tree, index)
        if answer is None or {change[0] for change in changes} != {path for path, _, _ in parse_raw(answer)}:
            return Refused.of(Code.EFFECT_UNSUPPORTED, "the index holds entries without content", where=self.target(".git/index"))
        return changes

    def under_way(self) -> Refused | None:
        """A merge, rebase or the like that is not finished."""
        for what in _UNDER_WAY:
            if self.snapshot.entry(join(self.folder, what)).kind is not EntryKind.ABSENT:
                return Refused.of(Code.EFFECT_UNSUPPORTED, f"something is under way (`{what}`)", needs="a person finishes it")
        return None

    def flagged(self) -> Refused | None:
        """Entries that git holds to be unchanged without looking (`assume-unchanged`, `skip-worktree`)."""
        answer = self.ask("index-flags")
        if answer is None:
            return Refused.of(Code.EFFECT_UNREADABLE, "the index cannot be read", where=self.target(".git/index"))
        for row in _rows(answer):
            if row[0] == "S" or row[0].islower():
                return Refused.of(Code.EFFECT_UNSUPPORTED, "git is told not to look at it", where=self.target(row[2:]))
        return None

    # --- programs

    def attributes(self, paths: Iterable[str], *, staged: bool = False) -> dict[str, dict[str, str]] | Refused:
        """All git attributes of some paths (gitattributes(5)); `staged` reads the index's files, as a checkout does."""
        wanted = list(dict.fromkeys(paths))
        found: dict[str, dict[str, str]] = {path: {} for path in wanted}
        for chunk in _chunks(wanted):
            answer = self.ask("attributes-staged" if staged else "attributes", *chunk)
            if answer is None:
                return Refused.of(Code.EFFECT_UNREADABLE, "the git attributes cannot be read")
            rows = _rows(answer)
            for path, attribute, value in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
                found.setdefault(path, {})[attribute] = value
        return found

    def hooks(self, *names: str) -> tuple[Atom, ...] | Refused:
        """The hooks of these names that would run: `git.hook` and `proc.exec`, with the digest of the hook's bytes."""
        atoms: list[Atom] = []
        for hook in names:
            for folder in self.hook_folders():
                given = join(folder, hook)
                path = follow(self.snapshot, given)
                entry = self.snapshot.entry(path) if path is not None else None
                if path is None or entry is None:
                    return Refused.of(Code.EFFECT_UNREADABLE, f"the hook `{hook}` cannot be resolved", where=given)
                if entry.kind is EntryKind.DENIED:
                    return Refused.of(Code.EFFECT_UNREADABLE, f"the hook `{hook}` cannot be looked at", where=given)
                # git and GitPython both ask access(2) for X_OK; for root any execute bit is enough.
                if entry.kind is EntryKind.FILE and entry.mode & 0o111:
                    target = name(self.snapshot.root, given)
                    atoms.append(Atom("git.hook", target, {"op": "run", "name": hook}))
                    atoms.append(self._exec(target, [target], (path,)))
        return tuple(atoms)

    def hook_folders(self) -> tuple[str, ...]:
        """Where hooks are looked for: the last `core.hooksPath`, else `.git/hooks`; all of them where readers could differ."""
        configured = tuple(self._hook_folder(value) for value in self.settings.get("core.hookspath", ()) if value)
        default = join(self.folder, "hooks")
        if self.included:
            return tuple(dict.fromkeys((*configured, default)))
        return configured[-1:] if self.setting("core.hookspath") else (default,)

    def _hook_folder(self, value: str) -> str:
        if value.startswith(("~", "%")):
            # git knows the home folder that it expands to; a value that it cannot expand names no folder.
            answer = self.ask("hooks-path") or b""
            rows = [path for scope, path in zip(_rows(answer)[::2], _rows(answer)[1::2], strict=True) if scope != "command"]
            value = dict(zip(self.settings["core.hookspath"], rows, strict=False)).get(value, value)
        return value.rstrip("/") or "/" if value.startswith("/") else join(self.path, value)

    def monitor(self) -> tuple[Atom, ...]:
        """The file system monitor that git would ask."""
        value = self.setting("core.fsmonitor")
        if value.lower() in ("", "false", "no", "off", "0"):
            return ()
        if value.lower() in ("true", "yes", "on", "1"):
            return (self._exec("git", ["git", "fsmonitor--daemon", "start"], ()),)
        return (self.program(value),)

    def filters(self, paths: Iterable[str], side: str, *, staged: bool = False) -> dict[str, tuple[Atom, ...]] | Refused:
        """The filter drivers that git would run for some paths.

        Args:
            paths: Paths in the work tree.
            side: `clean` (into git) or `smudge` (out of it).
            staged: Whether attributes come from the index.

        Returns:
            Each path that has one, to its program; the same program may be there for many paths.
        """
        drivers = self._drivers("filter", (side, "process"))
        if not drivers:
            return {}
        attributes = self.attributes(paths, staged=staged)
        if isinstance(attributes, Refused):
            return attributes
        return {path: drivers[row["filter"]] for path, row in attributes.items() if row.get("filter") in drivers}

    def cleaners(self) -> tuple[Atom, ...] | Refused:
        """The filter drivers that git could run when it writes the index.

        It compares the bytes of each file that is as young as the index, whichever paths the command names (read-cache.c,
        `ce_smudge_racily_clean_entry`). Which ones are is not known here, so every tracked path counts.
        """
        if not self._drivers("filter", ("clean", "process")):
            return ()
        index = self.index()
        filters = self.filters(index, "clean") if not isinstance(index, Refused) else index
        return filters if isinstance(filters, Refused) else tuple(unique(atom for atoms in filters.values() for atom in atoms))

    def all_filters(self, side: str) -> tuple[Atom, ...]:
        """Every filter driver that is configured, for where attributes cannot be known."""
        return tuple(atom for atoms in self._drivers("filter", (side, "process")).values() for atom in atoms)

    def viewers(self, paths: Iterable[str]) -> tuple[Atom, ...] | Refused:
        """The external diff and textconv programs that `git diff` would run for some paths."""
        wanted = list(paths)
        external = self.setting("diff.external")
        found = [self.program(external)] if external and wanted else []
        drivers = self._drivers("diff", ("textconv", "command"))
        if drivers and wanted:
            attributes = self.attributes(wanted)
            if isinstance(attributes, Refused):
                return attributes
            for path in wanted:
                found.extend(drivers.get(attributes[path].get("diff", ""), ()))
        return tuple(unique(found))

    def program(self, command: str) -> Atom:
        """The `proc.exec` atom of a command that git hands to the shell (run-command.c, `prepare_shell_cmd`)."""
        try:
            words = shlex.split(command)
        except ValueError:
            words = []
        # A compound command is the shell's: which programs it runs is not known, so the shell is named with all of its text.
        if not words or _COMPOUND.search(command) or "=" in words[0] or words[0].startswith("~"):
            return self._exec("sh", ["sh", "-c", command], (), command=command)
        if "/" not in words[0]:
            return self._exec(words[0], words, (), command=command)
        path = words[0] if words[0].startswith("/") else join(self.path, words[0])
        resolved = follow(self.snapshot, path) or path
        return self._exec(name(self.snapshot.root, resolved), words, (resolved,), command=command)

    def _drivers(self, section: str, keys: tuple[str, ...]) -> dict[str, tuple[Atom, ...]]:
        found: dict[str, list[Atom]] = {}
        for setting in self.settings:
            head, _, key = setting.rpartition(".")
            if head.startswith(f"{section}.") and key in keys and self.setting(setting):
                found.setdefault(head.removeprefix(f"{section}."), []).append(self.program(self.setting(setting)))
        return {driver: tuple(unique(atoms)) for driver, atoms in found.items()}

    def _exec(self, target: str, argv: list[str], inputs: tuple[str, ...], *, command: str = "") -> Atom:
        digests: dict[str, JsonValue] = {}
        for path in inputs:
            data = self.snapshot.content(path)
            digests[name(self.snapshot.root, path)] = digest_bytes(data) if data is not None else None
        return Atom("proc.exec", target, {"argv": list(argv), "inputs": digests, **({"command": command} if command else {})})


def open_repository(snapshot: Snapshot, place: GivenPath) -> Repository | Refused:
    """The repository whose work tree stands at a place; its parents are not searched."""
    where = place.field or place.target
    git = snapshot.entry(join(place.path, ".git"))
    if git.kind is EntryKind.ABSENT:
        return Refused.of(Code.EFFECT_INEXACT, f"`{place.target}` is not the top of a work tree", where=where)
    if git.kind is not EntryKind.FOLDER or snapshot.entry(join(place.path, ".git/commondir")).kind is not EntryKind.ABSENT:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "the git folder is elsewhere (a linked worktree or a submodule)", where=where)
    layout = snapshot.git(place.path, "layout", ())
    if layout is None or layout.decode("utf-8", "surrogateescape").split("\n")[:3] != [place.path, f"{place.path}/.git", "false"]:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "git takes this repository for another, or does not trust it", where=where)
    answer = snapshot.git(place.path, "config", ())
    if answer is None:
        return Refused.of(Code.EFFECT_UNREADABLE, "the settings of git cannot be read", where=where)
    settings, included = parse_settings(answer)
    repository = Repository(snapshot, place, settings, included)
    for key, bad in (("extensions.objectformat", "sha256"), ("extensions.refstorage", "reftable")):
        if repository.setting(key).lower() == bad:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"a `{bad}` repository", where=where)
    partial = [
        key for key in settings if key == "extensions.partialclone" or (key.startswith("remote.") and key.endswith(".promisor"))
    ]
    if partial or repository.on("core.sparsecheckout"):
        return Refused.of(Code.EFFECT_UNSUPPORTED, "a partial clone or a sparse checkout", where=where)
    if not repository.on("core.symlinks", default=True) or repository.setting("core.worktree"):
        return Refused.of(Code.EFFECT_UNSUPPORTED, "a work tree without links, or elsewhere", where=where)
    return repository


def parse_settings(answer: bytes) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Read `git config --list --show-scope -z`; what the command line set is not the repository's.

    Returns:
        The settings by key, and whether one of them includes a file.
    """
    found: dict[str, tuple[str, ...]] = {}
    rows = _rows(answer)
    for scope, row in zip(rows[::2], rows[1::2], strict=True):
        if scope == "command":
            continue
        key, assigned, value = row.partition("\n")
        found[key] = (*found.get(key, ()), value if assigned else "true")
    return found, any(key.startswith(("include.", "includeif.")) for key in found)


def parse_index(answer: bytes) -> dict[str, Blob] | Refused:
    """Read `git ls-files --stage -z`."""
    found: dict[str, Blob] = {}
    for row in _rows(answer):
        head, _, path = row.partition("\t")
        mode, blob, stage = head.split(" ")
        if stage != "0":
            return Refused.of(Code.EFFECT_UNSUPPORTED, "the index holds a conflict", where=path, needs="a person resolves it")
        found[path] = (mode, blob)
    return found


def parse_raw(answer: bytes) -> tuple[Change, ...]:
    """Read git's raw diff format under `-z` (git-diff-tree(1), RAW OUTPUT FORMAT), without renames."""
    rows = _rows(answer)
    found: list[Change] = []
    for head, path in zip(rows[::2], rows[1::2], strict=True):
        before_mode, after_mode, before, after, _ = head.removeprefix(":").split(" ")
        found.append(
            (
                path,
                (before_mode, before) if before_mode != "000000" else None,
                (after_mode, after) if after_mode != "000000" else None,
            )
        )
    return tuple(found)


def changed_between(before: Mapping[str, Blob], after: Mapping[str, Blob]) -> tuple[Change, ...]:
    """The paths whose mode or blob differ, in order."""
    return tuple(
        (path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def hash_blob(data: bytes) -> str:
    """The name of a blob in a SHA-1 repository."""
    return _hash("blob", data)


def hash_tree(index: Mapping[str, Blob]) -> str:
    """The name of the tree that an index stands for (git-write-tree(1)), without writing it."""
    folders: dict[str, dict[str, Blob]] = {}
    files: list[tuple[bytes, bytes]] = []
    for path, (mode, blob) in index.items():
        head, below, rest = path.partition("/")
        if below:
            folders.setdefault(head, {})[rest] = (mode, blob)
        else:
            raw = head.encode("utf-8", "surrogateescape")
            files.append((raw, mode.lstrip("0").encode() + b" " + raw + b"\0" + bytes.fromhex(blob)))
    for folder, held in folders.items():
        raw = folder.encode("utf-8", "surrogateescape")
        files.append((raw + b"/", b"40000 " + raw + b"\0" + bytes.fromhex(hash_tree(held))))
    return _hash("tree", b"".join(row for _, row in sorted(files)))


def unique(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Each atom once, in order: a program that would run for many files is one atom."""
    seen: list[tuple[str, str, Mapping[str, JsonValue]]] = []
    for atom in atoms:
        key = (atom.kind, atom.target, atom.attributes)
        if key not in seen:
            seen.append(key)
            yield atom


def _hash(kind: str, data: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for path in paths:
        size += len(path.encode("utf-8", "surrogateescape")) + 1
        if chunk and size > _CHUNK:
            yield chunk
            chunk, size = [], len(path)
        chunk.append(path)
    if chunk:
        yield chunk


def _rows(answer: bytes) -> list[str]:
    return answer.decode("utf-8", "surrogateescape").split("\0")[:-1]


def _line(answer: bytes) -> str:
    return answer.decode("utf-8", "surrogateescape").rstrip("\n")
