"""What belongs to one task? The request, the segments, the releases, the grants - and one turn after another.

- A session is opened by the host on the request channel and bound to (tenant, user, agent, credential). Nothing is shared between
  two sessions but the registry, the ledger and the log.
- With no task open the request authority is empty; a later user message is a new T segment.
- `propose` is a turn up to the sink, `finish` what comes after it; in between, the caller launches the warrant it was given.
- Every answer that the agent sees comes back as a W segment; declassifiers run over it, and nothing else makes releases.
- A driver that waits for a sink may have what is only written down done while it waits (`later`, `catch_up`).
  INVARIANT (caught-up): nothing is decided, and no read is answered, before all that came earlier is written and kept.

    prepared = session.propose("files.write_file", {"path": "src/tax.py", "content": "…"})
    match prepared:
        case Answered(result): ...                       # refused, a no-op, or a recorded answer: nothing to launch
        case Ready(warrant): result = session.finish(prepared, executor.execute(warrant))
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, Protocol, TypeAlias

from cxi.appeal import appeal
from cxi.authority.approval import Approval
from cxi.authority.contract import ToolContract
from cxi.authority.declassifier import TRUSTED_SELECTIONS, Declassifier, declassify
from cxi.authority.delegation import Attenuation, Delegated, delegate
from cxi.authority.desk import PATIENCE, Denial, Desk, Pending, Waiting
from cxi.authority.desk import Answer as DeskAnswer
from cxi.authority.evidence import EvidenceSource, collect
from cxi.authority.grant import Grant, start_again
from cxi.authority.release import Release
from cxi.canonical import Digest, JsonValue, digest
from cxi.effects.base import World
from cxi.effects.realized import differences, tells
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.errors import AuthorityError, Code, LedgerError, MalformedError, NotStarted, OutcomeUnknown, Reason, Refused
from cxi.gate import Admissible, Cleared, Decision, Gate, NoOp, Proposal, Reach, Standing, touched_by
from cxi.ledger.base import Lease, Ledger, Mark, MarkKind, Outcome, Receipt, Recorded, State
from cxi.log.commitment import Opening
from cxi.log.entry import EntryType, LogEntry
from cxi.manifest import Assurance, CanonicalCall, Instant, Manifest, Principal
from cxi.provenance import Channel, RequestChannel, Segment, Source, TrustedRequest, open_request
from cxi.recall import Recall
from cxi.record import (
    MAX_TOLD,
    codes_of,
    describe_admission,
    details_of,
    fixed_of,
    hide,
    leaves_of,
    shortened,
    tellable,
    values_of,
)
from cxi.reply import advise, refusal_result, result_text, text_result
from cxi.sinks.base import Answer, Clearance
from cxi.values.base import Value

MAX_SEGMENT: Final = 1024 * 1024  # code points of one result that are kept, to say where a value was seen
MAX_SEGMENTS: Final = 512
MAX_CONTEXT: Final = 16 * MAX_SEGMENT  # code points of all kept segments; the oldest go first
MAX_RELEASES: Final = 10_000  # live releases of a session; more is a flood, and nothing of it holds
MAX_READ_KEYS: Final = 10_000  # idempotency keys of calls without an effect that are remembered

NOWHERE: Final = Reach()
# What only says that the grants have no more to give: a person may give once more.
SPENT: Final = frozenset(
    {
        Code.GRANT_EXHAUSTED,
        Code.LIMIT_REACHED,
        Code.RETRIES_EXHAUSTED,
        Code.SEQUENCE_UNMET,
        Code.NOT_YET,
        Code.EVENT_REPEATED,
    }
)
UNNAMED: Final = "request"  # what a task is called that was opened without a name; it is no name that grants anything

AnswerKind: TypeAlias = Literal["refused", "no-op", "recorded"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn that has reached its sink: launch the warrant, then `finish`.

    Attributes:
        id: The call's id in the log.
        warrant: A `Lease` for a sink, a `Clearance` for a call that is none.
        decision: What the gate found.
    """

    id: str
    warrant: Lease | Clearance
    decision: Admissible | Cleared


@dataclass(frozen=True, slots=True)
class Answered:
    """A turn that ended before its sink.

    Attributes:
        id: The call's id in the log.
        result: An MCP `CallToolResult` as JSON, for the agent.
        kind: How it ended.
        refused: The refusal, where it is one.
    """

    id: str
    result: Mapping[str, JsonValue]
    kind: AnswerKind
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A turn that is over.

    Attributes:
        id: The call's id in the log.
        result: What the agent sees.
        receipt: For a sink, its receipt.
        refused: What went wrong at or after the sink, if anything did.
    """

    id: str
    result: Mapping[str, JsonValue]
    receipt: Receipt | None = None
    refused: Refused | None = None


Prepared: TypeAlias = Ready | Answered


class Openings(Protocol):
    """Where openings of commitments go; `cxi.log.opening.OpeningStore` is the one on disk."""

    def put(self, openings: Iterable[Opening], *, session: str, now: Instant) -> None:
        """Keep these openings."""
        ...


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a session is handed; all of it is fixed when the guard opens.

    Attributes:
        gate: The gate.
        ledger: The ledger.
        openings: Where openings go.
        world: The live world.
        worlds: By server, the live world as that server sees it; `world` for a server that is not named.
        root: The declared root's absolute, real path.
        case_sensitive, normalizes: The root's case and Unicode rule.
        tasks: Task name to its grants.
        lifetimes: Task name to the seconds until it ends; a task that is not named ends with its session.
        standing: Standing grants.
        declassifiers: By the tool that they read.
        evidence: By the tool that they read.
        clock: Seconds since the epoch.
        entropy: Random bytes, that many.
    """

    gate: Gate
    ledger: Ledger
    openings: Openings
    world: World
    root: str
    case_sensitive: bool
    normalizes: bool
    tasks: Mapping[str, tuple[Grant, ...]]
    standing: tuple[Grant, ...]
    declassifiers: Mapping[str, tuple[Declassifier, ...]]
    evidence: Mapping[str, tuple[EvidenceSource, ...]]
    clock: Callable[[], Instant]
    entropy: Callable[[int], bytes]
    lifetimes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    worlds: Mapping[str, World] = field(default_factory=lambda: MappingProxyType({}))

    def world_of(self, tool: str) -> World:
        """The live world as the server of this tool sees it: its environment decides what its git does."""
        return self.worlds.get(tool.partition(".")[0], self.world)


