"""How is a result shown? Readable lines, or one JSON object; hidden characters are always made visible."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import typer

from cxi.values.hidden import visible

Config = Annotated[
    str, typer.Option("--config", "-c", envvar="CXI_CONFIG", help="the configuration; found upwards from here if not given")
]
Json = Annotated[bool, typer.Option("--json", help="one JSON object in place of readable lines")]

GREEN, RED, YELLOW, DIM, PLAIN = "32", "31", "33", "2", ""


def colored(text: str, color: str) -> str:
    """The text in a color, where the terminal takes one (`NO_COLOR` and pipes take none)."""
    if not color or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{color}m{text}\x1b[0m"


def say(text: str, color: str = PLAIN) -> None:
    """One readable line to stdout."""
    sys.stdout.write(colored("\n".join(visible(line) for line in text.split("\n")), color) + "\n")


def fail(text: str) -> None:
    """One line to stderr."""
    sys.stderr.write(f"cxi: {visible(text)}\n")


def note(text: str) -> None:
    """One line of progress, to whoever watches stderr; nothing where nobody does."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()


def give(value: Any) -> None:
    """One JSON object to stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
