"""Who signed exactly these bytes?

- DSSE v1 (https://github.com/secure-systems-lab/dsse, `protocol.md`): the signature is over PAE(type, payload), Ed25519 (RFC
  8032).
- A key's id is the digest of its public key in SubjectPublicKeyInfo DER (RFC 8410): `openssl pkey -pubin -outform DER |
  sha256sum`.
- The payload is canonical JSON; it is read only after its signature holds, and only if it is byte for byte canonical.
- Pure: keys are handed in (`cxi.log.key` keeps them).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from cxi.canonical import Digest, JsonValue, canonicalize, digest_bytes, parse_json
from cxi.errors import Code, MalformedError, Reason
from cxi.log.finding import Broken, FindingKind

_KEYS: Final = frozenset({"payload", "payloadType", "signatures"})


def key_id(key: Ed25519PublicKey) -> Digest:
    """The key's id."""
    return digest_bytes(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def export_public(key: Ed25519PublicKey) -> bytes:
    """The public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def read_public(pem: bytes) -> Ed25519PublicKey:
    """The public key of a PEM file.

    Raises:
        MalformedError: where it is no Ed25519 public key.
    """
    try:
        key = load_pem_public_key(pem)
    except ValueError as error:
        raise MalformedError(Reason(Code.MALFORMED_JSON, "not a public key in PEM", where="public key")) from error
    if not isinstance(key, Ed25519PublicKey):
        raise MalformedError(Reason(Code.MALFORMED_JSON, "not an Ed25519 key", where="public key"))
    return key


def seal(payload_type: str, payload: JsonValue, key: Ed25519PrivateKey) -> dict[str, JsonValue]:
    """A DSSE envelope over the canonical bytes of a payload."""
    body = canonicalize(payload)
    return {
        "payload": base64.b64encode(body).decode(),
        "payloadType": payload_type,
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(pre_authentication(payload_type, body))).decode(),
            }
        ],
    }


def unseal(envelope: JsonValue, payload_type: str, public_keys: Iterable[Ed25519PublicKey]) -> Mapping[str, JsonValue] | Broken:
    """The payload of an envelope that one of the keys signed, or what is wrong.

    Never raises for any JSON. The envelope's own `keyid` is a hint and is not believed: a key is looked up by it, and the
    signature decides.
    """
    if not isinstance(envelope, Mapping) or envelope.keys() != _KEYS:
        return Broken.of(FindingKind.MALFORMED, 0, "not a DSSE envelope")
    if envelope["payloadType"] != payload_type:
        return Broken.of(FindingKind.MALFORMED, 0, f"the payload type is not `{payload_type}`")
    body = _decode(envelope["payload"])
    signatures = envelope["signatures"]
    if body is None or not isinstance(signatures, list) or len(signatures) != 1:
        return Broken.of(FindingKind.MALFORMED, 0, "an envelope has one payload and one signature, in base64")
    signed = signatures[0]
    signature = _decode(signed.get("sig")) if isinstance(signed, Mapping) else None
    if signature is None:
        return Broken.of(FindingKind.MALFORMED, 0, "the signature is not base64")
    named = {key_id(key): key for key in public_keys}.get(str(signed.get("keyid")))
    if named is None:
        return Broken.of(FindingKind.UNKNOWN_KEY, 0, "signed by a key that is none of those given")
    try:
        named.verify(signature, pre_authentication(payload_type, body))
    except InvalidSignature:
        return Broken.of(FindingKind.FORGED, 0, "the signature does not hold")
    try:
        payload = parse_json(body)
        exact = canonicalize(payload) == body
    except MalformedError as error:
        return Broken.of(FindingKind.MALFORMED, 0, f"the payload is not canonical JSON: {error.reason.detail}")
    if not exact or not isinstance(payload, Mapping):
        return Broken.of(FindingKind.MALFORMED, 0, "the payload is not a canonical JSON object")
    return payload


def signer(envelope: JsonValue) -> Digest:
    """The id of the key that an envelope names; the one that signed it, where `unseal` took it."""
    match envelope:
        case {"signatures": [{"keyid": str(found), **_rest}]}:
            return found
        case _:
            return ""


def peek(envelope: JsonValue) -> Mapping[str, JsonValue] | None:
    """The payload of an envelope whose signature nobody looked at: good to refuse by, or to find the key to check it with."""
    encoded = envelope.get("payload") if isinstance(envelope, Mapping) else None
    body = _decode(encoded)
    try:
        payload = None if body is None else parse_json(body)
    except MalformedError:
        return None
    return payload if isinstance(payload, Mapping) else None


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """PAE of DSSE v1: `"DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload`."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _decode(value: JsonValue) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
