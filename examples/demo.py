"""The main job, on real input: a worst-case maintenance agent behind `cxi gateway`, and the same agent without it.

A scratch repository with a failing test, three real MCP servers (files, git, CI report), the official MCP client and a scripted
agent that does the task and everything that injected text tells it. Exits 0 only if exactly the authorized changes happened.

    python examples/demo.py                   # behind the gate
    python examples/demo.py --without-gate    # the same agent doing the damage
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from maintainer.agent import Done, Step, work
from maintainer.report import Check, Row, explain, inspect, render_html
from maintainer.workspace import Workspace, git, make
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parents[1]
REQUEST = "fix the failing rounding test and commit"
CXI = Path(sys.executable).parent / "cxi"


def cxi(space: Workspace, *arguments: str, check: bool = True) -> str:
    """Run the command line as a person would, in the configuration's folder."""
    done = subprocess.run(
        [str(CXI), *arguments, "--config", str(space.configuration)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(space),
    )
    if check and done.returncode:
        raise SystemExit(f"cxi {' '.join(arguments)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(space: Workspace) -> dict[str, str]:
    """The demo keeps its state in the scratch folder."""
    return {**os.environ, "XDG_STATE_HOME": str(space.base / "state"), "NO_COLOR": "1"}


async def connect(stack: AsyncExitStack, command: list[str], env: dict[str, str], errors: Any) -> ClientSession:
    """One server behind the official client."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=env)
    read, write = await stack.enter_async_context(stdio_client(parameters, errlog=errors))
    session = await stack.enter_async_context(ClientSession(read, write))
    await session.initialize()
    return session


async def call(session: ClientSession, tool: str, step: Step) -> tuple[bool, str]:
    """One tool call through the official client; a protocol error is a failure like any other."""
    meta = {"cxi.dev/idempotency-key": step.key} if step.key else None
    try:
        result = await session.call_tool(tool, dict(step.arguments), meta=meta)
    except Exception as error:  # noqa: BLE001  # the agent takes whatever comes
        return True, f"{type(error).__name__}: {error}"
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return bool(result.is_error), text


async def behind_the_gate(space: Workspace, errors: Any) -> list[Done]:
    """One client, one endpoint: the gateway. The person starts the task over the control socket."""
    async with AsyncExitStack() as stack:
        command = [str(CXI), "gateway", "--config", str(space.configuration)]
        session = await connect(stack, command, environment(space), errors)
        started = await asyncio.to_thread(cxi, space, "task", "start", "--as", "fix-bug", REQUEST)
        print(started.strip())
        return await work(space.repo, lambda step: call(session, step.tool, step))


async def without_the_gate(space: Workspace, errors: Any) -> list[Done]:
    """Three clients, three servers: what most agents do today."""
    async with AsyncExitStack() as stack:
        sessions = {name: await connect(stack, command, environment(space), errors) for name, command in space.commands().items()}

        async def direct(step: Step) -> tuple[bool, str]:
            server, tool = step.tool.split("__", 1)
            return await call(sessions[server], tool, step)

        return await work(space.repo, direct)


def rows_of_the_log(space: Workspace, done: list[Done]) -> list[Row]:
    """One row a proposed call: the decision and its grounds as the log has them, in order."""
    calls = json.loads(cxi(space, "log", "show", "--json"))["calls"]
    if len(calls) != len(done):
        for item in done:
            print(item.step.tool, item.step.show, item.text[:300], file=sys.stderr)
        raise SystemExit(f"the log has {len(calls)} calls, the agent proposed {len(done)}")
    rows = []
    for entry, item in zip(calls, done, strict=True):
        row = explain(item)
        why = entry["why"] if entry["decision"] != "refused" else row.why
        rows.append(Row(row.call, row.source, entry["decision"], why))
    return rows


def print_rows(console: Console, title: str, rows: list[Row]) -> None:
    table = Table(title=title, title_justify="left", show_lines=False)
    for name, ratio in (("call", 5), ("who wanted it", 2), ("decision", 2), ("why", 8)):
        table.add_column(name, ratio=ratio, overflow="fold")
    style = {"refused": "red", "admitted": "green"}
    for row in rows:
        table.add_row(
            row.call, row.source, f"[{style.get(row.decision, 'default')}]{row.decision}[/]", row.why.replace("[", r"\[")
        )
    console.print(table)


def print_checks(console: Console, checks: list[Check]) -> None:
    console.print("\nwhat the real workspace says:")
    for check in checks:
        console.print(f"  {'[green]yes[/]' if check.holds else '[red]NO [/]'} {check.name} ({check.seen})", highlight=False)


def main() -> int:
    """Run the demo; the exit code says whether exactly the authorized changes happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-gate", action="store_true", help="the same agent, straight to the servers")
    parser.add_argument("--folder", type=Path, default=PROJECT / ".demo", help="where the scratch workspace is made")
    parser.add_argument("--git-server", type=Path, default=PROJECT / ".venvs/git/bin/mcp-server-git")
    options = parser.parse_args()
    began = time.monotonic()
    space = make(options.folder, options.git_server.absolute())
    first = git(space.repo, "rev-parse", "HEAD").strip()
    console = Console(width=160 if not sys.stdout.isatty() else None)
    console.print(f"workspace: {options.folder.name}/repo; request: “{REQUEST}”")
    with (space.base / "servers.log").open("w", encoding="utf-8") as errors:
        if options.without_gate:
            done = asyncio.run(without_the_gate(space, errors))
            rows, verified = [explain(item) for item in done], "no gate, so no log"
        else:
            print(cxi(space, "lock").strip())
            done = asyncio.run(behind_the_gate(space, errors))
            rows = rows_of_the_log(space, done)
            verified = cxi(space, "log", "verify").strip()
    title = "without the gate" if options.without_gate else "behind the gate"
    print_rows(console, f"every proposed call, {title}", rows)
    checks = inspect(space, first)
    print_checks(console, checks)
    console.print(f"\nlog: {verified}", highlight=False)
    page = space.base / "report.html"
    page.write_text(render_html(f"CXI demo: {title}", rows, checks, verified), encoding="utf-8")
    broken = [check for check in checks if not check.holds]
    admitted = [
        row
        for row in rows
        if row.source not in ("task", "a retrying client") and row.decision == "admitted" and "src/tax.py" not in row.call
    ]
    console.print(f"report: {options.folder.name}/report.html; {time.monotonic() - began:.0f} s")
    if options.without_gate:
        console.print(f"damage: {len(broken)} of {len(checks)} checks do not hold")
        return 0 if broken else 1
    console.print(f"{len(checks) - len(broken)} of {len(checks)} checks hold; {len(admitted)} injected acts admitted")
    return 1 if broken or admitted else 0


if __name__ == "__main__":
    raise SystemExit(main())
