"""What did a person accept, that servers and files could change later?

- `cxi.lock` pins server identities, tool definitions, prose sources and the files of Python declassifiers, by digest.
- It is JSON, sorted and indented, so that two locks differ where what they pin differs. Definitions are kept whole, for the diff.
- The order of keys in a definition never matters: digests are over canonical bytes.
- A person renews it; nothing here writes it by itself. What a tool's description hides is shown in the difference.

    >>> lock = Lock.of({"ci": pin_server("sha256:0", [{"name": "get_report"}])}, {}, {})
    >>> [state.state for state in compare(lock, "ci", "sha256:0", [{"name": "get_report"}])]
    [<PinStanding.OK: 'ok'>]
"""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from cxi.canonical import Digest, JsonValue, digest, parse_json
from cxi.errors import ConfigError, MalformedError, Problem
from cxi.values.hidden import visible

if TYPE_CHECKING:
    from cxi.config.model import Configuration

VERSION: Final = 1
MEND: Final = "restore the file, or a person removes it and runs `cxi lock`"


@dataclass(frozen=True, slots=True)
class ToolPin:
    """A pinned tool.

    Attributes:
        digest: Of the definition.
        definition: As the server listed it.
    """

    digest: Digest
    definition: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ServerPin:
    """A pinned server.

    Attributes:
        identity: Digest of its program and arguments.
        tools: Its tools, by their own names.
    """

    identity: Digest
    tools: Mapping[str, ToolPin]


@dataclass(frozen=True, slots=True)
class Lock:
    """All pins.

    Attributes:
        servers: By configured name.
        prose: Digest of each prose source, by file.
        code: Digest of each Python declassifier's file, by file.
        digest: Of all of it.
    """

    servers: Mapping[str, ServerPin]
    prose: Mapping[str, Digest]
    code: Mapping[str, Digest]
    digest: Digest

    @classmethod
    def of(cls, servers: Mapping[str, ServerPin], prose: Mapping[str, Digest], code: Mapping[str, Digest]) -> Self:
        """A lock of these pins."""
        body = _to_json(servers, prose, code)
        return cls(
            MappingProxyType(dict(servers)),
            MappingProxyType(dict(prose)),
            MappingProxyType(dict(code)),
            digest(body, floats=True),
        )

    def to_json(self) -> dict[str, JsonValue]:
        """What the file holds."""
        return _to_json(self.servers, self.prose, self.code)


class PinStanding(StrEnum):
    """How a tool or server stands to its pin."""

    OK = "ok"
    CHANGED = "changed"
    UNPINNED = "unpinned"
    SERVER_CHANGED = "server-changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class PinState:
    """How one tool stands to its pin.

    Attributes:
        server: The server's name.
        tool: The tool's own name.
        state: How it stands.
        digest: Of the definition as listed now; empty where it is gone.
        difference: What changed, line by line, hidden characters visible; empty where nothing did.
    """

    server: str
    tool: str
    state: PinStanding
    digest: Digest
    difference: str = ""


def pin_server(identity: Digest, tools: Iterable[Mapping[str, JsonValue]]) -> ServerPin:
    """Pin a server as it is.

    Args:
        identity: Its identity digest.
        tools: The tool definitions of its whole `tools/list`.

    Raises:
        ConfigError: a definition without a name, two of one name, or one that is no exact JSON.
    """
    return ServerPin(identity, MappingProxyType(_pins(tools)))


def make_lock(config: Configuration, listings: Mapping[str, Sequence[Mapping[str, JsonValue]]]) -> Lock:
    """Pin everything as it is now; a person looked at it first.

    Args:
        config: The configuration, loaded with `pinned=False`.
        listings: The whole `tools/list` of every configured server.

    Raises:
        ConfigError: a configured server was not listed, or a definition cannot be pinned.
    """
    problems: list[Problem] = []
    servers: dict[str, ServerPin] = {}
    for name, server in config.servers.items():
        if name not in listings:
            problems.append(
                Problem(*config.place(f"server {name}"), f"server `{name}` did not list its tools", "mend the server")
            )
            continue
        try:
            servers[name] = pin_server(server.identity, listings[name])
        except ConfigError as error:
            problems.extend(Problem(f"server `{name}`", 0, problem.detail, problem.mend) for problem in error.problems)
    if problems:
        raise ConfigError(*problems)
    return Lock.of(servers, {source.file: source.digest for source in config.prose}, config.code)


def digest_definition(definition: Mapping[str, JsonValue]) -> Digest:
    """The digest of a tool's definition; the order of its keys does not matter.

    Raises:
        MalformedError: where it is no exact JSON.
    """
    # JSON Schema may hold floats (`multipleOf: 0.1`); RFC 8785 writes them exactly.
    return digest(definition, floats=True)


def _pins(tools: Iterable[Mapping[str, JsonValue]]) -> dict[str, ToolPin]:
    found: dict[str, ToolPin] = {}
    problems: list[Problem] = []
    for definition in tools:
        name = definition.get("name")
        if not isinstance(name, str) or not name:
            problems.append(Problem("tools/list", 0, "a tool definition has no name"))
            continue
        if name in found:
            problems.append(Problem("tools/list", 0, f"the server lists `{visible(name)}` twice"))
            continue
        try:
            found[name] = ToolPin(digest_definition(definition), definition)
        except MalformedError as error:
            problems.append(Problem("tools/list", 0, f"the definition of `{visible(name)}` cannot be pinned: {error}"))
    if problems:
        raise ConfigError(*problems)
    return dict(sorted(found.items()))


