"""What do `find` and `ls` see, and what does `find` do with it?

- The expression is read whole. A test that the snapshot cannot answer (`-mtime`) may be true: what depends on it is `maybe`.
- `-delete` and `-exec` are done for what matches; `-exec` runs its command as the text itself would.
- Names come in the folder's own order, which is not known: only their set is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cxi.effects.place import LIMIT, join
from cxi.effects.shell.call import Call, execute
from cxi.effects.shell.field import Field, Found
from cxi.effects.shell.pattern import compiled
from cxi.effects.shell.roles import apply
from cxi.effects.shell.state import ABSENT, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.ways import merge
from cxi.values.base import EntryKind

_TYPES: Final = {"f": EntryKind.FILE, "d": EntryKind.FOLDER, "l": EntryKind.LINK}


@dataclass(frozen=True, slots=True)
class _Seen:
    """One thing that `find` looks at: its name as printed, its real path, what it is, how deep."""

    shown: str
    path: str
    node: Node
    depth: int


_Answer: TypeAlias = bool | None
_Test: TypeAlias = Callable[["_Find", _Seen], _Answer]


@dataclass(slots=True)
class _Find:
    call: Call
    states: list[State]
    maximum: int = 10_000
    minimum: int = 0
    depth_first: bool = False
    acts: bool = False
    prints: bool = False
    printed: list[str] = field(default_factory=list)
    exact: bool = True
    pruned: set[str] = field(default_factory=set)
    batches: dict[int, tuple[list[Field], list[str], bool]] = field(default_factory=dict)
    before: frozenset[str] = frozenset()  # what the text had changed before


class _Expression:
    """The reader of an expression: `-o` binds less than `-a`, which may be left out, less than `!`."""

    def __init__(self, call: Call, find: _Find, words: list[str]) -> None:
        self.call, self.find, self.words, self.at = call, find, words, 0
        self.depth = 0

    def whole(self) -> _Test:
        test = self.either() if self.words else _always
        if self.at < len(self.words):
            raise Stop(KNOW, f"`find … {self.words[self.at]}` is not read")
        return test

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self) -> str:
        if self.at >= len(self.words):
            raise Stop(KNOW, "a `find` expression that is not whole")
        self.at += 1
        return self.words[self.at - 1]

    def either(self) -> _Test:
        self.depth += 1
        if self.depth > 50:
            raise Stop(KNOW, "a `find` expression that is nested too deeply")
        tests = [self.every()]
        while self.peek() in ("-o", "-or"):
            self.at += 1
            tests.append(self.every())
        self.depth -= 1
        return tests[0] if len(tests) == 1 else _any(tests)

    def every(self) -> _Test:
        tests = [self.one()]
        while self.peek() not in ("", "-o", "-or", ")"):
            if self.peek() in ("-a", "-and"):
                self.at += 1
            tests.append(self.one())
        return tests[0] if len(tests) == 1 else _all(tests)

    def one(self) -> _Test:
        word = self.take()
        match word:
            case "!" | "-not":
                inner = self.one()
                return lambda find, seen: _negated(inner(find, seen))
            case "(":
                inner = self.either()
                if self.take() != ")":
                    raise Stop(KNOW, "a `find` expression whose bracket is not closed")
                return inner
            case "-name" | "-iname" | "-path" | "-wholename" | "-ipath" | "-lname" | "-ilname":
                return _named(word, self.take())
            case "-type" | "-xtype":
                return _typed(self.take(), followed=word == "-xtype")
            case "-maxdepth" | "-mindepth":
                number = self.take()
                if not number.isdigit():
                    raise Stop(KNOW, f"`find {word}` of what is no number")
                if word == "-maxdepth":
                    self.find.maximum = int(number)
                else:
                    self.find.minimum = int(number)
                return _always
            case "-depth" | "-d":
                self.find.depth_first = True
                return _always
            case "-empty":
                return _empty
            case "-true" | "-mount" | "-xdev" | "-noleaf" | "-warn" | "-nowarn" | "-ignore_readdir_race":
                return _always
            case "-false":
                return lambda _find, _seen: False
            case "-prune":
                return _prune
            case "-print" | "-print0" | "-ls":
                self.find.acts = True
                self.find.prints = self.find.prints or word != "-ls"
                if word == "-ls":
                    self.find.exact = False
                    return _always
                return _print if word == "-print" else _print_nul
            case "-printf":
                self.take()
                self.find.acts, self.find.exact = True, False
                return _always
            case "-quit":
                self.find.exact = False
                return lambda _find, _seen: None
            case "-delete":
                self.find.acts = self.find.depth_first = True
                return _delete
            case "-exec":
                self.find.acts = True
                return self.command()
            case _:
                pass
        if word in self.call.fact("tests"):
            self.take()
            return _unknown
        if word in self.call.fact("plain"):
            return _unknown
        raise Stop(KNOW, f"`find … {word}` is not read", needs="leave it out")

    def command(self) -> _Test:
        start = self.at
        words: list[Field] = []
        while True:
            word = self.take()
            if word == ";":
                return _each(words)
            if word == "+" and words and words[-1] == "{}":
                if any("{}" in str(other) for other in words[:-1]):
                    raise Stop(KNOW, "`find -exec … {} +` with another `{}`")
                return _batched(start, words[:-1])
            words.append(word)


def find(call: Call) -> list[State]:
    """Walks below its paths."""
    words = [call.known(field_) for field_ in call.words[1:]]
    state = call.state
    followed = False
    while words and words[0] in ("-H", "-L", "-P"):
        if words.pop(0) == "-L":
            followed = True
    paths: list[str] = []
    while words and not words[0].startswith("-") and words[0] not in ("(", "!", ")", ","):
        paths.append(words.pop(0))
    if followed:
        raise Stop(KNOW, "`find -L` follows links")
    walk = _Find(call, [state], before=frozenset(state.disk))
    test = _Expression(call, walk, words).whole()
    execute(state, "find", call.words)
    seen: list[_Seen] = []
    partial = state.opaque
    for text in paths or ["."]:
        partial = _walk(call, walk, text, seen) or partial
    if partial:
        walk.exact = False
        if walk.acts and any(word in ("-delete", "-exec") for word in words):
            raise Stop(KNOW, "`find` acts on a folder that cannot be seen whole", needs="do it in a call of its own")
    for item in _ordered(walk, seen):
        if any(item.path.startswith(join(above, "")) for above in walk.pruned):
            continue
        answer = test(walk, item) if item.depth >= walk.minimum else False
        if not walk.acts and answer is not False:
            walk.printed.append(item.shown)
            walk.exact = walk.exact and answer is True
    for words_, names, certain in walk.batches.values():
        if names:
            _run(walk, [*words_, *(Found(name) for name in names)], certain=certain)
    _refuse_growth(walk, seen)
    for after in walk.states:
        if walk.prints or not walk.acts:
            after.list_out(tuple(walk.printed), exact=walk.exact and len(walk.states) == 1)
        after.status = None
    return walk.states


def _refuse_growth(walk: _Find, seen: list[_Seen]) -> None:
    """What is made in a folder while it is walked may be walked as well, or not."""
    folders = {item.path for item in seen if item.node.kind is EntryKind.FOLDER}
    known = {item.path for item in seen}
    for state in walk.states:
        for path, node in state.disk.items():
            made = node.kind is not EntryKind.ABSENT and path not in known and path not in walk.before
            if made and path.rpartition("/")[0] in folders and state.snapshot.entry(path).kind is EntryKind.ABSENT:
                raise Stop(KNOW, f"`find` makes `{state.show(path)}` where it looks", needs="make it elsewhere")


def _ordered(walk: _Find, seen: list[_Seen]) -> list[_Seen]:
    if not walk.depth_first:
        return seen
    return sorted(seen, key=lambda item: -item.path.count("/"))


def _walk(call: Call, walk: _Find, text: str, out: list[_Seen]) -> bool:
    """Everything at and below a path, folders first; whether something could not be seen."""
    state = call.state
    place = state.resolve(text, follow=text.endswith("/"))
    node = state.look(place.path) if not place.problem else ABSENT
    if node.kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
        call.failed = True
        return state.opaque
    pending = [_Seen(text, place.path, node, 0)]
    while pending:
        item = pending.pop()
        out.append(item)
        if len(out) > LIMIT:
            call.tree(place.path)
            return True
        if item.node.kind is not EntryKind.FOLDER or item.depth >= walk.maximum:
            continue
        state.read(item.path)
        for name in state.names(item.path):
            there = join(item.path, name)
            pending.append(
                _Seen(f"{item.shown.rstrip('/') if item.shown != '/' else ''}/{name}", there, state.look(there), item.depth + 1)
            )
    return False


def _always(find_: _Find, seen: _Seen) -> _Answer:
    del find_, seen
    return True


def _unknown(find_: _Find, seen: _Seen) -> _Answer:
    del find_, seen
    return None


def _negated(answer: _Answer) -> _Answer:
    return None if answer is None else not answer


def _all(tests: list[_Test]) -> _Test:
    def test(find_: _Find, seen: _Seen) -> _Answer:
        sure: _Answer = True
        for one in tests:
            answer = one(find_, seen) if sure is True else _maybe(one, find_, seen)
            if answer is False:
                return False
            sure = None if answer is None else sure
        return sure

    return test


def _any(tests: list[_Test]) -> _Test:
    def test(find_: _Find, seen: _Seen) -> _Answer:
        sure: _Answer = False
        for one in tests:
            answer = one(find_, seen) if sure is False else _maybe(one, find_, seen)
            if answer is True:
                return True
            sure = None if answer is None else sure
        return sure

    return test


def _maybe(test: _Test, find_: _Find, seen: _Seen) -> _Answer:
    """A test that is made only perhaps: what it does, it does perhaps."""
    before = [state.copy() for state in find_.states]
    printed = len(find_.printed)
    pruned = set(find_.pruned)
    batches = {key: len(names) for key, (_, names, _) in find_.batches.items()}
    answer = test(find_, seen)
    find_.pruned = pruned
    if printed != len(find_.printed):
        find_.exact = False
    for key, (words, names, _) in list(find_.batches.items()):
        if len(names) != batches.get(key, 0):
            find_.batches[key] = (words, names, False)
    find_.states = merge([*find_.states, *before])
    return answer


def _named(option: str, text: str) -> _Test:
    if "\\" in text:
        raise Stop(KNOW, f"`find {option}` with a backslash")
    folded = option.startswith("-i")
    expression = compiled(tuple((char, True) for char in (text.lower() if folded else text)))

    def test(find_: _Find, seen: _Seen) -> _Answer:
        del find_
        if option.endswith("lname"):
            return None if seen.node.kind is EntryKind.LINK else False
        name = seen.shown if option.endswith(("path", "wholename")) else seen.shown.rstrip("/").rsplit("/", 1)[-1]
        if not name:
            return None
        return expression.fullmatch(name.lower() if folded else name) is not None

    return test


def _typed(letters: str, *, followed: bool) -> _Test:
    kinds = set(letters.split(","))

    def test(find_: _Find, seen: _Seen) -> _Answer:
        del find_
        if followed and seen.node.kind is EntryKind.LINK:
            return None
        if seen.node.kind is EntryKind.OTHER:
            return None if kinds - set(_TYPES) else False
        return any(_TYPES.get(kind) is seen.node.kind for kind in kinds)

    return test


def _empty(find_: _Find, seen: _Seen) -> _Answer:
    state = find_.states[0]
    if len(find_.states) > 1 or state.opaque:
        return None
    if seen.node.kind is EntryKind.FOLDER:
        return None if state.look(seen.path).kind is not EntryKind.FOLDER else not state.names(seen.path)
    if seen.node.kind is EntryKind.FILE:
        data = state.bytes_of(seen.node.data)
        return None if data is None else not data
    return False


def _prune(find_: _Find, seen: _Seen) -> _Answer:
    if not find_.depth_first and seen.node.kind is EntryKind.FOLDER:
        find_.pruned.add(seen.path)
    return True


def _print(find_: _Find, seen: _Seen) -> _Answer:
    find_.printed.append(seen.shown)
    return True


def _print_nul(find_: _Find, seen: _Seen) -> _Answer:
    find_.printed.append(f"{seen.shown}\0")
    return True


def _delete(find_: _Find, seen: _Seen) -> _Answer:
    if seen.shown == ".":
        return True
    done: _Answer = True
    for state in find_.states:
        node = state.look(seen.path)
        if node.kind is EntryKind.FOLDER and state.names(seen.path):
            done = False
        elif node.kind is not EntryKind.ABSENT:
            state.put(seen.path, ABSENT)
    return done if len(find_.states) == 1 else None


def _each(words: list[Field]) -> _Test:
    def test(find_: _Find, seen: _Seen) -> _Answer:
        put = [str(word).replace("{}", seen.shown) for word in words]
        _run(find_, [Found(new) if new != old else new for new, old in zip(put, words, strict=True)], certain=True)
        statuses = {state.status for state in find_.states}
        return {0: True, -1: True}.get(next(iter(statuses)) or 0) if len(statuses) == 1 and None not in statuses else None

    return test


def _batched(key: int, words: list[Field]) -> _Test:
    def test(find_: _Find, seen: _Seen) -> _Answer:
        before = find_.batches.setdefault(key, (words, [], True))
        before[1].append(seen.shown)
        return True

    return test


def _run(find_: _Find, words: list[Field], *, certain: bool) -> None:
    out: list[State] = []
    for state in find_.states:
        if not certain:
            out.append(state.copy())
        if state.opaque:
            raise Stop(KNOW, "a program that may do anything is run for every file", needs="run it on files by name")
        fds = dict(state.fds)
        for after in find_.call.machine.invoke(state, words, functions=False, builtins=False):
            after.fds = dict(fds)
            out.append(after)
    find_.states = merge(out)


def ls(call: Call) -> list[State]:
    """Prints the names in folders."""
    state = call.state
    execute(state, call.name, call.words)
    operands = list(call.given.operands) or ["."]
    for one in operands:
        apply(call, "list", one)
    if len(operands) == 1 and not call.failed and not state.opaque and not (call.given.options and not call.given.has("1")):
        place = state.resolve(call.known(operands[0]))
        if state.look(place.path).kind is EntryKind.FOLDER:
            names = [name for name in state.names(place.path) if not name.startswith(".")]
            state.list_out(tuple(names), exact=True)
    return call.settle()
