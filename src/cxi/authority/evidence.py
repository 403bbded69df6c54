"""Which facts, told by a registered source, may a policy rely on now?

- An evidence source reads one object (or one value) from a position that the platform writes, over a complete read.
- It is present only while it has not expired and, where its subject is a commit, while that commit is the snapshot's HEAD.
  Otherwise it is absent: `context.evidence has …` is false.
- A policy sees `result`, `issuer`, `subject`, `revision`, `time`, `expires` and the declared attributes, each of its declared
  Cedar type; a declared one that is missing or of another type makes the evidence absent.
- A name is an identifier in a policy: `test-run` is `context.evidence.test_run`.

    >>> present((record,), snapshot, now)                                                 # doctest: +SKIP
    {'test_run': {'result': 'passed', 'subject': '9c0e…', …}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from cxi.authority.contract import ToolContract
from cxi.authority.result import is_complete, narrowed_by, platform_part, read_result
from cxi.canonical import SAFE_INTEGER, JsonValue
from cxi.effects.base import Snapshot
from cxi.manifest import CanonicalCall, Instant
from cxi.provenance import Segment

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """Where a kind of evidence comes from.

    Attributes:
        name: `test-run`.
        tool: The tool that it reads.
        position: JSONPath of the object that holds `result` and the attributes, or of a text that is the result.
        subject: `commit` where the object's `commit` names what it is about, or `none`.
        expires: Seconds until it ends.
        attributes: Attribute to its Cedar type: `String`, `Long`, `Boolean` or `Set` (of strings).
    """

    name: str
    tool: str
    position: str
    subject: str
    expires: float
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact.

    Attributes:
        name: Its source's name.
        issuer: The tool that told it.
        segment: The result that it stood in.
        position: Where in it.
        subject: The commit's full hash, or empty.
        time: When it was told.
        expires: When it ends.
        attributes: What it says, typed as its source declares.
    """

    name: str
    issuer: str
    segment: str
    position: str
    subject: str
    time: Instant
    expires: Instant
    attributes: Mapping[str, JsonValue]

    def to_context(self) -> Mapping[str, JsonValue]:
        """The record as policies see it; a declared attribute stands in place of one of ours."""
        ours: dict[str, JsonValue] = {
            "issuer": self.issuer,
            "subject": self.subject,
            "time": int(self.time),
            "expires": int(self.expires),
        }
        return MappingProxyType({**ours, **self.attributes})


def collect(
    source: EvidenceSource, contract: ToolContract, call: CanonicalCall, result: JsonValue, segment: Segment, now: Instant
) -> Evidence | None:
    """Read the evidence that a result holds, or None where it holds none. Never raises for any result."""
    if not source.tool == contract.name == call.name or narrowed_by(contract, call):
        return None
    document = read_result(result)
    if not isinstance(document, list):
        return None
    part = platform_part(contract.result, document[0])
    found = part.select(source.position) if is_complete(contract.result, part) else None
    if found is None or len(found) != 1:
        return None
    value = {"result": found[0].value} if isinstance(found[0].value, str) else found[0].value
    if not isinstance(value, Mapping):
        return None
    attributes = _attributes(source, value)
    subject = value.get("commit", "") if source.subject == "commit" else ""
    if attributes is None or not isinstance(subject, str) or source.subject not in ("commit", "none"):
        return None
    if source.subject == "commit" and _COMMIT.fullmatch(subject) is None:
        return None
    return Evidence(
        name=source.name,
        issuer=source.tool,
        segment=segment.id,
        position=found[0].position,
        subject=subject,
        time=now,
        expires=now + source.expires,
        attributes=MappingProxyType(attributes),
    )


def present(evidence: Sequence[Evidence], snapshot: Snapshot, now: Instant) -> Mapping[str, Mapping[str, JsonValue]]:
    """The evidence that holds now, by its name in policies; of several of one name the newest speaks, or none.

    Args:
        evidence: All that was collected.
        snapshot: Its HEAD is what a commit's evidence is compared with; it is asked only where there is such evidence.
        now: Seconds since the epoch.
    """
    newest: dict[str, Evidence] = {}
    for item in evidence:
        known = newest.get(item.name)
        if known is None or item.time >= known.time:
            newest[item.name] = item
    found: dict[str, Mapping[str, JsonValue]] = {}
    for item in newest.values():
        if now >= item.expires or now < item.time:
            continue
        if item.subject and item.subject != _head(snapshot):
            continue
        found[item.name.replace("-", "_")] = item.to_context()
    return MappingProxyType(found)


def _head(snapshot: Snapshot) -> str:
    answer = snapshot.git(snapshot.root.path, "resolve", ("HEAD",))
    return (answer or b"").decode("ascii", "replace").strip()


def _attributes(source: EvidenceSource, value: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """`result`, `revision` and what is declared; None where something declared is missing or of another type."""
    result, revision = value.get("result", ""), value.get("revision", "")
    found: dict[str, JsonValue] = {
        "result": result if isinstance(result, str) else "",
        "revision": str(revision) if _is(revision, "String") or _is(revision, "Long") else "",
    }
    for key, kind in source.attributes.items():
        if key not in value or not _is(value[key], kind):
            return None
        found[key] = value[key]
    return found


def _is(value: JsonValue, kind: str) -> bool:
    match kind:
        case "String":
            return isinstance(value, str)
        case "Long":
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SAFE_INTEGER
        case "Boolean":
            return isinstance(value, bool)
        case "Set":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case _:
            return False
