"""Does every protected field have authority, tuple by tuple?

Step 2 of the gate, regime `resolved`. A contract says where each field's value may come from; the first that holds speaks:

- `request`: exactly one candidate of the field's types in all affirmed clauses; several are ambiguous. `any-of-request`: any of
  them. With `after: to` a field sees only what stands directly behind that word, and its siblings do not see it.
- `state`: a trusted value of the field or of its type.
- `release`: one to exactly this field that is not void. Several values from releases that each select `one` are ambiguous.
- `approval`: it was given for exactly this call.
- a bounded choice: a permit that the contract names permits every atom whose target is the value.
- `anyone`: for a tool that is no sink.

Fields that belong `together` get it all from one place: one clause, one record, one approval, or constants without a choice.
INVARIANT (no-swap): a clause that names several tuples is split at its coordinators, and each part that names anything must name
exactly one value of each member: "pay A 10 and B 500" gives (A, 10) and (B, 500), "pay A and B 10 and 500" gives nothing. With
`request` one clause must name all the tuples there are. Uniqueness of each value alone is not authority for the tuple.

A refusal says where the value was seen, and what would help.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cxi.authority.approval import Approval
from cxi.authority.contract import Choice, FieldContract, Origin, ToolContract
from cxi.authority.mention import mentioned
from cxi.authority.release import Release
from cxi.authority.request import Candidate, clauses, fragments
from cxi.canonical import Digest, JsonValue
from cxi.errors import Code, Reason, Refused
from cxi.manifest import FieldEvidence, FieldValue, Regime, Role
from cxi.provenance import Segment, TrustedRequest
from cxi.values import value_type
from cxi.values.base import Root, Value
from cxi.values.hidden import visible

FIND_BUDGET: Final = 8 * 1024 * 1024  # code points that are searched, the newest first, to say where a value was seen
_INDEX: Final = re.compile(r"\[(\d+)\]")
_WHY: Final = MappingProxyType(
    {
        "negated": "named in the request, but in a negated clause",
        "question": "named in the request, but in a question",
        "conditional": "named in the request, but under a condition",
        "quoted": "named in the request, but in a quotation",
        "fenced": "named in the request, but in a block of code",
        "forwarded": "named in the request, but in forwarded text",
        "reported": "named in the request, but as what somebody else said",
        "undirected": "named in the request, but not where it asks for something (a clause that begins with a verb: `fix ...`)",
        "unread": "named in the request, but in a sentence of a language that is not read",
    }
)


@dataclass(frozen=True, slots=True)
class FieldContext:
    """Everything that may give a field authority, frozen for one decision.

    Attributes:
        request: The trusted request; None where no task is open.
        root: What paths resolve against.
        releases: All releases of the session.
        void: Which of them do not hold, by id, and why.
        approval: An approval that was matched to exactly this call and effect, or None.
        state: Trusted values, by the contract's field name or by type name.
        segments: W segments; they give nothing, and only say where a value was seen.
        chosen: Concrete field to the permits each of which alone permits every atom whose target is that field's value.
    """

    request: TrustedRequest | None
    root: Root
    releases: tuple[Release, ...] = ()
    void: Mapping[Digest, Reason] = field(default_factory=lambda: MappingProxyType({}))
    approval: Approval | None = None
    state: Mapping[str, tuple[Value, ...]] = field(default_factory=lambda: MappingProxyType({}))
    segments: tuple[Segment, ...] = ()
    chosen: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))


def resolve(contract: ToolContract, leaves: Sequence[FieldValue], context: FieldContext) -> tuple[FieldEvidence, ...] | Refused:
    """Find the authority of every protected leaf.

    Args:
        contract: The tool's contract.
        leaves: The call's leaves, and those that the adapter read out of payloads; only protected ones are judged.
        context: What may give authority.

    Returns:
        One evidence a leaf, in the leaves' order, or every reason why one or more have none.

    Raises:
        AssertionError: if a contract of a sink lists `anyone`; the configuration refuses such a contract.
    """
    protected = [leaf for leaf in leaves if leaf.role is Role.PROTECTED]
    resolution = _Resolution(contract, context)
    reasons = [*_unread(contract, protected)]
    evidence: dict[int, FieldEvidence] = {}
    known = [leaf for leaf in protected if leaf.contract in contract.fields]
    reasons += [
        Reason(Code.FIELD_UNCLASSIFIED, f"the contract names no field `{leaf.contract}`", where=leaf.path)
        for leaf in protected
        if leaf.contract not in contract.fields
    ]
    for members in _tuples(contract, known):
        found = resolution.resolve_one(members[0]) if len(members) == 1 else resolution.resolve_tuple(members)
        if isinstance(found, Refused):
            reasons += found.reasons
        else:
            evidence |= {id(leaf): item for leaf, item in zip(members, found, strict=True)}
    if reasons:
        return Refused(tuple(dict.fromkeys(reasons)))
    return tuple(evidence[id(leaf)] for leaf in protected)


def _unread(contract: ToolContract, leaves: Sequence[FieldValue]) -> Iterator[Reason]:
    """A required value that an adapter should have read out of a payload and did not: nobody knows what it is."""
    given = {leaf.contract for leaf in leaves}
    for path, entry in contract.fields.items():
        if entry.role is not Role.PROTECTED or not entry.required or path in given:
            continue
        parents = [path[: match.start()] for match in re.finditer(r"\.|\[\]", path)]
        if any(contract.fields[parent].role in (Role.PAYLOAD, Role.OPAQUE) for parent in parents if parent in contract.fields):
            yield Reason(Code.FIELD_MISSING, f"the payload says no `{path}`", where=path)


def _tuples(contract: ToolContract, leaves: Sequence[FieldValue]) -> Iterator[tuple[FieldValue, ...]]:
    """What is judged at once: single leaves, and the leaves of one tuple and one list item."""
    groups: dict[str, list[FieldValue]] = {}
    for leaf in leaves:
        name = contract.fields[leaf.contract].together
        if name:
            groups.setdefault(name, []).append(leaf)
        else:
            yield (leaf,)
    for members in groups.values():
        yield from _rows(members)


def _rows(members: Sequence[FieldValue]) -> Iterator[tuple[FieldValue, ...]]:
    """One tuple a list item; what stands outside it belongs to each. Parallel lists pair nothing: they are one tuple."""
    places = {id(leaf): _place(leaf.path) for leaf in members}
    every = set(places.values())
    inner = [place for place in places.values() if not any(place != other and other[: len(place)] == place for other in every)]
    rows = list(dict.fromkeys(inner))
    if len({tuple(name for name, _ in row) for row in rows}) > 1:
        yield tuple(members)
        return
    for row in rows:
        yield tuple(leaf for leaf in members if row[: len(places[id(leaf)])] == places[id(leaf)])


def _place(path: str) -> tuple[tuple[str, int], ...]:
    """The list items that a concrete path stands in: `a[0].b[2].c` is in `a[0]` and its `b[2]`."""
    return tuple((_INDEX.sub("[]", path[: match.start()]), int(match[1])) for match in _INDEX.finditer(path))


@dataclass(frozen=True, slots=True)
class _Ask:
    """What a request says about one tuple, clause by clause.

    Attributes:
        tuples: Clause to the tuples of values that it names; None where it names values of every member and no tuple.
        named: Every value that any affirmed clause names, by member.
    """

    tuples: Mapping[tuple[int, int], frozenset[tuple[bytes, ...]] | None]
    named: tuple[frozenset[bytes], ...]


class _Resolution:
    """One call's fields against one context."""

    def __init__(self, contract: ToolContract, context: FieldContext) -> None:
        self.contract = contract
        self.context = context
        self._named: dict[str, tuple[Candidate, ...]] = {}

    # --- one field ------------------------------------------------------------------------------------------------------

    def resolve_one(self, leaf: FieldValue) -> tuple[FieldEvidence, ...] | Refused:
        entry = self.contract.fields[leaf.contract]
        reasons: list[Reason] = []
        for kind in (self._by_request, self._by_state, self._by_release, self._by_approval, self._by_choice, self._by_anyone):
            found = kind(leaf, entry)
            if isinstance(found, FieldEvidence):
                return (found,)
            if found is not None:
                reasons.append(found)
        if reasons:
            return Refused(tuple(reasons[:1]))
        return Refused((self._no_authority(leaf, (entry,)),))

    def _by_request(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | Reason | None:
        anyone_of = Origin.ANY_OF_REQUEST in entry.origins
        if not anyone_of and Origin.REQUEST not in entry.origins:
            return None
        affirmed = [item for item in self._seen_by(entry) if item.affirmed]
        mine = [item for item in affirmed if _key(item.value) == _key(leaf.value)]
        if not mine:
            return None
        others = {_key(item.value): item.value for item in affirmed}
        if len(others) > 1 and not anyone_of:
            names = ", ".join(_show(value) for value in others.values())
            return Reason(
                Code.FIELD_AMBIGUOUS,
                f"{_show(leaf.value)} is one of several that the request names: {names}",
                where=leaf.path,
                needs="a request that names one",
            )
        return self._evidence(leaf, "request", self._clause_name(mine[0]))

    def _by_state(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | None:
        if Origin.STATE not in entry.origins:
            return None
        for name in (leaf.contract, leaf.value.type):
            if any(_key(value) == _key(leaf.value) for value in self.context.state.get(name, ())):
                return self._evidence(leaf, "state", name)
        return None

    def _by_release(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | Reason | None:
        if Origin.RELEASE not in entry.origins:
            return None
        here = self._releases_to(leaf)
        mine = [release for release in here if _key(release.value) == _key(leaf.value)]
        live = [release for release in mine if release.id not in self.context.void]
        if not live:
            return self._void_reason(mine, leaf)
        harmless = next((release for release in live if release.selection == "all"), None)
        values = {_key(release.value): release.value for release in here if self._is_reachable(release)}
        if harmless is None and len(values) > 1:
            names = ", ".join(_show(value) for value in values.values())
            return Reason(
                Code.FIELD_AMBIGUOUS,
                f"{_show(leaf.value)} is one of several releases: {names}",
                where=leaf.path,
                needs="a request that names one, or a declassifier with `selection: all`",
            )
        return self._evidence(leaf, "release", (harmless or live[0]).id)

    def _by_approval(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | None:
        if Origin.APPROVAL not in entry.origins or self.context.approval is None:
            return None
        return self._evidence(leaf, "approval", self.context.approval.id)

    def _by_choice(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | None:
        bounds = {policy for origin in entry.origins if isinstance(origin, Choice) for policy in origin.policies}
        inside = sorted(bounds & self.context.chosen.get(leaf.path, frozenset()))
        return self._evidence(leaf, "choice", inside[0]) if inside else None

    def _by_anyone(self, leaf: FieldValue, entry: FieldContract) -> FieldEvidence | None:
        if Origin.ANYONE not in entry.origins:
            return None
        if self.contract.sink:
            # INVARIANT (anyone-is-no-sink): the configuration refuses such a contract
            raise AssertionError(f"{self.contract.name} is a sink, and `{entry.path}` lists `anyone`")
        return self._evidence(leaf, "anyone", self.contract.name)

    # --- a tuple --------------------------------------------------------------------------------------------------------

    def resolve_tuple(self, members: Sequence[FieldValue]) -> tuple[FieldEvidence, ...] | Refused:
        entries = tuple(self.contract.fields[leaf.contract] for leaf in members)
        for kind in (self._tuple_by_request, self._tuple_by_state, self._tuple_by_release):
            found = kind(members, entries)
            if isinstance(found, tuple):
                return found
        for single in (self._by_approval, self._by_anyone):
            given = [single(leaf, entry) for leaf, entry in zip(members, entries, strict=True)]
            every = tuple(item for item in given if item is not None)
            if len(every) == len(members):
                return every
        return self._explain_tuple(members, entries)

    def _tuple_by_request(
        self, members: Sequence[FieldValue], entries: Sequence[FieldContract]
    ) -> tuple[FieldEvidence, ...] | None:
        if not _all_from_request(entries):
            return None
        wanted = tuple(_key(leaf.value) for leaf in members)
        ask = self._ask(entries)
        holders = [place for place, tuples in ask.tuples.items() if tuples is not None and wanted in tuples]
        if not holders:
            return None
        # one clause must say it all, or every clause the same
        several = len(ask.tuples) > 1 and any(tuples != frozenset({wanted}) for tuples in ask.tuples.values())
        if several and not all(Origin.ANY_OF_REQUEST in entry.origins for entry in entries):
            return None
        name = self._clause_at(*holders[0])
        return tuple(self._evidence(leaf, "request", name) for leaf in members)

    def _ask(self, entries: Sequence[FieldContract]) -> _Ask:
        """Which tuples the request names, clause by clause."""
        seen = [[item for item in self._seen_by(entry) if item.affirmed] for entry in entries]
        places = dict.fromkeys((item.segment, item.clause) for items in seen for item in items)
        tuples: dict[tuple[int, int], frozenset[tuple[bytes, ...]] | None] = {}
        for place in places:
            here = [[item for item in items if (item.segment, item.clause) == place] for items in seen]
            if not all(here):
                continue
            single = _one_each(here)
            tuples[place] = frozenset({single}) if single is not None else self._in_fragments(place, here)
        return _Ask(tuples, tuple(frozenset(_key(item.value) for item in items) for items in seen))

    def _in_fragments(self, place: tuple[int, int], here: Sequence[Sequence[Candidate]]) -> frozenset[tuple[bytes, ...]] | None:
        """The tuples of a clause's fragments (INVARIANT no-swap), or None where one of them names no whole tuple."""
        request = self.context.request
        if request is None:
            return None
        found: set[tuple[bytes, ...]] = set()
        for start, end in fragments(clauses(request.segments[place[0]].text)[place[1]]):
            inside = [[item for item in items if start <= item.span[0] < end] for items in here]
            if not any(inside):
                continue
            single = _one_each(inside) if all(inside) else None
            if single is None:
                return None
            found.add(single)
        return frozenset(found)

    def _tuple_by_state(
        self, members: Sequence[FieldValue], entries: Sequence[FieldContract]
    ) -> tuple[FieldEvidence, ...] | None:
        """Constants that leave no choice: each member's field has exactly one trusted value."""
        for leaf, entry in zip(members, entries, strict=True):
            values = {_key(value) for value in self.context.state.get(leaf.contract, ())}
            if Origin.STATE not in entry.origins or values != {_key(leaf.value)}:
                return None
        return tuple(self._evidence(leaf, "state", leaf.contract) for leaf in members)

    def _tuple_by_release(
        self, members: Sequence[FieldValue], entries: Sequence[FieldContract]
    ) -> tuple[FieldEvidence, ...] | None:
        """Releases of one record, one value a member."""
        if any(Origin.RELEASE not in entry.origins for entry in entries):
            return None
        wanted = tuple(_key(leaf.value) for leaf in members)
        records = self._records(members)
        holders = [record for record, row in records.items() if row == wanted]
        for record in holders:
            used = [
                next(
                    (
                        release
                        for release in self._releases_to(leaf)
                        if (release.segment, release.record) == record
                        and _key(release.value) == _key(leaf.value)
                        and release.id not in self.context.void
                    ),
                    None,
                )
                for leaf in members
            ]
            live = [release for release in used if release is not None]
            if len(live) < len(members):
                continue
            if any(release.selection != "all" for release in live) and any(row != wanted for row in records.values()):
                return None
            return tuple(self._evidence(leaf, "release", release.id) for leaf, release in zip(members, live, strict=True))
        return None

    def _records(self, members: Sequence[FieldValue]) -> dict[tuple[str, str], tuple[bytes, ...] | None]:
        """Each record that could be chosen, with its values by member; None where it has several for one."""
        values: dict[tuple[str, str], list[set[bytes]]] = {}
        for index, leaf in enumerate(members):
            for release in self._releases_to(leaf):
                if self._is_reachable(release):
                    record = values.setdefault((release.segment, release.record), [set() for _ in members])
                    record[index].add(_key(release.value))
        return {
            record: tuple(next(iter(one)) for one in row) if all(len(one) == 1 for one in row) else None
            for record, row in values.items()
            if all(row)
        }

    def _explain_tuple(self, members: Sequence[FieldValue], entries: Sequence[FieldContract]) -> Refused:
        where = "+".join(leaf.path for leaf in members)
        shown = ", ".join(_show(leaf.value) for leaf in members)
        wanted = tuple(_key(leaf.value) for leaf in members)
        needs = _needs(self.contract, entries, self.context)
        if _all_from_request(entries):
            ask = self._ask(entries)
            if all(key in values for key, values in zip(wanted, ask.named, strict=True)):
                unclear = any(tuples is None or wanted in tuples for tuples in ask.tuples.values())
                code = Code.FIELD_AMBIGUOUS if unclear else Code.TUPLE_SPLIT
                how = "the request can be read in several ways" if unclear else "the request names these values, but not as one"
                return Refused.of(code, f"{shown}: {how}", where=where)
        if all(Origin.RELEASE in entry.origins for entry in entries):
            mine = [[r for r in self._releases_to(leaf) if _key(r.value) == _key(leaf.value)] for leaf in members]
            if all(mine):
                void = self._void_reason([r for row in mine for r in row if r.id in self.context.void], members[0])
                if void is not None and any(all(r.id in self.context.void for r in row) for row in mine):
                    return Refused((void,))
                one = wanted in self._records(members).values()
                detail = f"{shown}: " + ("one of several records" if one else "released, but from different records")
                return Refused.of(Code.FIELD_AMBIGUOUS if one else Code.TUPLE_SPLIT, detail, where=where, needs=needs)
        lone = [leaf for leaf, entry in zip(members, entries, strict=True) if isinstance(self.resolve_one(leaf), Refused)]
        if not lone:
            detail = f"{shown}: each has authority by itself, but not together"
            return Refused.of(Code.TUPLE_SPLIT, detail, where=where, needs=needs)
        return Refused(tuple(self._no_authority(leaf, entries) for leaf in lone))

    # --- what is there --------------------------------------------------------------------------------------------------

    def _named_for(self, entry: FieldContract) -> tuple[Candidate, ...]:
        if entry.path not in self._named:
            types = [value_type(ref.name, ref.parameters) for ref in entry.types]
            self._named[entry.path] = mentioned(self.context.request, types, self.context.root)
        return self._named[entry.path]

    def _seen_by(self, entry: FieldContract) -> tuple[Candidate, ...]:
        """The request's candidates that stand where this field looks."""
        found = self._named_for(entry)
        if entry.after:
            return _behind(found, entry)
        siblings = [other for other in self.contract.fields.values() if other.after and other.role is Role.PROTECTED]
        if not siblings:
            return found
        claimed = {id(item) for other in siblings for item in _behind(found, other)}
        return tuple(item for item in found if id(item) not in claimed)

    def _releases_to(self, leaf: FieldValue) -> list[Release]:
        destination = f"{self.contract.name}.{leaf.contract}"
        return [release for release in self.context.releases if release.destination == destination]

    def _is_reachable(self, release: Release) -> bool:
        """Whether a release counts as a choice. One that is void because the world changed does: W could have changed it."""
        reason = self.context.void.get(release.id)
        return reason is None or reason.code not in (Code.EXPIRED, Code.EPOCH_CHANGED)

    def _void_reason(self, releases: Sequence[Release], leaf: FieldValue) -> Reason | None:
        for release in releases:
            reason = self.context.void.get(release.id)
            if reason is not None:
                return Reason(Code.RELEASE_VOID, f"{_show(release.value)} was released, but {reason.detail}", where=leaf.path)
        return None

    def _evidence(self, leaf: FieldValue, kind: str, reference: str) -> FieldEvidence:
        return FieldEvidence(leaf.path, Regime.RESOLVED, kind, reference)

    def _clause_name(self, item: Candidate) -> str:
        return self._clause_at(item.segment, item.clause)

    def _clause_at(self, segment: int, clause: int) -> str:
        request = self.context.request
        if request is None:
            raise AssertionError("unreachable: a candidate comes from a request")
        whole = request.segments[segment]
        start, end = clauses(whole.text)[clause].span
        return f"{whole.id}:{start}-{end}"

    def _no_authority(self, leaf: FieldValue, entries: Sequence[FieldContract]) -> Reason:
        return Reason(
            Code.FIELD_NO_AUTHORITY,
            f"{_show(leaf.value)} was {self._where_seen(leaf)}",
            where=leaf.path,
            needs=_needs(self.contract, entries, self.context),
        )

    def _where_seen(self, leaf: FieldValue) -> str:
        entry = self.contract.fields[leaf.contract]
        mine = [item for item in self._named_for(entry) if _key(item.value) == _key(leaf.value)]
        for item in mine:
            if not item.affirmed:
                return _WHY.get(item.why, "named in the request, but not asked for")
        if mine:
            if not {Origin.REQUEST, Origin.ANY_OF_REQUEST} & {*_plain(entry)}:
                return "named in the request, from which this field takes nothing"
            return "named in the request, but " + (f"not behind `{entry.after}`" if entry.after else "for another field")
        place = _find(leaf.value, self.context.segments)
        return f"seen only in untrusted text ({place})" if place else "seen nowhere"


def _plain(entry: FieldContract) -> tuple[Origin, ...]:
    return tuple(origin for origin in entry.origins if isinstance(origin, Origin))


def _all_from_request(entries: Sequence[FieldContract]) -> bool:
    return all(Origin.REQUEST in entry.origins or Origin.ANY_OF_REQUEST in entry.origins for entry in entries)


def _one_each(here: Sequence[Sequence[Candidate]]) -> tuple[bytes, ...] | None:
    """The tuple, where each member has exactly one value and no two members share their only place."""
    values = [{_key(item.value) for item in items} for items in here]
    if any(len(one) != 1 for one in values):
        return None
    spans = [{item.span for item in items} for items in here]
    if any(len(one) == 1 and one == other for index, one in enumerate(spans) for other in spans[:index]):
        return None
    return tuple(next(iter(one)) for one in values)


def _behind(found: Sequence[Candidate], entry: FieldContract) -> tuple[Candidate, ...]:
    """The candidates in the role of a field with `after`; in a list field, those that a coordinator joins to one as well."""
    held: list[Candidate] = []
    previous = False
    for item in found:
        previous = item.follows(entry.after) or (previous and item.joined and "[]" in entry.path)
        if previous:
            held.append(item)
    return tuple(held)


def _key(value: Value) -> bytes:
    return value.key


def _show(value: Value) -> str:
    raw: JsonValue = value.canonical
    text = visible(raw) if isinstance(raw, str) else json.dumps(raw)
    return f"`{text if len(text) <= 120 else text[:119] + '…'}`"


def _needs(contract: ToolContract, entries: Sequence[FieldContract], context: FieldContext) -> str:
    """What would help, in words: the origins that the contract allows."""
    common = [origin for origin in Origin if all(origin in entry.origins for entry in entries)]
    asked = all({Origin.REQUEST, Origin.ANY_OF_REQUEST} & {*entry.origins} for entry in entries)
    found: list[str] = []
    if asked:
        closed = "" if context.request is not None else ' (open a task: `cxi task start "…"`)'
        found.append(f"the user's request{closed}")
    if Origin.STATE in common:
        found.append("a value of the trusted state")
    if Origin.RELEASE in common:
        found.append("a release to " + " and ".join(dict.fromkeys(f"{contract.name}.{entry.path}" for entry in entries)))
    if Origin.APPROVAL in common:
        found.append("an approval")
    if not found:
        choices = [origin for entry in entries for origin in entry.origins if isinstance(origin, Choice)]
        bounds = [policy for choice in choices for policy in choice.policies]
        found += [f"a value that policy `{policy}` permits" for policy in dict.fromkeys(bounds)]
    if not found:
        return "another origin in the contract"
    return ", ".join(found[:-1]) + (", or " if len(found) > 2 else " or " if len(found) == 2 else "") + found[-1]


def _find(value: Value, segments: Sequence[Segment]) -> str:
    """Where untrusted text names a value: `ci.get_report, line 214`; empty where it does not."""
    spellings = {str(raw) for raw in (value.canonical, value.wire) if isinstance(raw, str | int) and str(raw)}
    if not spellings:
        return ""
    # the shorter spelling of a path may stand inside the longer one, but not a number inside a number
    ends = re.compile(r"(?<![\w.-])")
    goes_on = re.compile(r"[\w-]|\.\w")
    budget = FIND_BUDGET
    for segment in reversed(segments):
        if segment.trusted:
            continue
        for text in sorted(spellings, key=len, reverse=True):
            at = segment.text.find(text, 0, budget)
            while at >= 0:
                if ends.match(segment.text, at) and not goes_on.match(segment.text, at + len(text)):
                    return f"{segment.source.name}, line {segment.text.count(chr(10), 0, at) + 1}"
                at = segment.text.find(text, at + 1, budget)
        budget -= len(segment.text)
        if budget <= 0:
            break
    return ""
