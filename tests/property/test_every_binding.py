"""An admissible action of which any one binding is changed is refused.

A generator takes an admissible action of one of nine shapes (a file that the request names, a tuple, a list, a release, a choice,
an approval, a grant with constraints, evidence, a call without atoms) and changes each binding, one at a time. The original is
admitted; each mutant is refused, with the code that says what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi.authority.grant import Grant
from cxi.canonical import digest
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.errors import AuthorityError, Code, Reason, Refused
from cxi.gate import Admissible, Proposal, Standing
from cxi.ledger.base import Draw, Lease, Mark, MarkKind, Outcome, Recorded, State
from cxi.log.entry import EntryType, LogEntry
from cxi.manifest import Manifest, Principal
from cxi.provenance import RequestChannel, TrustedRequest, open_request
from cxi.session import Session
from gate_case import NAMES, POLICIES, Case, opened

CALLS = ", ".join(f'Action::"tool:it.{name}"' for name in NAMES)
ATOMS = 'Action::"fs.create", Action::"fs.write", Action::"fs.delete"'
FORBID = f'@id("no") @text("Nothing.") forbid (principal, action in [{CALLS}, {ATOMS}], resource);'
EMPTY = "Please go on."


@dataclass(frozen=True)
class Worlds:
    """One world, and the monitors of others: without the atoms' permit, without the calls', and with a forbid more."""

    case: Case
    no_atoms: Any
    no_calls: Any
    forbidden: Any


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with ExitStack() as stack:

        def monitor(base: str) -> Any:
            assert base != POLICIES
            return stack.enter_context(opened("", base=base)).gate.monitor

        yield Worlds(
            stack.enter_context(opened("")),
            monitor(POLICIES.replace('"src"', '"none"').replace('"tests"', '"none"')),
            monitor(POLICIES.replace(CALLS, 'Action::"tool:it.read"', 1)),
            monitor(POLICIES + FORBID),
        )


@dataclass
class Ask:
    """An admissible action, and everything that it stands on.

    Attributes:
        shape: Which of the nine.
        tool: The tool.
        arguments: Its arguments.
        standing: What the session has.
        session: The session.
        request: The person's words.
    """

    shape: str
    tool: str
    arguments: dict[str, Any]
    standing: Standing
    session: Session
    request: str


SHAPES = ("file", "tuple", "list", "release", "choice", "approval", "constraint", "evidence", "call")
_names = st.text("abcdefgh", min_size=2, max_size=6)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def make(worlds: Worlds, shape: str, names: list[str], content: str, number: int) -> Ask:
    """An action of one shape, in a session of its own."""
    case = worlds.case
    case.now += 1
    session = case.guard.open_session()
    one, two = (f"src/{session.id[-4:]}-{name}.py" for name in names)
    for path in (one, two):
        (case.root / path).write_text("before\n", encoding="utf-8")
    after = content + "\nafter\n"
    request, tool, arguments = EMPTY, "put", {"path": one, "content": after}
    match shape:
        case "file" | "constraint":
            request = f"Please fix `{one}`."
        case "tuple":
            (case.root / two).unlink()
            request, tool, arguments = f"Move `{one}` to `{two}`.", "move", {"source": one, "destination": two}
        case "list":
            request, tool, arguments = f"Please drop `{one}` and `{two}`.", "drop", {"files": [one, two]}
        case "choice":
            tool = "write"
        case "call":
            request, tool, arguments = f"Add the note `{names[0]}`.", "note", {"title": names[0], "body": content}
        case "evidence":
            request, tool, arguments = f"Close ticket {number}.", "close", {"id": number}
        case _:
            pass
    session.start_task(request, "case", channel=RequestChannel.HOST_API, credential="host")
    case.talk.session = session
    if shape in ("release", "evidence"):
        case.report = {"run": {"result": "passed"}, "files": [one] if shape == "release" else []}
        assert case.call("look").kind == "done"
    standing = session.standing
    if shape == "approval":
        standing = replace(standing, approvals=(case.approval("put", arguments),))
    if shape == "constraint":
        grant = Grant("case/it.put", "it.put", 1, constraints={"path": (one,)}, expires=case.now + 60)
        standing = replace(standing, grants=(grant,))
    return Ask(shape, tool, arguments, standing, session, request)


Mutants: TypeAlias = Iterator[tuple[str, object, set[str]]]


def codes(answer: object) -> set[str]:
    return set(answer.codes) if isinstance(answer, Refused) else {type(answer).__name__}


# --- what a decision stands on


def of_the_proposal(worlds: Worlds, ask: Ask) -> Mutants:
    case = worlds.case

    def decide(changes: Mapping[str, Any], tool: str = "") -> object:
        return case.decide(tool or ask.tool, {**ask.arguments, **changes}, standing=ask.standing)

    other = str(ask.arguments.get("path", "src/x.py")).replace("src/", "docs/", 1)
    match ask.shape:
        case "tuple":
            source, destination = ask.arguments["source"], ask.arguments["destination"]
            yield "the source", decide({"source": "src/b.py"}), {Code.FIELD_NO_AUTHORITY}
            yield "the destination", decide({"destination": "src/other.py"}), {Code.FIELD_NO_AUTHORITY}
            swapped = {"source": destination, "destination": source}
            yield "the members swapped", decide(swapped), {Code.EFFECT_INEXACT}
        case "list":
            first, second = ask.arguments["files"]
            yield "an item", decide({"files": [first, "src/b.py"]}), {Code.FIELD_NO_AUTHORITY}
            yield "an item more", decide({"files": [first, second, "src/b.py"]}), {Code.FIELD_NO_AUTHORITY}
        case "evidence":
            yield "the ticket", decide({"id": ask.arguments["id"] + 1}), {Code.FIELD_NO_AUTHORITY}
            yield "the ticket's type", decide({"id": [ask.arguments["id"]]}), {Code.FIELD_TYPE}
        case "call":
            yield "the title", decide({"title": ask.arguments["title"] + "x"}), {Code.FIELD_NO_AUTHORITY}
        case _:
            yield "the path", decide({"path": other}), {Code.FIELD_NO_AUTHORITY}
            yield "the path's root", decide({"path": "../" + other}), {Code.PATH_OUTSIDE_ROOT}
    if ask.shape == "constraint":
        # named by the request as well, so that nothing but the grant's constraint stands in the way
        both = replace(ask.standing, request=_request(f"Please fix `{ask.arguments['path']}` and `src/b.py`."))
        yield "another named path", case.decide("put", {**ask.arguments, "path": "src/b.py"}, standing=both), {Code.GRANT_MISSING}
    if ask.shape == "approval":
        yield "the payload that was approved", decide({"content": ask.arguments["content"] + "x"}), {Code.FIELD_NO_AUTHORITY}
    yield "a field more", decide({"mode": "0777"}), {Code.FIELD_UNCLASSIFIED}
    yield "a field less", case.decide(ask.tool, {}, standing=ask.standing), {Code.FIELD_MISSING}
    yield "the tool", decide({}, "none"), {Code.TOOL_UNKNOWN}


def of_the_tool(worlds: Worlds, ask: Ask, original: Admissible) -> Mutants:
    case, name = worlds.case, f"it.{ask.tool}"
    pin = case.gate.pins[name]
    used = (original.action.digest, State.DONE, Recorded("a-1", None))
    for what, changed in (
        ("the server", replace(pin, server_identity=digest("other"))),
        ("the definition", replace(pin, definition=digest("other"))),
    ):
        gate = replace(case.gate, pins={**case.gate.pins, name: changed})
        found = case.decide(ask.tool, ask.arguments, gate=gate, standing=ask.standing, prior=used)
        yield what, found, {Code.KEY_REUSE_CONFLICT}
        if ask.shape == "approval":
            found = case.decide(ask.tool, ask.arguments, gate=gate, standing=ask.standing)
            yield f"{what} that was approved", found, {Code.FIELD_NO_AUTHORITY}
    for code in (Code.SERVER_CHANGED, Code.TOOL_DEFINITION_CHANGED, Code.TOOL_UNPINNED):
        gate = replace(case.gate, pins={**case.gate.pins, name: replace(pin, refused=Reason(code, "it differs"))})
        yield f"the pin ({code})", case.decide(ask.tool, ask.arguments, gate=gate, standing=ask.standing), {code}
    if ask.shape == "approval":
        adapter = _Newer(case.gate.adapters["file"])
        gate = replace(case.gate, adapters={**case.gate.adapters, "file": adapter})
        found = case.decide(ask.tool, ask.arguments, gate=gate, standing=ask.standing)
        yield "the adapter's version", found, {Code.FIELD_NO_AUTHORITY, Code.SNAPSHOT_CHANGED}


def of_the_standing(worlds: Worlds, ask: Ask) -> Mutants:
    case, standing = worlds.case, ask.standing

    def decide(**changes: Any) -> object:
        return case.decide(ask.tool, ask.arguments, standing=replace(standing, **changes))

    principal = standing.principal
    yield "the agent", decide(principal=replace(principal, agent="other")), {Code.POLICY_ERROR}
    if ask.shape != "approval":  # an approval is a grant of its own
        yield "the grants", decide(grants=()), {Code.GRANT_MISSING}
        yield "the grant's end", decide(grants=_granting(standing, expires=case.now)), {Code.EXPIRED}
        yield "the grant's tool", decide(grants=_granting(standing, tool="it.other")), {Code.GRANT_MISSING}
        none = decide(grants=_granting(standing, constraints={"path": ("src/none.py",)}))
        yield "the grant's constraint", none, {Code.GRANT_MISSING}
        yield "the task", decide(request=None, task="", grants=()), {Code.TASK_NONE}
    if ask.shape in ("file", "tuple", "list", "constraint", "evidence", "call"):
        words = ask.request
        for what, text in (
            ("negated", f"Do not {words[0].lower()}{words[1:]}"),
            ("quoted", f'He said "{words}"'),
            ("a question", f"Should I {words[0].lower()}{words[1:].rstrip('.')}?"),
            ("fenced", f"Go on.\n\n```\n{words}\n```\n"),
            ("forwarded", f"Go on.\n\n> {words}\n"),
            ("conditional", f"If all is well, {words[0].lower()}{words[1:]}"),
            ("another", EMPTY),
        ):
            yield f"the request {what}", decide(request=_request(text)), {Code.FIELD_NO_AUTHORITY}
    for release in standing.releases:
        for what, changed in (
            ("destination", replace(release, destination="it.write.path")),
            ("type", replace(release, value=replace(release.value, type="FilePath"))),
            ("value", replace(release, value=replace(release.value, canonical="src/b.py"))),
        ):
            yield f"the release's {what}", decide(releases=(changed,)), {Code.FIELD_NO_AUTHORITY}
        counter, named = standing.epoch
        for what, changed in (
            ("epoch's counter", replace(release, policy_epoch=(counter - 1, named))),
            ("epoch's digest", replace(release, policy_epoch=(counter, digest("other")))),
            ("task", replace(release, task="other")),
            ("end", replace(release, expires=case.now)),
            ("reads", replace(release, reads={question: digest("other") for question in release.reads})),
        ):
            assert release.reads
            yield f"the release's {what}", decide(releases=(changed,)), {Code.RELEASE_VOID}
    for approval in standing.approvals:
        for what, change in (
            ("action", {"action": digest("other")}),
            ("effect", {"effect": digest("other")}),
            ("session", {"session": "s-other"}),
            ("end", {"expires": case.now}),
        ):
            yield f"the approval's {what}", decide(approvals=(replace(approval, **change),)), {Code.FIELD_NO_AUTHORITY}
    if ask.shape == "evidence":
        (record,) = standing.evidence
        for what, records in (
            ("absence", ()),
            ("end", (replace(record, expires=case.now),)),
            ("time", (replace(record, time=case.now + 1),)),
            ("result", (replace(record, attributes={**record.attributes, "result": "failed"}),)),
            ("subject", (replace(record, subject="0" * 40),)),
        ):
            yield f"the evidence's {what}", decide(evidence=records), {Code.POLICY_FORBIDS}
        # a source that the schema does not know
        yield "the evidence's name", decide(evidence=(replace(record, name="other"),)), {Code.POLICY_ERROR}


def of_the_policies(worlds: Worlds, ask: Ask, original: Admissible) -> Mutants:
    case = worlds.case

    def decide(monitor: Any) -> object:
        gate = replace(case.gate, monitor=monitor)
        return case.decide(ask.tool, ask.arguments, gate=gate, standing=ask.standing)

    yield "a forbid more", decide(worlds.forbidden), {Code.POLICY_FORBIDS}
    yield "the call's permit", decide(worlds.no_calls), {Code.CALL_NOT_PERMITTED}
    if original.effect.atoms:
        yield "the atoms' permit", decide(worlds.no_atoms), {Code.EFFECT_FORBIDDEN}


def of_the_snapshot(worlds: Worlds, ask: Ask, original: Admissible) -> Mutants:
    """Every path that the effect is about, changed after the plan; what was read is compared again before the sink."""
    case = worlds.case
    for atom in original.effect.atoms:
        path = case.root / atom.target
        before = path.read_bytes() if path.exists() else None
        if before is None:
            path.write_bytes(b"in between")
        else:
            path.unlink()
        changed = stale(original.reads, case.session._wiring.world)
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
        answer = Refused.of(Code.SNAPSHOT_CHANGED, "it changed") if changed else "nothing noticed"
        yield f"the world under {atom.kind} {atom.target}", answer, {Code.SNAPSHOT_CHANGED}
    assert stale(original.reads, case.session._wiring.world) == ()


# --- what the ledger is given


def of_the_event(worlds: Worlds, ask: Ask, original: Admissible) -> Mutants:
    """The original is leased; then everything that binds the event is changed or used again."""
    case = worlds.case
    ledger = case.gate.ledger
    taken: list[tuple[Manifest, Draw, LogEntry]] = []

    class Spy:
        def consume(self, manifest: Manifest, draw: Draw, entry: LogEntry, now: float) -> object:
            taken.append((manifest, draw, entry))
            return Refused.of(Code.REVOKED, "only looked at")

        def __getattr__(self, name: str) -> Any:
            return getattr(ledger, name)

    def describe(_manifest: Manifest, found: Admissible) -> LogEntry:
        body = {"mode": "enforce", "tool": found.proposal.tool, "effect": {}, "hidden": {}}
        return LogEntry(EntryType.ADMISSION, found.proposal.call, ask.session.id, body)

    def nonce() -> str:
        return case.entropy(16).hex()

    keyed = replace(original, proposal=replace(original.proposal, idempotency_key=digest(["key", original.proposal.call])))
    spying: Any = Spy()
    replace(case.gate, ledger=spying).admit(keyed, nonce(), case.now, describe=describe)
    ((manifest, draw, entry),) = taken

    def consume(changed: Manifest, **draws: Any) -> object:
        session = changed.action.principal.session
        return ledger.consume(changed, replace(draw, **draws), replace(entry, session=session), case.now)

    def by(**changes: str) -> Manifest:
        principal: Principal = replace(manifest.action.principal, **changes)
        return replace(manifest, action=replace(manifest.action, principal=principal))

    invocation, effect = manifest.invocation, manifest.effect
    yield "the user", consume(by(user="other")), {Code.SESSION_UNKNOWN}
    yield "the agent", consume(by(agent="other")), {Code.SESSION_UNKNOWN}
    yield "the session", consume(by(session="s-other")), {Code.SESSION_UNKNOWN}
    yield "another open session", consume(by(session=case.guard.open_session(agent="b").id)), {Code.SESSION_UNKNOWN}
    yield "the tenant", consume(by(tenant="other")), {Code.EPOCH_CHANGED}
    counter, named = effect.policy_epoch
    for epoch in ((counter + 1, named), (counter - 1, named), (counter, digest("other"))):
        yield f"the epoch {epoch}", consume(replace(manifest, effect=replace(effect, policy_epoch=epoch))), {Code.EPOCH_CHANGED}
    for sequence in (invocation.sequence + 1, invocation.sequence - 1, 0):
        changed = replace(manifest, invocation=replace(invocation, sequence=sequence))
        yield f"the sequence {sequence}", consume(changed), {Code.CAPABILITY_USED}
    yield "the grant's count", consume(manifest, limit=0), {Code.GRANT_EXHAUSTED}
    yield "the deadline", consume(manifest, deadline=case.now), {Code.EXPIRED}

    # INVARIANT of the test: nothing above spent anything, so the original is admitted now.
    lease = consume(manifest)
    assert isinstance(lease, Lease), (ask.shape, lease)

    following = replace(invocation, sequence=invocation.sequence + 1, idempotency_key="")
    other = replace(following, event_key=digest("another event"))
    apart: dict[str, Any] = {"occurrence": digest("another event")}
    yield "the same manifest again", consume(manifest), {Code.IN_FLIGHT}
    yield "the payload under way", consume(replace(manifest, invocation=following)), {Code.IN_FLIGHT}
    key = replace(other, idempotency_key=invocation.idempotency_key)
    answer = consume(replace(manifest, invocation=key), action=digest("b"), **apart)
    yield "the key of another action", answer, {Code.KEY_REUSE_CONFLICT}
    assert invocation.nonce == other.nonce
    fresh = {"nonce": nonce(), "capability": digest("fresh" + nonce())}
    many: dict[str, Any] = {"limit": 20, **apart}
    for what in fresh:
        again = replace(other, **{name: value for name, value in fresh.items() if name != what})
        if ask.shape == "approval":  # a grant of its own, whose first use was its last
            again = replace(again, grant="case/it.put", sequence=1)
        answer = consume(replace(manifest, invocation=again), approval="", **many)
        yield f"the {what} again", answer, {Code.CAPABILITY_USED}
    if ask.shape == "approval":
        again = replace(other, **fresh, grant="case/it.put", sequence=1)
        yield "the approval again", consume(replace(manifest, invocation=again), **many), {Code.CAPABILITY_USED}

    settlement = LogEntry(EntryType.SETTLEMENT, lease.call, ask.session.id, {"tool": f"it.{ask.tool}"})
    forged = replace(lease, manifest_digest=replace(manifest, carriage=digest("carriage")).digest)
    with pytest.raises(AuthorityError):
        ledger.settle(forged, Outcome(State.DONE), settlement, case.now)
    ledger.settle(lease, Outcome(State.DONE), settlement, case.now)
    with pytest.raises(AuthorityError):
        ledger.settle(lease, Outcome(State.DONE), settlement, case.now)
    again = replace(following, **fresh)
    yield "the event again, with a count of one", consume(replace(manifest, invocation=again), limit=1), {Code.EVENT_REPEATED}
    tenant = ask.session.standing.principal.tenant
    ledger.revoke(tenant, Mark(MarkKind.SESSION, ask.session.id), person="ana", reason="enough", now=case.now)
    yield "a revoked session", consume(replace(manifest, invocation=again)), {Code.REVOKED}
    ask.session.close()
    yield "a closed session", consume(replace(manifest, invocation=again)), {Code.SESSION_UNKNOWN}


def _request(text: str) -> TrustedRequest:
    segment = open_request("r-0", RequestChannel.HOST_API, "host", text)
    assert not isinstance(segment, Reason)
    return TrustedRequest((segment,))


def _granting(standing: Standing, **changes: Any) -> tuple[Grant, ...]:
    return tuple(replace(grant, **changes) for grant in standing.grants)


class _Newer:
    """The file adapter in another version, which finds the same atoms."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def plan(self, *arguments: Any) -> Any:
        found = self._adapter.plan(*arguments)
        return found if isinstance(found, Refused) else replace(found, adapter="file/2")


