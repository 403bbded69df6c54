"""What does `cxi gateway` add to a tool call of the official SDK over stdio?

- Two connections of the official client, to the same server: one bare, one through the gateway. Rounds of calls alternate
  between them, and both must answer the same. Wall clock, on a disk; `added` is the ratio of the medians less one, and the 99th
  percentile of all calls stands beside it.
- Reads and durable calls, of the example file server and of `mcp-server-git`. A durable call is one that the gate admits as a
  sink: its lease and its log entry are synced before the server is asked.

    python bench/gateway.py [--json] [--rounds 15] [--calls 20] [--disk FOLDER] [--git-server PROGRAM] [--profile CASE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from arms import Arm, Measured, alternate, report
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PROJECT: Final = Path(__file__).resolve().parents[1]
FILE_SERVER: Final = PROJECT / "examples" / "servers" / "file_server.py"
POLICIES: Final = PROJECT / "examples" / "maintainer" / "policies"
REQUEST: Final = "Fix the failing rounding test in src/tax.py and stage it."
TARGET: Final = "src/tax.py"
# The gateway, under a profiler that writes what it saw when the client has gone.
PROFILED: Final = """
import cProfile, sys
from cxi.gateway.service import run
profiler = cProfile.Profile()
try:
    profiler.runcall(run, sys.argv[1], request=sys.argv[2], task=sys.argv[3])
finally:
    profiler.dump_stats(sys.argv[4])
