"""Which right existed before anything was proposed, and which one-time capability is drawn from it?

- A grant comes from the task that the person chose, a standing rule or an approval; never because a call was proposed.
- What the gate can see alone (constraints, items in one call, the schedule) it judges; what depends on other calls becomes
  a `Limit` or a `Requirement` that the ledger judges in the transaction that spends the capability.
- A capability is drawn from one grant, for one action digest and one effect commitment; its digest names it in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from cxi.authority.amount import read_amount, values_at
from cxi.authority.schedule import Hours, open_span
from cxi.canonical import Digest, JsonValue, digest
from cxi.errors import Code, Reason, Refused
from cxi.ledger.base import Limit, Requirement, scope_of
from cxi.manifest import Action, Instant, Nonce, Principal


class Across(StrEnum):
    """Whose calls are counted together."""

    SESSION = "session"
    USER = "user"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Batch:
    """How many items at most in one call.

    Attributes:
        field: The list: `rows`, `orders[].lines`, or what an adapter reads (`query.rows`).
        most: Items.
    """

    field: str
    most: int


@dataclass(frozen=True, slots=True)
class Total:
    """How much at most of an amount in all calls of a window.

    Attributes:
        field: Where the amounts are: `amount`, `rows[].amount`.
        most: In the smallest steps: 50000 for 500.00.
        scale: Digits after the point.
        unit: `EUR`, or empty.
        currency: The field that says the unit, or empty where the amounts say it themselves.
        window: Seconds; 0 means for ever.
        scope: Of a delegated grant: what its giver's total counts; empty means its own.
    """

    field: str
    most: int
    scale: int = 0
    unit: str = ""
    currency: str = ""
    window: float = 0.0
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Bound:
    """A count of somebody else's that each draw takes one of: of the giver of a delegated grant.

    Attributes:
        scope: What is counted.
        most: How many.
        window: Seconds; 0 means for ever.
        own: (session, grant) whose own draws count too, or None.
    """

    scope: str
    most: int
    window: float = 0.0
    own: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A right to call a tool.

    Attributes:
        id: `fix-bug/files.write_file`.
        tool: The tool's name.
        count: How many events at most in a session, or in all that `across` says.
        window: Seconds over which `count` is counted; 0 means the whole session.
        constraints: Contract field name to the canonical values that it may have; empty means any that has authority.
        expires: From this instant on it grants nothing; 0 means with its session.
        across: Whose calls `count` and totals count.
        batches: How many items at most in one call.
        totals: How much at most in all calls.
        after: What must have been done before.
        not_before: Until this instant it grants nothing; 0 means no bound.
        hours: When it grants anything; empty means always.
        retries: How often the same event may fail and be tried again; None means no bound.
        origin: The configured grant that this one is a later start of; empty means itself.
        bounds: Of a delegated grant: its givers' counts.
        lineage: Of a delegated grant: (session, grant) of its givers, the first one first.
        delegations: Of a delegated grant: the revocation ids of its chain.
    """

    id: str
    tool: str
    count: int
    window: float = 0.0
    constraints: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=lambda: MappingProxyType({}))
    expires: Instant = 0.0
    across: Across = Across.SESSION
    batches: tuple[Batch, ...] = ()
    totals: tuple[Total, ...] = ()
    after: tuple[Requirement, ...] = ()
    not_before: Instant = 0.0
    hours: tuple[Hours, ...] = ()
    retries: int | None = None
    origin: str = ""
    bounds: tuple[Bound, ...] = ()
    lineage: tuple[tuple[str, str], ...] = ()
    delegations: tuple[str, ...] = ()

    def scope(self, principal: Principal) -> str:
        """What its count and its totals are counted in."""
        match self.across:
            case Across.SESSION:
                return scope_of(principal.session, self.id)
            case Across.USER:
                return f"user:{principal.user}/{self.origin or self.id}"
            case Across.TENANT:
                return f"tenant/{self.origin or self.id}"

    def total_scope(self, total: Total, principal: Principal) -> str:
        """What a total is counted in: sums of another unit or scale are other sums."""
        return total.scope or f"{self.scope(principal)}#{total.field}:{total.unit}{total.scale}"


def start_again(grant: Grant, start: int) -> Grant:
    """The grant of a task that its person starts for the `start`-th time in a session: it grants anew, in that session."""
    owner = grant.id.partition("/")[0]
    after = tuple(
        replace(needed, grant=f"{needed.grant}#{start}") if needed.grant.startswith(f"{owner}/") else needed
        for needed in grant.after
    )
    return replace(grant, id=f"{grant.id}#{start}", origin=grant.origin or grant.id, after=after)


class Holds(NamedTuple):
    """When a grant that holds now holds: from its start until before its end; 0 means no bound."""

    start: Instant
    end: Instant


