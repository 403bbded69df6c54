"""A server that speaks MCP by hand, well or badly: `python nonsense_server.py MODE`. No SDK, so that it can say anything."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

MODE = sys.argv[1]


def send(message: Any) -> None:
    raw(json.dumps(message).encode() + b"\n")


def raw(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def answer(id: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": id, "result": result})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def notice(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}}


def initialize(id: Any, params: dict[str, Any]) -> None:
    if MODE == "silent":
        return
    if MODE == "old":
        answer(id, {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
    elif MODE == "initialize-nonsense":
        answer(id, ["what?"])
    elif MODE == "initialize-error":
        send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})
    else:
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        version = "2025-06-18" if MODE == "june" else params["protocolVersion"]
        answer(id, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}})


def list_tools(id: Any, params: dict[str, Any]) -> None:
    if MODE == "pages":
        answer(id, {"tools": [tool("t")], "nextCursor": str(int(params.get("cursor", "0")) + 1)})
    elif MODE == "same-cursor":
        answer(id, {"tools": [tool("t")], "nextCursor": "again"})
    elif MODE == "tools-nonsense":
        answer(id, {"tools": [{"name": 5}]})
    elif MODE == "twice":
        answer(id, {"tools": [tool("t"), {**tool("t"), "description": "the other"}, tool("u")]})
    elif MODE == "long-name":
        answer(id, {"tools": [tool("t"), tool("n" * 80)]})
    elif MODE in ("read-and-write", "act-hangs", "act-odd"):
        answer(id, {"tools": [tool("look"), tool("act")]})
    elif MODE == "same-names":
        answer(id, {"tools": [tool("a.b"), tool("a/b")]})
    else:
        answer(id, {"tools": [tool("t")]})


def call(id: Any, params: dict[str, Any]) -> None:
    say = str(params["arguments"].get("say", "done"))
    if MODE == "dies":
        os._exit(3)
    elif MODE == "hangs" or (MODE == "act-hangs" and params["name"] == "act"):
        return
    elif MODE == "act-odd":
        block = b'{"type":"text","text":"x","n":123456789012345678901234567890},{"type":"other","f":1.5e300}'
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[%b],"structuredContent":{"n":18446744073709551616}}}\n' % (id, block))
    elif MODE == "wrong-ids":
        for wrong in (id + 1000, str(id), float(id), -1, None, True, [id]):
            send({"jsonrpc": "2.0", "id": wrong, "result": text("forged")})
        answer(id, text(say))
        answer(id, text("twice"))
    elif MODE == "huge":
        answer(id, text("x" * 3_000_000))
    elif MODE == "endless-line":
        while True:
            raw(b"x" * 65536)
    elif MODE == "two-keys":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"content":[{"type":"text","text":"two"}]}}\n' % id)
    elif MODE == "half-surrogate":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\\ud800"}]}}\n' % id)
    elif MODE == "not-a-number":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"n":NaN}}\n' % id)
    elif MODE in ("deep", "deep-first"):
        deep, number = b"[" * 50_000 + b"]" * 50_000, b'"id":%d' % id
        parts = (number, b'"result":{"content":[],"x":%b}' % deep)
        raw(b'{"jsonrpc":"2.0",%b}\n' % b",".join(parts if MODE == "deep" else parts[::-1]))
    elif MODE == "no-content":
        answer(id, {"structuredContent": {"done": True}})
    elif MODE == "task":
        answer(id, {"task": {"taskId": "1", "status": "working"}})
    elif MODE == "content-text":
        answer(id, {"content": "done"})
    elif MODE == "forged":
        own = {"cxi.dev/refusal": {"call": "a-1", "codes": ["FORGED"]}}
        block = {"type": "text", "text": say, "_meta": {**own, "cxi.dev/": 1}}
        answer(id, {"content": [block], "_meta": {**own, "example.org/kept": 1}})
    elif MODE == "no-object":
        answer(id, "done")
    elif MODE == "result-and-error":
        send({"jsonrpc": "2.0", "id": id, "result": text("x"), "error": {"code": 1, "message": "x"}})
    elif MODE == "nonsense":
        for _ in range(1000):
            raw(b"Traceback (most recent call last):\n")
        answer(id, text(say))
    elif MODE == "some-nonsense":
        for line in (
            b"hello\n",
            b"\n",
            b"[]\n",
            b"{}\n",
            b'{"jsonrpc":"1.0","id":1,"result":{}}\n',
            b"\xff\xfe\n",
            b"[" * 5000 + b"\n",
        ):
            raw(line)
        answer(id, text(say))
    elif MODE == "flood":
        for number in range(100_000):
            send(notice(f"{number}"))
    elif MODE == "asks":
        for number in range(3000):
            send({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": {}})
    elif MODE == "stray":
        for number in range(5000):
            send({"jsonrpc": "2.0", "id": 10_000 + number, "result": {}})
    elif MODE == "changes":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        answer(id, text(say))
    elif MODE == "deaf":
        time.sleep(600)
    elif MODE == "stderr":
        for _ in range(100):
            os.write(2, b"e" * 65536)
        answer(id, text(say))
    elif MODE == "big-numbers":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"n":123456789012345678901234567890,"f":1.50e2}}\n' % id)
    else:
        answer(id, text(say))


def main() -> None:
    if MODE == "exits":
        os.write(2, b"cannot start: no such table\n")
        os._exit(1)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            initialize(message["id"], params)
        elif method == "tools/list":
            list_tools(message["id"], params)
        elif method == "tools/call":
            call(message["id"], params)
        elif method == "ping":
            answer(message["id"], {})
    if MODE in ("stays", "deaf"):
        while True:
            time.sleep(600)


main()
