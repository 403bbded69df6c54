"""What does the ledger hold: which calls, how much, and what of it is no longer needed?

- `read_calls` and `read_stats` only read.
- What a limit's scope gave is written by `take` with the lease, and given back by `give_back` where the call failed: the sums
  behind it are lowered, so that a limit stays the difference of two rows.
- `drop_settled` drops what no check needs any more. A closed session is never opened again, so its counts, keys and tokens answer
  no question; an open or unknown call still blocks its event, and stays. Of `taken`, the newest row of each scope stays, and the
  newest one before the oldest call that is kept: a window that reaches further back counts what it cannot tell apart as used.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from types import MappingProxyType
from typing import TypeAlias, cast

from cxi.ledger.base import CallRecord, State, Stats
from cxi.ledger.examine import IS_OPEN, Taken, read_state

ReadRows: TypeAlias = Callable[[str, tuple[str | int, ...]], list[tuple[object, ...]]]

OPEN = frozenset({State.LEASED, State.OUTCOME_UNKNOWN})


def read_calls(
    rows: ReadRows, tenant: str, *, states: Collection[State], session: str, call: str, most: int
) -> Sequence[CallRecord]:
    """See `Ledger.calls`."""
    where, values = ["call.tenant = ?"], [tenant]
    if states:
        where.append(f"call.state IN ({', '.join('?' * len(states))})")
        values.extend(str(state) for state in states)
        if OPEN.issuperset(states):
            where.append(IS_OPEN.replace("state", "call.state"))  # so that the index of open calls is used
    for column, value in (("call.session", session), ("call.id", call)):
        if value:
            where.append(f"{column} = ?")
            values.append(value)
    query = (
        "SELECT call.id, call.session, session.user, session.agent, call.grant_id, call.state, call.manifest, call.seq,"  # noqa: S608
        " call.drawn_ms, call.settled, call.writer FROM call JOIN session ON session.id = call.session"
        f" WHERE {' AND '.join(where)} ORDER BY call.seq DESC LIMIT ?"
    )
    return tuple(_record(row) for row in rows(query, (*values, most)))


def read_stats(database: sqlite3.Connection, tenant: str) -> Stats:
    """See `Ledger.stats`."""

    def one(query: str, *values: str) -> int:
        return int(database.execute(query, values).fetchone()[0])

    states = database.execute("SELECT state, count(*) FROM call WHERE tenant = ? GROUP BY state", (tenant,)).fetchall()
    epoch = database.execute("SELECT counter, digest FROM epoch WHERE tenant = ?", (tenant,)).fetchone()
    return Stats(
        calls=MappingProxyType({read_state(state): int(count) for state, count in states}),
        sessions=one("SELECT count(*) FROM session WHERE tenant = ?", tenant),
        open_sessions=one("SELECT count(*) FROM session WHERE tenant = ? AND closed = 0", tenant),
        entries=one("SELECT coalesce(max(seq), 0) FROM log"),
        revoked=one("SELECT count(*) FROM revoked WHERE tenant = ?", tenant),
        epoch=(int(epoch[0]), str(epoch[1])) if epoch is not None else None,
        bytes=one("PRAGMA page_count") * one("PRAGMA page_size"),
    )


def take(database: sqlite3.Connection, tenant: str, seq: int, taken: Iterable[Taken]) -> None:
    """Write what a call takes from the scopes of its limits."""
    database.executemany(
        "INSERT INTO taken VALUES (?, ?, ?, ?, ?)", [(tenant, one.scope, one.drawn, seq, one.running) for one in taken]
    )


def give_back(database: sqlite3.Connection, tenant: str, seq: int, text: str) -> None:
    """Take a failed call's draws out again.

    Args:
        database: Inside a write transaction.
        tenant: Whose.
        seq: The call's admission.
        text: Its row's `taken`.
    """
    for one in (Taken(*part) for part in json.loads(text)):
        database.execute(
            "UPDATE taken SET running = running - ? WHERE tenant = ? AND scope = ? AND (drawn_ms, seq) > (?, ?)",
            (one.amount, tenant, one.scope, one.drawn, seq),
        )
        database.execute(
            "DELETE FROM taken WHERE tenant = ? AND scope = ? AND drawn_ms = ? AND seq = ?", (tenant, one.scope, one.drawn, seq)
        )


def drop_settled(database: sqlite3.Connection, before: int) -> tuple[int, int]:
    """Drop the calls that are settled, of closed sessions, and drawn before an instant in milliseconds.

    Returns:
        The admission up to which calls were looked at, and how many were dropped.
    """
    until = int(database.execute("SELECT coalesce(max(seq), 0) FROM call WHERE drawn_ms < ?", (before,)).fetchone()[0])
    database.execute("CREATE TEMP TABLE dropped (seq INTEGER PRIMARY KEY)")
    database.execute(
        "INSERT INTO dropped SELECT call.seq FROM call JOIN session ON session.id = call.session"  # noqa: S608
        f" WHERE call.seq <= ? AND session.closed = 1 AND NOT ({IS_OPEN.replace('state', 'call.state')})",
        (until,),
    )
    database.execute("DELETE FROM used WHERE seq IN (SELECT seq FROM dropped)")
    count = database.execute("DELETE FROM call WHERE seq IN (SELECT seq FROM dropped)").rowcount
    database.execute("DROP TABLE dropped")
    if count:
        database.execute(
            "DELETE FROM taken WHERE drawn_ms < ?1 AND EXISTS (SELECT 1 FROM taken AS later"
            " WHERE (later.tenant, later.scope) = (taken.tenant, taken.scope) AND later.drawn_ms < ?1"
            " AND (later.drawn_ms, later.seq) > (taken.drawn_ms, taken.seq))",
            (before,),
        )
    return until, count


def _record(row: tuple[object, ...]) -> CallRecord:
    call, session, user, agent, grant, state, manifest, seq, drawn, settled, writer = row
    return CallRecord(
        str(call),
        str(session),
        str(user),
        str(agent),
        str(grant),
        read_state(state),
        str(manifest),
        cast("int", seq),
        cast("int", drawn) / 1000,
        cast("int | None", settled),
        str(writer),
    )
