"""The real gateway over one hand-written server, spoken to by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("nonsense_server.py")
CLI = [sys.executable, "-c", "from cxi.cli import main; main()"]

CONFIG = """
version: 1
agent: maintainer
root: ./root
policies: [policy.cedar]
servers:
  it:
    command: [{python}, -I, -S, {server}, {mode}]
    tools:
      look:
        effect: none
        fields: {{say: {{role: payload, optional: true}}}}
      act:
        effect: call
        fields: {{say: {{role: payload, optional: true}}}}
tasks:
  act-once:
    grants: {{it.act: 1}}
mode: enforce
"""

POLICY = """
@id("calls") @issuer("org:test") @text("The maintainer calls the tools of the test server.")
permit (principal == Agent::"maintainer", action in [Action::"tool:it.look", Action::"tool:it.act"], resource);
"""


class Gateway:
    """The real gateway, spoken to by hand."""

    def __init__(self, config: Path, environment: Mapping[str, str]) -> None:
        self.config = config
        self._next = 0
        self.process = subprocess.Popen(
            [*CLI, "gateway", "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._next:
                return answer.get("result", answer.get("error"))

    def call(self, tool: str) -> list[str]:
        """The codes of the refusal; empty where it was done."""
        result = self.ask("tools/call", {"name": f"it__{tool}", "arguments": {}})
        return list(result["_meta"]["cxi.dev/refusal"]["codes"]) if result.get("isError") else []

    def start(self, tool: str) -> None:
        """Begin a call, and do not wait for its answer."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": {"name": f"it__{tool}", "arguments": {}}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def end(self, number: int | None = None) -> int:
        if number is not None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        assert b"Traceback" not in errors
        return self.process.returncode


def configure(folder: Path, mode: str, environment: Mapping[str, str]) -> Path:
    """A configuration over the server in this mode, with its lock."""
    (folder / "root").mkdir(parents=True)
    file = folder / "cxi.yaml"
    file.write_text(CONFIG.format(python=sys.executable, server=SERVER, mode=mode))
    (folder / "policy.cedar").write_text(POLICY)
    subprocess.run([*CLI, "lock", "--config", str(file)], check=True, env=environment, capture_output=True)
    return file
