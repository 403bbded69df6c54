"""How does an atom, or a call, become a question to the policy monitor?

- Entities are made from the atom's canonical target and the root alone, never from an argument of the call.
- A path's id is its target: relative inside the root, absolute outside; its parents are all folders above it, `.` is the root.
- A pattern becomes its own kind on its longest literal folder. INVARIANT (pattern-place): an absolute one that could reach into
  the root is refused, so that a pattern is either wholly inside or wholly outside.
- INVARIANT (writable-inputs): what decides a program's behaviour counts as writable (`inputs_writable`) unless its adapter proved
  that it is not: a system program whose arguments alone say what it does. There are no trusted snapshots in this version.
- Only what the vocabulary types enters the context: other attributes of an atom are left out, one of the wrong type is refused.
- Pure: nothing is looked up, not even through the root's view.

    >>> [folder.id for folder in ancestors("src/a/b.py", Root("/repo", view))]  # doctest: +SKIP
    ['src/a', 'src', '.']
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import urlsplit

from cxi.canonical import JsonValue
from cxi.effects.base import Atom, Effect
from cxi.errors import Code, Refused
from cxi.manifest import Assurance, CanonicalCall
from cxi.policy.base import Entity, PolicyRequest
from cxi.policy.glob import literal_folder
from cxi.policy.monitor import show
from cxi.policy.schema import ToolSurface
from cxi.policy.vocabulary import KINDS, CedarType, call_action, cedar_name, fold
from cxi.values.base import Root

_LONG: Final = 2**63


class CallContract(Protocol):
    """What is needed of a tool's contract (`cxi.authority.contract.ToolContract` has it)."""

    @property
    def fields(self) -> Mapping[str, object]:
        """Every field, by the contract's name."""
        ...

    @property
    def target(self) -> tuple[str, str]:
        """(Cedar type, id or field name) of the call's resource."""
        ...


def atom_request(
    atom: Atom,
    *,
    agent: str,
    root: Root,
    evidence: Mapping[str, Mapping[str, JsonValue]],
    approval: bool,
    task: str | None,
    tool: str,
    assurance: Assurance,
) -> PolicyRequest | Refused:
    """The question whether one atom may happen.

    Args:
        atom: The atom.
        agent: The principal.
        root: The root that its target is relative to.
        evidence: Valid evidence about this resource, by its source's name (`test-run`); absent where there is none.
        approval: Whether a person approved exactly this call and effect.
        task: The open task's name, empty where it was opened without one; None where none is open.
        tool: The tool that does it, `files.write_file`.
        assurance: What is known of the realized effect.

    Returns:
        The request, or why there is none: `EFFECT_UNSUPPORTED` for an unknown kind, `EFFECT_INEXACT` for a pattern that has no
        kind or no certain place, `POLICY_ERROR` for an attribute that is not of its type.
    """
    where = f"{atom.kind} {show(atom.target)}"
    kind = KINDS.get(atom.kind)
    if kind is None or kind.exact:
        return Refused.of(Code.EFFECT_UNSUPPORTED, f"the vocabulary has no atom of the kind `{show(atom.kind)}`", where=where)
    effect: dict[str, JsonValue] = {}
    target = atom.target
    if atom.pattern:
        if not kind.pattern:
            return Refused.of(Code.EFFECT_INEXACT, f"`{kind.name}` has no form for a pattern", where=where)
        kind = KINDS[kind.pattern]
        target = literal_folder(atom.target)
        if problem := _misplaced(atom.target, target, root):
            return Refused.of(Code.EFFECT_INEXACT, problem, where=where)
        effect["pattern"] = atom.target
    given: dict[str, JsonValue] = {**_follow(atom.attributes), **atom.attributes, "tool": tool, "assurance": str(assurance)}
    if kind.name == "proc.exec" and given.get("inputs_writable") is None:
        given["inputs_writable"] = True
    for name, of in kind.effect.items():
        # `None` is how an adapter says that it does not know: absent, to a policy.
        if name in effect or given.get(name) is None:
            continue
        value = _typed(given[name], of)
        if value is None:
            return Refused.of(Code.POLICY_ERROR, f"attribute `{name}` of the atom is no {of.name}", where=where)
        effect[name] = value
    return _request(agent, kind.name, kind.resource, target, root, _standing(evidence, approval, task) | {"effect": effect})


