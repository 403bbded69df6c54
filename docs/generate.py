"""Which pages of the documentation are made from the code?

- `reason-codes.md` from `cxi.errors`, with a real refusal of each code (`refusals.py`) and the tests that assert it.
- `mcp-methods.md` from the gateway's method table.
- `promises.md` from `tests/requirements.py`, and the JSON Schemas from the configuration's reader.
- Written only where something differs; `--check` writes nothing, says which pages are stale and exits 1.

    $ python docs/generate.py --check
"""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cxi.config.schema import render_schemas
from cxi.errors import CODES, Code
from cxi.gateway.method import render_table

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
MADE: Final = "<!-- made by docs/generate.py; do not edit -->\n\n"
EXAMPLES: Final = 3
# Why a code has no refusal on the page.
ELSEWHERE: Final = MappingProxyType(
    {
        Code.HIDDEN_TEXT: "A start-up error, not a refusal: `cxi check` names the file and the line.",
        Code.APPROVAL_MISMATCH: "Takes an answer about another call than the one that it came to.",
        Code.CALL_DENIED: "Takes a person who said no: `cxi approve deny`.",
        Code.DELEGATION_VOID: "Told to the program that asks for a delegation, not to an agent.",
        Code.CAPABILITY_USED: "Takes two gates that draw one grant at the same moment.",
        Code.CARRIAGE_UNLINKED: "Not in this version: nothing gives it, since there is no model proxy.",
        Code.LEDGER_UNAVAILABLE: "Takes a disk that is full or a file that is damaged.",
        Code.SINK_TIMEOUT: "Takes a server that hangs.",
        Code.SINK_MALFORMED: "Takes a server that speaks nonsense.",
    }
)
# Where a reader finds the plainest example of a code: attacks first.
FOLDERS: Final = ("attacks", "unit", "property", "conformance", "e2e")


def sections() -> Iterator[tuple[str, list[Code]]]:
    """The codes under the headings that `Code` groups them by."""
    title, found = "", list[Code]()
    for line in inspect.getsource(Code).splitlines():
        heading = re.fullmatch(r"\s*# --- (.+)", line)
        member = re.match(r"\s*([A-Z_]+) = ", line)
        if heading:
            if found:
                yield title, found
            title, found = heading[1], []
        elif member:
            found.append(Code[member[1]])
    yield title, found


def asserted() -> Mapping[str, list[tuple[str, str]]]:
    """Each code to the (file, test) pairs that name it, plainest first."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for folder in FOLDERS:
        for file in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for test in ast.walk(tree):
                if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_"):
                    for code in sorted(set(_codes(test))):
                        found[code].append((file.relative_to(ROOT).as_posix(), test.name))
    return found


def _codes(test: ast.AST) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code":
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in Code.__members__:
            yield node.value


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def reason_codes() -> str:
    """One section a code."""
    tests = asserted()
    real: Mapping[str, str] = runpy.run_path(str(DOCS / "refusals.py"))["refusals"]()
    lines = [
        "# Reason codes",
        "",
        "A refusal is a value. It names every reason at once, in the order of the gate's steps, and each reason has a stable",
        "code, the place that it is about, one line of detail and what would help. Codes are public: programs may match on",
        "them, and tests assert nothing else. The agent reads a refusal as an ordinary tool result with `isError`; programs",
        "find the codes in its `_meta`, under `cxi.dev/refusal`. What is no tool call gets a JSON-RPC error with the code in",
        "`error.data`.",
        "",
        "`cxi explain CODE` prints a code's meaning and what helps; `cxi explain a-…` shows one call with all its reasons.",
        "",
        "Each example is what an agent really read, in a scratch workspace (`docs/refusals.py`).",
    ]
    for title, codes in sections():
        lines += ["", f"## {_sentence(title)}"]
        for code in codes:
            row = CODES[code]
            lines += ["", f"### `{code}`", "", f"{_sentence(row.meaning)}.", "", f"**What helps**: {row.helps}.", ""]
            if code in real:
                lines += ["```json" if real[code].startswith("{") else "```text", *real[code].splitlines(), "```"]
            else:
                lines += [ELSEWHERE[code]]
            seen = tests.get(code, [])[: 1 if code in real else EXAMPLES]
            if seen:
                lines += ["", "Asserted by " + "; ".join(f"*{_words(test)}* (`{file}`)" for file, test in seen) + "."]
    return "\n".join(lines) + "\n"


def _words(test: str) -> str:
    return test.removeprefix("test_").replace("_", " ")


def promises() -> str:
    """Every promise with its source and its tests."""
    found = runpy.run_path(str(ROOT / "tests" / "requirements.py"))["PROMISES"]
    waiting = [promise for promise in found if promise.pending]
    lines = [
        "# Promises and their tests",
        "",
        f"{len(found)} promises, {f'{len(waiting)} of them not yet covered' if waiting else 'each with its tests'}.",
        "`tests/requirements.py` is checked in both directions:",
        "each test named here exists, and each file of `tests/attacks` belongs to a promise. *Source* is the page that makes",
        "the promise.",
        "",
        "| id | promise | source | tests |",
        "|---|---|---|---|",
    ]
    for promise in found:
        tests = "<br>".join(f"`{test}`" for test in promise.tests) if not promise.pending else "not yet"
        lines.append(f"| `{promise.id}` | {promise.text} | [{promise.source.removesuffix('.md')}]({promise.source}) | {tests} |")
    return "\n".join(lines) + "\n"


PAGES: Final = MappingProxyType({"reason-codes.md": reason_codes, "mcp-methods.md": render_table, "promises.md": promises})


def texts() -> dict[str, str]:
    """Each generated file, by its name below `docs`, to what it should hold."""
    pages = {name: MADE + make() for name, make in PAGES.items()}
    return pages | {f"schemas/{name}": text for name, text in render_schemas().items()}


def stale() -> dict[str, str]:
    """The pages that are not what the code makes of them, with what they should hold."""
    return {
        name: text
        for name, text in texts().items()
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text
    }


def main(arguments: list[str]) -> int:
    """Write what is stale, or with `--check` only say so."""
    found = stale()
    if "--check" in arguments:
        for name in found:
            print(f"docs/{name} is stale: make generate", file=sys.stderr)
        return 1 if found else 0
    for name, text in found.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
