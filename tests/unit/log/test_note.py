"""A checkpoint as a signed note: the format's published examples, and nothing that is not exactly of its form."""

from __future__ import annotations

import base64
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import digest
from cxi.log.checkpoint import check, claimed
from cxi.log.envelope import key_id
from cxi.log.finding import Broken, FindingKind
from cxi.log.note import DASH, Note, read_note, read_text, short_id, verifier, write_note
from cxi.log.tree import write_digest

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
ROOT = digest("root")
NOTE = write_note("cxi/t", 20, ROOT, KEY)


def kind(note: str, *keys: Ed25519PublicKey) -> FindingKind | None:
    answer = read_note(note, keys or [KEY.public_key()])
    return answer.findings[0].kind if isinstance(answer, Broken) else None


def test_what_is_written_is_read() -> None:
    assert read_note(NOTE, [OTHER.public_key(), KEY.public_key()]) == Note("cxi/t", 20, ROOT, key_id(KEY.public_key()))
    head = check(NOTE, [KEY.public_key()])
    assert head == claimed(NOTE)
    assert not isinstance(head, Broken)
    assert (head.origin, head.size, head.root, head.hash, head.signer) == ("cxi/t", 20, ROOT, "", key_id(KEY.public_key()))
    assert NOTE.split("\n")[:3] == ["cxi/t", "20", base64.b64encode(sha256(b'"root"').digest()).decode()]


def test_the_published_example_of_a_checkpoint_is_read() -> None:
    # C2SP, tlog-checkpoint.md: its example; the signing key is not published with it.
    note = (
        "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
        "— example.com/behind-the-sofa "
        "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    )
    root = write_digest(base64.b64decode("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="))
    assert read_text(note) == Note("example.com/behind-the-sofa", 20852163, root)
    assert kind(note) is FindingKind.UNKNOWN_KEY


def test_the_key_id_and_the_signature_are_those_of_the_published_example() -> None:
    # The example of Go's golang.org/x/mod/sumdb/note.
    name, hint, encoded = ("PeterNeumann", "c74f20a3", "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(encoded)[1:])
    assert short_id(name, key).hex() == hint
    assert verifier(name, key) == f"{name}+{hint}+{encoded}"
    signed = base64.b64decode("x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=")
    assert signed[:4].hex() == hint
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    key.verify(signed[4:], text.encode())


def test_signatures_of_others_are_passed_over_and_the_log_s_own_decides() -> None:
    witness = f"{DASH}witness.example {base64.b64encode(short_id('witness.example', OTHER.public_key()) + bytes(72)).decode()}\n"
    text, _, own = NOTE.rpartition("\n\n")
    for lines in (own + witness, witness + own):
        assert kind(f"{text}\n\n{lines}") is None
    assert kind(f"{text}\n\n{witness}") is FindingKind.UNKNOWN_KEY
    assert kind(NOTE, OTHER.public_key()) is FindingKind.UNKNOWN_KEY
    renamed = write_note("cxi/other", 20, ROOT, KEY).rpartition("\n\n")[2]
    assert kind(f"{text}\n\n{renamed}") is FindingKind.UNKNOWN_KEY, "a signature under another name is not the log's"


def test_an_extension_line_is_read_over_and_signed_too() -> None:
    text = "cxi/t\n20\n" + NOTE.split("\n")[2] + "\nanything\n"
    signature = base64.b64encode(short_id("cxi/t", KEY.public_key()) + KEY.sign(text.encode())).decode()
    assert kind(f"{text}\n{DASH}cxi/t {signature}\n") is None
    assert kind(f"{text[:-9]}\n{DASH}cxi/t {signature}\n") is FindingKind.FORGED


@pytest.mark.parametrize(
    "change",
    [
        ("\n20\n", "\n21\n"),
        ("cxi/t\n20", "cxi/u\n20"),
        (NOTE.split("\n")[2], base64.b64encode(bytes(32)).decode()),
    ],
)
def test_a_changed_statement_does_not_hold(change: tuple[str, str]) -> None:
    assert kind(NOTE.replace(*change, 1)) in (FindingKind.FORGED, FindingKind.UNKNOWN_KEY)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n\n",
        NOTE[:-1],
        NOTE + "\n",
        NOTE.replace("\n\n", "\n"),
        NOTE.replace("\n20\n", "\n020\n"),
        NOTE.replace("\n20\n", "\n+20\n"),
        NOTE.replace("\n20\n", "\n\u0662\u0660\n"),
        NOTE.replace("\n20\n", "\n99999999999999999999\n"),
        NOTE.replace("cxi/t\n20", "cxi t\n20"),
        NOTE.replace("cxi/t\n20", "cxi+t\n20"),
        NOTE.replace("cxi/t\n20", "\n20"),
        NOTE.replace(NOTE.split("\n")[2], NOTE.split("\n")[2][:-1]),
        NOTE.replace(NOTE.split("\n")[2], "AAAA"),
        NOTE.replace("\u2014", "-"),
        NOTE.replace("\n", "\r\n"),
        NOTE[: NOTE.rindex(" ")] + " AAAA\n",
        "cxi/t\n20\n" + NOTE.rpartition("\n\n")[2],
        "x" * 2_000_000,
        "\ud800" + NOTE,
    ],
)
def test_what_is_not_exactly_a_note_is_malformed(note: str) -> None:
    assert isinstance(read_text(note), Broken)
    assert kind(note) is FindingKind.MALFORMED
    assert claimed(note) is None


@pytest.mark.parametrize("origin", ["", "a b", "a+b", "a\nb", "a\u00a0b"])
def test_an_origin_that_can_be_no_name_is_not_signed(origin: str) -> None:
    with pytest.raises(ValueError):
        write_note(origin, 1, ROOT, KEY)
