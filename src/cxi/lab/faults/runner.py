"""How is a racer started, held at the line, and ended?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cxi.lab.faults.ground import Site, environment


class Runner:
    """One racer process of a site."""

    def __init__(
        self,
        at: Site,
        instance: str,
        *,
        name: str,
        count: int = 1_000_000_000,
        seconds: float = 0.0,
        say: bool = False,
        pace: Path | None = None,
        lane: int = 0,
    ) -> None:
        """Start it; it waits at the line.

        Args:
            at: The site.
            instance: The writer's name.
            name: Of its keys; racers with one name contend.
            count: How many keys.
            seconds: When it stops; 0 for never.
            say: Whether it tells every answer.
            pace: A file of 8 bytes a racer that keeps them together, or None.
            lane: Which of them this is.
        """
        plan = {
            "address": at.address,
            "instance": instance,
            "sink": at.sink.address,
            "name": name,
            "first": 0,
            "count": count,
            "seconds": seconds,
            "say": say,
            "pace": str(pace or ""),
            "lane": lane,
        }
        self.instance = instance
        self._at = at
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cxi.lab.faults.racer", json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        at.processes.append(self._process)
        if self._process.stdout is None or self._process.stdout.readline() != "ready\n":
            raise AssertionError("a racer did not start")

    def go(self) -> None:
        """Start working."""
        if self._process.stdin is None:
            raise AssertionError("a pipe was asked for")
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def kill(self) -> list[str]:
        """Kill it with -9; every whole line that it said."""
        self._process.kill()
        self._at.tally.killed += 1
        said, _ = self._process.communicate()
        self._at.processes.remove(self._process)
        self._at.ground.quiet()
        return [line.strip() for line in said.splitlines(keepends=True) if line.endswith("\n")]

    def wait(self) -> dict[str, Any]:
        """Let it come to its end; what it counted."""
        said, _ = self._process.communicate()
        self._at.processes.remove(self._process)
        if self._process.returncode:
            raise AssertionError(f"a racer ended with {self._process.returncode}")
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found
