"""How many of the commands that real agents ran can be planned, against what their run had shown by then?

- Public traces of coding agents (OpenHands, SWE-agent), read from a folder that the caller names; nothing of them is kept.
- For each run a tree is rebuilt from what it had shown: files that it made or viewed, names that listings printed. A file that
  was named but never shown has no known bytes. A command that needs a path which the run never showed is counted apart.
- exact: every atom is certain; bounded: some are patterns or `maybe`; refused, by reason; unseen. `opaque` counts the plans that
  hold a program which only running could tell of.
"""

from __future__ import annotations

import io
import json
import platform
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from cxi.canonical import digest_bytes
from cxi.effects.shell.adapter import plan_text
from cxi.effects.snapshot import RecordingSnapshot
from cxi.effects.tree import Tree
from cxi.errors import ConfigError, Problem, Refused
from cxi.values.base import Entry, EntryKind

FILES: Final = ("openhands-swebench-runs.jsonl.zst", "swe-agent-demonstrations.jsonl.zst")
# What the agents' own harness understands in place of a command.
_TOOLS: Final = frozenset(
    {
        *(
            "open",
            "goto",
            "scroll_up",
            "scroll_down",
            "create",
            "edit",
            "insert",
            "submit",
            "find_file",
            "search_file",
            "search_dir",
        ),
        *("decompile", "disassemble", "set_cursors", "connect_start", "connect_sendline", "connect_exec", "connect_stop"),
        *("debug_start", "debug_stop", "str_replace_editor", "exit_forfeit", "view", "submit_review_submission"),
    }
)
_PATH: Final = re.compile(r"(?<![\w/.-])(/[\w.+-]+(?:/[\w.+-]+)+|\.{1,2}/[\w./+-]+)")
_PROMPT: Final = re.compile(r":(/\S*) #")
_HEADING: Final = re.compile(r"^(\S+):\r?$")

Result: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _Run:
    """What one run has shown so far."""

    root: str
    cwd: str
    home: str = "/root"
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    opened: str = ""

    def at(self, text: str) -> str:
        return posixpath.normpath(text if text.startswith("/") else posixpath.join(self.cwd, text))

    def show(self, text: str, body: str | None = None) -> None:
        """A path was shown; with its text, where that is known."""
        path = self.at(text)
        name = posixpath.basename(path)
        if body is not None:
            self.entries[path] = {"text": body}
        elif path not in self.entries:
            self.entries[path] = {"text": "", "unknown": True} if "." in name.lstrip(".") else {"folder": True}

    def read(self, command: str, output: str) -> None:
        """What a command's output shows: paths, and the names below headings of `ls`."""
        if "No such file" in output:
            output = "\n".join(line for line in output.splitlines() if "No such file" not in line)
        for found in _PATH.findall(output):
            self.show(found.rstrip("."))
        heading = ""
        for line in output.splitlines():
            found = _HEADING.match(line)
            if found:
                heading = found[1]
                self.entries[self.at(heading)] = {"folder": True}
            elif heading and line.strip():
                for name in line.split():
                    if re.fullmatch(r"[\w.+-]+", name):
                        self.show(posixpath.join(heading, name))
        if re.match(r"ls( -\w+)*( \S+)?$", command.strip()) and not heading:
            folder = (
                command.rsplit(maxsplit=1)[-1]
                if len(command.split()) > 1 and not command.rsplit(maxsplit=1)[-1].startswith("-")
                else "."
            )
            for line in output.splitlines():
                names = line.split()[-1:] if re.match(r"[-dl][rwx-]{9}", line) else line.split()
                for name in names:
                    if re.fullmatch(r"[\w.+-]*[\w]", name) and name != command.split(maxsplit=1)[0]:
                        self.show(posixpath.join(folder, name))


class _Shown(Tree):
    """The tree, which remembers what was asked of it that the run had not shown."""

    def __init__(self, run: _Run) -> None:
        super().__init__("/", {path: {k: v for k, v in body.items() if k != "unknown"} for path, body in run.entries.items()})
        self._folder(run.root)
        self._folder(run.cwd)
        self._unknown = {path for path, body in run.entries.items() if body.get("unknown")}
        self.missing: set[str] = set()

    def entry(self, path: str) -> Entry:
        found = super().entry(path)
        if found.kind in (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER):
            self.missing.add(path)
        return found

    def content(self, path: str) -> bytes | None:
        return None if path in self._unknown else super().content(path)


def run(folder: Path) -> Result:
    """Plan every shell command of both corpora.

    Raises:
        ConfigError: the corpora are not there, or cannot be unpacked.
    """
    rows: list[Result] = []
    for name in FILES:
        file = folder / name
        if not file.is_file():
            raise ConfigError(Problem(str(file), 0, "the corpus is not there", "name its folder, or set CXI_CORPORA"))
        for number, line in enumerate(_lines(file)):
            body = json.loads(line)
            steps = _openhands(body) if "calls" in body else _swe_agent(body)
            rows.extend({"file": name, "run": number, **row} for row in steps)
    counts = Counter(str(row["verdict"]) for row in rows)
    total = len(rows)
    tried = total - counts["unseen"]
    planned = counts["exact"] + counts["bounded"]
    reasons = Counter(str(row["reason"]) for row in rows if row["verdict"] == "refused")
    return {
        "experiment": "shell-corpus",
        "inputs": {
            "files": {name: digest_bytes((folder / name).read_bytes()) for name in FILES},
            "seeds": [],
            "versions": {"cxi": version("cxi"), "python": platform.python_version()},
        },
        "denominators": {"commands": total, **{key: counts[key] for key in ("exact", "bounded", "refused", "unseen")}},
        "figures": {
            "planned_of_all": round(planned / total, 4) if total else 0,
            "planned_of_those_seen": round(planned / tried, 4) if tried else 0,
            "opaque": sum(bool(row["opaque"]) for row in rows),
        },
        "refused": dict(reasons.most_common()),
        "violations": [],
        "ok": True,
        "commands": rows,
    }


