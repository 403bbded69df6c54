"""Has this been used? The answer for many gateways: one PostgreSQL database for ledger and log.

- INVARIANT (one-statement): `consume` is one call of `cxi.consume`, which judges and writes steps 1 to 6 in one transaction, by
  the
  server's clock; `now` is only what the log says. It is durable before it is answered: `fsync` and `synchronous_commit` are
  looked at
  when the ledger is opened, and again by the function itself.
- The database says whose tenant this is, by the role that logged in: of another tenant nothing is seen, spent, revoked or
  released.
- Each open ledger writes a hash chain of its own, named by its origin: no gateway waits for another's head (`docs/adr/0012`).
- A cut connection is answered by what the server holds, else by `LedgerError`, never by a guess (`cxi.ledger.line`).
- A writer holds a lock on the server for as long as its session lives, and says every few seconds that it is there. Without
  both for
  the grace, it is gone: its leases become `outcome_unknown`. The grace is longer than a lease may wait for its launch.
- Policies, contracts and pins that differ from those of a gateway at work are not put in force by merely starting: `explicit`.

    ledger = PostgresLedger("postgresql://gateway@db/cxi", instance="gateway-7f3a", now=time.time())
    ledger.activate("acme", digest_of_the_policies, now)
"""

from __future__ import annotations

import heapq
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, LiteralString, cast

import orjson
import psycopg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from psycopg_pool import ConnectionPool, PoolTimeout

from cxi.canonical import Digest, JsonValue, canonicalize, digest_bytes
from cxi.errors import AuthorityError, Code, ConfigError, LedgerError, MalformedError, Problem, Refused
from cxi.ledger.base import CallRecord, Draw, Lease, Mark, Outcome, Receipt, Recorded, State, Stats
from cxi.ledger.comparison import compare
from cxi.ledger.examine import read_answer, read_state
from cxi.ledger.line import Line, Row, Unit, complete, named, raw
from cxi.ledger.machine import PERSONS, SETTLEMENTS, step
from cxi.ledger.migration import VERSION, Connection, describe, fault
from cxi.ledger.spending import (
    APPEND,
    CONSUME,
    OPEN_SESSION,
    SETTLE,
    locks_of,
    read_mark,
    values_of,
    write_answer,
    write_mark,
    write_touches,
)
from cxi.log.checkpoint import CheckpointFile, Head, claimed
from cxi.log.commitment import SALT_BYTES, commit
from cxi.log.entry import ChainedEntry, EntryType, LogEntry, Stored, milliseconds, read_entry
from cxi.log.finding import Finding
from cxi.log.key import earlier_keys
from cxi.log.signing import sign_next
from cxi.manifest import Instant, Manifest

# Faults become `LedgerError`; nothing is written to standard error beside.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

GRACE_SECONDS: Final = 60.0  # longer than a lease's launch deadline
BEAT_SECONDS: Final = 5.0
READERS: Final = 4
_CALL_OFF_SECONDS: Final = 10.0
_PAGE: Final = 500  # log rows read at once


