"""Storage that fails, lies or loses: the ledger refuses; no lease that was not durable, and never two for one right."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ledger_case
from cxi.canonical import digest
from cxi.errors import LedgerError
from cxi.ledger.base import Lease, State
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile, sign
from cxi.log.entry import EntryType
from cxi.log.key import load_key
from ledger_case import TENANT, Case, codes, open_ledger, start

ROOT = os.geteuid() == 0
NOBODY = 65534


def child(code: str, *arguments: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with a limit on the size of files."""

    def prepare() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    preamble = f"import sys\nsys.path.insert(0, {str(Path(ledger_case.__file__).parent)!r})\nfrom ledger_case import *\n"
    return subprocess.run(
        [sys.executable, "-B", "-c", preamble + textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=prepare,
    )


# --- full disks

FILL = """
    from cxi.errors import LedgerError
    ledger = open_ledger(Path(sys.argv[1]), "filler")
    start(ledger)
    case, leased = Case(ledger), []
    try:
        for number in range(5000):
            lease = case.lease(f"file-{number}", limit=10**6)
            leased.append(lease.call)
    except LedgerError as error:
        print("refused", error.code)
    refused = 0
    for number in range(3):
        try:
            answer = case.consume(f"late-{number}", limit=10**6)
            leased.append(answer.call)
        except LedgerError:
            refused += 1
    print(refused)
    print(*leased)
"""


def reopened_holds_exactly(folder: Path, leased: list[str]) -> None:
    """Every lease that was given is in the file, and in the file is none that was not given."""
    ledger = open_ledger(folder, "after")
    answer = verify(ledger.entries(), [], [])
    assert isinstance(answer, Verified)
    admitted = [entry.entry.call for entry in ledger.entries() if entry.entry.kind is EntryType.ADMISSION]
    assert admitted == leased
    alarms = [entry.entry.call for entry in ledger.entries() if entry.entry.kind is EntryType.ALARM]
    assert alarms == leased
    ledger.close()


def test_a_file_that_may_not_grow_refuses_and_leaves_no_lease(tmp_path: Path) -> None:
    done = child(FILL, tmp_path / "state", limit=400_000)
    assert done.returncode == 0, done.stderr
    first, refused, leased = done.stdout.splitlines()
    assert first == "refused LEDGER_UNAVAILABLE"
    assert int(refused) >= 1
    assert len(leased.split()) > 5
    reopened_holds_exactly(tmp_path / "state", leased.split())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = shutil.which("mount")
    place = tmp_path / "disk"
    place.mkdir()
    if (
        not ROOT
        or mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", place], check=False).returncode
    ):
        pytest.skip("no file system can be mounted here: the full disk was tried with a size limit only")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_refuses_and_frees_itself(small_disk: Path) -> None:
    done = child(FILL, small_disk / "state")
    assert done.returncode == 0, done.stderr
    first, refused, leased = done.stdout.splitlines()
    assert first == "refused LEDGER_UNAVAILABLE"
    assert int(refused) >= 1
    shutil.copytree(small_disk / "state", small_disk.parent / "copy")
    (small_disk.parent / "copy").chmod(0o700)
    reopened_holds_exactly(small_disk.parent / "copy", leased.split())


def test_a_disk_that_became_read_only_refuses(small_disk: Path) -> None:
    ledger = open_ledger(small_disk / "state")
    start(ledger)
    ledger.close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(LedgerError):
        open_ledger(small_disk / "state")


# --- files and folders that cannot be written


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Without root's right to write everything."""
    if not ROOT:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["folder", "database", "writers"])
def test_what_cannot_be_written_is_refused_at_the_start(what: str) -> None:
    with ordinary_user(), tempfile.TemporaryDirectory(prefix="cxi-") as place:
        folder = Path(place) / "state"
        open_ledger(folder).close()
        target = {"folder": folder, "database": folder / "ledger.sqlite", "writers": folder / "writers"}[what]
        target.chmod(0o400 if what == "database" else 0o500)
        with pytest.raises(LedgerError):
            open_ledger(folder, "second")
        target.chmod(0o600 if what == "database" else 0o700)
        assert not list(folder.glob("*-wal")), "nothing is left behind that would stand in the way later"
        open_ledger(folder, "third").close()


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    if not ROOT:
        pytest.skip("only root can make a folder of another user")
    folder = tmp_path / "state"
    open_ledger(folder).close()
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(LedgerError):
        open_ledger(folder)


