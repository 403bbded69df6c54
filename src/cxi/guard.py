"""How does a program use it? One configuration opened: the gate, the ledger, the log and the sessions over them.

- `Guard.open` finds every start-up error at once; nothing reloads by itself afterwards.
- Opening makes the configuration's digest the tenant's policy epoch; a guard that was opened under an older one is refused by the
  ledger, in the consume's own transaction.
- A server without an executor of the program's own is started as configured, on the first call to it, and ends with the guard.
- The tools that a server lists are compared with `cxi.lock` whenever they are listed; what differs is refused, never adapted to.

    with Guard.open("cxi.yaml") as guard, guard.session(request="Fix the rounding test", task="fix-bug") as s:
        outcome = s.call("files.write_file", {"path": "src/tax.py", "content": "…"})
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cxi.authority.declassifier import Declassifier
from cxi.authority.delegation import Attenuation, open_token, seal
from cxi.authority.evidence import EvidenceSource
from cxi.canonical import JsonValue
from cxi.config import surface
from cxi.config.load import load
from cxi.config.lock import PinStanding, compare
from cxi.config.model import Configuration, Server
from cxi.effects import ADAPTERS
from cxi.effects.base import World
from cxi.effects.protect import ProtectedPaths, Protection, observe
from cxi.errors import Code, ConfigError, NotStarted, OutcomeUnknown, Reason, Refused
from cxi.gate import Gate, ToolPin
from cxi.ledger.base import Receipt
from cxi.ledger.open import AnyLedger, address_of, open_ledger
from cxi.log.checkpoint import CheckpointFile
from cxi.log.key import load_delegation_key, load_key
from cxi.log.opening import OpeningStore
from cxi.manifest import Instant, Principal
from cxi.policy.monitor import CedarMonitor
from cxi.provenance import RequestChannel
from cxi.session import Answered, Prepared, Session, Wiring
from cxi.sinks.base import Executor
from cxi.sinks.disk import DiskWorld, case_rule
from cxi.sinks.process import environment

if TYPE_CHECKING:
    from cxi.sinks.mcp import BlockingUpstream

LEDGER: Final = "ledger.sqlite"
OPENINGS: Final = "openings"
CHECKPOINTS: Final = "checkpoints.jsonl"
HOST: Final = "host"  # the credential's id of a program that embeds CXI


@dataclass(frozen=True, slots=True)
class Launching:
    """How one server is started (`cxi.sinks.mcp.Launch`).

    Attributes:
        name: Its configured name.
        command: The program and its arguments.
        env: What is added to its environment, references put in.
        cwd: Where it is started.
        timeout: Seconds for one request.
        max_message: Bytes of one message.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    timeout: float
    max_message: int


def launch_of(server: Server, environ: Mapping[str, str]) -> Launching:
    """How a configured server is started.

    Raises:
        ConfigError: a reference of its environment names a variable that is not set.
    """
    return Launching(
        server.name,
        (server.command, *server.args),
        MappingProxyType(server.environment(environ)),
        server.cwd,
        server.limits.call,
        server.limits.message,
    )