@pytest.mark.parametrize("shape", SHAPES)
def test_an_admissible_action_of_which_any_one_binding_is_changed_is_refused(worlds: Worlds, shape: str) -> None:
    counted: dict[str, int] = {}

    @settings(max_examples=6)
    @given(st.lists(_names, min_size=2, max_size=2, unique=True), _texts, st.integers(1, 10**6))
    def mutate(names: list[str], content: str, number: int) -> None:
        ask = make(worlds, shape, names, content, number)
        case = worlds.case
        original = case.decide(ask.tool, ask.arguments, standing=ask.standing)
        assert isinstance(original, Admissible), original
        generators: list[Callable[[], Mutants]] = [
            lambda: of_the_proposal(worlds, ask),
            lambda: of_the_tool(worlds, ask, original),
            lambda: of_the_standing(worlds, ask),
            lambda: of_the_policies(worlds, ask, original),
            lambda: of_the_snapshot(worlds, ask, original),
        ]
        for generate in generators:
            for what, answer, expected in generate():
                assert expected <= codes(answer), (shape, what, codes(answer))
                assert isinstance(answer, Refused), (shape, what)
                counted[what.split(" (")[0]] = 1
        # no mutant spoiled the original
        assert isinstance(case.decide(ask.tool, ask.arguments, standing=ask.standing), Admissible)
        for what, answer, expected in of_the_event(worlds, ask, original):
            assert expected <= codes(answer), (shape, what, codes(answer))
            assert isinstance(answer, Refused), (shape, what)
            counted[what] = 1

    mutate()
    assert len(counted) >= 30, sorted(counted)


