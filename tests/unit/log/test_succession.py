"""One key reigns at a time; each is introduced by the one before it, in the log."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import head_of, sign
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry
from cxi.log.envelope import key_id, seal
from cxi.log.finding import Broken, FindingKind
from cxi.log.succession import PAYLOAD_TYPE, introduce, read_introduction, succeed
from cxi.log.tree import Frontier, leaf_of

FIRST, SECOND, THIRD, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(4))


def log_of(*told: dict[str, Any] | None) -> list[ChainedEntry]:
    """A log in which each envelope is an introduction, and each None an entry of another kind."""
    found: list[ChainedEntry] = []
    previous = GENESIS
    for seq, envelope in enumerate(told, start=1):
        kind, body = (EntryType.READ, {"n": seq}) if envelope is None else (EntryType.KEY, {"introduction": envelope})
        found.append(ChainedEntry(seq, previous, float(seq), LogEntry(kind, "", "", body)))
        previous = found[-1].hash
    return found


def signed(rows: list[ChainedEntry], size: int, key: Ed25519PrivateKey) -> dict[str, Any]:
    tree = Frontier()
    for row in rows[:size]:
        tree.append(leaf_of(row.hash))
    return sign(head_of("cxi/t", rows[size - 1].hash if size else GENESIS, 1.0, tree), key)


def found(rows: list[ChainedEntry], *checkpoints: Any, pinned: Ed25519PrivateKey = FIRST) -> list[tuple[str, int]]:
    answer = verify(rows, checkpoints, [pinned.public_key()])
    return [(str(finding.kind), finding.seq) for finding in answer.findings] if isinstance(answer, Broken) else []


TWICE = log_of(None, introduce(FIRST, SECOND.public_key(), 2.0), None, introduce(SECOND, THIRD.public_key(), 4.0), None)


def test_whoever_pinned_the_first_key_follows_it_to_the_last() -> None:
    checkpoints = [signed(TWICE, 1, FIRST), signed(TWICE, 2, SECOND), signed(TWICE, 3, SECOND), signed(TWICE, 5, THIRD)]
    answer = verify(TWICE, checkpoints, [FIRST.public_key()])
    assert answer == Verified(5, TWICE[-1].hash, 5)


def test_whoever_pinned_a_later_key_needs_its_signature_for_what_was_before() -> None:
    old = [signed(TWICE, 1, FIRST), signed(TWICE, 3, SECOND)]
    assert verify(TWICE, [*old, signed(TWICE, 5, THIRD)], [THIRD.public_key()]) == Verified(5, TWICE[-1].hash, 5)
    assert verify(TWICE, old, [THIRD.public_key()]) == Verified(5, TWICE[-1].hash, 0), "what the old keys signed does not count"
    assert verify(TWICE, old, [SECOND.public_key()]) == Verified(5, TWICE[-1].hash, 3)


@pytest.mark.parametrize(("size", "key"), [(2, FIRST), (5, FIRST), (4, SECOND), (5, SECOND)])
def test_a_retired_key_s_later_signature_is_a_finding(size: int, key: Ed25519PrivateKey) -> None:
    assert found(TWICE, signed(TWICE, size, key)) == [("retired-key", size)]


@pytest.mark.parametrize(("size", "key"), [(0, SECOND), (1, SECOND), (3, THIRD)])
def test_a_key_vouches_for_nothing_that_ends_before_its_introduction(size: int, key: Ed25519PrivateKey) -> None:
    assert found(TWICE, signed(TWICE, size, key)) == [("unknown-key", size)]


def test_a_key_that_nobody_introduced_is_a_finding() -> None:
    assert found(TWICE, signed(TWICE, 5, STRANGER)) == [("unknown-key", 0)]
    planted = log_of(None, introduce(STRANGER, SECOND.public_key(), 2.0), None)
    assert found(planted, signed(planted, 3, SECOND)) == [("unknown-key", 0), ("unknown-key", 2)]


def test_a_retired_key_introduces_nobody_and_comes_back_by_nobody() -> None:
    again = log_of(introduce(FIRST, SECOND.public_key(), 1.0), introduce(FIRST, STRANGER.public_key(), 2.0), None)
    assert found(again) == [("retired-key", 2)]
    back = log_of(introduce(FIRST, SECOND.public_key(), 1.0), introduce(SECOND, FIRST.public_key(), 2.0), None)
    assert found(back) == [("retired-key", 2)]
    itself = log_of(introduce(FIRST, FIRST.public_key(), 1.0))
    assert found(itself) == [("retired-key", 1)]


def test_an_introduction_that_was_altered_or_is_none_is_named_at_its_place() -> None:
    whole = introduce(FIRST, SECOND.public_key(), 1.0)
    forged = {**whole, "signatures": introduce(STRANGER, SECOND.public_key(), 1.0)["signatures"]}
    for envelope, kind in (
        (forged, FindingKind.UNKNOWN_KEY),
        ({**whole, "signatures": [{**whole["signatures"][0], "sig": "A" * 86 + "=="}]}, FindingKind.FORGED),  # type: ignore[index, dict-item, call-overload]
        ({}, FindingKind.MALFORMED),
        (seal(PAYLOAD_TYPE, {"v": 1}, FIRST), FindingKind.MALFORMED),
        (seal("text/plain", {"v": 1}, FIRST), FindingKind.MALFORMED),
    ):
        rows = log_of(None, envelope)  # type: ignore[arg-type]
        assert found(rows) == [(str(kind), 2)]


def test_an_introduction_names_both_keys() -> None:
    answer = read_introduction(introduce(FIRST, SECOND.public_key(), 7.0))
    assert not isinstance(answer, Broken)
    assert (key_id(answer.by), key_id(answer.key), answer.time) == (key_id(FIRST.public_key()), key_id(SECOND.public_key()), 7.0)


def test_what_was_introduced_before_the_log_began_reigns_from_its_first_entry() -> None:
    rows = log_of(None, None)
    before = [introduce(FIRST, SECOND.public_key(), 0.0)]
    assert verify(rows, [signed(rows, 2, SECOND)], [FIRST.public_key()], introductions=before) == Verified(2, rows[-1].hash, 2)
    assert isinstance(verify(rows, [signed(rows, 2, SECOND)], [FIRST.public_key()]), Broken)
    reigns, findings = succeed([FIRST.public_key()], [(0, before[0]), (3, before[0])])
    assert not findings
    assert reigns[key_id(FIRST.public_key())].until == reigns[key_id(SECOND.public_key())].first == 3
