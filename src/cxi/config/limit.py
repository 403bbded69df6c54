"""How far does a grant reach, beside its count?

- `batch: {field: rows, most: 20}`, `total: {field: amount, most: 500.00 EUR, window: 1d}`: one, or a list of them.
- `after: [ci.run_tests]` or `after: {ci.run_tests: 2}`: a tool means its grant in the same task, else the standing one.
- `not_before` and `not_after` are instants with their offset from UTC; `hours` are wall-clock hours in a named time zone.
- An amount is text or a whole number, never a float: `500.00 EUR` is text as it stands, a bare `500.00` has to be quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cxi.authority.amount import MAX_SCALE, UNIT, read_amount
from cxi.authority.contract import ToolContract
from cxi.authority.grant import Batch, Grant, Total
from cxi.authority.schedule import DAYS, MIDNIGHT, Hours
from cxi.canonical import SAFE_INTEGER
from cxi.config.reader import Reader, nearest
from cxi.config.yaml import Node
from cxi.errors import Refused
from cxi.ledger.base import Requirement
from cxi.manifest import Instant, Role

BATCH_KEYS: Final = ("field", "most")
TOTAL_KEYS: Final = ("field", "most", "scale", "currency", "window")
HOURS_KEYS: Final = ("days", "from", "to", "zone")

_CLOCK: Final = re.compile(r"([01][0-9]|2[0-4]):([0-5][0-9])")
_AMOUNT: Final = re.compile(r"(?P<digits>[0-9]+(?:\.(?P<after>[0-9]+))?)(?: (?P<unit>\S+))?")

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Known:
    """What an `after` may name.

    Attributes:
        owner: The task, or `standing`.
        own: The tools that it grants.
        standing: The tools that are granted without a task.
    """

    owner: str
    own: Collection[str]
    standing: Collection[str]

    def grant(self, name: str) -> str | None:
        """The grant that a name means."""
        owner, _, tool = name.partition("/")
        if tool and ((owner == self.owner and tool in self.own) or (owner == "standing" and tool in self.standing)):
            return name
        if name in self.own:
            return f"{self.owner}/{name}"
        return f"standing/{name}" if name in self.standing else None


def read_several(reader: Reader, node: Node, what: str, read: Callable[[Reader, Node, str], _Part | None]) -> tuple[_Part, ...]:
    """One part, or a list of them."""
    nodes = reader.items(node, what) or () if isinstance(node.value, tuple) else (node,)
    return tuple(part for part in (read(reader, item, what) for item in nodes) if part is not None)


def read_batch(contract: ToolContract) -> Callable[[Reader, Node, str], Batch | None]:
    """Reads a `batch` of a grant of this tool."""

    def read(reader: Reader, node: Node, what: str) -> Batch | None:
        record = reader.record(node, what, BATCH_KEYS, BATCH_KEYS)
        if record is None or set(record) != set(BATCH_KEYS):
            return None
        field = _field(reader, record["field"], f"`field` of {what}", contract, lists=True)
        most = reader.count(record["most"], f"`most` of {what}")
        return Batch(field, most) if field is not None and most is not None else None

    return read


def read_total(contract: ToolContract) -> Callable[[Reader, Node, str], Total | None]:
    """Reads a `total` of a grant of this tool."""

    def read(reader: Reader, node: Node, what: str) -> Total | None:
        record = reader.record(node, what, TOTAL_KEYS, ("field", "most"))
        if record is None or not {"field", "most"} <= set(record):
            return None
        field = _field(reader, record["field"], f"`field` of {what}", contract)
        currency = _field(reader, record["currency"], f"`currency` of {what}", contract) if "currency" in record else ""
        window = reader.duration(record["window"], f"`window` of {what}") if "window" in record else 0.0
        scale = _scale(reader, record["scale"], f"`scale` of {what}") if "scale" in record else None
        most = _most(reader, record["most"], f"`most` of {what}", scale)
        if field is None or currency is None or window is None or most is None:
            return None
        amount, digits, unit = most
        if currency and not unit:
            reader.note(record["most"].problem(f"`most` of {what} has no unit to compare `currency` with", "write `500.00 EUR`"))
        return Total(field, amount, digits, unit, currency, window)

    return read


def read_hours(reader: Reader, node: Node, what: str) -> Hours | None:
    """Reads `hours: {days: [mon-fri], from: "09:00", to: "17:00", zone: Europe/Berlin}`."""
    record = reader.record(node, what, HOURS_KEYS, ("zone",))
    if record is None or "zone" not in record:
        return None
    zone = _zone(reader, record["zone"], f"`zone` of {what}")
    start = _clock(reader, record["from"], f"`from` of {what}", MIDNIGHT - 1) if "from" in record else 0
    end = _clock(reader, record["to"], f"`to` of {what}", MIDNIGHT) if "to" in record else MIDNIGHT
    days = _days(reader, record["days"], f"`days` of {what}") if "days" in record else tuple(range(len(DAYS)))
    if zone is None or start is None or end is None or not days:
        return None
    if start == end:
        reader.note(node.problem(f"{what} end when they begin", "write other hours; a whole day ends at `24:00`"))
        return None
    return Hours(days, start, end or MIDNIGHT, zone)


def read_instant(reader: Reader, node: Node, what: str) -> Instant | None:
    """Seconds since the epoch, from `2026-03-01T09:00:00+01:00` (RFC 3339)."""
    try:
        found = datetime.fromisoformat(node.value) if isinstance(node.value, str) and "T" in node.value else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        reader.note(node.problem(f"{what} is no instant", 'write date, time and offset: `"2026-03-01T09:00:00+01:00"`'))
        return None
    return found.timestamp()


def read_retries(reader: Reader, node: Node, what: str) -> int | None:
    """A whole number from 0."""
    if isinstance(node.value, bool) or not isinstance(node.value, int) or not 0 <= node.value <= 1000:
        reader.note(node.problem(f"{what} is `{node.value}`", "write a whole number from 0 to 1000"))
        return None
    return node.value


def read_after(reader: Reader, node: Node, what: str, tool: str, known: Known) -> tuple[Requirement, ...]:
    """Reads `after: [tool, …]` or `after: {tool: times}`."""
    named: dict[str, tuple[Node, int]] = {}
    if isinstance(node.value, Mapping):
        for name, item in (reader.entries(node, what) or {}).items():
            named[name] = (
                Node(None, node.file, node.key_lines.get(name, node.line)),
                reader.count(item, f"`{name}` of {what}") or 1,
            )
    else:
        for item in reader.items(node, what) or ():
            name = reader.text(item, f"an item of {what}") or ""
            named[name] = (item, 1)
    found: list[Requirement] = []
    for name, (place, times) in named.items():
        grant = known.grant(name)
        if grant == f"{known.owner}/{tool}":
            reader.note(place.problem(f"{what} names the grant itself", "name what comes before it"))
        elif grant is not None:
            found.append(Requirement(grant, times))
        elif name and not reader.may_have(name.rpartition("/")[2]):
            names = [*known.own, *(f"standing/{one}" for one in known.standing)]
            reader.note(
                place.problem(f"{what} names `{name}`, which neither `{known.owner}` nor `grants` grants", nearest(name, names))
            )
    return tuple(found)


def refuse_circles(reader: Reader, node: Node, owner: str, grants: Iterable[Grant]) -> None:
    """Grants that wait for each other are never given."""
    try:
        TopologicalSorter({grant.id: [needed.grant for needed in grant.after] for grant in grants}).prepare()
    except CycleError as error:
        circle = ", ".join(f"`{name}`" for name in error.args[1][1:])
        reader.note(node.problem(f"the grants of `{owner}` wait for each other: {circle}", "take an `after` away"))


def _field(reader: Reader, node: Node, what: str, contract: ToolContract, *, lists: bool = False) -> str | None:
    """A field that the contract names, or one inside a payload that it names whole."""
    text = reader.text(node, what)
    if text is None:
        return None
    for path, field in contract.fields.items():
        whole = field.role in (Role.PAYLOAD, Role.OPAQUE) and text.startswith((f"{path}.", f"{path}[]"))
        inside = lists and path.startswith((f"{text}[]", f"{text.removesuffix('[]')}[]"))
        if path == text or whole or inside:
            return text
    reader.note(node.problem(f"{what} is `{text}`, no field of `{contract.name}`", nearest(text, contract.fields)))
    return None


def _scale(reader: Reader, node: Node, what: str) -> int | None:
    if isinstance(node.value, bool) or not isinstance(node.value, int) or not 0 <= node.value <= MAX_SCALE:
        reader.note(node.problem(f"{what} is `{node.value}`", f"write a whole number from 0 to {MAX_SCALE}"))
        return None
    return node.value


def _most(reader: Reader, node: Node, what: str, scale: int | None) -> tuple[int, int, str] | None:
    """(amount in the smallest steps, digits after the point, unit)."""
    match = _AMOUNT.fullmatch(str(node.value)) if isinstance(node.value, str | int) and not isinstance(node.value, bool) else None
    if match is None:
        quote = "quote it: a float is not exact" if isinstance(node.value, float) else "write `500`, `500.00 EUR`"
        shown = f"`{node.value}`" if isinstance(node.value, str | int | float) else "no amount"
        reader.note(node.problem(f"{what} is {shown}", quote))
        return None
    digits = scale if scale is not None else min(len(match["after"] or ""), MAX_SCALE)
    unit = match["unit"] or ""
    if unit and not UNIT.fullmatch(unit):
        reader.note(node.problem(f"the unit of {what} is `{unit}`", "write capital letters and digits, `EUR`"))
        return None
    amount = read_amount(match["digits"], scale=digits, unit="", where=what)
    if isinstance(amount, Refused) or not 0 < amount <= SAFE_INTEGER:
        detail = amount.reasons[0].detail if isinstance(amount, Refused) else "is nothing, or too much to be counted exactly"
        reader.note(node.problem(f"{what}: {detail}", f"write an amount from 1 to {SAFE_INTEGER} of its smallest steps"))
        return None
    return amount, digits, unit


def _zone(reader: Reader, node: Node, what: str) -> str | None:
    name = reader.text(node, what)
    if name is None:
        return None
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reader.note(
            node.problem(f"{what} is `{name}`, no time zone of this system", "write a name such as `Europe/Berlin` or `UTC`")
        )
        return None
    return name


def _clock(reader: Reader, node: Node, what: str, most: int) -> int | None:
    match = _CLOCK.fullmatch(node.value) if isinstance(node.value, str) else None
    minute = int(match[1]) * 60 + int(match[2]) if match else most + 1
    if minute > most:
        reader.note(node.problem(f"{what} is no time of day", 'write hours and minutes: `"09:00"`'))
        return None
    return minute


def _days(reader: Reader, node: Node, what: str) -> tuple[int, ...]:
    found: set[int] = set()
    for item in reader.items(node, what) or ():
        text = reader.text(item, f"an item of {what}")
        if text is None:
            continue
        first, _, last = text.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            reader.note(item.problem(f"an item of {what} is `{text}`", f"write days, `mon-fri`: {', '.join(DAYS)}"))
            continue
        day = DAYS.index(first)
        found.add(day)
        while DAYS[day] != (last or first):  # `sat-mon` goes over the end of the week
            day = (day + 1) % len(DAYS)
            found.add(day)
    return tuple(sorted(found))
