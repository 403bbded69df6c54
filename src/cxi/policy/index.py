"""Which policies could hold for this request, at a cost that does not grow with all the others?

- A policy is filed under the actions and the agent of its scope; where many are, each under its rarest need
  (`cxi.policy.necessity`), so that a request finds the few whose need it meets. One without a need is always looked at.
- INVARIANT (sound-index): a policy that is not found neither holds nor raises an error, for any request that conforms to the
  schema; a property test holds the index against the whole set. What is found may still not hold: each is evaluated whole.
- A range is looked up in an interval tree, a prefix by the lengths that prefixes have: the cost is that of what is found, and of
  the kinds of needs that there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, cast

from cedarpy import pst

from cxi.canonical import JsonValue
from cxi.policy.base import Entity
from cxi.policy.necessity import Group, Need, Way, needs
from cxi.policy.rule import Policy

_FEW: Final = 8  # up to so many policies are looked at one by one
_Uid: TypeAlias = tuple[str, str]
_Context: TypeAlias = Mapping[str, Mapping[str, JsonValue]]
# Adds the positions of the policies whose need the request meets.
_Find: TypeAlias = Callable[[Entity, Set[_Uid], _Context, list[int]], None]
_Table: TypeAlias = Mapping[Any, Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Drawer:
    """The policies of one action (or any) and one agent (or any)."""

    always: tuple[int, ...]
    finds: tuple[_Find, ...]


class Index:
    """Policies by what is necessary for them to hold."""

    def __init__(self, drawers: Mapping[tuple[str | None, str | None], _Drawer]) -> None:
        self._drawers = drawers
        self._views: dict[_Uid, tuple[tuple[int, ...], tuple[_Find, ...]]] = {}

    @classmethod
    def of(cls, policies: Sequence[Policy]) -> Self:
        """File policies by their positions."""
        filed: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
        for position, policy in enumerate(policies):
            agent = agent_of(policy.parsed.principal)
            for action in policy.actions if policy.actions is not None else (None,):
                filed[action, agent].append(position)
        read: dict[int, tuple[Need, ...]] = {}
        return cls({key: _drawer(positions, policies, read) for key, positions in filed.items()})

    def find(self, agent: str, action: str, resource: Entity, above: Set[_Uid], context: _Context) -> Sequence[int]:
        """Positions of all policies that could hold, in no order, some perhaps twice.

        Args:
            agent: One of the schema's agents.
            action: One of its actions.
            resource: The resource; it conforms to the schema, as all of the request does.
            above: The resource, and all that it is in.
            context: The whole context.
        """
        view = self._views.get((action, agent))
        if view is None:
            view = self._views[action, agent] = self._view(action, agent)
        always, finds = view
        if not finds:
            return always
        found = [*always]
        for find in finds:
            find(resource, above, context, found)
        return found

    def _view(self, action: str, agent: str) -> tuple[tuple[int, ...], tuple[_Find, ...]]:
        keys = ((action, agent), (action, None), (None, agent), (None, None))
        drawers = [self._drawers[key] for key in keys if key in self._drawers]
        always = tuple(position for drawer in drawers for position in drawer.always)
        return always, tuple(find for drawer in drawers for find in drawer.finds)


def agent_of(constraint: pst.PrincipalOrResourceConstraint) -> str | None:
    """The one agent that a policy's scope allows, or None."""
    # `in` is equality here: an agent is in nothing but itself.
    match constraint:
        case pst.ScopeEq(pst.EntityUid(kind, name)) | pst.ScopeIn(pst.EntityUid(kind, name)) if str(kind) == "Agent":
            return name
        case pst.ScopeIsIn(_, pst.EntityUid(kind, name)) if str(kind) == "Agent":
            return name
        case _:
            return None


