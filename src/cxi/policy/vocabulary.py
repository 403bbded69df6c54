"""Which kinds of effect can a policy name, on what, and with which attributes?

- Every atom kind is one Cedar action. `KINDS` says its resource type and what `context.effect` holds for it.
- A glob target is a kind of its own, `fs.write_any`, on the glob's longest literal folder; only files and folders have one.
- Whatever is not typed here never enters a request: a policy cannot name it, so it cannot change a decision.
- Attributes are optional unless they are always known. Digests are shown where they are known.
- `inputs_writable` of `proc.exec` is true unless an adapter proved that nothing which decides the program's behaviour could have
  been written: its arguments alone say what a system program does. There are no trusted snapshots in this version, so it is
  always true of a program that files decide.
- `*_folded` attributes are `fold`ed, so that one `like` finds a name however it is spelled; forbid by them, never permit by them.

    >>> KINDS["fs.write"].pattern, KINDS["fs.write_any"].resource
    ('fs.write_any', 'Folder')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from cxi.canonical import JsonValue

CedarName: TypeAlias = Literal["String", "Long", "Boolean", "Set", "Record"]


@dataclass(frozen=True, slots=True)
class CedarType:
    """A Cedar type, as far as requests use it.

    Attributes:
        name: The type.
        element: For a set: what it holds.
        attributes: For a record: its attributes.
        required: Whether a record that has an attribute of this type must give it.
    """

    name: CedarName
    element: CedarType | None = None
    attributes: Mapping[str, CedarType] | None = None
    required: bool = True

    @property
    def optional(self) -> CedarType:
        """The same type, for an attribute that may be absent."""
        return replace(self, required=False)

    def to_json(self) -> dict[str, JsonValue]:
        """The type in Cedar's JSON schema format."""
        body: dict[str, JsonValue] = {"type": self.name}
        if self.element is not None:
            body["element"] = {key: value for key, value in self.element.to_json().items() if key != "required"}
        if self.attributes is not None:
            body["attributes"] = {key: of.to_json() for key, of in self.attributes.items()}
        if not self.required:
            body["required"] = False
        return body


STRING: Final = CedarType("String")
LONG: Final = CedarType("Long")
BOOL: Final = CedarType("Boolean")
STRINGS: Final = CedarType("Set", element=STRING)


def record(attributes: Mapping[str, CedarType]) -> CedarType:
    """The record type with these attributes."""
    return CedarType("Record", attributes=MappingProxyType(dict(attributes)))


@dataclass(frozen=True, slots=True)
class EntityKind:
    """A Cedar entity type.

    Attributes:
        attributes: What every entity of the type has, or may have.
        parents: The types that it can be `in`.
    """

    attributes: Mapping[str, CedarType]
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """An atom kind.

    Attributes:
        name: The Cedar action.
        resource: The Cedar type of its target.
        effect: What `context.effect` holds.
        pattern: The kind of the same thing on a glob target, or empty where a glob is never permitted.
        exact: For a pattern's kind: the kind on one target, else empty.
    """

    name: str
    resource: str
    effect: Mapping[str, CedarType]
    pattern: str = ""
    exact: str = ""


_PATH: Final = {
    "path": STRING,  # as the target: relative to the root when inside it, else absolute
    "name": STRING,
    "extension": STRING,  # without the dot
    "inside_root": BOOL,
    "case_sensitive": BOOL,
    "path_folded": STRING,
    "name_folded": STRING,
    "parts_folded": STRINGS,  # every component of the path, the name among them
}

# `Agent` is not here: it is enumerated from the configuration, and an enumerated type has no attributes.
ENTITIES: Final[MappingProxyType[str, EntityKind]] = MappingProxyType(
    {
        "Server": EntityKind({"name": STRING}),
        "File": EntityKind(_PATH, ("Folder",)),
        "Folder": EntityKind(_PATH, ("Folder",)),
        "Repo": EntityKind({"name": STRING}),
        "Program": EntityKind({"name": STRING, "on_path": BOOL}),
        "Host": EntityKind({"host": STRING, "port": LONG.optional}),
        "Url": EntityKind(
            {
                "url": STRING,
                "method": STRING.optional,
                "scheme": STRING,
                "host": STRING,
                "port": LONG.optional,
                "path": STRING,
                "query": STRING,
                "fragment": STRING,
            }
        ),
        # A `db.ddl` target (`index:x`, `trigger:t.x`) is `in` the table that it is about, where it names one.
        "Table": EntityKind({"name": STRING, "namespace": STRING, "kind": STRING}, ("Table",)),
        "Database": EntityKind({"kind": STRING, "name": STRING}),
        "Workflow": EntityKind({"name": STRING, "job": STRING}),
        "Address": EntityKind({"address": STRING, "local": STRING, "domain": STRING}),
        "Package": EntityKind({"ecosystem": STRING, "name": STRING, "constraint": STRING}),
        "Text": EntityKind({"value": STRING}),
    }
)

