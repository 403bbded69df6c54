"""What may a ledger do at all? The whole of it as one small value, to be explored and to be held against the real ones.

      trusted code        actors (processes)               world                     persons, time
      draw ──► capability ─► consume ─► lease ─► launch ─► flying ─► landed | lost   revoke, new epoch, tick
                                │         │                                          done | failed | released
                                ▼         └─ settle (rides) ─► row: done | failed | unknown
      book ── synced ─► disk ◄── power cut: the book is what the disk holds
                                crash: the hand is empty, the row stays leased ─► recover ─► unknown

- `Book` is what the ledger holds; `consume`, `settle`, `recover`, `release` are pure functions of it, in the order of
  `Ledger.consume`. The state of one call moves as `cxi.ledger.machine` says.
- `Whole` is a book, its synced copy, what each actor has in hand, what is on its way and what has happened in the world.
  `acts` names everything that can happen next, `step` lets it happen, `violations` says which `Invariant` a step broke.
- Every guard is a `Rule` that can be taken away: `EXPECTED` says which invariant breaks then (`cxi.lab.interleavings` shows it).
- An actor's answer can be delivered late, twice or not at all, and a launched effect can land after its actor is gone.

    >>> book = Book(epoch=(1, "p"), sessions=frozenset({"s"}))
    >>> ask = Ask("c-1", "s", "g", "event", "action", 1, (1, "p"), deadline=9)
    >>> leased = consume(book, ask, now=1, writer="w")
    >>> leased.rows[0].state, consume(leased, ask, now=1, writer="w")
    (<State.LEASED: 'leased'>, <Code.IN_FLIGHT: 'IN_FLIGHT'>)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from cxi.errors import Code, Refused
from cxi.ledger.base import Limit, Mark, Requirement, State
from cxi.ledger.machine import PERSONS, SETTLEMENTS, Event, blocks, keeps_key
from cxi.ledger.machine import step as move
from cxi.manifest import Instant

Epoch: TypeAlias = tuple[int, str]


class Invariant(StrEnum):
    """What holds in every reachable state."""

    ONE_LEASE = "at most one lease a capability"
    NO_EFFECT_WITHOUT_LEASE = "no effect without a lease"
    NO_LATE_LEASE = "no lease after revocation, expiry or a change of epoch"
    NO_LATE_LAUNCH = "no launch after its deadline"
    ACKNOWLEDGED_SURVIVES = "an acknowledged consume survives any crash"
    ONE_EFFECT = "a replay has no second effect"
    UNKNOWN_BLOCKS = "an open or unknown call blocks its event"
    WITHIN_LIMIT = "a grant gives no more than its count"


class Rule(StrEnum):
    """One guard; the last two are not the ledger's, and everything rests on them all the same."""

    EPOCH_COMPARED = "consume compares the epoch"
    REVOCATION_ASKED = "consume asks what is revoked"
    DEADLINE_ASKED = "consume asks the deadline"
    KEY_HELD = "a used idempotency key answers for its call"
    OPEN_BLOCKS = "an equal event that is open or unknown refuses"
    LIMIT_COUNTED = "draws are counted against the grant"
    USED_ONCE = "sequence, nonce and capability are new"
    SYNC_FIRST = "a lease is synced before it is answered"
    GONE_IS_UNKNOWN = "a lease whose writer is gone is unknown, never failed"
    ONLY_THE_GONE = "recovery leaves the leases of live writers alone"
    LEASE_FIRST = "an executor takes a lease and nothing else"
    LAUNCH_ONCE = "a lease is launched once"
    LAUNCH_IN_TIME = "an executor compares the deadline with the clock"
    FAILED_IS_CERTAIN = "a sink says `failed` only of what certainly did not happen"
    PERSON_IS_RIGHT = "a person who says `failed` or `done` is right"