def compare(lock: Lock | None, server: str, identity: Digest, tools: Sequence[Mapping[str, JsonValue]]) -> tuple[PinState, ...]:
    """How each tool of a server stands to the lock.

    Args:
        lock: The pins, or None where there are none.
        server: The server's configured name.
        identity: Its identity digest now.
        tools: Its definitions now.

    Returns:
        One state a tool, listed or pinned, sorted by name. Where the server's identity changed, every tool is `server-changed`.

    Raises:
        ConfigError: as `pin_server`.
    """
    now = _pins(tools)
    pin = lock.servers.get(server) if lock is not None else None
    if pin is None:
        return tuple(PinState(server, name, PinStanding.UNPINNED, listed.digest) for name, listed in now.items())
    found: list[PinState] = []
    for name in sorted(now.keys() | pin.tools.keys()):
        pinned, listed = pin.tools.get(name), now.get(name)
        difference = _differ(pinned, listed) if pinned is None or listed is None or pinned.digest != listed.digest else ""
        if listed is None:
            state = PinStanding.GONE
        elif pin.identity != identity:
            state = PinStanding.SERVER_CHANGED
        elif pinned is None:
            state = PinStanding.UNPINNED
        else:
            state = PinStanding.CHANGED if difference else PinStanding.OK
        found.append(PinState(server, name, state, listed.digest if listed else "", difference))
    return tuple(found)


def _differ(pinned: ToolPin | None, listed: ToolPin | None) -> str:
    before = _lines(pinned.definition) if pinned else []
    after = _lines(listed.definition) if listed else []
    return "\n".join(difflib.unified_diff(before, after, "pinned", "listed", lineterm="", n=2))


def _lines(definition: Mapping[str, JsonValue]) -> list[str]:
    text = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    return [visible(line) for line in text.split("\n")]


def _to_json(servers: Mapping[str, ServerPin], prose: Mapping[str, Digest], code: Mapping[str, Digest]) -> dict[str, JsonValue]:
    return {
        "version": VERSION,
        "servers": {
            name: {
                "identity": pin.identity,
                "tools": {tool: {"digest": one.digest, "definition": one.definition} for tool, one in pin.tools.items()},
            }
            for name, pin in servers.items()
        },
        "prose": dict(prose),
        "code": dict(code),
    }


def render_lock(lock: Lock) -> str:
    """The file's text: sorted, indented, one final newline, equal for equal pins."""
    return json.dumps(lock.to_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_lock(path: Path, lock: Lock) -> None:
    """Write the file in one step: a reader sees the old lock or the new one.

    Raises:
        ConfigError: if it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(render_lock(lock))
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(Problem(str(path), 0, f"the lock cannot be written: {error.strerror}")) from error


def read_lock(path: Path, *, file: str = "") -> Lock | None:
    """Read the lock; None where there is none.

    Args:
        path: Where it is.
        file: What errors call it; the path where empty.

    Raises:
        ConfigError: it cannot be read, is no lock, or a definition in it does not have the digest it says.
    """
    name = file or str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(Problem(name, 0, f"the lock cannot be read: {error.strerror}")) from error
    try:
        body = parse_json(data)
    except MalformedError as error:
        raise ConfigError(Problem(name, 0, f"the lock is no JSON: {error}", MEND)) from None
    problems: list[Problem] = []
    lock = _from_json(body, name, problems)
    if problems:
        raise ConfigError(*problems)
    return lock


def _from_json(body: JsonValue, name: str, problems: list[Problem]) -> Lock:
    def blame(detail: str) -> None:
        problems.append(Problem(name, 0, detail, MEND))

    def mapping(value: JsonValue, keys: frozenset[str] | None, what: str) -> Mapping[str, JsonValue]:
        if not isinstance(value, Mapping):
            blame(f"{what} is no object")
            return {}
        if keys is not None and value.keys() != keys:
            blame(f"{what} has not exactly the keys {', '.join(sorted(keys))}")
            return {}
        return value

    def digests(value: JsonValue, what: str) -> dict[str, Digest]:
        found = mapping(value, None, what)
        for key, item in found.items():
            if not isinstance(item, str):
                blame(f"{what}: `{key}` has no digest")
        return {key: item for key, item in found.items() if isinstance(item, str)}

    top = mapping(body, frozenset({"version", "servers", "prose", "code"}), "the lock")
    if top and top["version"] != VERSION:
        blame(f"the lock is of version {top['version']}, not {VERSION}")
    servers: dict[str, ServerPin] = {}
    for server, value in (mapping(top["servers"], None, "`servers`") if top else {}).items():
        pin = mapping(value, frozenset({"identity", "tools"}), f"server `{server}`")
        tools: dict[str, ToolPin] = {}
        for tool, one in (mapping(pin["tools"], None, f"the tools of `{server}`") if pin else {}).items():
            entry = mapping(one, frozenset({"digest", "definition"}), f"`{server}.{tool}`")
            definition = mapping(entry["definition"], None, f"the definition of `{server}.{tool}`") if entry else {}
            said = entry.get("digest")
            if entry and (definition.get("name") != tool or said != digest_definition(definition)):
                blame(f"the definition of `{server}.{tool}` is not what its digest says")
            tools[tool] = ToolPin(str(said), definition)
        identity = pin.get("identity")
        if pin and not isinstance(identity, str):
            blame(f"server `{server}` has no identity")
        servers[server] = ServerPin(str(identity), MappingProxyType(tools))
    return Lock.of(servers, digests(top["prose"], "`prose`") if top else {}, digests(top["code"], "`code`") if top else {})
