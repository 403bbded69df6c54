"""What if the storage or the clock is not what it should be? Full disks, read-only ones, damaged pages, jumping clocks.

- A full disk is a small tmpfs where this process may mount one, and a limit on the size of files (`RLIMIT_FSIZE`) in any case.
- Nothing is asked of a damaged ledger but this: it refuses, or it still knows everything that was acknowledged.
- What cannot be made here is named as `not made`, and counts as nothing.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cxi.errors import Code, LedgerError
from cxi.lab.faults.delivery import Delivery, told
from cxi.lab.faults.ground import Ground, Plan, Site, Tally, settle_unknown, site
from cxi.ledger.base import Ledger
from cxi.log.entry import EntryType

_MOST: Final = 5000  # calls until a disk must have been full
_PAGE: Final = 4096
_SMALL: Final = 700_000  # bytes
UNAVAILABLE: Final = str(Code.LEDGER_UNAVAILABLE)


def storage(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """All of them that make sense for this backend."""
    yield clock_jumps(ground, plan)
    if ground.name == "sqlite":
        for case in (limited_file, full_disk, read_only, damaged_page, lost_end):
            yield case(ground, plan)


def clock_jumps(ground: Ground, plan: Plan) -> Tally:
    """A clock that jumps a day ahead and back gives no draw of a window twice, and no capability a second time."""
    plan.report("clock jumps")
    with site(ground, "clock jumps", how="a day ahead, and back") as at:
        if ground.name != "sqlite":
            at.tally.how = "the gateway's clock is a day off; the server's clock decides"
        ledger, now, day = at.ledger(), time.time(), 86_400.0
        server = ground.name != "sqlite"
        hourly = Delivery("hourly", "a-1", limit=1, window=3600.0, repeat="allow")
        at.perform(ledger, hourly, now=now)
        answers = {
            "a second in the hour": (now + 1, "refused"),
            "a day ahead": (now + day, "refused" if server else "lease"),
            "back again": (now + 2, "refused"),
            "a day back": (now - day, "refused"),
        }
        for number, (name, (instant, expected)) in enumerate(answers.items()):
            got = told(at.perform(ledger, hourly.again(f"b-{number}"), now=instant))
            # By the server's clock a deadline that a day-old clock set is past.
            refused = (Code.EVENT_REPEATED, Code.GRANT_EXHAUSTED, *((Code.EXPIRED,) if server else ()))
            fits = got == "lease" if expected == "lease" else got in refused
            at.tally.expect(fits, f"{name}: `{got}`")
        once = Delivery("once", "c-1", grant="once", sequence=1)
        got = told(at.consume(ledger, once, now=now + (0 if server else day), deadline=now - 1 if server else now + 30))
        at.tally.expect(got == Code.EXPIRED, f"after its deadline: `{got}`")
        for number in range(2):
            got = told(at.consume(ledger, once, now=now, deadline=now + 30))
            at.tally.expect((got == "lease") is (number == 0), f"submission {number + 1} after the clock came back: `{got}`")
        at.shut()
        at.check(most=2)
    return at.tally


def limited_file(ground: Ground, plan: Plan) -> Tally:
    """Files that may not grow: the same error as a full disk, for this process alone."""
    plan.report("full disk: a limit on the size of files")
    with site(ground, "full disk", how=f"RLIMIT_FSIZE {_SMALL:,} bytes") as at:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

        def free() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        ledger = at.ledger()
        resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL, hard))
        try:
            _fill(at, ledger, free)
        finally:
            free()
    return at.tally


def full_disk(ground: Ground, plan: Plan) -> Tally:
    """A file system with no room left, which then gets some."""
    plan.report("full disk: a small file system")
    with _mounted("size=1m,mode=0700") as disk:
        if disk is None:
            return Tally("full disk", "not made: no file system can be mounted here; the limit on files stands for it")
        with site(ground, "full disk", how="tmpfs of 1 MiB", within=disk) as at:
            _fill(at, at.ledger(), lambda: _remount(disk, "size=64m"))
        return at.tally


def _fill(at: Site, ledger: Ledger, free: Callable[[], None]) -> None:
    """Work until the disk is full, go on trying, then free it and try again."""
    full = 0
    for number in range(_MOST):
        try:
            at.perform(ledger, Delivery(f"file-{number}", f"a-{number}"))
        except LedgerError:
            at.tally.count(UNAVAILABLE)
            full += 1
            if full == 20:
                break
    at.tally.expect(full > 0, "the disk was never full")
    free()
    try:
        at.shut()
    except LedgerError:
        at.open.clear()
    ledger = at.ledger()  # what was leased, and could not be settled, is unknown now
    calls = [call for call, state in _standing(at) if state == "leased"]
    settle_unknown(ledger, at, calls)
    answer = told(at.perform(ledger, Delivery("afterwards", "z-1")))
    at.tally.expect(answer == "lease", f"with room again: `{answer}`")
    at.shut()
    at.check()


def _standing(at: Site) -> list[tuple[str, str]]:
    """(call, how it stands) by the log alone: `leased` until something else was said."""
    found: dict[str, str] = {}
    for chained in at.open[-1].entries():
        if chained.entry.kind is EntryType.ADMISSION:
            found[chained.entry.call] = "leased"
        elif chained.entry.kind in (EntryType.SETTLEMENT, EntryType.PERSON):
            found[chained.entry.call] = "over"
    return list(found.items())


def read_only(ground: Ground, plan: Plan) -> Tally:
    """A file system that became read-only refuses, and works again once it is writable."""
    plan.report("read-only file system")
    case = "read-only file system"
    with _mounted("size=8m,mode=0700") as disk:
        if disk is None and os.geteuid() == 0:
            return Tally(case, "not made: no file system can be mounted here, and root writes everything")
        how = "tmpfs remounted read-only" if disk is not None else "folder and file without the right to write"
        with site(ground, case, how=how, within=disk) as at:
            state = (disk or at.folder) / "state"
            at.perform(at.ledger(), Delivery("before", "a-1"))
            at.shut()
            with _unwritable(disk, state):
                for number in range(2):
                    try:
                        at.perform(at.ledger(), Delivery("within", f"b-{number}"))
                        at.tally.expect(False, "a read-only ledger gave a lease")
                    except LedgerError:
                        at.tally.count(UNAVAILABLE)
                at.open.clear()
            answer = told(at.perform(at.ledger(), Delivery("before", "c-1", limit=1)))
            at.tally.expect(answer == Code.EVENT_REPEATED, f"what was done before was answered with `{answer}`")
            at.perform(at.open[0], Delivery("within", "d-1"))
            at.shut()
            at.check()
        return at.tally


def damaged_page(ground: Ground, plan: Plan) -> Tally:
    """The database's last page holds something else: it refuses, or still knows all that it acknowledged."""
    plan.report("corrupted last page")
    rng = random.Random(plan.seed)  # noqa: S311
    with site(ground, "corrupted last page", how="zeros, ones and noise") as at:
        file = _filled(at, 40)
        whole = file.read_bytes()
        for number, junk in enumerate((b"\0" * _PAGE, b"\xff" * _PAGE, rng.randbytes(_PAGE))):
            file.write_bytes(whole[:-_PAGE] + junk)
            _knows_or_refuses(at, f"damage {number}")
        file.write_bytes(whole)
        at.check()
    return at.tally


