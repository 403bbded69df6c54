"""Which servers are there, how are they started, and which contracts describe their tools?

- A server is a program that the gateway starts; its program is found now, and pinned by where it was found and its arguments.
- `env` values may refer to `${VAR}`; the reference is checked now and put in when the server starts. Arguments are pinned, so
  they may refer to `${root}` only.
- The content of the code that its command names counts in its identity; code in the root is protected (`cxi.config.launch`).
- A pack is shipped (`pack: filesystem`) or the operator's own (`pack: ./packs/crm.yaml`); `tools:` lays single entries over it.
- A pack brings the permit to call its tools, and no permit of what they do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cxi.config.contract import Known, ReadContract, read_contracts
from cxi.config.launch import MEND, LoadedCode, find_code
from cxi.config.model import REFERENCE, Limits, Server, identify
from cxi.config.reader import SERVER_NAME, Reader, nearest
from cxi.config.yaml import Node, read_tree
from cxi.errors import ConfigError
from cxi.policy.registry import PolicySource
from cxi.policy.vocabulary import call_action

PACKS: Final = Path(__file__).parent / "packs"
KEYS: Final = ("command", "pack", "env", "cwd", "tools", "methods", "timeout", "limits", "url")
PACK_KEYS: Final = ("version", "name", "about", "tools", "methods")
NO_CODE: Final = LoadedCode((), (), (), MappingProxyType({}))
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the reading of servers knows of the world.

    Attributes:
        folder: Of the configuration file; relative paths are relative to it.
        root: The declared root.
        environ: The environment.
    """

    folder: Path
    root: Path
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadServer:
    """A server and all that comes with it.

    Attributes:
        name: Its configured name.
        server: How it is started; None where that is wrong.
        tools: Contracts by the tools' own names.
        methods: Contracts by MCP method.
        permit: The call permits that its pack brings, or None.
        files: Files that start it or describe it, absolute.
        folders: Folders in the root that hold code of it.
        node: Its place.
    """

    name: str
    server: Server | None
    tools: Mapping[str, ReadContract]
    methods: Mapping[str, ReadContract]
    permit: PolicySource | None
    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    node: Node


def shipped_packs() -> tuple[str, ...]:
    """The names of the shipped packs."""
    return tuple(sorted(path.stem for path in PACKS.glob("*.yaml")))


def read_servers(reader: Reader, node: Node, around: Surroundings, known: Known) -> Mapping[str, ReadServer]:
    """Read the `servers` mapping."""
    found: dict[str, ReadServer] = {}
    for name, item in (reader.entries(node, "`servers`", SERVER_NAME) or {}).items():
        here = Node(item.value, item.file, node.key_lines.get(name, item.line), item.key_lines)
        read = _read_server(reader, name, here, around, known)
        if read is not None:
            found[name] = read
    for name in node.value if isinstance(node.value, Mapping) else ():
        if name not in found:
            reader.leave_incomplete(name)
    return MappingProxyType(found)


def _read_server(reader: Reader, name: str, node: Node, around: Surroundings, known: Known) -> ReadServer | None:
    what = f"server `{name}`"
    record = reader.record(node, what, KEYS)
    if record is None:
        return None
    if "url" in record:
        reader.note(node.key_problem("url", f"{what} is reached by URL, which this version does not do", "name a `command`"))
    elif "command" not in record:
        reader.note(node.problem(f"{what} lacks `command`", "add `command: [program, argument, …]`"))
    pack_name, pack, pack_file = _read_pack(reader, record["pack"], what, around) if "pack" in record else ("", None, None)
    shipped = pack.value if pack is not None and isinstance(pack.value, Mapping) else {}
    if ("pack" in record and not shipped) or ("url" in record and "pack" not in record):
        # What lies over a pack that is not there says nothing by itself.
        reader.leave_incomplete(name)
        _read_start(reader, name, record, pack_name, around)
        return None
    tools = read_contracts(reader, name, shipped.get("tools"), record.get("tools"), known)
    methods = read_contracts(reader, name, shipped.get("methods"), record.get("methods"), known, methods=True)
    brought = [*_names(shipped.get("tools"), tools), *_names(shipped.get("methods"), methods)]
    started, code = _read_start(reader, name, record, pack_name, around)
    files = tuple(path for path in (pack_file, *code.files) if path is not None)
    permit = PolicySource(f"pack {pack_name} (server {name})", permit_calls(name, brought)) if brought else None
    return ReadServer(name, started, tools, methods, permit, files, code.folders, node)


def _names(shipped: Node | None, read: Mapping[str, ReadContract]) -> list[str]:
    return [name for name in shipped.value if name in read] if shipped and isinstance(shipped.value, Mapping) else []


def permit_calls(server: str, tools: list[str]) -> str:
    """The Cedar text that permits calling these tools, `@id("files/calls")`; what they do needs permits of its own."""
    actions = ",\n  ".join(f"Action::{json.dumps(call_action(f'{server}.{tool}'), ensure_ascii=False)}" for tool in tools)
    return (
        f'@id("{server}/calls") @issuer("cxi:pack")\n'
        f'@text("The tools of `{server}` may be called; each of their effects needs a permit of its own.")\n'
        f"permit (principal, action in [\n  {actions}\n], resource);\n"
    )


