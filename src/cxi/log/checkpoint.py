"""Up to where, and with which head and which tree, did the holder of the key vouch for the log?

- A checkpoint is a DSSE envelope over `{v, origin, size, head, root, peaks, time_ms}`. `size` is the seq of the entry whose hash
  `head` is; `root` is the Merkle root over the entries up to it, and `peaks` is what the next checkpoint goes on from
  (`cxi.log.tree`).
- Version 1 had no tree: `{origin, size, head, time_ms}`. It is read, and vouches for the chain alone.
- The same as C2SP's `tlog-checkpoint`, for other people's programs, is written and read by `cxi.log.note`; `check` takes either.
- It is made of a head that is durable already: `Ledger.head` syncs first. A log that is shorter than one of its checkpoints has
  lost entries.
- `CheckpointFile` keeps them, one a line, synced; a line that a crash tore is dropped by the next append.

    >>> key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    >>> check(sign(Head("cxi/test", 0, GENESIS, 0.0), key), [key.public_key()]).size
    0
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, canonicalize, parse_json
from cxi.errors import LedgerError, MalformedError
from cxi.log.entry import GENESIS, milliseconds
from cxi.log.envelope import peek, seal, signer, unseal
from cxi.log.finding import Broken, FindingKind
from cxi.log.note import read_note, read_text
from cxi.log.tree import Frontier, read_digest, resume, write_digest
from cxi.manifest import Instant

PAYLOAD_TYPE: Final = "application/vnd.cxi.checkpoint+json"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a log.

    Attributes:
        origin: The log's name.
        size: How many entries; the last one's seq.
        hash: The last one's hash; `GENESIS` for an empty log; empty where a note said it, which knows of the root alone.
        time: When; 0 where a note said it.
        root: The Merkle root over the entries' hashes; empty in a checkpoint of version 1.
        peaks: The tree's frontier at this size; empty where it is not known.
        signer: The id of the key that vouched for it; empty before.
    """

    origin: str
    size: int
    hash: Digest
    time: Instant
    root: Digest = ""
    peaks: tuple[Digest, ...] = ()
    signer: Digest = field(default="", compare=False)

    def frontier(self) -> Frontier | None:
        """The tree at this size, to go on from; None where the checkpoint holds none."""
        if not self.root or len(self.peaks) != self.size.bit_count():
            return None
        return resume(self.size, map(read_digest, self.peaks))


def head_of(origin: str, hash: Digest, time: Instant, tree: Frontier) -> Head:
    """The head of a log whose tree is known."""
    return Head(origin, tree.size, hash, time, write_digest(tree.root()), tuple(map(write_digest, tree.peaks)))


def sign(head: Head, key: Ed25519PrivateKey) -> dict[str, JsonValue]:
    """Vouch for a head. One without a root becomes a checkpoint of version 1."""
    stated: dict[str, JsonValue] = {
        "origin": head.origin,
        "size": head.size,
        "head": head.hash,
        "time_ms": milliseconds(head.time),
    }
    if head.root:
        stated |= {"v": 2, "root": head.root, "peaks": list(head.peaks)}
    return seal(PAYLOAD_TYPE, stated, key)


def check(envelope: JsonValue, public_keys: Iterable[Ed25519PublicKey]) -> Head | Broken:
    """The head that one of the keys vouched for, or what is wrong. A text is read as a note."""
    if isinstance(envelope, str):
        note = read_note(envelope, public_keys)
        return note if isinstance(note, Broken) else Head(note.origin, note.size, "", 0.0, note.root, signer=note.signer)
    payload = unseal(envelope, PAYLOAD_TYPE, public_keys)
    if isinstance(payload, Broken):
        return payload
    head = _read(payload)
    return head if isinstance(head, Broken) else replace(head, signer=signer(envelope))