def lost_end(ground: Ground, plan: Plan) -> Tally:
    """The last page of the write-ahead log is gone or damaged, and with it what was acknowledged last."""
    plan.report("corrupted last page of the write-ahead log")
    with site(ground, "corrupted last page of the write-ahead log", how="cut off, and flipped") as at:
        _filled(at, 4)
        at.child(Delivery("last", "z-1", grant="last", limit=1), die={"at": "after the acknowledgement, before the launch"})
        state = at.folder / "state"
        kept = at.folder / "kept"
        shutil.copytree(state, kept)
        for name in ("cut off", "flipped"):
            wal = state / "ledger.sqlite-wal"
            data = wal.read_bytes()
            flipped = data[:-8] + bytes(byte ^ 0xFF for byte in data[-8:])
            wal.write_bytes(data[: -_PAGE - 24] if name == "cut off" else flipped)
            _knows_or_refuses(at, name)
            shutil.rmtree(state)
            shutil.copytree(kept, state)
            state.chmod(0o700)
        at.check()
    return at.tally


def _filled(at: Site, count: int) -> Path:
    """A ledger that did this many calls; its file, closed."""
    ledger = at.ledger()
    for number in range(count):
        at.perform(ledger, Delivery(f"file-{number}", f"a-{number}", grant=f"file-{number}", limit=1))
    at.shut()
    return Path(at.address.removeprefix("sqlite:"))


def _knows_or_refuses(at: Site, name: str) -> None:
    """A ledger that opens all the same still knows every call that was acknowledged."""
    try:
        ledger = at.ledger()
        for call in tuple(at.acknowledged):
            event = "last" if call == "z-1" else f"file-{call.removeprefix('a-')}"
            got = told(at.consume(ledger, Delivery(event, f"{name}/{event}", grant=event, limit=1)))
            at.tally.expect(got != "lease", f"{name}: `{event}` got a second lease")
    except LedgerError:
        at.tally.count(UNAVAILABLE)
    at.open.clear()


@contextmanager
def _mounted(options: str) -> Iterator[Path | None]:
    """A file system in memory of its own; None where none can be mounted."""
    place = Path(tempfile.mkdtemp(prefix="cxi-disk-")).resolve()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", options, "none", str(place)]
    made = mount is not None and os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield place if made else None
    finally:
        if made:
            subprocess.run(["umount", "-l", str(place)], check=False)  # noqa: S607
        shutil.rmtree(place, ignore_errors=True)


def _remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)  # noqa: S607


@contextmanager
def _unwritable(disk: Path | None, state: Path) -> Iterator[None]:
    if disk is not None:
        _remount(disk, "ro")
        try:
            yield
        finally:
            _remount(disk, "rw")
        return
    files = [path for path in state.rglob("*") if path.is_file()]
    modes = {path: path.stat().st_mode for path in (*files, state, state / "writers")}
    for path in modes:
        path.chmod(0o400 if path.is_file() else 0o500)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