Source = TypeVar("Source", Declassifier, EvidenceSource)
OutcomeKind: TypeAlias = Literal["done", "refused", "no-op", "recorded", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to.

    Attributes:
        kind: `done`; `refused` before the sink; `no-op` and `recorded` without calling it; `failed` at or after it.
        id: The call's id in the log.
        result: The MCP `CallToolResult` that an agent would see.
        refused: Why not, for `refused` and `failed`.
        receipt: For a sink that was launched.
    """

    kind: OutcomeKind
    id: str
    result: Mapping[str, JsonValue]
    refused: Refused | None = None
    receipt: Receipt | None = None

    @property
    def codes(self) -> tuple[str, ...]:
        """The reason codes, or none."""
        return self.refused.codes if self.refused is not None else ()


class Conversation:
    """A session with its executors: what a program calls tools through."""

    def __init__(
        self, session: Session, executors: Mapping[str, Executor], start: Callable[[str], Refused | None] = lambda _server: None
    ) -> None:
        """Made by `Guard.session`.

        Args:
            session: Its session.
            executors: By server; read at every call.
            start: Starts a server that has no executor yet, or says why it cannot be.
        """
        self.session = session
        self._executors = executors
        self._start = start

    def call(self, tool: str, arguments: JsonValue, *, idempotency_key: str = "") -> Outcome:
        """One whole turn: propose, launch, settle. Never raises for what an agent can send.

        Args:
            tool: `files.write_file`.
            arguments: JSON.
            idempotency_key: The caller's key, or empty.
        """
        server = tool.partition(".")[0]
        # Before it is proposed: which tools a server has, and whether they are the pinned ones, is known once it runs.
        down = self._start(server) if server not in self._executors else None
        if down is not None:
            prepared: Prepared = self.session.refuse(tool, down)
        else:
            prepared = self.session.propose(tool, arguments, idempotency_key=idempotency_key)
        if isinstance(prepared, Answered):
            return Outcome(prepared.kind, prepared.id, prepared.result, prepared.refused)
        executor = self._executors.get(server)
        if executor is None:
            fault = NotStarted(Reason(Code.SINK_DOWN, "no executor reaches this server", where=tool))
            finished = self.session.finish(prepared, fault)
        else:
            try:
                finished = self.session.finish(prepared, executor.execute(prepared.warrant))
            except (NotStarted, OutcomeUnknown) as error:
                finished = self.session.finish(prepared, error)
            except Exception as error:  # noqa: BLE001  # whatever escapes an executor leaves its outcome unknown
                reason = Reason(Code.OUTCOME_UNKNOWN, f"the executor raised `{type(error).__name__}`", where=tool)
                finished = self.session.finish(prepared, OutcomeUnknown(reason))
        kind: OutcomeKind = "done" if finished.refused is None else "failed"
        return Outcome(kind, finished.id, finished.result, finished.refused, finished.receipt)

    def delegate(self, tool: str, *, agent: str = "", **narrower: Any) -> Conversation | Refused:
        """The conversation of a sub-agent that has one right of this one; `Session.delegate` says what may be narrowed.

        Raises:
            LedgerError: where it cannot be recorded.
        """
        child = self.session.delegate(tool, agent=agent, **narrower)
        return child if isinstance(child, Refused) else Conversation(child, self._executors, self._start)


class Guard:
    """An opened configuration. Thread-safe; close it to sign the log's head."""

    def __init__(
        self,
        config: Configuration,
        *,
        ledger: AnyLedger,
        openings: OpeningStore,
        clock: Callable[[], Instant],
        entropy: Callable[[int], bytes],
        executors: Mapping[str, Executor],
        environ: Mapping[str, str],
        world: World | None = None,
        case: tuple[bool, bool] | None = None,
    ) -> None:
        self.config = config
        self.registry = config.registry
        self.ledger = ledger
        self._openings = openings
        self._clock = clock
        self._entropy = entropy
        self._executors = dict(executors)
        self._started: dict[str, BlockingUpstream] = {}
        self._starting = threading.Lock()
        self._is_closed = False
        self._environ = environ
        self._pins: dict[str, ToolPin] = {}
        self._signed = -1
        self.epoch = ledger.activate(self.config.tenant, self.config.digest, clock())
        if not (config.state / CHECKPOINTS).exists() or CheckpointFile(config.state / CHECKPOINTS).last(ledger.origin) is None:
            self.sign_head()  # from its first entries on: a log beside which no checkpoint is has lost it
        # INVARIANT (same-settings): a server that is started is judged in the very environment that it is started in.
        # What runs in process runs in this program's.
        self._worlds: dict[str, World] = {}
        if world is None:
            for name, server in config.servers.items():
                if name not in self._executors:
                    self._worlds[name] = DiskWorld(environment(server.environment(environ), environ))
        world = world or DiskWorld()
        case_sensitive, normalizes = case or case_rule(str(self.config.root))
        contracts = {contract.name: contract for contract in (*config.contracts.values(), *config.methods.values())}
        gate = Gate(
            contracts=MappingProxyType(contracts),
            pins=MappingProxyType(self._pins),
            adapters=ADAPTERS,
            monitor=CedarMonitor(config.registry),
            surfaces=MappingProxyType({name: surface.tool(contract) for name, contract in contracts.items()}),
            ledger=ledger,
            protected=_protect(config, world),
            constants=MappingProxyType({"root": str(self.config.root)}),
        )
        self._wiring = Wiring(
            gate=gate,
            ledger=ledger,
            openings=openings,
            world=world,
            worlds=MappingProxyType(self._worlds),
            root=str(self.config.root),
            case_sensitive=case_sensitive,
            normalizes=normalizes,
            tasks=MappingProxyType({name: task.grants for name, task in self.config.tasks.items()}),
            lifetimes=MappingProxyType({name: task.expires for name, task in self.config.tasks.items() if task.expires}),
            standing=self.config.standing,
            declassifiers=_by_tool(self.config.declassifiers),
            evidence=_by_tool(self.config.evidence),
            clock=clock,
            entropy=entropy,
        )

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        executors: Mapping[str, Executor] | None = None,
        clock: Callable[[], Instant] = time.time,
        entropy: Callable[[int], bytes] = os.urandom,
        environ: Mapping[str, str] | None = None,
        world: World | None = None,
        case: tuple[bool, bool] | None = None,
        ledger: str = "",
        activate: bool = False,
    ) -> Self:
        """Open a configuration file.

        Args:
            path: `cxi.yaml`.
            executors: In-process executors by server; a server without one is started as configured, on the first call to it.
            clock: Seconds since the epoch.
            entropy: Random bytes, that many.
            environ: The environment that references are put in from; the process's own if not given.
            world: What the gate sees the world through; the disk if not given.
            case: (case-sensitive, normalizes) of the root's file system; found out if not given.
            ledger: The address of a ledger of many gateways, in place of `CXI_LEDGER` and the configuration's.
            activate: Whether these files are put in force though gateways at work run under others.

        Raises:
            ConfigError: with every problem of every file; or where other gateways at work run under other files.
            LedgerError: where the state folder cannot be used.
        """
        environ = os.environ if environ is None else environ
        config = load(Path(path), environ=environ)
        state = config.state
        load_key(state)  # made before anything else, or refused
        address = address_of(config.ledger, environ, ledger)
        opened = open_ledger(address, state, tenant=config.tenant, instance=entropy(8).hex(), clock=clock)
        with ExitStack() as undo:
            undo.callback(opened.close)
            if activate:
                opened.activate(config.tenant, config.digest, clock(), explicit=True)
            openings = OpeningStore(state / OPENINGS)
            undo.callback(openings.close)
            found = cls(
                config,
                ledger=opened,
                openings=openings,
                clock=clock,
                entropy=entropy,
                executors=executors or {},
                environ=environ,
                world=world,
                case=case,
            )
            undo.pop_all()
        return found

    @property
    def launches(self) -> Mapping[str, Launching]:
        """How each configured server is started."""
        return {name: launch_of(server, self._environ) for name, server in self.config.servers.items()}

    # --- the servers' side ---------------------------------------------------------------------------------------------

    def admit_listing(self, server: str, tools: Sequence[Mapping[str, JsonValue]]) -> Mapping[str, Refused | None]:
        """Compare what a server lists now with the lock.

        Args:
            server: The configured server.
            tools: Its whole `tools/list`.

        Returns:
            For each listed tool None where it may be called, or why not.

        Raises:
            ConfigError: a definition that cannot be pinned at all.
        """
        identity = self.config.servers[server].identity
        found: dict[str, Refused | None] = {}
        for name in [name for name in self._pins if name.startswith(server + ".")]:
            del self._pins[name]
        for state in compare(self.config.lock, server, identity, tools):
            if state.state is PinStanding.GONE:
                continue
            reason = _pin_reason(f"{server}.{state.tool}", state.state)
            self._pins[f"{server}.{state.tool}"] = ToolPin(identity, state.digest, reason)
            found[state.tool] = Refused((reason,)) if reason is not None else None
        # An outward method has no definition of its own to pin; the server's identity stands for it, and is the pinned one.
        pinned = self.config.lock.servers.get(server) if self.config.lock is not None else None
        standing = PinStanding.UNPINNED
        if pinned is not None:
            standing = PinStanding.OK if pinned.identity == identity else PinStanding.SERVER_CHANGED
        for contract in self.config.methods.values():
            if contract.server == server:
                self._pins[contract.name] = ToolPin(identity, identity, _pin_reason(contract.name, standing))
        return found

    # --- the host's side -----------------------------------------------------------------------------------------------

    def open_session(self, *, credential: str = HOST, agent: str = "") -> Session:
        """A session for one agent, with no task open.

        Args:
            credential: The id of the credential that the host checked.
            agent: The Cedar principal; the configuration's `agent` if not given.

        Raises:
            LedgerError: where it cannot be recorded.
        """
        principal = Principal(self.config.tenant, self.config.user, agent or self.config.agent, "s-" + self._entropy(8).hex())
        return Session(self._wiring, principal, self.epoch, credential)

    @contextmanager
    def session(self, *, request: str = "", task: str | None = None, agent: str = "") -> Iterator[Conversation]:
        """A session of an embedding program, whose host API is the request channel.

        Raises:
            ValueError: where the task cannot be started; the refusal is in its text.
        """
        session = self.open_session(agent=agent)
        try:
            if request:
                started = session.start_task(request, task, channel=RequestChannel.HOST_API, credential=HOST)
                if isinstance(started, Refused):
                    raise ValueError("; ".join(str(reason) for reason in started.reasons))
            yield Conversation(session, self._executors, self._start)
        finally:
            session.close()

    def seal_delegation(self, session: Session, tool: str, narrower: Attenuation) -> str | Refused:
        """A token by which another host, over the same ledger, opens a session with one right of this one.

        Raises:
            ValueError: where what is delegated has no end.
            ConfigError: where the extra `delegation` is not installed.
            LedgerError: where it cannot be logged, or the key cannot be used.
        """
        delegated = session.offer(tool, narrower)
        return delegated if isinstance(delegated, Refused) else seal(delegated, load_delegation_key(self.config.state))

    def open_delegation(
        self, token: str, *, agent: str = "", public_key: Ed25519PublicKey | None = None, credential: str = HOST
    ) -> Conversation | Refused:
        """The conversation of whoever holds a delegation's token.

        Args:
            token: The token.
            agent: The Cedar principal; the configuration's `agent` if not given.
            public_key: The key that is trusted to delegate; this installation's own if not given.
            credential: The id of the credential that the host checked.

        Raises:
            ConfigError: where the extra `delegation` is not installed.
            LedgerError: where it cannot be recorded, or the key cannot be used.
        """
        key = public_key or load_delegation_key(self.config.state).public_key()
        found = open_token(token, key, self._clock(), tenant=self.config.tenant, epoch=self.epoch)
        if isinstance(found, Refused):
            return found
        session = Session.adopt(self._wiring, found, agent=agent or self.config.agent, credential=credential)
        return Conversation(session, self._executors, self._start)

    def _start(self, server: str) -> Refused | None:
        """Start a configured server, and reach it through its own program from now on; or say why it cannot be started."""
        if server not in self.config.servers:
            return None  # the gate says what is wrong with the name
        from cxi.sinks.mcp import BlockingUpstream  # noqa: PLC0415  # an event loop, only where it is needed

        with self._starting:
            if server in self._executors or self._is_closed:
                return None
            try:
                upstream = self._started.get(server)
                if upstream is None:
                    upstream = self._started[server] = BlockingUpstream(
                        self.launches[server],
                        admit=self.admit_listing,
                        clock=self._clock,
                        start_timeout=self.config.servers[server].limits.start,
                    )
                upstream.start()
            except (NotStarted, OutcomeUnknown) as error:
                return Refused((error.reason,))
            except ConfigError as error:
                return Refused.of(Code.SINK_DOWN, "; ".join(map(str, error.problems)), where=server)
            self._executors[server] = upstream
            return None

    def attach(self, server: str, executor: Executor, tools: Sequence[Mapping[str, JsonValue]]) -> None:
        """Reach a server through this executor, which runs in this process and lists these tools."""
        self._worlds.pop(server, None)
        self.admit_listing(server, tools)
        self._executors[server] = executor

    def sign_head(self) -> tuple[int, str]:
        """Sign the log's head as a checkpoint; (size, hash).

        Raises:
            LedgerError: where it cannot be written, or the chain does not follow from the last checkpoint.
        """
        head = self.ledger.head(self._clock())
        if head.size != self._signed:
            # The key is read again: a rotation may have put another in its place since this program began.
            head = self.ledger.sign_head(load_key(self.config.state), self._clock())
            self._signed = head.size
        return head.size, head.hash

    def close(self) -> None:
        """End the servers that were started, sign the head and close what is open; a second time does nothing."""
        try:
            # First: a call that is cut off by it is still settled, and stands under the head.
            self._end_servers()
        finally:
            try:
                self.sign_head()
            finally:
                self._openings.close()
                self.ledger.close()

    def _end_servers(self) -> None:
        with self._starting, ExitStack() as ending:
            self._is_closed = True
            for server, upstream in self._started.items():
                if self._executors.get(server) is upstream:
                    del self._executors[server]
                ending.callback(upstream.close)
            self._started.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _pin_reason(tool: str, state: PinStanding) -> Reason | None:
    match state:
        case PinStanding.OK:
            return None
        case PinStanding.CHANGED:
            return Reason(Code.TOOL_DEFINITION_CHANGED, "its definition differs from the pinned one", where=tool)
        case PinStanding.SERVER_CHANGED:
            return Reason(Code.SERVER_CHANGED, "its server's program or arguments differ from the pinned ones", where=tool)
        case PinStanding.UNPINNED | PinStanding.GONE:
            return Reason(Code.TOOL_UNPINNED, "its definition is not pinned", where=tool)


def _protect(config: Configuration, world: World) -> ProtectedPaths:
    """CXI's own files: nothing at all touches the state folder; the rest may be read (`docs/adr/0005`), never changed."""
    state = str(config.state)
    kinds: dict[str, Protection] = {}
    for path, _ in config.protected:
        inside = path == state or path.startswith(state + "/")
        kinds[path] = "any" if inside else "write"
    return observe(kinds, world)


def _by_tool(sources: Sequence[Source]) -> Mapping[str, tuple[Source, ...]]:
    """Declassifiers or evidence sources, by the tool whose results they read."""
    found: dict[str, list[Source]] = {}
    for item in sources:
        found.setdefault(item.tool, []).append(item)
    return MappingProxyType({tool: tuple(items) for tool, items in found.items()})