# --- damage


def filled(folder: Path, count: int = 40) -> list[str]:
    ledger = open_ledger(folder, "first")
    start(ledger)
    case = Case(ledger)
    calls: list[str] = []
    for number in range(count):
        lease = case.lease(f"file-{number}", limit=1000)
        case.settle(lease)
        calls.append(lease.call)
    ledger.close()
    return calls


@pytest.mark.parametrize("fill", [b"\x00", b"\xff", b"Z"])
def test_a_corrupted_page_is_refused_at_the_start(tmp_path: Path, fill: bytes) -> None:
    filled(tmp_path / "state")
    path = tmp_path / "state" / "ledger.sqlite"
    data = bytearray(path.read_bytes())
    pages = len(data) // 4096
    refused = 0
    for page in range(pages):
        broken = bytearray(data)
        broken[page * 4096 : page * 4096 + 4096] = fill * 4096
        path.write_bytes(broken)
        try:
            ledger = open_ledger(tmp_path / "state", f"p{page}")
        except LedgerError:
            refused += 1
        else:  # a page that nothing stands on
            ledger.close()
            pytest.fail(f"page {page} of {pages} can be lost unseen")
    assert refused == pages


def test_a_database_cut_short_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "state")
    path = tmp_path / "state" / "ledger.sqlite"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "state", "second")


def test_a_database_cut_under_an_open_ledger_refuses(tmp_path: Path) -> None:
    filled(tmp_path / "state", 60)
    ledger = open_ledger(tmp_path / "state", "second")
    case = Case(ledger, "b")
    manifest, draw, entry = case.call("more", sequence=61, limit=1000, epoch=(1, digest("policies")))
    os.truncate(tmp_path / "state" / "ledger.sqlite", 8192)
    ledger._store._connection.execute("PRAGMA shrink_memory")
    with pytest.raises(LedgerError):
        ledger.consume(manifest, draw, entry, 2.0)
    ledger._writer.abandon()
    ledger._store._drop()


