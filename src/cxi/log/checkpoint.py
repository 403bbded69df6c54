"""Up to where, and with which head, did the holder of the key vouch for the log?

- A checkpoint is a DSSE envelope over `{origin, size, head, time_ms}`: what C2SP's `tlog-checkpoint` states, with the head of a
  hash
  chain in place of a tree's root. `size` is the seq of the entry whose hash `head` is.
- It is made of a head that is durable already: `SqliteLedger.head` syncs first. A log that is shorter than one of its
  checkpoints has lost
  entries.
- `CheckpointFile` keeps them, one a line, synced; a line that a crash tore is dropped by the next append.

    >>> key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    >>> check(sign(Head("cxi/test", 0, GENESIS, 0.0), key), [key.public_key()])
    Head(origin='cxi/test', size=0, hash='sha256:0000000000000000000000000000000000000000000000000000000000000000', time=0.0)
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, canonicalize, parse_json
from cxi.errors import LedgerError, MalformedError
from cxi.log.entry import GENESIS, milliseconds
from cxi.log.envelope import seal, unseal
from cxi.log.finding import Broken, FindingKind
from cxi.manifest import Instant

PAYLOAD_TYPE: Final = "application/vnd.cxi.checkpoint+json"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a log.

    Attributes:
        origin: The log's name.
        size: How many entries; the last one's seq.
        hash: The last one's hash; `GENESIS` for an empty log.
        time: When.
    """

    origin: str
    size: int
    hash: Digest
    time: Instant


def sign(head: Head, key: Ed25519PrivateKey) -> dict[str, JsonValue]:
    """Vouch for a head."""
    return seal(
        PAYLOAD_TYPE,
        {"origin": head.origin, "size": head.size, "head": head.hash, "time_ms": milliseconds(head.time)},
        key,
    )


def check(envelope: JsonValue, public_keys: Iterable[Ed25519PublicKey]) -> Head | Broken:
    """The head that one of the keys vouched for, or what is wrong."""
    payload = unseal(envelope, PAYLOAD_TYPE, public_keys)
    return payload if isinstance(payload, Broken) else _read(payload)


def claimed(envelope: JsonValue) -> Head | None:
    """The head that an envelope speaks of, its signature not looked at: good only to refuse by, never to trust."""
    payload = envelope.get("payload") if isinstance(envelope, Mapping) else None
    try:
        body = parse_json(base64.b64decode(payload, validate=True)) if isinstance(payload, str) else None
    except (MalformedError, ValueError):
        return None
    head = _read(body) if isinstance(body, Mapping) else None
    return head if isinstance(head, Head) else None


def _read(payload: Mapping[str, JsonValue]) -> Head | Broken:
    match dict(payload):
        case {"origin": str(origin), "size": int(size), "head": str(head), "time_ms": int(time_ms), **rest} if not rest:
            if type(size) is int and type(time_ms) is int and size >= 0 and (size > 0 or head == GENESIS):
                return Head(origin, size, head, time_ms / 1000)
    return Broken.of(FindingKind.MALFORMED, 0, "the checkpoint lacks a part, or has one of the wrong type")


class CheckpointFile:
    """Checkpoints on disk, `checkpoints.jsonl` beside the ledger. Several processes may append."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, envelope: Mapping[str, JsonValue]) -> None:
        """Write one, synced before this returns.

        Raises:
            LedgerError: where it cannot be written.
        """
        line = canonicalize(envelope) + b"\n"
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                size = os.fstat(fd).st_size
                whole = _whole(fd, size)
                if whole != size:
                    os.ftruncate(fd, whole)
                if os.write(fd, line) != len(line):
                    os.ftruncate(fd, whole)
                    raise LedgerError(f"the checkpoint was not written whole to `{self._path}`")
                os.fsync(fd)
            finally:
                os.close(fd)
            if size == 0:
                _sync_folder(self._path.parent)
        except OSError as error:
            raise LedgerError(f"cannot write the checkpoint file `{self._path}`: {error.strerror}") from error

    def read(self) -> tuple[Mapping[str, JsonValue], ...]:
        """All of them, in order; signatures are not looked at here.

        Raises:
            LedgerError: where a line is no JSON object.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise LedgerError(f"cannot read the checkpoint file `{self._path}`: {error.strerror}") from error
        lines = data.split(b"\n")
        return tuple(self._parse(line, number) for number, line in enumerate(lines[:-1], start=1))

    def last(self) -> Mapping[str, JsonValue] | None:
        """The newest one, or None where there is none yet.

        Raises:
            LedgerError: as `read`.
        """
        try:
            with self._path.open("rb") as file:
                end = _whole(file.fileno(), file.seek(0, os.SEEK_END))
                start = _whole(file.fileno(), end - 1) if end else 0
                line = os.pread(file.fileno(), end - start, start).rstrip(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"cannot read the checkpoint file `{self._path}`: {error.strerror}") from error
        return self._parse(line, 0) if line else None

    def _parse(self, line: bytes, number: int) -> Mapping[str, JsonValue]:
        try:
            value = parse_json(line)
        except MalformedError as error:
            raise LedgerError(f"`{self._path}`, line {number or 'last'}: not JSON") from error
        if not isinstance(value, Mapping):
            raise LedgerError(f"`{self._path}`, line {number or 'last'}: not an envelope")
        return value


_TAIL: Final = 16 * 1024  # bytes; a line has under one thousand


def _whole(fd: int, size: int) -> int:
    """Where the last whole line of the first `size` bytes ends."""
    while size > 0:
        start = max(0, size - _TAIL)
        at = os.pread(fd, size - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        size = start
    return 0


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
