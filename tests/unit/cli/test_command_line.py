"""The command line over a real state folder: what it prints, what it changes, and its exit codes."""

import json
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import cxi.cli
from cxi.cli.app import app
from cxi.errors import Code, OutcomeUnknown, Reason
from cxi.lab.arena import Tools, arena, define, permit_calls

RUN = CliRunner()
TOOL = {
    "effect": "call",
    "fields": {"to": {"role": "protected", "type": "Text", "from": ["any-of-request"]}, "body": {"role": "payload"}},
}


@pytest.fixture
def place():
    with arena() as found:
        found.root.mkdir()
        file = found.configure({"send": TOOL}, policies=permit_calls(["send"]), tasks={"case": {"grants": {"it.send": 2}}})
        tools = Tools(define(["send"]))
        found.pin(file, tools)
        yield SimpleNamespace(base=found.base, open=found.open, file=file, tools=tools)


def work(place, *calls, faults=()):
    """Make calls in a session that asks for `bob`; their ids."""
    place.tools.faults = list(faults)
    with place.open(place.file, place.tools, request="Send it to `bob`.") as (_, talk):
        return [talk.call("it.send", call).id for call in calls]


def cxi_run(place, *arguments):
    return RUN.invoke(app, [*arguments, "--config", str(place.file)])


def test_show_has_a_line_a_call_and_json_beside_it(place):
    done, refused = work(place, {"to": "bob", "body": "x"}, {"to": "eve", "body": "x"})
    shown = cxi_run(place, "log", "show")
    assert shown.exit_code == 0
    assert done in shown.stdout
    assert "FIELD_NO_AUTHORITY" in shown.stdout
    calls = json.loads(cxi_run(place, "log", "show", "--json").stdout)["calls"]
    assert [(call["id"], call["decision"]) for call in calls] == [(done, "admitted"), (refused, "refused")]
    assert json.loads(cxi_run(place, "log", "show", "--json", "-n", "1").stdout)["calls"][0]["id"] == refused


def test_explain_names_the_source_of_each_field_and_what_would_help(place):
    done, refused = work(place, {"to": "bob", "body": "x"}, {"to": "eve", "body": "x"})
    assert json.loads(cxi_run(place, "explain", done, "--json").stdout)["evidence"]["to"]["kind"] == "request"
    assert "needs:" in cxi_run(place, "explain", refused).stdout
    assert cxi_run(place, "explain", "a-00000000").exit_code == 1
    assert RUN.invoke(app, ["explain", "EVENT_REPEATED"]).exit_code == 0
    assert RUN.invoke(app, ["explain", "EVENT_REPEATET"]).exit_code == 2


def test_verify_finds_an_altered_entry_and_exits_1(place):
    work(place, {"to": "bob", "body": "x"})
    assert cxi_run(place, "log", "verify").exit_code == 0
    ledger = next((place.base / "state").glob("ledger.sqlite"))
    with sqlite3.connect(ledger) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(log)")]
        body = next(name for name in columns if name in ("content", "body", "entry"))
        database.execute(
            f"UPDATE log SET {body} = replace({body}, 'it.send', 'it.sent') WHERE seq = (SELECT max(seq) - 1 FROM log)"
        )
    database.close()
    assert cxi_run(place, "log", "verify").exit_code in (1, 3)
    assert json.loads(cxi_run(place, "log", "verify", "--json").stdout or '{"ok": false}')["ok"] is False


@pytest.mark.parametrize("change", ["UPDATE call SET state = 'failed'", ""])
def test_a_log_that_disagrees_or_that_nobody_signed_is_shown_with_a_warning_and_exits_1(place, change):
    (done,) = work(place, {"to": "bob", "body": "x"})
    state = next(place.base.rglob("ledger.sqlite")).parent
    if change:
        with closing(sqlite3.connect(state / "ledger.sqlite")) as database, database:
            database.execute(change)
    else:
        (state / "checkpoints.jsonl").unlink()
    (kind,) = {found["kind"] for found in json.loads(cxi_run(place, "log", "verify", "--json").stdout)["findings"]}
    assert kind == ("disagrees" if change else "unsigned")
    for command in (("log", "show"), ("explain", done)):
        shown = cxi_run(place, *command)
        assert (shown.exit_code, done in shown.stdout, len(shown.stderr.splitlines())) == (1, True, 1)


def test_a_receipt_verifies_with_the_public_key_alone_and_not_once_changed(place, tmp_path):
    (done,) = work(place, {"to": "bob", "body": "x"})
    receipt, key = tmp_path / "receipt.json", tmp_path / "key.pem"
    receipt.write_text(cxi_run(place, "log", "receipt", done).stdout)
    key.write_text(cxi_run(place, "log", "key").stdout)
    assert RUN.invoke(app, ["log", "verify-receipt", str(receipt), "--key", str(key)]).exit_code == 0
    envelope = json.loads(receipt.read_text())
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAAA"
    receipt.write_text(json.dumps(envelope))
    assert RUN.invoke(app, ["log", "verify-receipt", str(receipt), "--key", str(key)]).exit_code == 1
    assert cxi_run(place, "log", "receipt", "a-00000000").exit_code == 1


