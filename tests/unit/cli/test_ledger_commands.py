"""`cxi ledger` over a real state folder: what it says, what it changes, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.lab.arena import Tools, arena, define, permit_calls
from cxi.session import Ready

RUN = CliRunner()
WRITE = {
    "effect": {"adapter": "file", "path": "path", "content": "content"},
    "fields": {"path": {"role": "protected", "type": "RepoPath", "from": ["any-of-request"]}, "content": {"role": "payload"}},
}
PERMIT = (
    '@id("writes") @text("Files may be written.") '
    'permit (principal, action in [Action::"fs.write", Action::"fs.create"], resource is File);\n'
)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr("cxi.effects.hindsight.MARGIN", 0.0)
    monkeypatch.setattr("cxi.cli.reconcile.LAUNCH_SECONDS", 0.0)
    with arena() as found:
        found.root.mkdir()
        policies = permit_calls(["write"]) + PERMIT
        file = found.configure({"write": WRITE}, policies=policies, tasks={"case": {"grants": {"it.write": 9}}})
        tools = Tools(define(["write"]))
        tools.act = lambda _tool, call: str(Path(str(call["path"])).write_text(str(call["content"])))
        found.pin(file, tools)
        yield SimpleNamespace(file=file, tools=tools, root=found.root, open=found.open, base=found.base)


def work(place: Any, name: str = "a.txt") -> str:
    with place.open(place.file, place.tools, request=f"Write `{name}`.") as (_, talk):
        return str(talk.call("it.write", {"path": str(place.root / name), "content": "new"}).id)


def abandon(place: Any, name: str = "a.txt", *, wrote: str = "") -> str:
    """A program that ended between its lease and its settlement, having written this much."""
    with place.open(place.file, place.tools, request=f"Write `{name}`.") as (_, talk):
        prepared = talk.session.propose("it.write", {"path": str(place.root / name), "content": "new"})
        assert isinstance(prepared, Ready), prepared
        if wrote:
            (place.root / name).write_text(wrote)
        return prepared.id


def run(place: Any, *arguments: str) -> Result:
    return RUN.invoke(app, ["ledger", *arguments, "--config", str(place.file)])


def told(place: Any, *arguments: str) -> Any:
    return json.loads(run(place, *arguments, "--json").stdout)


def test_list_show_and_stats_tell_what_was_leased(place: Any) -> None:
    call = work(place)
    (row,) = told(place, "list")["calls"]
    assert (row["id"], row["state"], row["tool"], row["grant"]) == (call, "done", "it.write", "case/it.write")
    assert call in run(place, "list").stdout
    assert told(place, "list", "--state", "failed")["calls"] == []
    assert run(place, "list", "--state", "sold").exit_code == 2
    shown = told(place, "show", call)
    assert [entry["kind"] for entry in shown["entries"]] == ["admission", "settlement"]
    assert call in run(place, "show", call).stdout
    assert run(place, "show", "a-00000000").exit_code == 1
    stats = told(place, "stats")
    assert (stats["calls"], stats["epoch"][0]) == ({"done": 1}, 1)
    assert run(place, "stats").exit_code == 0


def test_an_effect_that_is_there_is_reconciled_as_done(place: Any) -> None:
    call = abandon(place, wrote="new")
    assert run(place, "list").stdout.split()[1] == "outcome_unknown"
    assert told(place, "reconcile", "--dry-run")["calls"][0]["state"] == "done"
    assert run(place, "unknown").stdout.splitlines()[-1].startswith("1 ")
    result = run(place, "reconcile")
    assert result.exit_code == 0, result.output
    shown = told(place, "show", call)
    assert shown["state"] == "done"
    (said,) = [entry["body"] for entry in shown["entries"] if entry["kind"] == "person"]
    assert said["reason"].startswith("reconciled: ")
    assert "a.txt" not in said["reason"]
    assert RUN.invoke(app, ["log", "verify", "--config", str(place.file)]).exit_code == 0


def test_an_effect_that_is_not_there_waits_for_a_person_to_say_that_nothing_still_runs(place: Any) -> None:
    call = abandon(place)
    waiting = run(place, "reconcile")
    assert waiting.exit_code == 1
    assert told(place, "show", call)["state"] == "outcome_unknown"
    assert run(place, "reconcile", "--stopped").exit_code == 0
    assert told(place, "show", call)["state"] == "failed"


def test_before_the_launch_deadline_nothing_counts_as_failed(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    abandon(place)
    monkeypatch.setattr("cxi.cli.reconcile.LAUNCH_SECONDS", 1000.0)
    assert run(place, "reconcile", "--stopped").exit_code == 1


def test_what_another_wrote_or_undid_stays_unknown(place: Any) -> None:
    call = abandon(place, wrote="half")
    result = told(place, "reconcile", "--stopped")
    assert (result["left"], result["calls"][0]["state"]) == (1, "outcome_unknown")
    assert result["calls"][0]["why"]
    (place.root / "a.txt").unlink()
    assert told(place, "reconcile", "--stopped")["left"] == 1
    assert run(place, "release", call, "--as", "failed", "--reason", "looked at the backup").exit_code == 0
    assert told(place, "reconcile")["calls"] == []


def test_without_its_openings_nothing_is_said(place: Any) -> None:
    abandon(place, wrote="new")
    RUN.invoke(app, ["log", "erase", "--older-than", "0", "--reason", "r", "--config", str(place.file)])
    assert told(place, "reconcile")["left"] == 1


def test_only_unknown_calls_are_reconciled(place: Any) -> None:
    assert run(place, "reconcile", work(place)).exit_code == 1
    assert run(place, "reconcile", "a-00000000").exit_code == 1


def test_every_kind_of_mark_is_revoked_where_it_is_known(place: Any) -> None:
    work(place)
    (row,) = told(place, "list")["calls"]
    user = told(place, "show", row["id"])["user"]
    for named in (
        ["--grant", "case/it.write"],
        ["--task", "case"],
        ["--user", user],
        ["--policy", "writes"],
        ["--epoch", "1"],
        ["--capability", "sha256:" + "0" * 64],
        ["--session", row["session"]],
    ):
        result = run(place, "revoke", *named, "--reason", "r")
        assert result.exit_code == 0, (named, result.output)
    for unknown in (["--grant", "x"], ["--task", "x"], ["--user", "x"], ["--policy", "x"], ["--epoch", "9"], ["--session", "x"]):
        assert run(place, "revoke", *unknown, "--reason", "r").exit_code == 1, unknown
    assert run(place, "revoke", "--reason", "r").exit_code == 2
    assert run(place, "revoke", "--task", "case", "--user", "x", "--reason", "r").exit_code == 2
    assert told(place, "stats")["revoked"] == 7
    (place.root / "b.txt").unlink(missing_ok=True)
    work(place, "b.txt")
    assert not (place.root / "b.txt").exists()


def test_vacuum_drops_settled_calls_of_closed_sessions_and_never_an_unknown_one(place: Any) -> None:
    work(place)
    call = abandon(place, "b.txt")
    assert told(place, "vacuum")["dropped"] == 0
    assert told(place, "vacuum", "--older-than", "0")["dropped"] == 1
    assert [row["id"] for row in told(place, "list")["calls"]] == [call]
    assert RUN.invoke(app, ["log", "verify", "--config", str(place.file)]).exit_code == 0
