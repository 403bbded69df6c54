"""Delegations: attenuated only, drawn from the giver's own right, and sealed for other hosts."""

from __future__ import annotations

import base64
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import biscuit_auth
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.authority.delegation import Attenuation, Delegated, attenuate, delegate, narrow, open_token, seal
from cxi.authority.desk import Denial
from cxi.authority.grant import Across, Batch, Bound, Grant, Total
from cxi.authority.schedule import Hours
from cxi.canonical import canonicalize, digest
from cxi.errors import Refused
from cxi.ledger.base import Requirement, scope_of
from cxi.manifest import Principal

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key()
EPOCH = (3, digest("policies"))
ANA = Principal("local", "ana", "maintainer", "s-1")
PAY = Grant("shop/bank.pay", "bank.pay", 5, expires=100.0, constraints=MappingProxyType({"to": ("bob", "eve")}))
FULL = replace(
    PAY,
    window=60.0,
    across=Across.USER,
    batches=(Batch("rows", 3),),
    totals=(Total("amount", 500, 2, "EUR", "currency", 60.0),),
    after=(Requirement("shop/bank.check", 2),),
    not_before=1.25,
    hours=(Hours((0, 1), 60, 120, "UTC"),),
    retries=2,
)


def given(grant: Grant = PAY, **narrower: Any) -> Grant:
    found = delegate(grant, ANA, "d-1", Attenuation(**narrower))
    assert isinstance(found, Grant), found
    return found


def package(grant: Grant | None = None, **other: Any) -> Delegated:
    request = (("host-api:host", "Pay `bob`."), ("control-socket:uid", "And `eve`."))
    parts: dict[str, Any] = {"tenant": "local", "user": "ana", "task": "shop", "epoch": EPOCH, "request": request}
    seen = {"influences": ("tool-result:it.look",), "denials": (Denial("x", "", "ana", 2.0, "main"),)}
    return Delegated("d-1", grant or given(), **(parts | seen | other))


def opened(token: str, now: float = 2.0, **other: Any) -> Any:
    found = open_token(token, other.pop("key", PUBLIC), now, **({"tenant": "local", "epoch": EPOCH} | other))
    return found.codes[0] if isinstance(found, Refused) else found


def narrowed(token: str, **narrower: Any) -> str:
    found = narrow(token, PUBLIC, Attenuation(**narrower))
    assert isinstance(found, str), found
    return found


# --- attenuation


@pytest.mark.parametrize(
    ("narrower", "found"),
    [
        ({}, (5, 100.0, {"to": ("bob", "eve")})),
        ({"count": 1}, (1, 100.0, {"to": ("bob", "eve")})),
        ({"count": 5}, (5, 100.0, {"to": ("bob", "eve")})),
        ({"expires": 99.0}, (5, 99.0, {"to": ("bob", "eve")})),
        ({"expires": 100.0}, (5, 100.0, {"to": ("bob", "eve")})),
        ({"constraints": {"to": ("eve",)}}, (5, 100.0, {"to": ("eve",)})),
        ({"constraints": {"amount": (1, 2)}}, (5, 100.0, {"to": ("bob", "eve"), "amount": (1, 2)})),
        ({"constraints": {"to": ()}}, (5, 100.0, {"to": ()})),
    ],
)
def test_less_is_left(narrower: dict[str, Any], found: Any) -> None:
    left = attenuate(PAY, Attenuation(**narrower))
    assert isinstance(left, Grant)
    assert (left.count, left.expires, dict(left.constraints)) == found


@pytest.mark.parametrize(
    "narrower",
    [
        {"count": 6},
        {"count": 0},
        {"count": -1},
        {"expires": 100.1},
        {"expires": -1.0},
        {"constraints": {"to": ("bob", "mallory")}},
        {"constraints": {"to": (True,)}},
        {"count": 6, "expires": 101.0},
    ],
)
def test_more_is_refused_whole(narrower: dict[str, Any]) -> None:
    found = attenuate(PAY, Attenuation(**narrower))
    assert isinstance(found, Refused)
    assert set(found.codes) == {"DELEGATION_VOID"}


def test_a_right_without_an_end_may_get_one() -> None:
    left = attenuate(replace(PAY, expires=0.0), Attenuation(expires=7.0))
    assert isinstance(left, Grant)
    assert left.expires == 7.0


