"""Is what the operator wrote right, all of it?

- `load` reads `cxi.yaml` and everything that it names: packs, policies, prose, lock. It gives a `Configuration`, or raises a
  `ConfigError` with every problem, each with its file, its line and what would mend it.
- Nothing starts on half a configuration, and nothing is read again later: what was checked is what is in force.
- Relative paths are relative to the configuration's folder. State lies outside the root.

    configuration = load(Path("cxi.yaml"), environ=os.environ)
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cxi.authority.contract import ToolContract
from cxi.canonical import Digest, JsonValue, digest, digest_bytes
from cxi.config import surface
from cxi.config.code import CodeFiles
from cxi.config.contract import ReadContract, choices
from cxi.config.lock import Lock, read_lock
from cxi.config.material import Material, literal_folders, read_files, read_prose
from cxi.config.model import (
    IDEMPOTENCY_META_KEY,
    Configuration,
    Mode,
    Place,
    ProseSource,
    ProtectedKind,
    Server,
    Task,
    Weakened,
)
from cxi.config.naming import route
from cxi.config.reader import Reader, nearest
from cxi.config.server import ReadServer, Surroundings, read_servers
from cxi.config.source import Sources, read_declassifiers, read_evidence
from cxi.config.task import STANDING, read_grants, read_tasks
from cxi.config.words import known_words, read_value, validators
from cxi.config.yaml import Node, read_tree
from cxi.errors import ConfigError, Problem
from cxi.policy.registry import PolicySource, Registry, shipped
from cxi.policy.registry import load as load_policies
from cxi.policy.schema import EvidenceSurface, make_schema

KEYS: Final = (
    "version",
    "agent",
    "agents",
    "user",
    "root",
    "policies",
    "prose",
    "servers",
    "evidence",
    "declassifiers",
    "tasks",
    "grants",
    "mode",
    "state",
    "tenant",
    "ledger",
    "idempotency_key",
)
REQUIRED: Final = ("version", "agent", "root", "servers")
VERSION: Final = 1
TENANT: Final = "local"
LOCK: Final = "cxi.lock"
_ACTION: Final = re.compile(r'"tool:([^"]+)"')
# No password: the file is read by more than the gateway.
_LEDGER: Final = re.compile(r"postgres(?:ql)?://(?:[^:@/?#]+@)?[^@?#]*/[^/@?#]+(?:\?(?!.*(?i:password))[^#]*)?")
META_KEY: Final = re.compile(r"(?:[A-Za-z](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
# Files of clients that start servers or hooks: whoever writes them chooses what runs beside the gate.
CLIENT_FILES: Final = (
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What was read before the parts are put together."""

    folder: Path
    root: Path
    servers: Mapping[str, ReadServer]
    contracts: Mapping[str, ReadContract]
    methods: Mapping[str, ReadContract]