def _read_pack(reader: Reader, node: Node, what: str, around: Surroundings) -> tuple[str, Node | None, Path | None]:
    name = reader.text(node, f"`pack` of {what}")
    if name is None:
        return "", None, None
    if "/" in name or name.endswith((".yaml", ".yml")):
        path, shown = around.folder / name, name
    else:
        path, shown = PACKS / f"{name}.yaml", f"cxi/packs/{name}.yaml"
        if name not in shipped_packs():
            mend = f"{nearest(name, shipped_packs())}; for a pack of your own write its path, `./{name}.yaml`"
            reader.note(node.problem(f"{what} names no shipped pack `{name}`", mend))
            return name, None, None
    try:
        tree = read_tree(path.read_bytes(), file=shown)
    except OSError as error:
        reader.note(node.problem(f"the pack `{name}` of {what} cannot be read: {error.strerror}", "name a file that is there"))
        return name, None, None
    except ConfigError as error:
        reader.note(*error.problems)
        return name, None, path
    record = reader.record(tree, f"the pack `{name}`", PACK_KEYS, ("version",))
    if record is not None and "version" in record and record["version"].value != 1:
        reader.note(record["version"].problem(f"the pack is of version {record['version'].value}", "write `version: 1`"))
    if record is not None and not {"tools", "methods"} & record.keys():
        reader.note(tree.problem(f"the pack `{name}` has no tools", "add `tools:`"))
    return name, tree, path


def _read_start(
    reader: Reader, name: str, record: Mapping[str, Node], pack: str, around: Surroundings
) -> tuple[Server | None, LoadedCode]:
    what = f"server `{name}`"
    cwd = around.folder
    if "cwd" in record and (text := reader.text(record["cwd"], f"`cwd` of {what}")) is not None:
        cwd = around.folder / text
        if not cwd.is_dir():
            reader.note(record["cwd"].problem(f"`cwd` of {what} is no folder: `{text}`", "name a folder that is there"))
    env = _read_env(reader, record["env"], what, around.environ) if "env" in record else {}
    limits = _read_limits(reader, record, what)
    words = reader.items(record["command"], f"`command` of {what}") if "command" in record else None
    if words is None:
        return None, NO_CODE
    texts: list[str] = []
    for index, word in enumerate(words):
        if not isinstance(word.value, str) or (index == 0 and not word.value):
            reader.mistyped(word, f"an item of `command` of {what}", "text (quote it)")
            return None, NO_CODE
        unknown = [found for found in REFERENCE.findall(word.value) if found != "root"]
        if unknown:
            reader.note(
                word.problem(
                    f"`${{{unknown[0]}}}` in `command` of {what}", "only `${root}` is put into a command; secrets go to `env`"
                )
            )
        texts.append(word.value.replace("${root}", str(around.root)))
    program = _find_program(texts[0], cwd, around.environ)
    if program is None:
        reader.note(words[0].problem(f"the program `{texts[0]}` of {what} is not there", "install it, or write its path"))
        return None, NO_CODE
    args = tuple(texts[1:])
    given = {key: REFERENCE.sub(lambda match: around.environ.get(match[1], ""), text) for key, text in env.items()}
    code = find_code(program, args, given, cwd, around.root)
    for path in code.exposed:
        reader.note(words[0].problem(f"{what} loads code from `{path}`, where the agent works", MEND))
    identity = identify(program, args, env, str(cwd), code.digests)
    return Server(name, program, args, MappingProxyType(env), cwd, pack, limits, identity), code


def _find_program(word: str, cwd: Path, environ: Mapping[str, str]) -> str | None:
    if "/" in word:
        # Links stay: a virtual environment's `python` is a link, and is what it is by its own place.
        path = Path(os.path.normpath(cwd / Path(word).expanduser()))
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    found = shutil.which(word, path=environ.get("PATH", os.defpath))
    return str(Path(found).absolute()) if found else None


def _read_env(reader: Reader, node: Node, what: str, environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, item in (reader.entries(node, f"`env` of {what}", _VARIABLE) or {}).items():
        if not isinstance(item.value, str):
            reader.mistyped(item, f"`env.{name}` of {what}", "text (quote it)")
            continue
        for word in REFERENCE.findall(item.value):
            if word not in environ:
                reader.note(item.problem(f"`env.{name}` of {what} refers to `{word}`, which is not set", f"set `{word}`"))
        found[name] = item.value
    return found


def _read_limits(reader: Reader, record: Mapping[str, Node], what: str) -> Limits:
    limits = Limits()
    if "timeout" in record and "limits" in record:
        reader.note(record["timeout"].problem(f"{what} has both `timeout` and `limits`", "write `limits: {call: …}` alone"))
    start, call, message = limits.start, limits.call, limits.message
    if "timeout" in record:
        call = reader.duration(record["timeout"], f"`timeout` of {what}") or call
    if "limits" in record and (inner := reader.record(record["limits"], f"`limits` of {what}", ("start", "call", "message"))):
        if "start" in inner:
            start = reader.duration(inner["start"], f"`start` of {what}") or start
        if "call" in inner:
            call = reader.duration(inner["call"], f"`call` of {what}") or call
        if "message" in inner:
            message = reader.count(inner["message"], f"`message` of {what}", most=limits.message) or message
    return Limits(start, call, message)
