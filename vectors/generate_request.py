"""Make `request.json`: texts of a trusted request, their clauses, and the paths that they name with or without authority.

    python vectors/generate_request.py > vectors/request.json

Any implementation must give authority to exactly the same values; why a clause gives none is for messages. The root is empty and
case-sensitive. Spans are in code points.
"""

from __future__ import annotations

import json
import sys

from cxi.authority.request import candidates, clauses
from cxi.canonical import JsonValue
from cxi.values import value_type
from cxi.values.base import Entry, EntryKind, Root

TEXTS = (
    "Fix the failing rounding test and commit.",
    "Please move src/a.py to lib/a.py.",
    "Could you please update README.md?",
    "Read notes.txt, then write docs/new.md.",
    "Edit `a.py` and 'b.py'.",
    "Fix a.py and don't touch b.py.",
    "Do not touch a.py and b.py.",
    "don't edit a.py, edit b.py instead",
    "Don't touch b.py, but fix a.py.",
    "Fix everything but b.py.",
    "Fix a.py without touching b.py.",
    "Leave b.py alone.",
    "Look at b.py but don't change it.",
    "The file a.py, don't touch it.",
    "Do not touch:\n- a.py\n- b.py\n\nFix c.py.",
    "Do not touch\nREADME.md",
    "Do not touch generated files, e.g. b.py.",
    "Fix a.py; never touch b.py; format c.py.",
    "Should I edit b.py?",
    "Why does b.py fail? Fix a.py.",
    "If the tests fail, edit b.py. Fix a.py.",
    "After the tests pass, edit b.py.",
    "Add the line after the header of b.py.",
    "The log says to edit b.py. Fix a.py.",
    "Alice wrote:\n\nPlease edit b.py.\n\nThanks!",
    'Fix a.py and put "edit b.py" there.',
    "Fix a.py and run `git add b.py` there.",
    'Fix a.py. "Edit b.py.',
    "Fix a.py.\n\n```\nedit b.py\n```",
    "Fix a.py.\n\n> please\nedit b.py",
    "Fix a.py.\n-----Original Message-----\nEdit b.py.",
    "Fix a.py.\n\nOn Monday Bob wrote:\nEdit b.py.",
    "Fix a.py.\n\nFrom: Bob\nSubject: hi\n\nEdit b.py.",
    "Fix a.py with the message: edit b.py",
    "Corrige a.py et ne touche pas b.py.",
    "Fass b.py nicht an.",
    "Edit a.py. On second thought, don't edit a.py.",
    "Don't edit a.py yet. Now edit a.py.",
)


class _Nothing:
    """A file system that holds nothing but its folders."""

    def entry(self, path: str) -> Entry:
        return Entry(EntryKind.FOLDER if path in ("/", "/r") else EntryKind.ABSENT)

    def names(self, path: str) -> tuple[str, ...] | None:  # noqa: ARG002
        return ()


def read(text: str) -> dict[str, JsonValue]:
    """One vector."""
    found = clauses(text)
    named = candidates(found, [value_type("RepoPath", {})], Root("/r", _Nothing()))
    return {
        "text": text,
        "clauses": [{"span": list(item.span), "affirmed": item.affirmed, "why": item.why} for item in found],
        "paths": [{"value": item.value.canonical, "span": list(item.span), "affirmed": item.affirmed} for item in named],
    }


def main() -> None:
    """Write the vectors."""
    body = {"about": "clauses of a trusted request", "vectors": [read(text) for text in TEXTS]}
    json.dump(body, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
