"""Which narrow values may leave a result, and which conditions hold?

- A declassifier reads one position that the contract says the platform writes, over a complete read, and offers each value to one
  destination field. Its filters see the platform's part of the result alone (`authority.result`).
- A value is released if its type reads it, every validator holds, and neither it, its record, nor what was read is in the origin
  index: what the agent itself wrote earlier is no source.
- Validators are pure: they see the world through a snapshot, and what they read is the release's read set.
- What is skipped leaves a note; nothing here raises for any result.
- Mind the position: a filter, an index or an order that an outsider can steer makes the value one that an outsider selected. With
  `selection: one` more than one value is ambiguous at the gate, however it came about.

    >>> releases, notes = declassify(d, contract, call, result, segment, snapshot,           # doctest: +SKIP
    ...     touched=frozenset(), task="fix-bug", epoch=(1, "sha256:…"), now=0.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.authority.contract import ToolContract, TypeRef
from cxi.authority.release import Release
from cxi.authority.result import Location, Match, Part, is_complete, narrowed_by, platform_part, read_result
from cxi.canonical import Digest, JsonValue, canonicalize
from cxi.effects.base import Snapshot
from cxi.errors import MalformedError, Refused
from cxi.manifest import CanonicalCall, Instant, Role
from cxi.provenance import Segment
from cxi.values import BadParameter, value_type
from cxi.values.base import Entry, EntryKind, Root, Value
from cxi.values.hidden import visible

MAX_RELEASES: Final = 1000  # of one declassifier from one result; a flood gives nothing

Validator: TypeAlias = Callable[[Value, Snapshot], str | None]
OriginKey: TypeAlias = tuple[str, str]

# Selections that trusted code makes over a complete read (design, section 5: a trusted selection).
TRUSTED_SELECTIONS: Final = ("max", "min")
# Kinds of the origin index that name the same thing: a path, whichever type read it.
_PATHS: Final = frozenset({"path", "RepoPath", "FilePath"})
# Types that name no record: that an agent wrote "closed" once makes no other "closed" its own.
_NO_RECORDS: Final = frozenset({"Boolean", "DateTime", "Enum", "Integer", "Json", "Text"})


@dataclass(frozen=True, slots=True)
class Declassifier:
    """A way for one kind of value out of one position.

    Attributes:
        name: `failing-test-file`.
        tool: The tool that it reads, `ci.get_report`.
        position: JSONPath (RFC 9535) of the values.
        type: Their type.
        validate: Names of validators; all must hold.
        destination: `tool.field`, one.
        selection: `one`, or `all` where any of several is harmless; `max` or `min`: the one whose `by` is greatest or least, by
            trusted code over the whole read. A session makes it before the task's first sink call only, once, and keeps it.
        expires: Seconds until a release ends.
        record: JSONPath of what names a record, in the same list item as the value; empty where nothing names it.
        by: For `max` and `min`: JSONPath of the number that is compared, in the same list item as the value.
        extract: `file.py:function`, or empty; it reads one narrow value out of each selected one.
        digest: Of all the rest, the extractor's code included: its version.
        function: The loaded extractor. With `extract` and no function nothing is released.
    """

    name: str
    tool: str
    position: str
    type: TypeRef
    validate: tuple[str, ...]
    destination: str
    selection: str
    expires: float
    record: str = ""
    by: str = ""
    extract: str = ""
    digest: Digest = ""
    function: Callable[[JsonValue], JsonValue] | None = field(default=None, compare=False)


def declassify(
    declassifier: Declassifier,
    contract: ToolContract,
    call: CanonicalCall,
    result: JsonValue,
    segment: Segment,
    snapshot: Snapshot,
    *,
    touched: Iterable[OriginKey],
    task: str,
    epoch: tuple[int, Digest],
    now: Instant,
) -> tuple[tuple[Release, ...], tuple[str, ...]]:
    """Run a declassifier over one result.

    Args:
        declassifier: What to run.
        contract: Of the tool that was called.
        call: The call, as the gate made it.
        result: The `CallToolResult`.
        segment: The W segment that the result became.
        snapshot: The world as validators see it.
        touched: The origin index: (kind, key) of what earlier calls touched.
        task: The open task.
        epoch: The policy epoch.
        now: Seconds since the epoch.

    Returns:
        The releases in the order of their positions, and a note for everything that was skipped.
    """
    part = _read(declassifier, contract, call, result)
    if isinstance(part, str):
        return (), (part,)
    origin = frozenset(touched)
    own = _own_source(call, origin)
    if own:
        return (), (own,)
    matches = part.select(declassifier.position)
    if matches is None or len(matches) > MAX_RELEASES:
        return (), (f"`{declassifier.position}` selects too much",)
    releases: list[Release] = []
    notes: list[str] = []
    for match in matches:
        found = _release(declassifier, match, part, origin, segment, snapshot, task, epoch, now)
        if isinstance(found, Release):
            releases.append(found)
        else:
            notes.append(f"{match.position}: {found}")
    if declassifier.selection in TRUSTED_SELECTIONS:
        return _select(declassifier, part, releases, [match.location for match in matches], notes)
    return tuple(releases), tuple(notes)


def _select(
    declassifier: Declassifier, part: Part, releases: list[Release], places: list[Location], notes: list[str]
) -> tuple[tuple[Release, ...], tuple[str, ...]]:
    """The one release whose `by` is greatest or least. One that was skipped could have been it, so then there is none."""
    if notes:
        return (), (*notes, f"`{declassifier.selection}` is not taken over a part of the values")
    keys = part.select(declassifier.by) or ()
    ranked: list[tuple[int | float, Release]] = []
    for release, place in zip(releases, places, strict=True):
        item = _item(place)
        mine = [key.value for key in keys if key.location[: len(item)] == item]
        key = mine[0] if len(mine) == 1 else None
        if isinstance(key, bool) or not isinstance(key, int | float):
            return (), (f"{release.position}: `{declassifier.by}` is no one number beside it",)
        ranked.append((key, release))
    if not ranked:
        return (), ()
    best = (max if declassifier.selection == "max" else min)(key for key, _ in ranked)
    chosen = [release for key, release in ranked if key == best]
    if len({str(release.value.canonical) for release in chosen}) > 1:
        return (), (f"several values have the same `{declassifier.selection}` of `{declassifier.by}`",)
    return (chosen[0],), ()


def _read(declassifier: Declassifier, contract: ToolContract, call: CanonicalCall, result: JsonValue) -> Part | str:
    """The platform's part of a complete read, or why there is none."""
    if not declassifier.tool == contract.name == call.name:
        return f"it reads `{declassifier.tool}`, not `{call.name}`"
    if declassifier.extract and declassifier.function is None:
        return f"its extractor `{declassifier.extract}` is not loaded"
    narrowed = narrowed_by(contract, call)
    if narrowed:
        return f"the read is partial: `{narrowed}` was given"
    document = read_result(result)
    if isinstance(document, str):
        return document
    if not isinstance(document, list):
        raise AssertionError("unreachable: a document is wrapped in a list")
    part = platform_part(contract.result, document[0])
    if not is_complete(contract.result, part):
        return f"the read is partial: `{contract.result.complete}` is not true"
    return part