def test_a_delegated_grant_draws_from_its_givers_own_right() -> None:
    found = given(FULL, count=2)
    own = ("s-1", "shop/bank.pay")
    assert found.bounds == (
        Bound(scope_of(*own), 5, 60.0, own),
        Bound("user:ana/shop/bank.pay", 5, 60.0),
        Bound("delegation:d-1", 2, 60.0),
    )
    assert (found.lineage, found.delegations) == ((own,), ("d-1",))
    assert found.totals[0].scope == "user:ana/shop/bank.pay#amount:EUR2"
    assert found.after == (Requirement("shop/bank.check", 2, "s-1"),)
    assert (found.across, found.batches, found.hours, found.retries) == (Across.SESSION, FULL.batches, FULL.hours, 2)


def test_a_delegation_of_a_delegation_draws_from_every_giver() -> None:
    first = given(count=4)
    second = delegate(first, replace(ANA, session="s-2", agent="helper"), "d-2", Attenuation(count=3))
    assert isinstance(second, Grant)
    assert second.lineage == (("s-1", "shop/bank.pay"), ("s-2", "d-1/bank.pay"))
    assert second.delegations == ("d-1", "d-2")
    assert [(bound.scope, bound.most) for bound in second.bounds] == [
        (scope_of("s-1", "shop/bank.pay"), 5),
        ("delegation:d-1", 4),
        (scope_of("s-2", "d-1/bank.pay"), 4),
        ("delegation:d-2", 3),
    ]


# --- tokens


def test_a_token_gives_what_was_sealed() -> None:
    for grant in (given(), given(FULL, count=2)):
        found = opened(seal(package(grant), KEY))
        assert found.grant.delegations[0] == "d-1"
        assert len(found.grant.delegations) == 2
        assert replace(found, grant=replace(found.grant, delegations=("d-1",))) == package(grant)
    request = found.trusted_request()
    assert request.text == "Pay `bob`.\n\nAnd `eve`."
    assert all(segment.trusted for segment in request.segments)


def test_a_holder_narrows_a_token_without_the_key_and_each_narrowing_can_be_revoked() -> None:
    token = seal(package(), KEY)
    twice = narrowed(narrowed(token, count=3, constraints={"to": ("bob",)}), count=2, expires=50.0)
    found = opened(twice)
    assert (found.grant.count, found.grant.expires, dict(found.grant.constraints)) == (2, 50.0, {"to": ("bob",)})
    assert len(found.grant.delegations) == 4
    scopes = [(bound.scope, bound.most) for bound in found.grant.bounds[-3:]]
    last = [(f"delegation:{name}", most) for name, most in zip(found.grant.delegations[2:], (3, 2), strict=True)]
    assert scopes == [("delegation:d-1", 5), *last]
    assert opened(token).grant.count == 5


def test_nothing_of_a_token_is_rounded_wider() -> None:
    grant = replace(given(FULL), expires=9.0009, not_before=1.0001, window=60.0001)
    found = opened(seal(package(grant), KEY)).grant
    assert (found.expires, found.not_before, found.window) == (9.0, 1.001, 60.001)


def test_a_right_without_an_end_does_not_leave_the_host() -> None:
    with pytest.raises(ValueError, match="end"):
        seal(package(given(replace(PAY, expires=0.0))), KEY)


@pytest.mark.parametrize(
    ("other", "now", "code"),
    [
        ({}, 99.999, None),
        ({}, 100.0, "EXPIRED"),
        ({"epoch": (4, digest("policies"))}, 2.0, "EPOCH_CHANGED"),
        ({"epoch": (3, digest("others"))}, 2.0, "EPOCH_CHANGED"),
        ({"tenant": "other"}, 2.0, "DELEGATION_VOID"),
        ({"key": Ed25519PrivateKey.from_private_bytes(b"o" * 32).public_key()}, 2.0, "DELEGATION_VOID"),
    ],
)
def test_a_token_holds_for_its_time_its_epoch_its_tenant_and_its_key(other: dict[str, Any], now: float, code: str | None) -> None:
    found = opened(seal(package(), KEY), now, **other)
    assert found == code if code else isinstance(found, Delegated)


@pytest.mark.parametrize("text", ["", "x", "é", "\ud800", "A" * 400_000, " ", "\x00"])
def test_text_that_is_no_token_is_refused(text: str) -> None:
    assert opened(text) == "DELEGATION_VOID"