class Session:
    """One principal's turns, in order. Thread-safe."""

    def __init__(
        self,
        wiring: Wiring,
        principal: Principal,
        epoch: tuple[int, Digest],
        credential: str,
        delegated: Delegated | None = None,
        giver: Session | None = None,
    ) -> None:
        self._wiring = wiring
        self._lock = threading.RLock()
        self._credential = credential
        self._counter = 0
        # What it has without a task of its own: a delegated session has no standing right, and no task but its giver's.
        self._kept = wiring.standing if delegated is None else ()
        self._is_delegated = delegated is not None
        self.giver = giver
        self._children: list[tuple[str, Session | None]] = []  # delegation ids, and the sessions of those that stay here
        self._standing = Standing(principal=principal, epoch=epoch, grants=self._kept)
        # INVARIANT (frozen-origins): what earlier sessions touched is fixed when this one opens.
        self._touched = frozenset(wiring.ledger.touched(principal.tenant))
        self._own: set[tuple[str, str]] = set()
        self._seen: dict[str, None] = {}
        self._held = 0  # code points of the kept segments
        self._idle_keys: dict[Digest, tuple[Digest, str]] = {}
        self._task_ends: Instant = 0.0  # 0: with the session
        self._is_closed = False
        self._starts = 0
        self._acted = False  # whether a sink call of the open task was admitted
        self._selected: set[str] = set()  # the trusted selections that the open task has made
        self._recall = Recall()
        self._desk = Desk()
        self._later: deque[tuple[str, Callable[[], object]]] = deque()  # calls, and what is still to be written of them
        self._unwritten: dict[str, str] = {}  # calls of which it could not be written, and why
        wiring.ledger.open_session(
            principal.tenant, principal.user, principal.agent, principal.session, credential, wiring.clock()
        )
        if delegated is not None:
            self._take_over(delegated)

    @property
    def id(self) -> str:
        return self._standing.principal.session

    @property
    def standing(self) -> Standing:
        """The session as the gate sees it now."""
        return self._standing

    # --- the request channel -------------------------------------------------------------------------------------------

    def start_task(self, request: str, task: str | None, *, channel: RequestChannel, credential: str) -> str | Refused:
        """Open a task with the person's own words; a task that is open ends.

        Args:
            request: The words, exactly.
            task: The task's name in the configuration, or None for one that grants nothing by itself.
            channel: What carried them.
            credential: The id of the credential that the host checked.

        Returns:
            The task's name, or why it cannot be opened.

        Raises:
            LedgerError: where it cannot be logged.
        """
        self.catch_up()
        if self._is_delegated:
            return Refused.of(Code.DELEGATION_VOID, "a delegated session has its giver's task", where="task")
        if task is not None and task not in self._wiring.tasks:
            known = ", ".join(f"`{name}`" for name in sorted(self._wiring.tasks)) or "none"
            return Refused.of(Code.TASK_NONE, f"no task `{task}` is configured", where=task, needs=f"one of: {known}")
        with self._lock:
            if self._standing.ended is not None:
                return Refused((self._standing.ended,))
            segment = open_request(self._next("r"), channel, credential, request)
            if isinstance(segment, Reason):
                return Refused((segment,))
            grants = self._wiring.tasks[task] if task is not None else ()
            lifetime = self._wiring.lifetimes.get(task, 0.0) if task is not None else 0.0
            ends = self._wiring.clock() + lifetime if lifetime else 0.0
            if ends:
                grants = tuple(replace(grant, expires=min(grant.expires or ends, ends)) for grant in grants)
            self._end_delegations()
            # Each start is a task of its own: a person who starts it again grants anew.
            self._starts += 1
            self._acted, self._selected = False, set()
            if self._starts > 1:
                grants = tuple(start_again(grant, self._starts) for grant in grants)
            name = task or UNNAMED
            self._log(
                EntryType.TASK, "", {"act": "start", "task": name, "channel": str(channel)}, {"request": request}, durable=True
            )
            self._task_ends = ends
            self._desk = Desk(denials=self._desk.denials)  # what waited was about the task before
            self._standing = replace(
                self._standing,
                request=TrustedRequest((segment,)),
                task=task or "",
                grants=(*grants, *self._kept),
                releases=(),
                approvals=(),
                evidence=(),
                state=MappingProxyType({}),
            )
            return name

    def add_request(self, text: str, *, channel: RequestChannel, credential: str) -> Refused | None:
        """A later message of the person, as a new T segment of the open task."""
        self.catch_up()
        if self._is_delegated:
            return Refused.of(Code.DELEGATION_VOID, "a delegated session has its giver's request", where="request")
        with self._lock:
            standing = self._see_standing(self._wiring.clock())
            if standing.ended is not None:
                return Refused((standing.ended,))
            if standing.request is None:
                return Refused.of(Code.TASK_NONE, "no task is open", where="request")
            segment = open_request(self._next("r"), channel, credential, text)
            if isinstance(segment, Reason):
                return Refused((segment,))
            name = self._standing.task or UNNAMED
            self._log(EntryType.TASK, "", {"act": "add", "task": name}, {"request": text}, durable=True)
            request = TrustedRequest((*standing.request.segments, segment))
            self._standing = replace(self._standing, request=request)
            return None

    def stop_task(self) -> None:
        """Close the task: the request's authority, its grants and its releases end."""
        self.catch_up()
        with self._lock:
            if self._standing.request is not None:
                self._end_task("stop", self._kept)

    def _end_task(self, act: str, grants: tuple[Grant, ...]) -> None:
        self._end_delegations()
        self._log(EntryType.TASK, "", {"act": act, "task": self._standing.task or UNNAMED}, {}, durable=True)
        self._task_ends = 0.0
        self._desk = Desk(denials=self._desk.denials)
        self._standing = replace(
            self._standing,
            request=None,
            task="",
            grants=grants,
            releases=(),
            approvals=(),
            evidence=(),
            state=MappingProxyType({}),
        )

    def _see_standing(self, now: Instant) -> Standing:
        """The session as it stands at this instant: a task that is past its time has ended."""
        with self._lock:
            if self._task_ends and now >= self._task_ends:
                # Its grants are past their time too; they stay, so that a refusal can say so.
                self._end_task("expire", self._standing.grants)
            return self._standing

    # --- the approver's channel ------------------------------------------------------------------------------------------

    def pending(self) -> tuple[Pending, ...]:
        """The calls that wait for a person."""
        with self._lock:
            self._desk = self._desk.sweep(self._wiring.clock())
            return self._desk.open

    def answer(self, answer: DeskAnswer) -> Approval | Denial | Waiting | Refused:
        """Take a person's answer to one of them, over the approver's channel.

        Raises:
            LedgerError: where it cannot be logged; then it was not taken.
        """
        self.catch_up()
        with self._lock:
            desk, made = self._desk.answer(answer, self._wiring.clock())
            act = {Approval: "approve", Denial: "deny", Waiting: "vote", Refused: "void"}[type(made)]
            body: dict[str, JsonValue] = {"act": act, "approval": answer.pending, "by": answer.approver}
            self._log(EntryType.PERSON, "", body, {}, durable=True)
            self._desk = desk
            approvals = (*self._standing.approvals, made) if isinstance(made, Approval) else self._standing.approvals
            self._standing = replace(self._standing, approvals=approvals, denials=desk.denials)
        if isinstance(made, Denial):
            self._share(made)
        return made

    def deny(self, *, key: str = "", action: Digest = "", person: str) -> None:
        """A person's no to a call before it comes, by its idempotency key or its action digest.

        Raises:
            ValueError: where neither is named.
            LedgerError: where it cannot be logged; then it does not hold.
        """
        if not key and not action:
            raise ValueError("name the call by its key or its action")
        self.catch_up()
        with self._lock:
            self._log(EntryType.PERSON, "", {"act": "deny", "approval": "", "by": person}, {}, durable=True)
            denial = Denial(action, _digest_key(key), person, self._wiring.clock())
            self._desk = self._desk.deny(denial)
            self._standing = replace(self._standing, denials=self._desk.denials)
        self._share(denial)

    def _appeal(self, call: str, proposal: Proposal, refused: Refused, standing: Standing) -> Pending | None:
        """Ask a person about a refused call, where their yes would cure it; what waits now, or None."""
        now = self._wiring.clock()
        found = appeal(self._wiring.gate, proposal, refused, standing, partial(self._look, proposal.tool), now)
        if found is None:
            return None
        with self._lock:
            pending = Pending(
                id="p-" + self._wiring.entropy(4).hex(),
                call=call,
                tool=proposal.tool,
                session=self.id,
                action=found.action,
                effect=found.effect,
                event=found.event,
                display=found.display,
                risks=found.risks,
                expires=now + PATIENCE,
            )
            self._desk, waits = self._desk.ask(pending, now)
            if waits is pending:
                body: dict[str, JsonValue] = {"tool": proposal.tool, "approval": pending.id, "shown": pending.shown}
                self._log(EntryType.APPEAL, call, body, {"display": pending.display})
        return waits if isinstance(waits, Pending) else None

    def approve(self, approval: Approval) -> None:
        """Add an approval that came over the approver's channel; the ledger spends it once."""
        self.catch_up()
        with self._lock:
            self._log(
                EntryType.PERSON, "", {"act": "approve", "approval": approval.id, "by": approval.approver}, {}, durable=True
            )
            self._standing = replace(self._standing, approvals=(*self._standing.approvals, approval))

    # --- delegation ----------------------------------------------------------------------------------------------------

    def offer(self, tool: str, narrower: Attenuation) -> Delegated | Refused:
        """A right of this session for another one, here or on another host; it draws from this session's own counts.

        It ends with the task that it comes from. What a sub-agent is told of it is untrusted text: its request is the person's.

        Args:
            tool: The tool.
            narrower: What is left of the right.

        Raises:
            LedgerError: where it cannot be logged.
        """
        self.catch_up()
        with self._lock:
            standing = self._see_standing(self._wiring.clock())
            if standing.ended is not None:
                return Refused((standing.ended,))
            if standing.request is None:
                return Refused.of(Code.TASK_NONE, "no task is open, so nothing is delegated", where=tool)
            name = "d-" + self._wiring.entropy(16).hex()
            now = self._wiring.clock()
            granted = [grant for grant in standing.grants if grant.tool == tool and not 0 < grant.expires <= now]
            found = [delegate(grant, standing.principal, name, narrower) for grant in granted]
            grant = next((one for one in found if isinstance(one, Grant)), None)
            if grant is None:
                reasons = tuple(reason for one in found if isinstance(one, Refused) for reason in one.reasons)
                return Refused(reasons) if reasons else Refused.of(Code.GRANT_MISSING, "nothing here grants it", where=tool)
            body: dict[str, JsonValue] = {"act": "delegate", "delegation": name, "tool": tool, "count": grant.count}
            self._log(EntryType.TASK, "", body, {}, durable=True)
            self._children.append((name, None))
            return Delegated(
                id=name,
                grant=grant,
                tenant=standing.principal.tenant,
                user=standing.principal.user,
                task=standing.task,
                epoch=standing.epoch,
                request=tuple((segment.source.name, segment.text) for segment in standing.request.segments),
                influences=self._influences(),
                denials=tuple(self._named(denial) for denial in standing.denials),
            )

    def delegate(
        self,
        tool: str,
        *,
        count: int | None = None,
        constraints: Mapping[str, tuple[JsonValue, ...]] = MappingProxyType({}),
        expires: Instant = 0.0,
        agent: str = "",
    ) -> Session | Refused:
        """A session for a sub-agent, with one right of this one and the person's request; it ends with this session's task.

        Args:
            tool: The tool.
            count: How many events at most; all that the right gives if not given.
            constraints: Field to the canonical values that it may have.
            expires: From this instant on it grants nothing; 0 leaves the right's own end.
            agent: The sub-agent's Cedar principal; this session's if not given.

        Raises:
            LedgerError: where it cannot be recorded.
        """
        delegated = self.offer(tool, Attenuation(count, constraints, expires))
        if isinstance(delegated, Refused):
            return delegated
        agent = agent or self._standing.principal.agent
        child = Session.adopt(self._wiring, delegated, agent=agent, credential=self._credential, giver=self)
        with self._lock:
            self._children.append((delegated.id, child))
            denials = self._standing.denials
        for denial in denials:  # one may have been said since the offer
            child.hear(self._named(denial))
        return child

    @classmethod
    def adopt(cls, wiring: Wiring, delegated: Delegated, *, agent: str, credential: str, giver: Session | None = None) -> Session:
        """The session of a delegation.

        Args:
            wiring: As every session is handed.
            delegated: What was delegated.
            agent: The Cedar principal.
            credential: The id of the credential that the host checked.
            giver: The session that delegated, where it is here.

        Raises:
            LedgerError: where it cannot be recorded.
        """
        principal = Principal(delegated.tenant, delegated.user, agent, "s-" + wiring.entropy(8).hex())
        return cls(wiring, principal, delegated.epoch, credential, delegated, giver)

    def _take_over(self, delegated: Delegated) -> None:
        giver, grant = delegated.grant.lineage[-1]
        request = delegated.trusted_request()
        body: dict[str, JsonValue] = {"act": "take over", "task": delegated.task or UNNAMED, "delegation": delegated.id}
        self._log(EntryType.TASK, "", {**body, "giver": giver, "grant": grant}, {"request": request.text}, durable=True)
        self._seen.update(dict.fromkeys(delegated.influences))
        self._task_ends = delegated.grant.expires
        self._desk = Desk(denials=delegated.denials)
        self._standing = replace(
            self._standing, request=request, task=delegated.task, grants=(delegated.grant,), denials=delegated.denials
        )

    def _named(self, denial: Denial) -> Denial:
        return denial if denial.agent else replace(denial, agent=self._standing.principal.agent)

    def _share(self, denial: Denial) -> None:
        """Let every session that is of the same delegations hear a person's no. No lock is held: each takes its own."""
        first: Session = self
        while first.giver is not None:
            first = first.giver
        first.hear(self._named(denial))

    def hear(self, denial: Denial) -> None:
        """A person's no to an agent's call, wherever in these delegations it was said: it holds here and below."""
        with self._lock:
            if denial not in map(self._named, self._desk.denials):
                self._desk = self._desk.deny(denial)
                self._standing = replace(self._standing, denials=self._desk.denials)
            children = [child for _, child in self._children if child is not None]
        for child in children:
            child.hear(denial)

    def _end_delegations(self) -> None:
        """Nothing more is drawn by a delegation of the task that ends: here, and in the ledger for those that left the host."""
        principal = self._standing.principal
        while self._children:
            name, child = self._children[-1]
            if child is not None:
                child.end(Code.TASK_NONE, "the task that delegated it is over")
            else:
                mark = Mark(MarkKind.CAPABILITY, name)
                now = self._wiring.clock()
                self._wiring.ledger.revoke(principal.tenant, mark, person=principal.user, reason="its task is over", now=now)
            self._children.pop()

    def end(self, code: Code, detail: str) -> None:
        """No further call of this session is decided, nor of one that it delegated to."""
        with self._lock:
            for _, child in self._children:
                if child is not None:
                    child.end(code, detail)
            self._standing = replace(self._standing, ended=Reason(code, detail, where=self.id))

    def close(self) -> None:
        """Close the session; it can be closed twice."""
        self.catch_up()
        with self._lock:
            if self._standing.ended is None:
                self.end(Code.SESSION_UNKNOWN, "the session is closed")
            for _, child in self._children:
                if child is not None:
                    child.close()
            if not self._is_closed:
                self._wiring.ledger.close_session(self.id, self._wiring.clock())
                self._is_closed = True

    # --- a turn --------------------------------------------------------------------------------------------------------

    def propose(self, tool: str, arguments: JsonValue, *, idempotency_key: str = "", later: bool = False) -> Prepared:
        """One turn up to the sink. Never raises for what an agent can send.

        Args:
            tool: `files.write_file`.
            arguments: The call's arguments, read strictly (`canonical.parse_json`).
            idempotency_key: The caller's key, or empty.
            later: Whether the log entry of a call that is no sink may be written by the next `catch_up`, while it is waited for.
        """
        call, tool = self._name_call(), tellable(tool)
        self.catch_up()
        try:
            if unwritten := self._say_unwritten():
                return self._refuse(call, tool, unwritten)
            return self._propose(call, tool, arguments, idempotency_key, later=later)
        except MalformedError as error:
            return self._refuse(call, tool, Refused((error.reason,)))
        except LedgerError as error:
            return self._refuse(call, tool, Refused.of(Code.LEDGER_UNAVAILABLE, str(error), where="ledger"))

    def refuse(self, tool: str, refused: Refused) -> Answered:
        """Refuse what cannot even be proposed, and log it like any other refusal.

        Args:
            tool: The tool's name, as far as it can be told.
            refused: Why.
        """
        self.catch_up()
        return self._refuse(self._name_call(), tellable(tool), refused)

    def catch_up(self) -> None:
        """Do what was left for later; what could not be written is told by the call itself, or by the next one."""
        if not self._later:
            return
        with self._lock:
            while self._later:
                call, work = self._later[0]  # it stays in its place until it is done: others wait for it
                try:
                    work()
                except (LedgerError, AuthorityError) as error:
                    self._unwritten[call] = str(error)
                finally:
                    self._later.popleft()

    def _defer(self, call: str, work: Callable[[], object]) -> None:
        with self._lock:
            self._later.append((call, work))

    def _say_unwritten(self) -> Refused | None:
        """Why no more is decided now: of a call that was answered already, the rest could not be written."""
        with self._lock:
            lost, self._unwritten = self._unwritten, {}
        reasons = (
            Reason(Code.LEDGER_UNAVAILABLE, f"what became of `{call}` could not be written: {why}", where="ledger")
            for call, why in lost.items()
        )
        return Refused(tuple(reasons)) if lost else None

    def _look(self, tool: str) -> RecordingSnapshot:
        """The world as the tool's server sees it, asked nothing yet."""
        wiring = self._wiring
        return RecordingSnapshot(wiring.world_of(tool), wiring.root, wiring.case_sensitive, wiring.normalizes)

    def _name_call(self) -> str:
        return "a-" + self._wiring.entropy(4).hex()

    def _propose(self, call: str, tool: str, arguments: JsonValue, idempotency_key: str, *, later: bool) -> Prepared:
        wiring, now = self._wiring, self._wiring.clock()
        standing = self._see_standing(now)
        key = _digest_key(idempotency_key)
        prior = wiring.ledger.recorded(self.id, key) if key else None
        snapshot = self._look(tool)
        proposal = Proposal(call, tool, arguments, key, prior)
        pin = wiring.gate.pins.get(tool)
        decision: Decision | None = self._recall.find(proposal, standing, pin, wiring.world_of(tool))
        if decision is None:
            decision = wiring.gate.decide(proposal, standing, snapshot, now)
            if isinstance(decision, Cleared):
                with self._lock:
                    self._recall.keep(decision, standing, pin, snapshot.answers)
        match decision:
            case Refused():
                reach = wiring.gate.reach(proposal, snapshot)
                waits = self._appeal(call, proposal, decision, standing)
                contract = wiring.gate.contracts.get(tool)
                told = advise(decision, reach.leaves, contract, standing.request, standing.segments)
                return self._refuse(call, tool, told, reach, waits)
            case NoOp():
                leaves = leaves_of(decision.action)
                conflict = self._claim_key(key, decision.action.digest, call)
                if conflict is not None:
                    return self._refuse(call, tool, conflict, Reach(leaves))
                self._log(EntryType.NO_OP, call, {"tool": tool, **fixed_of(leaves)}, values_of(leaves))
                return Answered(call, text_result(f"no change: `{tool}` would change nothing, so it was not called"), "no-op")
            case Recorded():
                return self._replay(call, tool, decision)
            case Cleared():
                conflict = self._claim_key(key, decision.action.digest, call) if key else None
                if conflict is not None:
                    return self._refuse(call, tool, conflict, Reach(leaves_of(decision.action)))
                self._spend_approval(decision.approval)
                if later:
                    self._defer(call, partial(self._log_read, call, decision))
                else:
                    self._log_read(call, decision)
                return Ready(call, Clearance(decision.action.call, call), decision)
            case Admissible():
                return self._admit(decision, standing)

    def _log_read(self, call: str, decision: Cleared) -> None:
        leaves = leaves_of(decision.action)
        body: dict[str, JsonValue] = {
            "tool": decision.proposal.tool,
            "authorized_by": list(decision.authorized_by),
            **fixed_of(leaves),
        }
        self._log(EntryType.READ, call, body, values_of(leaves))

    def _claim_key(self, key: Digest, action: Digest, call: str, *, keep: bool = True) -> Refused | None:
        """A key names one action, whether or not it is a sink's; what the ledger does not keep of them is kept here."""
        if not key:
            return None
        with self._lock:
            used, first = self._idle_keys.get(key, (action, call))
            if keep:
                self._idle_keys[key] = (used, first)
            if len(self._idle_keys) > MAX_READ_KEYS:
                del self._idle_keys[next(iter(self._idle_keys))]
        if used == action:
            return None
        return Refused.of(
            Code.KEY_REUSE_CONFLICT, f"the idempotency key was used for another action (call `{first}`)", where="key"
        )

    def _spend_approval(self, id: str) -> None:
        """An approval is for one use; the ledger knows of it only where it was drawn from."""
        if id:
            with self._lock:
                kept = tuple(approval for approval in self._standing.approvals if approval.id != id)
                self._standing = replace(self._standing, approvals=kept)

    def _admit(self, admissible: Admissible, standing: Standing) -> Prepared:
        wiring, call, tool = self._wiring, admissible.proposal.call, admissible.proposal.tool
        conflict = self._claim_key(admissible.proposal.idempotency_key, admissible.action.digest, call, keep=False)
        if conflict is not None:
            return self._refuse(call, tool, conflict, Reach(leaves_of(admissible.action)))
        openings: list[Opening] = []

        def describe(manifest: Manifest, found: Admissible) -> LogEntry:
            body, openings[:] = describe_admission(manifest, found, wiring.entropy)
            return LogEntry(EntryType.ADMISSION, call, self.id, body)

        answer = wiring.gate.admit(
            admissible, wiring.entropy(16).hex(), wiring.clock(), describe=describe, influences=self._influences()
        )
        match answer:
            case Refused():
                spent = set(answer.codes) <= SPENT
                waits = self._appeal(call, admissible.proposal, answer, standing) if spent else None
                return self._refuse(call, tool, answer, Reach(leaves_of(admissible.action), _reached(admissible)), waits)
            case Recorded():
                return self._replay(call, tool, answer)
            case Lease():
                self._acted = True
                self._spend_approval(admissible.approval)
                try:
                    wiring.openings.put(openings, session=self.id, now=wiring.clock())
                except LedgerError:
                    self._settle(answer, admissible, Outcome(State.FAILED, detail="the openings could not be kept"))
                    raise
                # The commitment is checked again, after the draw and before the sink.
                changed = stale(admissible.reads, wiring.world_of(tool))
                if changed:
                    names = ", ".join(f"`{' '.join(question)}`" for question in changed[:3])
                    refused = Refused.of(Code.SNAPSHOT_CHANGED, f"{names} changed before the sink ran", where=tool)
                    self._settle(answer, admissible, Outcome(State.FAILED, detail="snapshot changed"))
                    return self._refuse(call, tool, refused)
                return Ready(call, answer, admissible)

    def finish(self, prepared: Ready, answer: Answer | NotStarted | OutcomeUnknown, *, later: bool = False) -> Finished:
        """What comes after the sink: compare, settle, keep the result as W, run declassifiers.

        Args:
            prepared: What `propose` gave.
            answer: What the tool answered, or how the launch went wrong.
            later: Whether all but the comparison may be done by the next `catch_up`, when the agent has its answer.

        Returns:
            What the agent sees, with the receipt of a sink, unless that is to come later.
        """
        decision = prepared.decision
        self.catch_up()
        try:
            if isinstance(decision, Cleared):
                return self._finish_read(prepared, decision, answer, later=later)
            if not isinstance(prepared.warrant, Lease):  # INVARIANT (lease-for-a-sink)
                raise AssertionError(prepared.id)
            return self._finish_sink(prepared, prepared.warrant, decision, answer, later=later)
        except (LedgerError, AuthorityError) as error:
            refused = Refused.of(Code.LEDGER_UNAVAILABLE, str(error), where="ledger")
            return Finished(
                prepared.id, refusal_result(decision.proposal.tool, refused, prepared.id, changed=True), None, refused
            )

    def _finish_read(
        self, prepared: Ready, decision: Cleared, answer: Answer | NotStarted | OutcomeUnknown, *, later: bool
    ) -> Finished:
        with self._lock:
            unwritten = self._unwritten.pop(prepared.id, None)
        if unwritten is not None:
            raise LedgerError(unwritten)
        if isinstance(answer, Answer):
            keep = partial(self._receive_result, decision.contract, decision.action.call, prepared.id, answer)
            if later:
                self._defer(prepared.id, keep)
            else:
                keep()
            return Finished(prepared.id, answer.result)
        refused = Refused((answer.reason,))
        self._log(EntryType.REFUSAL, prepared.id, codes_of(decision.proposal.tool, refused), details_of(refused))
        return Finished(prepared.id, refusal_result(decision.proposal.tool, refused, prepared.id), None, refused)

    def _finish_sink(
        self, prepared: Ready, lease: Lease, decision: Admissible, answer: Answer | NotStarted | OutcomeUnknown, *, later: bool
    ) -> Finished:
        outcome, refused = self._judge_outcome(decision, answer)
        receipt: Receipt | None = None
        if later:
            self._defer(prepared.id, partial(self._conclude, prepared.id, lease, decision, answer, outcome))
        else:
            receipt = self._conclude(prepared.id, lease, decision, answer, outcome)
        if refused is not None:
            changed = outcome.state is not State.FAILED
            result = refusal_result(decision.proposal.tool, refused, prepared.id, changed=changed)
            return Finished(prepared.id, result, receipt, refused)
        if not isinstance(answer, Answer):
            raise AssertionError("unreachable: an answer that is none has a refusal")
        return Finished(prepared.id, answer.result, receipt)

    def _conclude(
        self, id: str, lease: Lease, decision: Admissible, answer: Answer | NotStarted | OutcomeUnknown, outcome: Outcome
    ) -> Receipt:
        """Settle, and keep what came of it."""
        if outcome.state is not State.FAILED:
            with self._lock:
                self._own.update(_reached(decision))
        receipt = self._settle(lease, decision, outcome)
        if isinstance(answer, Answer):
            self._receive_result(decision.contract, decision.action.call, id, answer)
            if outcome.state is State.DONE and not answer.failed:
                self._remember_written(decision)
        return receipt

    def _judge_outcome(
        self, decision: Admissible, answer: Answer | NotStarted | OutcomeUnknown
    ) -> tuple[Outcome, Refused | None]:
        """What is known of the effect: compared with the commitment where it can be seen, else the sink's own word."""
        world = self._wiring.world_of(decision.proposal.tool)
        seen = decision.effect.assurance is not Assurance.DECLARED
        # INVARIANT (certain-outcome): an effect counts as done, or as not done, only where the world tells it of every atom.
        told = seen and tells(decision.effect)
        if isinstance(answer, NotStarted):
            return Outcome(State.FAILED, detail=str(answer.reason.code)), Refused((answer.reason,))
        if isinstance(answer, OutcomeUnknown):
            # Where the effect can be seen, the world answers what the sink did not.
            if told and not differences(decision.effect, self._wiring.root, world):
                return Outcome(State.DONE, detail="reconciled: the effect is there"), Refused((answer.reason,))
            return Outcome(State.OUTCOME_UNKNOWN, detail=str(answer.reason.code)), Refused((answer.reason,))
        if not seen:
            return Outcome(State.DONE, answer.result), None
        if answer.failed and told and not stale(decision.reads, world):
            return Outcome(State.FAILED, answer.result, detail="the sink failed and nothing changed"), None
        found = differences(decision.effect, self._wiring.root, world)
        if found:
            detail = "; ".join(found[:3])
            return (
                Outcome(State.DONE, answer.result, differs=found, detail="the realized effect differs"),
                Refused.of(Code.EFFECT_DIFFERS, f"the sink did not do what was admitted: {detail}", where=decision.proposal.tool),
            )
        return Outcome(State.DONE, answer.result), None

    def _settle(self, lease: Lease, decision: Admissible, outcome: Outcome) -> Receipt:
        body: dict[str, JsonValue] = {
            "tool": decision.proposal.tool,
            "state": str(outcome.state),
            "assurance": str(decision.effect.assurance),
            "differs": len(outcome.differs),
        }
        hidden: dict[str, JsonValue] = {"detail": outcome.detail} if outcome.detail else {}
        if outcome.differs:
            hidden["differences"] = list(outcome.differs)
        entry = self._entry(EntryType.SETTLEMENT, lease.call, body, hidden)
        return self._wiring.ledger.settle(lease, outcome, entry, self._wiring.clock())

    def _remember_written(self, decision: Admissible) -> None:
        """A path that trusted fields named and an admitted call wrote is trusted state: staging it needs no new authority."""
        trusted = {item.path for item in decision.evidence if item.kind in ("request", "release", "approval", "state")}
        written = {atom.field for atom in decision.effect.atoms if atom.kind in ("fs.create", "fs.write")}
        values = [leaf.value for leaf in decision.action.call.fields if leaf.path in trusted & written]
        if values:
            with self._lock:
                state: dict[str, tuple[Value, ...]] = dict(self._standing.state)
                for value in values:
                    state[value.type] = tuple(dict.fromkeys((*state.get(value.type, ()), value)))
                self._standing = replace(self._standing, state=MappingProxyType(state))

    # --- what comes back -----------------------------------------------------------------------------------------------

    def receive(self, server: str, kind: str, text: str) -> None:
        """Text of a server that the agent will see (a prompt, a resource, instructions, a log line): W."""
        with self._lock:
            self._keep(Segment.of(self._next("s"), Source(Channel.SERVER_TEXT, server, kind), text[:MAX_SEGMENT]))

    def _receive_result(self, contract: ToolContract, call: CanonicalCall, id: str, answer: Answer) -> None:
        now = self._wiring.clock()
        with self._lock:
            source = Source(Channel.TOOL_RESULT, contract.name, id)
            segment = Segment.of(self._next("s"), source, result_text(answer.result)[:MAX_SEGMENT])
            self._keep(segment)
            declassifiers = self._wiring.declassifiers.get(contract.name, ())
            sources = self._wiring.evidence.get(contract.name, ())
            if answer.failed or not (declassifiers or sources):
                return
            standing = self._standing
            touched = self._touched | self._own
            for declassifier in declassifiers:
                # INVARIANT (frozen-selection): made on the state before the task's first sink call, once, and kept.
                if declassifier.selection in TRUSTED_SELECTIONS and (self._acted or declassifier.name in self._selected):
                    continue
                snapshot = self._look(contract.name)
                found, notes = declassify(
                    declassifier,
                    contract,
                    call,
                    answer.result,
                    segment,
                    snapshot,
                    touched=touched,
                    task=standing.task,
                    epoch=standing.epoch,
                    now=now,
                )
                if found and declassifier.selection in TRUSTED_SELECTIONS:
                    self._selected.add(declassifier.name)
                if found or notes:
                    body: dict[str, JsonValue] = {
                        "declassifier": declassifier.name,
                        "released": len(found),
                        "skipped": len(notes),
                    }
                    hidden: dict[str, JsonValue] = {
                        "values": [release.value.canonical for release in found],
                        "notes": list(notes),
                    }
                    self._log(EntryType.RELEASE, id, body, hidden)
                self._standing = replace(self._standing, releases=_renew(self._standing.releases, found))
            for evidence_source in sources:
                record = collect(evidence_source, contract, call, answer.result, segment, now)
                if record is not None:
                    kept = tuple(item for item in self._standing.evidence if item.name != record.name)
                    self._standing = replace(self._standing, evidence=(*kept, record))

    def _keep(self, segment: Segment) -> None:
        # The oldest texts are let go; who could have influenced the agent is never forgotten.
        self._seen.setdefault(segment.source.name, None)
        segments = (*self._standing.segments, segment)
        self._held += len(segment.text)
        first = 0
        while len(segments) - first > MAX_SEGMENTS or self._held > MAX_CONTEXT:
            self._held -= len(segments[first].text)
            first += 1
        self._standing = replace(self._standing, segments=segments[first:])

    def _influences(self) -> tuple[str, ...]:
        """The untrusted sources that the agent has seen in this session: any of them may have steered it."""
        return tuple(self._seen)

    # --- what is said and written --------------------------------------------------------------------------------------

    def _refuse(self, call: str, tool: str, refused: Refused, reach: Reach = NOWHERE, waits: Pending | None = None) -> Answered:
        """Log a refusal. What the call would have touched is no source for later sessions either (design, section 2)."""
        try:
            if reach.touches:
                tenant, now = self._standing.principal.tenant, self._wiring.clock()
                self._wiring.ledger.touch(tenant, reach.touches, self._influences(), call, now)
            leaves = reach.leaves[:MAX_TOLD]
            values = {name: shortened(value) for name, value in values_of(leaves).items()}
            self._log(EntryType.REFUSAL, call, {**codes_of(tool, refused), **fixed_of(leaves)}, {**details_of(refused), **values})
        except LedgerError as error:
            refused = refused + Refused.of(Code.LEDGER_UNAVAILABLE, f"the refusal could not be logged: {error}", where="log")
        return Answered(call, refusal_result(tool, refused, call, waits=waits.id if waits else ""), "refused", refused)

    def _replay(self, call: str, tool: str, recorded: Recorded) -> Answered:
        self._log(EntryType.RECORDED, call, {"tool": tool, "of": recorded.call}, {})
        answer = recorded.answer
        result = answer if isinstance(answer, Mapping) else text_result("this call was done already; its answer was not kept")
        return Answered(call, result, "recorded")

    def _log(
        self, kind: EntryType, call: str, body: Mapping[str, JsonValue], hidden: Mapping[str, JsonValue], *, durable: bool = False
    ) -> None:
        self._wiring.ledger.append(self._entry(kind, call, body, hidden), self._wiring.clock(), durable=durable)

    def _entry(self, kind: EntryType, call: str, body: Mapping[str, JsonValue], hidden: Mapping[str, JsonValue]) -> LogEntry:
        """An entry whose hidden values stand in it as salted commitments; their openings go to the erasable store."""
        if not hidden:
            return LogEntry(kind, call, self.id, body)
        openings = hide(hidden, self._wiring.entropy)
        self._wiring.openings.put([opening for _, opening in openings], session=self.id, now=self._wiring.clock())
        return LogEntry(kind, call, self.id, {**body, "hidden": {name: opening.commitment for name, opening in openings}})

    def _next(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"


def _reached(decision: Admissible) -> tuple[tuple[str, str], ...]:
    return touched_by((*decision.action.call.fields, *decision.action.derived), decision.effect)


def _renew(known: tuple[Release, ...], found: tuple[Release, ...]) -> tuple[Release, ...]:
    """All releases, a newer one of the same value from the same place and declassifier in place of the older.

    Values that were released before stay candidates, so that reading again never makes one of several the only one. Where there
    are more than a session can use nothing of it holds: no choice among them could be told from what a flood reached.
    """

    def place(release: Release) -> tuple[str, str, str, str, str]:
        return (release.declassifier, release.destination, release.position, release.value.type, str(release.value.canonical))

    fresh = {place(release) for release in found}
    kept = (*(release for release in known if place(release) not in fresh), *found)
    return kept if len(kept) <= MAX_RELEASES else ()


def _digest_key(key: str) -> Digest:
    return digest({"idempotency_key": key}) if key else ""