def when(grant: Grant, now: Instant) -> Holds | Reason:
    """The grant's schedule around now, or why it does not hold now."""
    if grant.expires and now >= grant.expires:
        return Reason(Code.EXPIRED, f"grant `{grant.id}` has expired", where=grant.tool)
    if now < grant.not_before:
        return _not_yet(grant, grant.not_before)
    if not grant.hours:
        return Holds(grant.not_before, grant.expires)
    span = open_span(grant.hours, now)
    if span is None or (grant.expires and span.start >= grant.expires):
        return Reason(Code.EXPIRED, f"grant `{grant.id}` has no more hours", where=grant.tool)
    if span.start > now:
        return _not_yet(grant, float(span.start))
    return Holds(max(grant.not_before, span.start), min(grant.expires, span.end) if grant.expires else span.end)


def limits_of(grant: Grant, action: Action) -> tuple[Limit, ...] | Refused:
    """What a draw for this action takes beside one of the grant's count, or why the grant does not cover it by itself."""
    reasons: list[Reason] = []
    for batch in grant.batches:
        items = _items(action, batch.field)
        if items is None or items > batch.most:
            found = f"holds {items} items" if items is not None else "is no list whose items can be counted"
            detail = f"`{batch.field}` {found}, and `{grant.id}` gives {batch.most} in one call"
            reasons.append(Reason(Code.LIMIT_REACHED, detail, where=batch.field))
    limits = [Limit(bound.scope, 1, bound.most, bound.window, bound.own) for bound in grant.bounds]
    if grant.across is not Across.SESSION:
        limits.append(Limit(grant.scope(action.principal), 1, grant.count, grant.window))
    for total in grant.totals:
        amount = _amount(action, total)
        if isinstance(amount, Refused):
            reasons.extend(amount.reasons)
        else:
            limits.append(Limit(grant.total_scope(total, action.principal), amount, total.most, total.window))
    return Refused(tuple(reasons)) if reasons else tuple(limits)


def _not_yet(grant: Grant, begins: Instant) -> Reason:
    at = datetime.fromtimestamp(begins, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Reason(Code.NOT_YET, f"grant `{grant.id}` holds from {at} on", where=grant.tool, needs=f"propose it from {at} on")


def _derived(action: Action, path: str) -> tuple[JsonValue, ...]:
    return tuple(leaf.value.canonical for leaf in action.derived if leaf.contract == path)


def _items(action: Action, path: str) -> int | None:
    """How many items a list field holds, 0 where it is not there; None where it is no list."""
    if derived := _derived(action, path):
        return len(derived)
    found = values_at(action.call.arguments, path.removesuffix("[]"), optional=True)
    if found is None or not all(isinstance(item, list | tuple) for item in found):
        return None
    return sum(len(item) for item in found if isinstance(item, list | tuple))


def _amount(action: Action, total: Total) -> int | Refused:
    """The sum of a call's amounts."""
    found = _derived(action, total.field) or values_at(action.call.arguments, total.field)
    if found is None:
        return Refused.of(Code.FIELD_MISSING, f"the grant sums `{total.field}`, which is not in every item", where=total.field)
    said = False
    if total.currency:
        units = _derived(action, total.currency) or values_at(action.call.arguments, total.currency)
        if units is None or any(unit != total.unit for unit in units) or not (units or not found):
            detail = f"the grant sums amounts in `{total.unit}`, and `{total.currency}` says another unit"
            return Refused.of(Code.FIELD_TYPE, detail, where=total.currency)
        said = True
    amounts = [read_amount(raw, scale=total.scale, unit=total.unit, where=total.field, said=said) for raw in found]
    reasons = [reason for amount in amounts if isinstance(amount, Refused) for reason in amount.reasons]
    return Refused(tuple(reasons)) if reasons else sum(amount for amount in amounts if isinstance(amount, int))


@dataclass(frozen=True, slots=True)
class Capability:
    """A one-time right, drawn by trusted code.

    Attributes:
        grant: The grant's id.
        session: Where it may be used.
        action: The action digest.
        effect: The effect commitment's digest.
        sequence: Which draw of the grant, from 1.
        nonce: Random.
        expires: The launch deadline.
    """

    grant: str
    session: str
    action: Digest
    effect: Digest
    sequence: int
    nonce: Nonce
    expires: Instant

    @property
    def digest(self) -> Digest:
        return digest(
            {
                "grant": self.grant,
                "session": self.session,
                "action": self.action,
                "effect": self.effect,
                "sequence": self.sequence,
                "nonce": self.nonce,
                "expires": int(self.expires * 1000),
            }
        )


def mint(
    grant: Grant, *, session: str, action: Digest, effect: Digest, sequence: int, nonce: Nonce, expires: Instant
) -> Capability:
    """Draw the `sequence`-th capability of a grant for exactly one action and effect."""
    deadline = min(expires, grant.expires) if grant.expires else expires
    return Capability(grant.id, session, action, effect, sequence, nonce, deadline)
