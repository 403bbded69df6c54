"""An entry has one hash, before and after it was stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import MalformedError
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry, chain, milliseconds, read_entry

ENTRY = ChainedEntry(1, GENESIS, 1.5, LogEntry(EntryType.READ, "a-1", "s-1", {"x": [1, None, "é"]}))


@given(st.integers(min_value=0, max_value=2**43))
def test_a_time_that_is_read_back_gives_the_same_milliseconds(time_ms: int) -> None:
    assert milliseconds(time_ms / 1000) == time_ms


@given(st.floats(min_value=0, max_value=4e9), st.integers(min_value=1, max_value=2**50))
def test_an_entry_that_is_read_back_has_the_same_hash(time: float, seq: int) -> None:
    entry = ChainedEntry(seq, GENESIS, time, ENTRY.entry)
    again = read_entry(entry.to_json())
    assert (again.hash, again.content) == (entry.hash, entry.content)
    assert again.hash == chain(seq, GENESIS, again.content)


def test_every_part_is_in_the_hash() -> None:
    row = ENTRY.to_json()
    changes = {
        "seq": 2,
        "previous": "sha256:" + "1" * 64,
        "time_ms": 1501,
        "kind": "alarm",
        "call": "",
        "session": "",
        "body": {},
    }
    assert changes.keys() == row.keys()
    hashes = {read_entry({**row, key: value}).hash for key, value in changes.items()}
    assert len(hashes | {ENTRY.hash}) == len(changes) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"seq": "1"},
        {"seq": True},
        {"time_ms": 1.5},
        {"kind": "rumor"},
        {"body": []},
        {"call": None},
        {"previous": 0},
        {"more": 1},
    ],
)
def test_a_foreign_or_mistyped_part_is_malformed(change: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        read_entry({**ENTRY.to_json(), **change})  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [None, [], "x", {}, {"seq": 1}])
def test_what_is_no_entry_is_malformed(value: object) -> None:
    with pytest.raises(MalformedError):
        read_entry(value)  # type: ignore[arg-type]