ALL: Final = frozenset(Rule)
EXPECTED: Final[Mapping[Rule, Invariant]] = MappingProxyType(
    {
        Rule.EPOCH_COMPARED: Invariant.NO_LATE_LEASE,
        Rule.REVOCATION_ASKED: Invariant.NO_LATE_LEASE,
        Rule.DEADLINE_ASKED: Invariant.NO_LATE_LEASE,
        Rule.KEY_HELD: Invariant.ONE_EFFECT,
        Rule.OPEN_BLOCKS: Invariant.UNKNOWN_BLOCKS,
        Rule.LIMIT_COUNTED: Invariant.WITHIN_LIMIT,
        Rule.USED_ONCE: Invariant.ONE_LEASE,
        Rule.SYNC_FIRST: Invariant.ACKNOWLEDGED_SURVIVES,
        Rule.GONE_IS_UNKNOWN: Invariant.ONE_EFFECT,
        Rule.ONLY_THE_GONE: Invariant.ONE_EFFECT,
        Rule.LEASE_FIRST: Invariant.NO_EFFECT_WITHOUT_LEASE,
        Rule.LAUNCH_ONCE: Invariant.ONE_EFFECT,
        Rule.LAUNCH_IN_TIME: Invariant.NO_LATE_LAUNCH,
        Rule.FAILED_IS_CERTAIN: Invariant.ONE_EFFECT,
        Rule.PERSON_IS_RIGHT: Invariant.ONE_EFFECT,
    }
)


# --- the book ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """One capability, as it stands before `consume`.

    Attributes:
        capability: Its name.
        session: Its session.
        grant: The grant that it was drawn from.
        occurrence: The event without its session.
        action: What is asked, payload included.
        sequence: Which draw of the grant in this session.
        epoch: The epoch that it was drawn under.
        deadline: The launch deadline.
        key: The idempotency key, or empty.
        limit: The grant's count.
        window: The grant's window; 0 for the session.
        repeat: `refuse`, `replay` or `allow`.
        tokens: What is used once beside the capability itself: nonce, approval.
        marks: What a revocation of would stop it.
        limits: Bounds beside the grant's own.
        after: What must have been done before in the session.
        not_before: The first instant at which it may be drawn; 0 for none.
        not_after: The first at which it no longer may; 0 for none.
        retries: How many earlier attempts may have failed; None for any.
    """

    capability: str
    session: str
    grant: str
    occurrence: str
    action: str
    sequence: int
    epoch: Epoch
    deadline: Instant
    key: str = ""
    limit: int = 1
    window: float = 0.0
    repeat: str = "refuse"
    tokens: frozenset[str] = frozenset()
    marks: frozenset[Mark] = frozenset()
    limits: tuple[Limit, ...] = ()
    after: tuple[Requirement, ...] = ()
    not_before: Instant = 0.0
    not_after: Instant = 0.0
    retries: int | None = None

    def takes(self, scope: str) -> int:
        """What it takes from a limit's scope: limits of one scope take from it once."""
        return max((limit.amount for limit in self.limits if limit.scope == scope), default=0)


@dataclass(frozen=True, slots=True)
class Row:
    """One consumed capability."""

    ask: Ask
    writer: str
    drawn: Instant
    state: State = State.LEASED


@dataclass(frozen=True, slots=True)
class Book:
    """What the ledger holds.

    Attributes:
        epoch: The epoch in force.
        sessions: The open sessions.
        revoked: The marks that are revoked.
        rows: Every consumed capability, in order.
    """

    epoch: Epoch | None = None
    sessions: frozenset[str] = frozenset()
    revoked: frozenset[Mark] = frozenset()
    rows: tuple[Row, ...] = ()

    def draws(self, session: str, grant: str) -> tuple[Row, ...]:
        """Every draw of a grant in a session."""
        return tuple(row for row in self.rows if (row.ask.session, row.ask.grant) == (session, grant))

    def row(self, capability: str) -> Row | None:
        """The row of a capability, or None where it was never consumed."""
        return next((row for row in self.rows if row.ask.capability == capability), None)


Answer: TypeAlias = Book | Row | Code


