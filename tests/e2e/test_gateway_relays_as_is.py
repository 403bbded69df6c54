"""Through the gateway the official client sees what it sees without it, but for the differences that the documentation lists."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import mcp_types as types
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from cxi.gateway.method import TABLE

ROOT = Path(__file__).parents[2]
OPEN_GATEWAY = Path(__file__).with_name("open_gateway.py")
EVERYTHING = [sys.executable, str(ROOT / "examples" / "servers" / "everything_server.py")]


def find_server(name: str, program: str) -> str | None:
    """A real server's program: `CXI_SERVERS/<name>/bin`, else `.venvs/<name>/bin`."""
    folders = [Path(os.environ["CXI_SERVERS"])] if "CXI_SERVERS" in os.environ else []
    for folder in [*folders, ROOT / ".venvs"]:
        if (found := folder / name / "bin" / program).exists():
            return str(found)
    return None


@dataclass
class Seen:
    """A connection, and what it was told."""

    session: ClientSession
    prefix: str
    notices: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, kind: type) -> Any:
        async with asyncio.timeout(10):
            while True:
                self.arrived.clear()
                for notice in self.notices:
                    if isinstance(notice, kind):
                        return notice
                await self.arrived.wait()

    async def until_log(self) -> Any:
        async with asyncio.timeout(10):
            while not self.logs:
                self.arrived.clear()
                await self.arrived.wait()
        return self.logs[0]


@contextlib.contextmanager
def shown_on_failure(errors: IO[str]) -> Iterator[None]:
    """What the program wrote to its standard error, where the test fails; a gateway of ours writes no traceback."""
    try:
        yield
        errors.seek(0)
        assert "cxi/gateway/" not in errors.read()
    except BaseException:
        errors.seek(0)
        print(errors.read()[-4000:])
        raise


@contextlib.asynccontextmanager
async def connect(command: list[str], prefix: str = "") -> AsyncIterator[Seen]:
    with tempfile.TemporaryFile("w+") as errors, shown_on_failure(errors):
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with stdio_client(parameters, errlog=errors) as (read, write):
            seen: Seen

            async def notice(message: Any) -> None:
                seen.notices.append(message)
                seen.arrived.set()

            async def log(params: Any) -> None:
                seen.logs.append(params)
                seen.arrived.set()

            async with ClientSession(read, write, message_handler=notice, logging_callback=log) as session:
                seen = Seen(session, prefix)
                await session.initialize()
                yield seen


def through(servers: Mapping[str, list[str]], **plan: Any) -> list[str]:
    """The command of an open gateway over these servers."""
    plan = {
        "servers": {name: {"command": command, **plan.pop(f"{name}_options", {})} for name, command in servers.items()},
        "state": tempfile.mkdtemp(prefix="cxi-"),
        **plan,
    }
    return [sys.executable, str(OPEN_GATEWAY), json.dumps(plan)]


def plain(value: Any) -> Any:
    return json.loads(value.model_dump_json(by_alias=True))


async def both(direct: Awaitable[Any], relayed: Awaitable[Any]) -> tuple[Any, Any]:
    first, second = await asyncio.gather(direct, relayed)
    return first, second


async def outcome(work: Awaitable[Any]) -> Any:
    """The result or the error, as JSON."""
    try:
        return plain(await work)
    except MCPError as error:
        return {"error": [error.error.code, error.error.message, error.error.data]}


def bare(listed: Any, prefix: str, key: str) -> Any:
    """A list without the prefixes of names."""
    for item in listed[key]:
        assert item["name"].startswith(prefix)
        item["name"] = item["name"].removeprefix(prefix)
    return listed


async def all_pages(ask: Callable[..., Awaitable[Any]], key: str) -> Any:
    """A list with its pages in one."""
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page = plain(await ask(params=types.PaginatedRequestParams(cursor=cursor)))
        items += page[key]
        cursor = page["nextCursor"]
        if cursor is None:
            return {key: items}


# --- one probe a row of the table that is on --------------------------------------------------------------------------------


async def probe_ping(it: Seen) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return await outcome(it.session.send_ping())


async def probe_tools_list(it: Seen) -> Any:
    return bare(await all_pages(it.session.list_tools, "tools"), it.prefix, "tools")


async def probe_tools_call(it: Seen) -> Any:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("echo", {"text": "x\u202e\u2028 ü \\u0041 \n\t\0"}),
        ("add", {"a": 2, "b": 5}),
        ("all_content", {}),
        ("fail", {"reason": "no"}),
        ("break", {"reason": "no"}),
        ("unfound", {}),
        ("big", {"size": 3_000_000}),
    ]
    seen: list[Any] = [
        await outcome(it.session.call_tool(it.prefix + name, arguments)) for name, arguments in calls if name != "unfound"
    ]
    together = await asyncio.gather(*(outcome(it.session.call_tool(it.prefix + "echo", {"text": str(n)})) for n in range(40)))
    return [seen, together]


async def probe_resources_list(it: Seen) -> Any:
    return await all_pages(it.session.list_resources, "resources")


