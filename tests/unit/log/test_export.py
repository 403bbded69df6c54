"""An export verifies by a key alone, whole or in part; what was done to it is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import canonicalize
from cxi.log.chain import Verified
from cxi.log.checkpoint import head_of, sign
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry
from cxi.log.export import verify_export, write_export
from cxi.log.finding import Broken
from cxi.log.growth import verify_growth
from cxi.log.note import write_note
from cxi.log.proof import Consistent, consistency
from cxi.log.succession import introduce
from cxi.log.tree import Frontier, leaf_of, write_digest

KEY, NEXT, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(3))
ORIGIN = "cxi/t"


def chain_of(count: int) -> list[ChainedEntry]:
    found: list[ChainedEntry] = []
    previous = GENESIS
    for seq in range(1, count + 1):
        found.append(ChainedEntry(seq, previous, float(seq), LogEntry(EntryType.READ, f"a-{seq}", "s", {"n": seq})))
        previous = found[-1].hash
    return found


def envelope(rows: list[ChainedEntry], size: int, key: Ed25519PrivateKey = KEY) -> dict[str, Any]:
    tree = Frontier()
    for row in rows[:size]:
        tree.append(leaf_of(row.hash))
    return sign(head_of(ORIGIN, rows[size - 1].hash if size else GENESIS, 1.0, tree), key)


def lines_of(rows: list[ChainedEntry], keep: Callable[[ChainedEntry], bool] = lambda _entry: True) -> list[bytes]:
    return list(write_export(ORIGIN, len(rows), [envelope(rows, len(rows))], [], rows, keep))


def found(lines: list[bytes], key: Ed25519PrivateKey = KEY) -> list[tuple[str, int]]:
    answer = verify_export(lines, [key.public_key()])
    return [(str(finding.kind), finding.seq) for finding in answer.findings] if isinstance(answer, Broken) else []


@given(st.integers(0, 40), st.data())
def test_any_part_of_a_log_verifies_against_the_root_of_the_whole(count: int, data: st.DataObject) -> None:
    rows = chain_of(count)
    shown = data.draw(st.sets(st.integers(1, count))) if count else set()
    lines = lines_of(rows, lambda entry: entry.seq in shown)
    answer = verify_export(lines, [KEY.public_key()])
    head = rows[-1].hash if count in shown else "" if count else GENESIS
    assert answer == Verified(count, head, count)
    assert sum(b'"hash"' in line for line in lines) == len(shown)
    hidden = [line for line in lines if b'"skipped"' in line]
    assert all(f'"n":{seq}}}'.encode() not in line for line in hidden for seq in range(1, count + 1))


@given(st.integers(3, 20), st.data())
def test_what_is_changed_in_a_part_is_found(count: int, data: st.DataObject) -> None:
    rows = chain_of(count)
    shown = data.draw(st.sets(st.integers(1, count), min_size=1))
    lines = lines_of(rows, lambda entry: entry.seq in shown)
    at = data.draw(st.integers(2, len(lines) - 1))
    seq = json.loads(lines[at]).get("seq") or json.loads(lines[at])["skipped"]["first"]
    assert found(lines[:at] + lines[at + 1 :]), "a line is missing"
    if b'"skipped"' in lines[at]:
        run = json.loads(lines[at])
        run["skipped"]["trees"][0] = "sha256:" + "0" * 64
        assert found([*lines[:at], canonicalize(run) + b"\n", *lines[at + 1 :]]) == [("altered", count)]
    else:
        row = json.loads(lines[at])
        row["body"] = {"n": 0}
        assert ("altered", seq) in found([*lines[:at], canonicalize(row) + b"\n", *lines[at + 1 :]])
        stated = ChainedEntry(seq, row["previous"], row["time_ms"] / 1000, LogEntry(EntryType.READ, row["call"], "s", {"n": 0}))
        row["hash"] = stated.hash
        named = found([*lines[:at], canonicalize(row) + b"\n", *lines[at + 1 :]])
        assert {kind for kind, _ in named} == {"altered"}
        assert {place for _, place in named} <= {seq, count}, "with its hash made anew: by the next entry's link, or the root"


def test_an_export_that_was_cut_is_truncated_and_a_torn_line_is_malformed() -> None:
    lines = lines_of(chain_of(9))
    assert found(lines[:-2]) == [("truncated", 8)]
    assert found([*lines[:-1], lines[-1][:-1]]) == [("malformed", 9), ("truncated", 9)]
    assert found([*lines[:-1], lines[-1].rstrip() + b" \n"]) == [("malformed", 9), ("truncated", 9)]


def test_a_line_that_reads_as_two_things_is_malformed() -> None:
    lines = lines_of(chain_of(3))
    twice = lines[3].replace(b'{"body":{"n":2}', b'{"body":{"n":7},"body":{"n":2}')
    assert twice != lines[3]
    assert ("malformed", 2) in found([*lines[:3], twice, *lines[4:]])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"7\n",
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b'{"skipped":{}}\n',
        b'{"skipped":{"first":4,"last":3,"trees":[]}}\n',
        b'{"skipped":{"first":4,"last":9007199254740991,"trees":[]}}\n',
        b'{"skipped":{"first":4,"last":4,"trees":["x"]}}\n',
        b'{"checkpoint":{}}\n',
        b'{"log":{"origin":"cxi/t","size":9,"v":1}}\n',
        b'{"hash":"x"}\n',
    ],
)
def test_what_is_no_line_of_an_export_is_malformed_and_nothing_raises(line: bytes) -> None:
    lines = lines_of(chain_of(9))
    at = 5
    assert "malformed" in {kind for kind, _ in found([*lines[:at], line, *lines[at:]])}
    verify_export([line], [KEY.public_key()])
    verify_export([line, *lines], [KEY.public_key()])


def test_entries_that_no_signed_checkpoint_covers_are_named() -> None:
    rows = chain_of(5)
    bare = list(write_export(ORIGIN, 5, [], [], rows, lambda _entry: True))
    assert found(bare) == [("unsigned", 1)]
    some = list(write_export(ORIGIN, 5, [envelope(rows, 3)], [], rows, lambda _entry: True))
    assert found(some) == [("unsigned", 4)]
    hidden = list(write_export(ORIGIN, 5, [envelope(rows, 3)], [], rows, lambda entry: entry.seq == 1))
    assert ("unsigned", 5) in found(hidden)
    assert found(lines_of(rows), OTHER) == [("unknown-key", 0)]
    elsewhere = [lines_of(rows)[0].replace(b"cxi/t", b"cxi/u"), *lines_of(rows)[1:]]
    assert ("malformed", 0) in found(elsewhere)


def test_a_part_without_the_entry_of_a_rotation_brings_the_introduction() -> None:
    way = introduce(KEY, NEXT.public_key(), 2.0)
    rows = chain_of(2)
    rows.append(ChainedEntry(3, rows[-1].hash, 3.0, LogEntry(EntryType.KEY, "", "", {"introduction": way})))
    rows.append(ChainedEntry(4, rows[-1].hash, 4.0, LogEntry(EntryType.READ, "a-4", "s", {})))
    for keep in (lambda entry: entry.seq == 1, lambda _entry: True):
        lines = list(write_export(ORIGIN, 4, [envelope(rows, 4, NEXT)], [way], rows, keep))
        for pinned in (KEY, NEXT):
            assert isinstance(verify_export(lines, [pinned.public_key()]), Verified)
        assert isinstance(verify_export(lines, [OTHER.public_key()]), Broken)


# --- growth


def grown(rows: list[ChainedEntry], old: int, key: Ed25519PrivateKey = KEY, **changes: Any) -> dict[str, Any]:
    prover = consistency(old, len(rows))
    for row in rows:
        prover.append(leaf_of(row.hash))
    proof = [write_digest(part) for part in prover.proof()]
    return {"checkpoint": envelope(rows, len(rows), key), "introductions": [], "proof": proof, **changes}


@given(st.integers(0, 20), st.integers(0, 20))
def test_whoever_kept_a_checkpoint_is_shown_that_the_log_only_grew(old: int, more: int) -> None:
    rows = chain_of(old + more)
    kept = envelope(rows, old)
    assert verify_growth(kept, grown(rows, old), KEY.public_key()) == Consistent(old, old + more)


def test_a_log_that_was_rewritten_before_the_kept_checkpoint_is_a_fork() -> None:
    rows, kept = chain_of(9), write_note(ORIGIN, 4, "sha256:" + "0" * 64, KEY)
    answer = verify_growth(kept, grown(rows, 4), KEY.public_key())
    assert isinstance(answer, Broken)
    assert [(str(finding.kind), finding.seq) for finding in answer.findings] == [("forked", 4)]


def test_a_newer_checkpoint_of_a_later_key_needs_its_introduction() -> None:
    rows = chain_of(9)
    way = [introduce(KEY, NEXT.public_key(), 2.0)]
    kept = envelope(rows, 4)
    assert verify_growth(kept, grown(rows, 4, NEXT, introductions=way), KEY.public_key()) == Consistent(4, 9)
    assert isinstance(verify_growth(kept, grown(rows, 4, NEXT), KEY.public_key()), Broken)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"proof": []}, "forked"),
        ({"proof": None}, "malformed"),
        ({"proof": [7]}, "malformed"),
        ({"introductions": None}, "malformed"),
        ({"more": 1}, "malformed"),
        ({"checkpoint": {}}, "malformed"),
        ({"checkpoint": sign(head_of("cxi/u", GENESIS, 1.0, Frontier()), KEY)}, "mismatched"),
    ],
)
def test_what_proves_nothing_is_named(change: dict[str, Any], kind: str) -> None:
    rows = chain_of(9)
    answer = verify_growth(envelope(rows, 4), grown(rows, 4, **change), KEY.public_key())
    assert isinstance(answer, Broken)
    assert str(answer.findings[0].kind) == kind
