"""What happened to each call? The log's entries, read together with the openings that are still there.

- A story is one call: what was asked, what was decided and why, and how it ended. It is made from the log alone.
- What was erased stays erased: a value whose opening is gone is shown as `(erased)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cxi.canonical import Digest, JsonValue
from cxi.log.entry import ChainedEntry, EntryType
from cxi.manifest import Instant

ERASED: Final = "(erased)"
Open: TypeAlias = Callable[[Digest], JsonValue]

DECISIONS: Final = {
    EntryType.ADMISSION: "admitted",
    EntryType.READ: "admitted",
    EntryType.REFUSAL: "refused",
    EntryType.NO_OP: "no-op",
    EntryType.RECORDED: "recorded",
}


@dataclass(slots=True)
class Story:
    """One call, as the log tells it.

    Attributes:
        id: The call's id.
        session: Its session.
        time: When it was decided.
        tool: The tool.
        decision: `admitted`, `refused`, `no-op` or `recorded`; `unknown` where only later entries are left.
        sink: Whether it was an admission to a sink.
        fields: Protected and fixed values by their path.
        fixed: The paths of those that are constants of the contract.
        evidence: By field: (regime, kind, reference).
        atoms: The effect's atoms.
        authorized_by: The permits.
        grant: (grant, sequence, limit), or None.
        assurance: Of the effect.
        reasons: Of a refusal: code, where, detail, needs.
        state: How a sink's call ended: `done`, `failed`, `outcome_unknown`, or `leased` while nothing is settled.
        differs: How the realized effect differs.
        recorded: The call whose answer was given again.
        released: Values that declassifiers released from the answer, by declassifier.
        manifest: The manifest's digest.
        seqs: Where it stands in the log.
    """

    id: str
    session: str
    time: Instant
    tool: str = ""
    decision: str = "unknown"
    sink: bool = False
    fields: dict[str, JsonValue] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    evidence: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    atoms: list[Mapping[str, JsonValue]] = field(default_factory=list)
    authorized_by: list[str] = field(default_factory=list)
    grant: tuple[str, int, int] | None = None
    assurance: str = ""
    reasons: list[dict[str, str]] = field(default_factory=list)
    state: str = ""
    differs: list[str] = field(default_factory=list)
    recorded: str = ""
    released: dict[str, list[JsonValue]] = field(default_factory=dict)
    manifest: Digest = ""
    seqs: list[int] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """The protected values in short, fixed ones left out where there are others."""
        chosen = [value for path, value in self.fields.items() if path not in self.fixed]
        return ", ".join(str(value) for value in chosen or self.fields.values())

    @property
    def why(self) -> str:
        """The grounds in one line."""
        if self.decision == "refused":
            return ", ".join(dict.fromkeys(reason["code"] for reason in self.reasons))
        if self.decision == "recorded":
            return f"the recorded answer of {self.recorded}"
        if self.decision == "no-op":
            return "nothing would change"
        parts: list[str] = []
        for path, (_, kind, reference) in self.evidence.items():
            if kind != "anyone":
                parts.append(f"{path}: {kind} {reference}".rstrip())
        if self.grant is not None:
            name, sequence, limit = self.grant
            parts.append(f"{name} {sequence} of {limit}")
        if self.sink:
            parts.append(count_atoms(self.atoms))
        else:
            parts.append("a read")
        if self.state not in ("", "done"):
            parts.append(self.state)
        return "; ".join(part for part in parts if part)

    def to_json(self) -> dict[str, JsonValue]:
        """For `--json`."""
        return {
            "id": self.id,
            "session": self.session,
            "time": round(self.time, 3),
            "tool": self.tool,
            "decision": self.decision,
            "why": self.why,
            "sink": self.sink,
            "fields": dict(self.fields),
            "fixed": list(self.fixed),
            "evidence": {
                path: {"regime": regime, "kind": kind, "reference": reference}
                for path, (regime, kind, reference) in self.evidence.items()
            },
            "atoms": list(self.atoms),
            "authorized_by": list(self.authorized_by),
            "grant": None if self.grant is None else {"id": self.grant[0], "sequence": self.grant[1], "limit": self.grant[2]},
            "assurance": self.assurance,
            "reasons": [dict(reason) for reason in self.reasons],
            "state": self.state,
            "differs": list(self.differs),
            "recorded": self.recorded,
            "released": {name: list(values) for name, values in self.released.items()},
            "manifest": self.manifest,
            "seqs": list(self.seqs),
        }


def count_atoms(atoms: Sequence[Mapping[str, JsonValue]]) -> str:
    """`fs.write x1, git.ref x1`."""
    counts: dict[str, int] = {}
    for atom in atoms:
        kind = str(atom.get("kind", "?"))
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{kind} x{count}" for kind, count in counts.items())


def tell(entries: Iterable[ChainedEntry], open: Open) -> tuple[Story, ...]:
    """The stories of all calls, in the order in which they were decided.

    Args:
        entries: The log, or a part of it.
        open: A commitment's value, or None where its opening is gone.
    """
    found: dict[str, Story] = {}
    for chained in entries:
        entry = chained.entry
        if not entry.call:
            continue
        story = found.get(entry.call)
        if story is None:
            story = found[entry.call] = Story(entry.call, entry.session, chained.time)
        story.seqs.append(chained.seq)
        _add(story, entry.kind, entry.body, _opened(entry.body, open))
    return tuple(found.values())


def _opened(body: Mapping[str, JsonValue], open: Open) -> dict[str, JsonValue]:
    hidden = body.get("hidden")
    if not isinstance(hidden, Mapping):
        return {}
    return {name: open(str(commitment)) for name, commitment in hidden.items()}


def _add(story: Story, kind: EntryType, body: Mapping[str, JsonValue], opened: Mapping[str, JsonValue]) -> None:
    story.tool = story.tool or str(body.get("tool", ""))
    story.fixed = story.fixed or _strings(body.get("fixed"))
    if kind in DECISIONS and story.decision in ("unknown", "admitted"):
        story.decision = DECISIONS[kind]
    for name, value in opened.items():
        if name.startswith("field:"):
            story.fields[name.removeprefix("field:")] = ERASED if value is None else value
    match kind:
        case EntryType.ADMISSION:
            _add_admission(story, body, opened)
        case EntryType.READ:
            story.authorized_by = _strings(body.get("authorized_by"))
        case EntryType.REFUSAL:
            reasons = opened.get("reasons")
            if isinstance(reasons, list):
                story.reasons = [
                    {key: str(value) for key, value in item.items()} for item in reasons if isinstance(item, Mapping)
                ]
            else:
                blank = {"where": ERASED, "detail": ERASED, "needs": ""}
                story.reasons = [{"code": code, **blank} for code in _strings(body.get("reasons"))]
        case EntryType.SETTLEMENT:
            story.state = str(body.get("state", ""))
            story.differs = _strings(opened.get("differences"))
        case EntryType.RECORDED:
            story.recorded = str(body.get("of", ""))
        case EntryType.RELEASE:
            values = opened.get("values")
            story.released[str(body.get("declassifier", ""))] = list(values) if isinstance(values, list) else []
        case EntryType.PERSON | EntryType.ALARM:
            story.state = str(body.get("state", story.state))
        case EntryType.NO_OP | EntryType.APPEAL | EntryType.SESSION | EntryType.TASK | EntryType.EPOCH | EntryType.KEY:
            pass


def _add_admission(story: Story, body: Mapping[str, JsonValue], opened: Mapping[str, JsonValue]) -> None:
    story.sink = True
    story.state = story.state or "leased"
    story.manifest = str(body.get("manifest", ""))
    sequence, limit = body.get("sequence"), body.get("limit")
    if isinstance(sequence, int) and isinstance(limit, int):
        story.grant = (str(body.get("grant", "")), sequence, limit)
    effect = body.get("effect")
    if isinstance(effect, Mapping):
        story.assurance = str(effect.get("assurance", ""))
        story.authorized_by = _strings(effect.get("authorized_by"))
    atoms = opened.get("atoms")
    if isinstance(atoms, list):
        story.atoms = [atom for atom in atoms if isinstance(atom, Mapping)]
    manifest = opened.get("manifest")
    references = manifest.get("evidence") if isinstance(manifest, Mapping) else None
    evidence = body.get("evidence")
    if isinstance(evidence, Mapping):
        for path, item in evidence.items():
            if isinstance(item, Mapping):
                kind = str(item.get("kind", ""))
                full = references.get(path) if isinstance(references, Mapping) else None
                reference = str(full.get(kind, "")) if isinstance(full, Mapping) else ERASED
                story.evidence[path] = (str(item.get("regime", "")), kind, reference)


def _strings(value: JsonValue) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