async def probe_templates_list(it: Seen) -> Any:
    return await all_pages(it.session.list_resource_templates, "resourceTemplates")


async def probe_resources_read(it: Seen) -> Any:
    uris = [
        "everything://counter",
        "everything://picture",
        "everything://item/7",
        "everything://deep/a/b?c",
        "everything://not/there",
    ]
    return [await outcome(it.session.read_resource(uri)) for uri in uris]


async def probe_subscriptions(it: Seen) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = await outcome(it.session.subscribe_resource("everything://counter"))
        await it.session.call_tool(it.prefix + "touch", {})
        updated = plain(await it.until(types.ResourceUpdatedNotification))
        return [first, updated, await outcome(it.session.unsubscribe_resource("everything://counter"))]


async def probe_prompts_list(it: Seen) -> Any:
    return bare(await all_pages(it.session.list_prompts, "prompts"), it.prefix, "prompts")


async def probe_prompts_get(it: Seen) -> Any:
    asked = [("greet", {"name": "Ada", "language": "fr"}), ("plain", None), ("with resource", None), ("none such", {"x": "y"})]
    return [await outcome(it.session.get_prompt(it.prefix + name, arguments)) for name, arguments in asked]


async def probe_completion(it: Seen) -> Any:
    prompt = types.PromptReference(type="ref/prompt", name=it.prefix + "greet")
    template = types.ResourceTemplateReference(type="ref/resource", uri="everything://item/{number}")
    return [
        await outcome(it.session.complete(prompt, {"name": "language", "value": "e"})),
        await outcome(it.session.complete(template, {"name": "number", "value": "1"}, {"name": "Ada"})),
    ]


async def probe_logging(it: Seen) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level = await outcome(it.session.set_logging_level("warning"))
    await it.session.call_tool(it.prefix + "log", {"level": "error", "text": "disk full"})
    log = plain(await it.until_log())
    assert log.pop("logger") == ("it/everything" if it.prefix else "everything")  # documented
    return [level, log]


async def probe_progress(it: Seen) -> Any:
    steps: list[Any] = []

    async def progress(*step: Any) -> None:
        steps.append(step)

    result = await it.session.call_tool(it.prefix + "count", {"steps": 20}, progress_callback=progress)
    return [plain(result), steps]


async def probe_cancelled(it: Seen) -> Any:
    waiting = asyncio.create_task(it.session.call_tool(it.prefix + "wait", {}))
    assert not plain(await it.session.call_tool(it.prefix + "echo", {"text": "1"}))["isError"]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(10):
        while True:
            answer = plain(await it.session.call_tool(it.prefix + "was_cancelled", {}))
            if answer["content"][0]["text"] == "True":
                return answer


async def probe_list_changed(it: Seen) -> Any:
    await it.session.call_tool(it.prefix + "grow", {})
    notice = plain(await it.until(types.ToolListChangedNotification))
    names = [tool["name"] for tool in (await probe_tools_list(it))["tools"]]
    return [notice, names, plain(await it.session.call_tool(it.prefix + "grown", {}))]


async def probe_asking(it: Seen) -> Any:
    answer = plain(await it.session.call_tool(it.prefix + "ask", {}))["content"][0]["text"].splitlines()
    # Refused either way; by the client as what it did not offer, by the gateway as what is off.
    return [line.partition(": ")[0] + (" answered" if line.endswith("answered") else " refused") for line in answer]


PROBES: dict[str, Callable[[Seen], Awaitable[Any]]] = {
    "ping": probe_ping,
    "tools/list": probe_tools_list,
    "tools/call": probe_tools_call,
    "resources/list": probe_resources_list,
    "resources/templates/list": probe_templates_list,
    "resources/read": probe_resources_read,
    "resources/subscribe": probe_subscriptions,
    "resources/unsubscribe": probe_subscriptions,
    "notifications/resources/updated": probe_subscriptions,
    "prompts/list": probe_prompts_list,
    "prompts/get": probe_prompts_get,
    "completion/complete": probe_completion,
    "logging/setLevel": probe_logging,
    "notifications/message": probe_logging,
    "notifications/progress": probe_progress,
    "notifications/cancelled": probe_cancelled,
    "notifications/tools/list_changed": probe_list_changed,
    "server requests": probe_asking,
}
# `initialize` is answered by the gateway; `initialized` has no answer; the everything server's other lists do not change.
ELSEWHERE = {
    "initialize",
    "notifications/initialized",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
}


def test_every_row_that_is_on_has_a_probe() -> None:
    on = {name for (_, name), row in TABLE.items() if row.on}
    assert on - ELSEWHERE == set(PROBES) - {"server requests"}


async def probe_all(command: list[str], prefix: str) -> dict[str, Any]:
    async with connect(command, prefix) as it:
        return {name: await probe(it) for name, probe in {probe: (name, probe) for name, probe in PROBES.items()}.values()}