def _own_source(call: CanonicalCall, touched: frozenset[OriginKey]) -> str:
    """A note where what was read is something that an earlier call wrote."""
    for leaf in call.fields:
        if leaf.role is not Role.PROTECTED or leaf.value.canonical == ".":  # the root is a place, not a record
            continue
        if leaf.value.type in (*_PATHS, "RecordId") and _is_touched(leaf.value, touched):
            return f"`{leaf.path}` names a record of an earlier call"
    return ""


def _release(
    declassifier: Declassifier,
    match: Match,
    part: Part,
    touched: frozenset[OriginKey],
    segment: Segment,
    snapshot: Snapshot,
    task: str,
    epoch: tuple[int, Digest],
    now: Instant,
) -> Release | str:
    """One release, or why its value is skipped."""
    raw = match.value
    if declassifier.function is not None:
        try:
            raw = declassifier.function(raw)
            canonicalize(raw, floats=True)
        except Exception as error:  # noqa: BLE001  # the operator's code: whatever it raises, nothing is released
            return f"the extractor failed ({type(error).__name__})"
    if isinstance(raw, Mapping | list):
        return "it is no single value"
    watched = _Watched(snapshot)
    try:
        value = value_type(declassifier.type.name, declassifier.type.parameters).parse(raw, watched.root)
    except BadParameter as error:
        return error.detail
    if isinstance(value, Refused):
        return f"no {declassifier.type.name}: {value.reasons[0].detail}"
    for name in declassifier.validate:
        validator = VALIDATORS.get(name)
        why = f"no validator `{name}`" if validator is None else validator(value, watched)
        if why is not None:
            return f"`{visible(str(value.canonical))}` {why}"
    if _is_touched(value, touched):
        return f"`{visible(str(value.canonical))}` is a record of an earlier call"
    record = _record(declassifier, match, part, touched)
    if record is None:
        return "its record is not named, or is one of an earlier call"
    try:
        canonicalize(value.canonical)
    except MalformedError as error:
        return str(error)
    return Release(
        value=value,
        segment=segment.id,
        position=match.position,
        record=record,
        destination=declassifier.destination,
        declassifier=f"{declassifier.name}@{declassifier.digest}",
        selection=declassifier.selection,
        task=task,
        policy_epoch=epoch,
        reads=watched.read_set(),
        expires=now + declassifier.expires,
    )


