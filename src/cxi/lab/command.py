"""How is a shell command of a case put to the public API? A tool that runs bash, judged by the shell adapter.

- What a case allows becomes permits for `proc.exec` of those programs, what it denies or asks about a forbid; reads are permitted
  by the shipped policies, everything else by none.
- The sibling has authority: every kind is permitted, hidden characters are gone; where the adapter cannot tell the effect, the
  operator's contract says `effect: call`, which claims no more than that the tool is called.
"""

from __future__ import annotations

import ast
import re
import subprocess
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from cxi.effects.shell.adapter import plan_text
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.guard import Outcome
from cxi.lab.arena import Arena, Tools, arena, define, permit_calls
from cxi.policy.vocabulary import KINDS
from cxi.sinks.disk import DiskWorld

Input: TypeAlias = Mapping[str, Any]
_ALL: Final = "\n".join(
    f'@id("all-{number}") @text("Everything may happen.") permit (principal, action == Action::"{kind}", resource);'
    for number, kind in enumerate(KINDS)
)
_HIDDEN: Final = ("Cf", "Cc")
# Paths below the root: their folders are there.
_NAMED: Final = re.compile(r"(?<![\w./:-])(?:[A-Za-z0-9_-][\w.-]*/)+[A-Za-z0-9_-][\w.-]*")


def commands(input: Input) -> list[str]:
    """The texts of a case: `command`, `commands`, or `command_builder`, an expression that gives one."""
    if "command" in input:
        return [str(input["command"])]
    if "commands" in input:
        return [str(command) for command in input["commands"]]
    return [str(_built(ast.parse(str(input["command_builder"]), mode="eval").body))]


def judge_commands(input: Input, *, sibling: bool) -> list[Outcome]:
    """What the product answers to each text of a case."""
    return [_judge(input, text, sibling=sibling) for text in commands(input)]


def _judge(input: Input, text: str, *, sibling: bool) -> Outcome:
    if sibling:
        text = "".join(char for char in text if char == "\n" or unicodedata.category(char) not in _HIDDEN)
    with arena() as place:
        place.root.mkdir(parents=True)
        for rule in input.get("allow", ()):
            for path in rule.get("paths", ()) if isinstance(rule, Mapping) else ():
                target = place.root / str(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("one\ntwo\n", encoding="utf-8")
        for named in _NAMED.findall(text):
            (place.root / named).parent.mkdir(parents=True, exist_ok=True)
        plan = plan_text(text, RecordingSnapshot(DiskWorld(), str(place.root)))
        declared = sibling and isinstance(plan, Refused)
        effect: Any = "call" if declared else {"adapter": "shell", "text": "command"}
        contract = {"run": {"effect": effect, "fields": {"command": {"role": "payload"}}}}
        policies = permit_calls(["run"]) + (_ALL if sibling else _policies(input))
        file = place.configure(contract, policies=policies, tasks={"case": {"grants": {"it.run": 20}}})
        reaches_out = isinstance(plan, Refused) or any(atom.kind.startswith("net.") for atom in plan.atoms)
        tools = Tools(define(["run"]), act=lambda _tool, given: "done" if reaches_out else _bash(place, str(given["command"])))
        place.pin(file, tools)
        with place.open(file, tools, request="Please run the command.") as (_, talk):
            return talk.call("it.run", {"command": text})


def _bash(place: Arena, text: str) -> str:
    done = subprocess.run(
        ["bash", "-c", text],  # noqa: S607 - the reference shell, from the path
        cwd=place.root,
        env={"PATH": place.environ["PATH"], "HOME": str(place.base)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def _policies(input: Input) -> str:
    allowed: list[str] = []
    denied: list[str] = []
    allowed.extend(str(rule["program"] if isinstance(rule, Mapping) else rule) for rule in input.get("allow", ()))
    denied.extend(str(rule) for rule in input.get("deny", ()))
    for rule in input.get("rules", ()):
        (allowed if rule["action"] == "allow" else denied).append(str(rule["match"]))
    if "deny" in input and "allow" not in input:
        allowed.append("*")
    lines = [_rule("permit", f"allow-{at}", pattern) for at, pattern in enumerate(allowed)]
    return "\n".join([*lines, *(_rule("forbid", f"deny-{at}", pattern) for at, pattern in enumerate(denied))])


def _rule(effect: str, id: str, pattern: str) -> str:
    """A policy about the program that a pattern of a command names; `*` is any."""
    program = pattern.split(" ", maxsplit=1)[0]
    resource = "resource" if program == "*" else f'resource == Program::"{program}"'
    return f'@id("{id}") @text("Programs.") {effect} (principal, action == Action::"proc.exec", {resource});'


def _built(node: ast.expr) -> Any:
    """The value of an expression of texts, lists, `+`, `*` and `join`, and of nothing else."""
    match node:
        case ast.Constant(value):
            return value
        case ast.List(elements):
            return [_built(element) for element in elements]
        case ast.BinOp(left, ast.Add(), right):
            return _built(left) + _built(right)
        case ast.BinOp(left, ast.Mult(), right):
            return _built(left) * _built(right)
        case ast.Call(ast.Attribute(text, "join"), [items], []):
            joined: Sequence[str] = _built(items)
            return str(_built(text)).join(joined)
        case _:
            pass
    raise KeyError("an expression that builds no command")
