"""Whatever is done to a log before its last checkpoint is seen, and named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import digest
from cxi.log.chain import Verified, fold, verify, verify_all
from cxi.log.checkpoint import Head, sign
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry
from cxi.log.finding import Broken, FindingKind
from cxi.log.tree import leaf_of

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
COUNT = 9


def chain_of(count: int, *, salt: str = "") -> list[ChainedEntry]:
    found: list[ChainedEntry] = []
    previous = GENESIS
    for seq in range(1, count + 1):
        found.append(ChainedEntry(seq, previous, float(seq), LogEntry(EntryType.READ, f"a-{seq}", "s", {"n": seq, "salt": salt})))
        previous = found[-1].hash
    return found


WHOLE = chain_of(COUNT)


def signed(size: int, *, entries: list[ChainedEntry] = WHOLE, key: Ed25519PrivateKey = KEY, origin: str = "cxi/t") -> object:
    return sign(Head(origin, size, entries[size - 1].hash if size else GENESIS, 1.0), key)


def found(entries: list[ChainedEntry], *checkpoints: object) -> list[tuple[str, int]]:
    answer = verify(entries, checkpoints, [KEY.public_key()])  # type: ignore[arg-type]
    return [(str(finding.kind), finding.seq) for finding in answer.findings] if isinstance(answer, Broken) else []


def test_a_whole_log_verifies_and_says_how_far_signatures_reach() -> None:
    answer = verify(WHOLE, [signed(3), signed(7), signed(0)], [OTHER.public_key(), KEY.public_key()])  # type: ignore[list-item]
    assert answer == Verified(COUNT, WHOLE[-1].hash, 7)


@given(st.sets(st.integers(min_value=1, max_value=COUNT), min_size=1, max_size=COUNT))
def test_whatever_is_removed_before_a_checkpoint_is_named(gone: set[int]) -> None:
    left = [entry for entry in WHOLE if entry.seq not in gone]
    highest = max((entry.seq for entry in left), default=0)
    answer = found(left, signed(COUNT))
    starts = {seq for seq in gone if seq < highest and seq - 1 not in gone}
    assert {seq for kind, seq in answer if kind == "removed"} == starts
    assert (("truncated", highest + 1) in answer) == (highest < COUNT)
    assert not [kind for kind, _ in answer if kind not in ("removed", "truncated")]


@given(st.permutations(WHOLE))
def test_whatever_is_reordered_is_named(order: list[ChainedEntry]) -> None:
    answer = found(order)
    late = {entry.seq for at, entry in enumerate(order) if any(before.seq > entry.seq for before in order[:at])}
    assert set(answer) == {("reordered", seq) for seq in late}


@given(
    st.integers(min_value=1, max_value=COUNT),
    st.sampled_from(["time", "kind", "call", "session", "body", "previous"]),
)
def test_whatever_is_altered_before_a_checkpoint_is_named_and_nothing_else_is(seq: int, what: str) -> None:
    entry = WHOLE[seq - 1]
    altered = {
        "time": replace(entry, time=entry.time + 0.001),
        "kind": replace(entry, entry=replace(entry.entry, kind=EntryType.ALARM)),
        "call": replace(entry, entry=replace(entry.entry, call="a-0")),
        "session": replace(entry, entry=replace(entry.entry, session="t")),
        "body": replace(entry, entry=replace(entry.entry, body={})),
        "previous": replace(entry, previous=digest("x")),
    }[what]
    answer = found([*WHOLE[: seq - 1], altered, *WHOLE[seq:]], signed(COUNT))
    assert answer == [("altered", seq)]


def test_a_log_rewritten_from_anywhere_contradicts_its_checkpoint() -> None:
    assert found(chain_of(COUNT, salt="another"), signed(4)) == [("altered", 4)]


def test_an_inserted_entry_is_named() -> None:
    extra = replace(WHOLE[3], entry=replace(WHOLE[3].entry, body={"planted": True}))
    assert ("repeated", 4) in found([*WHOLE[:4], extra, *WHOLE[4:]])
    planted = ChainedEntry(COUNT + 1, digest("nothing"), 1.0, WHOLE[0].entry)
    assert found([*WHOLE, planted], signed(COUNT)) == [("altered", COUNT + 1)]


def test_an_entry_that_claims_no_place_or_holds_no_json_is_named() -> None:
    assert ("altered", 0) in found([replace(WHOLE[0], seq=0), *WHOLE])
    odd = replace(WHOLE[4], entry=replace(WHOLE[4].entry, body={"x": 1.5}))
    assert ("altered", 5) in found([*WHOLE[:4], odd, *WHOLE[5:]])
    assert ("altered", 5) in found([*WHOLE[:4], replace(odd, previous=GENESIS), *WHOLE[5:]])


@pytest.mark.parametrize(
    ("envelope", "kind"),
    [
        (signed(3, key=OTHER), FindingKind.UNKNOWN_KEY),
        ({**signed(3), "payload": signed(4)["payload"]}, FindingKind.FORGED),  # type: ignore[dict-item, index]
        ({**signed(3), "payloadType": "text/plain"}, FindingKind.MALFORMED),  # type: ignore[dict-item]
        ({}, FindingKind.MALFORMED),
        (None, FindingKind.MALFORMED),
        ({"payload": "?", "payloadType": "application/vnd.cxi.checkpoint+json", "signatures": [{}]}, FindingKind.MALFORMED),
    ],
)
def test_a_checkpoint_that_does_not_hold_is_named(envelope: object, kind: FindingKind) -> None:
    assert found(WHOLE, envelope) == [(str(kind), 0)]


def test_checkpoints_of_two_logs_are_not_of_one() -> None:
    assert found(WHOLE, signed(2), signed(3, origin="cxi/other")) == [("malformed", 0)]


# --- several logs under one set of keys


def test_each_log_is_verified_by_itself_and_shown_to_who_asked_for_it() -> None:
    other = chain_of(4, salt="other")
    checkpoints = [signed(COUNT, origin="cxi/a"), signed(4, entries=other, origin="cxi/b")]
    leaves: list[bytes] = []
    answers = verify_all(
        {"cxi/a": WHOLE, "cxi/b": other},
        checkpoints,  # type: ignore[arg-type]
        [KEY.public_key()],
        show={"cxi/b": leaves.append},
    )
    assert answers == {"cxi/a": Verified(COUNT, WHOLE[-1].hash, COUNT), "cxi/b": Verified(4, other[-1].hash, 4)}
    assert leaves == [leaf_of(entry.hash) for entry in other]
    assert fold(answers) == Verified(COUNT + 4, "", COUNT + 4)
    assert fold({"cxi/a": answers["cxi/a"]}) == answers["cxi/a"]


def test_a_log_that_only_a_checkpoint_knows_of_is_truncated_and_named() -> None:
    answers = verify_all({"cxi/a": WHOLE}, [signed(3, origin="cxi/gone"), {}, None], [KEY.public_key()])  # type: ignore[list-item]
    named = {name: answer.findings[0] for name, answer in answers.items() if isinstance(answer, Broken)}
    assert {name: (str(finding.kind), finding.seq) for name, finding in named.items()} == {
        "cxi/gone": ("truncated", 1),
        "": ("malformed", 0),
    }
    whole = fold(answers)
    assert isinstance(whole, Broken)
    assert any(finding.detail.startswith("cxi/gone: ") for finding in whole.findings)
