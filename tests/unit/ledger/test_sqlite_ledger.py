"""What only the SQLite ledger does: its file, its locks, its syncs. What every ledger does is in `test_ledger.py`."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ledger_case
from cxi.canonical import digest
from cxi.errors import LedgerError
from cxi.ledger.base import Lease, Mark, MarkKind, Recorded, State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from ledger_case import TENANT, Case, codes, open_ledger, start

SUPPORT = Path(ledger_case.__file__)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    found = open_ledger(tmp_path / "state")
    start(found)
    yield found
    found.close()


@pytest.fixture
def case(ledger: SqliteLedger):
    return Case(ledger)


# --- the file


@pytest.mark.parametrize(
    ("kind", "key", "session", "hits"),
    [
        (MarkKind.SESSION, "s-1", "", True),
        (MarkKind.GRANT, "fix/files.write_file", "s-1", True),
        (MarkKind.GRANT, "fix/files.write_file", "", True),
        (MarkKind.GRANT, "other", "s-1", False),
        (MarkKind.GRANT, "s-1", "", False),
        (MarkKind.SESSION, "s-2", "", False),
        (MarkKind.GRANT, "fix/files.write_file", "s-2", False),
        (MarkKind.CAPABILITY, digest("mine"), "", True),
        (MarkKind.CAPABILITY, digest("another"), "", False),
        (MarkKind.CAPABILITY, "d-1", "", True),
        (MarkKind.CAPABILITY, "d-2", "", True),
        (MarkKind.CAPABILITY, "d-3", "", False),
        (MarkKind.GRANT, "main/files.write_file", "", True),
        (MarkKind.GRANT, "main/files.write_file", "s-0", True),
        (MarkKind.GRANT, "main/files.write_file", "s-1", False),
        (MarkKind.SESSION, "s-0", "", True),
        (MarkKind.TASK, "fix", "", True),
        (MarkKind.TASK, "other", "", False),
        (MarkKind.USER, "ana", "", True),
        (MarkKind.USER, "maintainer", "", False),
        (MarkKind.POLICY, "src-and-tests", "", True),
        (MarkKind.POLICY, "other", "", False),
        (MarkKind.EPOCH, "1", "", True),
        (MarkKind.EPOCH, "2", "", False),
    ],
)
def test_a_revocation_ends_exactly_what_it_names(
    ledger: SqliteLedger, case, kind: MarkKind, key: str, session: str, hits: bool
) -> None:
    ledger.revoke(TENANT, Mark(kind, key, session), person="ana", reason="enough", now=2.0)
    more = {"task": "fix", "delegations": ("d-1", "d-2"), "lineage": (("s-0", "main/files.write_file"),)}
    assert codes(case.consume(capability=digest("mine"), more=more)) == (("REVOKED",) if hits else ("Lease",))


def test_a_revocation_is_its_tenants_own(ledger: SqliteLedger, case) -> None:
    ledger.revoke("other", Mark(MarkKind.USER, "ana"), person="ana", reason="enough", now=2.0)
    assert codes(case.consume()) == ("Lease",)


@pytest.mark.parametrize(("kind", "key", "session"), [(MarkKind.SESSION, "", ""), (MarkKind.USER, "ana", "s-1")])
def test_a_mark_names_something_and_only_a_grant_is_narrowed(kind: MarkKind, key: str, session: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        Mark(kind, key, session)


def test_what_was_launched_before_a_revocation_runs_to_its_outcome(ledger: SqliteLedger, case) -> None:
    lease = case.lease()
    ledger.revoke(TENANT, Mark(MarkKind.SESSION, "s-1"), person="ana", reason="enough", now=2.0)
    assert case.settle(lease).state is State.DONE


@pytest.mark.parametrize(("now", "answer"), [(9.999, "Lease"), (10.0, "EXPIRED"), (11.0, "EXPIRED")])
def test_the_deadline_is_the_first_instant_that_is_too_late(case, now: float, answer: str) -> None:
    assert codes(case.consume(deadline=10.0, now=now)) == (answer,)


# --- 3. idempotency keys


def test_a_replay_gets_the_recorded_answer_and_draws_nothing(ledger: SqliteLedger, case) -> None:
    case.settle(case.lease(key="k", repeat="replay"), answer={"content": [1.5, "é", "\ud800"], "n": 2**70})
    before = len(list(ledger.entries()))
    answer = case.consume(key="k", repeat="replay")
    assert answer == Recorded("a-1", {"content": [1.5, "é", "\ud800"], "n": 2**70})
    assert ledger.drawn("s-1", "fix/files.write_file", 0.0) == 1
    assert len(list(ledger.entries())) == before


def test_a_key_that_was_used_for_another_action_conflicts(case) -> None:
    case.settle(case.lease(key="k", repeat="replay"))
    assert codes(case.consume(key="k", repeat="replay", payload="another")) == ("KEY_REUSE_CONFLICT",)


def test_a_key_is_its_sessions_own(ledger: SqliteLedger, case) -> None:
    ledger.open_session(TENANT, "ana", "maintainer", "s-2", "request-channel", 1.0)
    case.settle(case.lease(key="k", repeat="replay"))
    assert isinstance(case.consume(key="k", repeat="replay", session="s-2"), Lease)


@pytest.mark.parametrize(
    ("state", "repeat", "code"),
    [
        (None, "replay", "IN_FLIGHT"),
        (State.OUTCOME_UNKNOWN, "replay", "OUTCOME_UNKNOWN"),
        (State.DONE, "refuse", "EVENT_REPEATED"),
        (State.DONE, "allow", "EVENT_REPEATED"),
        (State.DONE, "replay", "Recorded"),
        (State.FAILED, "replay", "Lease"),
        (State.FAILED, "refuse", "Lease"),
    ],
)
def test_the_same_key_and_action_again(case, state: State | None, repeat: str, code: str) -> None:
    lease = case.lease(key="k", repeat=repeat)
    if state is not None:
        case.settle(lease, state)
    assert codes(case.consume(key="k", repeat=repeat)) == (code,)


def test_recorded_tells_the_latest_call_of_a_key(ledger: SqliteLedger, case) -> None:
    key = digest(["key", "k"])
    assert ledger.recorded("s-1", key) is None
    case.settle(case.lease(key="k", repeat="replay"), State.FAILED)
    lease = case.lease(key="k", repeat="replay")
    assert ledger.recorded("s-1", key) == (lease.manifest.action.digest, State.LEASED, Recorded("a-2", None))
    case.settle(lease, answer="yes")
    assert ledger.recorded("s-1", key) == (lease.manifest.action.digest, State.DONE, Recorded("a-2", "yes"))


def test_an_answer_that_nobody_can_ask_for_is_not_kept(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    case.settle(case.lease(), answer="a private answer")
    ledger.close()
    assert b"a private answer" not in (tmp_path / "state" / "ledger.sqlite").read_bytes()


def test_files_are_this_users_alone(ledger: SqliteLedger, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(LedgerError):
        open_ledger(folder)
    folder.chmod(0o700)
    open_ledger(folder).close()


def test_a_database_that_others_can_open_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    open_ledger(tmp_path / "state").close()
    path = tmp_path / "state" / "ledger.sqlite"
    path.chmod(0o644)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state")
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state")


def test_another_programs_database_and_another_version_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    open_ledger(folder).close()
    for pragma in ("user_version=99", "application_id=7"):
        connection = sqlite3.connect(folder / "ledger.sqlite")
        connection.execute(f"PRAGMA {pragma}")
        connection.close()
        with pytest.raises(LedgerError):
            open_ledger(folder)


def test_an_instance_is_one_writer_at_a_time(ledger: SqliteLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cxi.ledger.writer._TRIES", 1)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state", "one")
    for name in ("", "../x", ".hidden", "a b"):
        with pytest.raises(LedgerError):
            open_ledger(tmp_path / "state", name)


def test_a_fork_must_open_its_own(ledger: SqliteLedger, case, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.getpid()
    monkeypatch.setattr("cxi.log.store.os.getpid", lambda: pid + 1)
    with pytest.raises(LedgerError):
        case.consume(sequence=1)


def test_the_lock_of_a_writer_goes_away_with_it(tmp_path: Path) -> None:
    open_ledger(tmp_path / "state").close()
    assert not (tmp_path / "state" / "writers" / "one.lock").exists()
    gone = open_ledger(tmp_path / "state", "two")
    start(gone)
    Case(gone).lease("a")
    gone._writer.abandon()
    gone._store._drop()
    open_ledger(tmp_path / "state", "three").close()
    assert not (tmp_path / "state" / "writers" / "two.lock").exists()


def test_two_ledgers_on_one_file_make_one_chain(ledger: SqliteLedger, case, tmp_path: Path) -> None:
    other = open_ledger(tmp_path / "state", "two")
    second = Case(other, "b")
    for number in range(6):
        turn = (case, second)[number % 2]
        turn.settle(turn.lease(f"file-{number}"))
    answer = verify(ledger.entries(), [], [])
    assert isinstance(answer, Verified)
    assert list(other.entries()) == list(ledger.entries())
    other.close()


# --- one sync


TRACED = """
import runpy, sys
from pathlib import Path
parts = runpy.run_path(sys.argv[1])
ledger = parts["open_ledger"](Path(sys.argv[2]))
parts["start"](ledger)
case = parts["Case"](ledger)
mark = lambda name: Path(f"/nonexistent/{name}").exists()
for number in range(5):
    call = case.call(f"file-{number}")
    mark("consume")
    lease = ledger.consume(*call, 2.0)
    mark("sink")
    case.settle(lease)
    ledger.append(parts["LogEntry"](parts["EntryType"].READ, "a", "s-1", {}), 2.0)
    mark("settled")
