"""An MCP server that does everything the protocol has, on the official SDK.

It is what the gateway is compared over: every kind of content, structured output, errors, progress, cancellation, logging,
resources with templates and subscriptions, prompts, completions, lists in pages, tools that change. It touches nothing outside
itself.

    python everything_server.py [--page N]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

# Logging is deprecated in a later revision than the ones spoken here.
warnings.filterwarnings("ignore", category=DeprecationWarning)
warnings.filterwarnings("ignore", message=".*deprecated.*")

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n not really a picture").decode()
SOUND = base64.b64encode(b"RIFF not really a sound").decode()
T = TypeVar("T")


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT, WHOLE, REAL = {"type": "string"}, {"type": "integer"}, {"type": "number"}

TOOLS = [
    types.Tool(
        name="echo",
        title="Echo",
        description="Give a text back, exactly.",
        input_schema=_schema(text=TEXT),
        annotations=types.ToolAnnotations(title="Echo", read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    ),
    types.Tool(
        name="add",
        description="Add two numbers; the sum is structured.",
        input_schema=_schema(a=WHOLE, b=WHOLE),
        output_schema=_schema(sum=WHOLE, halves={"type": "array", "items": REAL}),
    ),
    types.Tool(name="all_content", description="Every kind of content block.", input_schema=_schema()),
    types.Tool(name="fail", description="Report an error of the tool.", input_schema=_schema(reason=TEXT)),
    types.Tool(name="break", description="Answer with an error of the protocol.", input_schema=_schema(reason=TEXT)),
    types.Tool(name="count", description="Report progress, step by step.", input_schema=_schema(steps=WHOLE)),
    types.Tool(name="wait", description="Never answer, until it is cancelled.", input_schema=_schema()),
    types.Tool(name="was_cancelled", description="Whether `wait` was cancelled.", input_schema=_schema()),
    types.Tool(name="log", description="Write to the client's log.", input_schema=_schema(level=TEXT, text=TEXT)),
    types.Tool(name="touch", description="Say that the counter resource was updated.", input_schema=_schema()),
    types.Tool(name="grow", description="Offer one more tool.", input_schema=_schema()),
    types.Tool(
        name="ask", description="Ask the client's model, person and roots, and tell what it said.", input_schema=_schema()
    ),
    types.Tool(name="big", description="A long text.", input_schema=_schema(size=WHOLE)),
]

GROWN = types.Tool(name="grown", description="A tool that was not there before.", input_schema=_schema())

RESOURCES = [
    types.Resource(uri="everything://counter", name="counter", title="Counter", mime_type="text/plain", size=1),
    types.Resource(uri="everything://picture", name="picture", mime_type="image/png", description="A picture."),
    *(types.Resource(uri=f"everything://item/{number}", name=f"item {number}") for number in range(5)),
]

TEMPLATES = [
    types.ResourceTemplate(uri_template="everything://item/{number}", name="item", description="One item."),
    types.ResourceTemplate(uri_template="everything://deep/{+path}", name="deep"),
]

PROMPTS = [
    types.Prompt(
        name="greet",
        title="Greet",
        description="Greet somebody.",
        arguments=[
            types.PromptArgument(name="name", description="Who.", required=True),
            types.PromptArgument(name="language", required=False),
        ],
    ),
    types.Prompt(name="plain", description="No arguments."),
    types.Prompt(name="with resource", description="Embeds a resource; its name has a blank."),
]

LANGUAGES = ["de", "en", "en-GB", "fr"]


class Everything:
    """The server's state and its handlers."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.counter = 0
        self.cancelled = False
        self.tools = list(TOOLS)
        self.subscribed: set[str] = set()

    def cut(self, items: Sequence[T], params: types.PaginatedRequestParams | None) -> tuple[list[T], str | None]:
        """One page of a list, and the cursor of the next."""
        if not self.page:
            return list(items), None
        start = int(params.cursor) if params is not None and params.cursor else 0
        end = start + self.page
        return list(items[start:end]), str(end) if end < len(items) else None

    async def list_tools(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools, cursor = self.cut(self.tools, params)
        return types.ListToolsResult(tools=tools, next_cursor=cursor)

    async def list_resources(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        resources, cursor = self.cut(RESOURCES, params)
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        templates, cursor = self.cut(TEMPLATES, params)
        return types.ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)

    async def list_prompts(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        prompts, cursor = self.cut(PROMPTS, params)
        return types.ListPromptsResult(prompts=prompts, next_cursor=cursor)

    async def read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri == "everything://counter":
            return _text_resource(uri, str(self.counter))
        if uri == "everything://picture":
            contents = [types.BlobResourceContents(uri=uri, blob=PIXEL, mime_type="image/png")]
            return types.ReadResourceResult(contents=contents)
        for prefix in ("everything://item/", "everything://deep/"):
            if uri.startswith(prefix):
                return _text_resource(uri, f"this is {uri.removeprefix(prefix)}")
        raise MCPError(code=-32002, message="Resource not found", data={"uri": uri})

    async def subscribe(self, _: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self.subscribed.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, _: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = params.arguments or {}
        if params.name == "greet":
            text = f"Greet {arguments['name']} in {arguments.get('language', 'en')}."
            return types.GetPromptResult(description="A greeting", messages=[_says(text)])
        if params.name == "plain":
            return types.GetPromptResult(messages=[_says("Say something."), _says("Something.", role="assistant")])
        if params.name == "with resource":
            resource = types.TextResourceContents(uri="everything://counter", text=str(self.counter), mime_type="text/plain")
            block = types.EmbeddedResource(type="resource", resource=resource)
            return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block)])
        raise MCPError(code=-32602, message="no such prompt")

    async def complete(self, _: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        pool = LANGUAGES if params.argument.name == "language" else [str(number) for number in range(12)]
        values = [value for value in pool if value.startswith(params.argument.value)]
        known = params.context.arguments if params.context is not None and params.context.arguments else {}
        values += [f"for {value}" for value in known.values()]
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    async def set_level(self, _: Any, __: types.SetLevelRequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        handler = getattr(self, f"tool_{params.name}", None)
        if handler is None:
            raise MCPError(code=-32602, message=f"Unknown tool: {params.name}")
        return await handler(ctx, params.arguments or {})

    async def tool_echo(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return _says_text(arguments["text"])

    async def tool_add(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        total = arguments["a"] + arguments["b"]
        structured = {"sum": total, "halves": [total / 2, total / 2]}
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(total))], structured_content=structured)

    async def tool_all_content(self, *_: Any) -> types.CallToolResult:
        embedded = types.TextResourceContents(uri="everything://counter", text="0", mime_type="text/plain")
        blob = types.BlobResourceContents(uri="everything://picture", blob=PIXEL, mime_type="image/png")
        notes = types.Annotations(audience=["user"], priority=0.25)
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text="text: ü, 日本, \u202e, \u2028, \\u0041, </x>", annotations=notes),
                types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
                types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav"),
                types.EmbeddedResource(type="resource", resource=embedded),
                types.EmbeddedResource(type="resource", resource=blob),
                types.ResourceLink(type="resource_link", uri="everything://item/3", name="item 3", mime_type="text/plain"),
            ],
            _meta={"example.org/note": [1, 2.5, None, {"big": 9007199254740993}]},
        )

    async def tool_fail(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=arguments["reason"])], is_error=True)

    async def tool_break(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        raise MCPError(code=-32050, message=arguments["reason"], data={"why": ["a", 1]})

    async def tool_count(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        steps = arguments["steps"]
        for step in range(1, steps + 1):
            await ctx.session.report_progress(step, steps, f"step {step}")
        return _says_text(f"{steps} steps")

    async def tool_wait(self, *_: Any) -> types.CallToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled = True
        return _says_text("never")

    async def tool_was_cancelled(self, *_: Any) -> types.CallToolResult:
        return _says_text(str(self.cancelled))

    async def tool_log(self, ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        await ctx.session.send_log_message(level=arguments["level"], data={"text": arguments["text"]}, logger="everything")
        return _says_text("logged")

    async def tool_touch(self, ctx: Any, _: dict[str, Any]) -> types.CallToolResult:
        self.counter += 1
        for uri in ("everything://counter", "everything://picture"):
            if uri in self.subscribed or uri.endswith("picture"):
                await ctx.session.send_resource_updated(uri)
        return _says_text(str(self.counter))

    async def tool_grow(self, ctx: Any, _: dict[str, Any]) -> types.CallToolResult:
        self.tools.append(GROWN)
        await ctx.session.send_tool_list_changed()
        return _says_text("grown")

    async def tool_grown(self, *_: Any) -> types.CallToolResult:
        return _says_text("here")

    async def tool_ask(self, ctx: Any, _: dict[str, Any]) -> types.CallToolResult:
        said: list[str] = []
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="what do you know?"))
        asked = (
            ("sampling", lambda: ctx.session.create_message([message], max_tokens=5)),
            ("elicitation", lambda: ctx.session.elicit_form("your password?", {"type": "object", "properties": {}})),
            ("roots", ctx.session.list_roots),
            ("ping", ctx.session.send_ping),
        )
        for name, ask in asked:
            try:
                await ask()
                said.append(f"{name}: answered")
            except Exception as error:  # noqa: BLE001  # what kind of refusal it is, is the answer
                said.append(f"{name}: {getattr(getattr(error, 'error', None), 'code', type(error).__name__)}")
        return _says_text("\n".join(said))

    async def tool_big(self, _: Any, arguments: dict[str, Any]) -> types.CallToolResult:
        return _says_text("x" * arguments["size"])


def _says_text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _says(text: str, role: Any = "user") -> types.PromptMessage:
    return types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))


def _text_resource(uri: str, text: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")])


def build(page: int = 0) -> Server[Any]:
    """The server.

    Args:
        page: How many items a page of a list has; 0 means all.
    """
    it = Everything(page)
    return Server(
        "everything",
        version="1.0",
        title="Everything",
        instructions="Everything that the protocol has.\n~~~\nThis line tries to leave its fence.",
        on_list_tools=it.list_tools,
        on_call_tool=it.call_tool,
        on_list_resources=it.list_resources,
        on_list_resource_templates=it.list_templates,
        on_read_resource=it.read_resource,
        on_subscribe_resource=it.subscribe,
        on_unsubscribe_resource=it.unsubscribe,
        on_list_prompts=it.list_prompts,
        on_get_prompt=it.get_prompt,
        on_completion=it.complete,
        on_set_logging_level=it.set_level,
    )


async def _main(page: int) -> None:
    server = build(page)
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--page", type=int, default=0, help="items a page of a list has; 0 means all")
    asyncio.run(_main(parser.parse_args().page))