def call_request(
    call: CanonicalCall,
    contract: CallContract,
    surface: ToolSurface,
    *,
    agent: str,
    root: Root,
    evidence: Mapping[str, Mapping[str, JsonValue]],
    approval: bool,
    task: str | None,
    effect: Effect | None = None,
) -> PolicyRequest | Refused:
    """The question whether a tool may be called at all.

    Args:
        call: The call, read whole.
        contract: Its contract, for the target.
        surface: What policies see of it; the schema was made from the same.
        agent: The principal.
        root: The root that a path target is relative to.
        evidence: As `atom_request`.
        approval: As `atom_request`.
        task: As `atom_request`.
        effect: Its planned effect, where there is one.

    Returns:
        The request, or why there is none: `FIELD_MISSING` or `FIELD_AMBIGUOUS` where the target is a field that the call does not
        give once, `POLICY_ERROR` for a field that is not of its type.
    """
    where = call.name
    kind, target = contract.target
    if target in contract.fields:
        leaves = call.at(target)
        if not leaves:
            return Refused.of(Code.FIELD_MISSING, f"`{target}` is the call's target and is absent", where=target)
        if len(leaves) > 1 or not isinstance(leaves[0].value.canonical, str):
            return Refused.of(Code.FIELD_AMBIGUOUS, f"`{target}` is the call's target and is not one text", where=target)
        target = leaves[0].value.canonical
    given: dict[str, list[JsonValue]] = {}
    for leaf in (*call.fields, *(effect.derived if effect is not None else ())):
        given.setdefault(leaf.contract, []).append(leaf.value.canonical)
    fields: dict[str, JsonValue] = {}
    for name, of in surface.fields.items():
        values = [_worded(value, of.element or of) for value in given.get(name, ())]
        if not values and not (of.name == "Set" and of.required):
            continue
        typed = _typed(values, of) if of.name == "Set" else _typed(values[0], of) if len(values) == 1 else None
        if typed is None:
            return Refused.of(Code.POLICY_ERROR, f"field `{name}` of the call is no {of.name}", where=name)
        fields[cedar_name(name)] = typed
    said: dict[str, JsonValue] = {}
    if effect is not None:
        said = {"kinds": sorted({atom.kind for atom in effect.atoms}), "assurance": str(effect.assurance)}
    if kind not in ENTITY_OF:
        return Refused.of(Code.POLICY_ERROR, f"the contract's target type `{kind}` is unknown", where=where)
    context = _standing(evidence, approval, task) | {"field": fields, "effect": said}
    return _request(agent, call_action(call.name), kind, target, root, context)


def ancestors(path: str, root: Root) -> tuple[Entity, ...]:
    """The folders above a canonical path, nearest first; `.` is the root, `/` stands above all that is outside."""
    return _ancestors(path, root.case_sensitive)


def _request(
    agent: str, action: str, kind: str, target: str, root: Root, context: Mapping[str, Mapping[str, JsonValue]]
) -> PolicyRequest:
    resource = ENTITY_OF[kind](target, root)
    above: tuple[Entity, ...] = ()
    if kind in ("File", "Folder"):
        above = ancestors(target, root)
    elif kind == "Table":
        above = tuple(_table(name, root) for _, name in resource.parents)
    return PolicyRequest(agent, action, resource, above, context)


def _standing(
    evidence: Mapping[str, Mapping[str, JsonValue]], approval: bool, task: str | None
) -> dict[str, Mapping[str, JsonValue]]:
    return {
        "evidence": {cedar_name(name): found for name, found in evidence.items()},
        "approval": {"given": approval},
        "task": {"name": task or "", "open": task is not None},
    }


def _misplaced(glob: str, folder: str, root: Root) -> str:
    """Why a pattern's place is not certain, or empty."""
    parts = glob.removeprefix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "the pattern is not canonical"
    if glob.startswith("/"):
        # Folded, for a file system may hold two spellings to be one.
        here, home = fold(folder.rstrip("/") + "/"), fold(root.path.rstrip("/") + "/")
        if home.startswith(here) or here.startswith(home):
            return "the pattern could reach into the root and outside of it"
    return ""


def _worded(value: JsonValue, of: CedarType) -> JsonValue:
    """A record's number as text, where the type is text: policies name `"7"` however the server spells its ids."""
    return str(value) if of.name == "String" and isinstance(value, int) and not isinstance(value, bool) else value


