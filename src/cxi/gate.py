"""May this happen, now, once?

The steps of a turn, in their fixed order; a failed step ends the way to the sink:

1. canonicalize: every field read by its type, the call written anew; this gives the action digest.
2. field authority, tuple by tuple.
3. exact effect: what the call would really do, read whole, and nothing of CXI's own in it.
4. policy: the call and every atom permitted by the exact applicable set.
5. grant, capability, ledger: the event itself, spent once.

- Steps 2 to 4 are pure and all report, so a refusal names every reason at once; the choice of the grant reports with them.
- The gate knows the world through the snapshot it is given, and time through `now`.
- The answer is `Admissible | Cleared | NoOp | Recorded | Refused` from `decide`, and `Lease | Recorded | Refused` from `admit`.

INVARIANT (three-authorities): an `Admissible` exists only if fields, effect and policy had authority for the same action and
commitment; a `Lease` only if the event had it too, bound to the manifest that names all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from cxi.authority.approval import Approval
from cxi.authority.contract import (
    READS,
    AdapterEffect,
    CallEffect,
    Choice,
    ListedEffect,
    NoEffect,
    Repeat,
    ToolContract,
)
from cxi.authority.desk import Denial, denied_reason
from cxi.authority.evidence import Evidence, present
from cxi.authority.field import FieldContext, resolve
from cxi.authority.grant import Grant, limits_of, mint, when
from cxi.authority.reading import read_call
from cxi.authority.release import Release
from cxi.canonical import Digest, JsonValue
from cxi.effects.base import Adapter, Atom, Effect, Snapshot
from cxi.effects.entity import atom_request, call_request
from cxi.effects.listed import plan_listed
from cxi.effects.protect import ProtectedPaths, touches
from cxi.effects.snapshot import read_set_digest, stale
from cxi.errors import Code, Reason, Refused
from cxi.ledger.base import Draw, Lease, Ledger, Recorded, State
from cxi.log.entry import LogEntry
from cxi.manifest import (
    Action,
    Assurance,
    CanonicalCall,
    Commitment,
    FieldEvidence,
    FieldValue,
    Instant,
    Invocation,
    Manifest,
    Nonce,
    Principal,
    Role,
)
from cxi.policy.base import Monitor, PolicyRequest
from cxi.policy.schema import ToolSurface
from cxi.provenance import Segment, TrustedRequest
from cxi.values.base import Value

LAUNCH_SECONDS: Final = 30.0  # a lease that is not launched by then never is
SEQUENCE_TRIES: Final = 8  # draws of one grant that may race before the gate refuses


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an agent asks for.

    Attributes:
        call: The call's id in the log; the gate's own, never the agent's.
        tool: `files.write_file`.
        arguments: As received, read strictly.
        idempotency_key: The digest of the caller's key, or empty.
        prior: What the ledger knows of that key in this session: (action digest, state, answer), or None.
    """

    call: str
    tool: str
    arguments: JsonValue
    idempotency_key: Digest = ""
    prior: tuple[Digest, State, Recorded] | None = None


