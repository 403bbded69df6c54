"""Does the ledger hold what its log tells?

- The log is chained and signed, the rows of the ledger are not. What was admitted, settled, abandoned and released is in both, so
  the rows are compared with what the log's entries make of them.
- Compared: every call and its state, the epochs in force, closed sessions, revocations, and that no used token is gone.
- Not compared, as the log holds only commitments to them: the keys of a call, its answer, and the origin index.
- A ledger in use grows: rows are read from one moment, and entries after that moment are left out.

    standing = ledger.standing()
    replay = Replay(standing.head)
    for entry in replay.watch(ledger.stored()): ...
    replay.differences(standing)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cxi.canonical import Digest, JsonValue
from cxi.errors import MalformedError
from cxi.ledger.base import MarkKind, State
from cxi.log.entry import ChainedEntry, EntryType, LogEntry, Stored
from cxi.log.finding import Finding, FindingKind

# The kinds of which the ledger's rows are made; others are not read.
_TOLD: Final = frozenset(
    {EntryType.ADMISSION, EntryType.SETTLEMENT, EntryType.ALARM, EntryType.PERSON, EntryType.EPOCH, EntryType.SESSION}
)
TOKENS = 2  # a call that is no longer leased left its nonce and its capability in `used`


@dataclass(frozen=True, slots=True)
class Row:
    """One call.

    Attributes:
        call: Its id.
        session: Its session.
        manifest: Its manifest's digest.
        state: Where it stands.
        settled: The settlement's seq, or None.
    """

    call: str
    session: str
    manifest: str
    state: str
    settled: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """The ledger's rows, from one moment.

    Attributes:
        head: The last entry's seq at that moment.
        calls: By the admission's seq.
        draws: (grant, sequence) by the admission's seq.
        epochs: (counter, digest) by tenant.
        closed: Sessions that are closed.
        revoked: (tenant, kind, key, session).
        used: How many tokens.
    """

    head: int
    calls: Mapping[int, Row]
    draws: Mapping[int, tuple[str, int]]
    epochs: Mapping[str, tuple[int, Digest]]
    closed: frozenset[str]
    revoked: frozenset[tuple[str, str, str, str]]
    used: int


def read_standing(database: sqlite3.Connection) -> Standing:
    """The ledger's rows.

    Args:
        database: Inside a transaction.
    """
    calls: dict[int, Row] = {}
    draws: dict[int, tuple[str, int]] = {}
    query = "SELECT seq, id, session, manifest, state, settled, grant_id, sequence FROM call"
    for seq, call, session, manifest, state, settled, grant, sequence in database.execute(query):
        calls[seq] = Row(call, session, manifest, state, settled)
        draws[seq] = (grant, sequence)
    return Standing(
        head=int(database.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]),
        calls=calls,
        draws=draws,
        epochs={row[0]: (row[1], row[2]) for row in database.execute("SELECT tenant, counter, digest FROM epoch")},
        closed=frozenset(row[0] for row in database.execute("SELECT id FROM session WHERE closed = 1")),
        revoked=frozenset(database.execute("SELECT tenant, kind, key, session FROM revoked")),
        used=int(database.execute("SELECT count(*) FROM used").fetchone()[0]),
    )


@dataclass(slots=True)
class Replay:
    """What the entries make of the ledger.

    Attributes:
        head: Entries after this one are left out.
    """

    head: int
    _unreadable: list[Finding] = field(default_factory=list)
    _calls: dict[int, Row] = field(default_factory=dict)
    _draws: dict[int, tuple[str, int]] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)  # by call, its latest admission
    _epochs: dict[str, tuple[int, tuple[JsonValue, ...]]] = field(default_factory=dict)  # by tenant, the entry and what it tells
    _closed: dict[str, int] = field(default_factory=dict)
    _revoked: dict[tuple[str, str, str, str], int] = field(default_factory=dict)

    def watch(self, entries: Iterable[ChainedEntry | Stored]) -> Iterator[ChainedEntry | Stored]:
        """The same entries, read on their way."""
        for entry in entries:
            if entry.seq <= self.head:
                try:
                    self._see(entry)
                except MalformedError:
                    self._unreadable.append(Finding(FindingKind.ALTERED, entry.seq, f"entry {entry.seq} cannot be read"))
            yield entry

    def differences(self, standing: Standing) -> tuple[Finding, ...]:
        """Where the rows are not what the entries tell, in the order of the entries."""
        found = [*self._unreadable, *self._of_calls(standing), *self._of_others(standing)]
        return tuple(sorted(found, key=lambda finding: finding.seq))

    def _see(self, entry: ChainedEntry | Stored) -> None:
        if isinstance(entry, ChainedEntry):
            self._read(entry)
            return
        told = entry.parse()
        kind = told.get("kind")
        if not isinstance(kind, str) or kind in _TOLD:
            self._read(entry.read(told))

    def _read(self, chained: ChainedEntry) -> None:
        seq, entry, body = chained.seq, chained.entry, chained.entry.body
        match entry.kind:
            case EntryType.ADMISSION:
                self._calls[seq] = Row(entry.call, entry.session, str(body.get("manifest")), str(State.LEASED), None)
                self._places[entry.call] = seq
                grant, sequence = body.get("grant"), body.get("sequence")
                if isinstance(grant, str) and isinstance(sequence, int):
                    self._draws[seq] = (grant, sequence)
            case EntryType.SETTLEMENT:
                admission = body.get("admission")
                self._move(admission[0] if isinstance(admission, list) and admission else None, body, seq)
            case EntryType.ALARM:
                self._move(body.get("admission"), body, None)
            case EntryType.PERSON if body.get("act") == "release":
                self._move(self._places.get(entry.call), body, None)
            case EntryType.PERSON if body.get("act") == "revoke":
                self._revoked[_mark(entry)] = seq
            case EntryType.PERSON if body.get("act") == "vacuum":
                self._drop(body.get("until"))
            case EntryType.EPOCH:
                epoch = body.get("epoch")
                self._epochs[str(body.get("tenant"))] = (seq, tuple(epoch) if isinstance(epoch, list) else ())
            case EntryType.SESSION if body.get("act") == "close":
                self._closed[entry.session] = seq
            case _:
                pass

    def _move(self, admission: JsonValue, body: Mapping[str, JsonValue], settled: int | None) -> None:
        row = self._calls.get(admission) if isinstance(admission, int) else None
        state = body.get("state")
        if isinstance(admission, int) and row is not None and isinstance(state, str):
            self._calls[admission] = Row(row.call, row.session, row.manifest, state, settled or row.settled)

    def _drop(self, until: JsonValue) -> None:
        """What a vacuum took away: the settled calls of sessions that were closed, up to an admission."""
        if not isinstance(until, int):
            return
        over = (str(State.LEASED), str(State.OUTCOME_UNKNOWN))
        for seq, row in list(self._calls.items()):
            if seq <= until and row.session in self._closed and row.state not in over:
                del self._calls[seq]

    def _of_calls(self, standing: Standing) -> Iterator[Finding]:
        for seq, told in self._calls.items():
            row = standing.calls.get(seq)
            if row is None:
                yield _finding(seq, f"`{told.call}` was admitted, and the ledger does not hold it")
            elif row.state != told.state:
                yield _finding(seq, f"`{told.call}` is `{row.state}` in the ledger, and `{told.state}` by the log")
            elif row != told or standing.draws.get(seq) != self._draws.get(seq, standing.draws.get(seq)):
                yield _finding(seq, f"`{told.call}` is not in the ledger as the log tells it")
        for seq, row in standing.calls.items():
            if seq not in self._calls:
                yield _finding(seq, f"the ledger holds `{row.call}`, and the log has no admission of it there")
        over = sum(told.state != State.LEASED for told in self._calls.values())
        if standing.used < TOKENS * over:
            yield _finding(0, f"{over} calls used {TOKENS * over} tokens, and the ledger holds {standing.used}")

    def _of_others(self, standing: Standing) -> Iterator[Finding]:
        for tenant, (seq, told) in self._epochs.items():
            if standing.epochs.get(tenant) != told:
                yield _finding(seq, f"the epoch of tenant `{tenant}` is not the one that the log tells last")
        for tenant in standing.epochs.keys() - self._epochs.keys():
            yield _finding(0, f"the ledger holds an epoch of tenant `{tenant}`, and the log has none")
        for session, seq in self._closed.items():
            if session not in standing.closed:
                yield _finding(seq, f"session `{session}` was closed, and it is not in the ledger as closed")
        anywhere = {("", *mark) for _, *mark in standing.revoked}
        for (tenant, kind, key, session), seq in self._revoked.items():
            if (tenant, kind, key, session) not in (standing.revoked if tenant else anywhere):
                yield _finding(seq, f"the revocation of the {kind} `{key}` is gone from the ledger")


def _mark(entry: LogEntry) -> tuple[str, str, str, str]:
    """(tenant, kind, key, session) of a revocation. Entries of before there were kinds name a grant, a session or both."""
    body = entry.body
    if "kind" in body:
        return str(body.get("tenant")), str(body["kind"]), str(body.get("key")), entry.session
    grant = str(body.get("grant", ""))
    return ("", MarkKind.GRANT, grant, entry.session) if grant else ("", MarkKind.SESSION, entry.session, "")


def _finding(seq: int, detail: str) -> Finding:
    return Finding(FindingKind.DISAGREES, seq, detail)