def consume(book: Book, ask: Ask, *, now: Instant, writer: str, rules: frozenset[Rule] = ALL) -> Answer:
    """Spend one capability, by the steps of `Ledger.consume`.

    Returns:
        The book with the lease in it; or the row whose answer is given again; or the code of a refusal.
    """
    # 1. the epoch
    if Rule.EPOCH_COMPARED in rules and book.epoch != ask.epoch:
        return Code.EPOCH_CHANGED
    # 2. session, revocation, deadline, schedule
    if (code := _ended(book, ask, now, rules)) is not None:
        return code
    # 3. the idempotency key
    if Rule.KEY_HELD in rules and ask.key:
        keyed = [row for row in book.rows if (row.ask.session, row.ask.key) == (ask.session, ask.key)]
        if keyed and (answer := _repeat(keyed[-1], ask)) is not None:
            return answer
    # 4. an equal event that is under way or unknown
    if Rule.OPEN_BLOCKS in rules:
        for row in book.rows:
            if row.ask.occurrence == ask.occurrence and (code := blocks(row.state)) is not None:
                return code
    # 5. limits and windows, what came before, sequence, and everything that is used once
    draws = book.draws(ask.session, ask.grant)
    if Rule.LIMIT_COUNTED in rules and (code := _over(book, ask, draws, now)) is not None:
        return code
    if (code := _unmet(book, ask)) is not None:
        return code
    if Rule.USED_ONCE in rules:
        tokens = {ask.capability, *ask.tokens}
        if ask.sequence != len(draws) + 1 or any(tokens & {row.ask.capability, *row.ask.tokens} for row in book.rows):
            return Code.CAPABILITY_USED
    # 6. the lease
    return replace(book, rows=(*book.rows, Row(ask, writer, now)))


def _ended(book: Book, ask: Ask, now: Instant, rules: frozenset[Rule]) -> Code | None:
    if ask.session not in book.sessions:
        return Code.SESSION_UNKNOWN
    if Rule.REVOCATION_ASKED in rules and ask.marks & book.revoked:
        return Code.REVOKED
    if (Rule.DEADLINE_ASKED in rules and now >= ask.deadline) or (ask.not_after and now >= ask.not_after):
        return Code.EXPIRED
    return Code.NOT_YET if ask.not_before and now < ask.not_before else None


def _repeat(row: Row, ask: Ask) -> Row | Code | None:
    if row.ask.action != ask.action:
        return Code.KEY_REUSE_CONFLICT
    if not keeps_key(row.state):
        return None
    if (code := blocks(row.state)) is not None:
        return code
    return row if ask.repeat == "replay" and row.state is State.DONE else Code.EVENT_REPEATED


def _over(book: Book, ask: Ask, draws: tuple[Row, ...], now: Instant) -> Code | None:
    """The first bound that has no room; a draw that failed counts against none."""

    def counts(row: Row, window: float) -> bool:
        return row.state is not State.FAILED and (not window or row.drawn > now - window)

    if sum(counts(row, ask.window) for row in draws) >= ask.limit:
        same = (ask.session, ask.occurrence)
        happened = any((row.ask.session, row.ask.occurrence) == same and counts(row, 0.0) for row in book.rows)
        return Code.EVENT_REPEATED if happened else Code.GRANT_EXHAUSTED
    for limit in ask.limits:
        used = sum(row.ask.takes(limit.scope) for row in book.rows if counts(row, limit.window))
        if used + limit.amount > limit.most:
            return Code.LIMIT_REACHED
    return None


def _unmet(book: Book, ask: Ask) -> Code | None:
    """What had to be done before, and how often the event may be tried again."""
    for needed in ask.after:
        if sum(row.state is State.DONE for row in book.draws(ask.session, needed.grant)) < needed.times:
            return Code.SEQUENCE_UNMET
    tried = [row for row in book.rows if (row.ask.session, row.ask.occurrence) == (ask.session, ask.occurrence)]
    if ask.retries is not None and sum(row.state is State.FAILED for row in tried) > ask.retries:
        return Code.RETRIES_EXHAUSTED
    return None


def settle(book: Book, capability: str, state: State) -> Book | Refused:
    """How a launched effect ended: `DONE`, `FAILED` or `OUTCOME_UNKNOWN`."""
    return _moved(book, capability, SETTLEMENTS[state])


def release(book: Book, capability: str, state: State) -> Book | Refused:
    """What a person says of an unknown outcome: `DONE`, `FAILED` or `RELEASED`."""
    return _moved(book, capability, PERSONS[state])


def recover(book: Book, alive: frozenset[str], *, rules: frozenset[Rule] = ALL) -> Book:
    """What becomes of leases whose writers are gone.

    Args:
        book: The book.
        alive: The capabilities whose writers are still there.
        rules: The rules that hold.
    """
    found = book
    for row in book.rows:
        if row.state is State.LEASED and (Rule.ONLY_THE_GONE not in rules or row.ask.capability not in alive):
            event = Event.WRITER_GONE if Rule.GONE_IS_UNKNOWN in rules else Event.SETTLED_FAILED
            moved = _moved(found, row.ask.capability, event)
            found = found if isinstance(moved, Refused) else moved
    return found


