"""With which key does this installation sign?

- One Ed25519 key a state folder: `signing-key.pem` (PKCS #8, mode 0600), and `signing-key.pub.pem` for third parties.
- It is made once: two processes that start together end with the same key.
- A key file that others can read or write, that is a link or belongs to another user is refused.
- A rotation (`cxi.log.rotation`) prepares the next key beside it, and then puts it in its place: the private key before it is
  gone. `introductions.jsonl` keeps how each key introduced the next, for receipts and for who pins the first one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from cxi.canonical import JsonValue
from cxi.errors import LedgerError, MalformedError
from cxi.log.checkpoint import CheckpointFile
from cxi.log.envelope import export_public, key_id, read_public
from cxi.log.finding import Broken
from cxi.log.succession import latest, line, read_introduction

PRIVATE_NAME: Final = "signing-key.pem"
PUBLIC_NAME: Final = "signing-key.pub.pem"
DELEGATION_NAME: Final = "delegation-key.pem"
NEXT_NAME: Final = "signing-key.next.pem"
INTRODUCTIONS: Final = "introductions.jsonl"
TRUSTED: Final = "trusted-keys"


def load_key(folder: Path) -> Ed25519PrivateKey:
    """The folder's signing key, made where there is none yet.

    Raises:
        LedgerError: where it cannot be read or made, or others could have.
    """
    key = _load(folder, PRIVATE_NAME)
    try:
        public = folder / PUBLIC_NAME
        pem = export_public(key.public_key())
        if not public.is_file() or public.read_bytes() != pem:
            _write_new(public, pem, 0o644, replace=True)
    except OSError as error:
        raise _fault(folder / PUBLIC_NAME, error) from error
    return key


def load_delegation_key(folder: Path) -> Ed25519PrivateKey:
    """The folder's key for delegations, made where there is none yet; the log's own never signs one.

    Raises:
        LedgerError: as `load_key`.
    """
    return _load(folder, DELEGATION_NAME)


def prepare_next(folder: Path) -> Ed25519PrivateKey:
    """The key that is to follow: made, or the one that a rotation which was cut off had made.

    Raises:
        LedgerError: as `load_key`.
    """
    return _load(folder, NEXT_NAME)


def promote_next(folder: Path) -> None:
    """Put the next key in the place of the present one.

    Raises:
        LedgerError: where it cannot be done.
    """
    try:
        (folder / NEXT_NAME).replace(folder / PRIVATE_NAME)
        _sync_folder(folder)
    except OSError as error:
        raise _fault(folder / NEXT_NAME, error) from error
    load_key(folder)


def trusted_keys(folder: Path) -> tuple[Ed25519PublicKey, ...]:
    """The first keys of other hosts that write the same ledger, as a person put them into `trusted-keys/*.pem`.

    Raises:
        LedgerError: where one cannot be read.
    """
    found = []
    for path in sorted((folder / TRUSTED).glob("*.pem")):
        try:
            found.append(read_public(path.read_bytes()))
        except (OSError, MalformedError) as error:
            raise LedgerError(f"`{path}` is no public key in PEM") from error
    return tuple(found)


def read_introductions(folder: Path) -> tuple[Mapping[str, JsonValue], ...]:
    """How each key of this folder introduced the next, the first one's first.

    Raises:
        LedgerError: where the file cannot be read.
    """
    return CheckpointFile(folder / INTRODUCTIONS).read()


def add_introduction(folder: Path, envelope: Mapping[str, JsonValue]) -> None:
    """Keep one more, synced; one that is there already is not written again.

    Raises:
        LedgerError: where it cannot be written.
    """
    if envelope not in read_introductions(folder):
        CheckpointFile(folder / INTRODUCTIONS).append(envelope)


def first_key(folder: Path) -> Ed25519PublicKey:
    """This folder's first key: the one that a third party pinned who never heard of a rotation.

    Raises:
        LedgerError: where the keys in the folder do not follow from one another up to the present one.
    """
    present, kept = load_key(folder).public_key(), read_introductions(folder)
    answer = read_introduction(kept[0]) if kept else None
    if isinstance(answer, Broken):
        raise LedgerError(f"`{folder / INTRODUCTIONS}`: {answer.findings[0].detail}")
    first = present if answer is None else answer.by
    if key_id(latest(first, kept)) != key_id(present):
        raise LedgerError(
            f"`{folder / PRIVATE_NAME}` is not the key that `{INTRODUCTIONS}` leads to; `cxi log key rotate` ends a rotation that"
            " was cut off"
        )
    return first


def earlier_keys(folder: Path) -> list[Ed25519PublicKey]:
    """The keys that reigned here before the present one, the first one's first.

    Raises:
        LedgerError: where the keys in the folder do not follow from one another up to the present one.
    """
    return line(first_key(folder), read_introductions(folder))[:-1]


def _load(folder: Path, name: str) -> Ed25519PrivateKey:
    path = folder / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _make(path)
        return _read(path)
    except OSError as error:
        raise _fault(path, error) from error


def _fault(path: Path, error: OSError) -> LedgerError:
    return LedgerError(f"cannot use the signing key `{path}`: {error.strerror}")


def _make(path: Path) -> None:
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_new(path, pem, 0o600, replace=False)


def _read(path: Path) -> Ed25519PrivateKey:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.geteuid():
            raise LedgerError(f"the signing key `{path}` must be a file of this user that nobody else can open (mode 0600)")
        data = os.read(fd, 64 * 1024)
    finally:
        os.close(fd)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise LedgerError(f"`{path}` is no private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise LedgerError(f"`{path}` is no Ed25519 key")
    return key


def _write_new(path: Path, data: bytes, mode: int, *, replace: bool) -> None:
    """Write a file whole, synced, before it has its name; the first of several writers wins unless `replace`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            if os.write(fd, data) != len(data):
                raise LedgerError(f"`{path}` was not written whole")
            os.fsync(fd)
        finally:
            os.close(fd)
        if replace:
            draft.replace(path)
        else:
            try:
                path.hardlink_to(draft)
            except FileExistsError:
                return  # another process made it first
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