def load(path: Path, *, environ: Mapping[str, str] | None = None, pinned: bool = True) -> Configuration:
    """Read a configuration and everything that it names.

    Args:
        path: The configuration file, `cxi.yaml`.
        environ: The environment: the search path of programs, and what `${VAR}` refers to; this process's where none is given.
        pinned: Whether everything must be as `cxi.lock` pins it; only the making of a new lock reads without, and then no code of
            the operator's is loaded.

    Raises:
        ConfigError: with every problem.
    """
    environ = os.environ if environ is None else environ
    file = path.absolute()
    name = path.name
    try:
        tree = read_tree(file.read_bytes(), file=name)
    except OSError as error:
        mend = "name a file that is there with `--config`; the documentation's page `configuration.md` shows a whole one"
        raise ConfigError(Problem(str(path), 0, f"the configuration cannot be read: {error.strerror}", mend)) from None
    reader = Reader()
    record = reader.record(tree, "the configuration", KEYS, REQUIRED) or {}
    folder = Path(os.path.realpath(file.parent))
    _read_version(reader, record)
    agent, agents = _read_agents(reader, record)
    root = _read_root(reader, record, folder)
    mode = _read_mode(reader, record)
    state = _read_state(reader, record, folder, root, file, environ)
    (tenant, ledger), user, meta_key = _read_ledger(reader, record), _read_user(reader, record), _read_meta_key(reader, record)
    known = known_words()
    servers = read_servers(reader, record["servers"], Surroundings(folder, root, environ), known) if "servers" in record else {}
    parts = _Parts(
        folder,
        root,
        servers,
        MappingProxyType({read.contract.name: read for server in servers.values() for read in server.tools.values()}),
        MappingProxyType(
            {f"{name}:{method}": read for name, server in servers.items() for method, read in server.methods.items()}
        ),
    )
    _refuse_collisions(reader, parts)
    contracts = {name: read.contract for name, read in parts.contracts.items()}

    code = CodeFiles(folder)
    sources = Sources(contracts, known.types, validators(), code)
    evidence = read_evidence(reader, record["evidence"], sources) if "evidence" in record else ()
    declassifiers = read_declassifiers(reader, record["declassifiers"], sources) if "declassifiers" in record else ()
    read_one = read_value(root)
    tasks = (
        read_tasks(reader, record["tasks"], contracts, read_one, _keys(record.get("grants")))
        if "tasks" in record
        else MappingProxyType({})
    )
    standing = read_grants(reader, record["grants"], STANDING, contracts, read_one) if "grants" in record else ()

    policy_files = read_files(reader, record["policies"], "policies", folder) if "policies" in record else ()
    prose_files = read_prose(reader, record["prose"], folder) if "prose" in record else ()
    policies = (
        shipped(),
        *(server.permit for server in servers.values() if server.permit is not None),
        *(PolicySource(material.name, material.text) for material in policy_files),
    )
    surfaces = [surface.evidence(item) for item in evidence]
    registry = _load_policies(reader, policies, agents, parts, surfaces, tasks, _keys(record.get("evidence")))
    if registry is not None:
        _refuse_loose_choices(reader, parts, registry)
    lock = _read_lock(reader, folder)
    if lock is not None and pinned:
        declassifiers = tuple(code.load(reader, item, lock.code) for item in declassifiers)
        _refuse_unpinned(reader, lock, prose_files, code.pins)
        _refuse_lacking(reader, lock, parts)
    _refuse_wide_globs(reader, record, folder, root)
    reader.finish()
    if registry is None:  # INVARIANT (all-or-nothing): without a registry there is a problem above
        raise AssertionError(name)

    started = {name: read.server for name, read in servers.items() if read.server is not None}
    prose = tuple(ProseSource(material.name, material.text, digest_bytes(material.data)) for material in prose_files)
    method_contracts = {name: read.contract for name, read in parts.methods.items()}
    body = _epoch_body(
        agents=agents,
        root=root,
        servers=started,
        contracts={**contracts, **method_contracts},
        registry=registry,
        prose=prose,
        declassifiers=[item.digest for item in declassifiers],
        evidence=[surface.describe(item) for item in evidence],
        tasks=tasks,
        standing=[surface.describe(grant) for grant in standing],
        lock=lock,
        mode=mode,
    )
    return Configuration(
        file=file,
        version=VERSION,
        agent=agent,
        agents=agents,
        tenant=tenant,
        user=user,
        root=root,
        servers=MappingProxyType(started),
        contracts=MappingProxyType(contracts),
        methods=MappingProxyType(method_contracts),
        surfaces=MappingProxyType(
            {item.name: item for item in map(surface.tool, (*contracts.values(), *method_contracts.values()))}
        ),
        policies=policies,
        registry=registry,
        prose=prose,
        declassifiers=declassifiers,
        evidence=evidence,
        tasks=tasks,
        standing=standing,
        mode=mode,
        state=state,
        ledger=ledger,
        idempotency_meta_key=meta_key,
        lock=lock,
        lock_file=folder / LOCK,
        code=MappingProxyType(code.pins),
        protected=_protect(record, parts, state, file, (*policy_files, *prose_files), [folder / named for named in code.pins]),
        digest=digest(body),
        weakened=_weakened(parts),
        places=_places(parts, record),
    )