"""


def test_consume_syncs_exactly_once_and_a_settlement_never(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: the number of syncs was not counted")
    out = tmp_path / "trace"
    command = [
        strace,
        "-f",
        "-y",
        "-o",
        str(out),
        "-e",
        "trace=fsync,fdatasync,sync_file_range,msync,pwrite64,stat,newfstatat,statx",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", TRACED, str(SUPPORT), str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here: the number of syncs was not counted")
    assert done.returncode == 0, done.stderr
    phase, syncs, riding = "", {"consume": [], "sink": [], "settled": []}, False
    for line in out.read_text().splitlines():
        if "/nonexistent/" in line:
            phase = line.partition("/nonexistent/")[2].partition('"')[0]
            if phase != "settled":
                syncs[phase].append(0)
        elif phase in ("consume", "sink") and any(
            f" {name}(" in line for name in ("fsync", "fdatasync", "msync", "sync_file_range")
        ):
            assert "ledger.sqlite-wal" in line
            syncs[phase][-1] += 1
        elif phase == "sink" and "pwrite64(" in line and "ledger.sqlite-wal" in line:
            riding = True  # the settlement is written to the file that the next consume syncs
    assert syncs["consume"] == [1] * 5
    assert syncs["sink"] == [0] * 5
    assert riding
