"""Has this been used? The answer on one machine: one SQLite file for ledger and log.

- INVARIANT (consume-before-sink): `consume` returns a lease only after `COMMIT` under `synchronous=FULL` returned: one sync.
- INVARIANT (one-transaction): lease, draw, touches and log entry are written by the same transaction; a refusal writes nothing.
- States move only as `cxi.ledger.machine` says.
- Every question that `consume` asks, it asks inside its own write transaction: several threads and processes share the file.
- Opening recovers: leases of writers that are gone become `outcome_unknown`. Opening refuses a file that is behind a writer's
  last mark or
  behind the last checkpoint beside it: it has lost entries, and what it lost may have been leases.

    ledger = SqliteLedger(state / "ledger.sqlite", instance="gateway-7f3a", now=time.time())
    ledger.activate("local", digest_of_the_policies, now)
    match ledger.consume(manifest, draw, entry, now):
        case Lease() as lease: ...
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, canonicalize, digest_bytes
from cxi.errors import AuthorityError, LedgerError, MalformedError, Refused
from cxi.ledger.base import CallRecord, Draw, Lease, Mark, Outcome, Receipt, Recorded, State, Stats
from cxi.ledger.book import drop_settled, give_back, read_calls, read_stats, take
from cxi.ledger.examine import IS_OPEN, KEYED, LAST_DRAW, Clear, examine, read_answer, read_state, tokens
from cxi.ledger.machine import PERSONS, SETTLEMENTS, Event, step
from cxi.ledger.replay import Standing, read_standing
from cxi.ledger.schema import APPLICATION, MIGRATIONS, SCHEMA, VERSION
from cxi.ledger.writer import Writer, hold_if_gone, marks
from cxi.log.checkpoint import CheckpointFile, Head, claimed
from cxi.log.commitment import SALT_BYTES, commit
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry, Stored, chain, milliseconds, read_entry
from cxi.log.signing import sign_next
from cxi.log.store import Store, own_folder
from cxi.manifest import Instant, Manifest

CHECKPOINTS: Final = "checkpoints.jsonl"
_PAGE: Final = 500  # log rows read at once


class SqliteLedger:
    """The ledger and the log in one SQLite file. Thread-safe; several processes may open the same file."""

    def __init__(self, path: Path, *, instance: str, now: Instant) -> None:
        """Open the ledger, made where there is none, and recover what writers that are gone left behind.

        Args:
            path: The file; its folder is this user's alone to write.
            instance: Names this writer; one open ledger a name. A random part keeps names apart.
            now: Seconds since the epoch, for what recovery logs.

        Raises:
            LedgerError: where the file cannot be trusted, opened, written, or has lost entries.
        """
        self._path = path
        self._instance = instance
        self._writers = path.parent / "writers"
        try:
            own_folder(path.parent)
            own_folder(self._writers)
            left = marks(self._writers)  # INVARIANT (mark-first): read before the head, which only grows
            self._writer = Writer(self._writers, instance)
        except OSError as error:
            raise LedgerError(f"`{self._writers}`: {error.strerror}") from error
        try:
            self._store = Store(path, SCHEMA, application=APPLICATION, version=VERSION, migrations=MIGRATIONS)
            try:
                self._origin = self._name_log()
                self._refuse_losses(left)
                self._recover(now, opening=True)
            except BaseException:
                self._store.close()
                raise
        except BaseException:
            self._writer.abandon()
            raise

    @property
    def origin(self) -> str:
        """The log's name, as checkpoints state it."""
        return self._origin

    # --- epochs and sessions -------------------------------------------------------------------------------------------

    def activate(
        self,
        tenant: str,
        digest: Digest,
        now: Instant,
        *,
        explicit: bool = False,  # noqa: ARG002  # on one host, whoever starts says it
    ) -> tuple[int, Digest]:
        """See `Ledger.activate`."""
        with self._store.durable() as database:
            row = database.execute("SELECT counter, digest FROM epoch WHERE tenant = ?", (tenant,)).fetchone()
            if row is not None and row[1] == digest:
                return int(row[0]), digest
            counter = int(row[0]) + 1 if row is not None else 1
            database.execute("INSERT OR REPLACE INTO epoch VALUES (?, ?, ?)", (tenant, counter, digest))
            mark = self._tell(database, EntryType.EPOCH, "", "", {"tenant": tenant, "epoch": [counter, digest]}, now)
        self._writer.mark(*mark)
        return counter, digest

    def epoch(self, tenant: str) -> tuple[int, Digest] | None:
        """See `Ledger.epoch`."""
        rows = self._store.rows("SELECT counter, digest FROM epoch WHERE tenant = ?", (tenant,))
        return (cast("int", rows[0][0]), str(rows[0][1])) if rows else None

    def open_session(self, tenant: str, user: str, agent: str, session: str, credential: str, now: Instant) -> None:
        """See `Ledger.open_session`. Opening an open session again with the same binding does nothing.

        Raises:
            AuthorityError: where the name is closed, or bound otherwise.
        """
        bound = (tenant, user, agent, digest_bytes(credential.encode("utf-8", "surrogatepass")))
        with self._store.riding() as database:
            row = database.execute(
                "SELECT tenant, user, agent, credential, closed FROM session WHERE id = ?", (session,)
            ).fetchone()
            if row is not None:
                if row == (*bound, 0):
                    return
                raise AuthorityError(f"session `{session}` is closed, or bound to another principal or credential")
            database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, 0)", (session, *bound))
            body = {"act": "open", "tenant": tenant, "user": user, "agent": agent, "credential": bound[3]}
            self._tell(database, EntryType.SESSION, "", session, body, now)

    def close_session(self, session: str, now: Instant) -> None:
        """See `Ledger.close_session`. Closing twice does nothing."""
        with self._store.durable() as database:
            changed = database.execute("UPDATE session SET closed = 1 WHERE id = ? AND closed = 0", (session,)).rowcount
            if not changed:
                return
            mark = self._tell(database, EntryType.SESSION, "", session, {"act": "close"}, now)
        self._writer.mark(*mark)

    # --- the event -----------------------------------------------------------------------------------------------------

    def drawn(self, session: str, grant: str, since: Instant) -> int:
        """See `Ledger.drawn`."""
        rows = (
            self._store.rows(
                "SELECT count(*) FROM call WHERE session = ? AND grant_id = ? AND drawn_ms > ?",
                (session, grant, milliseconds(since)),
            )
            if since > 0
            else self._store.rows(LAST_DRAW, (session, grant))
        )
        return cast("int", rows[0][0]) if rows else 0

    def recorded(self, session: str, idempotency_key: Digest) -> tuple[Digest, State, Recorded] | None:
        """See `Ledger.recorded`."""
        rows = self._store.rows(KEYED, (session, idempotency_key))
        if not rows:
            return None
        action, state, call, answer = rows[0]
        return str(action), read_state(state), Recorded(str(call), read_answer(answer))

    def consume(self, manifest: Manifest, draw: Draw, entry: LogEntry, now: Instant) -> Lease | Recorded | Refused:
        """See `Ledger.consume`, whose order of checks this keeps.

        Raises:
            ValueError: where the entry is not this call's admission: a fault of the gate.
            LedgerError: where the storage fails; then there is no lease.
        """
        principal, invocation = manifest.action.principal, manifest.invocation
        if entry.kind is not EntryType.ADMISSION or (entry.call or None, entry.session) != (draw.call, principal.session):
            raise ValueError("the entry is not the admission of this call")
        named = manifest.digest
        time = milliseconds(now)
        content = _content(LogEntry(entry.kind, entry.call, entry.session, {**entry.body, "manifest": named}), now)
        with self._store.durable() as database:
            answer = examine(database, manifest, draw, time)
            if not isinstance(answer, Clear):
                return answer
            # 6. lease, touches and log entry, all in this transaction
            leased = step(State.MINTED, Event.CONSUME)
            seq, digest = self._chain(database, content, EntryType.ADMISSION, draw.call)
            database.execute(
                "INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
                (
                    seq,
                    draw.call,
                    principal.tenant,
                    principal.session,
                    invocation.grant,
                    invocation.sequence,
                    answer.drawn,
                    draw.action,
                    invocation.event_key,
                    draw.occurrence,
                    invocation.idempotency_key or None,
                    named,
                    str(leased),
                    self._instance,
                    *tokens(invocation, draw),
                    json.dumps([draw.touches, draw.influences]) if draw.touches else None,
                    json.dumps(answer.taken) if answer.taken else None,
                ),
            )
            if answer.taken:
                take(database, principal.tenant, seq, answer.taken)
        self._writer.mark(seq, digest)
        return Lease(manifest, named, draw.call, seq, draw.deadline)

    def settle(self, lease: Lease, outcome: Outcome, entry: LogEntry, now: Instant) -> Receipt:
        """See `Ledger.settle`.

        Raises:
            ValueError: where the entry is not this call's settlement, or the outcome is none: a fault of the gate.
            AuthorityError: where the lease is not of this ledger, or settled already.
        """
        event = SETTLEMENTS.get(outcome.state)
        if event is None or entry.kind is not EntryType.SETTLEMENT or entry.call != lease.call:
            raise ValueError("the entry is not a settlement of this call")
        answer = _write_answer(outcome.answer)
        with self._store.riding() as database:
            row = database.execute(
                "SELECT call.state, call.idempotency_key, log.hash, call.taken, call.touches,"
                " call.nonce, call.capability, call.approval"
                " FROM call JOIN log ON log.seq = call.seq"
                " WHERE call.seq = ? AND call.id = ? AND call.manifest = ?",
                (lease.seq, lease.call, lease.manifest_digest),
            ).fetchone()
            if row is None:
                raise AuthorityError(f"`{lease.call}` is no lease of this ledger")
            following = step(read_state(row[0]), event)
            if isinstance(following, Refused):
                raise AuthorityError(f"`{lease.call}`: {following.reasons[0].detail}")
            admission = (lease.seq, str(row[2]))
            body: dict[str, JsonValue] = {
                **entry.body,
                "state": str(following),
                "manifest": lease.manifest_digest,
                "admission": list(admission),
            }
            content = _content(LogEntry(entry.kind, entry.call, entry.session, body), now)
            seq, digest = self._chain(database, content, EntryType.SETTLEMENT, lease.call)
            # An answer is kept only where a replay could ask for it.
            database.execute(
                "UPDATE call SET state = ?, settled = ?, answer = ?, nonce = NULL, capability = NULL, approval = NULL,"
                " touches = NULL WHERE seq = ?",
                (str(following), seq, answer if row[1] is not None else None, lease.seq),
            )
            tenant = lease.manifest.action.principal.tenant
            _spread(database, tenant, lease.call, lease.seq, row[4], row[5:])
            if row[3] is not None and following is State.FAILED:
                give_back(database, tenant, lease.seq, row[3])
        return Receipt(
            call=lease.call,
            manifest=lease.manifest_digest,
            admission=admission,
            settlement=(seq, digest),
            state=following,
            assurance=str(lease.manifest.effect.assurance),
            carriage=lease.manifest.carriage or "not claimed",
        )

    def recover(self, now: Instant) -> Sequence[str]:
        """See `Ledger.recover`."""
        return self._recover(now, opening=False)

    # --- what persons do -----------------------------------------------------------------------------------------------

    def release(self, call: str, person: str, reason: str, state: State, now: Instant) -> None:
        """See `Ledger.release`."""
        event = PERSONS.get(state)
        if event is None:
            raise AuthorityError(f"an unknown outcome ends as `done`, `failed` or `released`, not as `{state}`")
        with self._store.durable() as database:
            query = f"SELECT seq, tenant, session, state, taken FROM call WHERE {IS_OPEN} AND id = ?"  # noqa: S608
            row = database.execute(query, (call,)).fetchone()
            if row is None:
                raise AuthorityError(f"`{call}` is no call whose outcome is unknown")
            seq, tenant, session, before, taken = row
            following = step(read_state(before), event)
            if isinstance(following, Refused):
                raise AuthorityError(f"`{call}`: {following.reasons[0].detail}")
            database.execute("UPDATE call SET state = ? WHERE seq = ?", (str(following), seq))
            if taken is not None and following is State.FAILED:
                give_back(database, tenant, seq, taken)
            body = {"act": "release", "person": person, "reason": reason, "state": str(following)}
            mark = self._tell(database, EntryType.PERSON, call, session, body, now)
        self._writer.mark(*mark)

    def revoke(self, tenant: str, mark: Mark, *, person: str, reason: str, now: Instant) -> None:
        """See `Ledger.revoke`."""
        with self._store.durable() as database:
            row = (tenant, str(mark.kind), mark.key, mark.session)
            database.execute("INSERT OR IGNORE INTO revoked VALUES (?, ?, ?, ?)", row)
            body: dict[str, JsonValue] = {"act": "revoke", "tenant": tenant, "kind": row[1], "key": mark.key}
            body |= {"person": person, "reason": reason}
            told = self._tell(database, EntryType.PERSON, "", mark.session, body, now)
        self._writer.mark(*told)

    # --- what it holds ---------------------------------------------------------------------------------------------------

    def calls(
        self, tenant: str, *, states: Collection[State] = (), session: str = "", call: str = "", most: int = 1000
    ) -> Sequence[CallRecord]:
        """See `Ledger.calls`."""
        return read_calls(self._store.rows, tenant, states=states, session=session, call=call, most=most)

    def stats(self, tenant: str) -> Stats:
        """See `Ledger.stats`."""
        with self._store.riding() as database:
            return read_stats(database, tenant)

    def vacuum(self, before: Instant, now: Instant) -> int:
        """See `Ledger.vacuum`. The file does not shrink: what it frees, it uses again."""
        with self._store.durable() as database:
            until, dropped = drop_settled(database, milliseconds(before))
            if not dropped:
                return 0
            body: dict[str, JsonValue] = {"act": "vacuum", "until": until, "calls": dropped}
            told = self._tell(database, EntryType.PERSON, "", "", body, now)
        self._writer.mark(*told)
        return dropped

    def grants_of(self, session: str) -> frozenset[str] | None:
        """The grants that a session drew from; None where no such session was ever opened."""
        if not self._store.rows("SELECT 1 FROM session WHERE id = ?", (session,)):
            return None
        return frozenset(str(row[0]) for row in self._store.rows("SELECT grant_id FROM call WHERE session = ?", (session,)))

    # --- the origin index ----------------------------------------------------------------------------------------------

    def touched(self, tenant: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """See `Ledger.touched`."""
        found: dict[tuple[str, str], list[str]] = {}
        for kind, key, influence in self._store.rows(
            "SELECT kind, key, influence FROM touch WHERE tenant = ? ORDER BY kind, key, influence", (tenant,)
        ):
            names = found.setdefault((str(kind), str(key)), [])
            if influence:
                names.append(str(influence))
        waiting = f"SELECT touches FROM call WHERE {IS_OPEN} AND touches IS NOT NULL AND tenant = ?"  # noqa: S608
        for (text,) in self._store.rows(waiting, (tenant,)):
            touches, influences = json.loads(str(text))
            for kind, key in touches:
                names = found.setdefault((kind, key), [])
                names.extend(name for name in influences if name not in names)
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
        with self._store.riding() as database:
            _index(database, tenant, tuple(touches), influences, call)

    def endorse(self, tenant: str, kind: str, key: str, person: str, now: Instant) -> None:
        """See `Ledger.endorse`. The log holds a commitment to the key; what opens it stays in the ledger."""
        salt = secrets.token_bytes(SALT_BYTES)
        commitment = commit({"kind": kind, "key": key}, salt)
        with self._store.durable() as database:
            database.execute("DELETE FROM touch WHERE tenant = ? AND kind = ? AND key = ?", (tenant, kind, key))
            database.execute("INSERT INTO endorsed VALUES (?, ?, ?, ?, ?)", (commitment, salt, tenant, kind, key))
            body = {"act": "endorse", "tenant": tenant, "person": person, "endorsed": commitment}
            mark = self._tell(database, EntryType.PERSON, "", "", body, now)
        self._writer.mark(*mark)

    # --- the log -------------------------------------------------------------------------------------------------------

    def append(self, entry: LogEntry, now: Instant, *, durable: bool = False) -> ChainedEntry:
        """See `Ledger.append`."""
        content = _content(entry, now)
        with self._store.durable() if durable else self._store.riding() as database:
            seq, digest, previous = self._link(database, content, entry.kind, entry.call)
        if durable:
            self._writer.mark(seq, digest)
        return ChainedEntry(seq, previous, milliseconds(now) / 1000, entry)

    def entries(self, start: int = 1) -> Iterator[ChainedEntry]:
        """See `Ledger.entries`. No lock is held between rows; entries that are appended meanwhile are seen.

        Raises:
            LedgerError: where a row cannot be read as an entry at all.
        """
        last = start - 1
        query = "SELECT seq, previous, content FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
        while rows := self._store.rows(query, (last, _PAGE)):
            for row in rows:
                yield self._entry(row)
            last = cast("int", rows[-1][0])

    def entries_of(self, call: str) -> tuple[ChainedEntry, ...]:
        """What the log tells of one call, in order."""
        rows = self._store.rows("SELECT seq, previous, content FROM log WHERE call = ? ORDER BY seq", (call,))
        return tuple(self._entry(row) for row in rows)

    def path(self, after: int, until: int) -> tuple[Digest, ...]:
        """The content digests of the entries after one seq up to another, as a receipt carries them."""
        rows = self._store.rows("SELECT content FROM log WHERE seq > ? AND seq <= ? ORDER BY seq", (after, until))
        return tuple(digest_bytes(str(row[0]).encode()) for row in rows)

    def head(self, now: Instant) -> Head:
        """The log's head, made durable first: what a checkpoint may vouch for."""
        rows = self._store.rows("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")
        self._store.sync()
        seq, digest = (cast("int", rows[0][0]), str(rows[0][1])) if rows else (0, GENESIS)
        return Head(self._origin, seq, digest, milliseconds(now) / 1000)

    def sign_head(self, key: Ed25519PrivateKey, now: Instant, *, after: Ed25519PublicKey | None = None) -> Head:
        """Vouch for the head with a checkpoint beside the file.

        As `cxi.log.signing.sign_next` says: only of a chain that follows from the last checkpoint.

        Raises:
            LedgerError: where the chain does not follow, the last checkpoint is another key's or log's, or the storage fails.
        """
        file = CheckpointFile(self._path.parent / CHECKPOINTS)
        return sign_next(file, self._origin, self.stored, key, milliseconds(now) / 1000, sync=self._store.sync, after=after)

    def stored(self, start: int = 1) -> Iterator[Stored]:
        """The log as it is stored, from one seq on, in order: whatever the rows hold."""
        query = "SELECT seq, previous, hash, content FROM log WHERE seq >= ? ORDER BY seq LIMIT ?"
        while rows := self._store.rows(query, (start, _PAGE)):
            for seq, previous, stated, content in rows:
                yield Stored(cast("int", seq), str(previous), str(stated), str(content).encode("utf-8", "surrogatepass"))
            start = cast("int", rows[-1][0]) + 1

    def standing(self) -> Standing:
        """The ledger's rows from one moment, to be compared with the log (`cxi.ledger.replay`)."""
        with self._store.riding() as database:
            return read_standing(database)

    def close(self) -> None:
        """Make everything durable and let go. Leases that are still open become `outcome_unknown` at the next recovery."""
        try:
            self._store.close()
        except LedgerError:
            self._writer.abandon()
            raise
        self._writer.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _tell(
        self, database: sqlite3.Connection, kind: EntryType, call: str, session: str, body: Mapping[str, JsonValue], now: Instant
    ) -> tuple[int, Digest]:
        return self._chain(database, _content(LogEntry(kind, call, session, body), now), kind, call)

    def _chain(self, database: sqlite3.Connection, content: bytes, kind: EntryType, call: str) -> tuple[int, Digest]:
        seq, digest, _ = self._link(database, content, kind, call)
        return seq, digest

    @staticmethod
    def _link(database: sqlite3.Connection, content: bytes, kind: EntryType, call: str) -> tuple[int, Digest, Digest]:
        """Put an entry behind the head, which is read in this transaction: another process may have moved it."""
        row = database.execute("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1").fetchone()
        last, previous = (int(row[0]), str(row[1])) if row is not None else (0, GENESIS)
        seq = last + 1
        digest = chain(seq, previous, digest_bytes(content))
        database.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", (seq, previous, digest, str(kind), call, content.decode()))
        return seq, digest, previous

    def _entry(self, row: tuple[object, ...]) -> ChainedEntry:
        seq, previous, content = row
        try:
            return read_entry({"seq": cast("int", seq), "previous": str(previous), **orjson.loads(str(content))})
        except (MalformedError, ValueError, TypeError) as error:
            raise LedgerError(f"`{self._path}`: log entry {seq} cannot be read") from error

    def _name_log(self) -> str:
        """The log's name, made with the file. The write also starts the write-ahead log, so that a consume need not."""
        with self._store.durable() as database:
            database.execute("INSERT OR IGNORE INTO ledger VALUES (1, ?, 0)", (f"cxi/{secrets.token_hex(8)}",))
            database.execute("UPDATE ledger SET opened = opened + 1")
            return str(database.execute("SELECT origin FROM ledger").fetchone()[0])

    def _refuse_losses(self, left: Mapping[str, tuple[int, Digest]]) -> None:
        """See that no entry is gone that a writer, or the last checkpoint beside the file, knows of."""
        known = [(f"writer `{name}`", seq, digest) for name, (seq, digest) in left.items()]
        envelope = CheckpointFile(self._path.parent / CHECKPOINTS).last()
        head = claimed(envelope) if envelope is not None else None
        if head is not None and head.size:
            known.append((f"the last checkpoint in `{CHECKPOINTS}`", head.size, head.hash))
        for who, seq, digest in known:
            if self._store.rows("SELECT hash FROM log WHERE seq = ?", (seq,)) != [(digest,)]:
                raise LedgerError(f"`{self._path}` has lost entries: {who} knows of entry {seq}, which is not there as it was")

    def _recover(self, now: Instant, *, opening: bool) -> tuple[str, ...]:
        found: list[str] = []
        for (name,) in self._store.rows(f"SELECT DISTINCT writer FROM call WHERE {IS_OPEN} AND state = 'leased'"):  # noqa: S608
            writer = str(name)
            if writer == self._instance:
                # The lock is ours: at opening, leases under this name are of one that is gone; later they are our own.
                if opening:
                    found.extend(self._abandon(writer, now))
                continue
            try:
                with hold_if_gone(self._writers, writer) as gone:
                    if gone:
                        found.extend(self._abandon(writer, now))
            except OSError as error:
                raise LedgerError(f"`{self._writers}`: {error.strerror}") from error
        return tuple(found)

    def _abandon(self, writer: str, now: Instant) -> list[str]:
        """Every lease of a writer that is gone: nobody knows how it ended."""
        with self._store.durable() as database:
            rows = database.execute(
                "SELECT seq, id, session, state, tenant, touches, nonce, capability, approval FROM call"  # noqa: S608
                f" WHERE {IS_OPEN} AND state = 'leased' AND writer = ? ORDER BY seq",
                (writer,),
            ).fetchall()
            mark: tuple[int, Digest] | None = None
            for seq, call, session, state, tenant, touches, *held in rows:
                following = step(read_state(state), Event.WRITER_GONE)
                if isinstance(following, Refused):
                    raise LedgerError(f"`{self._path}` is damaged: `{call}` cannot be recovered from `{state}`")
                database.execute(
                    "UPDATE call SET state = ?, nonce = NULL, capability = NULL, approval = NULL, touches = NULL WHERE seq = ?",
                    (str(following), seq),
                )
                _spread(database, tenant, call, seq, touches, held)
                body = {"alarm": str(following), "state": str(following), "writer": writer, "admission": seq}
                mark = self._tell(database, EntryType.ALARM, call, session, body, now)
        if mark is not None:
            self._writer.mark(*mark)
        return [str(row[1]) for row in rows]


def _content(entry: LogEntry, now: Instant) -> bytes:
    return canonicalize(entry.to_json(now))


def _index(
    database: sqlite3.Connection, tenant: str, touches: Iterable[tuple[str, str]], influences: tuple[str, ...], call: str
) -> None:
    rows = [(tenant, kind, key, influence, call) for kind, key in touches for influence in influences or ("",)]
    database.executemany("INSERT OR IGNORE INTO touch VALUES (?, ?, ?, ?, ?)", rows)


def _spread(
    database: sqlite3.Connection, tenant: str, call: str, seq: int, touches: str | None, held: Iterable[str | None]
) -> None:
    """Move what a leased call's row held to where it stays."""
    database.executemany("INSERT INTO used VALUES (?, ?)", [(token, seq) for token in held if token is not None])
    if touches is not None:
        places, influences = json.loads(touches)
        _index(database, tenant, [(kind, key) for kind, key in places], tuple(influences), call)


def _write_answer(answer: JsonValue) -> str | None:
    """An answer as it was given, odd text and numbers included; None where it cannot be kept."""
    if answer is None:
        return None
    try:
        return json.dumps(answer, ensure_ascii=True, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: object) -> JsonValue:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(type(value).__name__)