def _drawer(positions: Sequence[int], policies: Sequence[Policy], read: dict[int, tuple[Need, ...]]) -> _Drawer:
    if len(positions) <= _FEW:
        return _Drawer(tuple(positions), ())
    for position in positions:
        if position not in read:
            read[position] = _joined(needs(policies[position].parsed))
    common = Counter(way for position in positions for need in read[position] for way in need)
    ends = _ends_of(way for way in common.elements() if way.group.how == "range")

    def cost(need: Need) -> int:
        """How many policies a request that meets the need would find by it, at most or so."""
        return sum(overlaps(way) if way.group.how == "range" else common[way] for way in need)

    def overlaps(way: Way) -> int:
        lows, highs = ends[way.group]
        low, high = _span(way)
        return bisect_right(lows, high) - bisect_left(highs, low)

    always: list[int] = []
    groups: dict[Group, dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position in positions:
        rarest = min(read[position], key=cost, default=None)
        if rarest is None:
            always.append(position)
            continue
        for group, key in rarest:
            groups[group][key].append(position)
    return _Drawer(tuple(always), tuple(_find(group, table) for group, table in groups.items()))


def _joined(found: Iterable[Need]) -> tuple[Need, ...]:
    """The needs, with all bounds of one number as one range."""
    others: list[Need] = []
    spans: dict[Group, tuple[int, int]] = {}
    for need in found:
        way = need[0]
        if way.group.how == "range" and len(need) == 1:
            span = _span(way)
            low, high = spans.get(way.group, span)
            spans[way.group] = max(low, span[0]), min(high, span[1])
        else:
            others.append(need)
    return (*others, *((Way(group, span),) for group, span in spans.items()))


def _span(way: Way) -> tuple[int, int]:
    low, high = cast("tuple[int, int]", way.key)
    return low, high


def _ends_of(ranges: Iterable[Way]) -> dict[Group, tuple[list[int], list[int]]]:
    """The lower and the upper ends of all ranges, ascending."""
    found: dict[Group, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for way in ranges:
        low, high = _span(way)
        found[way.group][0].append(low)
        found[way.group][1].append(high)
    return {group: (sorted(lows), sorted(highs)) for group, (lows, highs) in found.items()}


def _find(group: Group, table: _Table) -> _Find:
    table = {key: tuple(positions) for key, positions in table.items()}
    match group.how:
        case "within":
            return _find_within(table)
        case "equal" if group.path == ("resource",):
            return lambda resource, _above, _context, found: found.extend(table.get((resource.type, resource.id), ()))
        case "equal" if group.path == ("type",):
            return lambda resource, _above, _context, found: found.extend(table.get(resource.type, ()))
        case "equal":
            return _find_value(group.path, lambda value, found: found.extend(table.get(value, ())), (str, int))
        case "holds":
            return _find_value(group.path, _holds(table), (list, tuple))
        case "prefix":
            return _find_value(group.path, _starts(table), (str,))
        case "suffix":
            return _find_value(group.path, _ends(table), (str,))
        case "inside":
            return _find_value(group.path, _inside(table), (str,))
        case "range":
            return _find_value(group.path, _spans(table), (int,))


def _find_within(table: _Table) -> _Find:
    def find(_resource: Entity, above: Set[_Uid], _context: _Context, found: list[int]) -> None:
        for uid in above:
            if uid in table:
                found.extend(table[uid])

    return find


def _find_value(path: tuple[str, ...], add: Callable[[Any, list[int]], None], types: tuple[type, ...]) -> _Find:
    """Look up what is at the path; where nothing is, or something of another type, no policy of the group can hold."""
    if path[0] == "resource":
        name = path[1]

        def find_attribute(resource: Entity, _above: Set[_Uid], _context: _Context, found: list[int]) -> None:
            value = resource.attributes.get(name)
            if isinstance(value, types):
                add(value, found)

        return find_attribute
    *names, last = path[1:]

    def find(_resource: Entity, _above: Set[_Uid], context: _Context, found: list[int]) -> None:
        at: Any = context
        for name in names:
            at = at.get(name)
            if not isinstance(at, Mapping):
                return
        value = at.get(last)
        if isinstance(value, types):
            add(value, found)

    return find


def _holds(table: _Table) -> Callable[[Sequence[object], list[int]], None]:
    def add(elements: Sequence[object], found: list[int]) -> None:
        for element in elements:
            if isinstance(element, str | int) and element in table:
                found.extend(table[element])

    return add


def _starts(table: _Table) -> Callable[[str, list[int]], None]:
    lengths = sorted({len(text) for text in table})

    def add(value: str, found: list[int]) -> None:
        for length in lengths:
            if length > len(value):
                return
            hit = table.get(value[:length])
            if hit is not None:
                found.extend(hit)

    return add


def _ends(table: _Table) -> Callable[[str, list[int]], None]:
    lengths = sorted({len(text) for text in table})

    def add(value: str, found: list[int]) -> None:
        size = len(value)
        for length in lengths:
            if length > size:
                return
            hit = table.get(value[size - length :])
            if hit is not None:
                found.extend(hit)

    return add


def _inside(table: _Table) -> Callable[[str, list[int]], None]:
    lengths = sorted({len(text) for text in table})
    every = tuple({position for positions in table.values() for position in positions})

    def add(value: str, found: list[int]) -> None:
        if len(value) * len(lengths) > len(every):  # a long text, or few policies: each is looked at
            found.extend(every)
            return
        for length in lengths:
            for start in range(len(value) - length + 1):
                hit = table.get(value[start : start + length])
                if hit is not None:
                    found.extend(hit)

    return add


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a centred interval tree (de Berg et al., Computational Geometry, 10.1): the spans that hold its centre.

    Attributes:
        centre: A number that each of its spans holds.
        lows, by_low: Their lower ends, ascending, and their policies in that order.
        highs, by_high: Their upper ends, ascending, and their policies in that order.
        below, above: The spans wholly below and wholly above the centre.
    """

    centre: int
    lows: tuple[int, ...]
    by_low: tuple[int, ...]
    highs: tuple[int, ...]
    by_high: tuple[int, ...]
    below: _Node | None
    above: _Node | None


def _spans(table: _Table) -> Callable[[int, list[int]], None]:
    root = _tree([(low, high, position) for (low, high), positions in table.items() for position in positions if low <= high])

    def add(value: int, found: list[int]) -> None:
        node = root
        while node is not None:
            if value < node.centre:
                found.extend(node.by_low[: bisect_right(node.lows, value)])
                node = node.below
            else:
                found.extend(node.by_high[bisect_left(node.highs, value) :])
                node = node.above

    return add


def _tree(spans: Iterable[tuple[int, int, int]]) -> _Node | None:
    spans = list(spans)
    if not spans:
        return None
    ends = sorted(end for low, high, _ in spans for end in (low, high))
    centre = ends[len(ends) // 2]
    here = [span for span in spans if span[0] <= centre <= span[1]]
    by_low = sorted(here)
    by_high = sorted(here, key=lambda span: span[1])
    return _Node(
        centre,
        tuple(low for low, _, _ in by_low),
        tuple(position for _, _, position in by_low),
        tuple(high for _, high, _ in by_high),
        tuple(position for _, _, position in by_high),
        _tree(span for span in spans if span[1] < centre),
        _tree(span for span in spans if span[0] > centre),
    )
