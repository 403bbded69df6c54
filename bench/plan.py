"""What do a plan of a git call and the look before its sink cost, where git's own files are read, and where git is asked?

- The measured arm is the world that the gate has: it reads and remembers (`cxi.sinks.gitfolder`). The anchor asks git every
  question, in one process each. Both must plan the same effect.
- Between the calls a file is changed, and for `commit` staged, outside the clock.

    python bench/plan.py [--json] [--rounds 7] [--calls 20] [--files 20]
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final

from arms import Arm, Measured, alternate, report

from cxi.effects.base import Effect
from cxi.effects.git import GitAdapter
from cxi.effects.snapshot import RecordingSnapshot, stale
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.sinks.ground import Grounds
from cxi.sinks.reading import Memory, Reading
from cxi.values.base import Value

CASES: Final = {
    "add": {"files": "src/part_1.py"},
    "status": {},
    "log": {},
    "diff_unstaged": {},
    "diff_staged": {},
    "commit": {"message": "m"},
}


class AskingWorld(DiskWorld):
    """The disk, and a git that is asked anew for each question."""

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        plumbing = self._git.plumbing
        return Reading(plumbing, Unremembered(plumbing), Memory(), repository).ask(question, arguments)

    def hold(self) -> DiskWorld:
        return self


class Unremembered(Grounds):
    """No ground is known."""

    def stand(self, repository: str) -> None:  # noqa: ARG002
        return None


def plan(world: DiskWorld, repo: Path, op: str) -> Callable[[], object]:
    fields = CASES[op]
    leaves = tuple(FieldValue(name, name, Role.PROTECTED, Value("Text", text, text)) for name, text in fields.items())
    call = CanonicalCall("git", op, leaves, MappingProxyType({}))
    inputs = {"op": f"={op}", "repository": "=."} | {name: name for name in fields}

    def run() -> object:
        snapshot = RecordingSnapshot(world, str(repo))
        effect = GitAdapter().plan(call, inputs, snapshot)
        if not isinstance(effect, Effect) or stale(snapshot.reads, world):
            raise SystemExit(f"{op}: {effect}")
        return sorted((atom.kind, atom.target) for atom in effect.atoms)

    return run


def git(repo: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True)


def measure(base: Path, op: str, rounds: int, calls: int, files: int) -> Measured:
    """One operation."""
    repo = base / op
    (repo / "src").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Bench")
    git(repo, "config", "user.email", "bench@example.org")
    for at in range(files):
        (repo / f"src/part_{at}.py").write_text(f"part = {at}\n", encoding="utf-8")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "First")
    time.sleep(0.2)  # the files of settings are old enough to be remembered
    count = iter(range(10**9))

    def change(answer: object = None) -> object:
        (repo / "src/part_1.py").write_text(f"changed = {next(count)}\n", encoding="utf-8")
        if op in ("commit", "diff_staged"):
            git(repo, "add", "src/part_1.py")
        return answer

    change()
    return alternate(
        Arm("read and remembered", plan(DiskWorld(), repo, op), after=change),
        Arm("git asked", plan(AskingWorld(), repo, op), after=change),
        title=f"{op}: plan and the look before the sink",
        rounds=rounds,
        calls=calls,
        inputs={
            "files": files,
            "git": subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.strip(),
        },
    )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--files", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cxi-bench-") as folder:
        base = Path(folder).resolve()
        return report(*(measure(base, op, options.rounds, options.calls, options.files) for op in CASES))


if __name__ == "__main__":
    raise SystemExit(main())
