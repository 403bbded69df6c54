"""A small file server over MCP, with the tool names of `@modelcontextprotocol/server-filesystem`.

It confines paths by their text only, as many real servers do: links are followed wherever they lead. Use it to see what a gate in
front of it is worth, not to guard anything.

    python file_server.py FOLDER [FOLDER ...]
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field


class Edit(BaseModel):
    """One edit: a text that is there, and what replaces it."""

    oldText: Annotated[str, Field(description="Text to search for - must match exactly")]  # noqa: N815  # the names of the protocol
    newText: Annotated[str, Field(description="Text to replace with")]  # noqa: N815


class Content(BaseModel):
    """What every tool answers."""

    content: str


@dataclass(frozen=True)
class FileServer:
    """The operations.

    Attributes:
        folders: The folders that paths must lie in, by their text.
    """

    folders: tuple[str, ...]

    def place(self, path: str) -> Path:
        """The absolute path; relative ones are below the first folder. Links are not looked at."""
        absolute = os.path.normpath(os.path.join(self.folders[0], os.path.expanduser(path)))  # noqa: PTH111, PTH118
        if not any(absolute == folder or absolute.startswith(f"{folder}/") for folder in self.folders):
            raise ToolError(f"Access denied - path outside allowed directories: {absolute}")
        return Path(absolute)

    def read(self, path: str, head: int | None = None, tail: int | None = None) -> str:
        if head and tail:
            raise ToolError("Cannot specify both head and tail parameters simultaneously")
        text = self.place(path).read_bytes().decode("utf-8", "replace")
        if head:
            return "\n".join(text.split("\n")[:head])
        return "\n".join(text.replace("\r\n", "\n").split("\n")[-tail:]) if tail else text

    def read_many(self, paths: list[str]) -> str:
        parts = []
        for path in paths:
            try:
                parts.append(f"{path}:\n{self.read(path)}\n")
            except (OSError, ToolError) as error:
                parts.append(f"{path}: Error - {error}")
        return "\n---\n".join(parts)

    def write(self, path: str, content: str) -> str:
        self.place(path).write_bytes(content.encode("utf-8"))
        return f"Successfully wrote to {path}"

    def edit(self, path: str, edits: list[tuple[str, str]], dry_run: bool = False) -> str:
        place = self.place(path)
        before = place.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        after = before
        for raw_old, raw_new in edits:
            old, new = raw_old.replace("\r\n", "\n"), raw_new.replace("\r\n", "\n")
            if old not in after:
                raise ToolError(f"Could not find exact match for edit:\n{raw_old}")
            after = after.replace(old, new, 1)
        if not dry_run:
            place.write_bytes(after.encode("utf-8"))
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), path, path)
        return f"```diff\n{''.join(lines)}```\n\n"

    def make_folder(self, path: str) -> str:
        self.place(path).mkdir(parents=True, exist_ok=True)
        return f"Successfully created directory {path}"

    def list_folder(self, path: str) -> str:
        entries = sorted(self.place(path).iterdir())
        return "\n".join(f"{'[DIR]' if entry.is_dir() else '[FILE]'} {entry.name}" for entry in entries)

    def list_sizes(self, path: str, by: str = "name") -> str:
        rows = [(entry.name, entry.is_dir(), entry.stat().st_size) for entry in sorted(self.place(path).iterdir())]
        if by == "size":
            rows.sort(key=lambda row: -row[2])
        return "\n".join(
            f"{'[DIR]' if folder else '[FILE]'} {name:<30} {'' if folder else f'{size} B'}" for name, folder, size in rows
        )

    def tree(self, path: str, excluded: tuple[str, ...] = ()) -> str:
        return json.dumps(self._tree(self.place(path), "", excluded), indent=2)

    def _tree(self, folder: Path, prefix: str, excluded: tuple[str, ...]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for entry in sorted(folder.iterdir()):
            inside = f"{prefix}{entry.name}"
            if any(fnmatch.fnmatch(inside, pattern) for pattern in excluded):
                continue
            row: dict[str, Any] = {"name": entry.name, "type": "directory" if entry.is_dir() else "file"}
            if entry.is_dir() and not entry.is_symlink():
                row["children"] = self._tree(entry, f"{inside}/", excluded)
            rows.append(row)
        return rows

    def move(self, source: str, destination: str) -> str:
        start, end = self.place(source), self.place(destination)
        if os.path.lexists(end):
            raise ToolError(f"Destination already exists: {destination}")
        start.rename(end)
        return f"Successfully moved {source} to {destination}"

    def search(self, path: str, pattern: str, excluded: tuple[str, ...] = ()) -> str:
        top = self.place(path)
        found = []
        for entry in _walk(top):
            inside = str(entry.relative_to(top))
            if any(fnmatch.fnmatch(inside, one) for one in excluded):
                continue
            if fnmatch.fnmatch(inside, pattern) or fnmatch.fnmatch(entry.name, pattern.removeprefix("**/")):
                found.append(str(entry))
        return "\n".join(found) or "No matches found"

    def info(self, path: str) -> str:
        status = self.place(path).stat()
        rows = {
            "size": status.st_size,
            "modified": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
            "isDirectory": stat.S_ISDIR(status.st_mode),
            "isFile": stat.S_ISREG(status.st_mode),
            "permissions": f"{status.st_mode & 0o777:o}",
        }
        return "\n".join(f"{key}: {value}" for key, value in rows.items())


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry)


Answer = Annotated[CallToolResult, Content]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


def answer(text: str) -> CallToolResult:
    """The same text for the model to read and for a program."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content={"content": text})