def test_every_changed_byte_of_a_token_is_seen() -> None:
    raw = base64.urlsafe_b64decode(narrowed(seal(package(), KEY), count=1))
    for index in range(0, len(raw), 7):
        changed = raw[:index] + bytes([raw[index] ^ 1]) + raw[index + 1 :]
        assert opened(base64.urlsafe_b64encode(changed).decode()) == "DELEGATION_VOID", index


def test_a_token_that_was_narrowed_too_often_is_refused() -> None:
    token = seal(package(), KEY)
    for _ in range(15):
        token = narrowed(token)
    assert isinstance(opened(token), Delegated)
    found = biscuit_auth.Biscuit.from_base64(token, _root()).append(_block(b'{"constraints":{},"count":null,"expires_ms":0}'))
    assert opened(found.to_base64()) == "DELEGATION_VOID"


# --- what a holder may write into a block of its own


def _root() -> Any:
    return biscuit_auth.PublicKey.from_bytes(PUBLIC.public_bytes_raw(), biscuit_auth.Algorithm.Ed25519)


def _block(body: bytes) -> Any:
    return biscuit_auth.BlockBuilder("cxi_attenuation({body});", {"body": body})


def _append(block: Any) -> str:
    return str(biscuit_auth.Biscuit.from_base64(seal(package(), KEY), _root()).append(block).to_base64())


@pytest.mark.parametrize(
    "body",
    [
        {"count": 6, "constraints": {}, "expires_ms": 0},
        {"count": True, "constraints": {}, "expires_ms": 0},
        {"count": "1", "constraints": {}, "expires_ms": 0},
        {"count": 0, "constraints": {}, "expires_ms": 0},
        {"count": 1, "constraints": {"to": ["bob", "mallory"]}, "expires_ms": 0},
        {"count": 1, "constraints": {"to": "bob"}, "expires_ms": 0},
        {"count": 1, "constraints": ["to"], "expires_ms": 0},
        {"count": 1, "constraints": {}, "expires_ms": 100_001},
        {"count": 1, "constraints": {}, "expires_ms": -1},
        {"count": 1, "constraints": {}, "expires_ms": None},
        {"count": 1, "constraints": {}},
        {"count": 1, "constraints": {}, "expires_ms": 0, "tool": "bank.close"},
        [],
        "count",
        None,
    ],
)
def test_a_holders_block_that_is_wider_or_says_anything_else_is_refused(body: Any) -> None:
    assert opened(_append(_block(canonicalize(body)))) == "DELEGATION_VOID"


@pytest.mark.parametrize("body", [b"{", b"", b'{"count":1.5,"constraints":{},"expires_ms":0}', b'{"count":1,"count":1}', b"\xff"])
def test_a_holders_block_that_is_no_canonical_json_is_refused(body: bytes) -> None:
    assert opened(_append(_block(body))) == "DELEGATION_VOID"


@pytest.mark.parametrize(
    "code",
    [
        "",
        "check if time($t), $t < 2000-01-01T00:00:00Z;",
        'right("everything");',
        "cxi_delegation(hex:7b7d);",
        "cxi_attenuation(hex:7b7d); cxi_attenuation(hex:7b7d);",
        'cxi_attenuation("{}");',
        "cxi_attenuation($x) <- thing($x);",
    ],
)
def test_a_block_of_another_kind_is_refused(code: str) -> None:
    assert opened(_append(biscuit_auth.BlockBuilder(code))) == "DELEGATION_VOID"


def test_a_third_partys_block_is_refused() -> None:
    other = biscuit_auth.KeyPair()
    token = biscuit_auth.Biscuit.from_base64(seal(package(), KEY), _root())
    block = token.third_party_request().create_block(other.private_key, _block(b'{"constraints":{},"count":1,"expires_ms":0}'))
    found = token.append_third_party(other.public_key, block)
    assert opened(str(found.to_base64())) == "DELEGATION_VOID"


def test_another_token_of_the_same_key_is_no_delegation() -> None:
    private = biscuit_auth.PrivateKey.from_bytes(KEY.private_bytes_raw(), biscuit_auth.Algorithm.Ed25519)
    for code in ('user("ana");', "cxi_attenuation(hex:7b7d);", "cxi_delegation(hex:7b7d);"):
        assert opened(str(biscuit_auth.BiscuitBuilder(code).build(private).to_base64())) == "DELEGATION_VOID"