def _record(declassifier: Declassifier, match: Match, part: Part, touched: frozenset[OriginKey]) -> str | None:
    """Which record a value belongs to: its innermost list item, which `record` names for the origin index."""
    item = _item(match.location)
    if declassifier.record:
        names = part.select(declassifier.record) or ()
        mine = [name.value for name in names if name.location[: len(item)] == item]
        if len(mine) != 1 or not isinstance(mine[0], str | int):
            return None
        if any(key == str(mine[0]) for _, key in touched):
            return None
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in item)


def _item(location: Location) -> Location:
    """The innermost list item around a place; the top where there is none."""
    ends = [index + 1 for index, step in enumerate(location) if isinstance(step, int)]
    return location[: ends[-1]] if ends else ()


def _is_touched(value: Value, touched: frozenset[OriginKey]) -> bool:
    if value.type in _NO_RECORDS:
        return False
    kinds = _PATHS if value.type in _PATHS else {value.type, "record"}
    keys = {str(value.canonical), str(value.wire)}
    return any((kind, key) in touched for kind in kinds for key in keys)


class _Watched:
    """A snapshot that notes which questions one value asks of it; the answers' digests are the snapshot's own."""

    __slots__ = ("_asked", "_root", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._asked: set[tuple[str, ...]] = set()
        outer = snapshot.root
        self._root = Root(outer.path, self, outer.case_sensitive, outer.normalizes)

    @property
    def root(self) -> Root:
        return self._root

    @property
    def reads(self) -> Mapping[tuple[str, ...], Digest]:
        return self._snapshot.reads

    def read_set(self) -> Mapping[tuple[str, ...], Digest]:
        """What was asked; everything that the snapshot read where it names its questions otherwise."""
        every = self._snapshot.reads
        if not self._asked <= every.keys():
            return MappingProxyType(dict(every))
        return MappingProxyType({question: every[question] for question in sorted(self._asked)})

    def entry(self, path: str) -> Entry:
        self._asked.add(("entry", path))
        return self._snapshot.entry(path)

    def names(self, path: str) -> tuple[str, ...] | None:
        self._asked.add(("names", path))
        return self._snapshot.names(path)

    def content(self, path: str) -> bytes | None:
        self._asked.add(("content", path))
        return self._snapshot.content(path)

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        self._asked.add(("git", repository, question, *arguments))
        return self._snapshot.git(repository, question, arguments)


# --- validators: why a value does not hold, or None


def _kind(value: Value, snapshot: Snapshot) -> EntryKind | None:
    path = value.wire
    return snapshot.entry(path).kind if isinstance(path, str) and path.startswith("/") else None


def _is_regular_file(value: Value, snapshot: Snapshot) -> str | None:
    return None if _kind(value, snapshot) is EntryKind.FILE else "is no regular file"


def _is_existing_file(value: Value, snapshot: Snapshot) -> str | None:
    return None if _kind(value, snapshot) in (EntryKind.FILE, EntryKind.LINK) else "is no file that exists"


def _is_existing_folder(value: Value, snapshot: Snapshot) -> str | None:
    return None if _kind(value, snapshot) is EntryKind.FOLDER else "is no folder that exists"


def _is_tracked_file(value: Value, snapshot: Snapshot) -> str | None:
    path = value.canonical
    if not isinstance(path, str) or path.startswith("/") or _kind(value, snapshot) is None:
        return "is no path inside the root"
    answer = snapshot.git(snapshot.root.path, "tracked", (path,))
    return None if path.encode("utf-8", "surrogateescape") in (answer or b"").split(b"\0") else "is not tracked"


VALIDATORS: Final[MappingProxyType[str, Validator]] = MappingProxyType(
    {
        "existing-file": _is_existing_file,
        "existing-folder": _is_existing_folder,
        "regular-file": _is_regular_file,
        "tracked-file": _is_tracked_file,
    }
)
