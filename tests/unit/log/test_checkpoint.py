"""Checkpoints are signed, kept whole, and the key is one and nobody else's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cxi.canonical import digest
from cxi.errors import LedgerError, MalformedError
from cxi.log.checkpoint import CheckpointFile, Head, check, claimed, sign
from cxi.log.entry import GENESIS
from cxi.log.envelope import export_public, key_id, pre_authentication, read_public, seal, unseal
from cxi.log.finding import Broken, FindingKind
from cxi.log.key import PRIVATE_NAME, PUBLIC_NAME, load_key

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
HEAD = Head("cxi/t", 3, digest("head"), 12.345)


def test_what_is_signed_is_what_is_checked() -> None:
    assert check(sign(HEAD, KEY), [KEY.public_key()]) == HEAD
    assert claimed(sign(HEAD, KEY)) == HEAD


def test_the_signature_is_over_the_pre_authentication_encoding_of_dsse() -> None:
    # The example of https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"origin": "o", "size": -1, "head": GENESIS, "time_ms": 1},
        {"origin": "o", "size": True, "head": GENESIS, "time_ms": 1},
        {"origin": "o", "size": 0, "head": digest("x"), "time_ms": 1},
        {"origin": "o", "size": 1, "head": GENESIS, "time_ms": 1, "more": 1},
        {"origin": 1, "size": 1, "head": GENESIS, "time_ms": 1},
    ],
)
def test_a_signed_payload_of_another_form_is_malformed(payload: dict[str, object]) -> None:
    envelope = seal("application/vnd.cxi.checkpoint+json", payload, KEY)  # type: ignore[arg-type]
    answer = check(envelope, [KEY.public_key()])
    assert isinstance(answer, Broken)
    assert answer.findings[0].kind is FindingKind.MALFORMED


def test_an_envelope_of_another_type_is_no_checkpoint() -> None:
    envelope = seal("application/vnd.cxi.receipt+json", {}, KEY)
    assert isinstance(unseal(envelope, "application/vnd.cxi.checkpoint+json", [KEY.public_key()]), Broken)
    assert isinstance(
        unseal(
            {**envelope, "payloadType": "application/vnd.cxi.checkpoint+json"},
            "application/vnd.cxi.checkpoint+json",
            [KEY.public_key()],
        ),
        Broken,
    )


def test_a_key_id_is_what_openssl_says(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    pem = tmp_path / "key.pem"
    pem.write_bytes(export_public(KEY.public_key()))
    der = subprocess.run([openssl, "pkey", "-pubin", "-in", pem, "-outform", "DER"], capture_output=True, check=True).stdout
    assert key_id(KEY.public_key()) == "sha256:" + hashlib.sha256(der).hexdigest()
    assert key_id(read_public(pem.read_bytes())) == key_id(KEY.public_key())


@pytest.mark.parametrize("pem", [b"", b"not a key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_public_key_is_malformed(pem: bytes) -> None:
    with pytest.raises(MalformedError):
        read_public(pem)


# --- the file


def test_checkpoints_are_kept_in_order(tmp_path: Path) -> None:
    file = CheckpointFile(tmp_path / "checkpoints.jsonl")
    assert (file.read(), file.last()) == ((), None)
    envelopes = [sign(Head("o", size, digest(size), 1.0), KEY) for size in range(1, 40)]
    for envelope in envelopes:
        file.append(envelope)
    assert file.read() == tuple(envelopes)
    assert file.last() == envelopes[-1]
    assert (tmp_path / "checkpoints.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("torn", [b'{"payl', b"{", b'{"payload": "' + b"A" * 20_000])
def test_a_torn_line_is_not_read_and_the_next_append_mends_it(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "checkpoints.jsonl"
    file = CheckpointFile(path)
    first, second = sign(HEAD, KEY), sign(Head("o", 4, digest(4), 1.0), KEY)
    file.append(first)
    with path.open("ab") as raw:
        raw.write(torn)
    assert file.read() == (first,)
    assert file.last() == first
    file.append(second)
    assert file.read() == (first, second)


def test_a_whole_line_that_is_no_envelope_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.jsonl"
    path.write_bytes(b"[]\n")
    for read in (CheckpointFile(path).read, CheckpointFile(path).last):
        with pytest.raises(LedgerError):
            read()


def test_a_checkpoint_file_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "link", tmp_path / "absent" / "file", tmp_path):
        with pytest.raises(LedgerError):
            CheckpointFile(path).append({})


# --- the key


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    first, second = load_key(tmp_path / "state"), load_key(tmp_path / "state")
    assert key_id(first.public_key()) == key_id(second.public_key())
    assert (tmp_path / "state" / PRIVATE_NAME).stat().st_mode & 0o777 == 0o600
    assert key_id(read_public((tmp_path / "state" / PUBLIC_NAME).read_bytes())) == key_id(first.public_key())
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [PRIVATE_NAME, PUBLIC_NAME]


def test_a_public_file_that_was_changed_is_written_anew(tmp_path: Path) -> None:
    key = load_key(tmp_path)
    (tmp_path / PUBLIC_NAME).write_bytes(b"another")
    load_key(tmp_path)
    assert key_id(read_public((tmp_path / PUBLIC_NAME).read_bytes())) == key_id(key.public_key())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    load_key(tmp_path)
    (tmp_path / PRIVATE_NAME).chmod(mode)
    with pytest.raises(LedgerError):
        load_key(tmp_path)


def test_a_key_that_is_a_link_or_no_key_is_refused(tmp_path: Path) -> None:
    load_key(tmp_path / "real")
    (tmp_path / "state").mkdir()
    path = tmp_path / "state" / PRIVATE_NAME
    path.symlink_to(tmp_path / "real" / PRIVATE_NAME)
    with pytest.raises(LedgerError):
        load_key(tmp_path / "state")
    path.unlink()
    path.write_bytes(b"not a key")
    path.chmod(0o600)
    with pytest.raises(LedgerError):
        load_key(tmp_path / "state")


def test_processes_that_start_together_have_one_key(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from cxi.log.key import load_key; from cxi.log.envelope import key_id; sys.stdin.readline();"
        "print(key_id(load_key(pathlib.Path(sys.argv[1])).public_key()))"
    )
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "state"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    found = {starter.communicate("go\n", timeout=60)[0].strip() for starter in starters}
    assert found == {key_id(load_key(tmp_path / "state").public_key())}
