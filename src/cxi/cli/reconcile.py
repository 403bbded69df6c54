"""What happened to the calls of which nobody knows? The world is asked, call by call, and only what it says is written.

- A call's atoms come from the log: the opened commitments of its admission, whose manifest has to have the digest that the log's
  entry holds, and its effect theirs. Where an opening was erased or lost, nothing is said.
- `done` is written where every atom is there. `failed` is written only where, beside what `cxi.effects.hindsight` asks, the
  launch deadline is past and the person says that no server which an ended gateway left behind still runs (`stopped`): a request
  on its way would land later, and nothing in the world shows it.
- What is written is a person's release like any other, with the ground for its reason; the log keeps it. No path stands in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cxi.canonical import JsonValue, digest
from cxi.cli.book import Book
from cxi.effects.base import World
from cxi.effects.hindsight import NotThere, There, Unclear, Verdict, judge, read_effect
from cxi.errors import MalformedError
from cxi.gate import LAUNCH_SECONDS
from cxi.ledger.base import CallRecord, State
from cxi.log.entry import ChainedEntry, EntryType, LogEntry
from cxi.log.story import Story, tell
from cxi.manifest import Instant
from cxi.sinks.disk import DiskWorld
from cxi.sinks.process import environment

WAIT: Final = "a request that is still on its way could land: end the servers that were left behind, then add `--stopped`"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is said of one call.

    Attributes:
        record: The call, as the ledger knows it.
        story: What the log tells of it; None where its admission is not there.
        state: What it is now: `DONE`, `FAILED`, or unknown still.
        why: One line a ground.
    """

    record: CallRecord
    story: Story | None
    state: State
    why: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """For `--json`."""
        return {
            "id": self.record.call,
            "tool": self.story.tool if self.story is not None else "",
            "shown": self.story.shown if self.story is not None else "",
            "state": str(self.state),
            "why": list(self.why),
        }


def story_of(book: Book, record: CallRecord) -> tuple[LogEntry, Story] | None:
    """A call's admission, and its story as far as that tells it."""

    def is_it(chained: ChainedEntry) -> bool:
        return (chained.entry.kind, chained.entry.call) == (EntryType.ADMISSION, record.call)

    # Where a ledger has one chain, the admission is found by its place; else by the call.
    first = next(iter(book.ledger.entries(record.seq)), None)
    found = [first] if first is not None and is_it(first) else list(filter(is_it, book.ledger.entries_of(record.call)))
    return (found[-1].entry, tell((found[-1],), book.opened)[0]) if found else None


def look(book: Book, record: CallRecord, now: Instant, *, stopped: bool) -> Finding:
    """What the world says of one unknown call.

    Args:
        book: The book.
        record: The call.
        now: Seconds since the epoch.
        stopped: Whether a person says that no server that could still do it runs.
    """
    found = story_of(book, record)
    if found is None:
        return Finding(record, None, record.state, ("its admission is not in the log where the ledger says",))
    entry, story = found
    verdict = _judge(book, record, entry, story)
    match verdict:
        case There(atoms):
            return Finding(record, story, State.DONE, (f"all {atoms} atoms of the effect are there",))
        case NotThere(atoms):
            ground = f"none of {atoms} atoms is there, and nothing that they are about was touched since the lease"
            if now < record.drawn + LAUNCH_SECONDS:
                return Finding(record, story, record.state, (ground, "it may still be launched: its deadline is ahead"))
            if not stopped:
                return Finding(record, story, record.state, (ground, WAIT))
            return Finding(record, story, State.FAILED, (ground, "no server that could still do it runs, says the person"))
        case Unclear(why):
            return Finding(record, story, record.state, why)


def _judge(book: Book, record: CallRecord, entry: LogEntry, story: Story) -> Verdict:
    hidden = entry.body.get("hidden")
    manifest = book.opened(str(hidden.get("manifest", ""))) if isinstance(hidden, Mapping) else None
    if not isinstance(manifest, Mapping):
        return Unclear(("its atoms were erased, or lost with the crash: a person has to look",))
    effect = manifest.get("effect")
    try:
        fits = digest(manifest) == record.manifest == entry.body.get("manifest")
        if not isinstance(effect, Mapping) or not fits:
            return Unclear(("what the log opens to is not the manifest that was admitted",))
        admitted = read_effect(story.atoms, str(effect.get("adapter", "")), str(effect.get("assurance", "")))
        if admitted.digest != effect.get("atoms"):
            return Unclear(("the atoms in the log are not those that were admitted, or were erased",))
    except (MalformedError, ValueError, KeyError):
        return Unclear(("what the log opens to cannot be read",))
    return judge(admitted, str(book.config.root), _world(book, story.tool), last_change, record.drawn)


def _world(book: Book, tool: str) -> World:
    """The disk and its git, as the server of this tool sees them."""
    server = book.config.servers.get(tool.partition(".")[0])
    return DiskWorld() if server is None else DiskWorld(environment(server.environment(os.environ), os.environ))


def last_change(path: str) -> Instant | None:
    """The ctime of a path itself, not of what a link leads to; None where there is nothing."""
    try:
        return os.lstat(path).st_ctime
    except FileNotFoundError:
        return None
    except OSError:
        return float("inf")  # what cannot be seen may have changed
