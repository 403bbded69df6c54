"""What narrow value did trusted code move out of a platform-written position, and where may it go?

- A release binds type, source, destination, declassifier and its version, task, policy epoch, read set and expiry.
- It authorizes ONE destination field (`files.write_file.path`), never the tool, the event or another field.
- It is void when it expired, when the epoch or the task is another, or when anything that its validators read has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cxi.canonical import Digest, JsonValue, digest
from cxi.manifest import Instant
from cxi.values.base import Value


@dataclass(frozen=True, slots=True)
class Release:
    """A typed release (D).

    Attributes:
        id: Digest of all the rest.
        value: The canonical value.
        segment: Id of the segment that it came from.
        position: JSONPath, normalized, of the exact place in the result.
        record: Which record of the source it belongs to: fields that belong together share it.
        destination: `tool.field`, one.
        declassifier: Its name and version digest, `failing-test-file@sha256:…`.
        selection: `one` or `all`.
        task: The task that it was made in.
        policy_epoch: (counter, digest).
        reads: The read set of its validators.
        expires: When it ends.
    """

    value: Value
    segment: str
    position: str
    record: str
    destination: str
    declassifier: str
    selection: str
    task: str
    policy_epoch: tuple[int, Digest]
    reads: Mapping[tuple[str, ...], Digest]
    expires: Instant

    @property
    def id(self) -> Digest:
        body: dict[str, JsonValue] = {
            "type": self.value.type,
            "value": self.value.canonical,
            "segment": self.segment,
            "position": self.position,
            "destination": self.destination,
            "declassifier": self.declassifier,
            "selection": self.selection,
            "task": self.task,
            "policy_epoch": list(self.policy_epoch),
            "reads": {"\x1f".join(key): value for key, value in self.reads.items()},
            "expires": int(self.expires * 1000),
        }
        return digest(body)
