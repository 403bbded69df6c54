"""Refs are those that git itself takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Root, Value
from cxi.values.git_ref import GitRef, RefKind, is_branch_name
from cxi.values.hidden import refuse_unseen
from os_view import NOWHERE, OsView

SHA = "0123456789abcdef0123456789abcdef01234567"


def canonical(raw: object, kind: RefKind = "branch") -> str:
    found = GitRef(kind).parse(raw, NOWHERE)  # type: ignore[arg-type]
    return found.codes[0] if isinstance(found, Refused) else str(found.canonical)


@pytest.mark.parametrize(
    "raw", ["main", "feature/x", "v1.2", "refs/heads/main", "a@b", "fix-1", "é", "a.b", "HEAD2", "x" * 200, SHA]
)
def test_a_branch_name_is_itself_in_both_kinds(raw: str) -> None:
    assert canonical(raw) == raw
    assert canonical(raw, "revision") == raw


def test_a_full_object_id_is_in_lower_case() -> None:
    assert canonical(SHA.upper()) == SHA
    assert canonical((SHA + SHA[:24]).upper(), "revision") == SHA + SHA[:24]
    assert canonical("ABCDEF1") == "ABCDEF1"


@pytest.mark.parametrize(
    "raw",
    [
        "HEAD",
        "@",
        "HEAD~1",
        "HEAD^",
        "main^2~3",
        "v1^{commit}",
        "v1^{}",
        "a..b",
        "a...b",
        "..b",
        "a..",
        "^a",
        "a^@",
        "a^!",
        "HEAD:src/tax.py",
        "main:README.md",
    ],
)
def test_a_revision_is_one_in_its_kind_only(raw: str) -> None:
    assert canonical(raw, "revision") == raw
    assert canonical(raw) == "FIELD_TYPE"


@pytest.mark.parametrize(
    "raw",
    ["", "-x", "--upload-pack=x", "a@{1}", "@{-1}", "HEAD@{yesterday}", "main@{u}", ":/fix", "v1^{/fix}", "a b", "a..b..c",
     "..", "a:", ":a", "a:/b",
     "a//b", "/a", "a/", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a?", "a*", "a[b", "a\\b", "^-x", "a..-b", "a~x", "a^{x}",
     "x" * 1025, 7, None, True],
)  # fmt: skip
def test_what_is_no_ref_is_refused_in_both_kinds(raw: object) -> None:
    assert canonical(raw) == "FIELD_TYPE"
    assert canonical(raw, "revision") == "FIELD_TYPE"


@pytest.mark.parametrize("char", "\n\t\x00\x7f\u200b\u202e\udc80")
def test_what_nobody_sees_is_refused(char: str) -> None:
    assert canonical(f"a{char}b") == "NON_CANONICAL_TEXT"


NAMES = st.text(st.sampled_from("ab./@{}-~^:?*[]\\ \x7f\x01éH"), min_size=1, max_size=8) | st.builds(
    "{}{}".format,
    st.sampled_from(["a", "x/y", "HEAD", "@", "a.", ""]),
    st.sampled_from([".lock", "/", "//b", "@{", "..", "~1", "-", "/.b", "@"]),
)


@settings(max_examples=6)
@given(st.lists(NAMES.filter(lambda name: "\0" not in name), min_size=20, max_size=40))
@example(["HEAD", "@", "-", "-a", "a@{", "@{-1}", "a.lock", "a.lock/b", "b/.a", "x", "refs/heads/x", "HEAD/a"])
def test_branch_names_are_those_of_git(names: list[str]) -> None:
    # one process for all: git reads one name a call
    script = 'for name; do if git check-ref-format "refs/heads/$name"; then printf 1; else printf 0; fi; done'
    done = subprocess.run(["sh", "-c", script, "sh", *names], capture_output=True, text=True, check=True)
    for name, answer in zip(names, done.stdout, strict=True):
        # `git branch` refuses these two, although they are well formed; `@` is a synonym of HEAD
        takes = answer == "1" and not name.startswith("-") and name not in ("HEAD", "@")
        assert is_branch_name(name) == takes, name
        if takes and refuse_unseen(name, "ref") is None:
            assert canonical(name) == name


def test_branch_names_that_git_branch_takes_are_taken() -> None:
    for name in ("main", "HEAD", "-x", "a..b", "a@{b", "x.lock", "a/b", "é"):
        done = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False)
        assert is_branch_name(name) == (done.returncode == 0), name


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refs")
    for command in (
        ["init", "-q", "-b", "main"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "one"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "two"],
        ["branch", "side", "HEAD~1"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "raw", ["main", "HEAD~1", "HEAD^", "main^{commit}", "side..main", "side...main", "HEAD^{}", "^side", "main^!", "@"]
)
def test_git_reads_what_we_read_as_a_revision(repository: Path, raw: str) -> None:
    assert canonical(raw, "revision") == raw
    subprocess.run(["git", "-C", str(repository), "rev-parse", raw], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create a branch `fix-tax` from main", ["fix-tax"]),
        ("create a branch named fix-tax.", ["fix-tax"]),
        ("check out branch fix-tax, then stop", ["fix-tax"]),
        ("delete the tag v1.2.", ["v1.2"]),
        ("branch: main", ["main"]),
        ("the branch is broken and the tag was old", []),
        ("a new branch. Then go", []),
        ("merge 'feature/x' please", ["feature/x"]),
        ("branch -D, branch a..b", []),
        ("rebranch main, xbranch y", []),
        ('say "hello there"', []),
    ],
)
def test_refs_in_a_request_are_found(text: str, expected: list[str]) -> None:
    found = list(GitRef().scan(text, NOWHERE))
    assert [value.canonical for _, value in found] == expected
    assert all(text[start:end] == value.canonical for (start, end), value in found)


def test_a_quoted_file_is_no_ref_unless_it_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tax.py").touch()
    root = Root(str(tmp_path), OsView())
    text = "On branch `src` fix `src/tax.py` and `other`"
    assert [value.canonical for _, value in GitRef().scan(text, root)] == ["src", "other"]


def test_parameters_are_read_strictly() -> None:
    assert value_type("GitRef", {"kind": "revision"}) == GitRef("revision")
    with pytest.raises(ValueError):
        value_type("GitRef", {"kind": "tag"})
    assert isinstance(value_type("GitRef", {}).parse("main", NOWHERE), Value)