def test_a_state_that_is_none_is_damage(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    start(ledger)
    case = Case(ledger)
    lease = case.lease("a")
    database = ledger._store._connection
    database.execute("PRAGMA ignore_check_constraints=ON")
    database.execute("UPDATE call SET state = 'sold'")
    with pytest.raises(LedgerError):
        case.settle(lease)
    ledger._writer.abandon()
    ledger._store._drop()


# --- lost entries


def crashed(folder: Path, *names: str) -> subprocess.Popen[str]:
    """A process that leased, and is killed with -9 where it stands."""
    program = subprocess.Popen(
        [sys.executable, "-B", ledger_case.__file__, str(folder), "victim", *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdin is not None
    for _ in names:
        assert program.stdout.readline().strip() == "Lease Lease"
    program.kill()
    program.wait()
    program.stdin.close()
    program.stdout.close()
    return program


def prepared(folder: Path) -> None:
    ledger = open_ledger(folder, "first")
    start(ledger)
    ledger.close()


def image(tmp_path: Path, *names: str) -> Path:
    """The files as a killed process would leave them: copied from under an open ledger."""
    ledger = open_ledger(tmp_path / "live")
    start(ledger)
    case = Case(ledger)
    for name in names:
        case.lease(name)
    folder = tmp_path / "state"
    shutil.copytree(tmp_path / "live", folder)
    ledger.close()
    return folder


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_write_ahead_log_that_lost_its_end_is_refused(tmp_path: Path, keep: float) -> None:
    folder = image(tmp_path, "a", "b", "c")
    wal = folder / "ledger.sqlite-wal"
    os.truncate(wal, int(wal.stat().st_size * keep))
    with pytest.raises(LedgerError):
        open_ledger(folder, "second")


def test_a_write_ahead_log_that_is_gone_is_refused(tmp_path: Path) -> None:
    folder = image(tmp_path, "a")
    (folder / "ledger.sqlite-wal").unlink()
    with pytest.raises(LedgerError):
        open_ledger(folder, "second")


def test_a_write_ahead_log_that_is_whole_recovers(tmp_path: Path) -> None:
    ledger = open_ledger(image(tmp_path, "a", "b", "c"), "second")
    assert codes(Case(ledger, "b").consume("c")) == ("OUTCOME_UNKNOWN",)
    ledger.close()


def test_an_older_copy_of_the_whole_folder_but_its_checkpoints_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    filled(folder, 3)
    copy = (folder / "ledger.sqlite").read_bytes()
    ledger = open_ledger(folder, "second")
    Case(ledger, "b").lease("z", limit=1000)
    CheckpointFile(folder / "checkpoints.jsonl").append(sign(ledger.head(5.0), load_key(folder)))
    ledger.close()
    open_ledger(folder, "third").close()
    (folder / "ledger.sqlite").write_bytes(copy)
    with pytest.raises(LedgerError):
        open_ledger(folder, "fourth")


# --- kill -9


@pytest.mark.parametrize("names", [("a",), ("other!done", "a", "third!failed")])
def test_a_process_killed_between_lease_and_settlement_leaves_an_unknown_outcome(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "state"
    prepared(folder)
    crashed(folder, *names)
    ledger = open_ledger(folder, "second")
    case = Case(ledger, "b")
    assert codes(case.consume("a")) == ("OUTCOME_UNKNOWN",)
    settled = [name.partition("!")[0] for name in names if "!" in name]
    for name in settled:
        assert isinstance(case.consume(name), Lease)
    ledger.release(f"victim-{names.index('a') + 1}", "ana", "looked: it is not there", State.FAILED, 5.0)
    assert isinstance(case.consume("a"), Lease)
    assert isinstance(verify(ledger.entries(), [], []), Verified)
    ledger.close()


def test_a_process_killed_in_the_midst_of_its_commits_leaves_what_it_said(tmp_path: Path) -> None:
    """Whatever instant the kill hits: every lease that was printed is there, and at most the one in the making beside them."""
    folder = tmp_path / "state"
    prepared(folder)
    for life in range(2):
        program = subprocess.Popen(
            [
                sys.executable,
                "-B",
                ledger_case.__file__,
                str(folder),
                f"life-{life}",
                *(f"{life}-{number}!done" for number in range(18)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # a line that is read takes none of the next with it
        )
        assert program.stdout is not None
        said = 0
        while said < 3 + 8 * life and program.stdout.readline().startswith(b"Lease"):
            said += 1
        program.kill()
        said += sum(line.startswith(b"Lease Lease\n") for line in program.communicate()[0].splitlines(keepends=True))
        ledger = open_ledger(folder, f"after-{life}")
        assert isinstance(verify(ledger.entries(), [], []), Verified)
        admitted = [
            entry
            for entry in ledger.entries()
            if entry.entry.call.startswith(f"life-{life}-") and entry.entry.kind is EntryType.ADMISSION
        ]
        assert said <= len(admitted) <= said + 1
        ledger.close()


# --- epochs and grants, across processes


def test_an_epoch_that_returns_is_a_new_one(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    start(ledger, policies="A")
    case = Case(ledger)
    first = ledger.epoch(TENANT)
    waiting = case.call("a", epoch=first)
    second = ledger.activate(TENANT, digest("B"), 2.0)
    third = ledger.activate(TENANT, digest("A"), 2.0)
    assert first is not None
    assert (first[1], first[0] < second[0] < third[0]) == (third[1], True)
    assert codes(ledger.consume(*waiting, 2.0)) == ("EPOCH_CHANGED",)
    assert codes(case.consume("a", epoch=second)) == ("EPOCH_CHANGED",)
    assert isinstance(case.consume("a", epoch=third), Lease)
    ledger.close()


def test_two_processes_that_contend_for_one_grant_get_one_lease(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    prepared(folder)
    code = """
        ledger = open_ledger(Path(sys.argv[1]), sys.argv[2])
        case = Case(ledger, sys.argv[2])
        calls = [case.call(f"file-{sys.argv[2]}-{n}", grant=f"g-{n}", limit=1, sequence=1) for n in range(15)]
        print("ready", flush=True)
        sys.stdin.readline()
        for call in calls:
            print(*codes(ledger.consume(*call, 2.0)), flush=True)
        sys.stdin.read()
    """
    preamble = f"import sys\nsys.path.insert(0, {str(Path(ledger_case.__file__).parent)!r})\nfrom ledger_case import *\n"
    racers = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", preamble + textwrap.dedent(code), str(folder), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0].split() for racer in racers]
    assert all(racer.returncode == 0 for racer in racers)
    for pair in zip(*answers, strict=True):
        assert sorted(pair) == ["GRANT_EXHAUSTED", "Lease"]
