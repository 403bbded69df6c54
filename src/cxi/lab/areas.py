"""How is a case of each area put to the public API? One function an area; the shape of its input decides, never its id.

- `sibling=True` runs the same case with authority in place of its absence, and says in `note` what differs.
- A part that is not built raises `NotYet`; an unknown shape raises what Python raises, and counts as `not_yet` too.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from cxi.authority.desk import Answer, Verdict
from cxi.errors import Code, ConfigError, OutcomeUnknown, Reason, Refused
from cxi.guard import Outcome
from cxi.lab.arena import Arena, FoldingWorld, Tools, arena, define, permit_calls
from cxi.lab.command import judge_commands
from cxi.ledger.base import Mark, MarkKind

Input: TypeAlias = Mapping[str, Any]
GRANTED: Final = 20


class NotYet(Exception):
    """The case needs a part that is not built; the text names it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the product answered.

    Attributes:
        outcome: `admit` or `reject`.
        codes: Reason codes; `RECORDED` where a recorded answer was given again.
        note: What was tried, in short.
    """

    outcome: str
    codes: tuple[str, ...]
    note: str


def _seen(outcomes: Sequence[Outcome], note: str) -> Seen:
    """All of them: admitted if each was done, refused if each was not."""
    done = [outcome.kind == "done" for outcome in outcomes]
    codes = tuple(
        dict.fromkeys(code for outcome in outcomes for code in (("RECORDED",) if outcome.kind == "recorded" else outcome.codes))
    )
    if all(done):
        return Seen("admit", codes, note)
    return Seen("mixed" if any(done) else "reject", codes, note)


def _contract(arguments: Mapping[str, Any], origins: Sequence[str] = ("any-of-request",)) -> dict[str, Any]:
    """A sink's contract whose texts and ids come from these origins alone; anything deeper is judged as payload."""
    fields: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            fields[name] = {"role": "payload", "optional": True}
        else:
            kind: Any = "Text" if isinstance(value, str) else {"RecordId": {"form": "integer"}}
            fields[name] = {"role": "protected", "type": kind, "from": list(origins), "optional": True}
    return {"effect": "call", "fields": fields, "repeat": "replay"}


def _naming(calls: Sequence[Mapping[str, Any]]) -> str:
    """A request that names every value of these calls."""
    parts = []
    for call in calls:
        named = [f"`{value}`" if isinstance(value, str) else f"id {value}" for value in call["args"].values()]
        parts.append(f"Call {call['tool']} with {' and '.join(named)}." if named else f"Call {call['tool']}.")
    return "\n".join(dict.fromkeys(parts))