def _read_version(reader: Reader, record: Mapping[str, Node]) -> None:
    node = record.get("version")
    if node is not None and (isinstance(node.value, bool) or node.value != VERSION):
        reader.note(node.problem(f"the configuration is of version `{node.value}`", f"write `version: {VERSION}`"))


def _read_agents(reader: Reader, record: Mapping[str, Node]) -> tuple[str, tuple[str, ...]]:
    agent = (reader.name(record["agent"], "`agent`") or "") if "agent" in record else ""
    named: list[str] = [agent] if agent else []
    for item in (reader.items(record["agents"], "`agents`") or ()) if "agents" in record else ():
        other = reader.name(item, "an item of `agents`")
        if other is not None and other in named[1:]:
            reader.note(item.problem(f"the agent `{other}` is there twice", "name it once"))
        elif other is not None and other != agent:
            named.append(other)
    return agent, tuple(named)


def _read_root(reader: Reader, record: Mapping[str, Node], folder: Path) -> Path:
    text = reader.text(record["root"], "`root`") if "root" in record else None
    if text is None:
        return folder
    root = Path(os.path.realpath(folder / Path(text).expanduser()))
    if not root.is_dir():
        reader.note(record["root"].problem(f"`root` is no folder: `{text}`", "name a folder that is there"))
    elif root == Path("/"):
        reader.note(record["root"].problem("`root` is the whole file system", "name the folder that the agent works in"))
    return root


def _read_mode(reader: Reader, record: Mapping[str, Node]) -> Mode:
    if "mode" not in record:
        return Mode.ENFORCE
    node = record["mode"]
    if node.value == "shadow":
        reader.note(node.problem("the mode `shadow` is not in this version", "write `mode: enforce`"))
    else:
        reader.word(node, "`mode`", map(str, Mode))
    return Mode.ENFORCE


def _read_ledger(reader: Reader, record: Mapping[str, Node]) -> tuple[str, str]:
    """Whose ledger rows these are, and the address of a ledger of many gateways, or empty."""
    tenant = (reader.name(record["tenant"], "`tenant`") if "tenant" in record else None) or TENANT
    ledger = (reader.text(record["ledger"], "`ledger`") if "ledger" in record else None) or ""
    if ledger and not _LEDGER.fullmatch(ledger):
        mend = "write `postgresql://USER@HOST/DATABASE`; the password belongs into a password file (`PGPASSFILE`)"
        reader.note(record["ledger"].problem("`ledger` is not the address of a PostgreSQL database without a password", mend))
    return tenant, ledger


def _read_state(
    reader: Reader, record: Mapping[str, Node], folder: Path, root: Path, file: Path, environ: Mapping[str, str]
) -> Path:
    """The state folder: one for each configuration, so that two of them never share a policy epoch."""
    if "state" in record:
        node = record["state"]
        text = reader.text(node, "`state`")
        state = folder / Path(text).expanduser() if text is not None else folder.parent / ".cxi-state"
    else:
        node = record.get("root", Node(None, file.name, 0))
        home = environ.get("XDG_STATE_HOME") or ""
        # XDG Base Directory Specification: a relative path is invalid and is ignored.
        base = (
            Path(home) if home.startswith("/") else Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir) / ".local/state"
        )
        state = base / "cxi" / hashlib.sha256(os.fsencode(folder / file.name)).hexdigest()[:16]
    state = Path(os.path.realpath(state))
    if state == root or state.is_relative_to(root) or root.is_relative_to(state):
        reader.note(
            node.problem(f"the state folder `{state}` and the root overlap", "add `state:` with a folder outside the root")
        )
    if state.exists() and not state.is_dir():
        reader.note(node.problem(f"the state folder `{state}` is a file", "name a folder"))
    return state


