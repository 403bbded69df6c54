"""Terms of grants against plain references: sums in windows, hours across clock changes, chains of delegations."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi.authority.delegation import Attenuation, Delegated, attenuate, delegate, narrow, open_token, seal
from cxi.authority.grant import Grant
from cxi.authority.schedule import Hours, open_span
from cxi.canonical import digest
from cxi.errors import Refused
from cxi.ledger.base import Lease, Limit, State
from cxi.manifest import Principal
from ledger_case import Case, codes, open_ledger, start

# --- limits: the sum of what did not fail, in every window


@dataclass
class Drawn:
    scope: str
    at: int
    amount: int
    failed: bool = False


SCOPES = ("x", "y")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("draw"),
            st.sampled_from(SCOPES),
            st.integers(0, 4),
            st.integers(0, 7),
            st.sampled_from([0.0, 2.0, 5.0]),
        ),
        st.tuples(st.just("fail"), st.integers(0, 30)),
        st.tuples(st.just("done"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.sampled_from([-1.0, 0.5, 1.0, 2.0, 5.0])),
        st.tuples(st.just("vacuum")),
    ),
    max_size=30,
)


def used(history: list[Drawn], scope: str, window: float, now: int) -> int:
    return sum(
        one.amount for one in history if one.scope == scope and not one.failed and (not window or one.at > now - window * 1000)
    )


def play(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(Path(folder) / "state")
        start(ledger)
        case, history, leases, now = Case(ledger), [], [], 100.0
        for number, step in enumerate(steps):
            match step:
                case ("draw", scope, amount, most, window):
                    time = round(now * 1000)
                    answer = case.consume(
                        f"f{number}", now=now, limit=100, more={"limits": (Limit(scope, amount, most, window),)}
                    )
                    fits = used(history, scope, window, time) + amount <= most
                    assert codes(answer) == (("Lease",) if fits else ("LIMIT_REACHED",)), (number, history)
                    if isinstance(answer, Lease):
                        last = max((one.at for one in history if one.scope == scope and not one.failed), default=0)
                        history.append(Drawn(scope, max(time, last), amount))
                        leases.append((answer, history[-1]))
                case ("fail" | "done" as how, which) if leases:
                    lease, drawn = leases.pop(which % len(leases))
                    case.settle(lease, State.FAILED if how == "fail" else State.DONE, now=now)
                    drawn.failed = how == "fail"
                case ("wait", seconds):
                    now += seconds
                case ("vacuum",):
                    assert ledger.vacuum(now - 20.0, now) == 0
                case _:
                    pass
        ledger.close()


@settings(max_examples=60)
@given(STEPS)
def test_a_limit_gives_exactly_what_the_plain_sum_leaves(steps: list[Any]) -> None:
    play(steps)


@pytest.mark.slow
@settings(max_examples=1500)
@given(STEPS)
def test_a_limit_gives_exactly_what_the_plain_sum_leaves_at_length(steps: list[Any]) -> None:
    play(steps)


# --- hours: every minute asked of the wall clock

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Africa/Casablanca",
    "UTC",
)
CHANGES = (  # seconds around which clocks change in one of them, and some other days
    1_774_746_000,  # 2026-03-29 Berlin
    1_792_890_000,  # 2026-10-25 Berlin
    1_772_953_200,  # 2026-03-08 New York
    1_793_512_800,  # 2026-11-01 New York
    1_775_314_800,  # 2026-04-05 Lord Howe, half an hour
    1_791_041_400,  # 2026-10-04 Lord Howe
    1_771_120_800,  # 2026-02-15 Casablanca, where Ramadan begins
    1_767_571_200,
)
HOURS = st.builds(
    Hours,
    days=st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    start=st.integers(0, 95).map(lambda quarter: quarter * 15),
    end=st.integers(1, 96).map(lambda quarter: quarter * 15),
    zone=st.sampled_from(ZONES),
).filter(lambda hours: hours.start != hours.end)


def on_the_wall(hours: Hours, second: int) -> bool:
    """The plain reading: what day and time does a clock there show, and is that in the hours of a day that was named?"""
    shown = datetime.fromtimestamp(second, ZoneInfo(hours.zone))
    minute = shown.hour * 60 + shown.minute
    ends = hours.end if hours.start < hours.end else hours.end + 1440
    return any((shown.weekday() - back) % 7 in hours.days and hours.start <= minute + back * 1440 < ends for back in (0, 1))


@settings(max_examples=150)
@given(st.lists(HOURS, min_size=1, max_size=3), st.sampled_from(CHANGES), st.integers(-2 * 86_400, 2 * 86_400))
def test_a_span_is_what_the_wall_clock_shows_minute_by_minute(found: list[Hours], change: int, offset: int) -> None:
    now = change + offset
    span = open_span(tuple(found), now)
    assert span is not None

    def is_open(second: int) -> bool:
        return any(on_the_wall(hours, second) for hours in found)

    assert is_open(now) is (span.start <= now)
    assert now < span.end
    assert span.start < span.end
    for second in range(now - now % 60 + 60, span.start, 60):
        assert not is_open(second), second
    inside = range(max(span.start, now - now % 60), min(span.end, span.start + 3 * 86_400), 60)
    assert all(is_open(second) for second in inside)
    assert is_open(span.end - 1)
    if span.start > now:
        assert not is_open(span.start - 1)
    if span.end - now < 86_400:
        assert not is_open(span.end)


# --- delegations: a chain never gives what a link before it did not

VALUES = ("a", "b", "c")
NARROWER = st.builds(
    Attenuation,
    count=st.one_of(st.none(), st.integers(0, 6)),
    constraints=st.dictionaries(st.sampled_from(["to", "of"]), st.lists(st.sampled_from(VALUES), max_size=3).map(tuple)),
    expires=st.sampled_from([0.0, 5.0, 9.0, 10.0, 11.0]),
)
GRANTS = st.builds(
    Grant,
    id=st.just("task/it.pay"),
    tool=st.just("it.pay"),
    count=st.integers(1, 5),
    window=st.sampled_from([0.0, 60.0]),
    constraints=st.sampled_from([{}, {"to": ("a", "b")}]).map(MappingProxyType),
    expires=st.sampled_from([8.0, 10.0]),
)
KEY = Ed25519PrivateKey.from_private_bytes(b"p" * 32)


def gives(grant: Grant, count: int, values: dict[str, str], now: float) -> bool:
    """Whether a grant would give a `count`-th call with these values at an instant."""
    fits = all(values.get(name) in allowed for name, allowed in grant.constraints.items())
    within = all(count <= bound.most for bound in grant.bounds)
    return fits and within and count <= grant.count and (not grant.expires or now < grant.expires)


CALLS = tuple(itertools.product(range(1, 7), [{"to": to, "of": of} for to in VALUES for of in VALUES], (4.9, 8.5, 10.5)))


def never_wider(before: Grant, after: Grant) -> None:
    for count, values, now in CALLS:
        assert not gives(after, count, values, now) or gives(before, count, values, now)


@given(GRANTS, st.lists(NARROWER, min_size=1, max_size=5))
def test_a_chain_of_attenuations_never_widens(grant: Grant, chain: list[Attenuation]) -> None:
    left = grant
    for number, narrower in enumerate(chain):
        found = delegate(left, Principal("t", "u", "agent", f"s-{number}"), f"d-{number}", narrower)
        if isinstance(found, Refused):
            assert isinstance(attenuate(left, narrower), Refused)
            continue
        never_wider(left, found)
        assert set(left.bounds) < set(found.bounds)
        assert found.lineage[:-1] == left.lineage
        left = found
    never_wider(grant, left)


@settings(max_examples=60)
@given(GRANTS, st.lists(NARROWER, min_size=1, max_size=4))
def test_a_chain_of_narrowed_tokens_never_widens_and_one_link_that_does_spoils_it(grant: Grant, chain: list[Attenuation]) -> None:
    first = delegate(grant, Principal("t", "u", "agent", "s-1"), "d-1", Attenuation())
    assert isinstance(first, Grant)
    token = seal(Delegated("d-1", first, "t", "u", "", (1, digest("p")), (("host", "Pay."),)), KEY)
    left: Grant | Refused = first
    for narrower in chain:
        found = narrow(token, KEY.public_key(), narrower)
        assert isinstance(found, str)
        token = found
        left = left if isinstance(left, Refused) else attenuate(left, narrower)
    opened = open_token(token, KEY.public_key(), 1.0, tenant="t", epoch=(1, digest("p")))
    if isinstance(left, Refused):
        assert codes(opened) == ("DELEGATION_VOID",)
    else:
        assert isinstance(opened, Delegated)
        never_wider(left, opened.grant)
        terms = {"count": left.count, "constraints": left.constraints, "expires": left.expires}
        assert replace(opened.grant, **terms) == opened.grant