"""


class Workplace:
    """A repository, its servers, and a configuration of the gateway over them."""

    def __init__(self, base: Path, git_server: Path) -> None:
        self.base = base
        self.repo = base / "repo"
        for folder in ("src", "tests", "docs"):
            (self.repo / folder).mkdir(parents=True)
        for index in range(20):
            (self.repo / "src" / f"part_{index}.py").write_text(content(f"part {index}"), encoding="utf-8")
        (self.repo / TARGET).write_text(content("first"), encoding="utf-8")
        for arguments in (
            ("init", "-q", "-b", "main"),
            ("config", "user.name", "Bench"),
            ("config", "user.email", "bench@example.org"),
            ("add", "."),
            ("commit", "-qm", "First"),
        ):
            subprocess.run(["git", *arguments], cwd=self.repo, check=True)
        self.servers = {
            "files": [sys.executable, str(FILE_SERVER), str(self.repo)],
            "git": [str(git_server), "--repository", str(self.repo)],
        }
        shutil.copytree(POLICIES, base / "cxi" / "policies")
        self.file = base / "cxi" / "cxi.yaml"
        body = {
            "version": 1,
            "agent": "maintainer",
            "root": str(self.repo),
            "state": str(base / "state"),
            "policies": ["policies/*.cedar"],
            "servers": {
                "files": {"command": self.servers["files"], "pack": "filesystem"},
                "git": {"command": self.servers["git"], "pack": "git"},
            },
            "tasks": {"fix-bug": {"grants": {"files.write_file": 1_000_000, "git.git_add": 1_000_000}}},
        }
        self.file.write_text(json.dumps(body), encoding="utf-8")  # JSON is YAML
        cxi = str(Path(sys.executable).with_name("cxi"))
        subprocess.run([cxi, "lock", "--config", str(self.file)], check=True, capture_output=True)

    def gateway(self, profile: Path | None = None) -> list[str]:
        """The command of the gateway; its task is open from the start."""
        if profile is not None:
            return [sys.executable, "-c", PROFILED, str(self.file), REQUEST, "fix-bug", str(profile)]
        cxi = str(Path(sys.executable).with_name("cxi"))
        return [cxi, "gateway", "--config", str(self.file), "--request", REQUEST, "--as", "fix-bug"]


def content(name: str) -> str:
    """About a kilobyte of source that no other name has."""
    return f'"""{name}"""\n\n' + "".join(f"def step_{index}(amount):\n    return amount + {index}\n\n\n" for index in range(20))


@dataclass
class Side:
    """One connection, and how long each of its calls took."""

    session: ClientSession
    loop: asyncio.AbstractEventLoop
    prefix: str
    times: list[float] = field(default_factory=list)

    def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """One round trip; the text of its answer.

        Raises:
            SystemExit: the call failed or was refused.
        """
        name = f"{server}__{tool}" if self.prefix else tool
        start = time.perf_counter()
        result = self.loop.run_until_complete(self.session.call_tool(name, dict(arguments)))
        self.times.append(time.perf_counter() - start)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise SystemExit(f"{name}: {text}")
        return text


@contextmanager
def connections(commands: Mapping[str, list[str]], environment: Mapping[str, str]) -> Iterator[dict[str, Side]]:
    """The official client, connected to each of these programs, in one event loop."""
    loop = asyncio.new_event_loop()
    ready: asyncio.Future[dict[str, Side]] = loop.create_future()
    done = asyncio.Event()

    async def hold(errors: Any) -> None:
        async with AsyncExitStack() as stack:
            sides: dict[str, Side] = {}
            for name, command in commands.items():
                parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(environment))
                read, write = await stack.enter_async_context(stdio_client(parameters, errlog=errors))
                session = await stack.enter_async_context(ClientSession(read, write))
                await session.initialize()
                await session.list_tools()
                sides[name] = Side(session, loop, "gateway" if name == "gateway" else "")
            ready.set_result(sides)
            await done.wait()

    with tempfile.TemporaryFile("w+") as errors:
        task = loop.create_task(hold(errors))
        try:
            loop.run_until_complete(asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED))
            if not ready.done():
                task.result()
            yield ready.result()
        finally:
            done.set()
            loop.run_until_complete(asyncio.wait([task]))
            loop.close()


@dataclass(frozen=True)
class Case:
    """One kind of call.

    Attributes:
        server: Whose tool it is.
        tool: Its own name.
        arguments: Of the next call, for this side's name.
        after: What is done between the calls of both sides, outside the clock.
    """

    server: str
    tool: str
    arguments: Callable[[Workplace, str], Mapping[str, Any]]
    durable: bool = False
    after: Callable[[Workplace], None] = lambda _space: None


_count = iter(range(10**9))


def _change(space: Workplace) -> None:
    (space.repo / TARGET).write_text(content(f"change {next(_count)}"), encoding="utf-8")


CASES: Final[Mapping[str, Case]] = {
    "read a file": Case("files", "read_text_file", lambda space, _: {"path": str(space.repo / TARGET)}),
    "list a folder": Case("files", "list_directory", lambda space, _: {"path": str(space.repo / "src")}),
    "git status": Case("git", "git_status", lambda space, _: {"repo_path": str(space.repo)}),
    "write a file": Case(
        "files",
        "write_file",
        lambda space, side: {"path": str(space.repo / TARGET), "content": content(f"{side} {next(_count)}")},
        durable=True,
    ),
    "git add": Case(
        "git", "git_add", lambda space, _: {"repo_path": str(space.repo), "files": [TARGET]}, durable=True, after=_change
    ),
}


def measure(space: Workplace, name: str, rounds: int, calls: int) -> Measured:
    """One case, through the gateway and bare."""
    case = CASES[name]
    with connections({"bare": space.servers[case.server], "gateway": space.gateway()}, environment(space)) as sides:

        def arm(side: str) -> Arm:
            def run() -> str:
                return sides[side].call(case.server, case.tool, case.arguments(space, side))

            def after(answer: str) -> str:
                case.after(space)
                return answer

            return Arm(side, run, after=after)

        case.after(space)
        gateway, bare = arm("gateway"), arm("bare")
        for _ in range(5):
            for each in (gateway, bare):
                each.run()
                case.after(space)
        for side in sides.values():
            side.times.clear()
        kind = "durable" if case.durable else "read"
        found = alternate(
            replace(gateway, name="through the gateway"),
            replace(bare, name="bare round trip"),
            title=f"{name} ({kind})",
            rounds=rounds,
            calls=calls,
            durable_in=space.base if case.durable else None,
        )
        p99 = {side: statistics.quantiles(sides[side].times, n=100)[98] for side in sides}
        p50 = {side: statistics.median(sides[side].times) for side in sides}
    measured, anchor = found.medians
    return replace(
        found,
        inputs={
            "server": "examples/servers/file_server.py" if case.server == "files" else "mcp-server-git",
            "added": f"{100 * (measured / anchor - 1):.0f}%",
            "p50 ms": [round(1e3 * p50["gateway"], 2), round(1e3 * p50["bare"], 2)],
            "p99 ms": [round(1e3 * p99["gateway"], 2), round(1e3 * p99["bare"], 2)],
            "p99 ratio": round(p99["gateway"] / p99["bare"], 2),
        },
    )


def profile(space: Workplace, name: str, calls: int) -> None:
    """Where the gateway's own time goes in one kind of call, by function."""
    case, out = CASES[name], space.base / "gateway.prof"
    with connections({"gateway": space.gateway(out)}, environment(space)) as sides:
        case.after(space)
        for _ in range(calls):
            sides["gateway"].call(case.server, case.tool, case.arguments(space, "gateway"))
            case.after(space)
    print(f"== {name}, {calls} calls")
    pstats.Stats(str(out)).strip_dirs().sort_stats("cumulative").print_stats(70)
    pstats.Stats(str(out)).strip_dirs().sort_stats("tottime").print_stats(25)


def environment(space: Workplace) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(space.base / "state-home"), "NO_COLOR": "1"}


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()), help="a folder on a real disk")
    parser.add_argument("--git-server", type=Path, default=PROJECT / ".venvs/git/bin/mcp-server-git")
    parser.add_argument("--only", choices=tuple(CASES), action="append")
    parser.add_argument("--profile", choices=tuple(CASES), help="where the gateway's time goes, instead of figures")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="cxi-bench-", dir=options.disk)).resolve()
    try:
        space = Workplace(base, options.git_server)
        if options.profile:
            profile(space, options.profile, options.calls)
            return 0
        figures = [measure(space, name, options.rounds, options.calls) for name in options.only or CASES]
        return report(*figures)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
