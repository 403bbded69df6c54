"""What may an editor offer while a configuration or a pack is written?

- Two JSON Schemas (2020-12), made from the same names that the reader knows: `cxi-config` for `cxi.yaml`, `cxi-contract` for
  packs.
- They help while typing; `cxi.config.load` decides. They refuse unknown keys as the reader does, and know nothing of other files.
- `python -m cxi.config.schema docs/schemas` writes both.

In an editor: `# yaml-language-server: $schema=cxi-config.schema.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from cxi.authority.amount import MAX_SCALE
from cxi.authority.contract import Origin, Repeat, Writer
from cxi.authority.grant import Across
from cxi.authority.schedule import DAYS
from cxi.config.contract import METHODS, Known
from cxi.config.field import CONTAINER_KEYS, GRAMMARS, KEYS, PATH
from cxi.config.limit import BATCH_KEYS
from cxi.config.load import KEYS as TOP_KEYS
from cxi.config.load import REQUIRED, VERSION
from cxi.config.model import Mode
from cxi.config.reader import NAME, SERVER_NAME
from cxi.config.server import shipped_packs
from cxi.config.source import ATTRIBUTE_TYPES, SELECTIONS, SUBJECTS
from cxi.config.task import GRANT_KEYS
from cxi.config.words import known_words, validators
from cxi.manifest import Role

Schema: TypeAlias = dict[str, Any]  # JSON Schema is JSON of any shape

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
BASE: Final = "https://cxi.dev/schemas/"
FILES: Final = ("cxi-config.schema.json", "cxi-contract.schema.json")

_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_FLAG: Final[Schema] = {"type": "boolean"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 1}
_DURATION: Final[Schema] = {"anyOf": [{"type": "string", "pattern": r"^[1-9][0-9]{0,8}(s|m|h|d)$"}, _COUNT]}


def _record(properties: Mapping[str, Schema], required: Collection[str] = (), **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": sorted(required)} if required else {}),
        **more,
    }


def _entries(value: Schema, pattern: str = "") -> Schema:
    names: Schema = {"propertyNames": {"pattern": f"^(?:{pattern})$"}} if pattern else {}
    return {"type": "object", "minProperties": 1, "additionalProperties": value, **names}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "uniqueItems": True}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _word(words: Collection[str]) -> Schema:
    return {"enum": sorted(words)}


def _definitions(known: Known) -> Schema:
    """What both schemas share: fields and tools."""
    types = sorted(known.types.names)
    one_type: Schema = {
        "anyOf": [
            {"enum": types},
            {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"enum": types}},
        ]
    }
    keys: Mapping[str, Schema] = MappingProxyType(
        {
            "type": {"anyOf": [one_type, _list(one_type)]},
            "from": _list({"anyOf": [_word([*map(str, Origin)]), _record({"choice": _list(_TEXT)}, ("choice",))]}),
            "together": {"type": "string", "pattern": f"^{NAME.pattern}$"},
            "after": _TEXT,
            "optional": _FLAG,
            "nullable": _FLAG,
            "narrows": _FLAG,
            "max_items": _COUNT,
            "grammar": _word(GRAMMARS),
            "value": {},
        }
    )
    needed = {Role.PROTECTED: ("type", "from"), Role.OPAQUE: ("grammar",), Role.FIXED: ("value",), Role.PAYLOAD: ()}
    roles = [
        _record({name: {"const": str(role)} if name == "role" else keys[name] for name in names}, ("role", *needed[role]))
        for role, names in KEYS.items()
    ]
    container = {"items": _ref("field"), "fields": _ref("fields"), **{key: keys[key] for key in CONTAINER_KEYS if key in keys}}
    adapters = [
        _record({"adapter": {"const": kind}, **dict.fromkeys(sorted(inputs), _TEXT)}, ("adapter",))
        for kind, inputs in sorted(known.adapters.items())
    ]
    tool_keys: Schema = {
        "effect": {"anyOf": [{"enum": ["none", "call"]}, _list({"type": "string", "pattern": _atoms(known)}), *adapters]},
        "fields": _ref("fields"),
        "result": {
            "type": "object",
            "minProperties": 1,
            "properties": {"complete": {"type": "string", "pattern": r"^\$"}},
            "patternProperties": {r"^(\$.*|content)$": _word([*map(str, Writer)])},
            "additionalProperties": False,
        },
        "repeat": _word([*map(str, Repeat)]),
        "target": {"type": "string", "pattern": f'^({"|".join(sorted(known.targets))})(\\(|::")'},
        "sink": _FLAG,
    }
    loose = [
        _record(
            {**keys, **container, "role": _word([*map(str, Role)]), "fields": _ref("loose-fields"), "items": _ref("loose-field")}
        )
    ]
    return {
        "field": {"anyOf": [*roles, _record(container, ("items",)), _record(container, ("fields",))]},
        "fields": {
            "type": "object",
            "propertyNames": {"pattern": f"^(?:{PATH.pattern})$"},
            "additionalProperties": _ref("field"),
        },
        "tool": _record(tool_keys, ("effect", "fields")),
        # A single entry of a pack's tool, laid over it.
        "loose-field": {"anyOf": loose},
        "loose-fields": {"type": "object", "additionalProperties": _ref("loose-field")},
        "loose-tool": _record({**tool_keys, "weakens": _FLAG, "fields": _ref("loose-fields")}),
    }


def _atoms(known: Known) -> str:
    kinds = "|".join(sorted(kind.replace(".", r"\.") for kind in known.kinds))
    return rf"^({kinds})\([^()\s]+\)$"


def contract_schema() -> Schema:
    """The schema of a contract pack."""
    properties: Schema = {
        "version": {"const": 1},
        "name": _TEXT,
        "about": _TEXT,
        "tools": _entries(_ref("tool")),
        "methods": _entries(_ref("tool"), "|".join(METHODS)),
    }
    return {
        "$schema": DIALECT,
        "$id": BASE + FILES[1],
        "title": "a contract pack of CXI",
        **_record(properties, ("version",), anyOf=[{"required": ["tools"]}, {"required": ["methods"]}]),
        "$defs": _definitions(known_words()),
    }


def _grant() -> Schema:
    """A grant with more than its count."""
    clock: Schema = {"type": "string", "pattern": r"^([01][0-9]|2[0-4]):[0-5][0-9]$"}
    day = "|".join(DAYS)
    parts: Mapping[str, Schema] = {
        "batch": _record({"field": _TEXT, "most": _COUNT}, BATCH_KEYS),
        "total": _record(
            {
                "field": _TEXT,
                "most": {"anyOf": [_COUNT, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?( [A-Z][A-Z0-9]{1,9})?$"}]},
                "scale": {"type": "integer", "minimum": 0, "maximum": MAX_SCALE},
                "currency": _TEXT,
                "window": _DURATION,
            },
            ("field", "most"),
        ),
        "hours": _record(
            {"days": _list({"type": "string", "pattern": f"^({day})(-({day}))?$"}), "from": clock, "to": clock, "zone": _TEXT},
            ("zone",),
        ),
    }
    instant: Schema = {"type": "string", "format": "date-time"}
    properties: Schema = {
        "count": _COUNT,
        "window": _DURATION,
        "where": _entries(_list({})),
        "across": _word([*map(str, Across)]),
        "after": {"anyOf": [_list(_TEXT), _entries(_COUNT)]},
        "not_before": instant,
        "not_after": instant,
        "retries": {"type": "integer", "minimum": 0, "maximum": 1000},
        **{key: {"anyOf": [part, _list(part)]} for key, part in parts.items()},
    }
    if set(properties) != set(GRANT_KEYS):  # INVARIANT (same-keys)
        raise AssertionError(set(properties) ^ set(GRANT_KEYS))
    return _record(properties, ("count",))


def config_schema() -> Schema:
    """The schema of `cxi.yaml`."""
    known = known_words()
    name: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
    source = _record(
        {
            "tool": _TEXT,
            "path": {"type": "string", "pattern": r"^\$"},
            "written_by": {"const": "platform"},
            "complete": {"const": True},
        },
        ("tool", "path", "written_by"),
    )
    grants = _entries({"anyOf": [_COUNT, _grant()]})
    server = _record(
        {
            "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "pack": {"anyOf": [{"enum": list(shipped_packs())}, {"type": "string", "pattern": r"(/|\.ya?ml$)"}]},
            "env": _entries({"type": "string"}),
            "cwd": _TEXT,
            "tools": _entries(_ref("loose-tool")),
            "methods": _entries(_ref("loose-tool"), "|".join(METHODS)),
            "timeout": _DURATION,
            "limits": _record({"start": _DURATION, "call": _DURATION, "message": _COUNT}),
        },
        ("command",),
    )
    declassifier = _record(
        {
            "from": source,
            "type": _ref("one-type"),
            "validate": _list(_word(validators())),
            "to": _TEXT,
            "selection": _word(SELECTIONS),
            "expires": _DURATION,
            "record": {"type": "string", "pattern": r"^\$"},
            "by": {"type": "string", "pattern": r"^\$"},
            "extract": {"type": "string", "pattern": r"\.py:"},
        },
        ("from", "type", "to"),
    )
    evidence = _record(
        {"from": source, "subject": _word(SUBJECTS), "expires": _DURATION, "attributes": _entries(_word(ATTRIBUTE_TYPES))},
        ("from", "subject"),
    )
    properties: Schema = {
        "version": {"const": VERSION},
        "agent": name,
        "agents": _list(name),
        "user": name,
        "root": _TEXT,
        "policies": _list(_TEXT),
        "prose": _list(_TEXT),
        "servers": _entries(server, SERVER_NAME.pattern),
        "evidence": _entries(evidence, NAME.pattern),
        "declassifiers": _entries(declassifier, NAME.pattern),
        "tasks": _entries(_record({"grants": grants, "expires": _DURATION}, ("grants",)), NAME.pattern),
        "grants": grants,
        "mode": _word([*map(str, Mode)]),
        "state": _TEXT,
        "tenant": name,
        "ledger": {"type": "string", "pattern": "^postgres(ql)?://"},
        "idempotency_key": _TEXT,
    }
    if set(properties) != set(TOP_KEYS):  # INVARIANT (same-keys): the schema knows what the reader knows
        raise AssertionError(set(properties) ^ set(TOP_KEYS))
    definitions = _definitions(known)
    types = sorted(known.types.names)
    one_type: Schema = {"anyOf": [{"enum": types}, {"type": "object", "maxProperties": 1, "propertyNames": {"enum": types}}]}
    return {
        "$schema": DIALECT,
        "$id": BASE + FILES[0],
        "title": "the configuration of CXI, cxi.yaml",
        **_record(properties, REQUIRED),
        "$defs": {**definitions, "one-type": one_type},
    }


def render_schemas() -> Mapping[str, str]:
    """File name to text of both schemas."""
    bodies = zip(FILES, (config_schema(), contract_schema()), strict=True)
    return MappingProxyType(
        {file: json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n" for file, body in bodies}
    )


def write_schemas(folder: Path) -> None:
    """Write both schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in render_schemas().items():
        (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
