"""Each command that the documentation shows is one, with its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from cxi.cli.app import app

ROOT = Path(__file__).parents[2]
READ = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
COMMAND = re.compile(r"(?:^\$ |`)cxi ([a-z]+(?:-[a-z]+)*(?: [a-z]+(?:-[a-z]+)*(?![\w.-]))?)([^`\n#]*)", re.MULTILINE)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_command_that_a_page_shows_exists_with_its_options(page: Path):
    tree = typer.main.get_command(app)
    wrong = []
    for shown in COMMAND.finditer(page.read_text(encoding="utf-8")):
        command: Any = tree
        for word in f"{shown[1]}{shown[2]}".split():
            if hasattr(command, "commands") and re.fullmatch(r"[a-z]+(-[a-z]+)*", word):
                command = command.commands.get(word)
            else:
                break
        options = {name for parameter in getattr(command, "params", []) for name in parameter.opts}
        if command is None or not set(re.findall(r"(?<=\s)--[a-z-]+", shown[2])) <= {*options, "--help"}:
            wrong.append(shown[0])
    assert wrong == []