def _read_meta_key(reader: Reader, record: Mapping[str, Node]) -> str:
    """A key of `_meta`: an optional prefix and a name (MCP, "_meta")."""
    if "idempotency_key" not in record:
        return IDEMPOTENCY_META_KEY
    text = reader.text(record["idempotency_key"], "`idempotency_key`") or IDEMPOTENCY_META_KEY
    if not META_KEY.fullmatch(text):
        reader.note(record["idempotency_key"].problem(f"`idempotency_key` is `{text}`", "write a `_meta` key, `example.org/key`"))
    return text


def _read_user(reader: Reader, record: Mapping[str, Node]) -> str:
    if "user" in record:
        return reader.name(record["user"], "`user`") or ""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _refuse_collisions(reader: Reader, parts: _Parts) -> None:
    _, problems = route((read.contract.server, read.contract.tool) for read in parts.contracts.values())
    for problem in problems:
        server = problem.file.split("`")[1]
        reader.note(parts.servers[server].node.problem(problem.detail, problem.mend))


def _load_policies(
    reader: Reader,
    policies: tuple[PolicySource, ...],
    agents: tuple[str, ...],
    parts: _Parts,
    evidence: list[EvidenceSurface],
    tasks: Mapping[str, Task],
    named: Collection[str],
) -> Registry | None:
    tools = [surface.tool(read.contract) for read in (*parts.contracts.values(), *parts.methods.values())]
    try:
        schema = make_schema(agents, tools, evidence, tasks)
        return load_policies(policies, schema, agents=agents, exists=surface.exists_below(parts.root))
    except ConfigError as error:
        # No agent is a problem that is noted already, with its line; so is a server, or evidence, that could not be read: what a
        # policy that names one has against it follows from that.
        unread = {*named} - {one.name for one in evidence}
        words = re.compile(
            "|".join(rf"\b{re.escape(name)}\b" for one in unread for name in (one, one.replace("-", "_"))) or "(?!)"
        )
        follows = {
            (problem.file, problem.line)
            for problem in error.problems
            if any(map(reader.may_have, _ACTION.findall(problem.detail))) or words.search(problem.detail)
        }
        reader.note(
            *(one for one in error.problems if (agents or one.line) and not (one.line and (one.file, one.line) in follows))
        )
        return None


def _keys(node: Node | None) -> tuple[str, ...]:
    return tuple(node.value) if node is not None and isinstance(node.value, Mapping) else ()


def _refuse_loose_choices(reader: Reader, parts: _Parts, registry: Registry) -> None:
    permits = [policy.id for policy in registry.policies.values() if policy.effect == "permit"]
    for policy, places in choices((*parts.contracts.values(), *parts.methods.values())).items():
        for field, node in places:
            if policy not in registry.policies:
                reader.note(node.problem(f"the choice of `{field}` names no policy `{policy}`", nearest(policy, permits)))
            elif policy not in permits:
                reader.note(node.problem(f"the choice of `{field}` names the forbid `{policy}`", "name a permit"))


def _read_lock(reader: Reader, folder: Path) -> Lock | None:
    try:
        return read_lock(folder / LOCK, file=LOCK)
    except ConfigError as error:
        reader.note(*error.problems)
        return None


def _refuse_lacking(reader: Reader, lock: Lock, parts: _Parts) -> None:
    """What the operator wrote is for a tool that the server has; a pack may be for another version of it."""
    for read in parts.contracts.values():
        pin = lock.servers.get(read.contract.server)
        if read.overridden and pin is not None and read.contract.tool not in pin.tools:
            mend = nearest(read.contract.tool, pin.tools) + "; if the server is new, `cxi lock`"
            reader.note(read.node.problem(f"server `{read.contract.server}` has no tool `{read.contract.tool}`", mend))


def _refuse_unpinned(reader: Reader, lock: Lock, prose: Iterable[Material], code: Mapping[str, Digest]) -> None:
    now = {material.name: digest_bytes(material.data) for material in prose}
    for what, found, pins in (("prose source", now, lock.prose), ("code", code, lock.code)):
        for name, value in found.items():
            if pins.get(name) != value:
                state = "is not pinned in" if name not in pins else "differs from its pin in"
                reader.note(Problem(name, 0, f"the {what} {state} `{LOCK}`", "a person reads `cxi lock --diff` and accepts it"))


