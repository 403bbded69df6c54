"""A small CI-report server over MCP: it hands out the report that a CI system left in a JSON file.

    python ci_server.py REPOSITORY [--report FILE] [--description-file FILE]

The report is {"run": {"commit", "result", "time"}, "testcases": [{"name", "file", "status", "message"}], "complete",
"log"}. What the CI system itself writes stands beside what the tests printed: `log` and `message` are anyone's text.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ValidationError

DESCRIPTION = "The latest test report: which commit was tested, each test with its status, and the log."


class Run(BaseModel):
    """Which run it was."""

    commit: str
    result: str
    time: str


class Case(BaseModel):
    """One test."""

    name: str
    file: str
    status: str
    message: str = ""


class Report(BaseModel):
    """The whole report."""

    run: Run
    testcases: list[Case]
    complete: bool = False
    log: str = ""


def load_report(path: Path) -> Report:
    """Read the report as the CI system left it."""
    try:
        return Report.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ToolError(f"no report: {error}") from error


def create_server(report: Path, description: str = DESCRIPTION) -> MCPServer:
    """The server with its one tool."""
    server = MCPServer("example-ci-report-server")

    @server.tool(description=description, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def get_report() -> Annotated[CallToolResult, Report]:
        found = load_report(report)
        text = TextContent(type="text", text=found.model_dump_json(indent=1))
        return CallToolResult(content=[text], structured_content=found.model_dump())

    return server


def main() -> None:
    """Serve over stdio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path, help="the repository that the report is about")
    parser.add_argument("--report", type=Path, help="the report; the default is `.ci-report.json` in the repository")
    parser.add_argument("--description-file", type=Path, help="a text that replaces the tool's description")
    options = parser.parse_args()
    described = options.description_file
    description = described.read_text(encoding="utf-8") if described else DESCRIPTION
    create_server(options.report or options.repository / ".ci-report.json", description).run("stdio")


if __name__ == "__main__":
    main()
