"""With which key does this installation sign?

- One Ed25519 key a state folder: `signing-key.pem` (PKCS #8, mode 0600), and `signing-key.pub.pem` for third parties.
- It is made once: two processes that start together end with the same key.
- A key file that others can read or write, that is a link or belongs to another user is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from cxi.errors import LedgerError
from cxi.log.envelope import export_public

PRIVATE_NAME: Final = "signing-key.pem"
PUBLIC_NAME: Final = "signing-key.pub.pem"


def load_key(folder: Path) -> Ed25519PrivateKey:
    """The folder's signing key, made where there is none yet.

    Raises:
        LedgerError: where it cannot be read or made, or others could have.
    """
    path = folder / PRIVATE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _make(path)
        key = _read(path)
        public = folder / PUBLIC_NAME
        pem = export_public(key.public_key())
        if not public.is_file() or public.read_bytes() != pem:
            _write_new(public, pem, 0o644, replace=True)
    except OSError as error:
        raise LedgerError(f"cannot load the signing key `{path}`: {error.strerror}") from error
    return key


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
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
