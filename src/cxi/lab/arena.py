"""A small world for one case: a scratch folder, a configuration written from a few facts, in-process tools, the public API.

- Nothing here decides anything: the configuration is read from files like any other, and calls go through `Guard`.
- `Tools` are in-process executors that really do what they say (files) or count that they were called (everything else).
- `FoldingWorld` stands in for a file system that folds names and cannot be mounted here; it is named as such in the result.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cxi.canonical import JsonValue
from cxi.config.load import load
from cxi.config.lock import make_lock, write_lock
from cxi.effects.base import World
from cxi.errors import NotStarted, OutcomeUnknown
from cxi.guard import Conversation, Guard
from cxi.ledger.base import Lease
from cxi.sinks.base import Answer, Clearance
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Entry

Act = Callable[[str, Mapping[str, JsonValue]], str]


@dataclass(slots=True)
class Tools:
    """An in-process server.

    Attributes:
        definitions: What it lists.
        act: What it does for a call; its text is the answer.
        calls: What it was called with, in order.
        faults: Raised for the next calls, in order, after the act; None for no fault.
    """

    definitions: Sequence[Mapping[str, JsonValue]]
    act: Act = lambda _tool, _arguments: "done"
    calls: list[tuple[str, Mapping[str, JsonValue]]] = field(default_factory=list)
    faults: list[NotStarted | OutcomeUnknown | None] = field(default_factory=list)

    def execute(self, warrant: Lease | Clearance) -> Answer:
        """Do what the warrant names, once."""
        call = warrant.manifest.action.call if isinstance(warrant, Lease) else warrant.call
        self.calls.append((call.tool, call.arguments))
        text = self.act(call.tool, call.arguments)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        return Answer({"content": [{"type": "text", "text": text}], "isError": False}, failed=False)


class FoldingWorld:
    """The disk, as a file system would show it that holds names equal by case, by Unicode form, or both. A stand-in."""

    def __init__(self, *, case: bool, form: bool) -> None:
        self._disk = DiskWorld()
        self._case, self._form = case, form

    def entry(self, path: str) -> Entry:
        """See `View.entry`."""
        return self._disk.entry(self._find(path))

    def names(self, path: str) -> tuple[str, ...] | None:
        """See `View.names`."""
        return self._disk.names(self._find(path))

    def content(self, path: str) -> bytes | None:
        """See `World.content`."""
        return self._disk.content(self._find(path))

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        """See `World.git`."""
        return self._disk.git(repository, question, arguments)

    def _fold(self, name: str) -> str:
        name = unicodedata.normalize("NFC", name) if self._form else name
        return name.casefold() if self._case else name

    def _find(self, path: str) -> str:
        found = "/"
        for part in path.split("/"):
            if part:
                names = self._disk.names(found) or ()
                spelled = next((name for name in names if self._fold(name) == self._fold(part)), part)
                found = f"{found.rstrip('/')}/{spelled}"
        return found


@dataclass(slots=True)
class Arena:
    """What a case is run in.

    Attributes:
        base: A scratch folder.
        root: The declared root, as the configuration names it.
    """

    base: Path
    root: Path

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment that the configuration is read in: the scratch folder's own programs first."""
        return {"PATH": f"{self.base / 'bin'}:/usr/bin:/bin", "HOME": str(self.base)}

    def provide(self, program: str) -> None:
        """Put a program of this name on the search path; it is never started."""
        if "/" not in program and shutil.which(program, path=self.environ["PATH"]) is None:
            file = self.base / "bin" / program
            file.parent.mkdir(exist_ok=True)
            file.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            file.chmod(0o755)

    def configure(self, tools: Mapping[str, JsonValue], *, policies: str, **more: JsonValue) -> Path:
        """Write a configuration with one server, `it`, and its policies.

        Args:
            tools: The contracts of its tools.
            policies: Cedar text.
            more: Further parts of the configuration; `server` is merged into the server's own part.
        """
        folder = self.base / "cxi"
        (folder / "policies").mkdir(parents=True, exist_ok=True)
        (folder / "policies" / "case.cedar").write_text(policies, encoding="utf-8")
        server: dict[str, JsonValue] = {"command": ["true"], "tools": dict(tools)}
        overlay = more.pop("server", {})
        if isinstance(overlay, Mapping):
            server.update(overlay)
        body = {
            "version": 1,
            "agent": "agent",
            "root": str(self.root),
            "state": str(self.base / "state"),
            "policies": ["policies/*.cedar"],
            "servers": {"it": server},
            **more,
        }
        file = folder / "cxi.yaml"
        file.write_text(json.dumps(body, ensure_ascii=False, indent=1), encoding="utf-8")  # JSON is YAML
        return file

    def pin(self, file: Path, tools: Tools) -> None:
        """Accept what the tools list now, as a person does with `cxi lock`."""
        config = load(file, environ=self.environ, pinned=False)
        write_lock(config.lock_file, make_lock(config, {"it": tools.definitions}))

    @contextmanager
    def open(
        self, file: Path, tools: Tools, *, request: str = "", world: World | None = None, case: tuple[bool, bool] | None = None
    ) -> Iterator[tuple[Guard, Conversation]]:
        """Open the configuration with these tools in process, and a session with this request."""
        with Guard.open(file, environ=self.environ, world=world, case=case) as guard:
            guard.attach("it", tools, tools.definitions)
            task = "case" if request and "case" in guard.config.tasks else None
            with guard.session(request=request, task=task) as conversation:
                yield guard, conversation


@contextmanager
def arena(root: str = "workspace") -> Iterator[Arena]:
    """A fresh scratch folder; gone afterwards."""
    base = Path(tempfile.mkdtemp(prefix="cxi-case-")).resolve()
    try:
        yield Arena(base, base / root)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def define(names: Sequence[str]) -> list[Mapping[str, JsonValue]]:
    """Definitions of tools that take any object."""
    return [{"name": name, "inputSchema": {"type": "object"}} for name in dict.fromkeys(names)]


def permit_calls(names: Sequence[str]) -> str:
    """A permit for calling these tools."""
    actions = ", ".join(f'Action::"tool:it.{name}"' for name in dict.fromkeys(names))
    return f'@id("calls") @text("These tools may be called.") permit (principal, action in [{actions}], resource);\n'