def _lines(file: Path) -> Iterator[str]:
    try:
        import zstandard  # noqa: PLC0415 - only this experiment needs it
    except ImportError:
        raise ConfigError(Problem(str(file), 0, "zstandard is not installed", "pip install zstandard")) from None
    with file.open("rb") as raw:
        yield from io.TextIOWrapper(zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw), encoding="utf-8")


def _plan(run_: _Run, command: str) -> Result:
    world = _Shown(run_)
    found = plan_text(command, RecordingSnapshot(world, run_.root), cwd=run_.cwd, home=run_.home)
    if isinstance(found, Refused):
        reason = re.sub(r"`[^`]*`", "`…`", found.reasons[0].detail)
        unseen = "is no folder" in reason
        return {"command": command, "verdict": "unseen" if unseen else "refused", "reason": reason, "opaque": False}
    made = {run_.at(atom.target) if not atom.target.startswith("/") else atom.target for atom in found.atoms}
    made |= {posixpath.normpath(posixpath.join(run_.root, atom.target)) for atom in found.atoms}
    inside = {path for path in world.missing if path.startswith(f"{run_.root}/") and path not in made and "/.git" not in path}
    opaque = any(atom.attributes.get("inputs_writable") for atom in found.atoms)
    if inside:
        return {"command": command, "verdict": "unseen", "reason": min(inside), "opaque": opaque}
    loose = any(atom.pattern or atom.attributes.get("maybe") for atom in found.atoms)
    return {"command": command, "verdict": "bounded" if loose else "exact", "reason": "", "opaque": opaque}


def _openhands(body: Mapping[str, Any]) -> Iterator[Result]:
    run_ = _Run("/workspace", "/workspace")
    answers = {
        message.get("tool_call_id"): str(message.get("content", "")) for message in body["messages"] if message["role"] == "tool"
    }
    for message in body["messages"]:
        if message["role"] == "user":
            for found in re.findall(r"<uploaded_files>\s*(\S+)", str(message["content"])):
                run_.entries[found] = {"folder": True}
        for call in message.get("tool_calls") or ():
            output = answers.get(call["id"], "")
            try:
                arguments = json.loads(call["arguments"])
            except ValueError:
                continue
            if call["name"] == "execute_bash" and "command" in arguments:
                command = str(arguments["command"])
                yield _plan(run_, command)
                prompt = _PROMPT.findall(output)
                run_.read(command, output)
                if prompt:
                    run_.cwd = prompt[-1]
                    run_.entries.setdefault(run_.cwd, {"folder": True})
                _remove(run_, command)
            elif call["name"] == "str_replace_editor":
                _edit(run_, arguments, output)


def _remove(run_: _Run, command: str) -> None:
    found = re.fullmatch(r"\s*rm (?:-\w+ )*(\S+)\s*", command)
    if found:
        run_.entries.pop(run_.at(found[1]), None)


def _edit(run_: _Run, arguments: Mapping[str, Any], output: str) -> None:
    path = run_.at(str(arguments.get("path", "")))
    match arguments.get("command"):
        case "create":
            run_.show(path, str(arguments.get("file_text", "")))
        case "view":
            if "No such" not in output and "does not exist" not in output:
                run_.show(path)
                run_.read("", output)
        case "str_replace":
            known = run_.entries.get(path, {})
            old, new = str(arguments.get("old_str", "")), str(arguments.get("new_str", ""))
            if not known.get("unknown") and "text" in known and known["text"].count(old) == 1:
                run_.show(path, known["text"].replace(old, new))
            else:
                run_.entries[path] = {"text": "", "unknown": True}
        case _:
            if path != "/":
                run_.show(path)


def _swe_agent(body: Mapping[str, Any]) -> Iterator[Result]:
    steps = body.get("trajectory") or ()
    run_ = _Run("/", "/")
    for step in steps:
        action, output = str(step["action"]).strip(), str(step.get("observation", ""))
        state = step.get("state") or {}
        if isinstance(state, str):
            try:
                state = json.loads(state)
            except ValueError:
                state = {}
        if state.get("working_dir"):
            run_.cwd = run_.root = str(state["working_dir"])
            run_.entries.setdefault(run_.cwd, {"folder": True})
        first = action.split()[0] if action.split() else ""
        if first in _TOOLS or not first:
            words = action.split()
            if first in ("create", "open") and len(words) > 1:
                run_.opened = run_.at(words[1].strip("\"'"))
                run_.entries[run_.opened] = {"text": "", "unknown": True}
        else:
            yield _plan(run_, action)
        run_.read(action, output)
        _remove(run_, action)