def create_server(files: FileServer) -> MCPServer:  # noqa: C901  # one short function a tool
    """The server with its tools."""
    server = MCPServer("example-file-server")
    within = "Only works within allowed directories."

    def run(operation: Any, *arguments: Any) -> CallToolResult:
        try:
            return answer(operation(*arguments))
        except (OSError, UnicodeError) as error:
            raise ToolError(str(error)) from error

    @server.tool(description="Read a file as text. DEPRECATED: Use read_text_file instead.", annotations=READS)
    def read_file(path: str, tail: int | None = None, head: int | None = None) -> Answer:
        return run(files.read, path, head, tail)

    @server.tool(description=f"Read a file as text, or its first or last lines. {within}", annotations=READS)
    def read_text_file(path: str, tail: int | None = None, head: int | None = None) -> Answer:
        return run(files.read, path, head, tail)

    @server.tool(description=f"Read several files at once. {within}", annotations=READS)
    def read_multiple_files(paths: Annotated[list[str], Field(min_length=1)]) -> Answer:
        return run(files.read_many, paths)

    @server.tool(description=f"Create a file, or overwrite it without warning. {within}", annotations=WRITES)
    def write_file(path: str, content: str) -> Answer:
        return run(files.write, path, content)

    @server.tool(description=f"Replace exact pieces of a text file; returns a diff. {within}", annotations=WRITES)
    def edit_file(path: str, edits: list[Edit], dryRun: bool = False) -> Answer:  # noqa: N803
        return run(files.edit, path, [(edit.oldText, edit.newText) for edit in edits], dryRun)

    @server.tool(description=f"Create a folder and its parents; succeeds if it exists. {within}", annotations=WRITES)
    def create_directory(path: str) -> Answer:
        return run(files.make_folder, path)

    @server.tool(description=f"List a folder. {within}", annotations=READS)
    def list_directory(path: str) -> Answer:
        return run(files.list_folder, path)

    @server.tool(description=f"List a folder with sizes. {within}", annotations=READS)
    def list_directory_with_sizes(path: str, sortBy: str = "name") -> Answer:  # noqa: N803
        return run(files.list_sizes, path, sortBy)

    @server.tool(description=f"A folder and all below it, as JSON. {within}", annotations=READS)
    def directory_tree(path: str, excludePatterns: list[str] | None = None) -> Answer:  # noqa: N803
        return run(files.tree, path, tuple(excludePatterns or ()))

    @server.tool(description=f"Move or rename; fails if the destination exists. {within}", annotations=WRITES)
    def move_file(source: str, destination: str) -> Answer:
        return run(files.move, source, destination)

    @server.tool(description=f"Find files below a folder by a glob. {within}", annotations=READS)
    def search_files(path: str, pattern: str, excludePatterns: list[str] | None = None) -> Answer:  # noqa: N803
        return run(files.search, path, pattern, tuple(excludePatterns or ()))

    @server.tool(description=f"Size, time and permissions of a file. {within}", annotations=READS)
    def get_file_info(path: str) -> Answer:
        return run(files.info, path)

    @server.tool(description="The folders that this server may reach.", annotations=READS)
    def list_allowed_directories() -> Answer:
        return answer("Allowed directories:\n" + "\n".join(files.folders))

    return server


def main() -> None:
    """Serve over stdio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", help="a folder that paths must lie in")
    folders = tuple(os.path.abspath(folder) for folder in parser.parse_args().folder)  # noqa: PTH100
    create_server(FileServer(folders)).run("stdio")


if __name__ == "__main__":
    main()
