"""Which questions to git do its own files answer?

- The answer is git's own, byte for byte, or there is none and git is asked. Nothing here is kept by time: what is read is read
  anew in each pass, and an answer of git is kept only under looks at *all* that it came from (`cxi.sinks.reading`).
- `layout` and `config` are what git said, while all that every question rests on is the same (`cxi.sinks.ground`).
- `index` and `index-flags` are in the bytes of the index (`cxi.sinks.index`); `modified` is the index against lstat(2)
  (`cxi.sinks.worktree`); `untracked` and `attributes` come of files of rules (`cxi.sinks.rules`).
- Refs, commits and trees are read or known by their hashes (`cxi.sinks.history`).
- Whatever is not plain - links, submodules, conflicts, settings that change how git compares, paths that are not in normal form -
  is git's to answer.

    GitFolder(Plumbing(os.environ)).begin().answer("/srv/repo", "index", ())
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from cxi.sinks.ground import Ground, Grounds, is_plain
from cxi.sinks.history import tell_history
from cxi.sinks.index import Index, Staged
from cxi.sinks.look import look
from cxi.sinks.plumbing import Plumbing
from cxi.sinks.reading import Memory, Reading
from cxi.sinks.rules import attributes, untracked
from cxi.sinks.store import Objects, Store
from cxi.sinks.untold import Told, Untold
from cxi.sinks.worktree import Comparison

MOST_COMPARED: Final = 1000  # files; beyond these git is quicker

_OF_HISTORY: Final = frozenset({"symbolic", "resolve", "type", "tree", "staged", "changed"})


class GitFolder:
    """The git folders of one server's world.

    Args:
        plumbing: Its git.
    """

    def __init__(self, plumbing: Plumbing) -> None:
        self.plumbing, self.grounds, self.memory = plumbing, Grounds(plumbing), Memory()
        self.objects: dict[str, Objects] = {}

    def begin(self) -> Pass:
        """A pass: several questions about one state."""
        return Pass(self)


class Pass:
    """Questions that read what they have in common once."""

    def __init__(self, folder: GitFolder) -> None:
        self._folder = folder
        self._readings: dict[str, Reading] = {}
        self._stores: dict[str, Store] = {}

    def answer(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """What git answers."""
        reading = self._readings.get(repository)
        if reading is None:
            folder = self._folder
            reading = self._readings[repository] = Reading(folder.plumbing, folder.grounds, folder.memory, repository)
        if reading.ground is None:
            return reading.ask(question, arguments)
        if question in _OF_HISTORY:
            store = self._stores.get(repository)
            if store is None:
                store = self._stores[repository] = Store(reading, self._folder.objects.setdefault(repository, Objects()))
            told = tell_history(reading, store, question, arguments)
        else:
            told = _tell(reading, reading.ground, question, arguments)
        return reading.ask(question, arguments) if isinstance(told, Untold) else told


def _tell(reading: Reading, ground: Ground, question: str, arguments: tuple[str, ...]) -> Told:
    match question, len(arguments):
        case "layout", 0:
            return ground.layout
        case "config", 0:
            return ground.config
        case (("index" | "index-flags"), 0):
            found = reading.index()
            if found is None:
                return _keep_index(reading, ground, question)
            return found[0].listing() if question == "index" else found[0].flags()
        case "modified", _:
            return _modified(reading, ground, arguments)
        case "untracked", 1:
            return untracked(reading, ground, arguments[0])
        case (("attributes" | "attributes-staged"), count) if count:
            return attributes(reading, ground, arguments, staged=question == "attributes-staged")
        case (("hooks-path" | "ref-format"), _):
            return reading.keep(ground, question, arguments)
        case _:
            return Untold.ASK


def _keep_index(reading: Reading, ground: Ground, question: str) -> Told:
    """Git's listing of an index that is not read here."""
    file = f"{reading.repository}/.git/index"
    seen = look(file, through_links=False)
    # Of a split and of a sparse index other files are a part (gitformat-index(5)); in a path's name it only costs a question.
    if seen is None or len(seen) != 6 or b"link" in seen[5] or b"sdir" in seen[5]:
        return Untold.ASK
    return reading.keep(ground, question, (), (file,))


def _modified(reading: Reading, ground: Ground, paths: tuple[str, ...]) -> Told:
    """`git diff-files --raw -z`, of some paths or of all."""
    found = reading.index()
    if found is None or found[0].conflicts or not all(map(is_plain, paths)):
        return Untold.ASK
    entries = list(_choose(found[0], [os.fsencode(path) for path in paths]))
    if len(entries) > MOST_COMPARED:
        return Untold.ASK

    def names(path: str) -> frozenset[str] | None:
        answer = attributes(reading, ground, (path,)) if is_plain(path) else None
        return frozenset(os.fsdecode(answer).split("\0")[1::3]) if answer is not None else None

    comparison = Comparison(reading.repository, ground.settings, found[1], names)
    rows: list[bytes] = []
    for entry in entries:
        row = comparison.compare(entry)
        if row is None:
            return Untold.ASK
        rows.append(row)
    return b"".join(rows)


def _choose(index: Index, paths: list[bytes]) -> Iterator[Staged]:
    if len(paths) == 1 and (only := index.by_path.get(paths[0])) is not None:
        yield only
        return
    wanted, below = set(paths), tuple(path + b"/" for path in paths)
    for entry in index.entries:
        if not paths or entry.path in wanted or entry.path.startswith(below):
            yield entry
