"""`cxi log`: what a person hands to somebody else is verified there with a key alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.cli.progress import AFTER, EVERY, watched
from gate_case import opened

RUN = CliRunner()


class Place:
    """A configuration with some calls in its log, and a folder for what is handed over."""

    def __init__(self, case: Any, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.state: Path = case.guard.config.state

    def run(self, *arguments: str, code: int = 0) -> Result:
        done = RUN.invoke(app, ["log", *arguments, "--config", str(self.case.file)])
        assert done.exit_code == code, done.output + done.stderr
        return done

    def elsewhere(self, *arguments: str, code: int = 0) -> Result:
        """Without the configuration."""
        done = RUN.invoke(app, ["log", *arguments])
        assert done.exit_code == code, done.output + done.stderr
        return done

    def keep(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def key(self, name: str = "log.pem") -> str:
        return self.keep(name, self.run("key").stdout)

    def work(self, count: int = 3) -> None:
        for _ in range(count):
            self.case.call("read", path="docs/d.md")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with opened() as case:
        found = Place(case, folder)
        found.work()
        monkeypatch.chdir(folder)
        yield found


def kinds(done: Result) -> set[str]:
    return {finding["kind"] for finding in json.loads(done.stdout)["findings"]}


def test_an_export_is_verified_elsewhere_whole_and_in_part(place: Place) -> None:
    key = place.key()
    whole, part = str(place.folder / "whole.jsonl"), str(place.folder / "part.jsonl")
    place.run("export", "--jsonl", whole)
    place.run("export", "--jsonl", part, "--kind", "session", "--kind", "epoch")
    answer = json.loads(place.elsewhere("verify", whole, "--key", key, "--json").stdout)
    assert answer["ok"] is True
    assert answer["entries"] == answer["signed"] == len(list(place.case.guard.ledger.entries()))
    other = json.loads(place.elsewhere("verify", part, "--key", key, "--json").stdout)
    assert (other["entries"], other["root"]) == (answer["entries"], answer["root"])
    shown = [json.loads(line) for line in Path(part).read_text().splitlines()]
    assert {line["kind"] for line in shown if "seq" in line} == {"session", "epoch"}
    assert any("skipped" in line for line in shown)
    assert place.run("export", "--jsonl", whole, code=1).exception, "no file is written over"


def test_an_export_goes_to_standard_output_between_two_times(place: Place) -> None:
    lines = [json.loads(line) for line in place.run("export").stdout.splitlines()]
    times = [line["time_ms"] for line in lines if "seq" in line]
    middle = max(times)
    text = datetime.fromtimestamp(middle / 1000, UTC).isoformat()
    for option, shown in (
        ("--since", [time for time in times if time >= middle]),
        ("--until", [time for time in times if time < middle]),
    ):
        part = [json.loads(line) for line in place.run("export", option, text).stdout.splitlines()]
        assert [line["time_ms"] for line in part if "seq" in line] == shown
    every = place.run("export", "--since", "1969-12-31", "--until", "2999-01-01T00:00:00+01:00").stdout
    assert every.count('"seq"') == len(times)
    for odd in (("--since", "yesterday"), ("--kind", "nonsense")):
        place.run("export", *odd, code=2)


def test_an_export_of_which_a_line_is_changed_does_not_verify(place: Place) -> None:
    key, file = place.key(), place.folder / "log.jsonl"
    place.run("export", "--jsonl", str(file))
    file.write_text(file.read_text().replace('"kind":"read"', '"kind":"alarm"', 1))
    assert kinds(place.elsewhere("verify", str(file), "--key", key, "--json", code=1)) == {"altered"}
    place.elsewhere("verify", str(file), code=2)
    place.elsewhere("verify", "--key", key, code=2)
    place.elsewhere("verify", str(file), "--state", str(place.folder), "--key", key, code=2)


def test_a_rotation_keeps_everything_verifiable_by_the_first_key(place: Place) -> None:
    old = place.key("old.pem")
    note = place.keep("old.note", place.run("checkpoint", "--note").stdout)
    answer = json.loads(place.run("key", "rotate", "--reason", "the year is over", "--json").stdout)
    place.work()
    assert place.run("verify").exit_code == 0
    assert place.run("verify", "--against", note).exit_code == 0
    listed = json.loads(place.run("key", "list", "--json").stdout)["keys"]
    assert [(row["id"], row["reigns"]) for row in listed] == [(answer["by"], False), (answer["key"], True)]
    shown = json.loads(place.run("key", "show", "--json").stdout)
    assert (shown["id"], shown["pem"]) == (answer["key"], place.run("key").stdout)
    assert json.loads(place.run("key", "show", answer["by"][7:15], "--json").stdout)["pem"] == Path(old).read_text()
    place.run("key", "show", "nonsense", code=1)
    assert "introduced" in place.run("key", "list").stdout
    assert "BEGIN PUBLIC KEY" in place.run("key", "show").stdout
    file = str(place.folder / "log.jsonl")
    place.run("export", "--jsonl", file)
    for pinned in (old, place.key("new.pem")):
        place.elsewhere("verify", file, "--key", pinned)
    place.case.guard.sign_head()  # a gateway that was running meanwhile signs with the new key
    assert place.run("verify").exit_code == 0


def test_growth_is_proved_to_whoever_kept_a_note(place: Place) -> None:
    key = place.key()
    note = place.keep("old.note", place.run("checkpoint", "--note").stdout)
    envelope = place.keep("old.json", (place.state / "checkpoints.jsonl").read_text().splitlines()[-1])
    place.work()
    for old in (note, envelope):
        proof = place.keep("proof.json", place.run("prove", old).stdout)
        answer = json.loads(place.elsewhere("verify-proof", proof, "--old", old, "--key", key, "--json").stdout)
        assert answer["ok"] is True
        assert answer["size"] >= answer["old"] > 0
        place.elsewhere("verify-proof", proof, "--old", old, "--key", key)
    lines = Path(note).read_text().split("\n")
    place.elsewhere("verify-proof", proof, "--old", place.keep("x", "\n".join([lines[0], "1", *lines[2:]])), "--key", key, code=1)
    place.run("prove", place.keep("nothing", "nothing"), code=2)


def test_a_rewritten_log_is_shown_by_the_note_that_was_kept(place: Place) -> None:
    """Whoever owns the machine and its key can make all of it anew; who kept a note sees it."""
    place.case.guard.sign_head()
    note = place.keep("kept.note", place.run("checkpoint", "--note").stdout)
    lines = Path(note).read_text().split("\n")
    lie = place.keep("lie", "\n".join([lines[0], lines[1], "A" * 43 + "=", *lines[3:]]))
    assert kinds(place.run("verify", "--against", note, "--against", lie, "--json", code=1)) == {"forged"}
    with closing(sqlite3.connect(place.state / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)")
    (place.state / "checkpoints.jsonl").write_text("")
    answer = RUN.invoke(app, ["log", "verify", "--against", note, "--json", "--config", str(place.case.file)])
    if answer.exit_code == 1:
        assert "truncated" in kinds(answer)
    else:
        assert answer.exception, "a writer's mark shows it before"


def test_progress_is_shown_to_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(watched(range(3), 3)) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    clock = iter(range(0, 10_000_000, int(AFTER) + 1))
    monkeypatch.setattr("cxi.cli.progress.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert len(list(watched(range(EVERY * 3), EVERY * 4))) == EVERY * 3
    assert f"{EVERY * 2:,} of {EVERY * 4:,}" in capsys.readouterr().err
    assert len(list(watched(range(EVERY * 3), 0))) == EVERY * 3
    assert f"{EVERY * 2:,} entries" in capsys.readouterr().err
