"""The ledger's rows against its log, and heads that are signed only where the chain follows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.errors import LedgerError
from cxi.ledger.base import Mark, MarkKind, State
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import CHECKPOINTS, SqliteLedger
from cxi.log.checkpoint import CheckpointFile, check
from cxi.log.finding import FindingKind
from ledger_case import TENANT, Case, codes, open_ledger, start

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[SqliteLedger]:
    """A ledger with a call of every state, a closed session and a revocation."""
    ledger = open_ledger(tmp_path)
    start(ledger)
    start(ledger, "s-2")
    case = Case(ledger)
    for name, state in (("a", State.DONE), ("b", State.FAILED), ("c", State.OUTCOME_UNKNOWN), ("d", State.OUTCOME_UNKNOWN)):
        case.settle(case.lease(name), state)
    case.lease("e")
    ledger.release("a-4", "ana", "looked", State.DONE, 4.0)
    ledger.close_session("s-2", 4.0)
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "g"), person="ana", reason="over", now=4.0)
    yield ledger
    ledger.close()


def differences(ledger: SqliteLedger) -> int:
    standing = ledger.standing()
    replay = Replay(standing.head)
    for _ in replay.watch(ledger.entries()):
        pass
    found = replay.differences(standing)
    assert {finding.kind for finding in found} <= {FindingKind.DISAGREES}
    return len(found)


def change(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / "ledger.sqlite")
    try:
        with database:
            database.execute(statement)
    finally:
        database.close()


def test_an_honest_ledger_is_what_its_log_tells(worked: SqliteLedger) -> None:
    assert differences(worked) == 0


def test_a_recovered_ledger_is_what_its_log_tells(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, "one")
    start(ledger)
    Case(ledger).lease("a")
    ledger.close()
    with_next = open_ledger(tmp_path, "two")
    assert differences(with_next) == 0
    alarm = [entry.entry.body for entry in with_next.entries()][-1]
    assert alarm["state"] == "outcome_unknown"
    with_next.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE call SET state = 'failed' WHERE id = 'a-1'",
        "UPDATE call SET state = 'released' WHERE id = 'a-3'",
        "UPDATE call SET state = 'done' WHERE id = 'a-5'",
        "UPDATE call SET session = 's-9' WHERE id = 'a-1'",
        "UPDATE call SET settled = NULL WHERE id = 'a-1'",
        "DELETE FROM call WHERE id = 'a-1'",
        "DELETE FROM used WHERE token = (SELECT min(token) FROM used)",
        "UPDATE epoch SET counter = 9",
        "UPDATE epoch SET tenant = 'other'",
        "DELETE FROM revoked",
        "UPDATE session SET closed = 0",
        "UPDATE log SET call = call WHERE seq = 1",
    ],
)
def test_a_changed_row_disagrees_with_the_log(worked: SqliteLedger, tmp_path: Path, statement: str) -> None:
    change(tmp_path, statement)
    assert bool(differences(worked)) is not statement.startswith("UPDATE log")


def test_a_call_of_which_the_log_has_no_admission_disagrees(worked: SqliteLedger, tmp_path: Path) -> None:
    change(tmp_path, "UPDATE call SET seq = 900 WHERE id = 'a-2'")
    assert differences(worked) == 2


def test_entries_after_the_moment_of_the_rows_are_left_out(worked: SqliteLedger) -> None:
    standing = worked.standing()
    Case(worked, "later").lease("f")
    replay = Replay(standing.head)
    assert len(list(replay.watch(worked.entries()))) > standing.head
    assert replay.differences(standing) == ()


# --- signing


def test_a_head_that_follows_is_signed(worked: SqliteLedger, tmp_path: Path) -> None:
    first = worked.sign_head(KEY, 5.0)
    Case(worked, "later").lease("f")
    second = worked.sign_head(KEY, 6.0)
    assert second.size == first.size + 1
    heads = [check(envelope, [KEY.public_key()]) for envelope in CheckpointFile(tmp_path / CHECKPOINTS).read()]
    assert heads == [first, second]
    assert worked.sign_head(KEY, 7.0) == replace(second, time=7.0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET content = replace(content, 'write_file', 'read_file') WHERE seq = {last}",
        "UPDATE log SET content = replace(content, 'write_file', 'read_file'), hash = '" + "0" * 64 + "' WHERE seq = {last}",
        "UPDATE log SET previous = hash WHERE seq = {last}",
        "DELETE FROM log WHERE seq = {last} - 1",
        "UPDATE log SET content = content || ' ' WHERE seq = {signed}",
        "UPDATE log SET hash = previous WHERE seq = {signed}",
        "DELETE FROM log WHERE seq >= {signed}",
    ],
)
def test_a_head_that_does_not_follow_from_the_last_checkpoint_is_never_signed(
    worked: SqliteLedger, tmp_path: Path, statement: str
) -> None:
    signed = worked.sign_head(KEY, 5.0).size
    case = Case(worked, "later")
    for name in "fgh":
        case.lease(name)
    change(tmp_path, statement.format(last=signed + 3, signed=signed))
    with pytest.raises(LedgerError):
        worked.sign_head(KEY, 6.0)
    assert len(CheckpointFile(tmp_path / CHECKPOINTS).read()) == 1


def test_a_head_is_not_signed_over_another_keys_checkpoint(worked: SqliteLedger) -> None:
    worked.sign_head(Ed25519PrivateKey.from_private_bytes(b"1" * 32), 5.0)
    with pytest.raises(LedgerError):
        worked.sign_head(KEY, 6.0)


# --- what blocks


def test_an_unknown_outcome_blocks_its_occurrence_in_every_session_until_a_person_ends_it(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    start(ledger)
    start(ledger, "s-2")
    case = Case(ledger)
    lease = case.lease("a")
    assert codes(case.consume("a", session="s-2")) == ("IN_FLIGHT",)
    case.settle(lease, State.OUTCOME_UNKNOWN)
    assert codes(case.consume("a", session="s-2", payload="another")) == ("OUTCOME_UNKNOWN",)
    assert codes(case.consume("b", session="s-2")) == ("Lease",)
    ledger.release(lease.call, "ana", "looked", State.FAILED, 4.0)
    assert codes(case.consume("a", session="s-2")) == ("Lease",)
    assert ledger.epoch(TENANT) is not None
    ledger.close()
