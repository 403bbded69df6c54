"""Our walk leads where the kernel's leads, and ends where the kernel's ends, on random trees with links, loops and gaps."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values.base import EntryKind, Root
from cxi.values.path import Resolved, _resolve_straight, _Walk, relative, resolve
from os_view import OsView

NAMES = ("a", "b", "c", "d.txt", "é", "~")
PIECES = st.sampled_from([*NAMES, "..", ".", "", "missing", "a", "b"])
TAILS = st.sampled_from(["", "", "", "/", "/.", "//"])


@st.composite
def a_path(draw: st.DrawFn, *, base: str = "{root}") -> str:
    path = "/".join(draw(st.lists(PIECES, min_size=1, max_size=6))) + draw(TAILS)
    start = draw(st.sampled_from(["", "", "", base, f"{base}/../{{name}}", "/"]))
    return f"{start}/{path}" if start else path


@st.composite
def a_tree(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """(kind, where, the link's text), to be made in order; what cannot be made is left out."""
    wheres = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
    kinds = st.sampled_from(["folder", "folder", "file", "link", "link", "link"])
    return draw(st.lists(st.tuples(kinds, wheres, a_path()), max_size=12))


@contextmanager
def grown(tree: list[tuple[str, str, str]]) -> Iterator[Path]:
    """The tree in a folder `root` with a neighbour, removed again behind us."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="cxi-tree-")))
    root = base / "root"
    try:
        (root / "a").mkdir(parents=True)
        (base / "missing").mkdir()  # a neighbour that `..` can reach
        for kind, where, text in tree:
            target = root / where
            try:
                if kind == "folder":
                    target.mkdir(parents=True)
                elif kind == "file":
                    target.touch(exist_ok=False)
                elif filled(text, root):
                    target.symlink_to(filled(text, root))
            except OSError:
                continue
        yield root
    finally:
        shutil.rmtree(base)


def filled(path: str, root: Path) -> str:
    return path.replace("{root}", str(root)).replace("{name}", root.name)


def kernel_reads(path: str, flags: int = 0) -> str | int:
    """Where open(2) leads, as the kernel itself says it, or its errno."""
    try:
        handle = os.open(path, os.O_PATH | flags)
    except OSError as error:
        return error.errno or -1
    try:
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    finally:
        os.close(handle)


def kernel_makes(path: str) -> str | int:
    """Where open(2) with O_CREAT makes a file, removed again at once, or its errno."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    except OSError as error:
        return error.errno or -1
    try:
        made = str(Path(f"/proc/self/fd/{handle}").readlink())
        Path(made).unlink()
        return made
    finally:
        os.close(handle)


def check(path: str, root: Path) -> None:
    there = str(root) + "/" + path if not path.startswith("/") else path
    ours = resolve(path, Root(str(root), OsView()))
    kernel = kernel_reads(there)
    if isinstance(kernel, str):
        event("the kernel opens it")
        assert isinstance(ours, Resolved), (path, kernel, ours)
        assert (ours.path, ours.missing) == (kernel, 0)
        assert ours.path == os.path.realpath(there)
        assert ours.entry.kind in (EntryKind.FILE, EntryKind.FOLDER, EntryKind.OTHER)
        return
    event(f"the kernel says {errno.errorcode.get(kernel, kernel)}")
    if kernel != errno.ENOENT:
        assert isinstance(ours, Refused), (path, errno.errorcode[kernel], ours)
        return
    made = kernel_makes(there)
    if isinstance(made, str):
        event("the kernel makes it")
        assert isinstance(ours, Resolved), (path, made, ours)
        assert (ours.path, ours.missing) == (made, 1)
    elif isinstance(ours, Resolved):
        # a folder that mkdir(2) could make, or several: never by a way that the kernel takes elsewhere
        event("missing parents, or a missing folder")
        assert ours.missing >= 1
        os.makedirs(there.rstrip("/.") if there.endswith(("/", "/.")) else there)  # noqa: PTH103  # a Path would tidy the text
        assert kernel_reads(there) == ours.path


@given(a_tree(), st.lists(a_path(), min_size=1, max_size=8))
def test_a_path_leads_where_the_kernel_leads(tree: list[tuple[str, str, str]], paths: list[str]) -> None:
    with grown(tree) as root:
        for path in paths:
            if filled(path, root):
                check(filled(path, root), root)


@given(a_tree(), st.lists(a_path(), min_size=1, max_size=8))
def test_a_kept_link_is_the_one_that_the_kernel_keeps(tree: list[tuple[str, str, str]], paths: list[str]) -> None:
    with grown(tree) as root:
        for path in filter(None, (filled(path, root) for path in paths)):
            there = str(root) + "/" + path if not path.startswith("/") else path
            ours = resolve(path, Root(str(root), OsView()), final="keep")
            kernel = kernel_reads(there, os.O_NOFOLLOW)
            if isinstance(ours, Resolved) and ours.missing == 0:
                assert kernel == ours.path
            elif isinstance(kernel, str):
                # `link/` and `link/.`: lstat(2) follows them, unlink(2) and rename(2) do not take them
                assert isinstance(ours, Refused)
                assert path.endswith(("/", "/."))
                assert Path(there.rstrip("/.")).is_symlink()


@given(a_tree(), a_path())
def test_a_resolved_path_resolves_to_itself(tree: list[tuple[str, str, str]], path: str) -> None:
    with grown(tree) as root:
        where = Root(str(root), OsView())
        once = resolve(filled(path, root), where)
        if isinstance(once, Resolved):
            again = resolve(once.path, where)
            assert isinstance(again, Resolved)
            assert (again.path, again.links) == (once.path, ())


@settings(max_examples=30)
@given(st.integers(min_value=0, max_value=45))
def test_as_many_links_are_followed_as_the_kernel_follows(count: int) -> None:
    with grown([]) as root:
        (root / "end").touch()
        for index in range(count):
            (root / f"l{index}").symlink_to(f"l{index + 1}" if index + 1 < count else "end")
        check("l0" if count else "end", root)


@given(st.lists(st.sampled_from(["r", "root", "roots", "root2", "a", "rootr"]), min_size=1, max_size=4))
def test_inside_is_judged_by_components_and_never_by_prefix(parts: list[str]) -> None:
    root = Root("/r/root", OsView())
    inside = relative("/" + "/".join(parts), root)
    assert (inside is not None) == (parts[:2] == ["r", "root"])


@given(a_tree(), st.lists(a_path(), min_size=1, max_size=6))
def test_the_short_way_leads_where_the_walk_leads_and_asks_no_more(tree: list[tuple[str, str, str]], paths: list[str]) -> None:
    with grown(tree) as root:
        for path in paths:
            asked: list[list[str]] = []
            found = []
            for way in ("short", "walk"):
                view = OsView()
                asked.append(view.asked)
                where = Root(str(root), view)
                text = filled(path, root)
                found.append(_resolve_straight(text, where) if way == "short" else _Walk(where, "follow").run(text))
            event("short" if found[0] is not None else "walk")
            if found[0] is not None:
                assert found[0] == found[1]
                assert set(asked[0]) == set(asked[1])