@dataclass(frozen=True, slots=True)
class ToolPin:
    """What the lock says of a tool as its server lists it now.

    Attributes:
        server_identity: Digest of the program and arguments, or URL.
        definition: Digest of the definition.
        refused: Why it may not be called, or None.
    """

    server_identity: Digest
    definition: Digest
    refused: Reason | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that one session has, frozen for one decision.

    Attributes:
        principal: Who acts, in which session.
        epoch: The policy epoch that the session sees.
        request: The trusted request; None where no task is open.
        task: The open task's name; empty where it was opened without one, or where none is open.
        grants: Of the task and the standing rules.
        releases: All releases made in this session.
        approvals: Approvals of persons for this session.
        evidence: Evidence records of registered sources.
        state: Trusted values by type name (`RepoPath`: what admitted calls with trusted fields wrote).
        segments: W segments, to say where a value was seen.
        ended: Why the session may no longer act, or None.
        denials: What persons said no to.
    """

    principal: Principal
    epoch: tuple[int, Digest]
    request: TrustedRequest | None = None
    task: str = ""
    grants: tuple[Grant, ...] = ()
    releases: tuple[Release, ...] = ()
    approvals: tuple[Approval, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    state: Mapping[str, tuple[Value, ...]] = field(default_factory=lambda: MappingProxyType({}))
    segments: tuple[Segment, ...] = ()
    ended: Reason | None = None
    denials: tuple[Denial, ...] = ()


@dataclass(frozen=True, slots=True)
class Admissible:
    """Steps 1 to 4 hold, and a grant covers the event.

    Attributes:
        proposal: What was asked.
        contract: The tool's contract.
        action: What is asked, canonically.
        evidence: Why each protected field has authority.
        effect: What would happen.
        commitment: The effect commitment.
        grant: What the event is drawn from.
        approval: The approval that is spent with it, or empty.
        reads: The read set, to be compared before the sink.
        others: Other grants that cover it, drawn from where the first has no more to give.
        task: The open task's name, or empty.
    """

    proposal: Proposal
    contract: ToolContract
    action: Action
    evidence: tuple[FieldEvidence, ...]
    effect: Effect
    commitment: Commitment
    grant: Grant
    approval: str
    reads: Mapping[tuple[str, ...], Digest]
    others: tuple[Grant, ...] = ()
    task: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """A call that is no sink and may be made.

    Attributes:
        proposal: What was asked.
        contract: The tool's contract.
        action: What is asked, canonically.
        effect: Reads only.
        authorized_by: The permits that hold.
        approval: The approval that was given for exactly this call and is spent with it, or empty.
    """

    proposal: Proposal
    contract: ToolContract
    action: Action
    effect: Effect
    authorized_by: tuple[str, ...]
    approval: str = ""


@dataclass(frozen=True, slots=True)
class NoOp:
    """A sink's call that would change nothing: answered without calling it."""

    proposal: Proposal
    action: Action


Decision: TypeAlias = Admissible | Cleared | NoOp | Recorded | Refused


@dataclass(frozen=True, slots=True)
class Reach:
    """What a call names, refused or not, as far as it could be read.

    Attributes:
        leaves: Its fields, and what was derived from its payloads.
        touches: For a sink, what it would have touched, for the origin index.
    """

    leaves: tuple[FieldValue, ...] = ()
    touches: tuple[tuple[str, str], ...] = ()


