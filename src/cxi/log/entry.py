"""What is one line of the log?

- An entry is written once, in the ledger's own transaction; its chain fields are set there.
- `content = SHA-256(canonical({time_ms, kind, call, session, body}))` is what it tells, and
  `hash = SHA-256(canonical({seq, previous, content}))` is its place; `previous` is the hash before it. A path from one entry to a
  later one therefore needs content digests only: it is checked without seeing what stands in between.
- Time is kept in whole milliseconds.
- Values and secrets enter as salted commitments (`cxi.log.commitment`); openings live in a store of their own.
- The ledger itself sets `manifest` in the body of an admission, and `manifest`, `state` and `admission: [seq, hash]` in that of a
  settlement: what the log tells of a capability is what the ledger did with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import orjson

from cxi.canonical import Digest, JsonValue, digest, digest_bytes
from cxi.errors import Code, MalformedError, Reason
from cxi.manifest import Instant


class EntryType(StrEnum):
    """What an entry tells."""

    SESSION = "session"  # opened, closed
    TASK = "task"  # started, stopped
    EPOCH = "epoch"  # a new policy epoch
    KEY = "key"  # the signing key introduced the next one
    READ = "read"  # a call that is no sink
    ADMISSION = "admission"
    REFUSAL = "refusal"
    SETTLEMENT = "settlement"
    NO_OP = "no-op"
    RECORDED = "recorded"  # a recorded answer was given again
    RELEASE = "release"
    APPEAL = "appeal"  # a person is asked about a refused call
    PERSON = "person"  # an act of a person: endorsement, release of an unknown outcome, revocation
    ALARM = "alarm"


GENESIS: Final[Digest] = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry before it is chained.

    Attributes:
        kind: What it tells.
        call: The call's id, `a-19c4…`, or empty.
        session: The session's id, or empty.
        body: RFC 8785-safe JSON.
    """

    kind: EntryType
    call: str
    session: str
    body: Mapping[str, JsonValue]

    def to_json(self, time: Instant) -> dict[str, JsonValue]:
        """What the content digest is taken over."""
        return {
            "time_ms": milliseconds(time),
            "kind": str(self.kind),
            "call": self.call,
            "session": self.session,
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class ChainedEntry:
    """An entry in its place.

    Attributes:
        seq: From 1, without gaps.
        previous: The hash of the entry before; `sha256:` and 64 zeros for the first.
        time: When it was written, by the writer's clock, in whole milliseconds.
        entry: The entry.
        stated: The hash that a store or an export states for it, or empty. Nothing rests on it; where it is another than the
            entry's, it tells which entry was altered.
    """

    seq: int
    previous: Digest
    time: Instant
    entry: LogEntry
    stated: Digest = field(default="", compare=False)

    @property
    def content(self) -> Digest:
        """Digest of what it tells, without its place."""
        return digest(self.entry.to_json(self.time))

    @property
    def hash(self) -> Digest:
        return chain(self.seq, self.previous, self.content)

    def to_json(self) -> dict[str, JsonValue]:
        """The entry with its place, as receipts carry it."""
        return {"seq": self.seq, "previous": self.previous, **self.entry.to_json(self.time)}


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as a store has it: hashed over its very bytes, and read only where somebody asks what it tells.

    Attributes:
        seq: Its place.
        previous: The hash of the entry before.
        stated: The hash that the store states for it.
        text: The canonical text of what it tells.
    """

    seq: int
    previous: Digest
    stated: Digest
    text: bytes

    @property
    def content(self) -> Digest:
        """Digest of what it tells, without its place."""
        return digest_bytes(self.text)

    def parse(self) -> dict[str, JsonValue]:
        """The text as JSON: enough to see of which kind it is.

        Raises:
            MalformedError: where it is no JSON object.
        """
        try:
            told = orjson.loads(self.text)
        except ValueError as error:
            raise _malformed("the text is no JSON") from error
        if not isinstance(told, dict):
            raise _malformed("the text is no JSON object")
        return told

    def read(self, told: Mapping[str, JsonValue] | None = None) -> ChainedEntry:
        """What it tells.

        Args:
            told: What `parse` gave, where it was asked already.

        Raises:
            MalformedError: where the text is no entry.
        """
        parts = self.parse() if told is None else told
        return read_entry({**parts, "seq": self.seq, "previous": self.previous}, stated=self.stated)


def chain(seq: int, previous: Digest, content: Digest) -> Digest:
    """The hash of the entry at `seq` that tells `content`."""
    return digest({"seq": seq, "previous": previous, "content": content})


def milliseconds(time: Instant) -> int:
    """An instant in whole milliseconds; rounded, so that a time that was read back gives the same number again."""
    return round(time * 1000)


def read_entry(value: JsonValue, *, stated: Digest = "") -> ChainedEntry:
    """The entry that `ChainedEntry.to_json` wrote; anything else is refused.

    Raises:
        MalformedError: where a key is missing, foreign or of another type.
    """
    if not isinstance(value, Mapping) or value.keys() != _KEYS:
        raise _malformed("an entry has exactly the keys " + ", ".join(f"`{key}`" for key in sorted(_KEYS)))
    match dict(value):
        case {
            "seq": int(seq),
            "previous": str(previous),
            "time_ms": int(time_ms),
            "kind": str(kind),
            "call": str(call),
            "session": str(session),
            "body": dict(body),
        } if type(seq) is int and type(time_ms) is int and kind in _TYPES:
            return ChainedEntry(seq, previous, time_ms / 1000, LogEntry(EntryType(kind), call, session, body), stated)
        case _:
            raise _malformed("a part of the entry is of the wrong type")


_TYPES: Final = frozenset(EntryType)
_KEYS: Final = frozenset({"seq", "previous", "time_ms", "kind", "call", "session", "body"})


def _malformed(detail: str) -> MalformedError:
    return MalformedError(Reason(Code.MALFORMED_JSON, detail, where="log entry"))
