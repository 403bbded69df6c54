"""Paths are read as the kernel reads them; requests name them as people do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Entry, EntryKind, Root, Value
from cxi.values.path import FilePath, RepoPath, Resolved, resolve
from os_view import EmptyView, OsView


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A repository with a neighbour."""
    base = Path(os.path.realpath(tmp_path))
    for folder in ("repo/src", "repo/tests", "repo/docs", "repo2"):
        (base / folder).mkdir(parents=True)
    for file in ("repo/src/tax.py", "repo/Makefile", "repo/my file", "repo/v1.2", "repo2/secret"):
        (base / file).touch()
    return Root(str(base / "repo"), OsView())


def canonical(raw: object, root: Root, type: RepoPath | FilePath | None = None) -> object:
    found = (type or RepoPath()).parse(raw, root)  # type: ignore[arg-type]
    return found.canonical if isinstance(found, Value) else found.codes[0]


def found(text: str, root: Root) -> list[str]:
    spans = list(RepoPath().scan(text, root))
    return [text[start:end] for (start, end), _ in spans]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("src/tax.py", "src/tax.py"),
        ("./src//./tax.py", "src/tax.py"),
        ("src/../src/tax.py", "src/tax.py"),
        ("../repo/src/tax.py", "src/tax.py"),
        ("{root}/src/tax.py", "src/tax.py"),
        ("//{root}/src/tax.py", "src/tax.py"),
        (".", "."),
        ("./", "."),
        ("src/..", "."),
        ("{root}", "."),
        ("src/", "src"),
        ("src/new.py", "src/new.py"),
        ("new/deep/file.py", "new/deep/file.py"),
        ("new/", "new"),
        ("~", "~"),
        ("~/x", "~/x"),
        ("a\\b", "a\\b"),
        (" ", " "),
        ("é", "é"),
        ("e\u0301", "e\u0301"),
        ("...", "..."),
        ("-rf", "-rf"),
        ("$HOME/%2e%2e", "$HOME/%2e%2e"),
    ],
)
def test_one_file_has_one_canonical_path(root: Root, raw: str, expected: str) -> None:
    assert canonical(raw.replace("{root}", root.path), root) == expected


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "PATH_MALFORMED"),
        ("a\0b", "PATH_MALFORMED"),
        ("a" * 256, "PATH_MALFORMED"),
        ("src/" + "é" * 128, "PATH_MALFORMED"),
        ("new/" + "a" * 256, "PATH_MALFORMED"),
        ("a/" * 2048, "PATH_MALFORMED"),
        ("..", "PATH_OUTSIDE_ROOT"),
        ("../repo2", "PATH_OUTSIDE_ROOT"),
        ("../repo2/secret", "PATH_OUTSIDE_ROOT"),
        ("{root}2/secret", "PATH_OUTSIDE_ROOT"),
        ("/", "PATH_OUTSIDE_ROOT"),
        ("/etc/passwd", "PATH_OUTSIDE_ROOT"),
        ("missing/..", "PATH_UNRESOLVED"),
        ("missing/../src/tax.py", "PATH_UNRESOLVED"),
        ("src/tax.py/", "PATH_UNRESOLVED"),
        ("src/tax.py/.", "PATH_UNRESOLVED"),
        ("src/tax.py/x", "PATH_UNRESOLVED"),
        ("src/tax.py/..", "PATH_UNRESOLVED"),
        ("/proc/self/cwd/x", "PATH_UNRESOLVED"),
        ("/dev/fd/0", "PATH_UNRESOLVED"),
        ("src/tax\u200b.py", "NON_CANONICAL_TEXT"),
        ("src/\u202eyp.xat", "NON_CANONICAL_TEXT"),
        ("src/a\nb", "NON_CANONICAL_TEXT"),
        ("src/\udcff", "NON_CANONICAL_TEXT"),
        (7, "FIELD_TYPE"),
        (None, "FIELD_TYPE"),
        (["src"], "FIELD_TYPE"),
    ],
)
def test_what_is_no_path_inside_is_refused(root: Root, raw: object, code: str) -> None:
    assert canonical(raw.replace("{root}", root.path) if isinstance(raw, str) else raw, root) == code


