"""What can a third party check, offline, with nothing but the public key?

- A receipt is a DSSE envelope (`application/vnd.cxi.receipt+json`) that carries the admission and the settlement as they stand
  in the
  log, the content digests of the entries from there to a checkpoint's head, and that checkpoint.
- `verify_receipt` recomputes every hash: the settlement names the admission by seq and hash, the path joins the settlement to
  the head
  that the checkpoint vouches for, and all of it is signed by one key.
- Values stand in it as commitments; whoever is given openings can `disclose` them against the receipt.
- Only `"mode": "enforce"` verifies as an admission; shadow mode never does.
- A path is at most `MAX_PATH` entries; with a longer one, sign a fresh checkpoint right after the settlement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, digest
from cxi.errors import MalformedError
from cxi.log.checkpoint import Head, check
from cxi.log.commitment import Opening, opens
from cxi.log.entry import ChainedEntry, EntryType, chain, read_entry
from cxi.log.envelope import seal, unseal
from cxi.log.finding import Broken, FindingKind

PAYLOAD_TYPE: Final = "application/vnd.cxi.receipt+json"
MAX_PATH: Final = 1000
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
        head: The head of the log that vouches for it.
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
    path: Sequence[Digest] = (),
) -> dict[str, JsonValue]:
    """Write a receipt.

    Args:
        admission: As the log has it.
        settlement: As the log has it.
        checkpoint: Signed by the same key, at or after the settlement.
        key: The installation's key.
        path: `ChainedEntry.content` of each entry after the settlement, up to the checkpoint's size.

    Raises:
        ValueError: where the parts do not verify together: a receipt that nobody could check is never issued. One of shadow
        mode is
            issued, and says so.
    """
    if len(path) > MAX_PATH:
        raise ValueError(f"the path has {len(path)} entries, over {MAX_PATH}: sign a checkpoint right after the settlement")
    body: dict[str, JsonValue] = {
        "v": 1,
        "mode": admission.entry.body.get("mode"),
        "call": admission.entry.call,
        "manifest": admission.entry.body.get("manifest"),
        "admission": admission.to_json(),
        "settlement": settlement.to_json(),
        "path": list(path),
        "checkpoint": checkpoint,
    }
    envelope = seal(PAYLOAD_TYPE, body, key)
    answer = verify_receipt(envelope, key.public_key())
    if isinstance(answer, Broken) and any(finding.kind is not FindingKind.NOT_ENFORCED for finding in answer.findings):
        raise ValueError("; ".join(finding.detail for finding in answer.findings))
    return envelope


def verify_receipt(envelope: JsonValue, public_key: Ed25519PublicKey) -> VerifiedReceipt | Broken:
    """What the receipt proves, or what is wrong with it. Never raises for any JSON."""
    # 1. the signature, and the form
    payload = unseal(envelope, PAYLOAD_TYPE, (public_key,))
    if isinstance(payload, Broken):
        return payload
    if payload.keys() != _KEYS or payload["v"] != 1:
        return Broken.of(FindingKind.MALFORMED, 0, "not a receipt of version 1")
    try:
        admission, settlement = read_entry(payload["admission"]), read_entry(payload["settlement"])
    except MalformedError as error:
        return Broken.of(FindingKind.MALFORMED, 0, error.reason.detail)
    path = payload["path"]
    if not isinstance(path, list) or len(path) > MAX_PATH:
        return Broken.of(FindingKind.MALFORMED, 0, f"the path is no list of at most {MAX_PATH} digests")

    # 2. the two entries are of one call, and the settlement names the admission
    belongs = _belong(payload, admission, settlement)
    if belongs is not None:
        return belongs

    # 3. the path joins the settlement to the checkpoint
    head = check(payload["checkpoint"], (public_key,))
    if isinstance(head, Broken):
        return head
    seq, found = settlement.seq, settlement.hash
    for content in path:
        if not isinstance(content, str):
            return Broken.of(FindingKind.MALFORMED, 0, "a step of the path is no digest")
        seq, found = seq + 1, chain(seq + 1, found, content)
    if (head.size, head.hash) != (seq, found):
        return Broken.of(FindingKind.MISMATCHED, settlement.seq, "the path does not end in the checkpoint's head")

    # 4. an admission, not a rehearsal
    if admission.entry.body.get("mode") != ENFORCE:  # the payload's own is the same, by step 2
        return Broken.of(FindingKind.NOT_ENFORCED, admission.seq, "not of mode `enforce`: nothing was admitted")
    body, effect = settlement.entry.body, admission.entry.body.get("effect")
    assurance = effect.get("assurance") if isinstance(effect, Mapping) else None
    carriage = admission.entry.body.get("carriage")
    return VerifiedReceipt(
        call=admission.entry.call,
        manifest=str(payload["manifest"]),
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


def _belong(payload: Mapping[str, JsonValue], admission: ChainedEntry, settlement: ChainedEntry) -> Broken | None:
    opened, closed = admission.entry, settlement.entry
    checks = (
        (opened.kind is EntryType.ADMISSION, "the first entry is no admission"),
        (closed.kind is EntryType.SETTLEMENT, "the second entry is no settlement"),
        (bool(opened.call) and opened.call == closed.call == payload["call"], "the entries are of different calls"),
        (opened.session == closed.session, "the entries are of different sessions"),
        (closed.body.get("admission") == [admission.seq, admission.hash], "the settlement names another admission"),
        (
            isinstance(payload["manifest"], str)
            and payload["manifest"] == opened.body.get("manifest") == closed.body.get("manifest"),
            "the entries name different manifests",
        ),
        (settlement.seq > admission.seq, "the settlement stands before the admission"),
        (closed.body.get("state") in SETTLED, "the settlement names no outcome"),
        (payload["mode"] == opened.body.get("mode"), "the receipt and its admission name different modes"),
    )
    for holds, detail in checks:
        if not holds:
            return Broken.of(FindingKind.MISMATCHED, admission.seq, detail)
    return None


_KEYS: Final = frozenset({"v", "mode", "call", "manifest", "admission", "settlement", "path", "checkpoint"})