def _follow(attributes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What follows from other attributes: Cedar's sets have no order, so `argv` is also one line as a shell would read it."""
    argv = attributes.get("argv")
    if isinstance(argv, list | tuple) and all(isinstance(word, str) for word in argv):
        return {"command": shlex.join(str(word) for word in argv)}
    return {}


def _typed(value: JsonValue, of: CedarType) -> JsonValue:
    """The value as Cedar takes it, or None where it is not of the type. No type here has None among its values."""
    match of.name:
        case "String":
            return value if isinstance(value, str) else None
        case "Boolean":
            return value if isinstance(value, bool) else None
        case "Long":
            return value if isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG else None
        case "Set":
            if not isinstance(value, list | tuple) or of.element is None:
                return None
            items = [_typed(item, of.element) for item in value]
            return None if any(item is None for item in items) else items
        case "Record":
            if not isinstance(value, Mapping) or of.attributes is None:
                return None
            attributes = of.attributes
            if any(of.required and name not in value for name, of in attributes.items()) or set(value) - set(attributes):
                return None
            found = {name: _typed(inner, attributes[name]) for name, inner in value.items()}
            return None if any(inner is None for inner in found.values()) else found


def _above(path: str) -> tuple[tuple[str, str], ...]:
    """(Folder, id) of everything above a canonical path, nearest first."""
    if path in (".", "/"):
        return ()
    top = "/" if path.startswith("/") else "."
    parts = path.strip("/").split("/")[:-1]
    lead = "/" if top == "/" else ""
    return (*(("Folder", lead + "/".join(parts[:count])) for count in range(len(parts), 0, -1)), ("Folder", top))


@lru_cache(maxsize=4096)  # the folders above one file are those above the next
def _standing_at(kind: str, path: str, case_sensitive: bool) -> Entity:
    return Entity(kind, path, _path(path, case_sensitive), _above(path))


@lru_cache(maxsize=4096)
def _ancestors(path: str, case_sensitive: bool) -> tuple[Entity, ...]:
    return tuple(_standing_at("Folder", folder, case_sensitive) for _, folder in _above(path))


def _path(path: str, case_sensitive: bool) -> dict[str, JsonValue]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    name = parts[-1] if parts else ""
    stem, dot, extension = name.rpartition(".")
    folded = fold(path)
    return {
        "path": path,
        "name": name,
        "extension": extension if dot and stem else "",
        "inside_root": not path.startswith("/"),
        "case_sensitive": case_sensitive,
        "path_folded": folded,
        "name_folded": fold(name),
        "parts_folded": sorted({fold(part) for part in parts}),
    }


def _file(id: str, root: Root) -> Entity:
    return _standing_at("File", id, root.case_sensitive)


def _folder(id: str, root: Root) -> Entity:
    return _standing_at("Folder", id, root.case_sensitive)


def _named(kind: str) -> Callable[[str, Root], Entity]:
    def make(id: str, _root: Root) -> Entity:
        return Entity(kind, id, {"name": id})

    return make


def _program(id: str, _root: Root) -> Entity:
    return Entity("Program", id, {"name": id.rpartition("/")[2], "on_path": "/" not in id})


def _host(id: str, _root: Root) -> Entity:
    host, colon, port = id.rpartition(":")
    if colon and port.isascii() and port.isdecimal() and len(port) <= 5:
        return Entity("Host", id, {"host": host, "port": int(port)})
    return Entity("Host", id, {"host": id})


def _url(id: str, _root: Root) -> Entity:
    method, _, url = id.rpartition(" ")
    given: dict[str, JsonValue] = {"url": url, "scheme": "", "host": "", "path": "", "query": "", "fragment": ""}
    if method:
        given["method"] = method
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # no URL that can be taken apart; its text is still its id
        return Entity("Url", id, given)
    given |= {"scheme": parts.scheme, "path": parts.path, "query": parts.query, "fragment": parts.fragment}
    given["host"] = host or ""
    if port is not None:
        given["port"] = port
    return Entity("Url", id, given)


_TABLE_LIKE: Final = frozenset({"table", "view", "index", "trigger", "function", "sequence", "schema", "type"})


def _table(id: str, _root: Root) -> Entity:
    kind, colon, name = id.partition(":")
    if not colon or kind not in _TABLE_LIKE:
        kind, name = "table", id
    space, dot, plain = name.rpartition(".")
    attributes: dict[str, JsonValue] = {"name": plain, "namespace": space if dot else "", "kind": kind}
    # What changes a table, or a trigger on one, is in it: a rule about `in Table::"t"` covers `table:t` and `trigger:t.x`.
    about = {"table": name, "view": name, "trigger": space}.get(kind, "") if colon else ""
    parents = (("Table", about),) if about and about != id else ()
    return Entity("Table", id, attributes, parents)


def _database(id: str, _root: Root) -> Entity:
    kind, colon, name = id.partition(":")
    return Entity("Database", id, {"kind": kind if colon else "", "name": name if colon else id})


def _workflow(id: str, _root: Root) -> Entity:
    job = min((id.partition(mark)[0] for mark in (":", "/") if mark in id), key=len, default=id)
    return Entity("Workflow", id, {"name": id, "job": job})


def _address(id: str, _root: Root) -> Entity:
    local, at, domain = id.rpartition("@")
    return Entity("Address", id, {"address": id, "local": local if at else id, "domain": domain if at else ""})


def _package(id: str, _root: Root) -> Entity:
    ecosystem, colon, rest = id.partition(":")
    if not colon:
        ecosystem, rest = "", id
    # A scope's own `@` (npm's `@scope/name`) is part of the name.
    name, _, constraint = rest[1:].partition("@")
    return Entity("Package", id, {"ecosystem": ecosystem, "name": rest[:1] + name, "constraint": constraint})


def _text(id: str, _root: Root) -> Entity:
    return Entity("Text", id, {"value": id})


ENTITY_OF: Final[MappingProxyType[str, Callable[[str, Root], Entity]]] = MappingProxyType(
    {
        "Server": _named("Server"),
        "File": _file,
        "Folder": _folder,
        "Repo": _named("Repo"),
        "Program": _program,
        "Host": _host,
        "Url": _url,
        "Table": _table,
        "Database": _database,
        "Workflow": _workflow,
        "Address": _address,
        "Package": _package,
        "Text": _text,
    }
)
