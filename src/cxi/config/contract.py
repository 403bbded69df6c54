"""What did a contract say of each tool?

- A pack (`packs/*.yaml`) and the configuration write contracts alike; what the configuration says of a pack's tool is laid over
  the pack's entry: fields key by key, `effect`, `type`, `from` and `target` whole.
- A tool's effect is always written: `none`, `call`, `[fs.delete(source), fs.create(destination)]`, `{adapter: file, path: path}`.
- A tool is no sink if its effect is `none` or lists reads only, or if it says `sink: false` and its adapter's op is a read.
- `anyone` is for tools that are no sink; an origin may not widen what that allows.
- MCP methods with outward fields (`prompts/get`, …) are written the same way under `methods`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import jsonpath_rfc9535

from cxi.authority.contract import (
    READS,
    AdapterEffect,
    CallEffect,
    Choice,
    EffectContract,
    ListedAtom,
    ListedEffect,
    NoEffect,
    Origin,
    Repeat,
    ResultContract,
    ToolContract,
    Writer,
)
from cxi.config.field import ReadField, Types, behind_payload, read_fields
from cxi.config.reader import Reader, nearest
from cxi.config.weakening import weaken
from cxi.config.yaml import Node
from cxi.manifest import Role

METHODS: Final = ("resources/read", "resources/subscribe", "prompts/get", "completion/complete")
TOOL_KEYS: Final = ("effect", "fields", "result", "repeat", "target", "sink", "weakens")
_REQUIRED: Final = ("effect", "fields")
_MERGED: Final = frozenset({"fields", "items"})
_ATOM: Final = re.compile(r"([a-z]+\.[a-z_]+)\(([^()\s]+)\)")
_TARGET: Final = re.compile(r'([A-Za-z][A-Za-z0-9]*)(?:\(([^()\s"]+)\)|::"([^"\\]+)")')


@dataclass(frozen=True, slots=True)
class Known:
    """The names that contracts may use.

    Attributes:
        types: Value types.
        adapters: Adapter kind to the names of its inputs.
        reads: Adapter kind to its ops that change nothing.
        kinds: Atom kind to the Cedar type of its target.
        targets: Cedar types that a call may have as its target.
    """

    types: Types
    adapters: Mapping[str, frozenset[str]]
    reads: Mapping[str, frozenset[str]]
    kinds: Mapping[str, str]
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadContract:
    """A tool's contract, and where it is written.

    Attributes:
        contract: The contract.
        node: Its place.
        fields: The places of its fields.
        overridden: Whether the operator wrote (a part of) it, not only a pack.
        weakened: What is looser in it than in its pack.
        weakens: Whether the operator said that it is looser.
    """

    contract: ToolContract
    node: Node
    fields: Mapping[str, Node]
    overridden: bool
    weakened: tuple[str, ...] = ()
    weakens: bool = False


def read_contracts(
    reader: Reader, server: str, shipped: Node | None, written: Node | None, known: Known, *, methods: bool = False
) -> Mapping[str, ReadContract]:
    """Read the contracts of one server.

    Args:
        reader: Keeps the problems.
        server: The server's configured name.
        shipped: The pack's `tools` (or `methods`), or None.
        written: The configuration's, or None.
        known: The names that contracts may use.
        methods: Whether the entries are MCP methods.
    """
    what = "methods" if methods else "tools"
    entries: dict[str, tuple[Node, bool]] = {}
    bases: dict[str, Node] = {}
    if shipped is not None:
        entries.update((name, (node, False)) for name, node in (reader.entries(shipped, f"`{what}` of the pack") or {}).items())
    if written is not None:
        for name, node in (reader.entries(written, f"`{what}` of server `{server}`") or {}).items():
            over = Node(node.value, node.file, written.key_lines.get(name, node.line), node.key_lines)
            base = entries.get(name)
            entries[name] = (lay_over(base[0], over) if base else over, True)
            if base:
                bases[name] = base[0]
    found: dict[str, ReadContract] = {}
    for name, (node, overridden) in entries.items():
        if methods and name not in METHODS:
            reader.note(node.problem(f"no MCP method `{name}` has outward fields", nearest(name, METHODS)))
            continue
        read = _read_tool(reader, server, name, node, known, overridden=overridden)
        if read is None:
            continue
        said, packed_node = _said_weakens(reader, name, written), bases.get(name)
        if packed_node is not None:
            # Its own problems are the pack's, and would have been found where the pack is used alone.
            packed = _read_tool(Reader(), server, name, packed_node, known, overridden=False)
            read = replace(read, weakened=weaken(packed.contract, read.contract) if packed is not None else ())
        found[name] = replace(read, weakens=said)
    return MappingProxyType(found)


def _said_weakens(reader: Reader, name: str, written: Node | None) -> bool:
    """Whether the configuration itself says so: a pack cannot excuse what is laid over it."""
    entry = written.value.get(name) if written is not None and isinstance(written.value, Mapping) else None
    node = entry.value.get("weakens") if entry is not None and isinstance(entry.value, Mapping) else None
    return node is not None and reader.flag(node, f"`weakens` of `{name}`") is True


def lay_over(base: Node, over: Node, *, within: str = "") -> Node:
    """What the configuration says, over what the pack says: fields and their keys one by one, all else whole."""
    if not isinstance(base.value, Mapping) or not isinstance(over.value, Mapping):
        return over
    merged: dict[str, Node] = dict(base.value)
    lines: dict[str, int] = dict(base.key_lines)
    if "role" in over.value and within == "field":  # another role means another set of keys: nothing is inherited
        return over
    for key, item in over.value.items():
        lines[key] = over.key_lines.get(key, item.line)
        if within == "fields":
            merged[key] = lay_over(merged[key], item, within="field") if key in merged else item
        elif key in _MERGED and key in merged:
            merged[key] = lay_over(merged[key], item, within="fields" if key == "fields" else "field")
        else:
            merged[key] = item
    return Node(MappingProxyType(merged), over.file, over.line, MappingProxyType(lines))


def _read_tool(reader: Reader, server: str, tool: str, node: Node, known: Known, *, overridden: bool) -> ReadContract | None:
    what = f"`{server}.{tool}`"
    record = reader.record(node, what, TOOL_KEYS, _REQUIRED)
    if record is None:
        return None
    fields = read_fields(reader, record["fields"], what, known.types) if "fields" in record else {}
    effect = _read_effect(reader, record["effect"], what, fields, known) if "effect" in record else None
    for path, read in fields.items():
        if behind_payload(path, fields) and effect is not None and not isinstance(effect, AdapterEffect):
            reader.note(
                read.node.problem(
                    f"`{path}` of {what} is behind a payload", "only an adapter reads a payload: name one in `effect`"
                )
            )
    target = _read_target(reader, record["target"], what, fields, known) if "target" in record else None
    result = _read_result(reader, record["result"], what) if "result" in record else ResultContract()
    repeat = reader.word(record["repeat"], f"`repeat` of {what}", map(str, Repeat)) if "repeat" in record else None
    if effect is None:  # a problem is noted already; the rest is read for the sake of the problems after it
        effect, sink = CallEffect(), True
    else:
        sink = _judge_sink(reader, record.get("sink"), effect, what, known)
        _refuse_anyone(reader, fields, what, sink=sink)
    contract = ToolContract(
        server=server,
        tool=tool,
        fields=MappingProxyType({path: read.contract for path, read in fields.items()}),
        effect=effect,
        sink=sink,
        target=target or ("Server", server),
        result=result,
        repeat=Repeat(repeat) if repeat else Repeat.REFUSE,
    )
    return ReadContract(contract, node, MappingProxyType({path: read.node for path, read in fields.items()}), overridden)


def _read_effect(reader: Reader, node: Node, what: str, fields: Mapping[str, ReadField], known: Known) -> EffectContract | None:
    if isinstance(node.value, str):
        word = reader.word(node, f"`effect` of {what}", ("none", "call"))
        return {"none": NoEffect(), "call": CallEffect(), None: None}[word]
    if isinstance(node.value, tuple):
        items = reader.items(node, f"`effect` of {what}")
        atoms = [_read_atom(reader, item, what, fields, known) for item in items or ()]
        good = [atom for atom in atoms if atom is not None]
        return ListedEffect(tuple(good)) if items and len(good) == len(atoms) else None
    if isinstance(node.value, Mapping):
        return _read_adapter(reader, node, what, fields, known)
    reader.mistyped(node, f"`effect` of {what}", "`none`, `call`, a list of atoms, or `{adapter: …}`")
    return None


def _read_atom(reader: Reader, node: Node, what: str, fields: Mapping[str, ReadField], known: Known) -> ListedAtom | None:
    text = reader.text(node, f"an atom of {what}")
    if text is None:
        return None
    match = _ATOM.fullmatch(text)
    if match is None:
        reader.note(node.problem(f"the atom `{text}` of {what}", "write `kind(field)`, `fs.delete(source)`"))
        return None
    kind, name = match.groups()
    if kind not in known.kinds:
        reader.note(node.problem(f"no atom kind `{kind}` (in {what})", nearest(kind, known.kinds)))
        return None
    field = fields.get(name)
    if field is None:
        reader.note(node.problem(f"the atom `{text}` names no field of {what}", nearest(name, fields)))
        return None
    if field.contract.role not in {Role.PROTECTED, Role.FIXED}:
        reader.note(
            node.problem(
                f"the target of `{text}` is a {field.contract.role} field", "an atom's target is a protected or fixed field"
            )
        )
        return None
    return ListedAtom(kind, name)


def _read_adapter(reader: Reader, node: Node, what: str, fields: Mapping[str, ReadField], known: Known) -> AdapterEffect | None:
    if not isinstance(node.value, Mapping) or "adapter" not in node.value:
        reader.note(node.problem(f"`effect` of {what} lacks `adapter`", f"name one: {nearest('', known.adapters)}"))
        return None
    adapter = reader.word(node.value["adapter"], f"the adapter of {what}", known.adapters)
    if adapter is None:
        return None
    record = reader.record(node, f"the effect of {what} by `{adapter}`", ("adapter", *known.adapters[adapter])) or {}
    inputs: dict[str, str] = {}
    for name, item in record.items():
        if name == "adapter":
            continue
        text = reader.text(item, f"the input `{name}` of {what}")
        if text is None:
            continue
        if (
            not text.startswith("=")
            and text not in fields
            and not any(path.startswith((f"{text}[]", f"{text}.")) for path in fields)
        ):
            reader.note(item.problem(f"the input `{name}` names no field `{text}` of {what}", nearest(text, fields)))
            continue
        inputs[name] = text
    return AdapterEffect(adapter, MappingProxyType(inputs))


def _read_target(reader: Reader, node: Node, what: str, fields: Mapping[str, ReadField], known: Known) -> tuple[str, str] | None:
    text = reader.text(node, f"`target` of {what}")
    if text is None:
        return None
    match = _TARGET.fullmatch(text)
    if match is None:
        reader.note(node.problem(f"`target` of {what} is `{text}`", 'write `Type(field)` or `Type::"id"`'))
        return None
    kind, name, literal = match.groups()
    if kind not in known.targets:
        reader.note(node.problem(f"`target` of {what} has no type `{kind}`", nearest(kind, known.targets)))
        return None
    if name is not None:
        if name not in fields or fields[name].contract.role not in {Role.PROTECTED, Role.FIXED} or "[]" in name:
            good = [path for path, read in fields.items() if read.contract.role in {Role.PROTECTED, Role.FIXED}]
            reader.note(node.problem(f"`target` of {what} names no single protected field `{name}`", nearest(name, good)))
            return None
        return kind, name
    if literal in fields:
        reader.note(
            node.problem(f"`target` of {what} is the id `{literal}`, which is also a field", f"write `{kind}({literal})`")
        )
        return None
    return kind, literal


def _read_result(reader: Reader, node: Node, what: str) -> ResultContract:
    entries = reader.entries(node, f"`result` of {what}") or {}
    positions: list[tuple[str, Writer]] = []
    complete = ""
    for key, item in entries.items():
        if key == "complete":
            path = reader.text(item, f"`complete` of {what}")
            if path is not None and check_path(reader, item, path, f"`complete` of {what}"):
                complete = path
            continue
        place = Node(key, node.file, node.key_lines.get(key, node.line))
        if key != "content" and not check_path(reader, place, key, f"a result position of {what}"):
            continue
        writer = reader.word(item, f"the writer of `{key}` in {what}", map(str, Writer))
        if writer is not None:
            positions.append((key, Writer(writer)))
    return ResultContract(tuple(positions), complete)


def check_path(reader: Reader, node: Node, path: str, what: str) -> bool:
    """Whether a text is a JSONPath (RFC 9535); notes a problem where it is none."""
    try:
        jsonpath_rfc9535.compile(path)
    except jsonpath_rfc9535.JSONPathError as error:
        reader.note(
            node.problem(f"{what}: `{path}` is no JSONPath: {str(error).splitlines()[0]}", "see RFC 9535; it begins with `$`")
        )
        return False
    return True


def reads_only(effect: EffectContract, known: Known) -> bool:
    """Whether an effect can be one of a tool that is no sink."""
    match effect:
        case NoEffect():
            return True
        case CallEffect():
            return False
        case ListedEffect(atoms):
            return all(atom.kind in READS for atom in atoms)
        case AdapterEffect(adapter, inputs):
            return inputs.get("op", "").removeprefix("=") in known.reads.get(adapter, frozenset())


def _judge_sink(reader: Reader, node: Node | None, effect: EffectContract, what: str, known: Known) -> bool:
    """INVARIANT (sink-by-effect): only a tool whose effect can be read as reads alone is no sink."""
    derived = isinstance(effect, AdapterEffect) or not reads_only(effect, known)
    if node is None:
        return derived
    said = reader.flag(node, f"`sink` of {what}")
    if said is False and not reads_only(effect, known):
        reader.note(node.problem(f"{what} says that it is no sink, but its effect is no read", "remove `sink: false`"))
        return True
    return derived if said is None else said


def _refuse_anyone(reader: Reader, fields: Mapping[str, ReadField], what: str, *, sink: bool) -> None:
    if not sink:
        return
    for path, read in fields.items():
        if Origin.ANYONE in read.contract.origins:
            reader.note(
                read.node.problem(
                    f"`{path}` of {what} may come from anyone, but the tool is a sink",
                    "name `request`, `release`, `approval` or a bounded choice",
                )
            )


def choices(contracts: Iterable[ReadContract]) -> Mapping[str, Collection[tuple[str, Node]]]:
    """Each policy id that a bounded choice names, to the fields that name it."""
    found: dict[str, list[tuple[str, Node]]] = {}
    for read in contracts:
        for path, field in read.contract.fields.items():
            for origin in field.origins:
                if isinstance(origin, Choice):
                    for policy in origin.policies:
                        found.setdefault(policy, []).append((f"{read.contract.name}.{path}", read.fields[path]))
    return found