def _plain(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The calls without what only the case's author says of them, and with the tool's own name."""
    return [
        {
            "id": str(call.get("id", "")),
            "tool": str(call["tool"]).rpartition(".")[2],
            "args": {name: value for name, value in call["args"].items() if name != "derived_from"},
        }
        for call in calls
    ]


def _configure(
    place: Arena,
    calls: Sequence[Mapping[str, Any]],
    *,
    count: int = GRANTED,
    origins: Sequence[str] = ("any-of-request",),
    **more: Any,
) -> tuple[Path, list[str]]:
    """A configuration with a contract, a permit and a grant for every tool that the calls name."""
    merged: dict[str, dict[str, Any]] = {}
    for call in calls:
        merged.setdefault(call["tool"], {}).update(call["args"])
    names = [*merged, "look"]
    contracts: dict[str, Any] = {name: _contract(arguments, origins) for name, arguments in merged.items()}
    contracts["look"] = {"effect": "none", "fields": {}, "result": {"content": "outsider"}}
    place.root.mkdir(parents=True, exist_ok=True)
    grants = {"case": {"grants": {f"it.{name}": count for name in merged}}}
    return place.configure(contracts, policies=permit_calls(names), tasks=grants, **more), names


def field(input: Input, *, sibling: bool) -> Seen:
    """Field authority: values that untrusted text brought must be refused, each call by itself."""
    calls = _plain(input["proposed"])
    for call in calls:
        body = call["args"].get("body")
        if isinstance(body, Mapping) and "query" in body:
            raise NotYet("a GraphQL document is not read yet")
        if "sql" in call["args"]:
            raise NotYet("SQL is not read yet")
    with arena() as place:
        file, names = _configure(place, calls)
        untrusted = "\n".join(str(value) for call in calls for value in call["args"].values())
        tools = Tools(define(names), act=lambda tool, _arguments: untrusted if tool == "look" else "done")
        place.pin(file, tools)
        request = _naming(calls) if sibling else str(input.get("user", ""))
        with place.open(file, tools, request=request) as (_, talk):
            talk.call("it.look", {})  # the untrusted text reaches the agent
            outcomes = [talk.call(f"it.{call['tool']}", call["args"]) for call in calls]
        return _seen(outcomes, "the request names every value" if sibling else "the values stand in untrusted text only")


def mcp(input: Input, *, sibling: bool) -> Seen:
    """Pins: a definition or a launch that differs from the accepted one is refused until a person accepts it."""
    if "grant" in input:
        raise NotYet("SQL is not read yet")
    calls = _plain(input["proposed"])
    with arena() as place:
        if "approval" in input:
            accepted, current = input["approval"]["digest_of"], input["current"]
            launch = [accepted, accepted if sibling else current]
            definitions = [define([call["tool"] for call in calls])] * 2
        else:
            launch = [{"command": "true", "args": []}] * 2
            definitions = [[input["current"] if sibling else input["baseline"]], [input["current"]]]
        commands = [[command["command"], *command["args"]] for command in launch]
        for command in commands:
            place.provide(command[0])
        file, _ = _configure(place, calls, server={"command": commands[0]})
        place.pin(file, Tools([*definitions[0], *define(["look"])]))
        file, _ = _configure(place, calls, server={"command": commands[1]})
        tools = Tools([*definitions[1], *define(["look"])])
        with place.open(file, tools, request=_naming(calls)) as (_, talk):
            outcomes = [talk.call(f"it.{call['tool']}", call["args"]) for call in calls]
        return _seen(outcomes, "a person accepted what is there now" if sibling else "compared with the accepted pin")


def _files(place: Arena, operation: str, *, policies: str = "", **more: Any) -> tuple[Path, Tools]:
    """A file server with one operation, which it really does."""
    reads = operation == "read"
    fields: dict[str, Any] = {
        "path": {"role": "protected", "type": "RepoPath", "from": ["anyone" if reads else "any-of-request"]}
    }
    effect: Any = ["fs.read(path)"]
    if not reads:
        fields["content"] = {"role": "payload"}
        effect = {"adapter": "file", "op": "=write", "path": "path", "content": "content"}
    permits = (
        '@id("writes") @text("Files may be written.") '
        'permit (principal, action in [Action::"fs.create", Action::"fs.write"], resource);\n'
    )
    contract = {operation: {"effect": effect, "fields": fields}}
    tasks: dict[str, Any] = {} if reads else {"tasks": {"case": {"grants": {f"it.{operation}": GRANTED}}}}
    text = permit_calls([operation]) + ("" if reads else permits) + policies
    file = place.configure(contract, policies=text, **tasks, **more)

    def act(_tool: str, arguments: Mapping[str, Any]) -> str:
        target = Path(arguments["path"])
        if reads:
            return target.read_text(encoding="utf-8")
        target.write_text(arguments["content"], encoding="utf-8")
        return "written"

    tools = Tools(define([operation]), act=act)
    place.pin(file, tools)
    return file, tools


def _call(operation: str, path: str) -> dict[str, Any]:
    return {"path": path} if operation == "read" else {"path": path, "content": "x"}


def effect_path(input: Input, *, sibling: bool) -> Seen:
    """Containment: links and missing leaves as the kernel resolves them, against the declared root."""
    named = str(input.get("root") or input["root_as_given"])
    path, operation = str(input["path"]), str(input.get("op", "read"))
    links = {} if sibling else dict(input.get("links", {}))
    if sibling and not path.startswith(named + "/"):
        path = f"{named}/{path.rpartition('/')[2]}"
    with arena() as place:
        scratch = place.base / "fs"

        def inside(absolute: str) -> Path:
            return scratch / absolute.lstrip("/")

        for link, target in links.items():
            inside(target).parent.mkdir(parents=True, exist_ok=True)
            if path == link:
                inside(target).write_text("private", encoding="utf-8")
            else:
                inside(target).mkdir(parents=True, exist_ok=True)
            inside(link).parent.mkdir(parents=True, exist_ok=True)
            inside(link).symlink_to(inside(target))
        inside(named).mkdir(parents=True, exist_ok=True)
        inside(path).parent.mkdir(parents=True, exist_ok=True)
        if operation == "read" and not inside(path).exists():
            inside(path).write_text("content", encoding="utf-8")
        place.root = inside(named)
        file, tools = _files(place, operation)
        real = str(inside(path))
        with place.open(file, tools, request=f"Please {operation} `{real}`.") as (_, talk):
            outcome = talk.call(f"it.{operation}", _call(operation, real))
        return _seen([outcome], "the same leaf inside the root" if sibling else f"{operation} {path}")


def canonical(input: Input, *, sibling: bool) -> Seen:
    """Which value is it: hidden characters, numbers that lose digits, names that a file system holds equal."""
    if "command" in input:
        return effect_shell(input, sibling=sibling)
    if "fs" in input:
        return _folded_path(input, sibling=sibling)
    if "arguments_raw" in input:
        return _exact_number(input, sibling=sibling)
    if "rule_file" in input:
        return _hidden_rule(input, sibling=sibling)
    return _hidden_value(input["approval_view"], sibling=sibling)


def effect_shell(input: Input, *, sibling: bool) -> Seen:
    """Shell commands: what each would do, against what the case allows."""
    outcomes = judge_commands(input, sibling=sibling)
    return _seen(outcomes, "everything is permitted, or the contract says `effect: call`" if sibling else "as the case allows")


def _folded_path(input: Input, *, sibling: bool) -> Seen:
    kind = str(input["fs"])
    case, form = "case-insensitive" in kind, "normalisation-insensitive" in kind or "normalization-insensitive" in kind
    world = FoldingWorld(case=case, form=form)
    path = str(input["path"])
    with arena() as place:
        denied = [str(item) for item in input.get("deny", ())]
        protected = [str(item) for item in input.get("protected", ())]
        named = str(input.get("root") or (os.path.commonpath([str(Path(item).parent) for item in denied]) if denied else "/w"))
        place.root = place.base / "fs" / named.lstrip("/")
        place.root.mkdir(parents=True)
        forbids = ""
        inside = [item.removeprefix(named).lstrip("/") for item in (*denied, *protected)]
        for item in inside:
            target = place.root / item
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("{}", encoding="utf-8")
        for number, item in enumerate(item.removeprefix(named).lstrip("/") for item in denied):
            quoted = item.replace("\\", "\\\\").replace('"', '\\"')
            forbids += (
                f'@id("deny-{number}") @text("It is denied.") '
                f'forbid (principal, action == Action::"fs.read", resource == File::"{quoted}");\n'
            )
        mine = [str(place.root / item) for item in inside if protected and not item.startswith(".git")]
        more: dict[str, Any] = {"prose": mine} if mine else {}
        operation = "write" if protected else "read"
        # The agent spells the root as the case does, which may be another form of the same name.
        spelled = path.removeprefix("/") if path.startswith("/") else f"{named.lstrip('/')}/{path}"
        real = f"{place.base}/fs/{spelled}"
        if sibling:
            real = f"{place.root}/other.txt"
        elif not denied and not protected:
            (place.root / Path(path).name).write_text("content", encoding="utf-8")
        if sibling and operation == "read":
            Path(real).write_text("content", encoding="utf-8")
        file, tools = _files(place, operation, policies=forbids, **more)
        tools.act = lambda _tool, _arguments: "done"  # the file system of the case is not the disk's
        with place.open(file, tools, request=f"Please {operation} `{real}`.", world=world, case=(not case, form)) as (_, talk):
            outcome = talk.call(f"it.{operation}", _call(operation, real))
        if outcome.kind == "failed" and outcome.codes == (Code.EFFECT_DIFFERS,):
            outcome = Outcome("done", outcome.id, outcome.result)  # nothing was written, for the tool only stands in
        return _seen(
            [outcome], "a path that nothing protects" if sibling else f"{kind} (a stand-in): {unicodedata.normalize('NFC', path)}"
        )


def _exact_number(input: Input, *, sibling: bool) -> Seen:
    arguments = dict(input["granted"])
    if sibling:  # as a string it is the same bytes everywhere
        arguments = {name: str(value) for name, value in arguments.items()}
    calls = [{"id": "k1", "tool": "use", "args": arguments}]
    with arena() as place:
        file, names = _configure(place, calls)
        tools = Tools(define(names))
        place.pin(file, tools)
        with place.open(file, tools, request=_naming(calls)) as (_, talk):
            return _seen([talk.call("it.use", arguments)], "the number as a string" if sibling else str(input["arguments_raw"]))


def _hidden_rule(input: Input, *, sibling: bool) -> Seen:
    with arena() as place:
        calls = [{"id": "k1", "tool": "use", "args": {}}]
        place.root.mkdir(parents=True)
        rule = place.root / "RULES.md"
        rule.write_text(str(input["pinned_visible"] if sibling else input["rule_file"]), encoding="utf-8")
        file, names = _configure(place, calls, prose=[str(rule)])
        tools = Tools(define(names))
        try:
            place.pin(file, tools)
            with place.open(file, tools, request="Call use.") as (_, talk):
                return _seen([talk.call("it.use", {})], "the visible text")
        except ConfigError as error:
            codes = tuple(code for code in (Code.HIDDEN_TEXT,) if any(code in problem.detail for problem in error.problems))
            return Seen("reject", codes, "refused at start-up")


def _hidden_value(view: Input, *, sibling: bool) -> Seen:
    path = str(view["args"]["path"])
    if sibling:
        path = "".join(char for char in path if unicodedata.category(char) != "Cf")
    with arena() as place:
        (place.root / Path(path).parent).mkdir(parents=True)
        file, tools = _files(place, "write")
        real = str(place.root / path)
        with place.open(file, tools, request=f"Please write `{real}`.") as (_, talk):
            return _seen(
                [talk.call("it.write", _call("write", real))], "without the hidden character" if sibling else "hidden in a path"
            )


def invocation(input: Input, *, sibling: bool) -> Seen:
    """The event: once, and only what was granted; a key names one action; an unknown outcome blocks."""
    if "attempts" in input:
        return _attempts(input, sibling=sibling)
    if "key" in input:
        calls = _plain([input["first"], input["first"] if sibling else input["second"]])
        keys = [str(input["key"]), "another key" if sibling else str(input["key"])]
        return _last(calls, keys, "another key" if sibling else "the same key, another action")
    if "timeline" in input:
        return _timeline(input, sibling=sibling)
    if "waits" in input:
        return _waits(input, sibling=sibling)
    if "events" in input:
        return _events(input, sibling=sibling)
    if "decisions" in input:
        return _decisions(input, sibling=sibling)
    calls = _plain(input["calls"])
    if "intents" in input:
        return _all(calls, [str(input["intents"][call["id"]]) for call in calls], "two intents, two keys")
    keys = [call["id"] for call in calls]
    if len(set(keys)) == len(keys):
        raise KeyError("calls without intents, decisions or a timeline")
    if sibling:
        keys = [f"{key}/{number}" for number, key in enumerate(keys)]
    return _last(calls, keys, "ids of their own" if sibling else "one id for two calls")


Run: TypeAlias = Callable[[Any, Tools], Sequence[Outcome]]


def _run(
    calls: Sequence[Mapping[str, Any]],
    work: Callable[..., Sequence[Outcome]],
    note: str,
    *,
    faults: Sequence[Any] = (),
    request: str = "",
    origins: Sequence[str] = ("any-of-request",),
) -> Seen:
    with arena() as place:
        file, names = _configure(place, calls, origins=origins)
        tools = Tools(define(names), faults=list(faults))
        place.pin(file, tools)
        with place.open(file, tools, request=request or _naming(calls)) as (guard, talk):
            return _seen(work(guard, talk, tools), note)


def _all(calls: Sequence[Mapping[str, Any]], keys: Sequence[str], note: str) -> Seen:
    def work(_guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        outcomes = [talk.call(f"it.{c['tool']}", c["args"], idempotency_key=k) for c, k in zip(calls, keys, strict=True)]
        _expect(len(tools.calls) == len(calls), "each intent ran once")
        return outcomes

    return _run(calls, work, note)


def _last(calls: Sequence[Mapping[str, Any]], keys: Sequence[str], note: str) -> Seen:
    """What the last call got; those before it ran."""

    def work(_guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        outcomes = [talk.call(f"it.{c['tool']}", c["args"], idempotency_key=k) for c, k in zip(calls, keys, strict=True)]
        _expect(all(outcome.kind == "done" for outcome in outcomes[:-1]), "the first call runs")
        done = sum(outcome.kind == "done" for outcome in outcomes)
        _expect(len(tools.calls) == done, "nothing ran that was not admitted")
        return outcomes[-1:]

    return _run(calls, work, note)


def _timeline(input: Input, *, sibling: bool) -> Seen:
    """A finished call is proposed again after a restart, under its own id."""
    again = next(str(step).split()[0] for step in input["timeline"] if "proposed again" in str(step))
    calls = [call for call in _plain(input["calls"]) if call["id"] == again]
    return _last(
        [calls[0], calls[0]], [again, f"{again}/new" if sibling else again], "a new intent" if sibling else "proposed again"
    )


def _attempts(input: Input, *, sibling: bool) -> Seen:
    """An attempt whose outcome is unknown, and a further one."""
    attempts = _plain([attempt["call"] for attempt in input["attempts"]])
    unknown = any("unknown" in str(attempt.get("outcome", "")) for attempt in input["attempts"])
    faults = [OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer in time"))] if unknown and not sibling else []

    def work(_guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        outcomes = [talk.call(f"it.{call['tool']}", call["args"], idempotency_key=call["id"]) for call in attempts]
        _expect(len(tools.calls) == (len(attempts) if sibling else 1), "no second effect while the first is unknown")
        return outcomes[-1:]

    return _run(attempts, work, "the first attempt answered" if sibling else "the first attempt timed out", faults=faults)


def _decisions(input: Input, *, sibling: bool) -> Seen:
    """A person rejects one call of several; an executor that is handed all of them runs only the others."""
    calls = _plain(input["calls"])
    rejected = {call for call, decision in input["decisions"].items() if decision == "reject"}

    def work(guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        if not sibling:
            for call in calls:
                if call["id"] in rejected:
                    mark = Mark(MarkKind.GRANT, f"case/it.{call['tool']}", talk.session.id)
                    tenant = talk.session.standing.principal.tenant
                    guard.ledger.revoke(tenant, mark, person="operator", reason="rejected", now=0.0)
        outcomes = {call["id"]: talk.call(f"it.{call['tool']}", call["args"]) for call in calls}
        _expect(all(outcome.kind == "done" for call, outcome in outcomes.items() if call not in rejected), "the others run")
        _expect(len(tools.calls) == len(calls) - (0 if sibling else len(rejected)), "each runs once")
        return [outcomes[call] for call in rejected]

    return _run(calls, work, "no rejection" if sibling else "a person rejected it")


def _waits(input: Input, *, sibling: bool) -> Seen:
    """Calls that wait for a person; each answer carries the digest of the call that the person saw, and comes to one of them."""
    waits = []
    for wait in input["waits"]:
        arguments = {name: value for name, value in wait.items() if name not in ("call", "tool")}
        waits.append({"id": wait["call"], "tool": wait["tool"], "args": arguments})
    seen = {answer["for_digest_of"]: answer["value"] for answer in input["answers"]}
    # Which answer came to whom, by what was delivered.
    handed = {
        call: call if sibling or seen[call] == value else next(other for other in seen if seen[other] == value)
        for call, value in input["delivered"].items()
    }

    def work(_guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        first = [talk.call(f"it.{call['tool']}", call["args"]) for call in waits]
        _expect(all(outcome.kind == "refused" for outcome in first), "nothing runs before it is approved")
        pending = dict(zip((call["id"] for call in waits), talk.session.pending(), strict=True))
        found: list[Outcome] = []
        for call, other in handed.items():
            verdict = Verdict.GRANT if sibling or seen[other] == "approve" else Verdict.DENY
            made = talk.session.answer(Answer(pending[call].id, pending[other].action, pending[other].shown, verdict, "person"))
            _expect(isinstance(made, Refused) == (call != other), "an answer counts for the call that the person saw alone")
            if isinstance(made, Refused):
                found.append(Outcome("refused", pending[call].call, {}, made))
        found += [talk.call(f"it.{call['tool']}", call["args"]) for call in waits]
        _expect(len(tools.calls) == sum(outcome.kind == "done" for outcome in found), "nothing ran that was not admitted")
        return found

    note = "each answer at its own call, and all of them yes" if sibling else "the answers were swapped"
    return _run(waits, work, note, request="Do what the ticket asks.", origins=["approval"])


def _events(input: Input, *, sibling: bool) -> Seen:
    """A standing yes to a tool, and later a person's no to one call of it."""
    call = _plain([input["proposed"]])[0]
    rejected = [event["reject"] for event in sorted(input["events"], key=lambda event: event["t"]) if "reject" in event]

    def work(_guard: Any, talk: Any, tools: Tools) -> Sequence[Outcome]:
        for key in rejected if not sibling else ():
            talk.session.deny(key=str(key), person="person")
        outcome = talk.call(f"it.{call['tool']}", call["args"], idempotency_key=call["id"])
        _expect(len(tools.calls) == (outcome.kind == "done"), "a denied call does not run")
        return [outcome]

    return _run([call], work, "no rejection" if sibling else "the tool is granted, and a person rejected this call")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


RUNNERS: Final[Mapping[str, Callable[..., Seen]]] = {
    "field": field,
    "mcp": mcp,
    "effect-path": effect_path,
    "effect-shell": effect_shell,
    "canonical": canonical,
    "invocation": invocation,
}
