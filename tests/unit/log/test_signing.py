"""A head is signed only where it follows from the last checkpoint, by the key that reigns, and without reading all again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.canonical import canonicalize, digest
from cxi.errors import LedgerError
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile, Head, check, sign
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry, Stored
from cxi.log.signing import sign_next
from cxi.log.succession import introduce

KEY, NEXT = Ed25519PrivateKey.from_private_bytes(bytes(32)), Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
ORIGIN = "cxi/t"


class Rows:
    """A log as a store has it, and where it was read from."""

    def __init__(self, count: int) -> None:
        self.entries: list[ChainedEntry] = []
        self.started: list[int] = []
        for _ in range(count):
            self.add()

    def add(self, kind: EntryType = EntryType.READ, **body: Any) -> None:
        seq = len(self.entries) + 1
        previous = self.entries[-1].hash if self.entries else GENESIS
        self.entries.append(ChainedEntry(seq, previous, float(seq), LogEntry(kind, "", "", body)))

    def __call__(self, start: int) -> Iterable[Stored]:
        self.started.append(start)
        for entry in self.entries[start - 1 :]:
            yield Stored(entry.seq, entry.previous, entry.hash, canonicalize(entry.entry.to_json(entry.time)))


@pytest.fixture
def file(tmp_path: Path) -> CheckpointFile:
    return CheckpointFile(tmp_path / "checkpoints.jsonl")


def again(file: CheckpointFile, rows: Callable[[int], Iterable[Stored]], key: Ed25519PrivateKey = KEY) -> Head:
    synced: list[None] = []
    head = sign_next(file, ORIGIN, rows, key, 9.0, sync=lambda: synced.append(None))
    assert len(synced) == 1
    return head


def test_each_checkpoint_goes_on_from_the_tree_of_the_last(file: CheckpointFile) -> None:
    rows = Rows(0)
    sizes = []
    for more in (0, 1, 2, 5, 0, 9):
        for _ in range(more):
            rows.add()
        sizes.append(again(file, rows).size)
    assert sizes == [0, 1, 3, 8, 8, 17]
    assert rows.started == [1, 1, 1, 3, 8, 8], "from the last checkpoint's entry on"
    answer = verify(rows.entries, file.read(), [KEY.public_key()])
    assert answer == Verified(17, rows.entries[-1].hash, 17)
    last = check(file.last(), [KEY.public_key()])
    assert isinstance(last, Head)
    assert isinstance(answer, Verified)
    assert last.root == answer.root


def test_a_checkpoint_of_the_first_version_is_gone_on_from_with_a_tree(file: CheckpointFile) -> None:
    rows = Rows(5)
    file.append(sign(Head(ORIGIN, 3, rows.entries[2].hash, 1.0), KEY))
    assert again(file, rows).root
    assert rows.started == [1]
    assert verify(rows.entries, file.read(), [KEY.public_key()]) == Verified(5, rows.entries[-1].hash, 5)
    file.append(sign(Head(ORIGIN, 3, digest("another"), 1.0), KEY))
    with pytest.raises(LedgerError):
        again(file, rows)


def test_the_last_checkpoint_of_the_same_log_is_the_one_that_counts(file: CheckpointFile) -> None:
    rows = Rows(4)
    again(file, rows)
    file.append(sign(Head("cxi/other", 9, digest("x"), 1.0), KEY))
    rows.add()
    assert again(file, rows).size == 5
    assert check(file.last("cxi/other"), [KEY.public_key()]).size == 9  # type: ignore[union-attr]
    assert file.last("cxi/third") is None


@pytest.mark.parametrize("seq", [3, 4, 5])
def test_what_was_changed_behind_the_last_checkpoint_is_not_signed(file: CheckpointFile, seq: int) -> None:
    rows = Rows(3)
    again(file, rows)
    rows.add()
    rows.add()

    def changed(start: int) -> Iterable[Stored]:
        for row in rows(start):
            yield replace(row, text=row.text.replace(b'"read"', b'"alarm"')) if row.seq == seq else row

    with pytest.raises(LedgerError):
        again(file, changed)
    if seq < 5:  # nothing says that there was a last one
        with pytest.raises(LedgerError):
            again(file, lambda start: [row for row in rows(start) if row.seq != seq])
    assert len(file.read()) == 1


def test_a_retired_key_signs_no_more_and_its_successor_goes_on_from_its_own_checkpoint(file: CheckpointFile) -> None:
    rows = Rows(3)
    again(file, rows)
    rows.add(EntryType.KEY, introduction=introduce(KEY, NEXT.public_key(), 4.0))
    with pytest.raises(LedgerError):
        again(file, rows)
    with pytest.raises(LedgerError):
        again(file, rows, NEXT)  # the last checkpoint is not its own: the rotation itself writes its first one
    assert len(file.read()) == 1


def test_an_earlier_key_s_checkpoint_is_gone_on_from_only_where_the_log_is_one_of_many(file: CheckpointFile) -> None:
    rows = Rows(3)
    again(file, rows)
    rows.add()
    with pytest.raises(LedgerError):
        again(file, rows, NEXT)
    head = sign_next(file, ORIGIN, rows, NEXT, 9.0, sync=lambda: None, earlier=[KEY.public_key()])
    assert head.size == 4
    assert again(file, rows, NEXT).size == 4
