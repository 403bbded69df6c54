"""Threat: a program that somebody planted (a hook, a filter, a driver, a monitor) runs inside an innocent git call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.canonical import digest_bytes
from cxi.effects.base import Effect
from cxi.effects.file import FileAdapter
from cxi.effects.git import QUESTIONS, GitAdapter
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value

SCRIPT = "#!/bin/sh\ntouch {0}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path.resolve() / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.email", "t@example.org")
    git(repo, "config", "user.name", "t")
    (repo / "a.txt").write_text("1\n")
    (repo / "b.bin").write_text("1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "1")
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "b.bin").write_text("2\n")
    git(repo, "commit", "-q", "-a", "-m", "2")
    git(repo, "checkout", "-q", "main")
    return repo


def git(repo: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True)


def plan(repo: Path, op: str, **fields: str) -> Effect | Refused:
    leaves = tuple(FieldValue(name, name, Role.PAYLOAD, Value("Text", text, text)) for name, text in fields.items())
    inputs = {"op": f"={op}", "repository": "=."} | {name: name for name in fields}
    call = CanonicalCall("git", op, leaves, MappingProxyType({}))
    return GitAdapter().plan(call, inputs, RecordingSnapshot(DiskWorld(), str(repo)))


def programs(effect: Effect | Refused) -> set[str]:
    assert isinstance(effect, Effect), effect
    return {atom.target for atom in effect.atoms if atom.kind == "proc.exec"}


def hook(repo: Path, name: str, folder: str = ".git/hooks") -> str:
    path = repo / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPT.format(repo.parent / "ran"))
    path.chmod(0o755)
    return f"{folder}/{name}"


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "post-commit"])
def test_a_hook_that_a_commit_would_run_is_an_effect_of_it(repo, name):
    planted = hook(repo, name)
    (repo / "a.txt").write_text("2\n")
    git(repo, "add", "a.txt")
    effect = plan(repo, "commit", message="m")
    assert programs(effect) == {planted}
    assert isinstance(effect, Effect)
    assert [atom.target for atom in effect.atoms if atom.kind == "git.hook"] == [planted]
    (run,) = [atom for atom in effect.atoms if atom.kind == "proc.exec"]
    assert run.attributes["inputs"] == {planted: digest_bytes((repo / planted).read_bytes())}


def test_gitpython_really_runs_the_hooks_that_are_named_and_no_others(repo):
    gitpython = pytest.importorskip("git")
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg", "post-index-change", "reference-transaction"):
        path = repo / hook(repo, name)
        path.write_text(SCRIPT.format(repo.parent / f"ran-{name}"))
    (repo / "a.txt").write_text("2\n")
    git(repo, "-c", "core.hooksPath=/dev/null", "add", "a.txt")
    planned = {Path(target).name for target in programs(plan(repo, "commit", message="m"))}
    gitpython.Repo(repo).index.commit("m")
    ran = {path.name.removeprefix("ran-") for path in repo.parent.glob("ran-*")}
    assert ran == planned == {"pre-commit", "commit-msg", "post-commit"}


def test_git_really_runs_no_hook_that_a_checkout_does_not_name(repo):
    every = ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-merge", "post-rewrite", "update")
    for name in every:
        (repo / hook(repo, name)).write_text(SCRIPT.format(repo.parent / f"ran-{name}"))
    planned = {Path(target).name for target in programs(plan(repo, "checkout", branch="other"))}
    git(repo, "checkout", "-q", "other")
    ran = {path.name.removeprefix("ran-") for path in repo.parent.glob("ran-*")}
    # Whether moving a symbolic HEAD is a transaction depends on git's version.
    assert ran - {"reference-transaction"} == {"post-checkout", "post-index-change"}
    assert planned == {"post-checkout", "post-index-change", "reference-transaction"}


@pytest.mark.parametrize(("op", "fields"), [("add", {"files": "a.txt"}), ("status", {}), ("diff_unstaged", {})])
def test_the_index_hook_is_an_effect_of_whatever_writes_the_index(repo, op, fields):
    planted = hook(repo, "post-index-change")
    (repo / "a.txt").write_text("2\n")
    assert programs(plan(repo, op, **fields)) == {planted}


def test_reset_names_the_index_hook(repo):
    planted = hook(repo, "post-index-change")
    (repo / "a.txt").write_text("2\n")
    git(repo, "-c", "core.hooksPath=/dev/null", "add", "a.txt")
    assert programs(plan(repo, "reset")) == {planted}


def test_a_hook_folder_elsewhere_is_found(repo):
    git(repo, "config", "core.hooksPath", "tools/hooks")
    planted = hook(repo, "pre-commit", "tools/hooks")
    hook(repo, "pre-commit")  # not run: the setting replaces the folder
    (repo / "a.txt").write_text("2\n")
    git(repo, "add", "a.txt")
    assert programs(plan(repo, "commit", message="m")) == {planted}


def test_a_hook_folder_in_the_home_folder_is_found(repo, monkeypatch):
    monkeypatch.setenv("HOME", str(repo.parent))
    git(repo, "config", "core.hooksPath", "~/hooks")
    (repo.parent / "hooks").mkdir()
    (repo.parent / "hooks/pre-commit").write_text(SCRIPT)
    (repo.parent / "hooks/pre-commit").chmod(0o755)
    (repo / "a.txt").write_text("2\n")
    git(repo, "add", "a.txt")
    assert programs(plan(repo, "commit", message="m")) == {str(repo.parent / "hooks/pre-commit")}


def test_where_an_included_setting_could_be_read_otherwise_both_folders_count(repo):
    (repo.parent / "more").write_text("[core]\n\thooksPath = tools/hooks\n")
    git(repo, "config", "include.path", str(repo.parent / "more"))
    both = {hook(repo, "pre-commit", "tools/hooks"), hook(repo, "pre-commit")}
    (repo / "a.txt").write_text("2\n")
    git(repo, "add", "a.txt")
    assert programs(plan(repo, "commit", message="m")) == both


def test_a_hook_through_a_link_is_found_and_one_that_is_no_program_is_not(repo):
    (repo / "real").write_text(SCRIPT)
    (repo / ".git/hooks/pre-commit").symlink_to("../../real")
    (repo / "a.txt").write_text("2\n")
    git(repo, "add", "a.txt")
    assert programs(plan(repo, "commit", message="m")) == set()
    (repo / "real").chmod(0o755)
    assert programs(plan(repo, "commit", message="m")) == {".git/hooks/pre-commit"}


def test_filters_drivers_and_monitors_are_effects(repo):
    (repo / ".gitattributes").write_text("*.bin filter=packed diff=packed\n")
    git(repo, "config", "filter.packed.clean", "./tools/pack")
    git(repo, "config", "filter.packed.smudge", "unpack-all -x")
    git(repo, "config", "diff.packed.textconv", "show-bin")
    git(repo, "-c", "filter.packed.clean=", "add", ".gitattributes")
    (repo / "b.bin").write_text("3\n")
    assert programs(plan(repo, "add", files="b.bin")) == {"tools/pack"}
    assert programs(plan(repo, "add", files="a.txt")) == set()
    assert programs(plan(repo, "diff_unstaged")) == {"tools/pack", "show-bin", "unpack-all"}
    git(repo, "config", "diff.external", "echo x | sh")
    assert "sh" in programs(plan(repo, "diff_unstaged"))
    git(repo, "config", "core.fsmonitor", ".git/watch")
    assert ".git/watch" in programs(plan(repo, "status"))


def test_a_smudge_filter_is_an_effect_of_a_checkout(repo):
    (repo / ".gitattributes").write_text("*.bin filter=packed\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-q", "-m", "attributes")
    git(repo, "checkout", "-q", "-b", "third")
    (repo / "b.bin").write_text("3\n")
    git(repo, "commit", "-q", "-a", "-m", "3")
    git(repo, "config", "filter.packed.smudge", "unpack-all -x")
    assert programs(plan(repo, "checkout", branch="main")) == {"unpack-all"}


def test_a_new_attribute_rule_could_run_every_filter(repo):
    git(repo, "config", "filter.packed.smudge", "unpack-all -x")
    git(repo, "checkout", "-q", "-b", "ruled")
    (repo / ".gitattributes").write_text("*.bin filter=packed\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-q", "-m", "rules")
    git(repo, "checkout", "-q", "main")
    assert programs(plan(repo, "checkout", branch="ruled")) == {"unpack-all"}


OPERATIONS = {
    "status": {},
    "diff_unstaged": {},
    "diff_staged": {},
    "diff": {"revision": "other"},
    "log": {},
    "show": {"revision": "other"},
    "branch": {},
    "add": {"files": "a.txt"},
    "commit": {"message": "m"},
    "reset": {},
    "create_branch": {"branch": "new"},
    "checkout": {"branch": "other"},
}


def act(repo: Path, op: str) -> None:
    """What the server does, through GitPython."""
    opened = pytest.importorskip("git").Repo(repo)
    match op:
        case "status":
            opened.git.status()
        case "diff_unstaged":
            opened.git.diff("--unified=3")
        case "diff_staged":
            opened.git.diff("--unified=3", "--cached")
        case "diff":
            opened.git.diff("--unified=3", "other")
        case "log":
            list(opened.iter_commits(max_count=10))
        case "show":
            commit = opened.commit("other")
            list(commit.parents[0].diff(commit, create_patch=True))
        case "branch":
            opened.git.branch()
        case "add":
            opened.git.add("--", "a.txt")
        case "commit":
            opened.index.diff(opened.head.commit)
            opened.index.commit("m")
        case "reset":
            opened.index.reset()
        case "create_branch":
            opened.create_head("new", opened.active_branch)
        case "checkout":
            opened.git.checkout("other")


@pytest.mark.parametrize("op", list(OPERATIONS))
def test_of_all_planted_programs_none_runs_that_the_plan_does_not_name(repo, op):
    ran = repo.parent / "ran"
    ran.mkdir()

    def plant(name: str, body: str = "") -> Path:
        path = repo.parent / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}/{name}\n{body}\n")
        path.chmod(0o755)
        return path

    (repo / ".git/info/attributes").write_text("*.bin filter=f diff=d\n")
    (repo / "a.txt").write_text("changed\n")
    git(repo, "add", "a.txt")
    (repo / "a.txt").write_text("changed again\n" if op != "checkout" else "1\n")
    if op == "checkout":
        git(repo, "add", "a.txt")
    else:
        (repo / "b.bin").write_text("3\n")
    for name in (repo / ".git/hooks").glob("*.sample"):
        hook_name = name.name.removesuffix(".sample")
        (repo / ".git/hooks" / hook_name).symlink_to(plant(hook_name))
    for hook_name in ("post-index-change", "post-checkout", "reference-transaction", "post-commit", "prepare-commit-msg"):
        if not (repo / ".git/hooks" / hook_name).exists():
            (repo / ".git/hooks" / hook_name).symlink_to(plant(hook_name))
    for key, name, body in (
        ("filter.f.clean", "clean", "cat"),
        ("filter.f.smudge", "smudge", "cat"),
        ("diff.d.textconv", "textconv", 'cat "$1"'),
        ("core.fsmonitor", "monitor", "exit 1"),
        ("core.pager", "pager", "cat"),
        ("core.editor", "editor", "true"),
        ("gpg.program", "gpg", "exit 1"),
        ("core.sshCommand", "ssh", "exit 1"),
    ):
        git(repo, "config", key, str(plant(name, body)))
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "log.showSignature", "true")
    for left in ran.iterdir():
        left.unlink()
    named = {Path(target).name for target in programs(plan(repo, op, **OPERATIONS[op]))}
    assert list(ran.iterdir()) == []
    act(repo, op)
    assert {path.name for path in ran.iterdir()} - named == set()


def test_no_question_to_git_runs_a_program_of_the_repository(repo):
    ran = repo.parent / "ran"
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit"):
        hook(repo, name)
    (repo / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command"):
        git(repo, "config", key, f"touch {ran}; cat")
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.editor", "credential.helper"):
        git(repo, "config", key, f"touch {ran}; false")
    git(repo, "config", "filter.evil.required", "true")
    # Same size, and the index is as old as the file: git has to compare the bytes, which is when it would run a filter.
    (repo / "a.txt").write_text("9\n")
    stamp = (repo / ".git/index").stat().st_mtime_ns
    os.utime(repo / "a.txt", ns=(stamp, stamp))
    ran.unlink(missing_ok=True)
    world = DiskWorld()
    arguments = {
        "symbolic": ("HEAD",),
        "resolve": ("HEAD",),
        "type": ("HEAD",),
        "commit": ("HEAD",),
        "blob": ("HEAD:a.txt",),
        "ref-format": ("refs/heads/x",),
        "tree": ("HEAD",),
        "staged": ("HEAD",),
        "differs": ("HEAD",),
        "changed": ("HEAD", "other"),
        "attributes": ("a.txt",),
        "attributes-staged": ("a.txt",),
    }
    index = (repo / ".git/index").read_bytes()
    for question in QUESTIONS:
        assert world.git(str(repo), question, arguments.get(question, ())) is not None, question
    assert not ran.exists()
    assert (repo / ".git/index").read_bytes() == index


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (".git/hooks/pre-commit", "git.hook"),
        (".GIT/hooks/pre-commit", "git.hook"),
        (".g\u200cit/hooks/pre-commit", "git.hook"),
        ("git~1/hooks/pre-commit", "git.hook"),
        (".git/modules/x/hooks/update", "git.hook"),
        (".git/config", "git.config"),
        (".git/info/attributes", "git.config"),
        (".git/objects/info/alternates", "git.config"),
        ("vendor/.git/config", "git.config"),
        ("vendor/.git", "git.config"),
        (".git/refs/heads/x", "git.ref"),
        (".git/packed-refs", "git.ref"),
        ("tools/hooks/pre-push", "git.hook"),
        ("TOOLS/hooks/pre-push", "git.hook"),
    ],
)
def test_planting_a_program_or_a_setting_through_the_file_server_is_seen(repo, target, kind):
    git(repo, "config", "core.hooksPath", "tools/hooks")
    leaves = tuple(
        FieldValue(name, name, Role.PAYLOAD, Value("Text", text, text)) for name, text in (("path", target), ("content", "x"))
    )
    call = CanonicalCall("files", "write_file", leaves, MappingProxyType({}))
    effect = FileAdapter().plan(call, {"path": "path", "content": "content"}, RecordingSnapshot(DiskWorld(), str(repo)))
    assert isinstance(effect, Effect)
    assert [atom.kind for atom in effect.atoms if atom.kind.startswith("git.")] == [kind]


def test_an_ordinary_file_is_not_gits(repo):
    leaves = (FieldValue("path", "path", Role.PAYLOAD, Value("Text", "src/hooks/git.py", "")),)
    call = CanonicalCall("files", "write_file", leaves, MappingProxyType({}))
    effect = FileAdapter().plan(call, {"path": "path", "content": "=x"}, RecordingSnapshot(DiskWorld(), str(repo)))
    assert isinstance(effect, Effect)
    assert [atom.kind for atom in effect.atoms] == ["fs.create"]