def _moved(book: Book, capability: str, event: Event) -> Book | Refused:
    for index, row in enumerate(book.rows):
        if row.ask.capability == capability:
            following = move(row.state, event)
            if isinstance(following, Refused):
                return following
            return replace(book, rows=(*book.rows[:index], replace(row, state=following), *book.rows[index + 1 :]))
    return Refused.of(Code.CAPABILITY_USED, f"`{capability}` was never leased")


# --- the whole --------------------------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What can happen."""

    DRAW = "draw"
    CONSUME = "consume"
    LAUNCH = "launch"
    LAND = "land"
    LOSE = "lose"
    SETTLE_DONE = "settle done"
    SETTLE_FAILED = "settle failed"
    SETTLE_UNKNOWN = "settle unknown"
    CRASH = "crash"
    POWER_CUT = "power cut"
    RECOVER = "recover"
    PERSON_DONE = "person: done"
    PERSON_FAILED = "person: failed"
    PERSON_RELEASED = "person: released"
    REVOKE = "revoke"
    NEW_EPOCH = "new epoch"
    TICK = "tick"


SETTLES: Final[Mapping[Kind, State]] = MappingProxyType(
    {
        Kind.SETTLE_DONE: State.DONE,
        Kind.SETTLE_FAILED: State.FAILED,
        Kind.SETTLE_UNKNOWN: State.OUTCOME_UNKNOWN,
    }
)
SAYS: Final[Mapping[Kind, State]] = MappingProxyType(
    {
        Kind.PERSON_DONE: State.DONE,
        Kind.PERSON_FAILED: State.FAILED,
        Kind.PERSON_RELEASED: State.RELEASED,
    }
)


class Act(NamedTuple):
    """One thing that happens: what, by which actor (-1: none), to what."""

    kind: Kind
    actor: int = -1
    of: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.of, f"by {self.actor}" if self.actor >= 0 else "") if part)


class Hand(NamedTuple):
    """What an actor holds: a lease, and whether it launched it."""

    capability: str
    launched: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen.

    Attributes:
        actors: Processes.
        templates: By capability, what it asks; sequence, epoch and deadline are set when it is drawn.
        life: A capability's deadline is this long after it was drawn.
        ticks: How often time passes.
        epochs: How often the epoch changes.
        marks: What may be revoked, each once.
        power_cuts: How often the whole machine stops.
    """

    actors: int
    templates: tuple[Ask, ...]
    life: int = 1
    ticks: int = 1
    epochs: int = 1
    marks: tuple[Mark, ...] = ()
    power_cuts: int = 1


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything, at one moment.

    Attributes:
        book: The ledger, as the next transaction sees it.
        disk: What of it a power cut leaves.
        hands: By actor, what it holds.
        now: The clock.
        drawn: The capabilities that exist; whoever knows one may submit it, more than once.
        flying: Launched effects that have neither landed nor got lost.
        landed: Effects that happened, by capability, as often as they did.
        cuts: Power cuts so far.
        leases: Ghost: every lease that was answered.
        freed: Ghost: capabilities that a person released without knowing.
    """

    book: Book
    disk: Book
    hands: tuple[Hand | None, ...]
    now: int = 0
    drawn: tuple[Ask, ...] = ()
    flying: frozenset[str] = frozenset()
    landed: tuple[str, ...] = ()
    cuts: int = 0
    leases: tuple[str, ...] = ()
    freed: frozenset[str] = frozenset()

    def ask(self, capability: str) -> Ask:
        """The capability that was drawn under this name."""
        return next(ask for ask in self.drawn if ask.capability == capability)


def begin(bounds: Bounds) -> Whole:
    """Nothing has happened: one epoch, every session open."""
    book = Book((1, "policies"), frozenset(ask.session for ask in bounds.templates))
    return Whole(book, book, (None,) * bounds.actors)


