"""A receipt proves one admission to whoever has the public key, and nothing else does."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from cxi.canonical import digest
from cxi.ledger.base import State
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import Head, head_of, sign
from cxi.log.commitment import conceal
from cxi.log.envelope import export_public, pre_authentication, seal
from cxi.log.finding import Broken, FindingKind
from cxi.log.opening import OpeningStore
from cxi.log.proof import inclusion
from cxi.log.receipt import PAYLOAD_TYPE, PREDICATE, VerifiedReceipt, disclose, issue, verify_receipt
from cxi.log.succession import introduce
from cxi.log.tree import EMPTY, Frontier, leaf_of, resume
from ledger_case import Case, open_ledger, start

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    found = open_ledger(tmp_path / "state")
    start(found)
    yield found
    found.close()


@pytest.fixture
def case(ledger: SqliteLedger) -> Case:
    return Case(ledger)


def proved(ledger: SqliteLedger, *seqs: int) -> tuple[Head, list[list[bytes]]]:
    """The log's head with its tree, and the inclusion proofs of some entries in it."""
    entries = list(ledger.entries())
    tree, provers = Frontier(), [inclusion(seq - 1, len(entries)) for seq in seqs]
    for entry in entries:
        for one in (tree, *provers):
            one.append(leaf_of(entry.hash))
    return head_of(ledger.origin, entries[-1].hash, 9.0, tree), [prover.proof() for prover in provers]


def receipt_of(ledger: SqliteLedger, call: str = "a-1", **changes: Any) -> dict[str, Any]:
    admission, settlement = ledger.entries_of(call)
    head, (first, second) = proved(ledger, admission.seq, settlement.seq)
    given: dict[str, Any] = {"key": KEY, "proofs": (first, second), **changes}
    key = given.pop("key")
    return issue(admission, settlement, sign(head, key), key, **given)


def resealed(envelope: dict[str, Any], change: Callable[[dict[str, Any]], None], key: Ed25519PrivateKey = KEY) -> dict[str, Any]:
    """The receipt with a change in its predicate, signed again."""
    statement = json.loads(base64.b64decode(envelope["payload"]))
    change(statement["predicate"])
    return seal(PAYLOAD_TYPE, statement, key)


def kinds(answer: object) -> set[FindingKind]:
    return {finding.kind for finding in answer.findings} if isinstance(answer, Broken) else set()


def test_a_receipt_verifies_with_the_public_key_alone(ledger: SqliteLedger, case: Case) -> None:
    lease = case.lease()
    case.settle(case.lease("other"))
    case.settle(lease)
    case.settle(case.lease("third"))
    answer = verify_receipt(receipt_of(ledger), KEY.public_key())
    assert isinstance(answer, VerifiedReceipt)
    assert (answer.call, answer.manifest, answer.state) == ("a-1", lease.manifest_digest, "done")
    assert (answer.assurance, answer.carriage) == ("checked", "not claimed")
    assert answer.head.size == len(list(ledger.entries()))
    assert answer.head.root == proved(ledger)[0].root


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.OUTCOME_UNKNOWN])
def test_a_receipt_says_how_it_ended(ledger: SqliteLedger, case: Case, state: State) -> None:
    case.settle(case.lease(), state)
    answer = verify_receipt(receipt_of(ledger), KEY.public_key())
    assert isinstance(answer, VerifiedReceipt)
    assert answer.state == str(state)


def test_another_key_does_not_verify_it(ledger: SqliteLedger, case: Case) -> None:
    case.settle(case.lease())
    envelope = receipt_of(ledger)
    assert kinds(verify_receipt(envelope, OTHER.public_key())) == {FindingKind.UNKNOWN_KEY}
    renamed = {**envelope, "signatures": [{**envelope["signatures"][0], "keyid": OTHER_ID}]}
    assert kinds(verify_receipt(renamed, OTHER.public_key())) == {FindingKind.FORGED}


OTHER_ID = seal("x", {}, OTHER)["signatures"][0]["keyid"]  # type: ignore[index, call-overload]


def test_one_changed_byte_does_not_verify(ledger: SqliteLedger, case: Case) -> None:
    case.settle(case.lease())
    envelope = receipt_of(ledger)
    body = bytearray(base64.b64decode(envelope["payload"]))
    for at in range(0, len(body), 37):
        changed = bytearray(body)
        changed[at] ^= 1
        assert kinds(verify_receipt({**envelope, "payload": base64.b64encode(changed).decode()}, KEY.public_key())) == {
            FindingKind.FORGED
        }


@pytest.mark.parametrize("mode", ["shadow", "", "Enforce"])
def test_a_receipt_of_shadow_mode_is_issued_and_never_verifies(ledger: SqliteLedger, case: Case, mode: str) -> None:
    case.settle(case.lease(mode=mode))
    envelope = receipt_of(ledger)
    assert kinds(verify_receipt(envelope, KEY.public_key())) == {FindingKind.NOT_ENFORCED}
    claimed = resealed(envelope, lambda body: body.update(mode="enforce"))
    assert kinds(verify_receipt(claimed, KEY.public_key())) == {FindingKind.MISMATCHED}


