"""What does a `git` command line do? By sub-command; what is not plain is refused.

- The repository is read through the snapshot, by the same questions as `cxi.effects.git` asks. Where it runs programs (drivers,
  filters, a monitor, signing), the command is refused; hooks that would run are atoms.
- After the text has changed files itself, what the index would get is not read from the disk: then a folder is a pattern.
- What goes to or comes from another machine is `git.push`, `git.fetch` and `net.connect`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.canonical import JsonValue
from cxi.effects.base import Atom
from cxi.effects.checkout import plan_checkout
from cxi.effects.given import GivenPath
from cxi.effects.place import join
from cxi.effects.repository import Repository, open_repository, parse_raw
from cxi.effects.shell.call import Call, execute, pattern_below
from cxi.effects.shell.field import Field, Hole
from cxi.effects.shell.grammar import Arguments, Grammar, make, parse
from cxi.effects.shell.state import ABSENT, FOLDER, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.show import plan_diff_staged, plan_diff_unstaged, plan_status
from cxi.errors import Refused
from cxi.manifest import CanonicalCall
from cxi.values.base import EntryKind

_CALL: Final = CanonicalCall("shell", "git", (), {})
_SETTINGS: Final = re.compile(
    r"(user\.(name|email)|color\..*|core\.quotepath|advice\..*|init\.defaultbranch|core\.pager=cat)", re.IGNORECASE
)
_PROGRAMS: Final = re.compile(
    r"(diff\..*\.(textconv|command)|diff\.external|filter\..*\.(clean|smudge|process)|core\.fsmonitor|commit\.gpgsign|tag\.gpgsign"
    r"|log\.showsignature|gpg\..*|core\.sshcommand|core\.gitproxy|credential\..*|credential\.helper|merge\..*\.driver|uploadpack\..*"
    r"|remote\..*\.(uploadpack|receivepack|vcs|proxy)|url\..*|pager\..*|core\.alternaterefscommand)"
)


@dataclass(slots=True)
class _Git:
    """One command: where it runs, what it was given."""

    call: Call
    state: State
    where: str
    repository: Repository
    given: Arguments
    clean: bool

    def target(self, text: str, *, follow: bool = False) -> str:
        """The real path of an operand."""
        place = self.state.resolve(text, base=self.where, follow=follow)
        if place.problem:
            return posixpath.normpath(join(self.where, text))
        return place.path

    def operands(self) -> list[str]:
        return [self.call.known(field) for field in self.given.operands]

    def atoms(self, found: tuple[Atom, ...] | Refused) -> tuple[Atom, ...]:
        """The atoms of a plan.

        Raises:
            Stop: it was refused.
        """
        if isinstance(found, Refused):
            reason = found.reasons[0]
            raise Stop(reason.code, f"git: {reason.detail}", needs=reason.needs)
        return found

    def add(self, atoms: tuple[Atom, ...]) -> None:
        for atom in atoms:
            self.state.act(atom.kind, atom.target, atom.attributes, pattern=atom.pattern)

    def hooks(self, *names: str) -> None:
        self.add(self.atoms(self.repository.hooks(*names)))

    def act(self, kind: str, target: str, attributes: Mapping[str, JsonValue] | None = None, *, pattern: bool = False) -> None:
        shared: dict[str, JsonValue] = {"repository": self.repository.place.target}
        self.state.act(kind, target, {**(attributes or {}), **shared}, pattern=pattern)

    def index(self, path: str, operation: str) -> None:
        """A path of the index is staged or unstaged; a folder is a pattern."""
        shown = self.state.show(path)
        if self.state.look(path).kind is EntryKind.FOLDER:
            self.act("git.index", pattern_below(shown), {"op": operation}, pattern=True)
        else:
            self.act("git.index", shown, {"op": operation, "maybe": True})  # what is ignored or unchanged is not

    def branch(self) -> str:
        head = self.repository.head()
        if isinstance(head, Refused):
            raise Stop(KNOW, f"git: {head.reasons[0].detail}")
        return head[0]


_Plan: TypeAlias = Callable[[_Git], None]


def git(call: Call) -> list[State]:
    """Finds the sub-command and what it is told."""
    state = call.state
    words = list(call.words[1:])
    where = state.cwd
    while words and isinstance(words[0], str) and words[0].startswith("-"):
        option = str(words.pop(0))
        if option in ("--version", "-v") and not words:
            execute(state, "git", call.words)
            return call.settle()
        if option == "-C" and words:
            where = posixpath.join(where, call.known(words.pop(0)))
        elif option == "-c" and words:
            setting = call.known(words.pop(0))
            if not _SETTINGS.fullmatch(setting.partition("=")[0]) and setting.lower() != "core.pager=cat":
                raise Stop(KNOW, f"`git -c {setting}` changes what git does")
        elif option not in ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-advice"):
            raise Stop(KNOW, f"`git {option}` is not read")
    if not words or isinstance(words[0], Hole):
        raise Stop(KNOW, "`git` without a sub-command that is known")
    name = str(words.pop(0))
    body = call.grammar.facts.get("commands")
    spec = body.get(name) if isinstance(body, dict) else None
    if spec is None:
        raise Stop(KNOW, f"`git {name}` is not read", needs="use the git tools, or a sub-command that is read")
    return _run(call, name, spec, words, where)


def _run(call: Call, name: str, spec: object, words: list[Field], where: str) -> list[State]:
    state = call.state
    grammar: Grammar = make(f"git {name}", spec)
    given = parse(grammar, words)
    here = state.resolve(where)
    execute(state, "git", call.words)
    state.status = None
    if here.problem or state.look(here.path).kind is not EntryKind.FOLDER:
        state.status = 128
        return [state]
    if name == "init":
        _init(call, given, here.path)
        return [state]
    top = here.path
    while state.look(join(top, ".git")).kind is EntryKind.ABSENT:
        if top == "/":
            if state.opaque:
                raise Stop(KNOW, "a repository that a program may have made")
            state.status = 128
            return [state]
        top = posixpath.dirname(top)
    if any(path == join(top, ".git") or path.startswith(join(top, ".git/")) for path in state.disk):
        raise Stop(KNOW, "git after the text changed its folder", needs="do it in a call of its own")
    repository = open_repository(state.snapshot, GivenPath("", state.show(top), top))
    if isinstance(repository, Refused):
        raise Stop(repository.reasons[0].code, f"git: {repository.reasons[0].detail}")
    harmful = [key for key in repository.settings if _PROGRAMS.fullmatch(key) and repository.setting(key) not in ("", "false")]
    programs = [
        key for key in harmful if not key.startswith(("credential.", "url.", "remote.", "core.sshcommand", "core.gitproxy"))
    ]
    network = name in ("push", "fetch")
    if (harmful if network else programs) and grammar.facts.get("plumbing") is not True:
        raise Stop(KNOW, f"git runs programs here: `{(harmful if network else programs)[0]}`", needs="use the git tools")
    if repository.included and network:
        raise Stop(KNOW, "git's settings include other files")
    done = any(key[0].startswith("git.") for key in state.acts)
    clean = not state.opaque and not done and not any(path.startswith(join(top, "")) for path in state.disk)
    plan = _PLANS[grammar.does]
    plan(_Git(call, state, here.path, repository, given, clean))
    return [state]


def _init(call: Call, given: Arguments, where: str) -> None:
    state = call.state
    if len(given.operands) > 1:
        raise Stop(KNOW, "`git init` of several folders")
    text = call.known(given.operands[0]) if given.operands else "."
    place = state.resolve(text, base=where)
    if place.problem or given.has("bare", "template", "separate-git-dir"):
        raise Stop(KNOW, "`git init` that is not plain")
    if state.look(place.path).kind is EntryKind.ABSENT:
        state.put(place.path, FOLDER)
    folder = join(place.path, ".git")
    state.act("git.config", state.show(folder), {"op": "init"})
    state.act("fs.create", pattern_below(state.show(folder)), {"maybe": True}, pattern=True)
    state.act("fs.mkdir", state.show(folder))
    state.act("fs.mkdir", pattern_below(state.show(folder)), {"maybe": True}, pattern=True)
    state.cloud()


# --- reading


def _reads(one: _Git) -> None:
    one.state.read(join(one.repository.path, ".git"))
    for text in one.operands():
        place = one.state.resolve(text, base=one.where)
        if not place.problem and one.state.look(place.path).kind in (EntryKind.FILE, EntryKind.FOLDER):
            one.state.read(place.path)


def _status(one: _Git) -> None:
    if one.clean:
        one.add(one.atoms(plan_status(one.repository, _CALL, {})))
    else:
        one.state.read(one.repository.path)
        one.hooks("post-index-change")


def _diff(one: _Git) -> None:
    if one.given.has("no-index"):
        raise Stop(KNOW, "`git diff --no-index`", needs="use diff")
    for value in one.given.all("output"):
        text = one.call.known(value)
        one.call.write(posixpath.join(one.where, text), None)
    if one.clean and not one.given.operands:
        plan = plan_diff_staged if one.given.has("cached", "staged") else plan_diff_unstaged
        one.add(one.atoms(plan(one.repository, _CALL, {})))
        return
    one.hooks("post-index-change")
    _reads(one)
    # Which of the tracked files differ is git's to find out; what it shows is among them.
    index = one.repository.index()
    if isinstance(index, Refused):
        raise Stop(KNOW, f"git: {index.reasons[0].detail}")
    for path in index:
        one.state.read(one.repository.absolute(path))


def _search(one: _Git) -> None:
    one.call.tree(one.where)


# --- the index and commits


def _paths(one: _Git, *, whole: bool) -> list[str]:
    """The paths that a command names; none where it names the whole work tree."""
    texts = one.operands()
    for text in texts:
        if text.startswith(":") or set(text) & set("*?[\\"):
            raise Stop(KNOW, f"`{text}` is a pattern to git", needs="name each file")
    return [one.target(text) for text in texts] or ([one.repository.path] if whole else [])


def _add(one: _Git) -> None:
    if one.given.has("p", "i", "e"):
        raise Stop(KNOW, "`git add` that asks")
    if one.given.has("n"):
        return
    whole = one.given.has("A", "u") and not one.given.operands
    for path in _paths(one, whole=whole):
        kind = one.state.look(path).kind
        if kind in (EntryKind.FILE, EntryKind.LINK):
            one.state.read(path)
        one.index(path, "stage")
    one.hooks("post-index-change")


def _commit(one: _Git) -> None:
    given = one.given
    if not given.has("m", "F", "C", "no-edit") and not given.has("dry-run"):
        raise Stop(KNOW, "`git commit` without its message starts an editor", needs="use `-m`")
    if given.has("e", "c", "p", "i", "S", "gpg-sign", "interactive", "t"):
        raise Stop(KNOW, "`git commit` that asks, edits or signs")
    under_way = one.repository.under_way()
    if under_way is not None:
        one.atoms(under_way)
    ref = one.branch()
    branch = ref.removeprefix("refs/heads/")
    if given.has("dry-run"):
        _status(one)
        return
    if given.has("a"):
        _modified(one, "stage")
    for path in _paths(one, whole=False):
        one.index(path, "stage")
    text = given.last("m")
    attributes: dict[str, JsonValue] = {"branch": branch}
    if isinstance(text, str):
        attributes["message"] = text
    one.act("git.commit", branch, attributes)
    one.act("git.ref", ref, {"op": "update", "branch": branch, "ref": ref})
    skipped = given.has("n", "no-verify")
    hooks = ["prepare-commit-msg", "post-commit", "reference-transaction", "post-index-change", "pre-auto-gc"]
    hooks += [] if skipped else ["pre-commit", "commit-msg", "pre-merge-commit"]
    hooks += ["post-rewrite"] if given.has("amend") else []
    one.hooks(*hooks)
    for value in given.all("F"):
        one.call.read(posixpath.join(one.where, one.call.known(value)))


def _modified(one: _Git, operation: str) -> None:
    """The tracked files that were changed."""
    answer = one.repository.ask("modified") if one.clean else None
    if answer is None:
        one.act("git.index", pattern_below(one.repository.place.target), {"op": operation}, pattern=True)
        return
    for path, _, _ in parse_raw(answer):
        one.index(one.repository.absolute(path), operation)


def _reset(one: _Git) -> None:
    given = one.given
    if given.has("soft", "merge", "keep", "p"):
        raise Stop(KNOW, "`git reset` in a mode that is not read")
    operands = one.operands()
    paths = [text for text in operands if one.state.look(one.target(text)).kind is not EntryKind.ABSENT]
    if given.has("hard"):
        if paths:
            raise Stop(KNOW, "`git reset --hard` of paths")
        _hard(one, operands[0] if operands else "HEAD")
        return
    if len(paths) < len(operands) and operands != ["HEAD"] and operands[:1] != ["HEAD"]:
        raise Stop(KNOW, "`git reset` to a revision", needs="use the git tools")
    for path in [one.target(text) for text in paths] or [one.repository.path]:
        one.index(path, "unstage")
    one.hooks("post-index-change")


def _hard(one: _Git, revision: str) -> None:
    plain = re.fullmatch(r"[\w./~^@{}][\w./~^@{}-]*", revision)
    commit = one.repository.resolve(f"{revision}^{{commit}}") if plain else None
    answer = one.repository.ask("differs", commit) if commit is not None and one.clean else None
    if answer is None:
        raise Stop(KNOW, "what `git reset --hard` would change is not known", needs="do it in a call of its own")
    for path, new, _ in parse_raw(answer):
        _rewrite(one, one.repository.absolute(path), there=new is not None)
        one.index(one.repository.absolute(path), "unstage")
    one.act("git.index", pattern_below(one.repository.place.target), {"op": "unstage"}, pattern=True)
    if revision != "HEAD":
        one.act("git.ref", one.branch(), {"op": "update"})
    one.hooks("post-index-change", "reference-transaction", "post-checkout")


def _rewrite(one: _Git, path: str, *, there: bool) -> None:
    """A work tree file gets the bytes that git has; not known here."""
    node = one.state.look(path)
    if not there:
        if node.kind is not EntryKind.ABSENT:
            one.state.put(path, ABSENT)
        return
    mode = node.mode if node.kind is EntryKind.FILE else 0o644
    one.state.put(path, Node(EntryKind.FILE, mode, None))


def _restore(one: _Git) -> None:
    """`git restore` and `git checkout --`: files get the bytes of the index or a commit."""
    if one.given.has("p", "s", "source", "ours", "theirs", "merge"):
        raise Stop(KNOW, "`git restore` that asks, or of another revision")
    paths = _paths(one, whole=False)
    if one.given.has("S", "staged"):
        for path in paths:
            one.index(path, "unstage")
        one.hooks("post-index-change")
        if not one.given.has("W", "worktree"):
            return
    _from_index(one, paths)


def _from_index(one: _Git, paths: list[str]) -> None:
    index = one.repository.index()
    if isinstance(index, Refused):
        raise Stop(KNOW, f"git: {index.reasons[0].detail}")
    answer = one.repository.ask("modified") if one.clean else None
    changed = {one.repository.absolute(path) for path, _, _ in parse_raw(answer)} if answer is not None else None
    tracked = [one.repository.absolute(path) for path in index]
    for path in paths:
        chosen = [file for file in tracked if file == path or file.startswith(join(path, ""))]
        for file in chosen:
            if changed is None or file in changed:
                _rewrite(one, file, there=True)
    one.hooks("post-index-change", "post-checkout")


def _checkout(one: _Git) -> None:
    given = one.given
    if given.has(
        "p", "ours", "theirs", "merge", "orphan", "detach", "d", "t", "track", "conflict", "f", "force", "discard-changes"
    ):
        raise Stop(KNOW, "`git checkout` in a mode that is not read")
    created = given.last("b", "c")
    if given.has("B", "C"):
        raise Stop(KNOW, "`git checkout` in a mode that is not read")
    operands = one.operands()
    if created is not None:
        if operands not in ([], ["HEAD"]):
            raise Stop(KNOW, "`git checkout -b` from a revision", needs="use the git tools")
        _create(one, one.call.known(created))
        one.act("git.checkout", one.call.known(created), {"branch": one.call.known(created)})
        one.act("git.ref", "HEAD", {"op": "update", "ref": "HEAD"})
        one.hooks("reference-transaction", "post-checkout", "post-index-change")
        return
    words = [str(word) for word in one.call.words]
    if "--" in words:
        before = words[words.index("--") - 1]
        if len(operands) != len(words) - words.index("--") - 1:
            raise Stop(KNOW, f"`git checkout {before} --` of a revision", needs="use the git tools")
        _from_index(one, _paths(one, whole=False))
        return
    if len(operands) == 1 and one.clean:
        plain = re.fullmatch(r"[\w./][\w./-]*", operands[0])
        if plain and one.repository.resolve(f"{operands[0]}^{{commit}}") is not None:
            if one.state.look(one.target(operands[0])).kind is not EntryKind.ABSENT:
                raise Stop(KNOW, f"`{operands[0]}` is a revision and a path", needs="use `--`")
            one.add(one.atoms(plan_checkout(one.repository, _CALL, {"branch": f"={operands[0]}"})))
            one.state.cloud()
            return
    index = one.repository.index()
    tracked = set() if isinstance(index, Refused) else {one.repository.absolute(path) for path in index}
    places = [one.target(text) for text in operands]
    known = all(path in tracked or one.state.look(path).kind is not EntryKind.ABSENT for path in places)
    if places and known and "switch" not in words:
        if any(re.fullmatch(r"[\w./-]+", text) and one.repository.resolve(text) is not None for text in operands):
            raise Stop(KNOW, "`git checkout` of a name that is a revision too", needs="use `--`")
        _from_index(one, _paths(one, whole=False))
        return
    raise Stop(KNOW, "`git checkout` of what is not there", needs="use the git tools")


def _create(one: _Git, name: str) -> None:
    ref = f"refs/heads/{name}"
    if name.startswith("-") or one.repository.ask("ref-format", ref) is None or "@{" in name:
        raise Stop(KNOW, f"`{name}` is no name of a branch")
    one.act("git.ref", ref, {"op": "create", "branch": name, "ref": ref})


def _branch(one: _Git) -> None:
    given = one.given
    operands = one.operands()
    if given.has("d", "D"):
        for name in operands:
            one.act("git.ref", f"refs/heads/{name}", {"op": "delete", "branch": name})
        one.hooks("reference-transaction")
    elif given.has("m", "M"):
        old = operands[0] if len(operands) == 2 else one.branch().removeprefix("refs/heads/")
        if not operands or len(operands) > 2:
            raise Stop(KNOW, "`git branch -m` that is not plain")
        one.act("git.ref", f"refs/heads/{old}", {"op": "delete", "branch": old})
        _create(one, operands[-1])
        one.act("git.config", f"branch.{old}", {"op": "rename"})
        one.act("git.ref", "HEAD", {"op": "update"})
        one.hooks("reference-transaction")
    elif operands and not given.has("list", "l", "contains", "merged", "no-merged", "a", "r", "show-current", "v"):
        if given.has("f", "t", "u", "track", "unset-upstream", "edit-description", "c", "C"):
            raise Stop(KNOW, "`git branch` in a mode that is not read")
        _create(one, operands[0])
        one.hooks("reference-transaction")
    elif given.has("u", "unset-upstream", "edit-description", "f", "c", "C"):
        raise Stop(KNOW, "`git branch` in a mode that is not read")
    else:
        one.state.read(join(one.repository.path, ".git"))


def _tag(one: _Git) -> None:
    given = one.given
    operands = one.operands()
    if given.has("s", "u", "v", "e") or (given.has("a") and not given.has("m", "F")):
        raise Stop(KNOW, "`git tag` that signs or edits")
    if given.has("d"):
        for name in operands:
            one.act("git.ref", f"refs/tags/{name}", {"op": "delete"})
    elif operands and not given.has("l", "contains", "points-at"):
        one.act("git.ref", f"refs/tags/{operands[0]}", {"op": "create"})
    else:
        one.state.read(join(one.repository.path, ".git"))
        return
    one.hooks("reference-transaction")


def _remove(one: _Git) -> None:
    if one.given.has("n"):
        return
    index = one.repository.index()
    if isinstance(index, Refused):
        raise Stop(KNOW, f"git: {index.reasons[0].detail}")
    for path in _paths(one, whole=False):
        files = [one.repository.absolute(name) for name in index]
        chosen = [file for file in files if file == path or (one.given.has("r") and file.startswith(join(path, "")))]
        for file in chosen:
            one.act("git.index", one.state.show(file), {"op": "stage", "gone": True})
            if not one.given.has("cached"):
                _rewrite(one, file, there=False)
                _prune(one, posixpath.dirname(file))
    one.hooks("post-index-change")


def _prune(one: _Git, folder: str) -> None:
    """Folders that become empty go, but not the work tree itself."""
    while folder.startswith(join(one.repository.path, "")) and not one.state.names(folder):
        one.state.put(folder, ABSENT)
        folder = posixpath.dirname(folder)


def _rename(one: _Git) -> None:
    """`git mv` of one tracked file to a free place."""
    operands = one.operands()
    if len(operands) != 2 or one.given.has("f", "k"):
        raise Stop(KNOW, "`git mv` that is not of one file to another", needs="move one file at a time")
    source, target = (one.target(text) for text in operands)
    if one.state.look(target).kind is EntryKind.FOLDER:
        target = join(target, posixpath.basename(source))
    node = one.state.look(source)
    index = one.repository.index()
    free = one.state.look(target).kind is EntryKind.ABSENT and one.state.look(posixpath.dirname(target)).kind is EntryKind.FOLDER
    if node.kind is not EntryKind.FILE or not free or isinstance(index, Refused):
        raise Stop(KNOW, "`git mv` that is not of one file to another", needs="move one file at a time")
    if source not in {one.repository.absolute(path) for path in index}:
        return
    one.state.put(target, replace(node, origin=source))
    one.state.put(source, ABSENT)
    one.index(source, "stage")
    one.index(target, "stage")
    one.hooks("post-index-change")


def _settings(one: _Git) -> None:
    given = one.given
    operands = one.operands()
    if given.has("f", "blob", "edit", "e", "system"):
        raise Stop(KNOW, "`git config` of another file")
    if given.has("get", "get-all", "list", "l", "get-regexp", "show-origin") or (
        len(operands) < 2 and not given.has("unset", "unset-all")
    ):
        one.state.read(join(one.repository.path, ".git"))
        return
    if given.has("rename-section", "remove-section", "replace-all"):
        raise Stop(KNOW, "`git config` in a mode that is not read")
    key = operands[0]
    if given.has("global"):
        one.act("git.config", key, {"op": "global"})
        home = one.state.value("HOME")
        if not home:
            raise Stop(KNOW, "whose settings `--global` changes is not known")
        one.state.act("fs.write", one.state.show(join(home, ".gitconfig")), {"maybe": True})
        one.state.act("fs.create", one.state.show(join(home, ".gitconfig")), {"maybe": True})
    else:
        one.act("git.config", key, {"op": "unset" if given.has("unset", "unset-all") else "set"})


def _remote(one: _Git) -> None:
    operands = one.operands()
    if not operands or operands[0] in ("show", "get-url", "-v"):
        if operands[:1] == ["show"] and len(operands) > 1:
            raise Stop(KNOW, "`git remote show` asks the other machine")
        one.state.read(join(one.repository.path, ".git"))
        return
    if operands[0] in ("add", "remove", "rm", "set-url") and len(operands) in (2, 3):
        attributes: dict[str, JsonValue] = {"op": operands[0], "remote": operands[1]}
        if len(operands) == 3:
            attributes["url"] = operands[2]
        one.act("git.config", f"remote.{operands[1]}", attributes)
        return
    raise Stop(KNOW, f"`git remote {operands[0]}` is not read")


def _transfer(one: _Git) -> None:
    """`git push` and `git fetch` over https, to a remote that the settings name."""
    pushes = one.call.words[1:2] == ["push"] or "push" in [str(word) for word in one.call.words]
    operands = one.operands()
    name = operands[0] if operands else "origin"
    url = one.repository.setting(f"remote.{name}.pushurl") if pushes else ""
    url = url or one.repository.setting(f"remote.{name}.url")
    found = re.fullmatch(r"https://(?:[^/@]*@)?([A-Za-z0-9.-]+)(?::(\d+))?/.*", url)
    if found is None or name.startswith("-"):
        raise Stop(KNOW, f"where the remote `{name}` is is not known, or not https")
    one.act(
        "git.push" if pushes else "git.fetch",
        name,
        {"remote": name, "url": url, **({"force": True} if one.given.has("f") else {})},
    )
    one.state.act("net.connect", f"{found[1].lower()}:{found[2] or 443}")
    one.state.act("proc.exec", "git", {"argv": ["git", "remote-https", name, url], "inputs_writable": False})
    one.act("git.ref", f"refs/remotes/{name}/*", {"op": "update", "maybe": True})
    one.hooks(*(("pre-push", "reference-transaction") if pushes else ("reference-transaction",)))


_PLANS: Final[Mapping[str, _Plan]] = MappingProxyType(
    {
        "reads": _reads,
        "status": _status,
        "diff": _diff,
        "search": _search,
        "add": _add,
        "commit": _commit,
        "reset": _reset,
        "restore": _restore,
        "checkout": _checkout,
        "branch": _branch,
        "tag": _tag,
        "remove": _remove,
        "rename": _rename,
        "settings": _settings,
        "remote": _remote,
        "transfer": _transfer,
        "init": _reads,
    }
)
