"""Which narrow values may be moved out of results, and which results are evidence?

- A declassifier and an evidence source read a position that the contract says the platform writes; anything else is refused here.
- A declassifier's destination is one protected field that takes releases, and its type is one of that field's.
- A Python extractor is a file of the operator's, pinned in `cxi.lock`, `extract: declassify/ci.py:failing`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from cxi.authority.contract import Origin, ToolContract, TypeRef
from cxi.authority.declassifier import TRUSTED_SELECTIONS, Declassifier
from cxi.authority.evidence import EvidenceSource
from cxi.canonical import Digest, JsonValue, digest
from cxi.config.contract import check_path
from cxi.config.field import Types, read_types
from cxi.config.position import strangers
from cxi.config.reader import NAME, Reader, nearest
from cxi.config.yaml import Node
from cxi.manifest import Role

DECLASSIFIER_KEYS: Final = ("from", "type", "validate", "to", "selection", "by", "expires", "record", "extract")
EVIDENCE_KEYS: Final = ("from", "subject", "expires", "attributes")
FROM_KEYS: Final = ("tool", "path", "written_by", "complete")
SUBJECTS: Final = ("commit", "none")
SELECTIONS: Final = ("one", "all", *TRUSTED_SELECTIONS)
DEFAULT_EXPIRY: Final = 3600.0
ATTRIBUTE_TYPES: Final = ("String", "Long", "Boolean", "Set")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_EXTRACTOR: Final = re.compile(r"([^:\s]+\.py):([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Sources:
    """What declassifiers and evidence sources may name.

    Attributes:
        contracts: By tool name.
        types: Value types.
        validators: Names of the validators.
        code: Reads a Python extractor's file, for its digest; None where it is not there.
    """

    contracts: Mapping[str, ToolContract]
    types: Types
    validators: Collection[str]
    code: CodeReader


class CodeReader(Protocol):
    """Reads an extractor's file."""

    def __call__(self, file: str) -> Digest | None:
        """The digest of the file, or None where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class _From:
    tool: str
    path: str


def split_field(name: str, contracts: Mapping[str, ToolContract]) -> tuple[str, str]:
    """(tool, field) of `files.write_file.path`: the longest known tool that begins it, or two parts and the rest."""
    known = [tool for tool in contracts if name.startswith(f"{tool}.")]
    if known:
        tool = max(known, key=len)
        return tool, name[len(tool) + 1 :]
    server, _, rest = name.partition(".")
    tool, _, field = rest.partition(".")
    return f"{server}.{tool}", field


def _read_from(reader: Reader, node: Node, what: str, sources: Sources) -> _From | None:
    record = reader.record(node, f"`from` of {what}", FROM_KEYS, ("tool", "path", "written_by"))
    if record is None or not {"tool", "path"} <= record.keys():
        return None
    named = record["tool"].value
    known = not (isinstance(named, str) and named not in sources.contracts and reader.may_have(named))
    tool = reader.word(record["tool"], f"`tool` of {what}", sources.contracts) if known else None
    path = reader.text(record["path"], f"`path` of {what}")
    if "written_by" in record and record["written_by"].value != "platform":
        reader.note(
            record["written_by"].problem(f"{what} reads what is not written by the platform", "write `written_by: platform`")
        )
    if "complete" in record and reader.flag(record["complete"], f"`complete` of {what}") is False:
        reader.note(record["complete"].problem(f"{what} reads from partial results", "remove `complete: false`"))
    if tool is None or path is None or not check_path(reader, record["path"], path, f"`path` of {what}"):
        return None
    for place in strangers(path, sources.contracts[tool].result):
        reader.note(
            record["path"].problem(
                f"{what} reads `{place}` of `{tool}`, which the contract does not call platform",
                "read a position that the platform writes, or mend the contract's `result`",
            )
        )
    return _From(tool, path)


def read_declassifiers(reader: Reader, node: Node, sources: Sources) -> tuple[Declassifier, ...]:
    """Read the `declassifiers` mapping."""
    found: list[Declassifier] = []
    for name, item in (reader.entries(node, "`declassifiers`", NAME) or {}).items():
        here = Node(item.value, item.file, node.key_lines.get(name, item.line), item.key_lines)
        read = _read_declassifier(reader, name, here, sources)
        if read is not None:
            found.append(read)
    return tuple(found)


def _read_declassifier(reader: Reader, name: str, node: Node, sources: Sources) -> Declassifier | None:
    what = f"declassifier `{name}`"
    record = reader.record(node, what, DECLASSIFIER_KEYS, ("from", "type", "to"))
    if record is None:
        return None
    read = _read_from(reader, record["from"], what, sources) if "from" in record else None
    types = read_types(reader, record["type"], what, sources.types) if "type" in record else ()
    if len(types) > 1:
        reader.note(record["type"].problem(f"{what} has {len(types)} types", "name one: write a declassifier for each"))
    destination = _read_destination(reader, record["to"], what, sources) if "to" in record else None
    if destination is not None and len(types) == 1:
        _compare_types(reader, record["type"], what, types[0], destination, sources)
    validate: list[str] = []
    for item in (reader.items(record["validate"], f"`validate` of {what}") or ()) if "validate" in record else ():
        word = reader.word(item, f"a validator of {what}", sources.validators)
        if word is not None:
            validate.append(word)
    selection = reader.word(record["selection"], f"`selection` of {what}", SELECTIONS) if "selection" in record else "one"
    expires = reader.duration(record["expires"], f"`expires` of {what}") if "expires" in record else DEFAULT_EXPIRY
    position = ""
    if "record" in record:
        text = reader.text(record["record"], f"`record` of {what}")
        if text is not None and check_path(reader, record["record"], text, f"`record` of {what}"):
            position = text
    by = ""
    if "by" in record:
        text = reader.text(record["by"], f"`by` of {what}")
        if text is not None and check_path(reader, record["by"], text, f"`by` of {what}"):
            by = text
    if (selection in TRUSTED_SELECTIONS) != ("by" in record):
        place = record.get("by", record.get("selection", node))
        reader.note(
            place.problem(f"{what}: `by` goes with `selection: max` or `min`, and they with `by`", "write both, or neither")
        )
    extract, code = _read_extractor(reader, record["extract"], what, sources) if "extract" in record else ("", "")
    if read is None or len(types) != 1 or destination is None or selection is None or expires is None:
        return None
    body: dict[str, JsonValue] = {
        "name": name,
        "tool": read.tool,
        "position": read.path,
        "type": {"name": types[0].name, "parameters": types[0].parameters},
        "validate": [*validate],
        "destination": destination,
        "selection": selection,
        "expires": int(expires),
        "record": position,
        "by": by,
        "extract": extract,
        "code": code,
    }
    return Declassifier(
        name=name,
        tool=read.tool,
        position=read.path,
        type=types[0],
        validate=tuple(validate),
        destination=destination,
        selection=selection,
        expires=expires,
        record=position,
        by=by,
        extract=extract,
        digest=digest(body),
    )


def _read_destination(reader: Reader, node: Node, what: str, sources: Sources) -> str | None:
    text = reader.text(node, f"`to` of {what}")
    if text is None:
        return None
    tool, field = split_field(text, sources.contracts)
    if tool not in sources.contracts:
        if not reader.may_have(tool):
            reader.note(node.problem(f"`to` of {what} names no tool `{tool}`", nearest(tool, sources.contracts)))
        return None
    fields = sources.contracts[tool].fields
    good = {path: one for path, one in fields.items() if one.role is Role.PROTECTED and Origin.RELEASE in one.origins}
    if field not in good:
        offered = [f"{tool}.{path}" for path in good]
        detail = f"`to` of {what}: `{text}` is no protected field that takes releases"
        reader.note(node.problem(detail, nearest(text, offered) if offered else f"add `release` to a field of `{tool}`"))
        return None
    return text


def _compare_types(reader: Reader, node: Node, what: str, released: TypeRef, destination: str, sources: Sources) -> None:
    tool, field = split_field(destination, sources.contracts)
    types = sources.contracts[tool].fields[field].types
    if released.name not in {one.name for one in types}:
        wanted = ", ".join(f"`{one.name}`" for one in types)
        reader.note(
            node.problem(f"{what} is of type `{released.name}`, and `{destination}` takes {wanted}", f"write one of {wanted}")
        )


def _read_extractor(reader: Reader, node: Node, what: str, sources: Sources) -> tuple[str, Digest]:
    text = reader.text(node, f"`extract` of {what}")
    if text is None:
        return "", ""
    match = _EXTRACTOR.fullmatch(text)
    if match is None:
        reader.note(node.problem(f"`extract` of {what} is `{text}`", "write `file.py:function`"))
        return "", ""
    code = sources.code(match[1])
    if code is None:
        reader.note(node.problem(f"`extract` of {what}: `{match[1]}` cannot be read", "name a file that is there"))
        return "", ""
    return text, code


def read_evidence(reader: Reader, node: Node, sources: Sources) -> tuple[EvidenceSource, ...]:
    """Read the `evidence` mapping."""
    found: list[EvidenceSource] = []
    for name, item in (reader.entries(node, "`evidence`", NAME) or {}).items():
        here = Node(item.value, item.file, node.key_lines.get(name, item.line), item.key_lines)
        what = f"evidence `{name}`"
        record = reader.record(here, what, EVIDENCE_KEYS, ("from", "subject"))
        if record is None:
            continue
        read = _read_from(reader, record["from"], what, sources) if "from" in record else None
        subject = reader.word(record["subject"], f"`subject` of {what}", SUBJECTS) if "subject" in record else None
        expires = reader.duration(record["expires"], f"`expires` of {what}") if "expires" in record else DEFAULT_EXPIRY
        attributes: dict[str, str] = {}
        if "attributes" in record:
            for key, kind in (reader.entries(record["attributes"], f"`attributes` of {what}", _ATTRIBUTE) or {}).items():
                word = reader.word(kind, f"the type of `{key}` of {what}", ATTRIBUTE_TYPES)
                if word is not None:
                    attributes[key] = word
        if read is None or subject is None or expires is None:
            continue
        found.append(
            EvidenceSource(
                name=name,
                tool=read.tool,
                position=read.path,
                subject=subject,
                expires=expires,
                attributes=MappingProxyType(attributes),
            )
        )
    return tuple(found)
