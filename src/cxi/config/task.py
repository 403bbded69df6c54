"""Which rights exist before anything is proposed?

- A task's grants are `tool: count`, or `tool: {count, window, where: {field: [values]}, …}`; the person picks the task.
- A standing grant needs no task; it is written the same way under `grants`.
- A grant is for a tool that a contract describes; a constraint is on one of its protected fields, and its values are read by the
  field's own type, so that `./src/a.py` and `src/a.py` are one value here too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from cxi.authority.contract import FieldContract, ToolContract
from cxi.authority.grant import Across, Grant
from cxi.canonical import JsonValue
from cxi.config.limit import (
    Known,
    read_after,
    read_batch,
    read_hours,
    read_instant,
    read_retries,
    read_several,
    read_total,
    refuse_circles,
)
from cxi.config.model import Task
from cxi.config.reader import NAME, Reader, nearest
from cxi.config.yaml import Node
from cxi.errors import Refused
from cxi.manifest import Instant, Role

STANDING: Final = "standing"
TASK_KEYS: Final = ("grants", "expires")
GRANT_KEYS: Final = (
    "count",
    "window",
    "where",
    "across",
    "batch",
    "total",
    "after",
    "not_before",
    "not_after",
    "hours",
    "retries",
)

_Part = TypeVar("_Part")

# Reads one value as a field's types read it; gives its canonical form.
ReadValue: TypeAlias = Callable[[FieldContract, JsonValue], JsonValue | Refused]


def read_tasks(
    reader: Reader,
    node: Node,
    contracts: Mapping[str, ToolContract],
    read_value: ReadValue,
    standing: Collection[str] = (),
) -> Mapping[str, Task]:
    """Read the `tasks` mapping; `standing` are the tools that are granted without a task."""
    found: dict[str, Task] = {}
    for name, item in (reader.entries(node, "`tasks`", NAME) or {}).items():
        here = Node(item.value, item.file, node.key_lines.get(name, item.line), item.key_lines)
        if name == STANDING:
            reader.note(here.problem(f"a task is named `{name}`", "that word is kept for grants without a task: rename it"))
        record = reader.record(here, f"task `{name}`", TASK_KEYS, ("grants",))
        if record is None:
            continue
        grants = read_grants(reader, record["grants"], name, contracts, read_value, standing) if "grants" in record else ()
        expires = reader.duration(record["expires"], f"`expires` of task `{name}`") if "expires" in record else 0.0
        found[name] = Task(name, grants, expires or 0.0)
    return MappingProxyType(found)


def read_grants(
    reader: Reader,
    node: Node,
    owner: str,
    contracts: Mapping[str, ToolContract],
    read_value: ReadValue,
    standing: Collection[str] = (),
) -> tuple[Grant, ...]:
    """Read a `grants` mapping; `owner` is the task's name, or `standing`."""
    found: list[Grant] = []
    entries = reader.entries(node, f"`grants` of `{owner}`") or {}
    known = Known(owner, [*entries], [*entries] if owner == STANDING else standing)
    for tool, item in entries.items():
        if tool not in contracts:
            if not reader.may_have(tool):
                reader.note(node.key_problem(tool, f"`{owner}` grants the unknown tool `{tool}`", nearest(tool, contracts)))
            continue
        what = f"the grant of `{tool}` in `{owner}`"
        if not isinstance(item.value, Mapping):
            count = reader.count(item, what)
            if count is not None:
                found.append(Grant(f"{owner}/{tool}", tool, count))
            continue
        record = reader.record(item, what, GRANT_KEYS, ("count",))
        if record is not None and "count" in record:
            grant = _read_grant(reader, record, what, contracts[tool], known, read_value)
            if grant is not None:
                found.append(grant)
    refuse_circles(reader, node, owner, found)
    return tuple(found)


def _read_grant(
    reader: Reader, record: Mapping[str, Node], what: str, contract: ToolContract, known: Known, read_value: ReadValue
) -> Grant | None:
    """One grant; None where its count cannot be read. What else is wrong of it is noted, and ends the reading."""

    def several(key: str, read: Callable[[Reader, Node, str], _Part | None]) -> tuple[_Part, ...]:
        return read_several(reader, record[key], f"`{key}` of {what}", read) if key in record else ()

    def instant(key: str) -> Instant:
        return (read_instant(reader, record[key], f"`{key}` of {what}") or 0.0) if key in record else 0.0

    count = reader.count(record["count"], f"`count` of {what}")
    window = reader.duration(record["window"], f"`window` of {what}") if "window" in record else 0.0
    where = _read_where(reader, record["where"], what, contract, read_value) if "where" in record else {}
    across = reader.word(record["across"], f"`across` of {what}", map(str, Across)) if "across" in record else None
    after = read_after(reader, record["after"], f"`after` of {what}", contract.name, known) if "after" in record else ()
    not_before, not_after = instant("not_before"), instant("not_after")
    if not_after and not_before >= not_after:
        reader.note(record["not_after"].problem(f"{what} ends before it begins", "write a later `not_after`"))
    if count is None:
        return None
    return Grant(
        f"{known.owner}/{contract.name}",
        contract.name,
        count,
        window or 0.0,
        MappingProxyType(where),
        expires=not_after,
        across=Across(across) if across is not None else Across.SESSION,
        batches=several("batch", read_batch(contract)),
        totals=several("total", read_total(contract)),
        after=after,
        not_before=not_before,
        hours=several("hours", read_hours),
        retries=read_retries(reader, record["retries"], f"`retries` of {what}") if "retries" in record else None,
    )


def _read_where(
    reader: Reader, node: Node, what: str, contract: ToolContract, read_value: ReadValue
) -> dict[str, tuple[JsonValue, ...]]:
    found: dict[str, tuple[JsonValue, ...]] = {}
    protected = {path: field for path, field in contract.fields.items() if field.role is Role.PROTECTED}
    for name, item in (reader.entries(node, f"`where` of {what}") or {}).items():
        if name not in protected:
            reader.note(node.key_problem(name, f"{what} constrains `{name}`, no protected field", nearest(name, protected)))
            continue
        values: list[JsonValue] = []
        for member in reader.items(item, f"`{name}` of {what}") or ():
            read = read_value(protected[name], reader.constant(member, f"`{name}` of {what}"))
            if isinstance(read, Refused):
                reader.note(member.problem(f"{what}: {read.reasons[0].detail}", read.reasons[0].helps))
            else:
                values.append(read)
        found[name] = tuple(values)
    return found