# What every atom's `context.effect` holds: the tool that does it, and what is known of the realized effect.
ALWAYS: Final = MappingProxyType({"tool": STRING, "assurance": STRING})

_TEXT: Final = STRING.optional
_FLAG: Final = BOOL.optional
_NUMBER: Final = LONG.optional
_TEXTS: Final = STRINGS.optional
_BEFORE_AFTER: Final = {"before": _TEXT, "after": _TEXT}
_FILE: Final = {**_BEFORE_AFTER, "renamed_from": _TEXT, "mode": _TEXT}
_GIT: Final = {
    **_BEFORE_AFTER,
    "op": _TEXT,
    "branch": _TEXT,
    "ref": _TEXT,
    "remote": _TEXT,
    "url": _TEXT,
    "message": _TEXT,
    "name": _TEXT,
    "force": _FLAG,
}
_ROWS: Final = {"columns": _TEXTS, "rows": _TEXTS}
_SLOT: Final = {"field": _TEXT, "grammar": _TEXT}
_CI: Final = {"op": _TEXT, "file": _TEXT}
_PACKAGE: Final = {"op": _TEXT, "source": _TEXT}

_FILE_KINDS: Final[Mapping[str, Mapping[str, CedarType]]] = {
    **dict.fromkeys(("fs.create", "fs.write", "fs.delete", "fs.chmod", "fs.mkfifo", "fs.touch", "fs.read"), _FILE),
    "fs.symlink": {**_FILE, "to": _TEXT},
    "fs.link": {**_FILE, "to": _TEXT},
    "git.index": {**_BEFORE_AFTER, "op": _TEXT},
}
_FOLDER_KINDS: Final[Mapping[str, Mapping[str, CedarType]]] = dict.fromkeys(("fs.mkdir", "fs.rmdir"), _FILE)
_OTHER_KINDS: Final[Mapping[str, tuple[str, Mapping[str, CedarType]]]] = {
    **{f"git.{what}": ("Repo", _GIT) for what in ("commit", "ref", "checkout", "push", "fetch", "config", "hook")},
    "proc.exec": ("Program", {"argv": _TEXTS, "command": _TEXT, "inputs_writable": _FLAG}),
    "net.connect": ("Host", {}),
    "http.request": ("Url", {"query": _TEXT, "headers": _TEXTS, "body": _TEXT}),
    "text.link": ("Url", _SLOT),
    "text.fetch": ("Url", _SLOT),
    **{f"text.{what}": ("Text", _SLOT) for what in ("mention", "command", "secret")},
    **{f"db.{what}": ("Table", _ROWS) for what in ("select", "insert", "update", "delete")},
    "db.ddl": ("Table", {"op": _TEXT}),
    **{f"db.{what}": ("Database", {"op": _TEXT}) for what in ("function", "sequence", "lock", "notify", "session")},
    **{
        f"ci.{what}": ("Workflow", _CI)
        for what in (
            *("trigger", "permission", "step", "secret", "untrusted_expression", "job", "runner", "environment", "concurrency"),
            *("reusable", "container", "needs", "condition", "env", "defaults", "strategy", "outputs", "limits"),
        )
    },
    "mail.send": ("Address", {"role": _TEXT, "attachments": _TEXTS}),
    **{f"pkg.{what}": ("Package", _PACKAGE) for what in ("install", "remove", "script", "index")},
}


def _kinds() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for resource, kinds in (("File", _FILE_KINDS), ("Folder", _FOLDER_KINDS)):
        for name, effect in kinds.items():
            found[name] = Kind(name, resource, {**effect, **ALWAYS}, pattern=f"{name}_any")
            found[f"{name}_any"] = Kind(f"{name}_any", "Folder", {**effect, **ALWAYS, "pattern": STRING}, exact=name)
    for name, (resource, effect) in _OTHER_KINDS.items():
        found[name] = Kind(name, resource, {**effect, **ALWAYS})
    return found


KINDS: Final[MappingProxyType[str, Kind]] = MappingProxyType(_kinds())

CALL: Final = "tool:"  # the prefix of a call's action: tools and atoms never share a name
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_]+")


def call_action(tool: str) -> str:
    """The Cedar action of calling a tool, `tool:files.write_file`."""
    return CALL + tool


def cedar_name(name: str) -> str:
    """A contract's name as a Cedar identifier: `test-run` is `test_run`, `edits[].oldText` is `edits_oldText`."""
    safe = _UNSAFE.sub("_", name).strip("_") or "_"
    return f"_{safe}" if safe[0].isdigit() else safe


def fold(text: str) -> str:
    """The text without case, without the characters that some file systems ignore, composed.

    It is at least as coarse as HFS+ and APFS are: canonical decomposition, full case folding, no format characters.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", text).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", kept)