def _refuse_wide_globs(reader: Reader, record: Mapping[str, Node], folder: Path, root: Path) -> None:
    if "policies" not in record:
        return
    for item, literal in literal_folders(record["policies"], folder):
        if root.is_relative_to(Path(os.path.realpath(literal))):
            reader.note(
                item.problem(
                    f"the glob `{item.value}` reaches over the whole root, where the agent works",
                    "keep policies in a folder of their own, `policies/*.cedar`",
                )
            )


def _protect(
    record: Mapping[str, Node],
    parts: _Parts,
    state: Path,
    file: Path,
    materials: Iterable[Material],
    code: Iterable[Path],
) -> tuple[tuple[str, ProtectedKind], ...]:
    """CXI's own files: each as it is named and where its links lead, so that both the link and the file are out of reach."""
    files = [file, parts.folder / file.name, parts.folder / LOCK, *code, *(material.path for material in materials)]
    for server in parts.servers.values():
        files.extend(server.files)
    folders = [state, Path(__file__).parents[1], *(folder for server in parts.servers.values() for folder in server.folders)]
    for base in {parts.folder, parts.root}:
        files.extend(base / name for name in CLIENT_FILES)
    folders.extend(literal for _, literal in literal_folders(record.get("policies", Node(None, "", 0)), parts.folder))
    found: dict[tuple[str, ProtectedKind], None] = {}
    for kind, paths in ((ProtectedKind.FILE, files), (ProtectedKind.FOLDER, folders)):
        for path in paths:
            found[os.path.normpath(path), kind] = None
            found[os.path.realpath(path), kind] = None
    return tuple(sorted(found))


def _weakened(parts: _Parts) -> Mapping[str, Weakened]:
    read = {**parts.contracts, **parts.methods}
    return MappingProxyType(
        {name: Weakened(one.weakened, one.weakens) for name, one in read.items() if one.weakened or one.weakens}
    )


def _places(parts: _Parts, record: Mapping[str, Node]) -> Mapping[str, Place]:
    found: dict[str, Place] = {}
    for name, read in (*parts.contracts.items(), *parts.methods.items()):
        found[name] = (read.node.file, read.node.line)
        found.update({f"{name}.{path}": (node.file, node.line) for path, node in read.fields.items()})
        if read.overridden:
            found[f"overridden {name}"] = (read.node.file, read.node.line)
    for name, server in parts.servers.items():
        found[f"server {name}"] = (server.node.file, server.node.line)
    for key in ("tasks", "evidence", "declassifiers", "prose", "policies"):
        node = record.get(key)
        if node is not None:
            found[key] = (node.file, node.line)
            found.update({f"{key} {name}": (node.file, line) for name, line in node.key_lines.items()})
    return MappingProxyType(found)


def _epoch_body(
    *,
    agents: tuple[str, ...],
    root: Path,
    servers: Mapping[str, Server],
    contracts: Mapping[str, ToolContract],
    registry: Registry,
    prose: tuple[ProseSource, ...],
    declassifiers: list[Digest],
    evidence: list[JsonValue],
    tasks: Mapping[str, Task],
    standing: list[JsonValue],
    lock: Lock | None,
    mode: Mode,
) -> JsonValue:
    """Everything that a decision could turn on."""
    return {
        "agents": [*agents],
        "root": str(root),
        "servers": {name: server.identity for name, server in servers.items()},
        "contracts": {name: surface.describe(contract) for name, contract in contracts.items()},
        "policies": registry.digest,
        "prose": {source.file: source.digest for source in prose},
        "declassifiers": [*declassifiers],
        "evidence": evidence,
        "tasks": {name: surface.describe(task) for name, task in tasks.items()},
        "standing": standing,
        "lock": lock.digest if lock is not None else None,
        "mode": str(mode),
    }
