"""Public traces are replayed against what each run had shown by then; the traces here are made up."""

import json

import pytest
import zstandard
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.errors import ConfigError
from cxi.lab.shell_corpus import FILES, run


def call(number, name, **arguments):
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": str(number), "name": name, "arguments": json.dumps(arguments)}],
    }


def answer(number, text):
    return {"role": "tool", "tool_call_id": str(number), "content": text}


@pytest.fixture
def corpora(tmp_path):
    messages = [
        {"role": "user", "content": "<uploaded_files>\n/workspace/repo\n</uploaded_files>"},
        call(1, "execute_bash", command="cat /workspace/repo/unseen.py"),
        answer(1, "x\nroot@host:/workspace/repo # "),
        call(2, "str_replace_editor", command="create", path="/workspace/repo/t.py", file_text="print(1)\n"),
        answer(2, "File created"),
        call(3, "execute_bash", command="python t.py"),
        answer(3, "1"),
        call(4, "execute_bash", command="cat t.py || rm t.py"),
        answer(4, ""),
        call(5, "execute_bash", command="frobnicate t.py"),
        answer(5, ""),
        call(6, "execute_bash", command="rm t.py"),
        answer(6, ""),
    ]
    steps = [
        {"action": "create a.py", "observation": "", "state": '{"working_dir": "/repo"}'},
        {"action": "python a.py\n", "observation": "", "state": '{"working_dir": "/repo"}'},
    ]
    rows = {FILES[0]: {"messages": messages, "calls": []}, FILES[1]: {"trajectory": steps}}
    for name, row in rows.items():
        (tmp_path / name).write_bytes(zstandard.compress(json.dumps(row).encode()))
    return tmp_path


def test_each_command_is_planned_against_what_was_shown(corpora):
    result = run(corpora)
    verdicts = [(row["command"], row["verdict"]) for row in result["commands"]]
    assert verdicts == [
        ("cat /workspace/repo/unseen.py", "unseen"),
        ("python t.py", "exact"),
        ("cat t.py || rm t.py", "bounded"),
        ("frobnicate t.py", "refused"),
        ("rm t.py", "exact"),
        ("python a.py", "exact"),
    ]
    assert result["denominators"] == {"commands": 6, "exact": 3, "bounded": 1, "refused": 1, "unseen": 1}
    assert result["figures"] == {"planned_of_all": 0.6667, "planned_of_those_seen": 0.8, "opaque": 2}


def test_the_command_gives_both_forms(corpora):
    answer = CliRunner().invoke(app, ["lab", "shell-corpus", "--corpora", str(corpora), "--json"])
    assert json.loads(answer.stdout)["ok"] is True
    answer = CliRunner().invoke(app, ["lab", "shell-corpus", "--corpora", str(corpora)])
    assert "commands 6" in answer.stdout


def test_a_corpus_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigError):
        run(tmp_path)