def test_the_everything_server_looks_the_same_through_the_gateway() -> None:
    server = [*EVERYTHING, "--page", "3"]
    direct, relayed = asyncio.run(both(probe_all(server, ""), probe_all(through({"it": server}), "it__")))
    for name, seen in direct.items():
        assert relayed[name] == seen, name


def test_two_servers_look_like_one() -> None:
    async def look() -> None:
        async with connect(through({"one": EVERYTHING, "two": EVERYTHING}, refuse=["one.add"], methods=[])) as it:
            result = it.session.initialize_result
            assert result is not None
            assert result.server_info.name == "cxi"
            offered = {name for name, value in plain(result.capabilities).items() if value is not None}
            assert offered == {"tools", "resources", "prompts", "logging", "completions"}
            # The servers' text cannot leave its fence.
            assert str(result.instructions).count("\n~~~~\nEverything that the protocol has.\n~~~\nThis line") == 2
            assert str(result.instructions).endswith("\n~~~~")

            names = [tool.name for tool in (await it.session.list_tools()).tools]
            assert len(names) == len(set(names))
            assert {name.partition("__")[0] for name in names} == {"one", "two"}
            for server in ("one", "two"):
                answer = await it.session.call_tool(f"{server}__echo", {"text": server})
                assert answer.content[0].text == server  # type: ignore[union-attr]

            # A refusal is an ordinary result, also where the client knows an output schema.
            refused = await it.session.call_tool("one__add", {"a": 1, "b": 2})
            assert refused.is_error
            assert refused.structured_content is None
            assert refused.content[0].text.startswith("refused: one.add\n  FIELD_NO_AUTHORITY")  # type: ignore[union-attr]
            assert not (await it.session.call_tool("two__add", {"a": 1, "b": 2})).is_error

            # Both list the same URIs: none is anybody's.
            assert (await it.session.list_resources()).resources == []
            with pytest.raises(MCPError) as doubtful:
                await it.session.read_resource("everything://counter")
            assert doubtful.value.error.data["code"] == "FIELD_AMBIGUOUS"

            # A method that has outward fields and no contract is off.
            for work in (
                it.session.get_prompt("one__plain"),
                it.session.complete(
                    types.PromptReference(type="ref/prompt", name="one__greet"), {"name": "language", "value": ""}
                ),
            ):
                with pytest.raises(MCPError) as off:
                    await work
                assert (off.value.error.code, off.value.error.data["code"]) == (-32601, "METHOD_OFF")

    asyncio.run(look())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for command in (
        ["init", "-q", "-b", "main", str(folder)],
        [
            "-C",
            str(folder),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ],
    ):
        subprocess.run(["git", *command], check=True, env=environment)
    (folder / "a.txt").write_text("changed\n")
    return folder


def test_mcp_server_git_looks_the_same_through_the_gateway(repository: Path) -> None:
    program = find_server("git", "mcp-server-git")
    if program is None:
        pytest.skip("mcp-server-git is not installed (make setup)")
    server = [program, "--repository", str(repository)]

    async def probe(command: list[str], prefix: str) -> list[Any]:
        async with connect(command, prefix) as it:
            tools = await probe_tools_list(it)
            calls: list[tuple[str, dict[str, Any]]] = [
                ("git_reset", {}),  # both begin with nothing staged
                ("git_status", {}),
                ("git_log", {"max_count": 3}),
                ("git_diff_unstaged", {}),
                ("git_show", {"revision": "HEAD"}),
                ("git_show", {"revision": "nothing-there"}),
                ("git_log", {"max_count": "many"}),
                ("git_add", {"files": ["a.txt"]}),
                ("git_status", {}),
            ]
            answers = [
                await outcome(it.session.call_tool(prefix + name, {"repo_path": str(repository), **arguments}))
                for name, arguments in calls
            ]
            return [tools, answers]

    direct = asyncio.run(probe(server, ""))
    assert asyncio.run(probe(through({"git": server}, sinks=["git.git_add", "git.git_reset"]), "git__")) == direct


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"User-agent: *\nAllow: /\n" if self.path == "/robots.txt" else b"plain words \xc3\xbc"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_mcp_server_fetch_looks_the_same_through_the_gateway() -> None:
    program = find_server("fetch", "mcp-server-fetch")
    if program is None:
        pytest.skip("mcp-server-fetch is not installed (make setup)")
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = Thread(target=site.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{site.server_port}/page"

    async def probe(command: list[str], prefix: str) -> list[Any]:
        async with connect(command, prefix) as it:
            return [
                await probe_tools_list(it),
                await probe_prompts_list(it),
                await outcome(it.session.call_tool(prefix + "fetch", {"url": url})),
                await outcome(it.session.call_tool(prefix + "fetch", {"url": "nonsense"})),
                await outcome(it.session.get_prompt(prefix + "fetch", {"url": url})),
                await outcome(it.session.get_prompt(prefix + "fetch", {})),
            ]

    try:
        direct, relayed = asyncio.run(both(probe([program], ""), probe(through({"fetch": [program]}), "fetch__")))
        assert relayed == direct
    finally:
        site.shutdown()
        site.server_close()
        thread.join()
