"""`cxi effects plan`: what a payload would do, for people and programs."""

import json

from typer.testing import CliRunner

from cxi.cli.app import app

TREE = '{"tree": {"a.txt": {"text": "x"}, "src/": {}}, "cwd": "src"}'


def run(*arguments, **more):
    return CliRunner().invoke(app, ["effects", "plan", *arguments], **more)


def test_the_atoms_of_a_text_are_listed():
    answer = run("--kind", "shell", "-s", TREE, "cat ../a.txt > b && false || rm b")
    assert answer.exit_code == 0
    assert "fs.read" in answer.stdout
    assert "a.txt" in answer.stdout


def test_a_folder_is_a_snapshot(tmp_path):
    (tmp_path / "f").write_text("x")
    answer = run("--language", "shell", "-s", str(tmp_path), "--json", "rm f")
    effects = json.loads(answer.stdout)["effects"]
    assert [(atom["kind"], atom["target"]) for atom in effects] == [("proc.exec", "rm"), ("fs.delete", "f")]


def test_a_refusal_says_why_and_exits_with_one():
    answer = run("-s", TREE, "--json", "nonsense")
    row = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert row["verdict"] == "refuse"
    assert row["reasons"][0]["code"] == "EFFECT_UNSUPPORTED"
    assert row["reasons"][0]["needs"]
    assert run("-s", TREE, "nonsense").exit_code == 1


def test_the_payload_may_come_from_the_standard_input():
    assert json.loads(run("-s", TREE, "--json", input="touch q").stdout)["effects"][-1]["target"] == "src/q"


def test_each_line_of_a_file_is_answered_in_order_and_a_bad_one_hurts_no_other(tmp_path):
    lines = [
        {"id": "one", "kind": "shell", "payload": "touch q", "snapshot": {"tree": {}}},
        "not a case",
        {"id": "two", "kind": "sql-none", "payload": "x", "snapshot": {"tree": {}}},
        {"id": "three", "kind": "shell", "payload": "echo $A > f", "snapshot": {"tree": {}, "env": {"A": "b"}}},
        {"id": "four", "kind": "shell", "payload": "ls", "snapshot": {"dir": "/nowhere/at/all"}},
    ]
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(json.dumps(line) if isinstance(line, dict) else line for line in lines) + "\n")
    answer = run("--jsonl", str(file))
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [row["id"] for row in rows] == ["one", 2, "two", "three", "four"]
    assert [row["verdict"] for row in rows] == ["effects", "refuse", "refuse", "effects", "refuse"]
    assert rows[3]["effects"][0]["target"] == "f"


def test_a_snapshot_that_is_none_is_an_error():
    assert run("-s", '{"tree": {"a": {}, "b": {"nothing": 1}}}', "ls").exit_code == 2
    assert run("--kind", "other", "-s", TREE, "ls").exit_code == 2
