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
from cxi.log.finding import Broken
from cxi.log.receipt import VerifiedReceipt, verify_receipt

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
    head = Head(stated["origin"], stated["size"], stated["head"], stated["time_ms"] / 1000)
    assert check(stated["envelope"], [PUBLIC]) == head
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTORS["key"]["seed"]))
    assert sign(head, key) == stated["envelope"], "Ed25519 signatures are deterministic (RFC 8032)"
    assert key_id(PUBLIC) == VECTORS["key"]["id"]


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
