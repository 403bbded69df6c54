"""A rotation ends with one key that reigns and whose first checkpoint is behind the last one's, whatever crashes in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cxi.errors import LedgerError
from cxi.ledger.sqlite import CHECKPOINTS, SqliteLedger
from cxi.log import rotation as room
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile
from cxi.log.entry import EntryType
from cxi.log.envelope import key_id, read_public
from cxi.log.finding import Broken
from cxi.log.key import (
    INTRODUCTIONS,
    NEXT_NAME,
    PRIVATE_NAME,
    PUBLIC_NAME,
    first_key,
    load_key,
    prepare_next,
    promote_next,
    read_introductions,
)
from cxi.log.rotation import Rotated, rotate
from ledger_case import Case, open_ledger, start


class Crash(Exception):
    """The process is gone here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def ledger(folder: Path) -> Iterator[SqliteLedger]:
    found = open_ledger(folder)
    start(found)
    Case(found).lease()
    yield found
    found.close()


def turn(folder: Path, ledger: SqliteLedger, now: float = 5.0) -> Rotated:
    return rotate(folder, CheckpointFile(folder / CHECKPOINTS), ledger, now, person="ana", reason="the year is over")


def whole(folder: Path, ledger: SqliteLedger) -> Verified:
    """The log verifies from the first key on, under a checkpoint of the present one that covers all."""
    ledger.sign_head(load_key(folder), 99.0)
    envelopes = CheckpointFile(folder / CHECKPOINTS).read()
    answer = verify(ledger.stored(), envelopes, [first_key(folder)], origin=ledger.origin)
    assert isinstance(answer, Verified), answer
    assert answer.signed == answer.count
    return answer


def test_the_next_key_reigns_and_the_one_before_is_gone(folder: Path, ledger: SqliteLedger) -> None:
    before = load_key(folder)
    answer = turn(folder, ledger)
    assert (answer.by, answer.key) == (key_id(before.public_key()), key_id(load_key(folder).public_key()))
    assert answer.by != answer.key
    (entry,) = [one for one in ledger.entries() if one.entry.kind is EntryType.KEY]
    assert entry.seq == answer.seq
    assert {name: entry.entry.body[name] for name in ("act", "person", "reason")} == {
        "act": "rotate",
        "person": "ana",
        "reason": "the year is over",
    }
    assert not (folder / NEXT_NAME).exists()
    assert (folder / PRIVATE_NAME).stat().st_mode & 0o777 == 0o600
    assert (folder / INTRODUCTIONS).stat().st_mode & 0o777 == 0o600
    assert key_id(read_public((folder / PUBLIC_NAME).read_bytes())) == answer.key
    assert key_id(first_key(folder)) == answer.by
    whole(folder, ledger)
    with pytest.raises(LedgerError):
        ledger.sign_head(before, 9.0)


def test_rotations_follow_one_another_from_the_first_key(folder: Path, ledger: SqliteLedger) -> None:
    first = key_id(load_key(folder).public_key())
    seen = [first, *(turn(folder, ledger, now).key for now in (5.0, 6.0, 7.0))]
    assert len(set(seen)) == 4
    assert key_id(first_key(folder)) == first
    assert len(read_introductions(folder)) == 3
    whole(folder, ledger)


@pytest.mark.parametrize(
    "place", ["prepare_next", "append", "introduced", "signed", "add_introduction", "kept", "promote_next", "promoted"]
)
def test_after_a_crash_at_any_step_it_goes_on_where_it_was(
    folder: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    before = load_key(folder)
    with monkeypatch.context() as broken:
        _crash_at(broken, ledger, place)
        with pytest.raises(Crash):
            turn(folder, ledger)
    if place != "promoted":
        assert key_id(load_key(folder).public_key()) == key_id(before.public_key())
        turn(folder, ledger, 6.0)
    assert [one.entry.kind for one in ledger.entries()].count(EntryType.KEY) == 1, "one rotation, not two"
    assert len(read_introductions(folder)) == 1
    assert key_id(first_key(folder)) == key_id(before.public_key())
    assert key_id(load_key(folder).public_key()) != key_id(before.public_key())
    assert not (folder / NEXT_NAME).exists()
    whole(folder, ledger)


def _crash_at(patch: pytest.MonkeyPatch, ledger: SqliteLedger, place: str) -> None:
    def instead(*_given: object, **_named: object) -> None:
        raise Crash

    def behind(module: object, name: str) -> None:
        real = getattr(module, name)

        def then(*given: object, **named: object) -> None:
            real(*given, **named)
            raise Crash

        patch.setattr(module, name, then)

    match place:
        case "prepare_next" | "add_introduction" | "promote_next":
            patch.setattr(room, place, instead)
        case "append":
            patch.setattr(SqliteLedger, "append", instead)
        case "introduced":
            behind(SqliteLedger, "append")
        case "signed":
            real = SqliteLedger.sign_head

            def signed(self: SqliteLedger, *given: object, **named: object) -> object:
                answer = real(self, *given, **named)  # type: ignore[arg-type]
                if "after" in named:
                    raise Crash
                return answer

            patch.setattr(SqliteLedger, "sign_head", signed)
        case "kept":
            behind(room, "add_introduction")
        case "promoted":
            behind(room, "promote_next")
        case _:
            raise AssertionError(place)


def test_while_it_is_cut_off_nobody_signs_with_the_retired_key(
    folder: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        _crash_at(broken, ledger, "introduced")
        with pytest.raises(Crash):
            turn(folder, ledger)
    with pytest.raises(LedgerError):
        ledger.sign_head(load_key(folder), 6.0)
    answer = verify(ledger.stored(), CheckpointFile(folder / CHECKPOINTS).read(), [load_key(folder).public_key()])
    assert isinstance(answer, Verified)


def test_a_log_that_was_changed_is_not_carried_over(folder: Path, ledger: SqliteLedger) -> None:
    ledger.sign_head(load_key(folder), 4.0)
    Case(ledger, "b").lease("b")
    with ledger._store.durable() as database:
        database.execute(
            "UPDATE log SET content = replace(content, 'enforce', 'enforced') WHERE seq = (SELECT max(seq) FROM log)"
        )
    with pytest.raises(LedgerError):
        turn(folder, ledger)
    assert isinstance(verify(ledger.stored(), [], [load_key(folder).public_key()]), Broken)


def test_a_key_in_the_folder_that_nobody_introduced_is_refused(folder: Path, ledger: SqliteLedger) -> None:
    turn(folder, ledger)
    prepare_next(folder)
    promote_next(folder)
    with pytest.raises(LedgerError):
        first_key(folder)
    with pytest.raises(LedgerError):
        ledger.sign_head(load_key(folder), 9.0)
    (folder / INTRODUCTIONS).write_text('{"x":1}\n')
    with pytest.raises(LedgerError):
        first_key(folder)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_prepared_key_that_others_can_open_is_refused(folder: Path, mode: int) -> None:
    prepare_next(folder)
    (folder / NEXT_NAME).chmod(mode)
    with pytest.raises(LedgerError):
        prepare_next(folder)
