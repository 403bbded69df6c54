"""What would a git server's tool really do?

- Kind `git`: the tools of `mcp-server-git`, which runs `git` and GitPython. `op` is a literal: `=add`, `=commit`, …
- `QUESTIONS` are the only things that a world may ask git: plumbing that reads. None of them runs a hook, a filter, a textconv, a
  monitor or a transport of the repository; the world sees to that (`cxi.sinks.disk`).
- Whatever program git would run on the way is an atom: hooks (`git.hook` and `proc.exec`), filters, textconv and external diff
  drivers, a file system monitor (`proc.exec`).
- Refused: worktrees, submodules in reach, sparse and partial clones, SHA-256 repositories, reftables, merges under way,
  conflicts; and pathspecs, revisions that name more than one thing, and whatever git itself would refuse.
- What a checkout does to the index follows from its `git.checkout` atom: each path that changes gets the new tree's entry.

    inputs: {op: =add, repository: repo_path, files: files}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from cxi.effects.base import Atom, Effect, Snapshot
from cxi.effects.checkout import plan_branch, plan_checkout
from cxi.effects.commit import plan_commit
from cxi.effects.given import give_path, give_text
from cxi.effects.repository import Repository, open_repository
from cxi.effects.show import plan_branch_list, plan_diff, plan_diff_staged, plan_diff_unstaged, plan_log, plan_show, plan_status
from cxi.effects.stage import plan_add, plan_reset
from cxi.errors import Code, Refused
from cxi.manifest import Assurance, CanonicalCall

# Names and blobs only; submodules are compared by their HEAD, so that no git starts in them.
_RAW: Final = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty")

# Question to the arguments of git. `{0}`, `{1}` are the question's own arguments in their places, `{*}` all of them at the end.
QUESTIONS: Final[MappingProxyType[str, tuple[str, ...]]] = MappingProxyType(
    {
        "layout": ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--is-bare-repository"),
        "config": ("config", "--list", "--includes", "--show-scope", "-z"),
        "origins": ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z"),
        "hooks-path": ("config", "--type=path", "--show-scope", "-z", "--get-all", "core.hooksPath"),
        "symbolic": ("symbolic-ref", "-q", "{0}"),
        "resolve": ("rev-parse", "--verify", "-q", "--end-of-options", "{0}"),
        "type": ("cat-file", "-t", "{0}"),
        "commit": ("cat-file", "commit", "{0}"),
        "blob": ("cat-file", "blob", "{0}"),
        "ref-format": ("check-ref-format", "{0}"),
        "index": ("ls-files", "--stage", "-z"),
        "index-flags": ("ls-files", "-v", "-z"),
        "tracked": ("ls-files", "-z", "--", "{*}"),
        "tree": ("ls-tree", "-r", "-z", "--full-tree", "{0}"),
        # An entry that is only intended (`add -N`) is not staged: so git sees it when it commits.
        "staged": ("diff-index", "--cached", "--ita-invisible-in-index", *_RAW, "{0}"),
        "modified": ("diff-files", *_RAW, "--", "{*}"),
        "differs": ("diff-index", *_RAW, "{0}"),
        "changed": ("diff-tree", "-r", *_RAW, "{0}", "{1}"),
        "untracked": ("ls-files", "--others", "--exclude-standard", "-z", "--", "{*}"),
        "attributes": ("check-attr", "-z", "-a", "--", "{*}"),
        "attributes-staged": ("check-attr", "-z", "-a", "--cached", "--", "{*}"),
    }
)

# Questions that compare work tree files, so that git would convert them: the world takes every filter driver away first.
CONVERTING: Final = frozenset({"modified", "differs"})

_Plan: TypeAlias = Callable[[Repository, CanonicalCall, Mapping[str, str]], tuple[Atom, ...] | Refused]

_OPERATIONS: Final[MappingProxyType[str, _Plan]] = MappingProxyType(
    {
        "status": plan_status,
        "diff_unstaged": plan_diff_unstaged,
        "diff_staged": plan_diff_staged,
        "diff": plan_diff,
        "log": plan_log,
        "show": plan_show,
        "branch": plan_branch_list,
        "add": plan_add,
        "commit": plan_commit,
        "reset": plan_reset,
        "create_branch": plan_branch,
        "checkout": plan_checkout,
    }
)


class GitAdapter:
    """Reads the calls of a git server."""

    kind: Final = "git"
    version: Final = 1
    inputs: Final = frozenset({"op", "repository", "files", "branch", "base", "revision", "message"})

    def plan(self, call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> Effect | Refused:
        """What the call would do to the repository, its work tree and the machine."""
        operation = give_text(call, inputs, "op")
        if isinstance(operation, Refused):
            return operation
        plan = _OPERATIONS.get(operation or "")
        if plan is None:
            return Refused.of(Code.EFFECT_UNSUPPORTED, f"git operation `{operation}` is not known", where="op")
        place = give_path(call, inputs, "repository", snapshot)
        if isinstance(place, Refused):
            return place
        repository = open_repository(snapshot, place)
        if isinstance(repository, Refused):
            return repository
        atoms = plan(repository, call, inputs)
        if isinstance(atoms, Refused):
            return atoms
        if atoms:
            # Whatever reads the index asks the monitor, and which commands do differs between versions.
            atoms = (*atoms, *(atom for atom in repository.monitor() if atom not in atoms))
        for atom in atoms:
            if not atom.target.isprintable() and not _encodes(atom.target):
                return Refused.of(Code.EFFECT_UNSUPPORTED, f"the name {atom.target!r} is not UTF-8")
        return Effect(f"{self.kind}/{self.version}", atoms, Assurance.CHECKED)


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
