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
from cxi.log.checkpoint import Head, head_of, sign
from cxi.log.commitment import conceal
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry, read_entry
from cxi.log.envelope import export_public, key_id
from cxi.log.export import write_export
from cxi.log.finding import Broken
from cxi.log.note import write_note
from cxi.log.proof import Prover, consistency, inclusion
from cxi.log.receipt import issue
from cxi.log.succession import introduce
from cxi.log.tree import Frontier, leaf_of, write_digest

SEED = bytes(range(32))
NEXT_SEED = bytes(range(32, 64))
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


def head(entries: list[ChainedEntry], size: int, time: float) -> Head:
    """The head at a size, with its tree."""
    tree = Frontier()
    for entry in entries[:size]:
        tree.append(leaf_of(entry.hash))
    return head_of(ORIGIN, entries[size - 1].hash if size else GENESIS, time, tree)


def proof(prover: Prover, entries: list[ChainedEntry]) -> list[bytes]:
    """A proof over the log's leaves."""
    for entry in entries:
        prover.append(leaf_of(entry.hash))
    return prover.proof()


def exports(entries: list[ChainedEntry], key: Ed25519PrivateKey) -> list[Row]:
    """The log whole, and a part of it, as lines."""
    size = len(entries)
    checkpoint = sign(head(entries, size, 1_700_000_100.5), key)
    parts = {"whole": lambda _entry: True, "two kinds": lambda entry: entry.entry.kind in ("admission", "settlement")}
    return [
        {"name": name, "lines": [line.decode() for line in write_export(ORIGIN, size, [checkpoint], [], entries, keep)]}
        for name, keep in parts.items()
    ]


def broken(rows: list[Row], checkpoint: JsonValue, note: str) -> list[Row]:
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
    taken = [{**row, "seq": int(str(row["seq"])) - 1} if int(str(row["seq"])) > 4 else row for row in without(4)]
    planted: Row = {**rows[3], "body": {"planted": True}}
    renumbered = [{**row, "seq": int(str(row["seq"])) + 1} for row in rows[3:]]
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
        ("one entry removed, and those behind numbered anew", taken, none),
        ("one entry put in, and those behind numbered anew", [*rows[:3], planted, *renumbered], none),
        ("rewritten, under a note", rewritten(), [note]),
        ("removed and altered", [row for row in altered(2, call="a-9") if row["seq"] != 6], none),
    ]
    return [{"name": name, "entries": found, "checkpoints": checkpoints} for name, found, checkpoints in variants]


def build() -> Row:
    """The whole file."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    entries = whole()
    rows: list[Row] = [entry.to_json() for entry in entries]
    checkpoint = sign(head(entries, 5, 1_700_000_100.5), key)
    receipts: list[Row] = []
    for name, size in (("under the checkpoint itself", 5), ("under a later checkpoint", 7)):
        vouched = sign(head(entries, size, 1_700_000_100.5), key)
        proofs = (proof(inclusion(2, size), entries), proof(inclusion(4, size), entries))
        receipts.append({"name": name, "envelope": issue(entries[2], entries[4], vouched, key, proofs=proofs)})
    other = Ed25519PrivateKey.from_private_bytes(NEXT_SEED)
    way = [introduce(key, other.public_key(), 1_700_000_300.0)]
    vouched = sign(head(entries, 7, 1_700_000_400.0), other)
    proofs = (proof(inclusion(2, 7), entries), proof(inclusion(4, 7), entries))
    envelope = issue(entries[2], entries[4], vouched, other, proofs=proofs, introductions=way)
    receipts.append({"name": "by a key that the first one introduced", "envelope": envelope})
    tree = head(entries, 5, 0.0)
    variants = broken(rows, checkpoint, write_note(ORIGIN, 5, tree.root, key))
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
            "root": tree.root,
            "peaks": list(tree.peaks),
            "time_ms": 1_700_000_100_500,
            "note": write_note(ORIGIN, 5, tree.root, key),
        },
        "first version": sign(Head(ORIGIN, 5, entries[4].hash, 1_700_000_100.5), key),
        "roots": [head(entries, size, 0.0).root for size in range(len(entries) + 1)],
        "inclusion": [
            {"seq": seq, "size": size, "proof": [write_digest(part) for part in proof(inclusion(seq - 1, size), entries)]}
            for seq, size in ((1, 1), (3, 5), (5, 5), (3, 7), (7, 7))
        ],
        "consistency": [
            {"old": old, "size": size, "proof": [write_digest(part) for part in proof(consistency(old, size), entries)]}
            for old, size in ((0, 5), (1, 7), (4, 7), (5, 7), (7, 7))
        ],
        "exports": exports(entries, key),
        "broken": variants,
        "receipts": receipts,
    }


def main() -> None:
    """Write the file to standard output."""
    json.dump(build(), sys.stdout, indent=1, ensure_ascii=True, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