def test_the_longest_names_and_paths_that_the_kernel_takes_are_taken(root: Root) -> None:
    assert canonical("a" * 255, root) == "a" * 255
    depth = (4095 - len(root.path)) // 2
    assert isinstance(resolve("/".join("a" * depth), root), Resolved)
    assert isinstance(resolve("/".join("a" * (depth + 2)), root), Refused)


def test_the_wire_is_the_absolute_resolved_path(root: Root) -> None:
    value = RepoPath().parse("./src/../src/tax.py", root)
    assert isinstance(value, Value)
    assert (value.type, value.wire) == ("RepoPath", f"{root.path}/src/tax.py")


def test_a_file_path_outside_is_absolute_and_inside_relative(root: Root) -> None:
    assert canonical("../repo2/../repo2/secret", root, FilePath()) == f"{root.path}2/secret"
    assert canonical(f"{root.path}/src/tax.py", root, FilePath()) == "src/tax.py"
    assert canonical("..", root, FilePath()) == str(Path(root.path).parent)
    assert canonical("/", root, FilePath()) == "/"
    assert canonical(root.path, root, FilePath()) == "."


@pytest.mark.parametrize(
    "raw", ["/proc", "/proc/self/fd/0", "/sys/kernel", "/dev/fd", "/dev/stdin", "//proc//version", "/tmp/../proc/1/root"]
)
def test_magic_links_are_refused_everywhere(root: Root, raw: str) -> None:
    assert canonical(raw, root, FilePath()) == "PATH_UNRESOLVED"
    link = Path(root.path) / "magic"
    link.symlink_to(raw)
    assert canonical("magic", root, FilePath()) == "PATH_UNRESOLVED"


def test_magic_folders_are_refused_where_nothing_stands_there_yet() -> None:
    for raw in ("/proc", "/proc/self", "/dev/fd/0", "/dev/stdin"):
        assert canonical(raw, Root("/root", EmptyView()), FilePath("keep")) == "PATH_UNRESOLVED"
    assert canonical("/process", Root("/root", EmptyView()), FilePath()) == "/process"


def test_a_link_in_the_last_place_is_followed_or_kept(root: Root) -> None:
    (Path(root.path) / "link").symlink_to("src/tax.py")
    (Path(root.path) / "folder").symlink_to("src")
    assert canonical("link", root) == "src/tax.py"
    assert canonical("link", root, RepoPath("keep")) == "link"
    assert canonical("folder/tax.py", root, RepoPath("keep")) == "src/tax.py"
    assert canonical("folder/", root, RepoPath("keep")) == "PATH_UNRESOLVED"
    assert canonical("folder/", root) == "src"


def test_a_dangling_link_leads_to_what_would_be_made(root: Root) -> None:
    (Path(root.path) / "link").symlink_to("src/new.py")
    (Path(root.path) / "far").symlink_to("no/such")
    found = resolve("link", root)
    assert isinstance(found, Resolved)
    assert (found.path, found.missing, found.links) == (f"{root.path}/src/new.py", 1, (f"{root.path}/link",))
    assert canonical("link/x", root) == "PATH_UNRESOLVED"
    assert canonical("link/", root) == "PATH_UNRESOLVED"
    assert canonical("far", root) == "PATH_UNRESOLVED"


def test_a_name_that_a_link_brings_in_is_read_as_strictly(root: Root) -> None:
    (Path(root.path) / "a\u202eb").touch()
    (Path(root.path) / "link").symlink_to("a\u202eb")
    assert canonical("link", root) == "NON_CANONICAL_TEXT"


def test_what_the_view_cannot_look_at_is_refused() -> None:
    class Closed(EmptyView):
        def entry(self, path: str) -> Entry:
            return Entry(EntryKind.DENIED) if path == "/base/a/b" else Entry(EntryKind.FOLDER)

    assert canonical("a/b", Root("/base", Closed())) == "PATH_UNRESOLVED"
    assert canonical("a/b/c", Root("/base", Closed())) == "PATH_UNRESOLVED"