def test_erased_values_are_gone_and_the_chain_still_verifies(place):
    work(place, {"to": "bob", "body": "x"})
    assert cxi_run(place, "log", "erase", "--reason", "r").exit_code == 2
    assert json.loads(cxi_run(place, "log", "erase", "--older-than", "0", "--reason", "r", "--json").stdout)["erased"] > 0
    assert "bob" not in cxi_run(place, "log", "show").stdout
    assert "(erased)" in cxi_run(place, "log", "show").stdout
    assert cxi_run(place, "log", "verify").exit_code == 0


def test_an_unknown_outcome_is_listed_and_a_person_releases_it(place):
    fault = OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer"))
    (call,) = work(place, {"to": "bob", "body": "x"}, faults=[fault])
    assert [story["id"] for story in json.loads(cxi_run(place, "ledger", "unknown", "--json").stdout)["calls"]] == [call]
    assert cxi_run(place, "ledger", "release", call, "--as", "perhaps", "--reason", "r").exit_code == 2
    assert cxi_run(place, "ledger", "release", call, "--as", "failed", "--reason", "looked").exit_code == 0
    assert json.loads(cxi_run(place, "ledger", "unknown", "--json").stdout)["calls"] == []


def test_an_outcome_that_nobody_knows_is_released(place):
    fault = OutcomeUnknown(Reason(Code.SINK_TIMEOUT, "no answer"))
    (call,) = work(place, {"to": "bob", "body": "x"}, faults=[fault])
    assert cxi_run(place, "ledger", "release", call, "--as", "released", "--reason", "r").exit_code == 0
    assert json.loads(cxi_run(place, "log", "show", "--json").stdout)["calls"][0]["state"] == "released"


def test_only_what_the_ledger_knows_is_revoked(place):
    work(place, {"to": "bob", "body": "x"})
    session = json.loads(cxi_run(place, "log", "show", "--json").stdout)["calls"][0]["session"]
    before = json.loads(cxi_run(place, "log", "show", "--json").stdout)["entries"]
    assert cxi_run(place, "ledger", "revoke", "--session", "s-nobody", "--reason", "r").exit_code == 1
    assert cxi_run(place, "ledger", "revoke", "--session", session, "--grant", "case/it.sent", "--reason", "r").exit_code == 1
    assert json.loads(cxi_run(place, "log", "show", "--json").stdout)["entries"] == before
    assert cxi_run(place, "ledger", "revoke", "--session", session, "--grant", "case/it.send", "--reason", "r").exit_code == 0
    assert cxi_run(place, "ledger", "revoke", "--session", session, "--reason", "r").exit_code == 0


def test_lock_gives_a_server_the_time_that_its_limits_name(place, monkeypatch):
    given = []

    class Stub:
        def __init__(self, launch, *, admit, start_timeout):
            given.append((launch.name, start_timeout))

        def start(self):
            return place.tools.definitions

        def close(self):
            pass

    monkeypatch.setattr("cxi.sinks.mcp.BlockingUpstream", Stub)
    body = json.loads(place.file.read_text())
    body["servers"]["it"]["limits"] = {"start": "90s"}
    place.file.write_text(json.dumps(body))
    assert cxi_run(place, "lock").exit_code == 0
    assert given == [("it", 90.0)]


def test_a_configuration_that_is_missing_names_no_command_that_is_not_there(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments in (["check"], ["check", "--config", "nowhere.yaml"]):
        monkeypatch.setattr("sys.argv", ["cxi", *arguments])
        with pytest.raises(SystemExit) as ended:
            cxi.cli.main()
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert "--config" in said
        assert "cxi init" not in said


def test_check_counts_the_surface_and_prints_the_schema(place):
    counts = json.loads(cxi_run(place, "check", "--json").stdout)["counts"]
    assert (counts["tools"], counts["effect_call"]) == (1, 1)
    assert "tool:it.send" in cxi_run(place, "check", "--schema").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["log", "show", "--config", "nowhere.yaml"], 2), (["log", "show"], 2), (["--version"], 0), (["nonsense"], 2)],
)
def test_exit_codes_are_those_that_are_documented(arguments, code, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["cxi", *arguments])
    with pytest.raises(SystemExit) as ended:
        cxi.cli.main()
    assert ended.value.code == code
    capsys.readouterr()


def test_a_configuration_that_never_ran_has_no_ledger_and_exits_3(place, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["cxi", "log", "show", "--config", str(place.file)])
    with pytest.raises(SystemExit) as ended:
        cxi.cli.main()
    assert ended.value.code == 3
    assert "no ledger" in capsys.readouterr().err


def test_no_color_where_it_is_not_wanted(place, monkeypatch):
    work(place, {"to": "bob", "body": "x"})
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in cxi_run(place, "log", "show").stdout
