"""What did the plan really read, and does it still hold?

- A snapshot asks its world each question once and gives the same answer from then on: one plan sees one state.
- The read set is (question, argument, …) to the digest of the canonical answer. A question that was not asked is not in it, so
  an unrelated change never makes a plan stale.
- The canonical answer of `entry` is what a plan can depend on: the kind, the permission bits, the text of a link, and whether a
  file has other names. Inode numbers, times and sizes are left out: rewriting the same bytes is no change, and what depends on
  bytes asks for `content`.

    >>> snapshot = RecordingSnapshot(world, "/srv/repo")              # doctest: +SKIP
    >>> snapshot.content("/srv/repo/README.md")                       # doctest: +SKIP
    >>> stale(snapshot.reads, world)                                  # doctest: +SKIP
    ()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.canonical import Digest, digest, digest_bytes
from cxi.effects.base import World
from cxi.values.base import Entry, EntryKind, Root

Question: TypeAlias = tuple[str, ...]
Answer: TypeAlias = Entry | tuple[str, ...] | bytes | None

_ABSENT: Final = digest(None)
_UNASKED: Final = object()


class RecordingSnapshot:
    """A world that remembers what was asked of it; its `root.view` is itself.

    Args:
        world: What answers.
        root_path: The declared root, absolute and real.
        case_sensitive: Whether the file system tells `A` from `a`.
        normalizes: Whether it holds composed and decomposed names to be one.
    """

    __slots__ = ("_answers", "_entries", "_reads", "_root", "_world")

    def __init__(self, world: World, root_path: str, case_sensitive: bool = True, normalizes: bool = False) -> None:
        self._world = _hold(world)
        self._root = Root(root_path, self, case_sensitive, normalizes)
        self._answers: dict[Question, Answer] = {}
        self._entries: dict[str, Entry] = {}  # most questions: the answers to ("entry", path), by the path alone
        self._reads: dict[Question, Digest] = {}  # of the first so many answers, as far as anyone asked

    @property
    def root(self) -> Root:
        return self._root

    @property
    def reads(self) -> Mapping[Question, Digest]:
        # INVARIANT (in-order): answers are never taken away, so those that are not digested yet are the last ones.
        for question, answer in islice(self._answers.items(), len(self._reads), None):
            self._reads[question] = _digest(answer)
        return MappingProxyType(self._reads)

    @property
    def answers(self) -> Mapping[Question, Answer]:
        """What was asked so far, with the whole answers."""
        return MappingProxyType(self._answers)

    @property
    def digest(self) -> Digest:
        """Digest of the read set so far."""
        return read_set_digest(self.reads)

    def entry(self, path: str) -> Entry:
        known = self._entries.get(path)
        if known is None:
            known = self._entries[path] = self._answers["entry", path] = self._world.entry(path)
        return known

    def names(self, path: str) -> tuple[str, ...] | None:
        answer = self._ask(("names", path))
        return answer if isinstance(answer, tuple) else None

    def content(self, path: str) -> bytes | None:
        answer = self._ask(("content", path))
        return answer if isinstance(answer, bytes) else None

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        answer = self._ask(("git", repository, question, *arguments))
        return answer if isinstance(answer, bytes) else None

    def _ask(self, question: Question) -> Answer:
        known = self._answers.get(question, _UNASKED)
        if known is not _UNASKED:
            return known  # type: ignore[return-value]  # the one thing that is no answer
        answer = self._answers[question] = ask(self._world, question)
        return answer


def read_set_digest(reads: Mapping[Question, Digest]) -> Digest:
    """The digest of a read set: its questions in order, each with the digest of its answer."""
    return digest(sorted([*map(_plain, question), answer] for question, answer in reads.items()))


def stale(reads: Mapping[Question, Digest], world: World) -> tuple[Question, ...]:
    """The questions that the world answers differently now, in the order in which they were asked."""
    held = _hold(world)
    return tuple(question for question, before in reads.items() if _digest(ask(held, question)) != before)


def _hold(world: World) -> World:
    """The world for one pass of questions, where it has such a thing."""
    hold: Callable[[], World] | None = getattr(world, "hold", None)  # `isinstance` of a protocol costs more than the questions
    return world if hold is None else hold()


def ask(world: World, question: Question) -> Answer:
    """The world's answer to one question.

    Raises:
        ValueError: for a question of no kind that there is.
    """
    kind = question[0]
    if kind == "entry":
        return world.entry(question[1])
    if kind == "names":
        return world.names(question[1])
    if kind == "content":
        return world.content(question[1])
    if kind == "git":
        return world.git(question[1], question[2], question[3:])
    raise ValueError(f"no such question: {question!r}")


def _digest(answer: Answer) -> Digest:
    if isinstance(answer, Entry):  # most answers
        shared = answer.kind is EntryKind.FILE and answer.links > 1
        return _digest_entry(answer.kind, answer.mode, answer.target, shared)
    if answer is None:
        return _ABSENT
    if isinstance(answer, bytes):
        return digest_bytes(answer)
    return digest(list(_all_plain(answer)))


@lru_cache(maxsize=4096)  # a plan asks for dozens of entries, and nearly all are one of a few
def _digest_entry(kind: EntryKind, mode: int, target: str, shared: bool) -> Digest:
    return digest({"kind": str(kind), "mode": mode, "target": _plain(target), "shared": shared})


def _all_plain(parts: Iterable[str]) -> Iterable[str]:
    return map(_plain, parts)


def _plain(text: str) -> str:
    """The text in a form that has UTF-8 bytes: a name of other bytes is marked by NUL, which no name holds."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "\0" + text.encode("utf-8", "surrogatepass").hex()
    return text