# Writes the log entry of an admission; salts and openings are the session's business.
DescribeAdmission: TypeAlias = Callable[[Manifest, Admissible], LogEntry]


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """Step 4's answers.

    Attributes:
        permits: All permits of the call and of its atoms.
        chosen: Concrete field to the permits each of which alone permits every atom whose target is that field's value.
        reasons: Denials, the call's first.
    """

    permits: frozenset[str]
    chosen: Mapping[str, frozenset[str]]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """The one way to a sink.

    Attributes:
        contracts: By tool name.
        pins: By tool name; a tool without a pin is unpinned.
        adapters: By kind.
        monitor: The policies in force.
        surfaces: What policies see of each tool; the schema was made from the same.
        ledger: Where capabilities are spent.
        protected: CXI's own files.
        constants: What contracts may name, `root`.
    """

    contracts: Mapping[str, ToolContract]
    pins: Mapping[str, ToolPin]
    adapters: Mapping[str, Adapter]
    monitor: Monitor
    surfaces: Mapping[str, ToolSurface]
    ledger: Ledger
    protected: ProtectedPaths
    constants: Mapping[str, str]

    def decide(self, proposal: Proposal, session: Standing, snapshot: Snapshot, now: Instant) -> Decision:
        """Steps 1 to 4, and the choice of the grant; pure.

        Args:
            proposal: What the agent asks for.
            session: What the session has.
            snapshot: The world, which remembers what was read.
            now: Seconds since the epoch.

        Returns:
            `Admissible` for a sink, `Cleared` for a call that is none, `NoOp` where a sink's call would change nothing,
            `Recorded` where the same action was done under the same key and the contract replays, else `Refused` with every
            reason, in the order of the steps.
        """
        if session.ended is not None:
            return Refused((session.ended,))
        contract = self.contracts.get(proposal.tool)
        pin = self.pins.get(proposal.tool)
        if contract is None:
            known = pin is not None
            return Refused.of(
                Code.TOOL_UNCONTRACTED if known else Code.TOOL_UNKNOWN,
                f"no contract describes `{proposal.tool}`" if known else f"no server offers `{proposal.tool}`",
                where=proposal.tool,
            )
        if pin is None:
            return Refused.of(Code.TOOL_UNKNOWN, f"its server does not offer `{proposal.tool}`", where=proposal.tool)
        if pin.refused is not None:
            return Refused((pin.refused,))

        # 1. canonicalize
        call = read_call(contract, proposal.arguments, snapshot.root, constants=self.constants)
        if isinstance(call, Refused):
            return call

        # 3. exact effect: planned before step 2, which judges the values that the adapter reads out of payloads as well
        planned = self._plan(contract, call, snapshot)
        effect = planned if isinstance(planned, Effect) else _UNREAD
        action = Action(session.principal, pin.server_identity, pin.definition, call, effect.derived)
        if (replayed := _replay(proposal, contract, action)) is not None:
            return replayed
        effect_reasons = planned.reasons if isinstance(planned, Refused) else self._judge_effect(contract, effect, snapshot)

        # What policies see beside the call: evidence, and whether a person approved exactly this call and effect.
        evidence = present(session.evidence, snapshot, now)
        commitment = _commit(session, effect, snapshot) if contract.sink or session.approvals else None
        approval, approval_reason = (None, None) if commitment is None else _match_approval(session, action, commitment, now)
        denied = _find_denial(session, action, proposal.idempotency_key) if session.denials else None

        # 4. policy: the call, and every atom
        verdicts = self._judge_policy(contract, action, effect, session, snapshot, evidence, approved=approval is not None)
        authorized_by = tuple(sorted(verdicts.permits))

        # 2. field authority
        unread = isinstance(planned, Refused)
        idle = contract.sink and not unread and not effect.atoms and isinstance(contract.effect, ListedEffect | AdapterEffect)
        resolved = self._resolve_fields(
            contract, action, verdicts.chosen, session, snapshot, approval, now, unbounded=idle or unread
        )
        field_evidence = () if isinstance(resolved, Refused) else resolved
        field_reasons = resolved.reasons if isinstance(resolved, Refused) else ()

        # 5. (the pure half) which grants cover the event?
        grants = _choose_grants(contract, action, session, approval, now) if contract.sink and not idle else ()
        grant_reasons = grants.reasons if isinstance(grants, Refused) else ()

        # A person's no is the last word, whatever else would allow it.
        denials = (denied_reason(denied, contract.name),) if denied is not None else ()
        reasons = (*field_reasons, *effect_reasons, *verdicts.reasons, *grant_reasons, *denials)
        if reasons:
            stale = (approval_reason,) if approval_reason is not None else ()
            return Refused((*reasons, *stale))
        if idle:
            return NoOp(proposal, action)
        if not contract.sink:
            return Cleared(proposal, contract, action, effect, authorized_by, approval.id if approval else "")
        # INVARIANT (grant-before-sink): a sink without a grant has a reason above
        if isinstance(grants, Refused) or not grants or commitment is None:
            raise AssertionError(proposal.tool)
        return Admissible(
            proposal,
            contract,
            action,
            field_evidence,
            effect,
            replace(commitment, authorized_by=authorized_by),
            grants[0],
            approval.id if approval else "",
            dict(snapshot.reads),
            grants[1:],
            session.task,
        )

    def admit(
        self, admissible: Admissible, nonce: Nonce, now: Instant, *, describe: DescribeAdmission, influences: Sequence[str] = ()
    ) -> Lease | Recorded | Refused:
        """Step 5: draw a capability from the grant and spend it, durably, with the log entry in the same transaction.

        Args:
            admissible: What steps 1 to 4 found.
            nonce: Fresh randomness.
            now: Seconds since the epoch.
            describe: Writes the admission's log entry.
            influences: Names of the untrusted sources that influenced the call, for the origin index.

        Raises:
            LedgerError: where the ledger or the log cannot be written; nothing was spent.
        """
        reasons: tuple[Reason, ...] = ()
        for grant in (admissible.grant, *admissible.others):
            drawn_from = admissible if grant is admissible.grant else replace(admissible, grant=grant)
            answer = self._draw(drawn_from, nonce, now, describe, influences)
            if not isinstance(answer, Refused) or not _is_of_grant(answer, grant):
                return answer
            reasons += answer.reasons
        return Refused(reasons)

    def _draw(
        self, admissible: Admissible, nonce: Nonce, now: Instant, describe: DescribeAdmission, influences: Sequence[str]
    ) -> Lease | Recorded | Refused:
        """Draw from one grant."""
        action, commitment, grant = admissible.action, admissible.commitment, admissible.grant
        session = action.principal.session
        limits, holds = limits_of(grant, action), when(grant, now)
        if isinstance(limits, Refused):
            return limits
        if isinstance(holds, Reason):
            return Refused((holds,))
        deadline = min(now + LAUNCH_SECONDS, holds.end) if holds.end else now + LAUNCH_SECONDS
        refused: Refused | None = None
        for _ in range(SEQUENCE_TRIES):
            sequence = self.ledger.drawn(session, grant.id, 0.0) + 1
            capability = mint(
                grant,
                session=session,
                action=action.digest,
                effect=commitment.digest,
                sequence=sequence,
                nonce=nonce,
                expires=deadline,
            )
            invocation = Invocation(
                grant.id, capability.digest, sequence, nonce, action.event_key(), admissible.proposal.idempotency_key
            )
            manifest = Manifest(action, admissible.evidence, commitment, invocation)
            draw = Draw(
                call=admissible.proposal.call,
                limit=grant.count,
                window=grant.window,
                repeat=str(admissible.contract.repeat),
                action=action.digest,
                occurrence=action.occurrence_key(),
                deadline=capability.expires,
                approval=admissible.approval,
                touches=touched_by((*action.call.fields, *action.derived), admissible.effect),
                influences=tuple(influences),
                limits=limits,
                after=grant.after,
                not_before=holds.start,
                not_after=holds.end,
                retries=grant.retries,
                task=admissible.task,
                delegations=grant.delegations,
                lineage=grant.lineage,
            )
            answer = self.ledger.consume(manifest, draw, describe(manifest, admissible), now)
            if not (isinstance(answer, Refused) and answer.codes == (Code.CAPABILITY_USED,)):
                return answer
            refused = answer  # another caller drew this sequence first: draw the next one
        if refused is None:
            raise AssertionError("unreachable: at least one draw was tried")
        return refused

    def bind(
        self, proposal: Proposal, session: Standing, snapshot: Snapshot, now: Instant
    ) -> tuple[Action, Effect, Commitment] | None:
        """What a person's yes to a call would bind; None where the call, or what it would do, cannot be read whole.

        Args:
            proposal: What the agent asks for.
            session: What the session has.
            snapshot: The world, unasked: a commitment binds what was read up to it, here as in `decide`.
            now: Seconds since the epoch.
        """
        contract, pin = self.contracts.get(proposal.tool), self.pins.get(proposal.tool)
        if contract is None or pin is None:
            return None
        call = read_call(contract, proposal.arguments, snapshot.root, constants=self.constants)
        if isinstance(call, Refused):
            return None
        effect = self._plan(contract, call, snapshot)
        if isinstance(effect, Refused):
            return None
        action = Action(session.principal, pin.server_identity, pin.definition, call, effect.derived)
        # INVARIANT (same-questions): what `decide` asks before it commits is asked here, in its order.
        self._judge_effect(contract, effect, snapshot)
        present(session.evidence, snapshot, now)
        return action, effect, _commit(session, effect, snapshot)

    def reach(self, proposal: Proposal, snapshot: Snapshot) -> Reach:
        """What a call names, refused or not; nothing where it cannot be read."""
        contract = self.contracts.get(proposal.tool)
        if contract is None:
            return Reach()
        call = read_call(contract, proposal.arguments, snapshot.root, constants=self.constants)
        if isinstance(call, Refused):
            return Reach()
        if not contract.sink:
            return Reach(call.fields)
        effect = self._plan(contract, call, snapshot)
        planned = effect if isinstance(effect, Effect) else _UNREAD
        leaves = (*call.fields, *planned.derived)
        return Reach(leaves, touched_by(leaves, planned))

    def _plan(self, contract: ToolContract, call: CanonicalCall, snapshot: Snapshot) -> Effect | Refused:
        match contract.effect:
            case NoEffect():
                return Effect("none/1", (), Assurance.DECLARED)
            case CallEffect():
                return Effect("call/1", (), Assurance.DECLARED)
            case ListedEffect(atoms):
                return plan_listed(tuple((atom.kind, atom.field) for atom in atoms), call, snapshot)
            case AdapterEffect(adapter, inputs):
                known = self.adapters.get(adapter)
                if known is None:
                    return Refused.of(Code.EFFECT_UNSUPPORTED, f"no adapter `{adapter}` is built in", where=adapter)
                return known.plan(call, inputs, snapshot)
            case _:
                assert_never(contract.effect)

    def _judge_effect(self, contract: ToolContract, effect: Effect, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Step 3's own denials: CXI's files, and a tool that would act though its contract says that it is no sink."""
        reasons = list(touches(effect, self.protected, snapshot))
        if not contract.sink:
            reasons.extend(
                Reason(
                    Code.EFFECT_UNSUPPORTED,
                    f"the contract says that it is no sink, but it would do `{atom.kind}`",
                    where=_describe(atom),
                    needs="a contract that says what the tool does",
                )
                for atom in effect.atoms
                if atom.kind not in READS
            )
        return tuple(reasons)

    def _judge_policy(
        self,
        contract: ToolContract,
        action: Action,
        effect: Effect,
        session: Standing,
        snapshot: Snapshot,
        evidence: Mapping[str, Mapping[str, JsonValue]],
        *,
        approved: bool,
    ) -> _Verdicts:
        """Step 4: the call and each atom is one request; everything that denies reports."""
        agent, task = session.principal.agent, session.task if session.request is not None else None
        surface = self.surfaces[contract.name]
        reasons: list[Reason] = []
        permits: set[str] = set()
        chosen: dict[str, frozenset[str]] = {}

        def ask(request: PolicyRequest | Refused) -> frozenset[str]:
            verdict = self.monitor.decide(request) if isinstance(request, PolicyRequest) else request
            if isinstance(verdict, Refused):
                reasons.extend(verdict.reasons)
                return frozenset()
            permits.update(verdict.by)
            return frozenset(verdict.by)

        ask(
            call_request(
                action.call,
                contract,
                surface,
                agent=agent,
                root=snapshot.root,
                evidence=evidence,
                approval=approved,
                task=task,
                effect=effect,
            )
        )
        for atom in effect.atoms:
            by = ask(
                atom_request(
                    atom,
                    agent=agent,
                    root=snapshot.root,
                    evidence=evidence,
                    approval=approved,
                    task=task,
                    tool=contract.name,
                    assurance=effect.assurance,
                )
            )
            if atom.field:
                chosen[atom.field] = chosen[atom.field] & by if atom.field in chosen else by
        return _Verdicts(frozenset(permits), chosen, tuple(reasons))

    def _resolve_fields(
        self,
        contract: ToolContract,
        action: Action,
        chosen: Mapping[str, frozenset[str]],
        session: Standing,
        snapshot: Snapshot,
        approval: Approval | None,
        now: Instant,
        *,
        unbounded: bool,
    ) -> tuple[FieldEvidence, ...] | Refused:
        """Step 2. With no effect (nothing would happen, or it is refused) a bounded choice has no atom to be judged by."""
        leaves: Sequence[FieldValue] = [leaf for leaf in (*action.call.fields, *action.derived) if leaf.role is Role.PROTECTED]
        if unbounded:
            chosen = {leaf.path: _choices(contract, leaf) for leaf in leaves}
        context = FieldContext(
            request=session.request,
            root=snapshot.root,
            releases=session.releases,
            void=_void_releases(contract, session, snapshot, now),
            approval=approval,
            state=session.state,
            segments=session.segments,
            chosen=chosen,
        )
        return resolve(contract, leaves, context)


def _commit(session: Standing, effect: Effect, snapshot: Snapshot) -> Commitment:
    """The effect commitment, before it is known which policies authorize it."""
    return Commitment(
        adapter=effect.adapter,
        snapshot=read_set_digest(snapshot.reads),
        atoms=effect.digest,
        authorized_by=(),
        assurance=effect.assurance,
        policy_epoch=session.epoch,
        principal=session.principal.agent,
    )


# What stands in for an effect that could not be read: no atoms, and never admitted, because its refusal is a reason.
_UNREAD: Final = Effect("unread/1", (), Assurance.DECLARED)


def touched_by(leaves: Iterable[FieldValue], effect: Effect) -> tuple[tuple[str, str], ...]:
    """The records and paths that a call touches, for the origin index: (type, canonical) of each protected value and atom."""
    found: dict[tuple[str, str], None] = {}
    for leaf in leaves:
        if leaf.role is Role.PROTECTED and leaf.value.canonical is not None:
            found[leaf.value.type, str(leaf.value.canonical)] = None
    for atom in effect.atoms:
        if atom.kind.startswith("fs.") and atom.kind not in READS:
            found["path", atom.target] = None
    return tuple(found)


def _choices(contract: ToolContract, leaf: FieldValue) -> frozenset[str]:
    origins = contract.fields[leaf.contract].origins
    return frozenset(policy for origin in origins if isinstance(origin, Choice) for policy in origin.policies)


def _describe(atom: Atom) -> str:
    return f"{atom.kind} {atom.target}"


def _find_denial(session: Standing, action: Action, key: Digest) -> Denial | None:
    """The denial of this very call; an approval of it takes away what was denied before (`Desk.answer`)."""
    for denial in session.denials:
        # INVARIANT (no-for-all): what was denied to one agent is denied to all that it delegates to, or got its right from.
        asked = action if not denial.agent else replace(action, principal=replace(action.principal, agent=denial.agent))
        if (denial.action and denial.action == asked.digest) or (denial.key and denial.key == key):
            return denial
    return None


def _match_approval(
    session: Standing, action: Action, commitment: Commitment, now: Instant
) -> tuple[Approval | None, Reason | None]:
    """The approval that covers exactly this call, or why one for this call does not."""
    why: Reason | None = None
    for approval in session.approvals:
        reason = approval.holds(action.digest, commitment.digest, action.principal.session, now)
        if reason is None:
            return approval, None
        if approval.action == action.digest:
            why = reason
    return None, why


def _replay(proposal: Proposal, contract: ToolContract, action: Action) -> Recorded | Refused | None:
    """The recorded answer of the same action under the same key; a key that was used for another action is a conflict."""
    if proposal.prior is None:
        return None
    used, state, recorded = proposal.prior
    if used != action.digest:
        return Refused.of(
            Code.KEY_REUSE_CONFLICT,
            f"the idempotency key was used for another action (call `{recorded.call}`)",
            where=contract.name,
        )
    return recorded if state is State.DONE and contract.repeat is Repeat.REPLAY else None


def _void_releases(contract: ToolContract, session: Standing, snapshot: Snapshot, now: Instant) -> Mapping[Digest, Reason]:
    """Which of the releases to this tool no longer hold, and why (design, section 1; `authority.release`)."""
    void: dict[Digest, Reason] = {}
    for release in session.releases:
        where = release.destination
        if not where.startswith(contract.name + "."):
            continue
        if release.policy_epoch != session.epoch:
            void[release.id] = Reason(Code.EPOCH_CHANGED, "the release is of an older policy epoch", where=where)
        elif release.task != session.task:
            void[release.id] = Reason(Code.RELEASE_VOID, "the release is of another task", where=where)
        elif now >= release.expires:
            void[release.id] = Reason(Code.EXPIRED, "the release has expired", where=where)
        elif stale(release.reads, snapshot):
            void[release.id] = Reason(Code.RELEASE_VOID, "what the release's validators read has changed", where=where)
    return void


# What a grant's own terms answer: another grant may give what this one does not.
_TERMS: Final = frozenset({Code.GRANT_EXHAUSTED, Code.LIMIT_REACHED, Code.SEQUENCE_UNMET, Code.RETRIES_EXHAUSTED, Code.NOT_YET})


def _is_of_grant(refused: Refused, grant: Grant) -> bool:
    """Whether it is this grant alone that refuses; an event that happened exhausts the grant that it is told of."""
    return all(
        reason.code in _TERMS or (reason.code is Code.EVENT_REPEATED and reason.where == grant.id) for reason in refused.reasons
    )


def _choose_grants(
    contract: ToolContract, action: Action, session: Standing, approval: Approval | None, now: Instant
) -> tuple[Grant, ...] | Refused:
    """The grants that cover the event, in order: an approval for it alone, else the task's, then the standing ones."""
    if approval is not None:
        return (Grant(f"approval/{approval.id}", contract.name, 1, expires=approval.expires),)
    found: list[Grant] = []
    against: list[Reason] = []
    for grant in session.grants:
        if grant.tool != contract.name or not _fits(grant, action):
            continue
        holds, limits = when(grant, now), limits_of(grant, action)
        if isinstance(holds, Reason):
            against.append(holds)
        elif isinstance(limits, Refused):
            against.extend(limits.reasons)
        else:
            found.append(grant)
    if found:
        return tuple(found)
    if against:
        return Refused(tuple(against))
    if session.request is None:
        return Refused.of(Code.TASK_NONE, "no task is open, so nothing is granted", where=contract.name)
    return Refused.of(
        Code.GRANT_MISSING,
        f"task `{session.task}` does not grant `{contract.name}`"
        if session.task
        else f"the task was opened without a name, so it does not grant `{contract.name}`",
        where=contract.name,
        needs="a task that grants it, or an approval",
    )


def _fits(grant: Grant, action: Action) -> bool:
    """Whether every constrained field has one of the grant's values."""
    for name, allowed in grant.constraints.items():
        found = [leaf.value.canonical for leaf in (*action.call.fields, *action.derived) if leaf.contract == name]
        if not found or any(value not in allowed for value in found):
            return False
    return True
