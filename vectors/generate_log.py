"""Make `log.json`: a small chain with its hashes, a checkpoint under a fixed key, and broken variants with their findings.

    python vectors/generate_log.py > vectors/log.json

Any implementation must compute the same hashes, accept the whole chain, and find the same (kind, seq) in each broken one.
The key is a test key that everybody knows.
"""

from __future__ import annotations

import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.canonical import JsonValue, digest
from cxi.log.chain import verify
from cxi.log.checkpoint import Head, sign
from cxi.log.commitment import conceal
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry, read_entry
from cxi.log.envelope import export_public, key_id
from cxi.log.finding import Broken
from cxi.log.receipt import issue

SEED = bytes(range(32))
ORIGIN = "cxi/vectors"
SALT = bytes(range(16))

Row = dict[str, JsonValue]


def chain_of(entries: list[LogEntry]) -> list[ChainedEntry]:
    """The entries, one a second, each behind the one before."""
    found: list[ChainedEntry] = []
    previous = GENESIS
    for seq, entry in enumerate(entries, start=1):
        chained = ChainedEntry(seq, previous, 1_700_000_000.0 + seq + 0.123, entry)
        found.append(chained)
        previous = chained.hash
    return found


def whole() -> list[ChainedEntry]:
    """A session with an admission, a refusal and a settlement."""
    hidden = conceal("src/tax.py", SALT)
    manifest = digest({"v": 1})
    first: list[LogEntry] = [
        LogEntry(EntryType.EPOCH, "", "", {"tenant": "local", "epoch": [1, digest("policies")]}),
        LogEntry(EntryType.SESSION, "", "s-1", {"act": "open", "agent": "maintainer"}),
        LogEntry(
            EntryType.ADMISSION,
            "a-1",
            "s-1",
            {
                "mode": "enforce",
                "manifest": manifest,
                "tool": "files.write_file",
                "effect": {"assurance": "checked"},
                "carriage": "not claimed",
                "hidden": {"field:path": hidden.commitment},
            },
        ),
        LogEntry(EntryType.REFUSAL, "a-2", "s-1", {"reasons": ["FIELD_NO_AUTHORITY"], "note": "é \U0001f600 \u2028"}),
    ]
    admission = chain_of(first)[2]
    settled: Row = {"state": "done", "manifest": manifest, "admission": [admission.seq, admission.hash]}
    return chain_of(
        [
            *first,
            LogEntry(EntryType.SETTLEMENT, "a-1", "s-1", settled),
            LogEntry(EntryType.READ, "a-3", "s-1", {"tool": "files.read_text_file"}),
            LogEntry(EntryType.SESSION, "", "s-1", {"act": "close"}),
        ]
    )


def broken(rows: list[Row], checkpoint: JsonValue) -> list[Row]:
    """Each way to break it: what stands in the file, and which checkpoints are there."""

    def without(*gone: int) -> list[Row]:
        return [row for row in rows if row["seq"] not in gone]

    def altered(seq: int, **changes: JsonValue) -> list[Row]:
        return [{**row, **changes} if row["seq"] == seq else row for row in rows]

    def rewritten() -> list[Row]:
        entries = [LogEntry(EntryType(str(row["kind"])), str(row["call"]), str(row["session"]), row["body"]) for row in rows]  # type: ignore[arg-type]
        entries[1] = LogEntry(EntryType.SESSION, "", "s-1", {"act": "open", "agent": "another"})
        return [entry.to_json() for entry in chain_of(entries)]

    swapped = [rows[0], rows[2], rows[1], *rows[3:]]
    forged = json.loads(json.dumps(checkpoint))
    forged["signatures"][0]["sig"] = "A" * 86 + "=="
    none: list[JsonValue] = []
    variants: list[tuple[str, list[Row], list[JsonValue]]] = [
        ("one entry removed", without(4), none),
        ("two entries removed", without(3, 4), none),
        ("the first entry removed", without(1), none),
        ("cut at the end", without(5, 6, 7), [checkpoint]),
        ("all removed", [], [checkpoint]),
        ("two entries swapped", swapped, none),
        ("an entry repeated", [*rows[:3], rows[2], *rows[3:]], none),
        ("a body altered", altered(4, body={"reasons": []}), none),
        ("a time altered", altered(2, time_ms=1), none),
        ("a kind altered", altered(6, kind="no-op"), none),
        ("the link altered", altered(4, previous=GENESIS), none),
        ("the first link altered", altered(1, previous=digest("x")), none),
        ("the entry under the checkpoint altered", altered(5, body={"state": "failed"}), [checkpoint]),
        ("rewritten from the second entry on", rewritten(), [checkpoint]),
        ("a forged checkpoint", rows, [forged]),
        ("removed and altered", [row for row in altered(2, call="a-9") if row["seq"] != 6], none),
    ]
    return [{"name": name, "entries": found, "checkpoints": checkpoints} for name, found, checkpoints in variants]


def build() -> Row:
    """The whole file."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    entries = whole()
    rows: list[Row] = [entry.to_json() for entry in entries]
    checkpoint = sign(Head(ORIGIN, 5, entries[4].hash, 1_700_000_100.5), key)
    receipts: list[Row] = []
    late = sign(Head(ORIGIN, 7, entries[6].hash, 1_700_000_200.0), key)
    receipts.append({"name": "to the checkpoint itself", "envelope": issue(entries[2], entries[4], checkpoint, key)})
    path = [entry.content for entry in entries[5:]]
    receipts.append({"name": "along a path", "envelope": issue(entries[2], entries[4], late, key, path=path)})
    variants = broken(rows, checkpoint)
    for variant in variants:
        answer = verify([read_entry(row) for row in variant["entries"]], variant["checkpoints"], [key.public_key()])  # type: ignore[union-attr, arg-type]
        if not isinstance(answer, Broken):
            raise AssertionError(variant["name"])
        variant["findings"] = [[str(finding.kind), finding.seq] for finding in answer.findings]
    opening = conceal("src/tax.py", SALT)
    return {
        "about": "python vectors/generate_log.py > vectors/log.json; the key is a test key",
        "key": {"seed": SEED.hex(), "id": key_id(key.public_key()), "public": export_public(key.public_key()).decode()},
        "commitment": {"salt": SALT.hex(), "value": opening.value, "commitment": opening.commitment},
        "entries": rows,
        "contents": [entry.content for entry in entries],
        "hashes": [entry.hash for entry in entries],
        "checkpoint": {
            "envelope": checkpoint,
            "origin": ORIGIN,
            "size": 5,
            "head": entries[4].hash,
            "time_ms": 1_700_000_100_500,
        },
        "broken": variants,
        "receipts": receipts,
    }


def main() -> None:
    """Write the file to standard output."""
    json.dump(build(), sys.stdout, indent=1, ensure_ascii=True, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
