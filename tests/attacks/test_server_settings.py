"""Threat: the server's git reads other settings than the gate's, so that a planted program runs which is in no plan."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects.base import Effect
from cxi.effects.git import GitAdapter
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.guard import Guard
from cxi.lab.arena import Tools, arena, define, permit_calls
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.sinks.process import environment
from cxi.values.base import Value


def git(repo: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, env=env)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path.resolve()
    repo = base / "repo"
    repo.mkdir()
    (base / "home").mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.email", "t@example.org")
    git(repo, "config", "user.name", "t")
    (repo / "a.txt").write_text("1\n")
    (repo / ".gitattributes").write_text("*.txt filter=f\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "1")
    (repo / "a.txt").write_text("2, and longer\n")
    (base / "hooks").mkdir()
    for name in ("pre-commit", "post-commit", "post-index-change"):
        (base / "hooks" / name).write_text(f"#!/bin/sh\necho {base}/hooks/{name} >> {base}/ran\n")
        (base / "hooks" / name).chmod(0o755)
    (base / "clean").write_text(f"#!/bin/sh\necho {base}/clean >> {base}/ran\ncat\n")
    (base / "clean").chmod(0o755)
    return base


def settings(base: Path) -> str:
    return f'[core]\n\thooksPath = {base}/hooks\n[filter "f"]\n\tclean = {base}/clean\n'


def plant(base: Path, place: str) -> tuple[dict[str, str], dict[str, str]]:
    """(what the server's `env:` holds, what the gate's own environment holds)."""
    ours = {"PATH": os.environ["PATH"], "HOME": str(base / "home")}
    other = base / "other"
    (other / "git").mkdir(parents=True)
    match place:
        case "the gate's own global settings are elsewhere":
            (base / "home/.gitconfig").write_text(settings(base))
            return {}, ours | {"GIT_CONFIG_GLOBAL": os.devnull}
        case "the gate's own XDG folder is elsewhere":
            (base / "home/.config/git").mkdir(parents=True)
            (base / "home/.config/git/config").write_text(settings(base))
            return {}, ours | {"XDG_CONFIG_HOME": str(other)}
        case "HOME":
            (other / ".gitconfig").write_text(settings(base))
            return {"HOME": str(other)}, ours
        case "XDG_CONFIG_HOME":
            (other / "git/config").write_text(settings(base))
            return {"XDG_CONFIG_HOME": str(other)}, ours
        case "GIT_CONFIG_SYSTEM":
            (other / "system").write_text(settings(base))
            return {"GIT_CONFIG_SYSTEM": str(other / "system")}, ours
        case "GIT_CONFIG_COUNT" | "a filter of GIT_CONFIG_COUNT":
            pairs = (("filter.f.clean", f"{base}/clean"), ("core.hooksPath", f"{base}/hooks"))
            pairs = pairs if place == "GIT_CONFIG_COUNT" else pairs[:1]
            counted = {"GIT_CONFIG_COUNT": str(len(pairs))}
            for index, (key, value) in enumerate(pairs):
                counted |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
            return counted, ours
        case "an include that GIT_CONFIG_COUNT names":
            (other / "more").write_text(settings(base))
            return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "include.path", "GIT_CONFIG_VALUE_0": f"{other}/more"}, ours
        case "GIT_CONFIG_GLOBAL, which GitPython does not know":
            (base / "home/.gitconfig").write_text(settings(base))
            return {"GIT_CONFIG_GLOBAL": os.devnull}, ours
        case "GIT_CONFIG_PARAMETERS":
            return {"GIT_CONFIG_PARAMETERS": f"'core.hooksPath'='{base}/hooks'"}, ours
    raise AssertionError(place)


PLACES = (
    "the gate's own global settings are elsewhere",
    "the gate's own XDG folder is elsewhere",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT",
    "a filter of GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL, which GitPython does not know",
    "an include that GIT_CONFIG_COUNT names",
    "GIT_CONFIG_PARAMETERS",
)
# Where git and GitPython would look for hooks in different folders, or what cannot be told at all, nothing is planned.
REFUSED = {*PLACES[4:6], *PLACES[7:]}


def plan(repo: Path, world: DiskWorld, op: str, **fields: str) -> Effect | Refused:
    leaves = tuple(FieldValue(name, name, Role.PAYLOAD, Value("Text", text, text)) for name, text in fields.items())
    inputs = {"op": f"={op}", "repository": "=."} | {name: name for name in fields}
    call = CanonicalCall("git", op, leaves, MappingProxyType({}))
    return GitAdapter().plan(call, inputs, RecordingSnapshot(world, str(repo)))


def ran(base: Path) -> set[str]:
    file = base / "ran"
    found = set(file.read_text().split()) if file.exists() else set()
    file.unlink(missing_ok=True)
    return found


@pytest.mark.parametrize("place", PLACES)
def test_whatever_the_servers_git_really_runs_is_in_the_plan_or_the_call_is_refused(base, place):
    configured, ours = plant(base, place)
    theirs = environment(configured, ours)
    repo = base / "repo"
    (repo / ".git/index").touch()
    commit = [sys.executable, "-c", "import git; git.Repo('.').index.commit('m')"]  # as `mcp-server-git` does
    pytest.importorskip("git")
    seen: set[str] = set()
    for op, fields, command in (("add", {"files": "a.txt"}, ["git", "add", "a.txt"]), ("commit", {"message": "m"}, commit)):
        effect = plan(repo, DiskWorld(theirs), op, **fields)
        assert ran(base) == set(), "the gate ran it"
        subprocess.run(command, cwd=repo, check=True, capture_output=True, env=theirs)
        really = ran(base)
        seen |= really
        assert isinstance(effect, Refused) == (place in REFUSED)
        if isinstance(effect, Effect):
            assert really <= {atom.target for atom in effect.atoms if atom.kind == "proc.exec"}
    assert seen, "the plant does not work"


@pytest.mark.parametrize("place", PLACES)
def test_each_started_server_is_judged_in_its_own_environment(base, place):
    configured, ours = plant(base, place)
    with arena("repo") as scratch:
        scratch.root.mkdir()
        tools = {"put": {"effect": "none", "fields": {"x": {"role": "payload"}}}}
        file = scratch.configure(tools, policies=permit_calls(["put"]), server={"env": configured or {"X": "x"}})
        scratch.pin(file, Tools(define(["put"]), lambda _tool, _arguments: ""))
        with Guard.open(file, environ=ours) as guard:
            world = guard.open_session()._wiring.world_of("it.put")
            effect = plan(base / "repo", world, "add", files="a.txt")
    if isinstance(effect, Effect):
        assert {atom.target for atom in effect.atoms if atom.kind == "proc.exec"} >= {f"{base}/clean"}
    assert isinstance(effect, Refused) == (place in REFUSED)
