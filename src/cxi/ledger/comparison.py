"""Does a PostgreSQL ledger hold what its logs tell? `cxi.ledger.replay`, over all chains of a tenant at once.

- The chains are read together in the order of their entries' places; a place stands where one chain alone has its seq.
- Rows and entries are read from one moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import psycopg

from cxi.canonical import JsonValue
from cxi.errors import LedgerError, MalformedError
from cxi.ledger.migration import Connection
from cxi.ledger.replay import Replay, Row, Standing
from cxi.ledger.spending import read_mark
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, read_entry
from cxi.log.finding import Finding


def compare(connection: Connection, tenant: str) -> tuple[Finding, ...]:
    """Where the rows are not what the entries tell; a finding's seq is a place.

    Args:
        connection: Inside a transaction that sees one moment.
        tenant: Whose rows.
    """
    standing = _read_standing(connection, tenant)
    replay = Replay(standing.head)
    for _ in replay.watch(_read_entries(connection, tenant)):
        pass
    return replay.differences(standing)


def _read_standing(connection: Connection, tenant: str) -> Standing:
    calls: dict[int, Row] = {}
    draws: dict[int, tuple[str, int]] = {}
    query = (
        "SELECT c.place, c.id, c.session, c.manifest, c.state, l.place, c.grant_id, c.sequence FROM cxi.call c"
        " LEFT JOIN cxi.log l ON (l.chain, l.seq) = (c.settled_chain, c.settled) WHERE c.tenant = %s"
    )
    row: Any
    for row in connection.execute(query, (tenant,)):
        place, call, session, manifest, state, settled, grant, sequence = row
        calls[place] = Row(call, session, f"sha256:{manifest.hex()}", state, settled)
        draws[place] = (grant, sequence)

    def every(query: str) -> list[Any]:
        return connection.execute(query.encode(), (tenant,)).fetchall()

    epoch = every("SELECT counter, digest FROM cxi.tenant WHERE tenant = %s AND counter > 0")
    closed = len([call for call in calls.values() if call.state != "leased"])
    used = every("SELECT count(*) FROM cxi.used WHERE tenant = %s")[0][0]
    return Standing(
        head=every("SELECT coalesce(max(place), 0) FROM cxi.log WHERE tenant = %s")[0][0],
        calls=calls,
        draws=draws,
        epochs={tenant: (epoch[0][0], epoch[0][1])} if epoch else {},
        closed=frozenset(row[0] for row in every("SELECT id FROM cxi.session WHERE tenant = %s AND closed")),
        revoked=frozenset(_revoked(tenant, row[0]) for row in every("SELECT mark FROM cxi.revoked WHERE tenant = %s")),
        used=used + 2 * closed,  # here a call's tokens are in its own row
    )


def _revoked(tenant: str, text: str) -> tuple[str, str, str, str]:
    mark = read_mark(text)
    return tenant, str(mark.kind), mark.key, mark.session


def _read_entries(connection: Connection, tenant: str) -> Iterator[ChainedEntry]:
    places: dict[tuple[str, int], int] = {}
    query = (
        "SELECT l.place, c.origin, l.seq, l.content FROM cxi.log l JOIN cxi.chain c ON c.id = l.chain WHERE l.tenant = %s"
        " ORDER BY l.place"
    )
    with psycopg.ServerCursor(connection, "entries") as cursor:
        row: Any
        for row in cursor.execute(query.encode(), (tenant,)):
            place, origin, seq, content = row
            try:
                found = read_entry({"seq": place, "previous": GENESIS, **orjson.loads(content)})
            except (MalformedError, ValueError, TypeError) as error:
                raise LedgerError(f"entry {seq} of `{origin}` cannot be read") from error
            entry = found.entry
            if entry.kind is EntryType.ADMISSION:
                places[origin, seq] = place
            elif "admission" in entry.body:
                body = {**entry.body, "admission": _place(entry.body["admission"], str(entry.body.get("origin", origin)), places)}
                found = replace(found, entry=replace(entry, body=body))
            yield found


def _place(admission: JsonValue, origin: str, places: dict[tuple[str, int], int]) -> JsonValue:
    """The place of an admission that an entry names by its seq in a chain."""
    match admission:
        case [int(seq), *rest]:
            return [places.get((origin, seq), 0), *rest]
        case int(seq):
            return places.get((origin, seq), 0)
        case _:
            return None