def acts(whole: Whole, bounds: Bounds, rules: frozenset[Rule] = ALL) -> Iterator[Act]:
    """Everything that can happen next."""
    known = {ask.capability for ask in whole.drawn}
    yield from (Act(Kind.DRAW, of=ask.capability) for ask in bounds.templates if ask.capability not in known)
    for actor, hand in enumerate(whole.hands):
        yield from _acts_of(whole, actor, hand, rules)
    for capability in sorted(whole.flying):
        yield Act(Kind.LAND, of=capability)
        yield Act(Kind.LOSE, of=capability)
    held = {hand.capability for hand in whole.hands if hand is not None}
    if whole.cuts < bounds.power_cuts and (held or whole.book != whole.disk):
        yield Act(Kind.POWER_CUT)
    leased = {row.ask.capability for row in whole.book.rows if row.state is State.LEASED}
    if leased - held or (leased and Rule.ONLY_THE_GONE not in rules):
        yield Act(Kind.RECOVER)
    for row in whole.book.rows:
        if row.state is State.OUTCOME_UNKNOWN:
            yield from _says(whole, row.ask.capability, rules)
    yield from (Act(Kind.REVOKE, of=str(mark)) for mark in bounds.marks if mark not in whole.book.revoked)
    if whole.book.epoch is not None and whole.book.epoch[0] <= bounds.epochs:
        yield Act(Kind.NEW_EPOCH)
    if whole.now < bounds.ticks:
        yield Act(Kind.TICK)


def _acts_of(whole: Whole, actor: int, hand: Hand | None, rules: frozenset[Rule]) -> Iterator[Act]:
    if hand is None:
        yield from (Act(Kind.CONSUME, actor, ask.capability) for ask in whole.drawn)
        if Rule.LEASE_FIRST not in rules:
            yield from (Act(Kind.LAUNCH, actor, ask.capability) for ask in whole.drawn)
        return
    capability = hand.capability
    in_time = Rule.LAUNCH_IN_TIME not in rules or whole.now < whole.ask(capability).deadline
    if in_time and (not hand.launched or (Rule.LAUNCH_ONCE not in rules and whole.landed.count(capability) < 2)):
        yield Act(Kind.LAUNCH, actor, capability)
    landed, flying = capability in whole.landed, capability in whole.flying
    if landed:
        yield Act(Kind.SETTLE_DONE, actor, capability)
    if (not landed and not flying) or Rule.FAILED_IS_CERTAIN not in rules:
        yield Act(Kind.SETTLE_FAILED, actor, capability)
    if hand.launched:
        yield Act(Kind.SETTLE_UNKNOWN, actor, capability)
    yield Act(Kind.CRASH, actor)


def _says(whole: Whole, capability: str, rules: frozenset[Rule]) -> Iterator[Act]:
    certain = Rule.PERSON_IS_RIGHT in rules
    landed, flying = capability in whole.landed, capability in whole.flying
    if landed or not certain:
        yield Act(Kind.PERSON_DONE, of=capability)
    if (not landed and not flying) or not certain:
        yield Act(Kind.PERSON_FAILED, of=capability)
    yield Act(Kind.PERSON_RELEASED, of=capability)


def step(whole: Whole, act: Act, bounds: Bounds, rules: frozenset[Rule] = ALL) -> Whole:
    """What is there after one of `acts`; the same where it was refused."""
    match act.kind:
        case Kind.DRAW:
            return _draw(whole, act.of, bounds)
        case Kind.CONSUME:
            return _consume(whole, act, rules)
        case Kind.LAUNCH:
            hands = whole.hands if whole.hands[act.actor] is None else _with(whole.hands, act.actor, Hand(act.of, launched=True))
            return replace(whole, hands=hands, flying=whole.flying | {act.of})
        case Kind.LAND:
            return replace(whole, flying=whole.flying - {act.of}, landed=tuple(sorted((*whole.landed, act.of))))
        case Kind.LOSE:
            return replace(whole, flying=whole.flying - {act.of})
        case Kind.SETTLE_DONE | Kind.SETTLE_FAILED | Kind.SETTLE_UNKNOWN:
            settled = settle(whole.book, act.of, SETTLES[act.kind])
            book = whole.book if isinstance(settled, Refused) else settled
            return replace(whole, book=book, hands=_with(whole.hands, act.actor, None))  # it rides: the disk has it later
        case Kind.CRASH:
            return replace(whole, hands=_with(whole.hands, act.actor, None))
        case Kind.POWER_CUT:
            return replace(whole, book=whole.disk, hands=(None,) * len(whole.hands), cuts=whole.cuts + 1)
        case Kind.RECOVER:
            alive = frozenset(hand.capability for hand in whole.hands if hand is not None)
            return _synced(whole, recover(whole.book, alive, rules=rules))
        case Kind.PERSON_DONE | Kind.PERSON_FAILED | Kind.PERSON_RELEASED:
            said = release(whole.book, act.of, SAYS[act.kind])
            freed = whole.freed | {act.of} if act.kind is Kind.PERSON_RELEASED else whole.freed
            return whole if isinstance(said, Refused) else replace(_synced(whole, said), freed=freed)
        case Kind.REVOKE:
            mark = next(mark for mark in bounds.marks if str(mark) == act.of)
            return _synced(whole, replace(whole.book, revoked=whole.book.revoked | {mark}))
        case Kind.NEW_EPOCH:
            counter = whole.book.epoch[0] + 1 if whole.book.epoch is not None else 1
            return _synced(whole, replace(whole.book, epoch=(counter, "policies")))
        case Kind.TICK:
            return replace(whole, now=whole.now + 1)


