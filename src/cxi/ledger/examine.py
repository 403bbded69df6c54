"""May this capability be spent, as the file stands inside this very transaction?

- The checks stand in the order of `Ledger.consume`, numbered as there; the first that fails answers.
- A plain count grant costs no query more than it needs: marks are looked up one by one only where anything is revoked at all.
- A limit is the difference of two running sums (`cxi.ledger.schema`), however much its scope gave.
- Nothing is written here.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from cxi.canonical import Digest, JsonValue, digest_bytes
from cxi.errors import Code, LedgerError, Refused
from cxi.ledger.base import Draw, Limit, Recorded, State, marks_of, scope_of
from cxi.ledger.machine import Event, blocks, keeps_key, step
from cxi.log.entry import milliseconds
from cxi.manifest import Invocation, Manifest

IS_OPEN: Final = "state IN ('leased', 'outcome_unknown')"  # word for word the condition of the index `call_open`
KEYED: Final = (
    "SELECT action, state, id, answer FROM call WHERE session = ? AND idempotency_key = ? AND idempotency_key IS NOT NULL"
    " ORDER BY seq DESC LIMIT 1"
)
LAST_DRAW: Final = (
    "SELECT sequence, drawn_ms FROM call WHERE session = ? AND grant_id = ? ORDER BY drawn_ms DESC, sequence DESC LIMIT 1"
)

_STANDING: Final = (
    "SELECT epoch.counter, epoch.digest, session.tenant, session.user, session.agent, session.closed,"
    " EXISTS (SELECT 1 FROM revoked WHERE tenant = ?1), EXISTS (SELECT 1 FROM taken WHERE tenant = ?1 AND scope = ?3)"
    " FROM (SELECT 1) LEFT JOIN epoch ON epoch.tenant = ?1 LEFT JOIN session ON session.id = ?2"
)
_REVOKED: Final = "SELECT 1 FROM revoked WHERE tenant = ? AND kind = ? AND key = ? AND session = ?"
_CLOSED: Final = "SELECT 1 FROM session WHERE id = ? AND closed = 1"
_OPEN: Final = f"SELECT state, id FROM call WHERE occurrence = ? AND {IS_OPEN} ORDER BY seq LIMIT 1"  # noqa: S608
_USED: Final = "SELECT token FROM used WHERE token IN (?, ?, ?) LIMIT 1"
_HELD: Final = (  # a leased call's tokens are in its row
    "SELECT CASE WHEN nonce = ?1 THEN nonce WHEN capability = ?2 THEN capability ELSE approval END FROM call"  # noqa: S608
    f" WHERE {IS_OPEN} AND (nonce = ?1 OR capability = ?2 OR approval = ?3) LIMIT 1"
)
_IN_WINDOW: Final = (
    "SELECT count(*) FROM (SELECT 1 FROM call WHERE session = ? AND grant_id = ? AND drawn_ms > ? AND state <> 'failed' LIMIT ?)"
)
_FAILED: Final = "SELECT count(*) FROM call WHERE session = ? AND grant_id = ? AND state = 'failed'"
_SUM: Final = (  # of all that a scope gave up to an instant, and the instant of its last draw
    "SELECT running, drawn_ms FROM taken WHERE tenant = ? AND scope = ? AND drawn_ms <= ?"
    " ORDER BY drawn_ms DESC, seq DESC LIMIT 1"
)
_DONE: Final = "SELECT count(*) FROM (SELECT 1 FROM call WHERE session = ? AND grant_id = ? AND state = 'done' LIMIT ?)"
_ATTEMPTS: Final = "SELECT count(*) FROM call WHERE session = ? AND event_key = ? AND state = 'failed'"
_EVER: Final = 2**63 - 1
_HAPPENED: Final = "SELECT 1 FROM call WHERE session = ? AND event_key = ? AND state <> 'failed' LIMIT 1"


class Taken(NamedTuple):
    """A draw from one scope.

    Attributes:
        scope: The scope.
        drawn: When, in milliseconds; a scope's draws never go back in time.
        running: All that the scope gave, this draw included.
        amount: What this draw takes.
    """

    scope: str
    drawn: int
    running: int
    amount: int


@dataclass(frozen=True, slots=True)
class Clear:
    """All checks hold.

    Attributes:
        drawn: The draw's instant in milliseconds.
        taken: What it takes from each of its limits' scopes.
    """

    drawn: int
    taken: tuple[Taken, ...] = ()


def examine(database: sqlite3.Connection, manifest: Manifest, draw: Draw, time: int) -> Clear | Recorded | Refused:
    """Steps 1 to 5 of `Ledger.consume`.

    Args:
        database: Inside a write transaction.
        manifest: What is about to happen.
        draw: What it draws.
        time: Now, in milliseconds.

    Returns:
        What to write where all hold, else the recorded answer or the refusal.
    """
    principal, invocation = manifest.action.principal, manifest.invocation
    session, grant = principal.session, invocation.grant
    row = database.execute(_STANDING, (principal.tenant, session, scope_of(session, grant))).fetchone()

    is_delegated = bool(row[7])

    # 1. the epoch
    if row[:2] != tuple(manifest.effect.policy_epoch):
        return Refused.of(Code.EPOCH_CHANGED, "another policy epoch is in force than the manifest's", where="policy_epoch")

    # 2. session, revocation, deadline and schedule
    if row[2:6] != (principal.tenant, principal.user, principal.agent, 0):
        return Refused.of(Code.SESSION_UNKNOWN, f"session `{session}` is not open for this principal", where="session")
    if (refused := _ended(database, manifest, draw, time, any_revoked=bool(row[6]))) is not None:
        return refused

    # 3. the idempotency key
    if invocation.idempotency_key:
        row = database.execute(KEYED, (session, invocation.idempotency_key)).fetchone()
        if row is not None and (answer := _repeat(row, draw)) is not None:
            return answer

    # 4. an equal event that is under way or unknown, here or in another session
    row = database.execute(_OPEN, (draw.occurrence,)).fetchone()
    if row is not None and (code := blocks(read_state(row[0]))) is not None:
        return Refused.of(code, f"`{row[1]}` is an equal event, and it is `{row[0]}`", where=str(row[1]))

    # 5. limits and windows, sequence, and everything that is used once
    row = database.execute(LAST_DRAW, (session, grant)).fetchone()
    last, drawn = row if row is not None else (0, 0)
    delegated = _sum(database, principal.tenant, scope_of(session, grant), draw.window, time) if is_delegated else 0
    if _given(database, session, grant, last, draw.limit - delegated, draw.window, time) >= draw.limit - delegated:
        return _used_up(database, session, invocation, draw)
    taken = _take(database, principal.tenant, draw.limits, time) if draw.limits else ()
    if isinstance(taken, Refused):
        return taken
    if (refused := _unmet(database, session, invocation, draw)) is not None:
        return refused
    if invocation.sequence != last + 1:
        return Refused.of(Code.CAPABILITY_USED, f"draw {invocation.sequence} of `{grant}` is not the next one", where=grant)
    found = tokens(invocation, draw)
    row = database.execute(_USED, found).fetchone() or database.execute(_HELD, found).fetchone()
    if row is not None:
        name = str(row[0]).partition(":")[0]
        return Refused.of(Code.CAPABILITY_USED, f"the {name} was used before", where=name)
    # INVARIANT (draws-in-order): a grant's draws never go back in time, so that the newest is the last of its window.
    return Clear(max(time, drawn), taken)


def tokens(invocation: Invocation, draw: Draw) -> tuple[str, str, str | None]:
    """What is used once, whatever becomes of the call: nonce, capability and approval.

    The nonce itself stays out of the file: a manifest's digest hides the manifest by it.
    """
    return (
        f"nonce:{digest_bytes(invocation.nonce.encode())}",
        f"capability:{invocation.capability}",
        f"approval:{draw.approval}" if draw.approval else None,
    )


def read_state(found: object) -> State:
    """A state as the file has it.

    Raises:
        LedgerError: where it is none: the file is damaged.
    """
    try:
        return State(str(found))
    except ValueError as error:
        raise LedgerError(f"the ledger is damaged: `{found}` is no state of a call") from error


def read_answer(text: object) -> JsonValue:
    """A recorded answer."""
    return cast("JsonValue", json.loads(str(text))) if text is not None else None


def _repeat(row: tuple[Digest, str, str, str | None], draw: Draw) -> Recorded | Refused | None:
    """What a used idempotency key gives; None where its call gave it back."""
    action, found, call, answer = row
    state = read_state(found)
    if action != draw.action:
        return Refused.of(Code.KEY_REUSE_CONFLICT, f"the key was used for another action, by `{call}`", where=call)
    if not keeps_key(state):
        return None
    if (code := blocks(state)) is not None:
        return Refused.of(code, f"`{call}` has the same key, and it is `{state}`", where=call)
    if draw.repeat == "replay" and state is State.DONE:
        return Recorded(call, read_answer(answer))
    return Refused.of(Code.EVENT_REPEATED, f"`{call}` had the same key and the same action", where=call)


def _ended(database: sqlite3.Connection, manifest: Manifest, draw: Draw, time: int, *, any_revoked: bool) -> Refused | None:
    """The rest of step 2: who delegated it, what is revoked, the deadline and the schedule."""
    for giver, _ in draw.lineage:
        if database.execute(_CLOSED, (giver,)).fetchone() is not None:
            return Refused.of(Code.SESSION_UNKNOWN, f"session `{giver}`, which delegated it, is closed", where="session")
    if any_revoked:
        tenant = manifest.action.principal.tenant
        for mark in marks_of(manifest, draw):
            if database.execute(_REVOKED, (tenant, mark.kind, mark.key, mark.session)).fetchone() is not None:
                return _stopped(Event.REVOKE, f"{mark} was revoked", str(mark.kind))
    if time >= milliseconds(draw.deadline):
        return _stopped(Event.EXPIRE, f"the deadline of `{draw.call}` is past", "session")
    grant = manifest.invocation.grant
    if draw.not_after and time >= milliseconds(draw.not_after):
        return _stopped(Event.EXPIRE, f"grant `{grant}` no longer holds", grant)
    if draw.not_before and time < milliseconds(draw.not_before):
        return Refused.of(Code.NOT_YET, f"grant `{grant}` does not hold yet", where=grant)
    return None


def _used_up(database: sqlite3.Connection, session: str, invocation: Invocation, draw: Draw) -> Refused:
    happened = database.execute(_HAPPENED, (session, invocation.event_key)).fetchone() is not None
    code, grant = Code.EVENT_REPEATED if happened else Code.GRANT_EXHAUSTED, invocation.grant
    return Refused.of(code, f"grant `{grant}` gives {draw.limit}, and they are used", where=grant)


def _given(database: sqlite3.Connection, session: str, grant: str, last: int, limit: int, window: float, time: int) -> int:
    """How many draws count against the limit: all of the session or its window, but those that failed; about as far as it."""
    if window > 0:
        since = time - milliseconds(window)
        return int(database.execute(_IN_WINDOW, (session, grant, since, max(limit, 0))).fetchone()[0])
    if last < limit:
        return last
    return last - int(database.execute(_FAILED, (session, grant)).fetchone()[0])


def _sum(database: sqlite3.Connection, tenant: str, scope: str, window: float, time: int) -> int:
    """What a scope gave in a window; 0 for ever."""
    row = database.execute(_SUM, (tenant, scope, _EVER)).fetchone()
    if row is None or window <= 0:
        return int(row[0]) if row is not None else 0
    outside = database.execute(_SUM, (tenant, scope, time - milliseconds(window))).fetchone()
    return int(row[0]) - (int(outside[0]) if outside is not None else 0)


def _take(database: sqlite3.Connection, tenant: str, limits: tuple[Limit, ...], time: int) -> tuple[Taken, ...] | Refused:
    """What is taken from each limit's scope, or the first limit that has no room. Limits of one scope take from it once."""
    found: dict[str, Taken] = {}
    for limit in limits:
        used = _sum(database, tenant, limit.scope, limit.window, time)
        if limit.own is not None:
            row = database.execute(LAST_DRAW, limit.own).fetchone()
            last = int(row[0]) if row is not None else 0
            used += _given(database, *limit.own, last, limit.most - used, limit.window, time)
        if used + limit.amount > limit.most:
            detail = f"`{limit.scope}` gives {limit.most}, and {used} are used: {limit.amount} more are too many"
            return Refused.of(Code.LIMIT_REACHED, detail, where=limit.scope)
        running, drawn = database.execute(_SUM, (tenant, limit.scope, _EVER)).fetchone() or (0, 0)
        amount = max(limit.amount, found[limit.scope].amount if limit.scope in found else 0)
        found[limit.scope] = Taken(limit.scope, max(time, drawn), running + amount, amount)
    return tuple(found.values())


def _unmet(database: sqlite3.Connection, session: str, invocation: Invocation, draw: Draw) -> Refused | None:
    """The sequence that the grant stands in, and how often its event may be tried again."""
    for needed in draw.after:
        where = (needed.session or session, needed.grant)
        done = int(database.execute(_DONE, (*where, needed.times)).fetchone()[0])
        if done < needed.times:
            detail = f"`{invocation.grant}` comes after {needed.times} of `{needed.grant}`, of which {done} are done"
            return Refused.of(Code.SEQUENCE_UNMET, detail, where=needed.grant)
    if draw.retries is not None:
        failed = int(database.execute(_ATTEMPTS, (session, invocation.event_key)).fetchone()[0])
        if failed > draw.retries:
            detail = f"the event failed {failed} times, and `{invocation.grant}` lets it be tried again {draw.retries} times"
            return Refused.of(Code.RETRIES_EXHAUSTED, detail, where=invocation.grant)
    return None


def _stopped(event: Event, detail: str, where: str) -> Refused:
    """A capability that ends before it was ever leased; it leaves no row."""
    ended = step(State.MINTED, event)
    return Refused.of(Code.REVOKED if ended is State.REVOKED else Code.EXPIRED, detail, where=where)
