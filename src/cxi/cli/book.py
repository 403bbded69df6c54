"""What does a command read and write of a configuration's state? Ledger, log, openings and key, opened together."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.canonical import Digest, JsonValue
from cxi.config.model import Configuration
from cxi.errors import LedgerError
from cxi.guard import CHECKPOINTS, LEDGER, OPENINGS
from cxi.ledger.replay import Replay
from cxi.ledger.sqlite import SqliteLedger
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import CheckpointFile, sign
from cxi.log.entry import ChainedEntry, EntryType, LogEntry
from cxi.log.envelope import export_public
from cxi.log.finding import Broken, Finding, FindingKind
from cxi.log.key import load_key
from cxi.log.opening import OpeningStore
from cxi.log.receipt import issue


class Book:
    """What a command reads and writes of a configuration's state."""

    def __init__(self, config: Configuration) -> None:
        if not (config.state / LEDGER).exists():
            raise LedgerError(f"no ledger in `{config.state}` yet: nothing has run under this configuration")
        self.config = config
        self._key = load_key(config.state)
        self.ledger = SqliteLedger(config.state / LEDGER, instance="cli-" + os.urandom(4).hex(), now=time.time())
        self._openings = OpeningStore(config.state / OPENINGS)

    def entries(self) -> Iterable[ChainedEntry]:
        """The log, in order."""
        return self.ledger.entries()

    def count(self) -> int:
        """How many entries the log has."""
        return self.ledger.head(time.time()).size

    def opened(self, commitment: Digest) -> JsonValue:
        """A commitment's value, or None where its opening is gone."""
        opening = self._openings.get(commitment)
        return None if opening is None else opening.value

    def checkpoints(self) -> tuple[Mapping[str, JsonValue], ...]:
        """The signed checkpoints, in order."""
        return CheckpointFile(self.config.state / CHECKPOINTS).read()

    def public_keys(self) -> list[Ed25519PublicKey]:
        """The keys that may have signed them."""
        return [self._key.public_key()]

    def public_pem(self) -> bytes:
        """The log's public key."""
        return export_public(self._key.public_key())

    def sign_head(self) -> tuple[int, Digest]:
        """Sign the present head, where the chain follows from the last checkpoint."""
        head = self.ledger.sign_head(self._key, time.time())
        return head.size, head.hash

    def verify(self) -> Verified | Broken:
        """Is the log whole, signed, and is the ledger what it tells?"""
        standing = self.ledger.standing()
        replay = Replay(standing.head)
        checkpoints = self.checkpoints()
        answer = verify(replay.watch(self.entries()), checkpoints, self.public_keys())
        findings = list(answer.findings) if isinstance(answer, Broken) else []
        if not checkpoints and standing.head:
            detail = f"{standing.head} entries, and no checkpoint in `{CHECKPOINTS}`: nobody vouches for any of them"
            findings.append(Finding(FindingKind.UNSIGNED, 0, detail))
        findings.extend(replay.differences(standing))
        return Broken(tuple(findings)) if findings else answer

    def policy_text(self, id: str) -> str:
        """A policy's sentence, or its place where it has none."""
        policy = self.config.registry.policies.get(id)
        return "(not in force now)" if policy is None else policy.text or f"{policy.file}:{policy.line}"

    def receipt(self, call: str) -> Mapping[str, JsonValue] | None:
        """The receipt of a settled admission, or None where there is none of this call."""
        admission = settlement = None
        for chained in self.entries():
            if chained.entry.call == call:
                admission = chained if chained.entry.kind is EntryType.ADMISSION else admission
                settlement = chained if chained.entry.kind is EntryType.SETTLEMENT else settlement
        if admission is None or settlement is None:
            return None
        if isinstance(answer := self.verify(), Broken):
            raise LedgerError(f"no receipt of a log that does not verify: {answer.findings[0].detail}")
        now = time.time()
        head = replace(self.ledger.head(now), size=settlement.seq, hash=settlement.hash, time=now)
        return issue(admission, settlement, sign(head, self._key), self._key)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