def _draw(whole: Whole, capability: str, bounds: Bounds) -> Whole:
    template = next(ask for ask in bounds.templates if ask.capability == capability)
    sequence = len(whole.book.draws(template.session, template.grant)) + 1
    drawn = replace(template, sequence=sequence, epoch=whole.book.epoch or (0, ""), deadline=whole.now + bounds.life)
    return replace(whole, drawn=tuple(sorted((*whole.drawn, drawn), key=lambda ask: ask.capability)))


def _consume(whole: Whole, act: Act, rules: frozenset[Rule]) -> Whole:
    # Who the writer is, the hands tell: a lease that is in no hand has none any more.
    answer = consume(whole.book, whole.ask(act.of), now=whole.now, writer="", rules=rules)
    if not isinstance(answer, Book):
        return whole
    return replace(
        whole,
        book=answer,
        disk=answer if Rule.SYNC_FIRST in rules else whole.disk,
        hands=_with(whole.hands, act.actor, Hand(act.of, launched=False)),
        leases=tuple(sorted((*whole.leases, act.of))),
    )


def _synced(whole: Whole, book: Book) -> Whole:
    return replace(whole, book=book, disk=book)


def _with(hands: tuple[Hand | None, ...], actor: int, hand: Hand | None) -> tuple[Hand | None, ...]:
    return (*hands[:actor], hand, *hands[actor + 1 :])


def violations(before: Whole, act: Act, after: Whole) -> tuple[Invariant, ...]:
    """Which invariants this step broke. Nothing here asks `Rule`s, or the functions above."""
    found: list[Invariant] = []
    leases = after.leases
    if len(set(leases)) < len(leases):
        found.append(Invariant.ONE_LEASE)
    if not {*after.flying, *after.landed} <= {*leases}:
        found.append(Invariant.NO_EFFECT_WITHOUT_LEASE)
    held = {row.ask.capability for row in after.book.rows}
    if not {*leases} <= held:
        found.append(Invariant.ACKNOWLEDGED_SURVIVES)
    by_key: dict[str, int] = {}
    for capability in after.landed:
        ask = after.ask(capability)
        by_key[ask.key] = by_key.get(ask.key, 0) + 1
    for key, count in by_key.items():
        freed = sum(after.ask(capability).key == key for capability in after.freed)
        if key and count > 1 + freed:
            found.append(Invariant.ONE_EFFECT)
    for ask in after.drawn:
        if sum(row.state is not State.FAILED for row in after.book.draws(ask.session, ask.grant)) > ask.limit:
            found.append(Invariant.WITHIN_LIMIT)
            break
    if len(leases) > len(before.leases):
        ask = after.ask(act.of)
        if ask.epoch != before.book.epoch or ask.marks & before.book.revoked or before.now >= ask.deadline:
            found.append(Invariant.NO_LATE_LEASE)
        same = [row.state for row in before.book.rows if row.ask.occurrence == ask.occurrence]
        if State.LEASED in same or State.OUTCOME_UNKNOWN in same:
            found.append(Invariant.UNKNOWN_BLOCKS)
    if act.kind is Kind.LAUNCH and before.now >= after.ask(act.of).deadline:
        found.append(Invariant.NO_LATE_LAUNCH)
    return tuple(found)
