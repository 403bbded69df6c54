"""The git adapter's plans, case by case, over real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects import ADAPTERS
from cxi.effects.base import Atom, Effect
from cxi.effects.realized import differences
from cxi.effects.repository import hash_tree, parse_index
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path.resolve() / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.email", "t@example.org")
    git(repo, "config", "user.name", "t")
    write(repo, "src/a.py", "1\n")
    write(repo, "src/b.py", "1\n")
    write(repo, ".gitignore", "*.log\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "one")
    return repo


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def write(repo: Path, name: str, text: str) -> None:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_bytes(text.encode())


def plan(repo: Path, op: str, root: Path | None = None, repository: str = ".", **fields: str | list[str]) -> Effect | Refused:
    leaves = []
    inputs = {"op": f"={op}", "repository": f"={repository}"}
    for name, value in fields.items():
        inputs[name] = name
        for at, item in enumerate(value if isinstance(value, list) else [value]):
            path, contract = (f"{name}[{at}]", f"{name}[]") if isinstance(value, list) else (name, name)
            leaves.append(FieldValue(path, contract, Role.PROTECTED, Value("Text", item, item)))
    call = CanonicalCall("git", op, tuple(leaves), MappingProxyType({}))
    return ADAPTERS["git"].plan(call, inputs, RecordingSnapshot(DiskWorld(), str(root or repo)))


def atoms(effect: Effect | Refused) -> list[tuple[str, str]]:
    assert isinstance(effect, Effect), effect
    return [(atom.kind, atom.target) for atom in effect.atoms]


def one(effect: Effect | Refused, kind: str) -> Atom:
    assert isinstance(effect, Effect), effect
    (atom,) = [atom for atom in effect.atoms if atom.kind == kind]
    return atom


def codes(effect: Effect | Refused) -> tuple[str, ...]:
    assert isinstance(effect, Refused), effect
    return effect.codes


# --- add


def test_add_names_the_blob_before_and_after(repo):
    write(repo, "src/a.py", "2\n")
    atom = one(plan(repo, "add", files=["src/a.py"]), "git.index")
    assert atom.attributes == {
        "op": "stage",
        "before": git(repo, "rev-parse", "HEAD:src/a.py"),
        "after": git(repo, "hash-object", "src/a.py"),
    }
    assert (atom.target, atom.field) == ("src/a.py", "files[0]")


def test_adding_a_folder_takes_what_changed_and_leaves_the_ignored(repo):
    write(repo, "src/a.py", "2\n")
    write(repo, "src/new.py", "")
    write(repo, "src/debug.log", "")
    (repo / "src/b.py").unlink()
    assert set(atoms(plan(repo, "add", files=["."]))) == {("git.index", f"src/{name}.py") for name in ("a", "b", "new")}
    assert atoms(plan(repo, "add", files=["src/b.py"])) == [("git.index", "src/b.py")]
    assert one(plan(repo, "add", files=["src/b.py"]), "git.index").attributes["gone"] is True


def test_adding_what_has_not_changed_is_no_effect(repo):
    assert atoms(plan(repo, "add", files=["src/a.py", "."])) == []


@pytest.mark.parametrize("name", ["src/*.py", "src/[ab].py", "src/a?py", ":(glob)src", ":^src", "a\\b"])
def test_a_pathspec_that_is_a_pattern_is_refused(repo, name):
    assert codes(plan(repo, "add", files=[name])) == ("EFFECT_UNSUPPORTED",)


@pytest.mark.parametrize("name", ["none", "src/debug.log", ".git/config", ".GIT/config", "/etc/passwd", "linked/a.py"])
def test_what_git_would_not_add_is_refused(repo, name):
    write(repo, "src/debug.log", "")
    (repo / "linked").symlink_to("src")
    assert codes(plan(repo, "add", files=[name])) == ("EFFECT_INEXACT",)


def test_a_link_is_staged_as_a_link(repo):
    (repo / "l").symlink_to("src/a.py")
    effect = plan(repo, "add", files=["l"])
    git(repo, "add", "l")
    assert differences(effect, str(repo), DiskWorld()) == ()  # type: ignore[arg-type]
    assert git(repo, "ls-files", "-s", "l").startswith("120000")


def test_a_repository_within_is_not_staged(repo):
    (repo / "inner").mkdir()
    git(repo / "inner", "init", "-q")
    git(repo / "inner", "-c", "user.name=t", "-c", "user.email=t", "commit", "-q", "--allow-empty", "-m", "x")
    assert codes(plan(repo, "add", files=["."])) == ("EFFECT_UNSUPPORTED",)


def test_the_read_set_of_an_add_sees_a_later_change(repo):
    write(repo, "src/a.py", "2\n")
    leaf = FieldValue("files", "files", Role.PROTECTED, Value("T", "src/a.py", ""))
    call = CanonicalCall("git", "add", (leaf,), MappingProxyType({}))
    world = DiskWorld()
    snapshot = RecordingSnapshot(world, str(repo))
    ADAPTERS["git"].plan(call, {"op": "=add", "repository": "=.", "files": "files"}, snapshot)
    assert stale(snapshot.reads, world) == ()
    write(repo, "unrelated.txt", "x")
    assert stale(snapshot.reads, world) == ()
    write(repo, "src/a.py", "3\n")
    assert stale(snapshot.reads, world) != ()


def test_a_file_and_a_folder_of_one_name_displace_each_other(repo):
    (repo / "src/a.py").unlink()
    write(repo, "src/a.py/inner", "x\n")
    effect = plan(repo, "add", files=["src/a.py/inner"])
    assert {(atom.target, atom.attributes.get("gone")) for atom in effect.atoms} == {("src/a.py", True), ("src/a.py/inner", None)}  # type: ignore[union-attr]
    git(repo, "add", "src/a.py/inner")
    assert differences(effect, str(repo), DiskWorld()) == ()  # type: ignore[arg-type]
    git(repo, "commit", "-q", "-m", "folder")
    (repo / "src/a.py/inner").unlink()
    (repo / "src/a.py").rmdir()
    write(repo, "src/a.py", "file\n")
    assert set(atoms(plan(repo, "add", files=["src/a.py"]))) == {("git.index", "src/a.py"), ("git.index", "src/a.py/inner")}


TEXTS = (
    "1\n",
    "",
    "x\r\ny\r\n",
    "x\r\ny\n",
    "lone\rcr\r\n",
    "\0bin\r\n",
    "\x01\x02\x03\r\n",
    "t\r\n\x1a",
    "a\x7f\r\n" + "b" * 200,
    "\b\t\x1b\x0c\r\n",
)
RULES = (
    "",
    "* text=auto",
    "* text",
    "* text eol=crlf",
    "* eol=lf",
    "* -text",
    "* binary",
    "* text=auto eol=crlf",
    "* crlf",
    "* crlf=input",
)


@pytest.mark.parametrize("automatic", ["false", "true", "input"])
def test_line_endings_become_the_blob_that_git_makes_of_them(tmp_path, automatic):
    repo = tmp_path.resolve()
    git(repo, "init", "-q")
    every = [(rule, at, to) for rule in range(len(RULES)) for at in range(len(TEXTS)) for to in (2, 3)]
    for rule, at, to in every:
        write(repo, f"r{rule}/f{at}-{to}", TEXTS[at])
    git(repo, "-c", "core.autocrlf=false", "add", "-A")
    git(repo, "config", "core.autocrlf", automatic)
    write(repo, ".git/info/attributes", "".join(f"r{at}/{rule}\n" for at, rule in enumerate(RULES) if rule))
    for rule, at, to in every:
        write(repo, f"r{rule}/f{at}-{to}", TEXTS[to])
        write(repo, f"r{rule}/n{at}", TEXTS[at])
    before = git(repo, "ls-files", "-s").splitlines()
    effect = plan(repo, "add", files=["."])
    assert isinstance(effect, Effect)
    git(repo, "add", "-A")
    assert differences(effect, str(repo), DiskWorld()) == ()
    changed = {row.partition("\t")[2] for row in {*git(repo, "ls-files", "-s").splitlines()} ^ {*before}}
    assert changed == {atom.target for atom in effect.atoms}


# --- commit


def test_a_commit_names_branch_tree_parent_and_paths(repo):
    write(repo, "src/a.py", "2\n")
    git(repo, "add", "-A")
    effect = plan(repo, "commit", message="fix")
    commit, ref = one(effect, "git.commit"), one(effect, "git.ref")
    head = git(repo, "rev-parse", "HEAD")
    assert commit.target == "main"
    assert commit.attributes["paths"] == ["src/a.py"]
    assert (commit.attributes["tree"], commit.attributes["parent"]) == (git(repo, "write-tree"), head)
    assert (ref.target, ref.attributes["op"], ref.attributes["before"]) == ("refs/heads/main", "update", head)


def test_a_commit_of_nothing_is_no_effect(repo):
    write(repo, "src/a.py", "2\n")
    assert atoms(plan(repo, "commit", message="m")) == []


def test_the_first_commit_creates_the_branch(tmp_path):
    repo = tmp_path.resolve()
    git(repo, "init", "-q", "-b", "trunk")
    assert atoms(plan(repo, "commit", message="m")) == []
    write(repo, "a", "1")
    git(repo, "add", "a")
    ref = one(plan(repo, "commit", message="m"), "git.ref")
    assert (ref.target, ref.attributes["op"]) == ("refs/heads/trunk", "create")
    assert "before" not in ref.attributes


def test_a_commit_on_a_detached_head_moves_only_head(repo):
    git(repo, "checkout", "-q", "--detach")
    write(repo, "src/a.py", "2\n")
    git(repo, "add", "-A")
    assert one(plan(repo, "commit", message="m"), "git.ref").target == "HEAD"


def test_a_branch_that_is_a_symbolic_ref_is_followed(repo):
    git(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/alias")
    write(repo, "src/a.py", "2\n")
    git(repo, "add", "-A")
    assert one(plan(repo, "commit", message="m"), "git.ref").target == "refs/heads/main"


@pytest.mark.parametrize("what", ["MERGE_HEAD", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD", "rebase-merge/x", "sequencer/todo"])
@pytest.mark.parametrize("op", ["commit", "checkout", "reset"])
def test_what_is_under_way_is_not_concluded(repo, what, op):
    git(repo, "branch", "other")
    write(repo, f".git/{what}", git(repo, "rev-parse", "HEAD") + "\n")
    write(repo, "src/a.py", "2\n")
    git(repo, "add", "-A")
    fields = {"branch": "other"} if op == "checkout" else {"message": "m"}
    assert codes(plan(repo, op, **fields)) == ("EFFECT_UNSUPPORTED",)


def test_an_entry_without_content_is_not_committed(repo):
    write(repo, "later.py", "x")
    git(repo, "add", "-N", "later.py")
    write(repo, "src/a.py", "2\n")
    git(repo, "add", "src/a.py")
    assert codes(plan(repo, "commit", message="m")) == ("EFFECT_UNSUPPORTED",)


def test_a_tree_is_hashed_as_git_hashes_it(repo):
    for name in ("src.d/x", "src-a", "src0", "src/z/y", "é/ü", "run"):
        write(repo, name, name)
    (repo / "run").chmod(0o755)
    (repo / "l").symlink_to("x")
    git(repo, "add", "-A")
    index = parse_index(DiskWorld().git(str(repo), "index", ()) or b"")
    assert isinstance(index, dict)
    assert hash_tree(index) == git(repo, "write-tree")


# --- checkout and branches


def test_a_checkout_names_every_file_that_changes(repo):
    git(repo, "checkout", "-q", "-b", "other")
    write(repo, "src/a.py", "2\n")
    write(repo, "lib/new.py", "n\n")
    (repo / "src/b.py").unlink()
    (repo / "l").symlink_to("src/a.py")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "two")
    git(repo, "checkout", "-q", "main")
    effect = plan(repo, "checkout", branch="other")
    assert atoms(effect) == [
        ("git.checkout", "other"),
        ("git.ref", "HEAD"),
        ("fs.symlink", "l"),
        ("fs.create", "lib/new.py"),
        ("fs.write", "src/a.py"),
        ("fs.delete", "src/b.py"),
    ]
    assert one(effect, "git.ref").attributes["after"] == "refs/heads/other"
    git(repo, "checkout", "-q", "other")
    assert differences(effect, str(repo), DiskWorld()) == ()  # type: ignore[arg-type]
    back = plan(repo, "checkout", branch="main")
    assert ("fs.rmdir", "lib") in atoms(back)


def test_a_checkout_over_local_changes_is_refused_and_over_others_is_not(repo):
    git(repo, "checkout", "-q", "-b", "other")
    write(repo, "src/a.py", "2\n")
    git(repo, "commit", "-q", "-a", "-m", "two")
    git(repo, "checkout", "-q", "main")
    write(repo, "src/b.py", "mine\n")
    assert isinstance(plan(repo, "checkout", branch="other"), Effect)
    write(repo, "src/a.py", "mine\n")
    assert codes(plan(repo, "checkout", branch="other")) == ("EFFECT_INEXACT",)
    git(repo, "add", "src/a.py")
    assert codes(plan(repo, "checkout", branch="other")) == ("EFFECT_INEXACT",)
    write(repo, "src/a.py", "1\n")  # the work tree is as it was, the index is not
    assert codes(plan(repo, "checkout", branch="other")) == ("EFFECT_INEXACT",)


def test_an_ignored_file_in_the_way_is_not_overwritten(repo):
    git(repo, "checkout", "-q", "-b", "other")
    write(repo, "keep.log", "theirs\n")
    git(repo, "add", "-f", "keep.log")
    git(repo, "commit", "-q", "-m", "log")
    git(repo, "checkout", "-q", "main")
    write(repo, "keep.log", "mine\n")
    assert codes(plan(repo, "checkout", branch="other")) == ("EFFECT_INEXACT",)


def test_switching_to_where_one_is_is_no_effect(repo):
    assert atoms(plan(repo, "checkout", branch="main")) == []
    assert atoms(plan(repo, "checkout", branch="HEAD")) == []


def test_a_branch_goes_before_a_tag_of_its_name(repo):
    git(repo, "checkout", "-q", "-b", "same")
    write(repo, "src/a.py", "2\n")
    git(repo, "commit", "-q", "-a", "-m", "two")
    git(repo, "checkout", "-q", "main")
    git(repo, "tag", "same")
    assert one(plan(repo, "checkout", branch="same"), "git.ref").attributes["after"] == "refs/heads/same"
    assert ("fs.write", "src/a.py") in atoms(plan(repo, "checkout", branch="same"))


@pytest.mark.parametrize(
    "name", ["none", "HEAD:src/a.py", "@{-1}", "main@{1}", "-f", ":/one", "main..other", "src/a.py", "", "^main", "HEAD^{/one}"]
)
def test_what_is_no_plain_revision_is_not_checked_out(repo, name):
    assert codes(plan(repo, "checkout", branch=name))[0] in ("EFFECT_INEXACT", "EFFECT_UNSUPPORTED")


def test_a_new_branch_is_one_ref(repo):
    ref = one(plan(repo, "create_branch", branch="fix/rounding"), "git.ref")
    assert (ref.target, ref.attributes["op"], ref.attributes["after"]) == (
        "refs/heads/fix/rounding",
        "create",
        git(repo, "rev-parse", "HEAD"),
    )


@pytest.mark.parametrize("name", ["main", "refs/heads/main", "a..b", "a b", "x.lock", "-f", "", "a~1", "a:b"])
def test_a_branch_that_is_there_or_cannot_be_is_refused(repo, name):
    assert codes(plan(repo, "create_branch", branch=name)) == ("EFFECT_INEXACT",)


def test_a_base_that_names_nothing_or_two_things_is_refused(repo):
    assert codes(plan(repo, "create_branch", branch="x", base="none")) == ("EFFECT_INEXACT",)
    git(repo, "tag", "twice", "HEAD")
    write(repo, "src/a.py", "2\n")
    git(repo, "commit", "-q", "-a", "-m", "two")
    git(repo, "branch", "twice")
    assert codes(plan(repo, "create_branch", branch="x", base="twice")) == ("EFFECT_INEXACT",)
    assert isinstance(plan(repo, "create_branch", branch="x", base="main"), Effect)


# --- reads


def test_reads_are_the_paths_that_are_shown(repo):
    write(repo, "src/a.py", "2\n")
    assert atoms(plan(repo, "status")) == [("fs.read", ".")]
    assert atoms(plan(repo, "diff_unstaged")) == [("fs.read", "."), ("fs.read", "src/a.py")]
    git(repo, "add", "-A")
    assert atoms(plan(repo, "diff_staged")) == [("fs.read", "."), ("fs.read", "src/a.py")]
    git(repo, "commit", "-q", "-m", "two")
    assert atoms(plan(repo, "diff", revision="HEAD~1")) == [("fs.read", "."), ("fs.read", "src/a.py")]
    assert atoms(plan(repo, "show", revision="HEAD")) == [("fs.read", ".git"), ("fs.read", "src/a.py")]
    assert atoms(plan(repo, "show", revision="HEAD~1:src/a.py")) == [("fs.read", "src/a.py")]
    assert len(atoms(plan(repo, "show", revision="HEAD~1"))) == 4
    assert atoms(plan(repo, "log")) == atoms(plan(repo, "branch")) == [("fs.read", ".git")]


def test_a_bare_object_is_not_shown_for_its_path_is_not_known(repo):
    blob = git(repo, "rev-parse", "HEAD:src/a.py")
    assert codes(plan(repo, "show", revision=blob)) == ("EFFECT_UNSUPPORTED",)
    assert codes(plan(repo, "show", revision="HEAD^{tree}")) == ("EFFECT_UNSUPPORTED",)


@pytest.mark.parametrize("path", ["../x", "./src/a.py", "src//a.py"])
def test_a_path_that_is_not_canonical_is_not_shown(repo, path):
    assert codes(plan(repo, "show", revision=f"HEAD:{path}")) == ("EFFECT_UNSUPPORTED",)


# --- repositories that are not modelled


def test_a_submodule_is_asked_with_its_own_settings(repo, tmp_path):
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "-c", "user.name=t", "-c", "user.email=t", "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other), "sub")
    assert ("proc.exec", "git") in atoms(plan(repo, "status"))


@pytest.mark.parametrize(
    "setting",
    [
        ("core.sparseCheckout", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("core.worktree", "/"),
        ("core.symlinks", "false"),
    ],
)
def test_a_repository_that_is_not_modelled_is_refused(repo, setting):
    git(repo, "config", *setting)
    assert codes(plan(repo, "status")) == ("EFFECT_UNSUPPORTED",)


def test_a_linked_worktree_is_refused_and_a_folder_below_is_no_repository(repo):
    git(repo, "worktree", "add", "-q", "../tree")
    assert codes(plan(repo.parent / "tree", "status")) == ("EFFECT_UNSUPPORTED",)
    assert codes(plan(repo, "status", repository="src")) == ("EFFECT_INEXACT",)


def test_an_unchanged_bit_hides_nothing(repo):
    git(repo, "update-index", "--assume-unchanged", "src/a.py")
    assert codes(plan(repo, "add", files=["."])) == ("EFFECT_UNSUPPORTED",)


def test_a_repository_below_the_root_names_paths_from_the_root(repo):
    write(repo, "src/a.py", "2\n")
    effect = plan(repo, "add", root=repo.parent, repository="repo", files=["repo/src/a.py"])
    assert atoms(effect) == [("git.index", "repo/src/a.py")]
    git(repo, "add", "src/a.py")
    assert differences(effect, str(repo.parent), DiskWorld()) == ()  # type: ignore[arg-type]
    git(repo, "reset", "-q")
    assert differences(effect, str(repo.parent), DiskWorld()) != ()  # type: ignore[arg-type]


def test_an_unknown_operation_is_refused(repo):
    assert codes(plan(repo, "push")) == ("EFFECT_UNSUPPORTED",)


def test_a_mode_change_is_staged(repo):
    os.chmod(repo / "src/a.py", 0o755)  # noqa: PTH101
    assert one(plan(repo, "add", files=["src/a.py"]), "git.index").attributes["mode"] == "100755"
