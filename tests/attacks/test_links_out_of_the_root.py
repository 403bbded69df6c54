"""Threat: a path that begins inside the root and, through links, ends outside it, or on another file than it seems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cxi.errors import Refused
from cxi.values.base import Root, Value
from cxi.values.path import FilePath, RepoPath
from os_view import OsView


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = Path(os.path.realpath(tmp_path))
    (base / "repo" / "src").mkdir(parents=True)
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("s")
    (base / "repo" / "src" / "tax.py").touch()
    return base


def read(base: Path, raw: str, *, keep: bool = False) -> str:
    value = RepoPath("keep" if keep else "follow").parse(raw, Root(str(base / "repo"), OsView()))
    return value.codes[0] if isinstance(value, Refused) else str(value.canonical)


@pytest.mark.parametrize(
    "target", ["../outside", "{base}/outside", "src/../../outside", ".//..//outside/", "{base}/repo/../outside/."]
)
def test_a_link_to_a_folder_outside_is_refused(base: Path, target: str) -> None:
    (base / "repo" / "link").symlink_to(target.replace("{base}", str(base)))
    for raw in ("link", "link/secret", "link/new.txt", "link/a/b/c", "src/../link/secret", "./link//secret"):
        assert read(base, raw) == "PATH_OUTSIDE_ROOT"


def test_a_chain_of_links_is_followed_to_its_end(base: Path) -> None:
    (base / "repo" / "a").symlink_to("b")
    (base / "repo" / "b").symlink_to("src/c")
    (base / "repo" / "src" / "c").symlink_to("../../outside/secret")
    assert read(base, "a") == "PATH_OUTSIDE_ROOT"
    assert read(base, "a", keep=True) == "a"


def test_going_up_behind_a_link_goes_up_where_the_link_led(base: Path) -> None:
    (base / "repo" / "deep").symlink_to("../outside")
    assert read(base, "deep/../repo/src/tax.py") == "src/tax.py"
    assert read(base, "deep/../outside/secret") == "PATH_OUTSIDE_ROOT"
    # what a comparison of strings would hold to be inside
    assert read(base, "deep/../src/tax.py") == "PATH_OUTSIDE_ROOT"


def test_a_dangling_link_to_the_outside_is_refused_before_anything_is_made_there(base: Path) -> None:
    (base / "repo" / "new.txt").symlink_to(base / "outside" / "not-yet")
    assert read(base, "new.txt") == "PATH_OUTSIDE_ROOT"


def test_a_kept_link_may_lead_anywhere_and_its_parents_may_not(base: Path) -> None:
    (base / "repo" / "link").symlink_to("../outside/secret")
    (base / "repo" / "folder").symlink_to("../outside")
    assert read(base, "link", keep=True) == "link"
    assert read(base, "folder/secret", keep=True) == "PATH_OUTSIDE_ROOT"
    assert read(base, "folder/", keep=True) == "PATH_UNRESOLVED"


def test_links_in_a_circle_are_refused(base: Path) -> None:
    (base / "repo" / "a").symlink_to("b")
    (base / "repo" / "b").symlink_to("a")
    (base / "repo" / "self").symlink_to("self/x")
    for raw in ("a", "b/x", "self", "self/y"):
        assert read(base, raw) == "PATH_UNRESOLVED"


def test_a_link_that_leads_back_inside_is_its_target(base: Path) -> None:
    (base / "outside" / "back").symlink_to(base / "repo" / "src")
    (base / "repo" / "round").symlink_to("../outside/back")
    assert read(base, "round/tax.py") == "src/tax.py"
    assert read(base, "../outside/back/tax.py") == "src/tax.py"


def test_a_neighbour_whose_name_begins_like_the_root_is_outside(base: Path) -> None:
    (base / "repo-evil").mkdir()
    (base / "repo" / "link").symlink_to("../repo-evil")
    for raw in ("../repo-evil/x", str(base / "repo-evil"), "link/x"):
        assert read(base, raw) == "PATH_OUTSIDE_ROOT"


def test_a_file_path_through_a_link_is_named_where_it_ends(base: Path) -> None:
    (base / "repo" / "link").symlink_to("../outside")
    value = FilePath().parse("link/secret", Root(str(base / "repo"), OsView()))
    assert isinstance(value, Value)
    assert value.canonical == value.wire == str(base / "outside" / "secret")
