"""Threat: a command does more than its words seem to say. Each surprise was seen on the real program."""

# ruff: noqa: E501

import os
import subprocess

import pytest

from cxi.effects.base import Effect
from cxi.effects.shell.adapter import plan_text
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Code, Refused
from cxi.sinks.disk import DiskWorld


@pytest.fixture
def root(tmp_path):
    root = tmp_path.resolve() / "root"
    (root / "d").mkdir(parents=True)
    (root / "a.txt").write_text("alpha\n")
    (root / "d/inside").write_text("inside\n")
    return root


def plan(text, root):
    return plan_text(text, RecordingSnapshot(DiskWorld(), str(root)), env={"PATH": "/usr/bin:/bin", "HOME": str(root)})


def kinds(text, root):
    effect = plan(text, root)
    assert isinstance(effect, Effect), effect
    return {(atom.kind, atom.target) for atom in effect.atoms}


def refused(text, root):
    result = plan(text, root)
    assert isinstance(result, Refused), result
    return result.codes[0]


def bash(text, root):
    return subprocess.run(
        ["bash", "-c", text], cwd=root, env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


def test_a_substitution_hidden_in_a_value_that_a_test_evaluates_is_refused(root):
    text = "x='a[$(touch marker)]'; [[ $x -eq 0 ]]"
    bash(text, root)
    assert (root / "marker").exists()
    assert refused(text, root) == Code.EFFECT_UNSUPPORTED
    for other in (
        "x='a[$(touch m)]'; test -v \"$x\"",
        "x='a[$(touch m)]'; echo $((x))",
        "x='a[$(touch m)]'; ((x++))",
        "[[ -v $y ]]",
    ):
        assert refused(other, root) == Code.EFFECT_UNSUPPORTED, other


def test_the_old_test_does_not_evaluate_and_is_read(root):
    text = "x='a[$(touch marker)]'; [ \"$x\" -eq 0 ]"
    bash(text, root)
    assert not (root / "marker").exists()
    assert isinstance(plan(text, root), Effect)


def test_a_file_whose_name_is_an_option_is_one_where_a_glob_finds_it(root):
    (root / "-o.txt").write_text("")
    assert ("fs.create", ".txt") in kinds("sort *.txt", root)
    bash("sort *.txt", root)
    assert (root / ".txt").exists()
    (root / "--reference=a.txt").write_text("")
    assert refused("chmod 600 *", root) == Code.EFFECT_UNSUPPORTED


def test_a_reading_descriptor_that_is_opened_again_for_writing_is_refused(root):
    assert refused("cat 3< a.txt > /proc/self/fd/3", root) == Code.EFFECT_UNSUPPORTED
    assert refused("echo x 3< a.txt > /dev/fd/3", root) == Code.EFFECT_UNSUPPORTED
    (root / "hidden").symlink_to("/proc/self/fd/3")
    assert refused("echo x 3< a.txt > hidden", root) == Code.EFFECT_UNSUPPORTED


def test_removing_a_link_with_a_slash_empties_the_folder_outside(root):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("p")
    (root / "link").symlink_to(outside)
    assert ("fs.delete", str(outside / "precious")) in kinds("rm -rf link/", root)
    bash("rm -rf link/", root)
    assert not (outside / "precious").exists()


def test_writing_through_a_link_is_a_write_of_where_it_leads(root):
    outside = root.parent / "outside"
    outside.write_text("x")
    (root / "link").symlink_to(outside)
    for text in ("echo y > link", "cp a.txt link", "echo y | tee link", "dd if=a.txt of=link"):
        assert ("fs.write", str(outside)) in kinds(text, root), text


def test_a_diff_whose_driver_runs_a_program_is_refused(root):
    for command in (["init", "-q"], ["config", "diff.x.textconv", "touch marker; cat"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    (root / ".gitattributes").write_text("*.txt diff=x\n")
    for text in ("git diff", "git log -p", "git show", "git status"):
        assert refused(text, root) == Code.EFFECT_UNSUPPORTED, text


def test_a_dry_run_of_make_is_a_run(root):
    (root / "Makefile").write_text("X := $(shell touch marker)\nall:\n")
    effect = plan("make -n", root)
    assert isinstance(effect, Effect)
    (atom,) = [atom for atom in effect.atoms if atom.kind == "proc.exec"]
    assert atom.attributes["inputs_writable"] is True
    assert set(atom.attributes["inputs"]) == {"Makefile"}


def test_a_substitution_in_double_quotes_happens(root):
    assert ("fs.create", "marker") in kinds('echo "$(touch marker)"', root)
    assert ("fs.create", "marker") in kinds('echo "`touch marker`"', root)
    assert ("fs.create", "marker") in kinds("cat <<E\n$(touch marker)\nE", root)
    assert ("fs.create", "marker") not in kinds("cat <<'E'\n$(touch marker)\nE", root)


def test_a_newline_ends_a_command_and_a_carriage_return_does_not(root):
    assert ("fs.create", "marker") in kinds("pwd\ntouch marker", root)
    assert refused("pwd\rtouch marker", root) == Code.NON_CANONICAL_TEXT


@pytest.mark.parametrize(
    "text",
    [
        "sed -n '1e touch marker' a.txt", "sed 's/a/touch marker/e' a.txt", "sed --expression='1e id' a.txt", "sed -n '/a/{e id\n}' a.txt",
        "awk 'BEGIN{system(\"id\")}'", "awk 'BEGIN{\"id\"|getline}'", "awk '{print|\"sh\"}' a.txt", "find . -execdir sh x \\;", "git -c core.pager=x log",
        "tar cf x.tar --to-command=sh a.txt", "tar -I 'sh -c id' -cf x.tar a.txt", "tar cf x.tar --use-compress-prog=id a.txt",
        "sort --compress-prog=id a.txt", "xargs -a a.txt sh -c", "env -S 'sh -c id'", "time -o a.txt -a sh", "rsync -e sh a b", "vim -c '!id'",
        "git -c alias.x='!id' x", "git --exec-path=. status", "ssh -o ProxyCommand=id h", "zip x.zip a.txt -T -TT id", "less +!id a.txt",
        "PAGER=x git log", "GIT_SSH_COMMAND=x git fetch", "BASH_ENV=x bash -c ls", "LD_PRELOAD=./x.so ls", "PS4='$(id)' bash -xc ls",
        "export PATH=.:$PATH; ls", "shopt -s extglob; rm !(a)", "enable -f ./x.so x", "trap id EXIT", "printf -v 'a[$(id)]' x", "read 'a[$(id)]'",
        "unset 'a[$(id)]'", "declare -i x='a[$(id)]'", "let 'x=a[$(id)]'", "alias ls=id", "hash -p ./x ls", "command_not_found_handle", "mapfile -C id x",
    ],
)  # fmt: skip
def test_an_argument_or_a_variable_that_runs_a_program_is_refused(root, text):
    assert refused(text, root) in (Code.EFFECT_UNSUPPORTED, Code.EFFECT_UNREADABLE)


def test_a_pack_of_commands_is_read_to_its_end(root):
    text = " && ".join(["true"] * 500 + ["touch marker"])
    assert ("fs.create", "marker") in kinds(text, root)


def test_a_function_shadows_the_program_that_it_is_named_for(root):
    assert ("fs.create", "marker") in kinds("ls() { touch marker; }; ls", root)


def test_where_a_stage_of_a_pipeline_looks_at_what_another_makes_is_refused(root):
    assert refused("touch new.txt | rm *.txt", root) == Code.EFFECT_UNSUPPORTED


def test_a_name_that_is_no_text_is_refused(root):
    (root / os.fsdecode(b"\xff.txt")).write_text("")
    assert refused("rm *.txt", root) == Code.EFFECT_UNSUPPORTED


def test_the_last_name_of_a_glob_is_no_destination(root):
    (root / "B").mkdir()
    assert refused("mv *", root) == Code.EFFECT_UNSUPPORTED


def test_a_command_line_of_git_says_what_it_does_to_files_refs_and_the_index(root):
    run = lambda *words: subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)  # noqa: E731
    run("init", "-q", "-b", "main")
    run("config", "user.email", "t@example.org")
    run("config", "user.name", "t")
    run("add", "-A")
    run("commit", "-qm", "one")
    (root / "a.txt").write_text("changed\n")
    hook = root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    found = kinds("git add a.txt && git commit -m two", root)
    assert {("git.index", "a.txt"), ("git.commit", "main"), ("git.ref", "refs/heads/main")} <= found
    assert ("git.hook", ".git/hooks/pre-commit") in found
    assert ("proc.exec", ".git/hooks/pre-commit") in found
    assert ("git.hook", ".git/hooks/pre-commit") not in kinds("git commit -n -m two", root)
    assert ("fs.write", "a.txt") in kinds("git checkout -- a.txt", root)
    assert ("fs.write", "a.txt") in kinds("git restore a.txt", root)
    assert ("git.ref", "refs/heads/new") in kinds("git checkout -b new", root)
    assert {("fs.delete", "d/inside"), ("fs.rmdir", "d")} <= kinds("git rm -r d", root)
    for text in (
        "git commit",
        "git commit --amend",
        "git rebase main",
        "git -c core.fsmonitor=x status",
        "git push",
        "git stash",
    ):
        assert refused(text, root) == Code.EFFECT_UNSUPPORTED, text