def claimed(envelope: JsonValue) -> Head | None:
    """The head that an envelope or a note speaks of, its signature not looked at: good only to refuse by, never to trust."""
    if isinstance(envelope, str):
        note = read_text(envelope)
        return None if isinstance(note, Broken) else Head(note.origin, note.size, "", 0.0, note.root)
    body = peek(envelope)
    head = None if body is None else _read(body)
    return head if isinstance(head, Head) else None


def _read(payload: Mapping[str, JsonValue]) -> Head | Broken:
    match dict(payload):
        case {"origin": str(origin), "size": int(size), "head": str(head), "time_ms": int(time_ms), **rest}:
            if type(size) is int and type(time_ms) is int and size >= 0 and (size > 0 or head == GENESIS):
                found = Head(origin, size, head, time_ms / 1000)
                if not rest:
                    return found
                if rest.keys() == {"v", "root", "peaks"} and rest["v"] == 2:
                    return _with_tree(found, rest["root"], rest["peaks"])
        case _:
            pass
    return Broken.of(FindingKind.MALFORMED, 0, "the checkpoint lacks a part, or has one of the wrong type")


def _with_tree(head: Head, root: JsonValue, peaks: JsonValue) -> Head | Broken:
    try:
        tree = resume(head.size, [read_digest(str(peak)) for peak in peaks] if isinstance(peaks, list) else [])
    except ValueError:
        return Broken.of(FindingKind.MALFORMED, 0, "the checkpoint's peaks are no frontier of its size")
    if write_digest(tree.root()) != root:
        return Broken.of(FindingKind.MALFORMED, 0, "the checkpoint's root is not that of its peaks")
    return replace(head, root=root, peaks=tuple(map(write_digest, tree.peaks)))


class CheckpointFile:
    """Checkpoints on disk, `checkpoints.jsonl` beside the ledger. Several processes may append, of several logs."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else appends meanwhile: from the look at the last checkpoint until the next one is written.

        Raises:
            LedgerError: where the folder cannot be opened.
        """
        try:
            fd = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._fault("write", error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def append(self, envelope: Mapping[str, JsonValue]) -> None:
        """Write one, synced before this returns. Not inside of `turn`: it takes one itself.

        Raises:
            LedgerError: where it cannot be written.
        """
        with self.turn():
            self.append_in_turn(envelope)

    def append_in_turn(self, envelope: Mapping[str, JsonValue]) -> None:
        """As `append`, for who has the turn.

        Raises:
            LedgerError: where it cannot be written.
        """
        line = canonicalize(envelope) + b"\n"
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
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
            raise self._fault("write", error) from error

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
            raise self._fault("read", error) from error
        lines = data.split(b"\n")
        return tuple(self._parse(line, str(number)) for number, line in enumerate(lines[:-1], start=1))

    def last(self, origin: str = "") -> Mapping[str, JsonValue] | None:
        """The newest one (of the log of this name, where one is given), or None where there is none yet.

        Raises:
            LedgerError: where it cannot be read, or is no JSON object.
        """
        try:
            with self._path.open("rb") as file:
                end = _whole(file.fileno(), file.seek(0, os.SEEK_END))
                while end:
                    start = _whole(file.fileno(), end - 1)
                    found = self._parse(os.pread(file.fileno(), end - start, start).rstrip(b"\n"), "last")
                    head = claimed(found) if origin else None
                    if head is None or head.origin == origin:
                        return found
                    end = start
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault("read", error) from error
        return None

    def _parse(self, line: bytes, place: str) -> Mapping[str, JsonValue]:
        try:
            value = parse_json(line)
        except MalformedError as error:
            raise LedgerError(f"`{self._path}`, line {place}: not JSON") from error
        if not isinstance(value, Mapping):
            raise LedgerError(f"`{self._path}`, line {place}: not an envelope")
        return value

    def _fault(self, what: str, error: OSError) -> LedgerError:
        return LedgerError(f"cannot {what} the checkpoint file `{self._path}`: {error.strerror}")


_TAIL: Final = 16 * 1024  # bytes; a line has a few thousand


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