def test_the_root_of_everything_can_be_the_root() -> None:
    where = Root("/", EmptyView())
    assert canonical("a", where) == "a"
    assert canonical("/", where) == "."
    assert canonical("/../a", where) == "a"


@given(st.text() | st.integers() | st.none() | st.lists(st.text()))
def test_no_json_makes_a_path_raise(raw: object) -> None:
    for kind in (RepoPath(), FilePath("keep")):
        assert isinstance(kind.parse(raw, Root("/root", EmptyView())), Value | Refused)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix src/tax.py and don't touch the rest.", ["src/tax.py"]),
        ('Fix (src/tax.py), then `src/tax.py`; "src/tax.py"!', ["src/tax.py"] * 3),
        ("at src/tax.py:12, src/tax.py:12:5 and src/tax.py#L3-L9", ["src/tax.py"] * 3),
        ("run tests/test_tax.py::test_round", ["tests/test_tax.py"]),
        ("src/tax.py's header", ["src/tax.py"]),
        ("see [the code](src/tax.py).", ["src/tax.py"]),
        ("src/a.py,src/b.py", ["src/a.py", "src/b.py"]),
        ("src/a.py->src/b.py", ["src/a.py", "src/b.py"]),
        ("write src/newthing", ["src/newthing"]),
        ("look into docs/ and ./x", ["docs/", "./x"]),
        ("the Makefile", ["Makefile"]),
        ("the `src` folder", ["src"]),
        ("add 'LICENSE'", ["LICENSE"]),
        ("edit `my file`", ["my file"]),
        ("bump v1.2", ["v1.2"]),
        ("edit README.md, .env and .github/workflows/ci.yml", ["README.md", ".env", ".github/workflows/ci.yml"]),
        ("run `python src/tax.py --fast`", ["src/tax.py"]),
        ("исправь src/налог.py", ["src/налог.py"]),
        ("app/(group)/page.tsx", ["app/(group)/page.tsx"]),
    ],
)
def test_a_path_in_a_request_is_found(root: Root, text: str, expected: list[str]) -> None:
    assert found(text, root) == expected


@pytest.mark.parametrize(
    "text",
    [
        "e.g. this, i.e. that, etc.",
        "version v1.3, 3.14 or 2.0.1",
        "It is done.Then go on.",
        "and/or, he/she, TCP/IP, 1/2, 2024/01/02, CI/CD",
        "https://example.com/src/tax.py and www.example.com/tax.py",
        "mail me@example.com or git@example.com:owner/repo.git",
        "example.com/tax.html",
        "Node.js and ASP.NET, .NET",
        "all *.py, src/*.py and src/**",
        "~/notes.md",
        "the docs folder and src",
        "path=src/tax.py --out=src/tax.py",
        'src/"tax.py" and src/`tax.py`',
        "src/a.py,v",
        "move it to 'src/my new'",
        "call `os.path.join()`, `foo()`, `x = 1`, `--flag`, `HEAD~1`",
        "/help me / you",
        "../repo2/secret",
        "- / . .. ... //",
    ],
)
def test_what_is_no_path_in_a_request_is_not_found(root: Root, text: str) -> None:
    assert found(text, root) == []


def test_a_name_is_never_found_inside_a_longer_path(root: Root) -> None:
    (Path(root.path) / "tax.py").touch()
    assert found("fix src/tax.py", root) == ["src/tax.py"]
    assert found("fix tax.py.bak, xtax.py, tax.pyc, tax.py2 and a-tax.py", root) == ["tax.py.bak", "xtax.py", "a-tax.py"]
    assert found("fix tax.py", root) == ["tax.py"]


def test_parameters_are_read_strictly() -> None:
    assert value_type("RepoPath", {"final": "keep"}) == RepoPath("keep")
    assert value_type("FilePath", {}) == FilePath()
    for bad in ({"final": "nofollow"}, {"final": True}, {"root": "/"}):
        with pytest.raises(ValueError):
            value_type("RepoPath", bad)
