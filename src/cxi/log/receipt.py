"""What can a third party check, offline, with nothing but the public key?

- A receipt is a DSSE envelope over an in-toto statement (v1). Its subject is the action manifest, by its digest; its predicate
  carries the admission and the settlement as they stand in the log, a signed checkpoint, and for each of the two the inclusion
  proof that joins it to the checkpoint's root. Any program for DSSE and in-toto reads it; any for RFC 9162 checks the proofs.
- `verify_receipt` recomputes every hash: the settlement names the admission by seq and hash, both are in the tree that the
  checkpoint vouches for, and all of it is signed by the key that was pinned, or by one that it introduced: the introductions
  are carried too.
- Values stand in it as commitments; whoever is given openings can `disclose` them against the receipt.
- Only `"mode": "enforce"` verifies as an admission; shadow mode never does.
- It says nothing of what came after its checkpoint: that its key was retired later, or that the log goes on from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, digest
from cxi.errors import MalformedError
from cxi.log.checkpoint import Head, check
from cxi.log.commitment import Opening, opens
from cxi.log.entry import ChainedEntry, EntryType, read_entry
from cxi.log.envelope import peek, seal, unseal
from cxi.log.finding import Broken, FindingKind
from cxi.log.proof import check_inclusion
from cxi.log.succession import latest
from cxi.log.tree import leaf_of, read_digest, write_digest

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://cxi.dev/receipt/v2"
ENFORCE: Final = "enforce"
SETTLED: Final = frozenset({"done", "failed", "outcome_unknown"})


@dataclass(frozen=True, slots=True)
class VerifiedReceipt:
    """What a receipt proves to whoever trusts the key.

    Attributes:
        call: The call's id.
        manifest: The manifest's digest.
        admission: The admission, whole.
        settlement: The settlement, whole.
        state: How it ended: `done`, `failed` or `outcome_unknown`.
        assurance: What is known of the realized effect.
        carriage: The carriage manifest's digest, or "not claimed".
        head: The head of the log that vouches for it, with the root of its tree.
    """

    call: str
    manifest: Digest
    admission: ChainedEntry
    settlement: ChainedEntry
    state: str
    assurance: str
    carriage: str
    head: Head


def issue(
    admission: ChainedEntry,
    settlement: ChainedEntry,
    checkpoint: JsonValue,
    key: Ed25519PrivateKey,
    *,
    proofs: tuple[Sequence[bytes], Sequence[bytes]],
    introductions: Sequence[JsonValue] = (),
) -> dict[str, JsonValue]:
    """Write a receipt.

    Args:
        admission: As the log has it.
        settlement: As the log has it.
        checkpoint: With a root, signed by the same key, at or after the settlement.
        key: The key that reigns.
        proofs: The inclusion proofs of admission and settlement in the checkpoint's tree (`cxi.log.proof.inclusion`).
        introductions: How the first key of this installation introduced the next, and so on up to this one.

    Raises:
        ValueError: where the parts do not verify together: a receipt that nobody could check is never issued. One of shadow
            mode is issued, and says so.
    """
    manifest = str(admission.entry.body.get("manifest"))
    statement: dict[str, JsonValue] = {
        "_type": STATEMENT,
        "subject": _subject(admission.entry.call, manifest),
        "predicateType": PREDICATE,
        "predicate": {
            "mode": admission.entry.body.get("mode"),
            "call": admission.entry.call,
            "admission": admission.to_json(),
            "settlement": settlement.to_json(),
            "inclusion": dict(zip(_PROVED, ([write_digest(part) for part in proof] for proof in proofs), strict=True)),
            "checkpoint": checkpoint,
            "introductions": list(introductions),
        },
    }
    envelope = seal(PAYLOAD_TYPE, statement, key)
    answer = verify_receipt(envelope, key.public_key())
    if isinstance(answer, Broken) and any(finding.kind is not FindingKind.NOT_ENFORCED for finding in answer.findings):
        raise ValueError("; ".join(finding.detail for finding in answer.findings))
    return envelope


def verify_receipt(envelope: JsonValue, public_key: Ed25519PublicKey) -> VerifiedReceipt | Broken:
    """What the receipt proves, or what is wrong with it. Never raises for any JSON.

    Args:
        envelope: The receipt.
        public_key: The key that was pinned: this installation's first one, or a later one.
    """
    # 1. the signature, by the pinned key or by one that it introduced; and the form
    stated = (peek(envelope) or {}).get("predicate")
    introductions = stated.get("introductions") if isinstance(stated, Mapping) else None
    key = latest(public_key, introductions if isinstance(introductions, list) else ())
    statement = unseal(envelope, PAYLOAD_TYPE, (key,))
    if isinstance(statement, Broken):
        return statement
    predicate = statement.get("predicate")
    if statement.keys() != _STATEMENT_KEYS or statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
        return Broken.of(FindingKind.MALFORMED, 0, "not an in-toto statement with a receipt of version 2")
    if not isinstance(predicate, Mapping) or predicate.keys() != _KEYS:
        return Broken.of(FindingKind.MALFORMED, 0, "the receipt lacks a part, or has one too many")
    try:
        admission, settlement = read_entry(predicate["admission"]), read_entry(predicate["settlement"])
        proofs = _read_proofs(predicate["inclusion"])
    except (MalformedError, ValueError) as error:
        return Broken.of(FindingKind.MALFORMED, 0, error.reason.detail if isinstance(error, MalformedError) else str(error))

    # 2. the two entries are of one call, the settlement names the admission, and the statement is about their manifest
    belongs = _belong(statement, predicate, admission, settlement)
    if belongs is not None:
        return belongs

    # 3. both are in the tree that the checkpoint vouches for
    head = check(predicate["checkpoint"], (key,))
    if isinstance(head, Broken):
        return head
    if not head.root:
        return Broken.of(FindingKind.MALFORMED, 0, "the checkpoint has no tree")
    for entry, proof in zip((admission, settlement), proofs, strict=True):
        included = check_inclusion(entry.seq - 1, head.size, leaf_of(entry.hash), proof, read_digest(head.root))
        if isinstance(included, Broken):
            return included

    # 4. an admission, not a rehearsal
    if admission.entry.body.get("mode") != ENFORCE:  # the predicate's own is the same, by step 2
        return Broken.of(FindingKind.NOT_ENFORCED, admission.seq, "not of mode `enforce`: nothing was admitted")
    body, effect = settlement.entry.body, admission.entry.body.get("effect")
    assurance = effect.get("assurance") if isinstance(effect, Mapping) else None
    carriage = admission.entry.body.get("carriage")
    return VerifiedReceipt(
        call=admission.entry.call,
        manifest=str(admission.entry.body.get("manifest")),
        admission=admission,
        settlement=settlement,
        state=str(body["state"]),
        assurance=str(assurance or body.get("assurance") or "not stated"),
        carriage=str(carriage or "not claimed"),
        head=head,
    )


def disclose(receipt: VerifiedReceipt, openings: Iterable[Opening]) -> Mapping[str, JsonValue] | Broken:
    """The values of the admission that these openings show, by their name in `hidden`.

    An opening that is of no commitment in the admission is a finding; so is a `manifest` whose digest is another than the
    receipt's.
    """
    hidden = receipt.admission.entry.body.get("hidden")
    names = {value: name for name, value in hidden.items()} if isinstance(hidden, Mapping) else {}
    shown: dict[str, JsonValue] = {}
    for opening in openings:
        name = names.get(opening.commitment)
        if name is None or not opens(opening, opening.commitment):
            return Broken.of(FindingKind.MISMATCHED, receipt.admission.seq, "an opening is of no commitment in the admission")
        shown[name] = opening.value
    if "manifest" in shown and digest(shown["manifest"]) != receipt.manifest:
        return Broken.of(FindingKind.MISMATCHED, receipt.admission.seq, "the manifest shown has another digest")
    return shown


def _belong(
    statement: Mapping[str, JsonValue], predicate: Mapping[str, JsonValue], admission: ChainedEntry, settlement: ChainedEntry
) -> Broken | None:
    opened, closed = admission.entry, settlement.entry
    manifest = opened.body.get("manifest")
    subject = _subject(opened.call, str(manifest))
    checks = (
        (opened.kind is EntryType.ADMISSION, "the first entry is no admission"),
        (closed.kind is EntryType.SETTLEMENT, "the second entry is no settlement"),
        (bool(opened.call) and opened.call == closed.call == predicate["call"], "the entries are of different calls"),
        (opened.session == closed.session, "the entries are of different sessions"),
        (closed.body.get("admission") == [admission.seq, admission.hash], "the settlement names another admission"),
        (
            isinstance(manifest, str) and manifest == closed.body.get("manifest") and statement["subject"] == subject,
            "statement and entries name different manifests",
        ),
        (settlement.seq > admission.seq, "the settlement stands before the admission"),
        (closed.body.get("state") in SETTLED, "the settlement names no outcome"),
        (predicate["mode"] == opened.body.get("mode"), "the receipt and its admission name different modes"),
    )
    for holds, detail in checks:
        if not holds:
            return Broken.of(FindingKind.MISMATCHED, admission.seq, detail)
    return None


def _subject(call: str, manifest: Digest) -> list[JsonValue]:
    """What the statement is about: the action manifest."""
    return [{"name": f"manifest of {call}", "digest": {"sha256": manifest.removeprefix("sha256:")}}]


def _read_proofs(inclusion: JsonValue) -> list[list[bytes]]:
    if not isinstance(inclusion, Mapping) or tuple(sorted(inclusion)) != _PROVED:
        raise ValueError("there is not one inclusion proof each of admission and settlement")
    proofs = [inclusion[name] for name in _PROVED]
    return [[read_digest(str(part)) for part in proof] if isinstance(proof, list) else _no_proof() for proof in proofs]


def _no_proof() -> NoReturn:
    raise ValueError("an inclusion proof is a list of digests")


_PROVED: Final = ("admission", "settlement")
_STATEMENT_KEYS: Final = frozenset({"_type", "subject", "predicateType", "predicate"})
_KEYS: Final = frozenset({"mode", "call", "admission", "settlement", "inclusion", "checkpoint", "introductions"})
