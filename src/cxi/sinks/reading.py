"""What has been read of one repository in one pass, and which answers of git are still good?

- A pass reads what every question rests on once (`cxi.sinks.ground`), and the index once: one plan sees one state, and the look
  before the sink is a pass of its own.
- INVARIANT (settled) of `cxi.sinks.look`: an answer is kept under looks at all files that it came from, and what is not a file's
  bytes is told again after git was asked.
- Before git compares files the settings are read anew, whatever the pass has read: a filter driver that appeared meanwhile must
  not run (INVARIANT questions-run-nothing).

    Reading(plumbing, Grounds(plumbing), Memory(), "/srv/repo").ask("tree", ("HEAD",))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from cxi.effects.git import CONVERTING
from cxi.sinks.ground import Ground, Grounds, Key, look_all, put, witnesses
from cxi.sinks.index import EMPTY, Index, read_index
from cxi.sinks.look import ABSENT, Look, look
from cxi.sinks.plumbing import Plumbing

_GONE: Final[Look] = (-1,)  # of what cannot be looked at: never settled


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, and what it holds under."""

    key: Key
    under: tuple[object, ...]
    answer: bytes


@dataclass(slots=True)
class Memory:
    """What passes leave to the next ones. Each item is set whole and read whole, so threads need no lock."""

    kept: dict[tuple[str, str, tuple[str, ...]], Kept] = field(default_factory=dict)
    indexes: dict[str, tuple[bytes, Index | None]] = field(default_factory=dict)


class Reading:
    """One repository in one pass.

    Args:
        plumbing: Its git.
        grounds: Their memory.
        memory: That of the answers.
        repository: The work tree, absolute.
    """

    def __init__(self, plumbing: Plumbing, grounds: Grounds, memory: Memory, repository: str) -> None:
        self.plumbing, self.repository = plumbing, repository
        self._grounds, self._memory = grounds, memory
        self.ground = grounds.stand(repository)
        self._index: list[tuple[Index, tuple[int, int]] | None] = []  # none, or the one that was read

    def ask(self, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """A new process."""
        if question not in CONVERTING:
            return self.plumbing.ask(self.repository, question, arguments)
        ground = self._grounds.stand(self.repository)
        settings = ground.config if ground is not None else self.plumbing.ask(self.repository, "config", ())
        return self.plumbing.ask(self.repository, question, arguments, _drivers(settings)) if settings is not None else None

    def keep(
        self,
        ground: Ground,
        question: str,
        arguments: tuple[str, ...],
        files: Iterable[str] = (),
        more: Callable[[bool], object] = lambda _fresh: None,
        *,
        beside: tuple[str, ...] = (),
        only: bytes | None = None,
    ) -> bytes | None:
        """Git's answer, from memory while the ground and all else that it depends on are equal.

        Args:
            ground: As the pass found it.
            question: Its name.
            arguments: Its own arguments.
            files: Files whose bytes it depends on.
            more: Tells what else it depends on; whether it is to be read anew, whatever the pass has read.
            beside: Files that must not change while git is asked, because `more` tells of them.
            only: The one answer that may be kept; None for any.
        """
        now, names = time.time_ns(), tuple(dict.fromkeys(files))
        looks = look_all(names)
        if looks is None:
            return self.ask(question, arguments)
        name, under = (self.repository, question, arguments), (looks, more(False))
        known = self._memory.kept.get(name)
        if known is not None and known.key == ground.key and known.under == under:
            return known.answer
        before = witnesses((*looks, *_beside(beside)), now) if more(True) == under[1] else None
        answer = self.ask(question, arguments)
        if answer is None or before is None or only not in (None, answer):
            return answer
        if (look_all(names), more(True)) != under or self._grounds.key(self.repository, ground.included) != ground.key:
            return answer
        if witnesses((*looks, *_beside(beside)), now) == before:
            put(self._memory.kept, name, Kept(ground.key, under, answer))
        return answer

    def index(self, *, fresh: bool = False) -> tuple[Index, tuple[int, int]] | None:
        """The index, and the time of its file (s, ns); None where git has to read it.

        Args:
            fresh: Whether to read it anew, whatever the pass has read.
        """
        if fresh:
            return self._read_index()
        if not self._index:
            self._index.append(self._read_index())
        return self._index[0]

    def _read_index(self) -> tuple[Index, tuple[int, int]] | None:
        seen = look(f"{self.repository}/.git/index", through_links=False)
        if seen == ABSENT:
            return EMPTY, (0, 0)
        if seen is None or len(seen) != 6:
            return None
        known = self._memory.indexes.get(self.repository)
        if known is None or known[0] != seen[5]:
            known = seen[5], read_index(seen[5])
            put(self._memory.indexes, self.repository, known)
        return (known[1], divmod(seen[3], 1_000_000_000)) if known[1] is not None else None


def _beside(paths: Iterable[str]) -> tuple[tuple[str, Look], ...]:
    return tuple((path, look(path) or _GONE) for path in paths)


def _drivers(settings: bytes) -> list[str]:
    """The names of all filter drivers in an answer to `config`."""
    found = set()
    for row in settings.decode("utf-8", "surrogateescape").split("\0"):
        key = row.partition("\n")[0]
        if key.startswith("filter.") and key.count(".") >= 2:
            found.add(key[len("filter.") : key.rindex(".")])
    return sorted(found)
