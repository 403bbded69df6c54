"""What did a contract say of each field of a tool?

- A field is a leaf of the arguments. Nested ones are written as a path (`edits[].oldText`) or as nested maps
  (`edits: {items: {fields: {oldText: {role: payload}}}}`); both read as the same path.
- Every leaf has a role, and only the keys that mean something for its role: a key that would be ignored is a problem.
- `query.rows` behind the payload `query` is a value that an adapter reads out of it.

A protected field: `{role: protected, type: RepoPath, from: [request, {choice: [src-and-tests]}], together: move, after: to}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from cxi.authority.contract import AllowedOrigin, Choice, FieldContract, Origin, TypeRef
from cxi.config.reader import Reader, nearest
from cxi.config.yaml import Node
from cxi.manifest import Role

GRAMMARS: Final = ("plain", "markdown", "html")
_SEGMENT: Final = r"[^\s.\[\]]+(?:\[\])*"
PATH: Final = re.compile(rf"{_SEGMENT}(?:\.{_SEGMENT})*")

_COMMON: Final = ("role", "optional", "nullable", "narrows", "max_items")
KEYS: Final[Mapping[Role, tuple[str, ...]]] = MappingProxyType(
    {
        Role.PROTECTED: (*_COMMON, "type", "from", "together", "after"),
        Role.PAYLOAD: _COMMON,
        Role.OPAQUE: (*_COMMON, "grammar"),
        Role.FIXED: ("role", "type", "value"),
    }
)
CONTAINER_KEYS: Final = ("items", "fields", "optional", "nullable", "max_items")
_REQUESTED: Final = frozenset({Origin.REQUEST, Origin.ANY_OF_REQUEST})


@dataclass(frozen=True, slots=True)
class Types:
    """The value types that contracts may name.

    Attributes:
        names: Their names.
        doubt: What is wrong with a type's parameters, and what mends it; None where nothing is.
    """

    names: frozenset[str]
    doubt: Callable[[TypeRef], tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class ReadField:
    """A field, and where it is written.

    Attributes:
        contract: The field.
        node: Its place.
    """

    contract: FieldContract
    node: Node


@dataclass(frozen=True, slots=True)
class _Surround:
    """What the containers of a field say."""

    optional: bool = False
    nullable: bool = False
    max_items: int = 0


def read_fields(reader: Reader, node: Node, what: str, types: Types) -> Mapping[str, ReadField]:
    """Read all fields of a tool.

    Args:
        reader: Keeps the problems.
        node: The `fields` mapping; an empty one is a tool without arguments.
        what: What problems call the tool.
        types: The value types that there are.
    """
    found: dict[str, ReadField] = {}
    if not isinstance(node.value, Mapping):
        reader.mistyped(node, f"`fields` of {what}", "a mapping from field to role, `{}` for none")
        return found
    for path, item, key_line, surround in _leaves(reader, node, "", _Surround()):
        if path in found:
            reader.note(item.problem(f"the field `{path}` of {what} is there twice", "name it once"))
            continue
        read = _read_field(reader, item, path, f"field `{path}` of {what}", surround, types)
        if read is not None:
            found[path] = ReadField(read, Node(item.value, item.file, key_line, item.key_lines))
    _refuse_overlaps(reader, found, what)
    _refuse_lone_tuples(reader, found, what)
    return MappingProxyType(found)


def _leaves(reader: Reader, node: Node, prefix: str, surround: _Surround) -> Iterator[tuple[str, Node, int, _Surround]]:
    """The leaves below a `fields` mapping, with their full paths and the lines of their keys."""
    if not isinstance(node.value, Mapping):
        reader.mistyped(node, f"`fields` of `{prefix}`", "a mapping from field to role")
        return
    for key, item in node.value.items():
        line = node.key_lines.get(key, item.line)
        if not PATH.fullmatch(key):
            reader.note(node.key_problem(key, f"the field path `{key}`", "write `path`, `files[]` or `edits[].oldText`"))
            continue
        yield from _descend(reader, item, f"{prefix}.{key}" if prefix else key, line, surround)


def _descend(reader: Reader, item: Node, path: str, line: int, surround: _Surround) -> Iterator[tuple[str, Node, int, _Surround]]:
    if not isinstance(item.value, Mapping) or not ({"items", "fields"} & item.value.keys()):
        yield path, item, line, surround
        return
    known = reader.record(item, f"`{path}`", CONTAINER_KEYS) or {}
    if "items" in known and "fields" in known:
        reader.note(item.problem(f"`{path}` has both `items` and `fields`", "a list has `items`, an object has `fields`"))
        return
    inside = _Surround(
        optional=surround.optional or bool("optional" in known and reader.flag(known["optional"], "`optional`")),
        nullable=surround.nullable or bool("nullable" in known and reader.flag(known["nullable"], "`nullable`")),
        max_items=(reader.count(known["max_items"], "`max_items`") or 0) if "max_items" in known else surround.max_items,
    )
    if "items" in known:
        yield from _descend(reader, known["items"], f"{path}[]", line, inside)
    else:
        yield from _leaves(reader, known["fields"], path, inside)


def _read_field(reader: Reader, node: Node, path: str, what: str, surround: _Surround, types: Types) -> FieldContract | None:
    if not isinstance(node.value, Mapping):
        reader.mistyped(node, what, "a mapping with `role`")
        return None
    if "role" not in node.value:
        reader.note(node.problem(f"{what} lacks `role`", "add `role: protected`, `payload`, `opaque` or `fixed`"))
        return None
    word = reader.word(node.value["role"], f"`role` of {what}", [str(role) for role in Role])
    if word is None:
        return None
    role = Role(word)
    known = reader.record(node, f"the {word} {what}", KEYS[role])
    if known is None:
        return None
    origins = _read_origins(reader, known["from"], what) if "from" in known else ()
    after = reader.text(known["after"], f"`after` of {what}") or "" if "after" in known else ""
    if after and not _REQUESTED & {origin for origin in origins if isinstance(origin, Origin)}:
        reader.note(known["after"].problem(f"`after` of {what} has no request to look into", "add `request` to `from`"))
    if role is Role.PROTECTED:
        _require(reader, node, known, what, {"type": "add the value's type", "from": "add where it may come from"})
    if role is Role.OPAQUE:
        _require(reader, node, known, what, {"grammar": f"add its grammar, {nearest('', GRAMMARS)}"})
    if role is Role.FIXED:
        _require(reader, node, known, what, {"value": "add the constant"})
    optional = bool("optional" in known and reader.flag(known["optional"], f"`optional` of {what}"))
    nullable = bool("nullable" in known and reader.flag(known["nullable"], f"`nullable` of {what}"))
    return FieldContract(
        path=path,
        role=role,
        types=read_types(reader, known["type"], what, types) if "type" in known else (),
        origins=origins,
        together=(reader.name(known["together"], f"`together` of {what}") or "") if "together" in known else "",
        after=after,
        required=not (optional or surround.optional),
        nullable=nullable or (surround.nullable and path.endswith("[]")),
        fixed=reader.constant(known["value"], f"`value` of {what}") if "value" in known else None,
        grammar=(reader.word(known["grammar"], f"`grammar` of {what}", GRAMMARS) or "") if "grammar" in known else "",
        narrows=bool("narrows" in known and reader.flag(known["narrows"], f"`narrows` of {what}")),
        max_items=(reader.count(known["max_items"], f"`max_items` of {what}") or 0)
        if "max_items" in known
        else surround.max_items,
    )


def _require(reader: Reader, node: Node, known: Mapping[str, Node], what: str, keys: Mapping[str, str]) -> None:
    for key, mend in keys.items():
        if key not in known:
            reader.note(node.problem(f"{what} lacks `{key}`", mend))


def read_types(reader: Reader, node: Node, what: str, types: Types) -> tuple[TypeRef, ...]:
    """One type or a union: `RepoPath`, `{RepoPath: {final: keep}}`, `[RecordId, {Enum: {values: [a, b]}}]`."""
    items = reader.items(node, f"`type` of {what}") or () if isinstance(node.value, tuple) else (node,)
    found: list[TypeRef] = []
    for item in items:
        parameters: dict[str, object] = {}
        name_node = item
        if isinstance(item.value, Mapping):
            if len(item.value) != 1:
                reader.note(item.problem(f"`type` of {what} is a mapping of {len(item.value)}", "write `{Enum: {values: […]}}`"))
                continue
            key, inner = next(iter(item.value.items()))
            name_node = Node(key, item.file, item.key_lines.get(key, item.line))
            if not isinstance(inner.value, Mapping):
                reader.mistyped(inner, f"the parameters of `{key}`", "a mapping")
                continue
            parameters = {name: reader.constant(value, f"`{name}` of `{key}`") for name, value in inner.value.items()}
        name = reader.word(name_node, f"`type` of {what}", types.names)
        if name is None:
            continue
        type_ref = TypeRef(name, MappingProxyType(parameters))  # type: ignore[arg-type]  # `constant` gives JSON
        doubt = types.doubt(type_ref)
        if doubt is not None:
            reader.note(item.problem(f"{what}: {doubt[0]}", doubt[1]))
            continue
        if type_ref in found:
            reader.note(item.problem(f"the type `{name}` is there twice in {what}", "name it once"))
            continue
        found.append(type_ref)
    return tuple(found)


def _read_origins(reader: Reader, node: Node, what: str) -> tuple[AllowedOrigin, ...]:
    items = reader.items(node, f"`from` of {what}") or ()
    found: list[AllowedOrigin] = []
    for item in items:
        origin: AllowedOrigin | None = None
        if isinstance(item.value, Mapping):
            record = reader.record(item, f"an origin of {what}", ("choice",), ("choice",))
            if record and "choice" in record:
                policies = reader.texts(record["choice"], f"`choice` of {what}")
                origin = Choice(policies) if policies else None
        else:
            word = reader.word(item, f"an origin of {what}", [*map(str, Origin), "constant"])
            if word == "constant":
                reader.note(item.problem(f"an origin of {what} is `constant`", "write `role: fixed` with `value:`"))
            elif word is not None:
                origin = Origin(word)
        if origin is None:
            continue
        if origin in found:
            reader.note(item.problem(f"an origin of {what} is there twice", "name it once"))
            continue
        found.append(origin)
    if {Origin.REQUEST, Origin.ANY_OF_REQUEST} <= set(found):
        reader.note(node.problem(f"`from` of {what} has `request` and `any-of-request`", "keep one: they differ in ambiguity"))
    return tuple(found)


def _refuse_overlaps(reader: Reader, found: Mapping[str, ReadField], what: str) -> None:
    """A path is a leaf or a container, not both; behind a payload it is read out of it."""
    for path, read in found.items():
        for prefix in _prefixes(path):
            parent = found.get(prefix)
            if parent is not None and parent.contract.role is not Role.PAYLOAD:
                reader.note(
                    read.node.problem(
                        f"`{path}` of {what} is inside `{prefix}`, which is a field of its own",
                        "only a payload has values that are read out of it",
                    )
                )
        bare = path.removesuffix("[]")
        if bare != path and bare in found:
            reader.note(read.node.problem(f"`{bare}` of {what} is a list and a single value", "name it once"))


def _prefixes(path: str) -> Iterator[str]:
    parts = path.split(".")
    for end in range(1, len(parts)):
        yield ".".join(parts[:end])


def behind_payload(path: str, fields: Mapping[str, ReadField]) -> str:
    """The payload field that `path` is read out of, or empty."""
    return next((prefix for prefix in _prefixes(path) if prefix in fields and fields[prefix].contract.role is Role.PAYLOAD), "")


def _refuse_lone_tuples(reader: Reader, found: Mapping[str, ReadField], what: str) -> None:
    groups: dict[str, list[ReadField]] = {}
    for read in found.values():
        if read.contract.together:
            groups.setdefault(read.contract.together, []).append(read)
    for name, members in groups.items():
        if len(members) == 1:
            reader.note(
                members[0].node.problem(
                    f"the tuple `{name}` of {what} has `{members[0].contract.path}` alone",
                    f"add `together: {name}` to the field it belongs to, or remove it",
                )
            )