class PostgresLedger:
    """The ledger and the log of one tenant in a PostgreSQL database. Thread-safe; any number of hosts may open the same one."""

    def __init__(
        self,
        conninfo: str,
        *,
        instance: str,
        now: Instant,
        host: str = "",
        checkpoints: Path | None = None,
        clock: Callable[[], Instant] = time.time,
        grace: float = GRACE_SECONDS,
        beat: float = BEAT_SECONDS,
        patience: float = 10.0,
    ) -> None:
        """Open the ledger, and recover what writers that are gone left behind.

        Args:
            conninfo: `postgresql://USER@HOST/DATABASE`, or what else libpq reads; a password comes from its own places better.
            instance: Names this writer; one open ledger a name.
            now: Seconds since the epoch, for what recovery logs.
            host: Names whose key signs the log of this ledger: a chain is continued by later writers of its host alone.
            checkpoints: Where this host keeps its signed heads; what they vouch for has to be there.
            clock: What is logged later says this time.
            grace: Seconds without a sign of life after which a writer is gone.
            beat: Seconds between such signs; 0 for none, and no recovery but at opening.
            patience: Seconds for which a caller whose connection was cut waits for another.

        Raises:
            LedgerError: where it cannot be reached, is of another version, belongs to no tenant of this role, does not wait for
                the disk, or has lost entries.
        """
        self._conninfo = complete(conninfo)
        self._instance = instance
        self._checkpoints = checkpoints
        self._host = host
        self._clock = clock
        self._grace = grace
        self._hashes: dict[str, bytes] = {}  # of the admissions that this ledger leased, by call
        self._line = Line(self._conninfo, host=host, instance=instance, patience=patience)
        self._beating = threading.Event()
        self._thread: threading.Thread | None = None
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._conninfo,
            min_size=0,
            max_size=READERS,
            open=False,
            timeout=max(patience, 2.0),
            reconnect_timeout=1.0,  # who asks later tries anew: a server that is back is used at once
            kwargs={"autocommit": True},
            name="cxi",
        )
        try:
            self._tenant = self._look()
            self._pool.open()
            self._refuse_losses()
            self._recover(now, opening=True)
            self._refuse_second()
        except BaseException:
            self._line.abandon()
            self._pool.close()
            raise
        if beat > 0:
            self._thread = threading.Thread(target=self._keep_alive, args=(beat,), name="cxi-ledger", daemon=True)
            self._thread.start()

    @property
    def origin(self) -> str:
        """The name of this writer's chain, as checkpoints state it; empty before anything was written."""
        return self._line.origin

    @property
    def tenant(self) -> str:
        """Whose ledger it is, by the role that logged in."""
        return self._tenant

    # --- epochs and sessions -------------------------------------------------------------------------------------------

    def activate(self, tenant: str, digest: Digest, now: Instant, *, explicit: bool = False) -> tuple[int, Digest]:
        """See `Ledger.activate`.

        Args:
            tenant: This ledger's.
            digest: Of the policies, contracts, declassifiers and pins.
            now: For the log.
            explicit: A person wants these in force, whatever gateways at work run under.

        Raises:
            ConfigError: where another gateway is at work under other files, and nobody said `explicit`.
        """
        self._refuse_other(tenant)
        while True:
            before = self.epoch(tenant)
            counter = before[0] + 1 if before is not None else 1
            content = _content(EntryType.EPOCH, "", "", {"tenant": tenant, "epoch": [counter, digest]}, now)

            def work(
                connection: Connection, chain: int, generation: int, counter: int = counter, content: str = content
            ) -> Row | None:
                row = connection.execute(
                    "SELECT counter, digest, others, seq, hash FROM cxi.activate(%s, %s, %s, %s, %s, %s, make_interval(secs =>"
                    " %s))",
                    (chain, generation, digest, counter, explicit, content, self._grace),
                ).fetchone()
                if row is not None and row[1] == digest and not explicit:
                    connection.execute("SELECT cxi.work(%s, %s, %s)", (chain, generation, row[0]))
                return row

            row = _only(self._line.act(work))
            if row[1] == digest:
                return cast("int", row[0]), digest
            if row[2] and not explicit:
                raise ConfigError(
                    Problem(
                        "ledger",
                        0,
                        f"{row[2]} gateways are at work under epoch {row[0]}, which these files differ from",
                        "bring the files into line, or put these in force with `cxi ledger activate`: the others then refuse",
                    )
                )

    def epoch(self, tenant: str) -> tuple[int, Digest] | None:
        """See `Ledger.epoch`."""
        rows = self._rows("SELECT counter, digest FROM cxi.tenant WHERE tenant = %s AND counter > 0", (tenant,))
        return (cast("int", rows[0][0]), str(rows[0][1])) if rows else None

    def open_session(self, tenant: str, user: str, agent: str, session: str, credential: str, now: Instant) -> None:
        """See `Ledger.open_session`. Opening an open session again with the same binding does nothing.

        Raises:
            AuthorityError: where the name is closed, or bound otherwise.
        """
        self._refuse_other(tenant)
        bound = digest_bytes(credential.encode("utf-8", "surrogatepass"))
        body = {"act": "open", "tenant": tenant, "user": user, "agent": agent, "credential": bound}
        values = {
            "tenant": tenant,
            "session": session,
            "user": user,
            "agent": agent,
            "credential": bound,
            "content": _content(EntryType.SESSION, "", session, body, now),
        }
        if self._line.submit(Unit(OPEN_SESSION, values, durable=False))[0] == "other":
            raise AuthorityError(f"session `{session}` is closed, or bound to another principal or credential")

    def close_session(self, session: str, now: Instant) -> None:
        """See `Ledger.close_session`. Closing twice does nothing."""
        content = _content(EntryType.SESSION, "", session, {"act": "close"}, now)
        self._act("SELECT seq, hash FROM cxi.close_session(%s, %s, %s, %s)", session, content)

    # --- the event -----------------------------------------------------------------------------------------------------

    def drawn(self, session: str, grant: str, since: Instant) -> int:
        """See `Ledger.drawn`."""
        if since > 0:
            rows = self._rows(
                "SELECT count(*) FROM cxi.call WHERE tenant = %s AND session = %s AND grant_id = %s AND drawn_ms > %s",
                (self._tenant, session, grant, milliseconds(since)),
            )
        else:
            rows = self._rows(
                "SELECT sequence FROM cxi.call WHERE tenant = %s AND session = %s AND grant_id = %s ORDER BY sequence DESC"
                " LIMIT 1",
                (self._tenant, session, grant),
            )
        return cast("int", rows[0][0]) if rows else 0

    def recorded(self, session: str, idempotency_key: Digest) -> tuple[Digest, State, Recorded] | None:
        """See `Ledger.recorded`."""
        rows = self._rows(
            "SELECT action, state, id, answer FROM cxi.call WHERE tenant = %s AND session = %s AND key = %s AND key IS NOT NULL"
            " ORDER BY place DESC LIMIT 1",
            (self._tenant, session, raw(idempotency_key)),
        )
        if not rows:
            return None
        action, state, call, answer = rows[0]
        return named(action), read_state(state), Recorded(str(call), read_answer(answer))

    def consume(self, manifest: Manifest, draw: Draw, entry: LogEntry, now: Instant) -> Lease | Recorded | Refused:
        """See `Ledger.consume`, whose order of checks `cxi.consume` keeps.

        Raises:
            ValueError: where the entry is not this call's admission: a fault of the gate.
            LedgerError: where the storage fails; then there is no lease.
        """
        principal, invocation = manifest.action.principal, manifest.invocation
        if entry.kind is not EntryType.ADMISSION or (entry.call or None, entry.session) != (draw.call, principal.session):
            raise ValueError("the entry is not the admission of this call")
        self._settle_undone()
        digest = manifest.digest
        values = values_of(
            manifest, draw, _content(entry.kind, entry.call, entry.session, {**entry.body, "manifest": digest}, now), now
        )

        def find(connection: Connection, chain: int, known: int) -> Row | None:
            return connection.execute(
                "SELECT 'LEASED', NULL, NULL, NULL, c.seq, l.hash FROM cxi.call c JOIN cxi.log l ON (l.chain, l.seq) ="
                " (c.chain, c.seq)"
                " WHERE c.tenant = %s AND c.session = %s AND c.grant_id = %s AND c.sequence = %s AND c.id = %s AND c.manifest"
                " = %s"
                " AND c.chain = %s AND c.seq > %s AND c.state = 'leased'",
                (
                    self._tenant,
                    principal.session,
                    invocation.grant,
                    invocation.sequence,
                    draw.call,
                    raw(digest),
                    chain,
                    known,
                ),
            ).fetchone()

        unit = Unit(CONSUME, values, find=find, locks=locks_of(values), undo=(manifest, draw.call))
        code, detail, place, answer, seq, hash_ = self._line.submit(unit)
        match code:
            case "LEASED":
                self._hashes[draw.call] = hash_
                return Lease(manifest, digest, draw.call, seq, draw.deadline)
            case "RECORDED":
                return Recorded(str(place), read_answer(answer))
            case "REVOKED":
                mark = read_mark(detail)
                return Refused.of(Code.REVOKED, f"{mark} was revoked", where=str(mark.kind))
            case _:
                return Refused.of(Code(str(code)), str(detail), where=str(place or ""))

    def settle(self, lease: Lease, outcome: Outcome, entry: LogEntry, now: Instant) -> Receipt:
        """See `Ledger.settle`. The receipt's places are those in this writer's chain.

        Raises:
            ValueError: where the entry is not this call's settlement, or the outcome is none: a fault of the gate.
            AuthorityError: where the lease is not of this ledger, or settled already.
        """
        event = SETTLEMENTS.get(outcome.state)
        if event is None or entry.kind is not EntryType.SETTLEMENT or entry.call != lease.call:
            raise ValueError("the entry is not a settlement of this call")
        hash_ = self._hashes.get(lease.call, b"")
        if not hash_:
            raise AuthorityError(f"`{lease.call}` is no lease of this ledger, or settled already")
        state = step(State.LEASED, event)
        body: dict[str, JsonValue] = {
            **entry.body,
            "state": str(state),
            "manifest": lease.manifest_digest,
            "admission": [lease.seq, named(hash_)],
        }
        row = self._settle(lease.manifest, lease.manifest_digest, lease.call, str(state), outcome.answer, entry, body, now)
        before, settled, seq, digest = row
        if not settled:
            if before is None:
                raise AuthorityError(f"`{lease.call}` is no lease of this ledger")
            following = step(read_state(before), event)
            why = following.reasons[0].detail if isinstance(following, Refused) else "it is not this lease"
            raise AuthorityError(f"`{lease.call}`: {why}")
        self._hashes.pop(lease.call, None)
        return Receipt(
            call=lease.call,
            manifest=lease.manifest_digest,
            admission=(lease.seq, named(hash_)),
            settlement=(seq, named(digest)),
            state=outcome.state,
            assurance=str(lease.manifest.effect.assurance),
            carriage=lease.manifest.carriage or "not claimed",
        )

    def _settle(
        self,
        manifest: Manifest,
        digest: Digest,
        call: str,
        state: str,
        answer: JsonValue,
        entry: LogEntry,
        body: Mapping[str, JsonValue],
        now: Instant,
    ) -> Row:
        invocation, session = manifest.invocation, manifest.action.principal.session
        values = {
            "session": session,
            "grant": invocation.grant,
            "sequence": invocation.sequence,
            "call": call,
            "manifest": raw(digest),
            "state": state,
            "answer": write_answer(answer),
            "content": _content(entry.kind, call, entry.session, body, now),
        }

        def find(connection: Connection, chain: int, known: int) -> Row | None:
            return connection.execute(
                "SELECT c.state, true, l.seq, l.hash FROM cxi.call c JOIN cxi.log l ON (l.chain, l.seq) = (c.settled_chain,"
                " c.settled)"
                " WHERE c.tenant = %s AND c.session = %s AND c.grant_id = %s AND c.sequence = %s AND c.id = %s"
                " AND c.settled_chain = %s AND c.settled > %s AND l.content = %s",
                (self._tenant, session, invocation.grant, invocation.sequence, call, chain, known, values["content"]),
            ).fetchone()

        return self._line.submit(Unit(SETTLE, values, durable=False, find=find))

    def recover(self, now: Instant) -> Sequence[str]:
        """See `Ledger.recover`."""
        return self._recover(now, opening=False)

    # --- what persons do -----------------------------------------------------------------------------------------------

    def release(self, call: str, person: str, reason: str, state: State, now: Instant) -> None:
        """See `Ledger.release`."""
        event = PERSONS.get(state)
        if event is None:
            raise AuthorityError(f"an unknown outcome ends as `done`, `failed` or `released`, not as `{state}`")
        rows = self._rows("SELECT session FROM cxi.open WHERE tenant = %s AND id = %s ORDER BY state DESC", (self._tenant, call))
        body: dict[str, JsonValue] = {"act": "release", "person": person, "reason": reason, "state": str(state)}
        content = _content(EntryType.PERSON, call, str(rows[0][0]) if rows else "", body, now)
        row = _only(self._act("SELECT state, seq, hash FROM cxi.release(%s, %s, %s, %s, %s)", call, str(state), content))
        if row[1] is not None:
            return
        if row[0] is None:
            raise AuthorityError(f"`{call}` is no call whose outcome is unknown")
        following = step(read_state(row[0]), event)
        raise AuthorityError(
            f"`{call}`: {following.reasons[0].detail if isinstance(following, Refused) else 'it changed meanwhile'}"
        )

    def revoke(self, tenant: str, mark: Mark, *, person: str, reason: str, now: Instant) -> None:
        """See `Ledger.revoke`."""
        self._refuse_other(tenant)
        body: dict[str, JsonValue] = {"act": "revoke", "tenant": tenant, "kind": str(mark.kind), "key": mark.key}
        body |= {"person": person, "reason": reason}
        content = _content(EntryType.PERSON, "", mark.session, body, now)
        self._act("SELECT seq, hash FROM cxi.revoke(%s, %s, %s, %s)", write_mark(mark), content)

    def grants_of(self, session: str) -> frozenset[str] | None:
        """The grants that a session drew from; None where no such session was ever opened."""
        if not self._rows("SELECT 1 FROM cxi.session WHERE tenant = %s AND id = %s", (self._tenant, session)):
            return None
        query: LiteralString = "SELECT DISTINCT grant_id FROM cxi.call WHERE tenant = %s AND session = %s"
        return frozenset(str(row[0]) for row in self._rows(query, (self._tenant, session)))

    # --- what it holds -------------------------------------------------------------------------------------------------

    def calls(
        self, tenant: str, *, states: Collection[State] = (), session: str = "", call: str = "", most: int = 1000
    ) -> Sequence[CallRecord]:
        """See `Ledger.calls`."""
        rows = self._rows(
            "SELECT c.id, c.session, s.user_name, s.agent, c.grant_id, c.state, c.manifest, c.seq, c.drawn_ms, c.settled,"
            " c.writer"
            " FROM cxi.call c JOIN cxi.session s ON (s.tenant, s.id) = (c.tenant, c.session) WHERE c.tenant = %(tenant)s"
            " AND (%(states)s::text[] = '{}' OR c.state = ANY (%(states)s)) AND (%(session)s::text = '' OR c.session ="
            " %(session)s)"
            " AND (%(call)s::text = '' OR c.id = %(call)s) ORDER BY c.place DESC LIMIT %(most)s",
            {"tenant": tenant, "states": [str(state) for state in states], "session": session, "call": call, "most": most},
        )
        return tuple(
            CallRecord(call, session, user, agent, grant, read_state(state), named(manifest), seq, drawn / 1000, settled, writer)
            for call, session, user, agent, grant, state, manifest, seq, drawn, settled, writer in rows
        )

    def stats(self, tenant: str) -> Stats:
        """See `Ledger.stats`; `bytes` is the whole database, that of other tenants among it."""
        states = self._rows("SELECT state, count(*) FROM cxi.call WHERE tenant = %s GROUP BY state", (tenant,))
        row = self._rows(
            "SELECT (SELECT count(*) FROM cxi.session WHERE tenant = %(t)s),"
            " (SELECT count(*) FROM cxi.session WHERE tenant = %(t)s AND NOT closed),"
            " (SELECT coalesce(sum(seq), 0)::bigint FROM cxi.chain WHERE tenant = %(t)s),"
            " (SELECT count(*) FROM cxi.revoked WHERE tenant = %(t)s), pg_database_size(current_database())",
            {"t": tenant},
        )[0]
        found = MappingProxyType({read_state(state): int(count) for state, count in states})
        return Stats(found, row[0], row[1], row[2], row[3], self.epoch(tenant), row[4])

    def vacuum(self, before: Instant, now: Instant) -> int:
        """See `Ledger.vacuum`. `until` in the log is a place, which counts over all chains."""

        def work(connection: Connection, chain: int, generation: int) -> Row | None:
            row = _only(connection.execute("SELECT dropped, until FROM cxi.vacuum(%s)", (milliseconds(before),)).fetchone())
            if row[0]:
                body: dict[str, JsonValue] = {"act": "vacuum", "until": row[1], "calls": row[0]}
                content = _content(EntryType.PERSON, "", "", body, now)
                connection.execute("SELECT cxi.append(%s, %s, 'person', '', %s, false)", (chain, generation, content))
            return row

        return int(_only(self._line.act(work))[0])

    # --- the origin index ----------------------------------------------------------------------------------------------

    def touched(self, tenant: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """See `Ledger.touched`."""
        found: dict[tuple[str, str], list[str]] = {}
        for kind, key, influence in self._rows(
            'SELECT DISTINCT kind COLLATE "C", key COLLATE "C", influence COLLATE "C" FROM cxi.touch WHERE tenant = %s'
            " ORDER BY 1, 2, 3",
            (tenant,),
        ):
            names = found.setdefault((kind, key), [])
            if influence:
                names.append(influence)
        return MappingProxyType({place: tuple(names) for place, names in found.items()})

    def touch(
        self,
        tenant: str,
        touches: Iterable[tuple[str, str]],
        influences: tuple[str, ...],
        call: str,
        now: Instant,  # noqa: ARG002
    ) -> None:
        """See `Ledger.touch`. Rides on the next durable commit."""
        self._refuse_other(tenant)
        values = {"touches": write_touches(tuple(touches), influences), "call": call}
        query: LiteralString = "SELECT cxi.touch(%(touches)s::text, %(call)s::text, %(riding)s::boolean)"
        self._line.submit(Unit(query, values, durable=False))

    def endorse(self, tenant: str, kind: str, key: str, person: str, now: Instant) -> None:
        """See `Ledger.endorse`. The log holds a commitment to the key; what opens it stays in the ledger."""
        self._refuse_other(tenant)
        salt = secrets.token_bytes(SALT_BYTES)
        commitment = commit({"kind": kind, "key": key}, salt)
        body: dict[str, JsonValue] = {"act": "endorse", "tenant": tenant, "person": person, "endorsed": commitment}
        content = _content(EntryType.PERSON, "", "", body, now)
        self._act("SELECT seq, hash FROM cxi.endorse(%s, %s, %s, %s, %s, %s, %s)", commitment, salt, kind, key, content)

    # --- the log -------------------------------------------------------------------------------------------------------

    def append(self, entry: LogEntry, now: Instant, *, durable: bool = False) -> ChainedEntry:
        """See `Ledger.append`."""
        content = _content(entry.kind, entry.call, entry.session, entry.body, now)

        def find(connection: Connection, chain: int, known: int) -> Row | None:
            return connection.execute(
                "SELECT previous, seq, hash FROM cxi.log WHERE chain = %s AND seq > %s AND content = %s", (chain, known, content)
            ).fetchone()

        values = {"kind": str(entry.kind), "call": entry.call, "content": content}
        previous, seq, _ = self._line.submit(Unit(APPEND, values, durable=durable, find=find))
        return ChainedEntry(seq, named(previous), milliseconds(now) / 1000, entry)

    def origins(self) -> tuple[str, ...]:
        """The names of all chains of this tenant, the oldest first."""
        return tuple(
            str(row[0]) for row in self._rows("SELECT origin FROM cxi.chain WHERE tenant = %s ORDER BY id", (self._tenant,))
        )

    def sizes(self) -> Mapping[str, int]:
        """How many entries each chain of this tenant has, by its name."""
        query: LiteralString = "SELECT origin, seq FROM cxi.chain WHERE tenant = %s AND seq > 0 ORDER BY id"
        return {str(origin): int(seq) for origin, seq in self._rows(query, (self._tenant,))}

    def entries(self, start: int = 1, origin: str = "") -> Iterator[ChainedEntry]:
        """See `Ledger.entries`: of one chain, or of all of the tenant's, in the order in which they were written.

        Raises:
            LedgerError: where a row cannot be read as an entry at all.
        """
        rows = self._rows(
            "SELECT id FROM cxi.chain WHERE tenant = %s AND (%s::text = '' OR origin = %s)", (self._tenant, origin, origin)
        )
        merged = heapq.merge(*(self._chain(int(row[0]), start) for row in rows), key=lambda row: int(row[0]))
        for _, seq, previous, content in merged:
            yield self._entry(seq, previous, content)

    def _chain(self, chain: int, start: int) -> Iterator[Row]:
        query: LiteralString = (
            "SELECT place, seq, previous, content FROM cxi.log WHERE chain = %s AND seq >= %s ORDER BY seq LIMIT %s"
        )
        while rows := self._rows(query, (chain, start, _PAGE)):
            yield from rows
            start = int(rows[-1][1]) + 1

    def stored(self, start: int = 1, origin: str = "") -> Iterator[Stored]:
        """One chain as it is stored, from one seq on, in order: whatever the rows hold. This writer's, where none is named."""
        rows = self._rows("SELECT id FROM cxi.chain WHERE tenant = %s AND origin = %s", (self._tenant, origin or self.origin))
        query: LiteralString = (
            "SELECT seq, previous, hash, content FROM cxi.log WHERE chain = %s AND seq >= %s ORDER BY seq LIMIT %s"
        )
        for (chain,) in rows:
            while page := self._rows(query, (chain, start, _PAGE)):
                for seq, previous, stated, content in page:
                    yield Stored(seq, named(previous), named(stated), content.encode())
                start = page[-1][0] + 1

    def entries_of(self, call: str) -> tuple[ChainedEntry, ...]:
        """What the log tells of one call, in order."""
        query: LiteralString = "SELECT seq, previous, content FROM cxi.log WHERE tenant = %s AND call = %s ORDER BY place"
        return tuple(self._entry(*row) for row in self._rows(query, (self._tenant, call)))

    def head(self, now: Instant) -> Head:
        """The head of this writer's chain, made durable first: what a checkpoint may vouch for."""
        # A durable transaction that writes: what rode before it is on the disk when it returns.
        row = _only(self._act("SELECT seq, hash FROM cxi.resume(%s, %s, 0)"))
        return Head(self._line.origin, row[0], named(row[1]), milliseconds(now) / 1000)

    def sign_head(self, key: Ed25519PrivateKey, now: Instant, *, after: Ed25519PublicKey | None = None) -> Head:
        """Vouch for this writer's head, and for those of its host's chains that nobody writes any more.

        As `cxi.log.signing.sign_next` says: only of a chain that follows from its last checkpoint. The checkpoints are kept
        beside the key and in the database.

        Raises:
            LedgerError: where a chain does not follow, the last checkpoint is another key's, or the storage fails.
        """
        if self._checkpoints is None:
            raise LedgerError("this ledger was opened without a place for its checkpoints")
        file, time = CheckpointFile(self._checkpoints), milliseconds(now) / 1000
        # While a rotation is cut off, the present key is not the last of its line yet; then there is none but `after`.
        earlier = earlier_keys(self._checkpoints.parent) if after is None else ()
        own = self.head(now)
        left = self._rows(
            "SELECT origin, seq FROM cxi.chain c WHERE tenant = %s AND host = %s AND NOT open AND seq > 0"
            " AND NOT EXISTS (SELECT 1 FROM cxi.checkpoint k WHERE k.chain = c.id AND k.size >= c.seq)",
            (self._tenant, self._host),
        )
        for origin in [*(str(row[0]) for row in left if row[0] != own.origin), own.origin]:
            rows = partial(self.stored, origin=origin)
            own = sign_next(file, origin, rows, key, time, sync=lambda: None, after=after, earlier=earlier)
            envelope = canonicalize(file.last(origin)).decode()
            with self._pool.connection() as connection:
                connection.execute(
                    "SELECT cxi.keep(id, %s, %s) FROM cxi.chain WHERE tenant = %s AND origin = %s",
                    (own.size, envelope, self._tenant, origin),
                )
        return own

    def checkpoints(self) -> tuple[JsonValue, ...]:
        """The signed heads of all hosts, as the database keeps them: it vouches for none of them."""
        rows = self._rows("SELECT envelope FROM cxi.checkpoint WHERE tenant = %s ORDER BY chain, size", (self._tenant,))
        return tuple(orjson.loads(row[0]) for row in rows)

    def differences(self) -> tuple[Finding, ...]:
        """Where the ledger's rows are not what its log tells (`cxi.ledger.replay`), all chains together."""
        try:
            with self._pool.connection() as connection:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    return compare(connection, self._tenant)
                finally:
                    connection.execute("ROLLBACK")
        except psycopg.Error as error:
            raise self._line.fault(error) from error

    def close(self) -> None:
        """Make everything durable and let go. Leases that are still open become `outcome_unknown` at the next recovery."""
        self._beating.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            with suppress(LedgerError):
                self._settle_undone()
            self._line.close()
        finally:
            self._pool.close()

    def abandon(self) -> None:
        """End as a crash would: the session is gone, and nothing is said or settled."""
        self._beating.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._line.abandon()
        self._pool.close()

    # --- inside --------------------------------------------------------------------------------------------------------

    def _look(self) -> str:
        """See that this is a ledger that can be relied on, and whose it is."""
        try:
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                row = connection.execute("SELECT to_regclass('cxi.migration') IS NOT NULL, current_setting('fsync')").fetchone()
                if row is None or not row[0]:
                    raise self._unusable("it holds no ledger yet: `cxi ledger migrate` makes one")
                if row[1] == "off":
                    raise self._unusable("it does not wait for the disk (`fsync` is off)")
                found = _only(connection.execute("SELECT max(version) FROM cxi.migration").fetchone())[0]
                if found != VERSION:
                    which = "newer than" if found and found > VERSION else "older than"
                    raise self._unusable(
                        f"its ledger, version {found}, is {which} this program's, {VERSION}: `cxi ledger migrate`"
                    )
                wait, standbys = _only(
                    connection.execute(
                        "SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names')"
                    ).fetchone()
                )
                if wait == "off" or (standbys and wait in ("local", "remote_write")):
                    raise self._unusable(f"`synchronous_commit` is `{wait}`: an answer would not be durable")
                tenant = _only(connection.execute("SELECT cxi.my_tenant()").fetchone())[0]
                if tenant is None:
                    raise self._unusable("this role is bound to no tenant: `cxi ledger bind`")
                return str(tenant)
        except psycopg.Error as error:
            raise self._line.fault(error) from error

    def _unusable(self, why: str) -> LedgerError:
        return LedgerError(f"{describe(self._conninfo)}: {why}")

    def _refuse_other(self, tenant: str) -> None:
        if tenant != self._tenant:
            raise AuthorityError(f"this role is bound to tenant `{self._tenant}`, not to `{tenant}`")

    def _refuse_second(self) -> None:
        query: LiteralString = (
            "SELECT 1 FROM cxi.chain WHERE tenant = %s AND open AND instance = %s AND id IS DISTINCT FROM %s::bigint"
        )
        if self._rows(query, (self._tenant, self._instance, self._line.chain)):
            raise LedgerError(f"writer `{self._instance}` is open already, here or elsewhere")

    def _refuse_losses(self) -> None:
        """See that no entry is gone that this host's last checkpoint of a chain vouches for."""
        if self._checkpoints is None:
            return
        last: dict[str, Head] = {}
        for envelope in CheckpointFile(self._checkpoints).read():
            head = claimed(envelope)
            if head is not None and head.size:
                last[head.origin] = head
        for head in last.values():
            rows = self._rows(
                "SELECT l.hash FROM cxi.log l JOIN cxi.chain c ON c.id = l.chain WHERE c.origin = %s AND l.seq = %s",
                (head.origin, head.size),
            )
            if [named(row[0]) for row in rows] != [head.hash]:
                raise self._unusable(f"it has lost entries: a checkpoint knows of entry {head.size} of `{head.origin}`")

    def _act(self, query: LiteralString, *values: object) -> Row | None:
        def work(connection: Connection, chain: int, generation: int) -> Row | None:
            return connection.execute(query, (chain, generation, *values)).fetchone()

        try:
            return self._line.act(work)
        except UnicodeError as error:
            raise LedgerError("a text without a UTF-8 form cannot be written to the ledger") from error

    def _rows(self, query: LiteralString, values: Sequence[object] | Mapping[str, object]) -> list[Row]:
        """All rows of a query, from one moment; asked again where the connection was stale."""
        for last in (False, False, True):
            try:
                with self._pool.connection() as connection:
                    return connection.execute(query, values, prepare=True).fetchall()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if last or isinstance(error, PoolTimeout):
                    raise self._line.fault(error) from error
                with suppress(psycopg.Error):
                    self._pool.check()
            except (psycopg.Error, UnicodeError) as error:
                raise LedgerError(f"{describe(self._conninfo)}: {fault(error)}") from error
        raise AssertionError("one of the three ends it")

    def _entry(self, seq: int, previous: bytes, content: str) -> ChainedEntry:
        try:
            return read_entry({"seq": seq, "previous": named(previous), **orjson.loads(content)})
        except (MalformedError, ValueError, TypeError) as error:
            raise self._unusable(f"log entry {seq} cannot be read") from error

    def _recover(self, now: Instant, *, opening: bool) -> tuple[str, ...]:
        found: list[str] = []
        grace = f"{self._grace} seconds"
        query: LiteralString = "SELECT chain, writer, origin, open FROM cxi.gone(%s, %s, %s::interval)"
        values = (self._line.chain, self._instance if opening else None, grace)
        # Asked without the writer's lock: whoever only reads takes no chain.
        for chain, writer, origin, _ in self._rows(query, values):

            def work(
                connection: Connection, mine: int, generation: int, chain: int = chain, writer: str = writer, origin: str = origin
            ) -> Row | None:
                calls = []
                for session, grant, sequence, call, seq in connection.execute(
                    "SELECT * FROM cxi.bury(%s, %s, %s, %s, %s::interval)", (chain, mine, generation, *values[1:])
                ).fetchall():
                    unknown = str(State.OUTCOME_UNKNOWN)
                    body: dict[str, JsonValue] = {
                        "alarm": unknown,
                        "state": unknown,
                        "writer": writer,
                        "origin": origin,
                        "admission": cast("int", seq),
                    }
                    content = _content(EntryType.ALARM, str(call), str(session), body, now)
                    connection.execute(
                        "SELECT cxi.abandon(%s, %s, %s, %s, %s, %s, %s)",
                        (mine, generation, session, grant, sequence, call, content),
                    )
                    calls.append(str(call))
                return (calls,)

            try:
                found.extend(_only(self._line.act(work))[0])
            except LedgerError:
                if not opening:
                    continue  # another came first, or it is back
                raise
        return tuple(found)

    def _settle_undone(self) -> None:
        """Settle as failed what was leased to nobody: the answer was lost, so that no sink ever had it."""
        undone = self._line.take_undone()
        while undone:
            manifest, call = cast("tuple[Manifest, str]", undone[-1])
            invocation, session = manifest.invocation, manifest.action.principal.session
            failed = str(State.FAILED)
            try:
                rows = self._rows(
                    "SELECT c.seq, l.hash FROM cxi.call c JOIN cxi.log l ON (l.chain, l.seq) = (c.chain, c.seq) WHERE c.tenant ="
                    " %s"
                    " AND c.session = %s AND c.grant_id = %s AND c.sequence = %s AND c.id = %s AND c.manifest = %s AND c.state ="
                    " 'leased'",
                    (self._tenant, session, invocation.grant, invocation.sequence, call, raw(manifest.digest)),
                )
                if rows:
                    entry = LogEntry(EntryType.SETTLEMENT, call, session, {})
                    body: dict[str, JsonValue] = {
                        "detail": "the ledger's answer was lost, and the call refused",
                        "state": failed,
                        "manifest": manifest.digest,
                        "admission": [rows[0][0], named(rows[0][1])],
                    }
                    self._settle(manifest, manifest.digest, call, failed, None, entry, body, self._clock())
            except BaseException:
                self._line.give_undone(undone)
                raise
            undone.pop()

    def _keep_alive(self, beat: float) -> None:
        query: LiteralString = "SELECT cxi.beat(%(chain)s, %(generation)s)"
        wait = threading.Thread(target=self._watch, name="cxi-ledger-watch", daemon=True)
        wait.start()
        while not self._beating.wait(beat):
            with suppress(LedgerError, AuthorityError):
                if self._line.chain is not None:
                    self._line.submit(Unit(query, {}, durable=False))
                    self._settle_undone()
                self._recover(self._clock(), opening=False)
        wait.join()

    def _watch(self) -> None:
        """Call off what waits too long for a standby that is gone."""
        while not self._beating.wait(1.0):
            with suppress(psycopg.Error):
                self._line.call_off(_CALL_OFF_SECONDS)


def _only(row: Row | None) -> Row:
    if row is None:
        raise LedgerError("the server gave no answer")
    return row


def _content(kind: EntryType, call: str, session: str, body: Mapping[str, JsonValue], now: Instant) -> str:
    return canonicalize(LogEntry(kind, call, session, body).to_json(now)).decode()
