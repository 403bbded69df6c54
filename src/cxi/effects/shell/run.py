"""What does a text do, command by command? Every way through it, and what each way leaves.

- A status is known, likely (`LIKELY`: success unless the machine fails) or not known (None). Where the text asks for one that is
  not known (`&&`, `||`, `if`, `while`, `set -e`), the way is split; equal ways are joined again.
- A likely success is taken for one by `&&` and `;`; `||`, `if` and `while` go both ways, for there the text itself asks, and so
  does `&&` inside a condition or before `||`.
- The stages of a pipeline run at once: what one changes, no other may look at.
- Loops run while anything new comes of it, functions where they are called; both within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from cxi.effects.shell import builtin, condition, program
from cxi.effects.shell.arithmetic import compute
from cxi.effects.shell.expand import fields, pattern, single
from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.pattern import compiled
from cxi.effects.shell.redirect import redirected
from cxi.effects.shell.state import CLOSED, LIKELY, NULL, End, State, too_many
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.syntax import (
    Case,
    Chain,
    Check,
    Command,
    Compute,
    Count,
    For,
    Function,
    Group,
    If,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Substitution,
    While,
)
from cxi.effects.shell.ways import WAYS, merge, restore, split
from cxi.values.base import EntryKind

ROUNDS: Final = 1_000  # of one loop
CALLS: Final = 20  # functions in each other


class Machine:
    """Runs a text over states; knows nothing between two plans."""

    def __init__(self) -> None:
        self.steps = 0
        self.keys = 0

    # --- lists

    def script(self, states: Sequence[State], script: Script) -> list[State]:
        """Every way through a list of commands."""
        live = list(states)
        for chain in script.chains:
            moving = [state for state in live if not state.flow]
            if not moving:
                break
            resting = [state for state in live if state.flow]
            live = resting + [after for state in moving for after in self.chain(state, chain)]
            live = merge(live)
        return live

    def chain(self, state: State, chain: Chain) -> list[State]:
        if chain.background:
            return self.background(state, chain)
        states = self.guarded([state], chain.first, guard=bool(chain.rest))
        for at, (op, pipeline) in enumerate(chain.rest):
            # Where a failure leads to something else than the end of the list, it is gone into however unlikely it is.
            asks = any(later == "||" for later, _ in chain.rest[at:])
            going: list[State] = []
            staying: list[State] = []
            for one in states:
                if one.flow:
                    staying.append(one)
                    continue
                yes, no = split(one, ask=asks or one.guarded > 0)
                (going if op == "&&" else staying).extend(yes)
                (staying if op == "&&" else going).extend(no)
            states = merge(staying + self.guarded(going, pipeline, guard=at < len(chain.rest) - 1))
        return states

    def guarded(self, states: Sequence[State], pipeline: Pipeline, *, guard: bool) -> list[State]:
        """A pipeline; `guard` says that `set -e` does not heed its status."""
        out: list[State] = []
        for state in states:
            state.guarded += guard or pipeline.negated
            for after in self.pipeline(state, pipeline):
                after.guarded -= guard or pipeline.negated
                out.extend(self.heed(after))
        return out

    def heed(self, state: State) -> list[State]:
        """What `set -e` makes of a status."""
        if "errexit" not in state.options or state.guarded or state.flow or state.status in (0, LIKELY):
            return [state]
        if state.status is not None:
            state.flow = "exit"
            return [state]
        ends = state.copy()
        ends.flow, ends.status = "exit", 1
        state.status = 0
        return [state, ends]

    def background(self, state: State, chain: Chain) -> list[State]:
        """A background list runs beside what follows: it must be a program of its own, or look at nothing that changes."""
        inner = state.copy()
        inner.fds[0] = NULL
        plain = Chain(chain.first, chain.rest, False, chain.start, chain.end)
        before = dict(state.disk)
        out: list[State] = []
        for after in self.chain(inner, plain):
            if after.disk != before and not after.opaque:
                raise Stop(KNOW, "files are changed in the background", chain.start, chain.end, needs="leave out the `&`")
            back = restore(state, after)
            back.status, back.flow = 0, ""
            back.cloud() if after.opaque else None
            out.append(back)
        return merge(out)

    def pipeline(self, state: State, pipeline: Pipeline) -> list[State]:
        states = self.command(state, pipeline.stages[0]) if len(pipeline.stages) == 1 else self.stages(state, pipeline)
        if pipeline.timed:
            for one in states:
                one.write(2, None)
        if pipeline.negated:
            return [after for one in states for after in _negate(one)]
        return states

    def stages(self, state: State, pipeline: Pipeline) -> list[State]:
        outer = (state.looked, state.changed)
        ways: list[tuple[State, list[tuple[set[str], set[str]]], list[int | None]]] = [(state.copy(), [], [])]
        source = state.fds.get(0, CLOSED)
        for at, stage in enumerate(pipeline.stages):
            last = at == len(pipeline.stages) - 1
            following: list[tuple[State, list[tuple[set[str], set[str]]], list[int | None]]] = []
            key = self.buffer() if not last else 0
            for way, seen, statuses in ways:
                inner = restore(state, way)
                inner.fds[0] = source
                if not last:
                    inner.buffers[key] = b""
                    inner.fds[1] = End("buffer", key=key)
                    if pipeline.both[at]:
                        inner.fds[2] = End("buffer", key=key)
                inner.looked, inner.changed = set(), set()
                for after in self.command(inner, stage):
                    looked, changed = after.looked or set(), after.changed or set()
                    if after.flow in ("break", "continue", "return"):
                        raise Stop(KNOW, "a jump out of a pipeline", stage.start, stage.end)
                    following.append((after, [*seen, (looked, changed)], [*statuses, after.status]))
            if len(following) > WAYS:
                raise Stop(KNOW, f"more than {WAYS} ways through the text", pipeline.start, pipeline.end)
            ways = following
            source = End("buffer", key=key)
        out: list[State] = []
        for way, seen, statuses in ways:
            _race(way, state, seen, pipeline)
            back = restore(state, way)
            back.status = statuses[-1]
            if "pipefail" in state.options and any(status != 0 for status in statuses):
                back.status = LIKELY if all(status in (0, LIKELY) for status in statuses) else None
            back.looked, back.changed = outer
            for looked, changed in seen:
                if outer[0] is not None:
                    outer[0].update(looked)
                if outer[1] is not None:
                    outer[1].update(changed)
            out.append(back)
        return merge(out)

    def buffer(self) -> int:
        """A new place for bytes."""
        self.keys += 1
        return self.keys

    # --- commands

    def command(self, state: State, command: Command) -> list[State]:
        self.steps += 1
        too_many(self.steps)
        try:
            return self._command(state, command)
        except Stop as error:
            raise error.at(command.start, command.end) from None

    def _command(self, state: State, command: Command) -> list[State]:
        match command:
            case Simple():
                return self.simple(state, command)
            case Function():
                if builtin.is_special(command.name):
                    raise Stop(KNOW, f"a function named `{command.name}`")
                state.functions[command.name] = command.body
                state.status = 0
                return [state]
            case Group(redirects=redirects):
                return self.within(state, redirects, lambda inner: self.group(inner, command))
            case If(redirects=redirects):
                return self.within(state, redirects, lambda inner: self.conditional(inner, command))
            case While(redirects=redirects):
                return self.within(state, redirects, lambda inner: looped(inner, lambda one: self.loop(one, command)))
            case For(redirects=redirects):
                return self.within(state, redirects, lambda inner: looped(inner, lambda one: self.each(one, command)))
            case Count(redirects=redirects):
                return self.within(state, redirects, lambda inner: looped(inner, lambda one: self.count(one, command)))
            case Case(redirects=redirects):
                return self.within(state, redirects, lambda inner: self.case(inner, command))
            case Compute(redirects=redirects):
                return self.within(state, redirects, lambda inner: _computed(inner, command))
            case Check(redirects=redirects):
                return self.within(state, redirects, lambda inner: self.check(inner, command))

    def within(self, state: State, redirects: tuple[Redirect, ...], body: Callable[[State], list[State]]) -> list[State]:
        """A compound command under its redirections."""
        if not redirects:
            return body(state)
        before = dict(state.fds)
        if not redirected(self, state, redirects):
            return [_unopened(state, before)]
        out = body(state)
        for after in out:
            after.fds = dict(before)
        return out

    def group(self, state: State, group: Group) -> list[State]:
        if not group.subshell:
            return self.script([state], group.body)
        return merge([_leave(restore(state, after), after) for after in self.script([state.copy()], group.body)])

    def conditional(self, state: State, command: If) -> list[State]:
        out: list[State] = []
        asking = [state]
        for test, body in command.branches:
            answered = self.asked(asking, test)
            asking = []
            for one in answered:
                if one.flow:
                    out.append(one)
                    continue
                yes, no = split(one, ask=True)
                out.extend(self.script(yes, body))
                asking.extend(no)
        if command.otherwise is not None:
            out.extend(self.script(asking, command.otherwise))
        else:
            for one in asking:
                one.status = 0
            out.extend(asking)
        return merge(out)

    def asked(self, states: Sequence[State], script: Script) -> list[State]:
        """A condition, in which `set -e` is not heeded."""
        for state in states:
            state.guarded += 1
        out = self.script(states, script)
        for state in out:
            state.guarded -= 1
        return out

    def loop(self, state: State, command: While) -> list[State]:
        out: list[State] = []
        live = [state]
        state.round = 0
        seen: set[tuple[object, ...]] = set()
        for _ in range(ROUNDS):
            entering: list[State] = []
            for one in live:
                key = one.key()
                if key not in seen:
                    seen.add(key)
                    entering.append(one)
            if not entering:
                return merge(out)
            going: list[State] = []
            for one in self.asked(entering, command.condition):
                if one.flow:
                    out.extend(_jumped(one, going))
                    continue
                yes, no = split(one, ask=True)
                going.extend(no if command.until else yes)
                for end in yes if command.until else no:
                    end.status = end.round  # that of the last round, not of the condition
                    out.append(end)
            live = []
            for one in self.script(merge(going), command.body):
                out.extend(_jumped(one, live))
            for one in live:
                one.round = one.status
            live = merge(live)
        raise Stop(KNOW, f"a loop of more than {ROUNDS} rounds")

    def each(self, state: State, command: For) -> list[State]:
        values: list[Field] = list(state.parameters) if command.words is None else fields(self, state, command.words)
        if any(isinstance(value, Hole) and value.many for value in values):
            return self.any_times(state, command, values)
        if len(values) > ROUNDS:
            raise Stop(KNOW, f"a loop of more than {ROUNDS} rounds")
        live, out = [state], []
        state.status = 0
        for value in values:
            following: list[State] = []
            for one in live:
                one.assign(command.name, None if isinstance(value, Hole) else str(value))
                for after in self.script([one], command.body):
                    out.extend(_jumped(after, following))
            live = merge(following)
        return merge(out + live)

    def any_times(self, state: State, command: For, values: list[Field]) -> list[State]:
        """A loop over fields that are not known: any number of rounds with any value."""
        if any(not isinstance(value, Hole) for value in values):
            raise Stop(KNOW, "a loop over words of which some are not known")
        state.assign(command.name, None)
        state.status = 0
        out: list[State] = []
        live = [state]
        seen: set[tuple[object, ...]] = set()
        for _ in range(ROUNDS):
            entering = [one for one in live if one.key() not in seen]
            seen.update(one.key() for one in entering)
            if not entering:
                return merge(out)
            out.extend(one.copy() for one in entering)
            live = []
            for one in entering:
                one.assign(command.name, None)
                for after in self.script([one], command.body):
                    out.extend(_jumped(after, live))
            live = merge(live)
        raise Stop(KNOW, f"a loop of more than {ROUNDS} rounds")

    def count(self, state: State, command: Count) -> list[State]:
        state.status = 0
        if command.first.strip():
            compute(state, command.first)
        live, out = [state], []
        for _ in range(ROUNDS):
            going: list[State] = []
            for one in live:
                value = compute(one, command.test) if command.test.strip() else 1
                if value is None:
                    raise Stop(KNOW, "a loop whose end is not known")
                if value:
                    going.append(one)
                else:
                    out.append(one)
            if not going:
                return merge(out)
            live = []
            for after in self.script(going, command.body):
                out.extend(_jumped(after, live))
            live = merge(live)
            for one in live:
                if command.step.strip():
                    compute(one, command.step)
        raise Stop(KNOW, f"a loop of more than {ROUNDS} rounds")

    def case(self, state: State, command: Case) -> list[State]:
        word = single(self, state, command.word)
        out: list[State] = []
        state.status = 0
        if isinstance(word, Hole):
            for patterns, body, end in command.items:
                if end != ";;":
                    raise Stop(KNOW, "a `case` that falls through, of a word that is not known")
                for one in patterns:
                    pattern(self, state, one)
                out.extend(self.script([state.copy()], body))
            return merge([*out, state])
        falling = False
        for patterns, body, end in command.items:
            if not falling and not any(compiled(pattern(self, state, one)).fullmatch(word) for one in patterns):
                continue
            if end == ";;":
                return self.script([state], body)
            raise Stop(KNOW, "a `case` that falls through")
        return [state]

    def check(self, state: State, command: Check) -> list[State]:
        state.status = condition.check(self, state, command.condition)
        return [state]

    def simple(self, state: State, command: Simple) -> list[State]:
        before = dict(state.fds)
        words = fields(self, state, command.words)
        opened = redirected(self, state, command.redirects) if command.redirects else True
        substituted = state.status
        if {"xtrace", "verbose"} & state.options:
            state.write(2, None)
        if not opened:
            return [_unopened(state, before)]
        if not words:
            if not command.words and not any(part for one in command.assignments for part in one.word.parts):
                substituted = 0
            state.status = 0
            for one in command.assignments:
                self.assign(state, one.name, single(self, state, one.word, assigned=True), adds=one.adds)
            if not _substitutes(command):
                state.status = 0
            elif not command.assignments:
                state.status = substituted
            state.fds = before
            return [state]
        name = words[0]
        if isinstance(name, Hole):
            raise Stop(KNOW, f"a command whose name is {name.why}", needs="write its name")
        kept = dict(state.variables) if command.assignments else None
        for one in command.assignments:
            self.assign(state, one.name, single(self, state, one.word, assigned=True), adds=one.adds, exported=True)
        out = self.invoke(state, words)
        permanent = name == "exec" and len(words) == 1
        for after in out:
            if kept is not None:
                after.variables = dict(kept)
            if not permanent:
                after.fds = dict(before)
        return out

    def assign(self, state: State, name: str, value: Field, *, adds: bool, exported: bool | None = None) -> None:
        known = None if isinstance(value, Hole) else str(value)
        if adds:
            before = state.value(name)
            known = None if before is None or known is None else before + known
        if name == "IFS" and known is None:
            raise Stop(KNOW, "the value of `IFS` is not known")
        state.assign(name, known, exported=exported)

    def invoke(self, state: State, words: list[Field], *, functions: bool = True, builtins: bool = True) -> list[State]:
        """Run one command by its words."""
        name = str(words[0])
        if functions and name in state.functions:
            return self.call(state, state.functions[name], words[1:])
        if builtins and "posix" in state.options and name in builtin.BASH_ONLY:
            raise Stop(KNOW, f"`{name}`, which a plain `sh` may not have", needs="run it with `bash -c`")
        if builtins and (found := builtin.BUILTINS.get(name)) is not None:
            return found(self, state, words)
        if builtins and builtin.is_special(name):
            raise Stop(KNOW, f"the builtin `{name}` is not read", needs="do without it")
        return program.start(self, state, words)

    def call(self, state: State, body: Command, words: list[Field]) -> list[State]:
        if state.depth >= CALLS:
            raise Stop(KNOW, f"more than {CALLS} function calls in each other")
        if any(isinstance(word, Hole) for word in words):
            raise Stop(KNOW, "a function's argument that is not known")
        before, loops = state.parameters, state.loops
        state.parameters = tuple(str(word) for word in words)
        state.depth += 1
        state.loops = 0
        state.returns += 1
        out = self.command(state, body)
        for after in out:
            after.parameters, after.loops = before, loops
            after.depth -= 1
            after.returns -= 1
            if after.flow == "return":
                after.flow = ""
            elif after.flow in ("break", "continue"):
                raise Stop(KNOW, "a jump out of a function")
        return out

    def capture(self, state: State, script: Script) -> bytes | None:
        """See `expand.Runner`: one way in, one way out, else the value has several."""
        self.steps += 1
        too_many(self.steps)
        key = self.buffer()
        inner = state.copy()
        inner.buffers[key] = b""
        inner.fds[1] = End("buffer", key=key)
        inner.options -= {"errexit"}  # not inherited by a command substitution
        found = self.script([inner], script)
        outputs = {after.buffers.get(key) for after in found}
        output = outputs.pop() if len(outputs) == 1 else None
        if not isinstance(output, bytes):
            output = None
        first = found[0]
        if any(after.disk != first.disk or after.opaque != first.opaque for after in found):
            raise Stop(KNOW, "a command substitution that may change files, or not")
        back = restore(state, first)
        for after in found[1:]:
            back.acts.update(after.acts)
        statuses = {after.status for after in found}
        state.disk, state.acts, state.opaque, state.shaken = back.disk, back.acts, back.opaque, back.shaken
        state.status = statuses.pop() if len(statuses) == 1 else None
        state.buffers, state.listed = back.buffers, back.listed
        return output


def _substitutes(command: Simple) -> bool:
    return any(isinstance(part, Substitution) for one in command.assignments for part in one.word.parts)


def _unopened(state: State, before: dict[int, End]) -> State:
    """A redirection failed: the command does not run, and the shell complains."""
    state.write(2, None)
    state.fds = before
    state.write(2, None)
    state.status = 1
    return state


def looped(state: State, body: Callable[[State], list[State]]) -> list[State]:
    """A loop, in which `break` and `continue` mean something."""
    state.loops += 1
    out = body(state)
    for after in out:
        after.loops -= 1
    return out


def _leave(back: State, after: State) -> State:
    back.status = after.status
    if after.flow in ("break", "continue", "return"):
        raise Stop(KNOW, "a jump out of a subshell")
    return back


def _negate(state: State) -> list[State]:
    if state.status is not None and state.status != LIKELY:
        state.status = int(state.status == 0)
        return [state]
    other = state.copy()
    state.status, other.status = 0, 1
    return [state, other]


def _jumped(state: State, live: list[State]) -> list[State]:
    """Handle `break` and `continue` at the end of a round: what stays goes to `live`, what leaves the loop is returned."""
    if state.flow in ("break", "continue"):
        if state.levels > 1:
            state.levels -= 1
            return [state]
        ends = state.flow == "break"
        state.flow, state.levels = "", 0
        if ends:
            state.status = 0
            return [state]
        live.append(state)
        return []
    if state.flow:
        return [state]
    live.append(state)
    return []


def _computed(state: State, command: Compute) -> list[State]:
    value = compute(state, command.text)
    state.status = None if value is None else int(value == 0)
    return [state]


def _race(way: State, before: State, seen: list[tuple[set[str], set[str]]], pipeline: Pipeline) -> None:
    """Refuse a pipeline in which a stage looks at what another changes.

    A later stage may delete or rewrite a file that an earlier one looks at (`find | xargs rm`): it does so because of what it was
    told, so that the earlier one has seen it; only its bytes are then not known.
    """
    for one, (_, changed) in enumerate(seen):
        for other, (looked, also) in enumerate(seen):
            if other == one or not changed:
                continue
            for path in changed:
                folder = (path.rpartition("/")[0] or "/") + "/"
                used = path in looked or folder in looked or any(item.startswith(path + "/") for item in looked)
                if path not in also and not used:
                    continue
                file = before.look(path).kind is EntryKind.FILE
                if other < one and path not in also and file and way.look(path).kind in (EntryKind.FILE, EntryKind.ABSENT):
                    if path in way.disk and way.disk[path].kind is EntryKind.FILE:
                        way.disk[path] = replace(way.disk[path], data=None)
                    continue
                raise Stop(
                    KNOW,
                    f"the stages of a pipeline run at once, and two of them use `{way.show(path)}`",
                    pipeline.start,
                    pipeline.end,
                    needs="do it in two commands",
                )