def _set(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        place: Any = body
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (_set("call", value="a-2"), FindingKind.MISMATCHED),
        (_set("admission", "body", "tool", value="files.delete"), FindingKind.MISMATCHED),
        (_set("admission", "session", value="s-2"), FindingKind.MISMATCHED),
        (_set("admission", "time_ms", value=7), FindingKind.MISMATCHED),
        (_set("settlement", "body", "state", value="failed"), FindingKind.MISMATCHED),
        (_set("settlement", "body", "state", value="leased"), FindingKind.MISMATCHED),
        (_set("settlement", "kind", value="read"), FindingKind.MISMATCHED),
        (_set("settlement", "time_ms", value=7), FindingKind.MISMATCHED),
        (_set("inclusion", "admission", value=[]), FindingKind.MISMATCHED),
        (_set("inclusion", "settlement", value=[]), FindingKind.MISMATCHED),
        (_set("inclusion", "settlement", 0, value=digest("x")), FindingKind.MISMATCHED),
        (_set("inclusion", "settlement", 0, value=7), FindingKind.MALFORMED),
        (_set("inclusion", "settlement", value=None), FindingKind.MALFORMED),
        (_set("inclusion", value={"admission": []}), FindingKind.MALFORMED),
        (_set("inclusion", value=None), FindingKind.MALFORMED),
        (_set("admission", "seq", value=99), FindingKind.MISMATCHED),
        (_set("more", value=1), FindingKind.MALFORMED),
        (_set("settlement", value={}), FindingKind.MALFORMED),
        (_set("checkpoint", value=sign(Head("o", 9, digest("x"), 1.0), OTHER)), FindingKind.UNKNOWN_KEY),
        (_set("checkpoint", value=sign(Head("o", 9, digest("x"), 1.0), KEY)), FindingKind.MALFORMED),
        (_set("checkpoint", value=sign(head_of("o", digest("x"), 1.0, resume(8, [EMPTY])), KEY)), FindingKind.MISMATCHED),
        (_set("checkpoint", value=sign(head_of("o", digest("x"), 1.0, resume(2, [EMPTY])), KEY)), FindingKind.MALFORMED),
    ],
)
def test_parts_that_do_not_belong_together_do_not_verify_even_when_signed(
    ledger: SqliteLedger, case: Case, change: Callable[[dict[str, Any]], None], kind: FindingKind
) -> None:
    case.settle(case.lease())
    case.settle(case.lease("other"))
    envelope = receipt_of(ledger)
    assert isinstance(verify_receipt(envelope, KEY.public_key()), VerifiedReceipt)
    assert kinds(verify_receipt(resealed(envelope, change), KEY.public_key())) == {kind}


def test_nothing_unverifiable_is_issued(ledger: SqliteLedger, case: Case) -> None:
    case.settle(case.lease())
    case.settle(case.lease("other"))
    admission, settlement = ledger.entries_of("a-1")
    _, another = ledger.entries_of("a-2")
    head, (first, second, third) = proved(ledger, admission.seq, settlement.seq, another.seq)
    for opened, closed, proofs, key in (
        (admission, settlement, ([], second), KEY),
        (admission, another, (first, third), KEY),
        (settlement, admission, (second, first), KEY),
        (admission, replace(settlement, time=0.0), (first, second), KEY),
        (admission, settlement, (first, second), OTHER),
    ):
        with pytest.raises(ValueError):
            issue(opened, closed, sign(head, KEY), key, proofs=proofs)
    with pytest.raises(ValueError):
        issue(admission, settlement, sign(ledger.head(9.0), KEY), KEY, proofs=(first, second))  # a checkpoint with no tree


def test_openings_disclose_values_against_the_receipt(ledger: SqliteLedger, case: Case) -> None:
    manifest, draw, entry = case.call()
    openings = {"field:path": conceal("src/tax.py", bytes(16)), "manifest": conceal(manifest.to_json(), bytes([1]) * 16)}
    entry = replace(entry, body={**entry.body, "hidden": {name: opening.commitment for name, opening in openings.items()}})
    case.settle(ledger.consume(manifest, draw, entry, 2.0))  # type: ignore[arg-type]
    receipt = verify_receipt(receipt_of(ledger), KEY.public_key())
    assert isinstance(receipt, VerifiedReceipt)
    assert disclose(receipt, [openings["field:path"]]) == {"field:path": "src/tax.py"}
    shown = disclose(receipt, openings.values())
    assert not isinstance(shown, Broken)
    assert digest(shown["manifest"]) == receipt.manifest
    for lie in (conceal("src/tax.py", bytes([9]) * 16), replace(openings["field:path"], canonical=b'"src/other.py"')):
        assert kinds(disclose(receipt, [lie])) == {FindingKind.MISMATCHED}


