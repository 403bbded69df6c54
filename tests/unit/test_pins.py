"""Pins are exact, by hash, of one mind, and name no place that they come from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "requirements"
FILES = sorted(FOLDER.glob("*.txt"))
PIN = re.compile(r"([a-z0-9-]+)==([\w.+!]+)((?: ;[^\\\n]+)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def pins(file: Path) -> dict[str, str]:
    return {found[1]: found[2] for found in PIN.finditer(file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_line_of_the_pins_is_a_version_with_hashes_and_nothing_else(file: Path):
    assert PIN.sub("", file.read_text(encoding="utf-8")) == ""
    assert pins(file)


def test_run_time_pins_are_the_same_in_the_development_environment():
    assert pins(FOLDER / "run.txt").items() <= pins(FOLDER / "dev.txt").items()


def test_each_dependency_of_the_project_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[\s<>=!~\[;]", text, maxsplit=1)[0].lower().replace("_", "-") for text in project["dependencies"]}
    assert names <= pins(FOLDER / "run.txt").keys()


def test_there_is_a_pinned_file_for_each_list_of_wishes():
    assert {file.stem for file in FOLDER.glob("*.in")} | {"run"} == {file.stem for file in FILES}
