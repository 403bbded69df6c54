"""What is the database told of a call, and in which statements?

- Each of them is one statement: a server-side function of `migrations/` judges and writes.
- Times are whole milliseconds, digests 32 bytes. Seq and hash of the entry that was made are the last two columns of each answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString

from cxi.canonical import JsonValue, digest_bytes
from cxi.errors import LedgerError
from cxi.ledger.base import Draw, Mark, MarkKind, marks_of
from cxi.ledger.line import raw
from cxi.log.entry import milliseconds
from cxi.manifest import Instant, Manifest

CONSUME: Final[LiteralString] = (
    "SELECT code, detail, place, answer, seq, hash FROM cxi.consume(%(chain)s::bigint, %(generation)s::bigint, %(now)s::bigint,"
    " %(counter)s::bigint, %(digest)s::text, %(tenant)s::text, %(user)s::text, %(agent)s::text, %(session)s::text,"
    " %(grant)s::text,"
    " %(sequence)s::bigint, %(call)s::text, %(limit)s::bigint, %(window)s::bigint, %(repeat)s::text, %(action)s::bytea,"
    " %(event)s::bytea, %(occurrence)s::bytea, %(key)s::bytea, %(manifest)s::bytea, %(deadline)s::bigint, %(not_before)s::bigint,"
    " %(not_after)s::bigint, %(nonce)s::bytea, %(capability)s::bytea, %(approval)s::bytea, %(task)s::text, %(touches)s::text,"
    " %(lineage)s::text[], %(marks)s::text, %(limits)s::jsonb, %(after)s::jsonb, %(retries)s::bigint, %(content)s::text)"
)
SETTLE: Final[LiteralString] = (
    "SELECT state, settled, seq, hash FROM cxi.settle(%(chain)s::bigint, %(generation)s::bigint,"
    " %(session)s::text, %(grant)s::text,"
    " %(sequence)s::bigint, %(call)s::text, %(manifest)s::bytea, %(state)s::text, %(answer)s::text, %(content)s::text,"
    " %(riding)s::boolean)"
)
APPEND: Final[LiteralString] = (
    "SELECT previous, seq, hash FROM cxi.append(%(chain)s::bigint, %(generation)s::bigint, %(kind)s::text, %(call)s::text,"
    " %(content)s::text, %(riding)s::boolean)"
)
OPEN_SESSION: Final[LiteralString] = (
    "SELECT answer, seq, hash FROM cxi.open_session(%(chain)s::bigint, %(generation)s::bigint, %(tenant)s::text,"
    " %(session)s::text,"
    " %(user)s::text, %(agent)s::text, %(credential)s::text, %(content)s::text, %(riding)s::boolean)"
)


def values_of(manifest: Manifest, draw: Draw, content: str, now: Instant) -> dict[str, Any]:
    """What `cxi.consume` judges, and what it writes."""
    principal, invocation = manifest.action.principal, manifest.invocation
    counter, digest = manifest.effect.policy_epoch
    lineage = sorted({session for session, _ in draw.lineage})
    limits = [
        {"scope": limit.scope, "amount": limit.amount, "most": limit.most, "window": milliseconds(limit.window), "own": limit.own}
        for limit in draw.limits
    ]
    after = [{"session": needed.session, "grant": needed.grant, "times": needed.times} for needed in draw.after]
    return {
        "now": milliseconds(now),
        "counter": counter,
        "digest": digest,
        "tenant": principal.tenant,
        "user": principal.user,
        "agent": principal.agent,
        "session": principal.session,
        "grant": invocation.grant,
        "sequence": invocation.sequence,
        "call": draw.call,
        "limit": draw.limit,
        "window": milliseconds(draw.window),
        "repeat": draw.repeat,
        "action": raw(draw.action),
        "event": raw(invocation.event_key),
        "occurrence": raw(draw.occurrence),
        "key": raw(invocation.idempotency_key) if invocation.idempotency_key else None,
        "manifest": raw(manifest.digest),
        "deadline": milliseconds(draw.deadline),
        "not_before": milliseconds(draw.not_before),
        "not_after": milliseconds(draw.not_after),
        "nonce": _token("nonce", invocation.nonce),
        "capability": _token("capability", invocation.capability),
        "approval": _token("approval", draw.approval) if draw.approval else None,
        "task": draw.task,
        "touches": write_touches(draw.touches, draw.influences) if draw.touches else None,
        "lineage": lineage or None,
        "marks": "\x1f".join(map(write_mark, marks_of(manifest, draw))),
        "limits": json.dumps(limits) if limits else None,
        "after": json.dumps(after) if after else None,
        "retries": draw.retries,
        "content": content,
    }


def locks_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the locks that `cxi.consume` takes, as it makes them."""
    names = [f"grant\x1f{values['session']}\x1f{values['grant']}", f"occurrence\x1f{values['occurrence'].hex()}"]
    if values["key"] is not None:
        names.append(f"key\x1f{values['session']}\x1f{values['key'].hex()}")
    if values["approval"] is not None:
        names.append(f"approval\x1f{values['approval'].hex()}")
    if values["limits"] is not None:
        for limit in json.loads(values["limits"]):
            names.append(f"scope\x1f{limit['scope']}")
            if limit["own"] is not None:
                names.append("grant\x1f" + "\x1f".join(limit["own"]))
    return tuple(names)


def _token(kind: str, text: str) -> bytes:
    """What is used once: the nonce itself stays out of the database, as a manifest's digest hides the manifest by it."""
    return raw(digest_bytes(f"{kind}:{text}".encode()))


def write_mark(mark: Mark) -> str:
    """A mark as the database has it.

    Raises:
        LedgerError: where a name in it holds what separates names there: it could stand for another mark.
    """
    if "\x1e" in mark.key or "\x1f" in mark.key or "\x1e" in mark.session or "\x1f" in mark.session:
        raise LedgerError("a name with U+001E or U+001F cannot be written to the ledger")
    return f"{mark.kind}\x1e{mark.session}\x1e{mark.key}"


def read_mark(text: object) -> Mark:
    """The mark that `write_mark` wrote."""
    kind, session, key = str(text).split("\x1e")
    return Mark(MarkKind(kind), key, session)


def write_touches(touches: tuple[tuple[str, str], ...], influences: tuple[str, ...]) -> str:
    """Touches and influences, each pair of them a row of the origin index."""
    return json.dumps([touches, influences or ("",)], ensure_ascii=False)


def write_answer(answer: JsonValue) -> str | None:
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