def test_after_erasure_the_chain_and_the_receipt_still_verify(ledger: SqliteLedger, case: Case, tmp_path: Path) -> None:
    store = OpeningStore(tmp_path / "state" / "openings")
    opening = conceal("a private path", bytes(16))
    store.put([opening], session="s-1", now=1.0)
    case.settle(case.lease(hidden={"field:path": opening.commitment}))
    envelope = receipt_of(ledger)
    assert store.erase(session="s-1") == 1
    assert store.get(opening.commitment) is None
    assert isinstance(verify(ledger.entries(), [sign(ledger.head(9.0), KEY)], [KEY.public_key()]), Verified)
    assert isinstance(verify_receipt(envelope, KEY.public_key()), VerifiedReceipt)
    store.close()


def test_openssl_agrees_with_the_signature(ledger: SqliteLedger, case: Case, tmp_path: Path) -> None:
    """A third party needs no CXI for the signature: PAE, the public key and openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    case.settle(case.lease())
    envelope = receipt_of(ledger)
    (tmp_path / "key.pem").write_bytes(export_public(KEY.public_key()))
    (tmp_path / "signed").write_bytes(pre_authentication(envelope["payloadType"], base64.b64decode(envelope["payload"])))
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "signed", "-sigfile", "signature"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_a_receipt_of_a_later_key_verifies_with_any_key_that_led_to_it(ledger: SqliteLedger, case: Case) -> None:
    case.settle(case.lease())
    third = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
    way = [introduce(KEY, OTHER.public_key(), 1.0), introduce(OTHER, third.public_key(), 2.0)]
    envelope = receipt_of(ledger, key=third, introductions=way)
    for pinned in (KEY, OTHER, third):
        assert isinstance(verify_receipt(envelope, pinned.public_key()), VerifiedReceipt)
    cut = resealed(envelope, _set("introductions", value=way[1:]), third)
    assert kinds(verify_receipt(cut, KEY.public_key())) == {FindingKind.UNKNOWN_KEY}
    assert isinstance(verify_receipt(cut, OTHER.public_key()), VerifiedReceipt)
    old = resealed(receipt_of(ledger, key=OTHER, introductions=way[:1]), _set("introductions", value=way), OTHER)
    assert kinds(verify_receipt(old, KEY.public_key())) == {FindingKind.UNKNOWN_KEY}
    forged = [{**way[0], "signatures": way[1]["signatures"]}, way[1]]
    assert kinds(verify_receipt(resealed(envelope, _set("introductions", value=forged), third), KEY.public_key())) == {
        FindingKind.UNKNOWN_KEY
    }


def test_a_statement_about_another_manifest_or_of_another_type_does_not_verify(ledger: SqliteLedger, case: Case) -> None:
    case.settle(case.lease())
    statement = json.loads(base64.b64decode(receipt_of(ledger)["payload"]))
    for name, value, kind in (
        ("subject", [{"name": "manifest of a-1", "digest": {"sha256": "0" * 64}}], FindingKind.MISMATCHED),
        ("subject", [], FindingKind.MISMATCHED),
        ("_type", "https://in-toto.io/Statement/v0.1", FindingKind.MALFORMED),
        ("predicateType", "https://cxi.dev/receipt/v1", FindingKind.MALFORMED),
        ("predicate", None, FindingKind.MALFORMED),
        ("more", 1, FindingKind.MALFORMED),
    ):
        assert kinds(verify_receipt(seal(PAYLOAD_TYPE, {**statement, name: value}, KEY), KEY.public_key())) == {kind}


def test_securesystemslib_verifies_the_envelope(ledger: SqliteLedger, case: Case) -> None:
    """Other people's program for DSSE: the same signature, over the same bytes."""
    case.settle(case.lease())
    envelope = Envelope.from_dict(receipt_of(ledger))
    public = SSlibKey.from_crypto(KEY.public_key(), keyid=envelope_key(receipt_of(ledger)))
    assert set(envelope.verify([public], 1)) == {public.keyid}
    other = SSlibKey.from_crypto(OTHER.public_key(), keyid=public.keyid)
    with pytest.raises(VerificationError):
        envelope.verify([other], 1)


def test_in_toto_reads_the_statement(ledger: SqliteLedger, case: Case) -> None:
    """Other people's program for in-toto: a valid statement of version 1, about the manifest."""
    lease = case.lease()
    case.settle(lease)
    statement = json_format.Parse(base64.b64decode(receipt_of(ledger)["payload"]), StatementMessage())
    Statement.copy_from_pb(statement).validate()
    assert statement.predicate_type == PREDICATE
    (subject,) = statement.subject
    assert "sha256:" + subject.digest["sha256"] == lease.manifest_digest
    assert statement.predicate["call"] == "a-1"


def envelope_key(envelope: dict[str, Any]) -> str:
    return str(envelope["signatures"][0]["keyid"])


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"payload": 1, "payloadType": PAYLOAD_TYPE, "signatures": []}])
def test_what_is_no_envelope_is_malformed(value: Any) -> None:
    assert kinds(verify_receipt(value, KEY.public_key())) == {FindingKind.MALFORMED}
