"""What does it cost to know what a shell text would do, beside parsing it?

- **Read**: our reader and the second reader that has to agree, against tree-sitter's parse and a walk over every node.
- **Plan**: the whole plan of the same text over a tree that is written down, against the same.

Both arms answer whether the text is well formed; the plan must be one. Wall clock, texts as agents write them.

    python bench/effects.py [--json] [--rounds 15] [--calls 200]
"""

from __future__ import annotations

import argparse
from typing import Any, Final

import tree_sitter
import tree_sitter_bash
from arms import Arm, Measured, alternate, report

from cxi.effects.base import Effect
from cxi.effects.shell.adapter import plan_text
from cxi.effects.shell.read import read
from cxi.effects.snapshot import RecordingSnapshot
from cxi.effects.tree import Tree

TEXTS: Final = {
    "short": "cd src && grep -n pattern app.py",
    "pipe": "find . -name '*.py' | head -20 && python -m pytest tests -q 2>&1 | tail -5",
    "script": (
        'for f in src/*.py; do\n  if grep -q old "$f"; then sed -i \'s/old/new/g\' "$f"; fi\ndone\n'
        "cat > notes.md <<'E'\n# notes\nE"
    ),
}
TREE: Final = {f"src/{name}.py": {"text": "x = 1\n"} for name in ("app", "tax", "util")} | {"tests/test_app.py": {"text": ""}}


def measure(name: str, text: str, *, rounds: int, calls: int) -> list[Measured]:
    """Both figures of one text."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    data = text.encode()

    def walked() -> bool:
        root = parser.parse(data).root_node
        pending = [root]
        while pending:
            pending.extend(pending.pop().children)
        return not root.has_error

    def planned() -> bool:
        return isinstance(plan_text(text, RecordingSnapshot(world, "/work"), home="/home/me"), Effect)

    world = Tree("/work", TREE)
    anchor = Arm("tree-sitter: parse and walk", walked)
    inputs: dict[str, Any] = {"text": text}
    arms = {"read": Arm("read by both readers", lambda: bool(read(text).chains)), "plan": Arm("the whole plan", planned)}
    return [
        alternate(arm, anchor, rounds=rounds, calls=calls, title=f"{what} `{name}`", inputs=inputs) for what, arm in arms.items()
    ]


def main() -> int:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--calls", type=int, default=200)
    given = options.parse_args()
    return report(*(one for name, text in TEXTS.items() for one in measure(name, text, rounds=given.rounds, calls=given.calls)))


if __name__ == "__main__":
    raise SystemExit(main())
