"""A small configuration on disk, and ways to break it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cxi.config.load import load
from cxi.config.model import Configuration

BASE = """\
version: 1
agent: maintainer
root: ./repo
policies: [policies/*.cedar]
prose: [repo/AGENTS.md]
servers:
  files:
    command: [sh, server.py]
    pack: filesystem
    tools:
      write_file: {fields: {path: {from: [any-of-request, release, {choice: [src-and-tests]}]}}}
  ci:
    command: [sh]
    pack: ci-report
evidence:
  test-run: {from: {tool: ci.get_report, path: '$.run', written_by: platform}, subject: commit, expires: 1h}
declassifiers:
  failing:
    from: {tool: ci.get_report, path: '$.testcases[?(@.status=="failed")].file', written_by: platform, complete: true}
    type: RepoPath
    validate: [tracked-file]
    to: files.write_file.path
    selection: all
tasks:
  fix-bug:
    grants: {files.write_file: 20}
mode: enforce
"""

POLICY = """\
@id("src-and-tests")
permit (principal == Agent::"maintainer", action in [Action::"fs.write", Action::"fs.create"], resource is File)
when { resource in Folder::"src" };
@id("no-docs")
forbid (principal, action == Action::"fs.write", resource in Folder::"docs");
"""


class Place:
    """A folder with a configuration in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(folder / "xdg"), "HOME": str(folder)}
        for name in ("repo/src", "repo/docs", "policies"):
            (folder / name).mkdir(parents=True)
        self.write("repo/AGENTS.md", "# Rules\n")
        self.write("policies/p.cedar", POLICY)
        self.write("server.py", "")
        self.write("cxi.yaml", BASE)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def change(self, old: str, new: str) -> str:
        """The base with one piece replaced, written; the new text."""
        assert BASE.count(old) == 1, old
        text = BASE.replace(old, new)
        self.write("cxi.yaml", text)
        return text

    def load(self, *, pinned: bool = True) -> Configuration:
        return load(self.folder / "cxi.yaml", environ=self.environ, pinned=pinned)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def tools_of() -> Callable[[Configuration, str], list[dict[str, object]]]:
    """A listing that offers exactly what the contracts of a server name."""

    def listing(config: Configuration, server: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for contract in config.contracts.values():
            if contract.server != server:
                continue
            properties = {path.split(".")[0].removesuffix("[]"): {"type": "string"} for path in contract.fields}
            found.append({"name": contract.tool, "inputSchema": {"type": "object", "properties": properties}})
        return found

    return listing
