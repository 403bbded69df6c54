"""Which rights exist before anything is proposed?

- A task's grants are `tool: count`, or `tool: {count, window, where: {field: [values]}}`; the person picks the task.
- A standing grant needs no task; it is written the same way under `grants`.
- A grant is for a tool that a contract describes; a constraint is on one of its protected fields, and its values are read by the
  field's own type, so that `./src/a.py` and `src/a.py` are one value here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.authority.contract import FieldContract, ToolContract
from cxi.authority.grant import Grant
from cxi.canonical import JsonValue
from cxi.config.model import Task
from cxi.config.reader import NAME, Reader, nearest
from cxi.config.yaml import Node
from cxi.errors import Refused
from cxi.manifest import Role

STANDING: Final = "standing"
TASK_KEYS: Final = ("grants", "expires")
GRANT_KEYS: Final = ("count", "window", "where")

# Reads one value as a field's types read it; gives its canonical form.
ReadValue: TypeAlias = Callable[[FieldContract, JsonValue], JsonValue | Refused]


def read_tasks(reader: Reader, node: Node, contracts: Mapping[str, ToolContract], read_value: ReadValue) -> Mapping[str, Task]:
    """Read the `tasks` mapping."""
    found: dict[str, Task] = {}
    for name, item in (reader.entries(node, "`tasks`", NAME) or {}).items():
        here = Node(item.value, item.file, node.key_lines.get(name, item.line), item.key_lines)
        if name == STANDING:
            reader.note(here.problem(f"a task is named `{name}`", "that word is kept for grants without a task: rename it"))
        record = reader.record(here, f"task `{name}`", TASK_KEYS, ("grants",))
        if record is None:
            continue
        grants = read_grants(reader, record["grants"], name, contracts, read_value) if "grants" in record else ()
        expires = reader.duration(record["expires"], f"`expires` of task `{name}`") if "expires" in record else 0.0
        found[name] = Task(name, grants, expires or 0.0)
    return MappingProxyType(found)


def read_grants(
    reader: Reader, node: Node, owner: str, contracts: Mapping[str, ToolContract], read_value: ReadValue
) -> tuple[Grant, ...]:
    """Read a `grants` mapping; `owner` is the task's name, or `standing`."""
    found: list[Grant] = []
    for tool, item in (reader.entries(node, f"`grants` of `{owner}`") or {}).items():
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
        if record is None or "count" not in record:
            continue
        count = reader.count(record["count"], f"`count` of {what}")
        window = reader.duration(record["window"], f"`window` of {what}") if "window" in record else 0.0
        where = _read_where(reader, record["where"], what, contracts[tool], read_value) if "where" in record else {}
        if count is not None:
            found.append(Grant(f"{owner}/{tool}", tool, count, window or 0.0, MappingProxyType(where)))
    return tuple(found)


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
