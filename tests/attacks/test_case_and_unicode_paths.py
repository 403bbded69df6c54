"""Threat: a second spelling of one file, or one spelling that a person takes for another file."""

from __future__ import annotations

import unicodedata

import pytest

from cxi.errors import Refused
from cxi.values.base import Root
from cxi.values.path import FilePath, RepoPath
from os_view import FoldingView, OsView

COMPOSED, DECOMPOSED = "café.py", unicodedata.normalize("NFD", "café.py")
FILES = ("/r/Repo/src/Tax.py", "/r/Repo/.github/workflows/ci.yml", "/r/Repo/.ENV", f"/r/Repo/{DECOMPOSED}", "/r/Repo/straße")


def apfs() -> Root:
    return Root("/r/Repo", FoldingView(FILES), case_sensitive=False, normalizes=True)


def read(raw: str, root: Root) -> str:
    value = RepoPath().parse(raw, root)
    return value.codes[0] if isinstance(value, Refused) else str(value.canonical)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("SRC/TAX.PY", "src/Tax.py"),
        ("src/tax.py", "src/Tax.py"),
        ("/R/REPO/Src/tAx.py", "src/Tax.py"),
        (".GitHub/Workflows/CI.yml", ".github/workflows/ci.yml"),
        (".env", ".ENV"),
        (COMPOSED, DECOMPOSED),
        (DECOMPOSED, DECOMPOSED),
        (COMPOSED.upper(), DECOMPOSED),
        ("STRASSE", "straße"),
        ("SRC/new.py", "src/new.py"),
    ],
)
def test_every_spelling_of_a_file_is_as_it_is_spelled_on_disk(raw: str, expected: str) -> None:
    assert read(raw, apfs()) == expected


def test_two_spellings_of_one_file_are_one_value_and_one_wire() -> None:
    spelled = [RepoPath().parse(raw, apfs()) for raw in ("src/Tax.py", "SRC/tax.py", "/r/repo/SRC/TAX.PY")]
    assert spelled[0] == spelled[1] == spelled[2]


def test_the_root_in_another_case_is_still_the_root() -> None:
    assert read("/R/rEPO", apfs()) == "."
    assert read("../REPO/src", apfs()) == "src"


def test_a_file_system_that_only_normalizes_tells_cases_apart() -> None:
    root = Root("/r/Repo", FoldingView(FILES, folds=False), normalizes=True)
    assert read(COMPOSED, root) == DECOMPOSED
    assert read("SRC/Tax.py", root) == "SRC/Tax.py"  # a missing folder of that name
    assert read("src/Tax.py", root) == "src/Tax.py"


def test_a_spelling_that_fits_two_names_is_refused() -> None:
    class Twins(FoldingView):
        def names(self, path: str) -> tuple[str, ...] | None:
            return ("TAX.py", "Tax.py") if path.endswith("/src") else super().names(path)

    assert read("src/tax.py", Root("/r/Repo", Twins(FILES), case_sensitive=False)) == "PATH_UNRESOLVED"


def test_a_folder_that_cannot_be_listed_gives_no_spelling() -> None:
    class Shut(FoldingView):
        def names(self, path: str) -> tuple[str, ...] | None:
            return None if path == "/r/Repo/src" else super().names(path)

    assert read("src/tax.py", Root("/r/Repo", Shut(FILES), case_sensitive=False, normalizes=True)) == "PATH_UNRESOLVED"


def test_on_a_file_system_that_tells_them_apart_spellings_are_files_of_their_own(tmp_path: object) -> None:
    root = Root(str(tmp_path), OsView())
    assert read("A", root) == "A"
    assert read(COMPOSED, root) != read(DECOMPOSED, root)


@pytest.mark.parametrize(
    "raw",
    [
        "src/tax\u200d.py",
        "src/t\u00adax.py",
        "src/\u202ayp.xat\u202c",
        "src/tax.py\u2066",
        "src/\U000e0074ax.py",
        "\ufeffsrc/tax.py",
        "src/tax.py\ufe0f",
        "src/tax.py\n",
        "src/tax.py\r",
        "src/\x1b[8mtax.py",
        "src/\x85",
        "src/\udc80",
    ],
)
def test_a_path_with_what_nobody_sees_is_refused_on_every_file_system(raw: str) -> None:
    for kind in (RepoPath(), FilePath("keep")):
        value = kind.parse(raw, apfs())
        assert isinstance(value, Refused)
        assert value.codes == ("NON_CANONICAL_TEXT",)


@pytest.mark.parametrize("raw", ["src\u2215Tax.py", "src\uff0fTax.py", "src\u2044Tax.py", "\uff0e\uff0e/secret", "src\\Tax.py"])
def test_a_lookalike_of_a_separator_separates_nothing(raw: str) -> None:
    assert read(raw, apfs()) == raw


def test_a_lookalike_name_is_a_name_of_its_own() -> None:
    assert read("src/T\u0430x.py", apfs()) == "src/T\u0430x.py"
    assert read("src/T\u0430x.py", apfs()) != read("src/Tax.py", apfs())
