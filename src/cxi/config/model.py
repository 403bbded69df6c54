"""What did the operator say, once all of it is read and found right?

- A `Configuration` is frozen, and exists only if nothing in it is wrong.
- Its digest is what the policy epoch stands for: policies, contracts, declassifiers, evidence, grants and pins.
- Secrets are never in it in clear: an environment value keeps its `${VAR}` until the server is started, and digests hold
  names only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.authority.contract import ToolContract
from cxi.authority.declassifier import Declassifier
from cxi.authority.evidence import EvidenceSource
from cxi.authority.grant import Grant
from cxi.canonical import Digest, JsonValue, digest
from cxi.config.lock import Lock
from cxi.errors import ConfigError, Problem
from cxi.policy.registry import PolicySource, Registry
from cxi.policy.schema import ToolSurface

REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
IDEMPOTENCY_META_KEY: Final = "cxi.dev/idempotency-key"

Place: TypeAlias = tuple[str, int]  # file, line


class Mode(StrEnum):
    """How much CXI decides."""

    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server may cost.

    Attributes:
        start: Seconds until it must have answered its first message.
        call: Seconds until a call must have answered.
        message: Bytes of its longest message.
    """

    start: float = 20.0
    call: float = 120.0
    message: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Server:
    """One upstream server, started by the gateway.

    Attributes:
        name: Its configured name, `[a-z0-9-]+`.
        command: The program, as an absolute path where it was found on the search path, else as written.
        args: Its arguments, `${root}` put in.
        env: What is added to its environment; `${VAR}` is put in when it is started.
        cwd: Where it is started.
        pack: The contract pack, or empty.
        limits: What it may cost.
        identity: Digest of the program, the arguments, the names in its environment, where it is started, and the code named.
    """

    name: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    pack: str
    limits: Limits
    identity: Digest

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What is added to the server's environment, with its references put in.

        Raises:
            ConfigError: a reference names a variable that is not set.
        """
        found: dict[str, str] = {}
        for name, text in self.env.items():
            missing = [word for word in REFERENCE.findall(text) if word not in environ]
            if missing:
                raise ConfigError(
                    Problem(f"server `{self.name}`", 0, f"`{missing[0]}` is not set, which `env.{name}` refers to", "set it")
                )
            found[name] = REFERENCE.sub(lambda match: environ[match[1]], text)
        return found


def identify(command: str, args: tuple[str, ...], env: Mapping[str, str], cwd: str, code: Mapping[str, Digest]) -> Digest:
    """The identity of a server: what would be started, and nothing secret.

    Args:
        command: The resolved program.
        args: Its arguments.
        env: Its added environment, of which only the names count.
        cwd: Where it is started.
        code: The content of the code files that the command names, by path.
    """
    names: list[JsonValue] = [*sorted(env)]
    files: dict[str, JsonValue] = {**code}
    return digest({"program": command, "arguments": digest([*args]), "environment": names, "cwd": cwd, "code": files})


@dataclass(frozen=True, slots=True)
class ProseSource:
    """Rules that people wrote as text: carried, never enforced.

    Attributes:
        file: As the operator named it.
        text: Exactly.
        digest: Of its bytes.
    """

    file: str
    text: str
    digest: Digest


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of task that a person may start.

    Attributes:
        name: `fix-bug`.
        grants: What it may do.
        expires: Seconds after its start until it ends; 0 means with its session.
    """

    name: str
    grants: tuple[Grant, ...]
    expires: float = 0.0


class ProtectedKind(StrEnum):
    """What of a protected path is protected."""

    FILE = "file"
    FOLDER = "folder"  # itself and everything below


@dataclass(frozen=True, slots=True)
class Weakened:
    """What the configuration loosened of a tool.

    Attributes:
        details: What is looser than in the pack.
        said: Whether the configuration says `weakens: true`.
    """

    details: tuple[str, ...]
    said: bool


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that the operator said.

    Attributes:
        file: The configuration file, absolute.
        version: Of its format.
        agent: The Cedar principal of sessions that name no other.
        agents: All principals.
        tenant: Whose ledger rows these are.
        user: Who started it.
        root: The declared root, absolute, its links resolved.
        servers: By name.
        contracts: By tool name, `files.write_file`.
        methods: Contracts of outward MCP methods, by `server:method`.
        surfaces: What policies see of each contract and method, by `contract.name`; the policies' schema was made from these.
        policies: Policy texts: the shipped ones, the call permits that the packs bring, the operator's.
        registry: The same, read, validated and frozen.
        prose: Prose sources.
        declassifiers: In the order in which they are written.
        evidence: Evidence sources.
        tasks: By name.
        standing: Grants that need no task.
        mode: How much CXI decides.
        state: The folder for ledger, log and keys, outside the root.
        ledger: The address of a ledger of many gateways, without a password; empty for the file in the state folder.
        idempotency_meta_key: The `_meta` key that carries an idempotency key.
        lock: The pins, or None where there is no lock file yet.
        lock_file: Where the lock is.
        code: Digest of each Python declassifier's file, by file.
        protected: CXI's own files, absolute.
        weakened: By contract name, what is looser than its pack, or said to be.
        places: Where things are written, by name: `files.write_file`, `files.write_file.path`, `server files`, …
        digest: What the policy epoch stands for.
    """

    file: Path
    version: int
    agent: str
    agents: tuple[str, ...]
    tenant: str
    user: str
    root: Path
    servers: Mapping[str, Server]
    contracts: Mapping[str, ToolContract]
    methods: Mapping[str, ToolContract]
    surfaces: Mapping[str, ToolSurface]
    policies: tuple[PolicySource, ...]
    registry: Registry
    prose: tuple[ProseSource, ...]
    declassifiers: tuple[Declassifier, ...]
    evidence: tuple[EvidenceSource, ...]
    tasks: Mapping[str, Task]
    standing: tuple[Grant, ...]
    mode: Mode
    state: Path
    ledger: str
    idempotency_meta_key: str
    lock: Lock | None
    lock_file: Path
    code: Mapping[str, Digest]
    protected: tuple[tuple[str, ProtectedKind], ...]
    digest: Digest
    weakened: Mapping[str, Weakened] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def place(self, name: str) -> Place:
        """Where a thing is written; the configuration itself where it has no place of its own."""
        return self.places.get(name, (str(self.file), 0))
