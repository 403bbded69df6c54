"""What does a command read and write of a configuration's state? Ledger, log, openings and keys, opened together."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import Digest, JsonValue, canonicalize
from cxi.config.model import Configuration
from cxi.errors import LedgerError
from cxi.guard import CHECKPOINTS, LEDGER, OPENINGS
from cxi.ledger.open import address_of, open_ledger
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, fold, verify_all
from cxi.log.checkpoint import CheckpointFile, Head, check, claimed, sign
from cxi.log.entry import ChainedEntry, EntryType, LogEntry, Stored
from cxi.log.envelope import export_public, key_id
from cxi.log.export import write_export
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.log.key import earlier_keys, first_key, load_key, read_introductions, trusted_keys
from cxi.log.note import write_note
from cxi.log.opening import OpeningStore
from cxi.log.proof import consistency, inclusion
from cxi.log.receipt import issue
from cxi.log.rotation import Rotated, rotate
from cxi.log.succession import read_introduction
from cxi.log.tree import write_digest

if TYPE_CHECKING:
    from cxi.ledger.postgres import PostgresLedger


Show: TypeAlias = Mapping[str, Callable[[bytes], None]]


def _silently(items: Iterable[Any], _total: int) -> Iterable[Any]:
    return items


@dataclass(frozen=True, slots=True)
class Key:
    """One key of this installation.

    Attributes:
        key: The key.
        since: When the key before it introduced it; None for the first one.
        reigns: Whether it signs now.
    """

    key: Ed25519PublicKey
    since: float | None
    reigns: bool


class Book:
    """What a command reads and writes of a configuration's state."""

    def __init__(self, config: Configuration) -> None:
        address = address_of(config.ledger, os.environ)
        if not address and not (config.state / LEDGER).exists():
            raise LedgerError(f"no ledger in `{config.state}` yet: nothing has run under this configuration")
        self.config = config
        self._key = load_key(config.state)
        self._file = CheckpointFile(config.state / CHECKPOINTS)
        instance = "cli-" + os.urandom(8).hex()
        self.ledger = open_ledger(address, config.state, tenant=config.tenant, instance=instance, clock=time.time, beats=False)
        self._openings = OpeningStore(config.state / OPENINGS)
        self.progress: Callable[[Iterable[Any], int], Iterable[Any]] = _silently

    def entries(self) -> Iterable[ChainedEntry]:
        """The log, in order."""
        return self.ledger.entries()

    def count(self) -> int:
        """How many entries the log has."""
        return self.ledger.stats(self.config.tenant).entries

    def opened(self, commitment: Digest) -> JsonValue:
        """A commitment's value, or None where its opening is gone."""
        opening = self._openings.get(commitment)
        return None if opening is None else opening.value

    def checkpoints(self) -> tuple[Mapping[str, JsonValue], ...]:
        """The signed checkpoints, in order."""
        kept = self._file.read()
        if isinstance(self.ledger, SqliteLedger):
            return kept
        # What other hosts signed, and what this one did before its file was lost.
        known = {canonicalize(envelope) for envelope in kept}
        return (*kept, *(one for one in self.ledger.checkpoints() if isinstance(one, Mapping) and canonicalize(one) not in known))

    def signers(self) -> list[Key]:
        """The keys of this installation, the first one's first."""
        found = [Key(first_key(self.config.state), None, reigns=False)]
        for envelope in read_introductions(self.config.state):
            answer = read_introduction(envelope)
            if not isinstance(answer, Broken):
                found.append(Key(answer.key, answer.time, reigns=False))
        present = key_id(self._key.public_key())
        return [Key(one.key, one.since, reigns=key_id(one.key) == present) for one in found]

    def public_pem(self) -> bytes:
        """The public key that reigns."""
        return export_public(self._key.public_key())

    def rotate(self, reason: str) -> Rotated:
        """Let a new key take the place of the present one."""
        self.ledger.head(time.time())  # a ledger of many writers gives this one a chain
        answer = rotate(self.config.state, self._file, self.ledger, time.time(), person=getpass.getuser(), reason=reason)
        self._key = load_key(self.config.state)
        return answer

    def sign_head(self) -> Head:
        """Sign the present head, where the chain follows from the last checkpoint."""
        return self.ledger.sign_head(self._key, time.time())

    def note(self, head: Head) -> str:
        """A head as a signed note, for other people's programs."""
        return write_note(head.origin, head.size, head.root, self._key)

    def verify(self, *, others: Sequence[JsonValue] = (), show: Show | None = None) -> Verified | Broken:
        """Is the log whole, signed, and is the ledger what it tells?

        Args:
            others: Checkpoints that somebody kept elsewhere.
            show: Is shown each leaf of the tree, by the log's name.
        """
        if not isinstance(self.ledger, SqliteLedger):
            return self._verify_chains(self.ledger, others, show)
        standing = self.ledger.standing()
        replay = Replay(standing.head)
        checkpoints = self.checkpoints()
        rows = self.progress(replay.watch(self.ledger.stored()), standing.head)
        answer = fold(verify_all({self.ledger.origin: rows}, [*checkpoints, *others], [first_key(self.config.state)], show=show))
        findings = list(answer.findings) if isinstance(answer, Broken) else []
        if not checkpoints and standing.head:
            detail = f"{standing.head} entries, and no checkpoint in `{CHECKPOINTS}`: nobody vouches for any of them"
            findings.append(Finding(FindingKind.UNSIGNED, 0, detail))
        findings.extend(replay.differences(standing))
        return Broken(tuple(findings)) if findings else answer

    def _verify_chains(self, ledger: PostgresLedger, others: Sequence[JsonValue], show: Show | None) -> Verified | Broken:
        """The same over the chains of all writers."""
        checkpoints = self.checkpoints()
        sizes = ledger.sizes()
        rows = {name: self.progress(ledger.stored(origin=name), size) for name, size in sizes.items()}
        keys = [first_key(self.config.state), *trusted_keys(self.config.state)]
        introductions = read_introductions(self.config.state)
        answer = fold(verify_all(rows, [*checkpoints, *others], keys, introductions=introductions, show=show))
        findings = list(answer.findings) if isinstance(answer, Broken) else []
        total: int = sum(sizes.values())
        if total and not checkpoints:
            detail = f"{total} entries, and no checkpoint of any: nobody vouches for them"
            findings.append(Finding(FindingKind.UNSIGNED, 0, detail))
        findings.extend(ledger.differences())
        return Broken(tuple(findings)) if findings else answer

    def policy_text(self, id: str) -> str:
        """A policy's sentence, or its place where it has none."""
        policy = self.config.registry.policies.get(id)
        return "(not in force now)" if policy is None else policy.text or f"{policy.file}:{policy.line}"

    def receipt(self, call: str) -> Mapping[str, JsonValue] | None:
        """The receipt of a settled admission, or None where there is none of this call.

        It stands under the last checkpoint where that covers the settlement, else under a new one.
        """
        found = self.ledger.entries_of(call)
        admission = next((one for one in reversed(found) if one.entry.kind is EntryType.ADMISSION), None)
        settlement = next((one for one in reversed(found) if one.entry.kind is EntryType.SETTLEMENT), None)
        if admission is None or settlement is None:
            return None
        origin = self._origin_of(admission)
        if self._origin_of(settlement) != origin:
            raise LedgerError(f"`{call}` was settled by another writer than the one that admitted it: no one tree holds both")
        envelope, head = self._vouched(settlement.seq, origin)
        provers = inclusion(admission.seq - 1, head.size), inclusion(settlement.seq - 1, head.size)

        def show(leaf: bytes) -> None:
            for prover in provers:
                prover.append(leaf)

        if isinstance(answer := self.verify(show={origin: show}), Broken):
            raise LedgerError(f"no receipt of a log that does not verify: {answer.findings[0].detail}")
        return issue(
            admission,
            settlement,
            envelope,
            self._key,
            proofs=(provers[0].proof(), provers[1].proof()),
            introductions=read_introductions(self.config.state),
        )

    def grown(self, old: Head) -> Mapping[str, JsonValue]:
        """What proves to whoever holds an older checkpoint that this log only grew since: a new checkpoint, and the proof.

        Raises:
            LedgerError: where the log is shorter, or does not verify.
        """
        envelope, head = self._vouched(old.size, old.origin)
        prover = consistency(old.size, head.size)
        if isinstance(answer := self.verify(show={old.origin: prover.append}), Broken):
            raise LedgerError(f"no proof from a log that does not verify: {answer.findings[0].detail}")
        return {
            "checkpoint": envelope,
            "introductions": list(read_introductions(self.config.state)),
            "proof": [write_digest(part) for part in prover.proof()],
        }

    def origins(self) -> tuple[str, ...]:
        """The names of the logs: one, or one a writer."""
        return (self.ledger.origin,) if isinstance(self.ledger, SqliteLedger) else tuple(self.ledger.sizes())

    def export(self, keep: Callable[[ChainedEntry], bool], *, whole: bool, origin: str) -> Iterator[bytes]:
        """A log as JSON lines, up to a head that is signed first; of another host's, up to the last one that it signed.

        Args:
            keep: Which entries are shown.
            whole: Whether all are: then the older checkpoints can be held against them too.
            origin: The log's name.
        """
        self.sign_head()
        named = ((claimed(envelope), envelope) for envelope in self.checkpoints())
        signed = [(head, envelope) for head, envelope in named if head is not None and head.origin == origin and head.root]
        if not signed:
            raise LedgerError(f"no checkpoint of the log `{origin}`: nobody vouches for any of it")
        head, last = max(signed, key=lambda pair: pair[0].size)
        entries = (row.read() for row in self._stored(origin) if row.seq <= head.size)
        return write_export(
            head.origin,
            head.size,
            [envelope for _, envelope in signed] if whole else [last],
            read_introductions(self.config.state),
            self.progress(entries, head.size),
            keep,
        )

    def erase(self, *, session: str, before: float | None, reason: str) -> int:
        """Erase openings, and log that a person did."""
        count = self._openings.erase(session=session, before=before)
        body: dict[str, JsonValue] = {
            "act": "erase",
            "by": getpass.getuser(),
            "reason": reason,
            "session": session,
            "erased": count,
        }
        self.ledger.append(LogEntry(EntryType.PERSON, "", "", body), time.time(), durable=True)
        return count

    def close(self) -> None:
        """Close what is open."""
        self._openings.close()
        self.ledger.close()

    def _stored(self, origin: str) -> Iterable[Stored]:
        return self.ledger.stored() if isinstance(self.ledger, SqliteLedger) else self.ledger.stored(origin=origin)

    def _origin_of(self, entry: ChainedEntry) -> str:
        """The name of the log that has this entry."""
        if isinstance(self.ledger, SqliteLedger):
            return self.ledger.origin
        for origin in self.ledger.sizes():
            row = next(iter(self.ledger.stored(entry.seq, origin)), None)
            if row is not None and (row.seq, row.stated) == (entry.seq, entry.hash):
                return origin
        raise LedgerError(f"no log has the entry {entry.seq} of `{entry.entry.call}`")

    def _vouched(self, size: int, origin: str) -> tuple[JsonValue, Head]:
        """A checkpoint of the present key, with a tree, that covers this many entries: the last one, or a new one."""
        found = self._covers(size, origin)
        if found is None:
            self.sign_head()
            found = self._covers(size, origin)
        if found is None:
            raise LedgerError(f"no checkpoint of this host covers {size} entries of `{origin}`: who writes it signs when it ends")
        return found

    def _covers(self, size: int, origin: str) -> tuple[JsonValue, Head] | None:
        envelope = self._file.last(origin)
        present, earlier = self._key.public_key(), earlier_keys(self.config.state)
        head = None if envelope is None else check(envelope, (present, *earlier))
        if not isinstance(head, Head) or head.origin != origin or not head.root or head.size < size:
            return None
        if head.signer == key_id(present):
            return envelope, head
        # An earlier key of this installation vouched for it, and a rotation in another log retired that key.
        return None if isinstance(self.ledger, SqliteLedger) else (sign(head, self._key), head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
