"""`vectors/log.json`: the same hashes, the same findings, from the file alone."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import Head, check, sign
from cxi.log.commitment import commit
from cxi.log.entry import read_entry
from cxi.log.envelope import key_id, read_public
from cxi.log.export import verify_export
from cxi.log.finding import Broken
from cxi.log.proof import Consistent, Included, check_consistency, check_inclusion
from cxi.log.receipt import VerifiedReceipt, verify_receipt
from cxi.log.tree import leaf_of, read_digest

FOLDER = Path(__file__).parents[2] / "vectors"
VECTORS: dict[str, Any] = json.loads((FOLDER / "log.json").read_text())
PUBLIC = read_public(VECTORS["key"]["public"].encode())


def test_the_file_is_what_its_generator_writes() -> None:
    done = subprocess.run([sys.executable, FOLDER / "generate_log.py"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == VECTORS


def test_every_entry_has_its_hashes() -> None:
    entries = [read_entry(row) for row in VECTORS["entries"]]
    assert [entry.content for entry in entries] == VECTORS["contents"]
    assert [entry.hash for entry in entries] == VECTORS["hashes"]


def test_the_hashes_are_those_of_rfc8785_and_sha256_alone() -> None:
    def digest(value: object) -> str:
        return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()  # type: ignore[arg-type]

    previous = "sha256:" + "0" * 64
    for row, content, expected in zip(VECTORS["entries"], VECTORS["contents"], VECTORS["hashes"], strict=True):
        assert row["previous"] == previous
        assert digest({key: row[key] for key in ("time_ms", "kind", "call", "session", "body")}) == content
        previous = digest({"seq": row["seq"], "previous": previous, "content": content})
        assert previous == expected


def test_the_whole_chain_verifies_up_to_its_checkpoint() -> None:
    answer = verify([read_entry(row) for row in VECTORS["entries"]], [VECTORS["checkpoint"]["envelope"]], [PUBLIC])
    assert answer == Verified(len(VECTORS["entries"]), VECTORS["hashes"][-1], VECTORS["checkpoint"]["size"])


def test_the_checkpoint_is_signed_by_the_key_and_states_the_head() -> None:
    stated = VECTORS["checkpoint"]
    head = Head(
        stated["origin"], stated["size"], stated["head"], stated["time_ms"] / 1000, stated["root"], tuple(stated["peaks"])
    )
    assert check(stated["envelope"], [PUBLIC]) == head
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTORS["key"]["seed"]))
    assert sign(head, key) == stated["envelope"], "Ed25519 signatures are deterministic (RFC 8032)"
    assert key_id(PUBLIC) == VECTORS["key"]["id"]


def test_the_roots_are_those_of_sha256_alone() -> None:
    def root(leaves: list[bytes]) -> bytes:
        if len(leaves) < 2:
            return hashlib.sha256(b"\x00" + leaves[0]).digest() if leaves else hashlib.sha256(b"").digest()
        middle = 1 << ((len(leaves) - 1).bit_length() - 1)
        return hashlib.sha256(b"\x01" + root(leaves[:middle]) + root(leaves[middle:])).digest()

    leaves = [bytes.fromhex(text.removeprefix("sha256:")) for text in VECTORS["hashes"]]
    assert ["sha256:" + root(leaves[:size]).hex() for size in range(len(leaves) + 1)] == VECTORS["roots"]


def test_the_note_and_the_first_version_state_the_same_head() -> None:
    stated = VECTORS["checkpoint"]
    note, old = check(stated["note"], [PUBLIC]), check(VECTORS["first version"], [PUBLIC])
    assert isinstance(note, Head)
    assert isinstance(old, Head)
    assert (note.origin, note.size, note.root) == (stated["origin"], stated["size"], stated["root"])
    assert (old.origin, old.size, old.hash, old.root) == (stated["origin"], stated["size"], stated["head"], "")


@pytest.mark.parametrize("stated", VECTORS["inclusion"], ids=lambda stated: f"{stated['seq']} in {stated['size']}")
def test_each_inclusion_proof_holds(stated: dict[str, Any]) -> None:
    seq, size = stated["seq"], stated["size"]
    root, proof = read_digest(VECTORS["roots"][size]), [read_digest(part) for part in stated["proof"]]
    assert check_inclusion(seq - 1, size, leaf_of(VECTORS["hashes"][seq - 1]), proof, root) == Included(seq - 1, size)


@pytest.mark.parametrize("stated", VECTORS["consistency"], ids=lambda stated: f"{stated['old']} to {stated['size']}")
def test_each_consistency_proof_holds(stated: dict[str, Any]) -> None:
    old, size = stated["old"], stated["size"]
    roots = read_digest(VECTORS["roots"][old]), read_digest(VECTORS["roots"][size])
    assert check_consistency(old, size, *roots, [read_digest(part) for part in stated["proof"]]) == Consistent(old, size)


@pytest.mark.parametrize("stated", VECTORS["exports"], ids=lambda stated: stated["name"])
def test_each_export_verifies(stated: dict[str, Any]) -> None:
    answer = verify_export([line.encode() for line in stated["lines"]], [PUBLIC])
    assert answer == Verified(len(VECTORS["entries"]), VECTORS["hashes"][-1] if stated["name"] == "whole" else "", 7)


@pytest.mark.parametrize("variant", VECTORS["broken"], ids=lambda variant: variant["name"])
def test_each_broken_chain_gives_its_findings(variant: dict[str, Any]) -> None:
    answer = verify([read_entry(row) for row in variant["entries"]], variant["checkpoints"], [PUBLIC])
    assert isinstance(answer, Broken)
    assert [[str(finding.kind), finding.seq] for finding in answer.findings] == variant["findings"]


def test_the_commitment_is_the_digest_of_salt_and_value() -> None:
    stated = VECTORS["commitment"]
    assert commit(stated["value"], bytes.fromhex(stated["salt"])) == stated["commitment"]


@pytest.mark.parametrize("receipt", VECTORS["receipts"], ids=lambda receipt: receipt["name"])
def test_each_receipt_verifies(receipt: dict[str, Any]) -> None:
    answer = verify_receipt(receipt["envelope"], PUBLIC)
    assert isinstance(answer, VerifiedReceipt)
    assert (answer.call, answer.state, answer.assurance) == ("a-1", "done", "checked")
