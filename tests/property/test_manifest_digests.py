"""Two manifests that differ in any one binding have different digests; two that do not have one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cxi.authority.grant import Grant, mint
from cxi.canonical import canonicalize, digest
from cxi.manifest import (
    Action,
    Assurance,
    CanonicalCall,
    Commitment,
    FieldEvidence,
    FieldValue,
    Invocation,
    Manifest,
    Principal,
    Regime,
    Role,
)
from cxi.values.base import Value

_text = st.text(st.characters(codec="utf-8"), max_size=8)
_name = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
_digest = _text.map(digest)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)


def _leaf(path: str, role: Role, type: str, value: Any) -> FieldValue:
    return FieldValue(path, path, role, Value(type, value, value))


@st.composite
def _leaves(draw: st.DrawFn) -> tuple[FieldValue, ...]:
    paths = draw(st.lists(_name, min_size=1, max_size=4, unique=True))
    found = []
    for path in paths:
        role = draw(st.sampled_from(list(Role)))
        value = draw(_text if role in (Role.PROTECTED, Role.FIXED) else _json)
        found.append(_leaf(path, role, draw(st.sampled_from(["RepoPath", "Text", "GitRef"])), value))
    return tuple(found)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    fields, derived = draw(_leaves()), draw(_leaves())
    derived = tuple(replace(leaf, path=f"query.{leaf.path}", contract=f"query.{leaf.path}") for leaf in derived)
    call = CanonicalCall(draw(_name), draw(_name), fields, {})
    principal = Principal(draw(_text), draw(_text), draw(_text), draw(_text))
    action = Action(principal, draw(_digest), draw(_digest), call, derived)
    evidence = tuple(
        FieldEvidence(leaf.path, draw(st.sampled_from(list(Regime))), draw(st.sampled_from(["request", "release"])), draw(_text))
        for leaf in fields
        if leaf.role is Role.PROTECTED
    )
    commitment = Commitment(
        draw(_name),
        draw(_digest),
        draw(_digest),
        tuple(draw(st.lists(_text, max_size=2))),
        draw(st.sampled_from(list(Assurance))),
        (draw(st.integers(1, 99)), draw(_digest)),
        principal.agent,
    )
    invocation = Invocation(
        draw(_text),
        draw(_digest),
        draw(st.integers(1, 99)),
        draw(_text),
        action.event_key(),
        draw(st.sampled_from([""]) | _digest),
    )
    return Manifest(action, evidence, commitment, invocation, draw(st.none() | _digest))


def mutants(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """The manifest with one binding changed, for each binding."""
    action, effect, invocation = manifest.action, manifest.effect, manifest.invocation

    def acting(**changes: Any) -> Manifest:
        return replace(manifest, action=replace(action, **changes))

    for name in ("tenant", "user", "agent", "session"):
        yield name, acting(principal=replace(action.principal, **{name: getattr(action.principal, name) + "x"}))
    yield "server", acting(server_identity=digest("another server"))
    yield "definition", acting(tool_definition=digest("another definition"))
    for name in ("server", "tool"):
        yield f"name of the {name}", acting(call=replace(action.call, **{name: getattr(action.call, name) + "x"}))
    for group in ("fields", "derived"):
        leaves = action.call.fields if group == "fields" else action.derived

        def regroup(changed: tuple[FieldValue, ...], group: str = group) -> Manifest:
            return acting(call=replace(action.call, fields=changed)) if group == "fields" else acting(derived=changed)

        for index, leaf in enumerate(leaves):
            before, after = leaves[:index], leaves[index + 1 :]
            value = replace(leaf.value, canonical=[leaf.value.canonical])
            yield f"value of a {leaf.role} leaf", regroup((*before, replace(leaf, value=value), *after))
            yield f"path of a {leaf.role} leaf", regroup((*before, replace(leaf, path=leaf.path + "x"), *after))
            yield f"a {leaf.role} leaf less", regroup((*before, *after))
            if leaf.role in (Role.PROTECTED, Role.FIXED):
                yield "type of a leaf", regroup((*before, replace(leaf, value=replace(leaf.value, type="Url")), *after))
                yield "role of a leaf", regroup((*before, replace(leaf, role=Role.PAYLOAD), *after))
    for index, item in enumerate(manifest.evidence):
        for name, other in (("kind", "choice"), ("reference", item.reference + "x"), ("path", item.path + "x")):
            changed = list(manifest.evidence)
            changed[index] = replace(item, **{name: other})
            yield f"{name} of evidence", replace(manifest, evidence=tuple(changed))
        regime = next(regime for regime in Regime if regime is not item.regime)
        changed = list(manifest.evidence)
        changed[index] = replace(item, regime=regime)
        yield "regime", replace(manifest, evidence=tuple(changed))
    for name, other in (
        ("adapter", effect.adapter + "x"),
        ("snapshot", digest("another snapshot")),
        ("atoms", digest("other atoms")),
        ("authorized_by", (*effect.authorized_by, "x")),
        ("assurance", next(item for item in Assurance if item is not effect.assurance)),
        ("policy_epoch", (effect.policy_epoch[0] + 1, effect.policy_epoch[1])),
        ("policy_epoch", (effect.policy_epoch[0], digest("another epoch"))),
    ):
        yield f"effect {name}", replace(manifest, effect=replace(effect, **{name: other}))
    for name in ("grant", "nonce"):
        changed_invocation = replace(invocation, **{name: getattr(invocation, name) + "x"})
        yield name, replace(manifest, invocation=changed_invocation)
    yield "sequence", replace(manifest, invocation=replace(invocation, sequence=invocation.sequence + 1))
    for name in ("capability", "event_key", "idempotency_key"):
        yield name, replace(manifest, invocation=replace(invocation, **{name: digest("another")}))
    yield "carriage", replace(manifest, carriage=digest("another carriage"))
    yield "version", replace(manifest, version=manifest.version + 1)


@given(manifests())
def test_a_manifest_with_one_binding_changed_has_another_digest(manifest: Manifest) -> None:
    for what, mutant in mutants(manifest):
        assert mutant.digest != manifest.digest, what


@given(manifests(), manifests())
def test_two_manifests_have_one_digest_only_if_their_bytes_are_equal(one: Manifest, two: Manifest) -> None:
    same = canonicalize(one.to_json()) == canonicalize(two.to_json())
    assert (one.digest == two.digest) is same


@given(manifests())
def test_a_digest_does_not_depend_on_the_order_of_leaves_or_on_how_often_it_is_asked(manifest: Manifest) -> None:
    action = manifest.action
    call = replace(action.call, fields=tuple(reversed(action.call.fields)))
    turned = replace(manifest, action=replace(action, call=call), evidence=tuple(reversed(manifest.evidence)))
    assert turned.digest == manifest.digest == manifest.digest
    assert replace(turned).digest == manifest.digest


@given(manifests())
def test_what_is_asked_holds_nothing_of_the_event(manifest: Manifest) -> None:
    """The action digest is equal in every session and for every draw."""
    action = manifest.action
    other = replace(action, principal=replace(action.principal, session="another"))
    assert other.digest == action.digest
    assert other.event_key() != action.event_key() or action.principal.session == "another"


@given(manifests(), _json)
def test_a_payload_makes_another_action_and_no_other_event(manifest: Manifest, payload: Any) -> None:
    action = manifest.action
    leaves = action.call.fields
    index = next((index for index, leaf in enumerate(leaves) if leaf.role in (Role.PAYLOAD, Role.OPAQUE)), None)
    assume(index is not None)
    assert index is not None
    leaf = leaves[index]
    assume(canonicalize(leaf.value.canonical, floats=True) != canonicalize(payload, floats=True))
    changed = replace(leaf, value=replace(leaf.value, canonical=payload))
    other = replace(action, call=replace(action.call, fields=(*leaves[:index], changed, *leaves[index + 1 :])))
    assert other.digest != action.digest
    assert other.event_key() == action.event_key()


@given(st.tuples(_text, _text, _digest, _digest, st.integers(1, 9), _text, st.integers(1, 10**6)))
def test_each_part_of_a_capability_is_in_its_digest(parts: tuple[Any, ...]) -> None:
    grant, session, action, effect, sequence, nonce, expires = parts
    found = mint(
        Grant(grant, "t.t", 1), session=session, action=action, effect=effect, sequence=sequence, nonce=nonce, expires=expires
    )
    for name in ("grant", "session", "nonce"):
        assert replace(found, **{name: getattr(found, name) + "x"}).digest != found.digest
    for name in ("action", "effect"):
        assert replace(found, **{name: digest("another")}).digest != found.digest
    for name in ("sequence", "expires"):
        assert replace(found, **{name: getattr(found, name) + 1}).digest != found.digest


@given(manifests())
def test_each_part_of_an_effect_commitment_that_an_approval_binds_is_in_its_digest(manifest: Manifest) -> None:
    effect = manifest.effect
    for changed in (
        replace(effect, atoms=digest("other")),
        replace(effect, snapshot=digest("other")),
        replace(effect, adapter=effect.adapter + "x"),
        replace(effect, policy_epoch=(effect.policy_epoch[0] + 1, effect.policy_epoch[1])),
        replace(effect, principal=effect.principal + "x"),
    ):
        assert changed.digest != effect.digest


@given(manifests())
def test_bytes_that_are_put_together_are_those_of_the_whole(manifest: Manifest) -> None:
    assert manifest.canonical == canonicalize(manifest.to_json())
    assert manifest.digest == digest(manifest.to_json())
    assert manifest.action.digest == digest(manifest.action.to_json())
