"""How is a checkpoint written so that other people's programs read it?

- A signed note (C2SP `signed-note`) whose text is a checkpoint (C2SP `tlog-checkpoint`): three lines, the log's origin, its size
  and the Merkle root in base64; then an empty line and the signatures, one a line. The log's key has the origin for its name.
- Others (witnesses) may add signatures of their own: those of keys that are not given are passed over, as the format asks.
- Extension lines are read over, never written.
- A verifier in Go or elsewhere is given `verifier(origin, key)`.

    cxi/7f3a9c01d2e4b586
    20
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

    — cxi/7f3a9c01d2e4b586 Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+…
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import SAFE_INTEGER, Digest
from cxi.log.envelope import key_id
from cxi.log.finding import Broken, FindingKind
from cxi.log.tree import HASH_BYTES, read_digest, write_digest

DASH: Final = "\u2014 "
ED25519: Final = b"\x01"
MAX_TEXT: Final = 1_000_000
MAX_SIGNATURES: Final = 100


@dataclass(frozen=True, slots=True)
class Note:
    """What a note states.

    Attributes:
        origin: The log's name.
        size: How many entries.
        root: The Merkle root over them.
        signer: The id of the key that signed it; empty where no signature was looked at.
    """

    origin: str
    size: int
    root: Digest
    signer: Digest = ""


def write_note(origin: str, size: int, root: Digest, key: Ed25519PrivateKey) -> str:
    """A note, signed.

    Raises:
        ValueError: where the origin can be no key's name, or the root is no digest.
    """
    if not _is_name(origin):
        raise ValueError(f"`{origin[:80]}` cannot be a key's name: it is empty, or has a space or a plus")
    text = f"{origin}\n{size}\n{base64.b64encode(read_digest(root)).decode()}\n"
    signature = short_id(origin, key.public_key()) + key.sign(text.encode())
    return f"{text}\n{DASH}{origin} {base64.b64encode(signature).decode()}\n"


def read_note(note: str, public_keys: Iterable[Ed25519PublicKey]) -> Note | Broken:
    """What one of the keys vouched for under the origin's name, or what is wrong. Never raises for any text."""
    stated = read_text(note)
    if isinstance(stated, Broken):
        return stated
    text, _, signatures = note.rpartition("\n\n")
    signed = (text + "\n").encode("utf-8", "surrogatepass")
    keys = {short_id(stated.origin, key): key for key in public_keys}
    for line in signatures.splitlines():
        name, _, encoded = line.removeprefix(DASH).partition(" ")
        found = _decode(encoded)
        key = keys.get(found[:4]) if name == stated.origin else None
        if key is None:
            continue
        try:
            key.verify(found[4:], signed)
        except InvalidSignature:
            return Broken.of(FindingKind.FORGED, 0, "the signature does not hold")
        return Note(stated.origin, stated.size, stated.root, key_id(key))
    return Broken.of(FindingKind.UNKNOWN_KEY, 0, "signed by a key that is none of those given")


def read_text(note: str) -> Note | Broken:
    """What a note states, its signatures looked at for their form alone."""
    text, gap, signatures = note.rpartition("\n\n")
    lines, signed = text.split("\n"), signatures.split("\n")
    odd = any(ord(char) < 0x20 and char != "\n" for char in note) or len(note) > MAX_TEXT
    if odd or not gap or len(lines) < 3 or not all(lines) or not 2 <= len(signed) <= MAX_SIGNATURES or signed.pop():
        return _malformed("not a signed note")
    if not all(line.startswith(DASH) and len(_decode(line.rpartition(" ")[2])) > 4 for line in signed):
        return _malformed("a line behind the note's text is no signature")
    origin, size, encoded, *_extensions = lines
    root = _decode(encoded)
    if not _is_name(origin) or not _is_size(size) or len(root) != HASH_BYTES:
        return _malformed("the note is no checkpoint: an origin, a size and a root")
    return Note(origin, int(size), write_digest(root))


def short_id(name: str, key: Ed25519PublicKey) -> bytes:
    """The four bytes by which a note's signature names its key. A hint: whoever likes can make another key with the same."""
    return sha256(name.encode("utf-8", "surrogatepass") + b"\n" + ED25519 + key.public_bytes_raw()).digest()[:4]


def verifier(name: str, key: Ed25519PublicKey) -> str:
    """The verifier key as one line, `name+hex+base64`, as programs for notes take it."""
    return f"{name}+{short_id(name, key).hex()}+{base64.b64encode(ED25519 + key.public_bytes_raw()).decode()}"


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and name.isprintable() and not any(char.isspace() for char in name)


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 16 and str(int(text)) == text and int(text) <= SAFE_INTEGER


def _decode(text: str) -> bytes:
    """The bytes of base64 in its one form; empty where it is none."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return found if base64.b64encode(found).decode() == text else b""


def _malformed(detail: str) -> Broken:
    return Broken.of(FindingKind.MALFORMED, 0, detail)