def test_what_was_judged_is_what_is_sent_whatever_becomes_of_the_callers_objects() -> None:
    body: Any = {"lines": ["a", {"b": ["c"]}]}
    with opened("Add the note `hello`.") as case:
        arguments = {"title": "hello", "body": body}
        prepared: Any = case.session.propose("it.note", arguments)
        body["lines"][1]["b"].append("injected")
        body["more"] = True
        arguments["title"] = "bye"
        case.tools.execute(prepared.warrant)
        assert case.tools.calls == [("note", {"title": "hello", "body": {"lines": ["a", {"b": ["c"]}]}})]
        manifest = prepared.warrant.manifest
        fresh = replace(manifest, action=replace(manifest.action))
        assert fresh.digest == prepared.warrant.manifest_digest


def test_a_snapshot_is_asked_for_nothing_that_is_not_in_the_read_set() -> None:
    with opened() as case:
        wiring = case.session._wiring
        asked: set[tuple[str, ...]] = set()

        class Watching:
            def entry(self, path: str) -> Any:
                asked.add(("entry", path))
                return wiring.world.entry(path)

            def names(self, path: str) -> Any:
                asked.add(("names", path))
                return wiring.world.names(path)

            def content(self, path: str) -> Any:
                asked.add(("content", path))
                return wiring.world.content(path)

            def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> Any:
                asked.add(("git", repository, question, *arguments))
                return wiring.world.git(repository, question, arguments)

        snapshot = RecordingSnapshot(Watching(), str(case.root))
        found = case.gate.decide(
            Proposal("a-1", "it.write", {"path": "src/a.py", "content": "x"}), case.session.standing, snapshot, case.now
        )
        assert isinstance(found, Admissible)
        assert asked == set(found.reads)
        assert ("content", f"{case.root}/src/a.py") in asked
