"""What does it cost to verify a log, beside the least that anybody would have to do?

- **Verify**: what `cxi log verify` does over a state folder (every hash, link, the tree, the checkpoint, and the ledger compared
  with what the entries tell), against reading the same rows and taking SHA-256 of their bytes. Seconds an entry, wall clock.
- **Export**: `verify_export` over a file of the same log, against reading its lines and SHA-256 of them.
- **Checkpoint**: signing a head some entries after the last checkpoint, against reading and hashing the whole log.

The log is made first: reads, refusals and sessions, as the ledger itself chains them, of about the size that real ones have. Both
arms of a figure answer how many entries there are.

    python bench/log.py [--json] [--entries 20000] [--rounds 5] [--folder FOLDER]
    python bench/log.py --entries 1000000 --once       # one pass each, and no ratio
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from arms import Arm, Measured, alternate, command, report
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.canonical import JsonValue, digest
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import CHECKPOINTS, SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile
from cxi.log.entry import EntryType, LogEntry
from cxi.log.export import verify_export, write_export

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
START: Final = 1_750_000_000.0
TAIL: Final = 100  # entries behind the last checkpoint but one


def told(number: int) -> LogEntry:
    """An entry as a session tells it: digests, names, and commitments in place of values."""
    session, call = f"s-{number // 50:06x}", f"a-{number:08x}"
    hidden = {name: digest([name, number]) for name in ("field:path", "field:head", "atoms", "manifest", "reasons")}
    body: dict[str, JsonValue] = {
        "tool": "files.read_text_file",
        "agent": "maintainer",
        "user": "ana",
        "action": digest(["action", number]),
        "evidence": {"path": ["resolved", "request", "clause 1 of 2"], "head": ["resolved", "constant", ""]},
        "fixed": ["head"],
        "hidden": hidden,
    }
    if number % 10 == 0:
        reasons: list[JsonValue] = ["FIELD_NO_AUTHORITY", "GRANT_EXHAUSTED"]
        return LogEntry(EntryType.REFUSAL, call, session, {**body, "reasons": reasons})
    permits: list[JsonValue] = ["reads-inside-the-root", "pack.files.read"]
    return LogEntry(EntryType.READ, call, session, {**body, "authorized_by": permits, "result": digest(["result", number])})


def make(folder: Path, count: int) -> SqliteLedger:
    """A ledger with a log of this many entries, under two checkpoints: the second one `TAIL` entries after the first."""
    ledger = SqliteLedger(folder / "ledger.sqlite", instance="bench", now=START)
    for number in range(count):
        if number == max(count - TAIL, 0):
            ledger.sign_head(KEY, START)
        ledger.append(told(number), START + number / 10)
    ledger.sign_head(KEY, START + count)
    return ledger


class Log:
    """The log that is measured, and its ways."""

    def __init__(self, folder: Path, count: int) -> None:
        began = time.perf_counter()
        self.folder, self.count = folder, count
        self.ledger = make(folder, count)
        self.made = time.perf_counter() - began
        self.bytes = sum(len(row.text) for row in self.ledger.stored())
        self.file = folder / "log.jsonl"
        with self.file.open("wb") as out:
            entries = (row.read() for row in self.ledger.stored())
            out.writelines(write_export(self.ledger.origin, count, self._checkpoints(), [], entries, lambda _entry: True))

    def _checkpoints(self) -> tuple[Any, ...]:
        return CheckpointFile(self.folder / CHECKPOINTS).read()

    def verify(self) -> int:
        standing = self.ledger.standing()
        replay = Replay(standing.head)
        rows = replay.watch(self.ledger.stored())
        answer = verify(rows, self._checkpoints(), [KEY.public_key()], origin=self.ledger.origin)
        if not isinstance(answer, Verified) or answer.signed != self.count or replay.differences(standing):
            raise AssertionError(answer)
        return answer.count

    def read_rows(self) -> int:
        found = 0
        for row in self.ledger.stored():
            hashlib.sha256(row.text).digest()
            found += 1
        return found

    def verify_export(self) -> int:
        with self.file.open("rb") as lines:
            answer = verify_export(lines, [KEY.public_key()])
        if not isinstance(answer, Verified):
            raise AssertionError(answer)
        return answer.count

    def read_lines(self) -> int:
        with self.file.open("rb") as lines:
            return sum(1 for line in lines if hashlib.sha256(line).digest() and line.startswith(b'{"body"'))

    def sign(self) -> int:
        """Sign `TAIL` entries on from the last checkpoint but one, which is made the last one again."""
        path = self.folder / CHECKPOINTS
        first = path.read_bytes().split(b"\n")[0] + b"\n"
        path.write_bytes(first)
        return self.ledger.sign_head(KEY, START + self.count).size


def once(log: Log) -> int:
    """One pass each."""
    rows: list[dict[str, Any]] = []
    passes: tuple[tuple[str, Callable[[], int]], ...] = (
        ("verify", log.verify),
        ("read rows and SHA-256", log.read_rows),
        ("verify the export", log.verify_export),
        ("checkpoint", log.sign),
    )
    for name, run in passes:
        began, cpu = time.perf_counter(), time.process_time()
        found = run()
        wall, used = time.perf_counter() - began, time.process_time() - cpu
        rows.append({"pass": name, "entries": found, "seconds": round(wall, 2), "cpu_seconds": round(used, 2)})
        print(f"{name}: {found:,} entries in {wall:.2f} s ({used:.2f} s of CPU)", file=sys.stderr)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "command": command(),
                "entries": log.count,
                "bytes an entry": round(log.bytes / max(log.count, 1)),
                "seconds to make it": round(log.made, 1),
                "peak MiB": round(peak),
                "passes": rows,
            },
            indent=1,
        )
    )
    return 0


def figures(log: Log, rounds: int) -> Iterator[Measured]:
    inputs = {"entries": log.count, "bytes an entry": round(log.bytes / max(log.count, 1)), "checkpoints": 2}

    def compare(title: str, measured: Arm, anchor: Arm) -> Measured:
        return alternate(measured, anchor, title=title, rounds=rounds, calls=1, inputs=inputs)

    yield compare("verify a log", Arm("verify", log.verify), Arm("read rows and SHA-256", log.read_rows))
    yield compare("verify an export", Arm("verify", log.verify_export), Arm("read lines and SHA-256", log.read_lines))
    signing = Arm("sign a head", log.sign)
    yield compare(f"sign a head, {TAIL} entries on", signing, Arm("read rows and SHA-256", log.read_rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the log is made; a temporary folder if not given")
    parser.add_argument("--once", action="store_true", help="one pass each, and no ratio")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cxi-bench-", dir=given.folder) as folder:
        log = Log(Path(folder), given.entries)
        try:
            return once(log) if given.once else report(*figures(log, given.rounds))
        finally:
            log.ledger.close()


if __name__ == "__main__":
    sys.exit(main())
