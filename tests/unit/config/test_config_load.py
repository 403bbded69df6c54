"""All start-up errors come out of `load`, at once, each with file, line and mend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cxi.authority.contract import Choice, Origin
from cxi.config.lock import make_lock, write_lock
from cxi.config.model import ProtectedKind
from cxi.errors import ConfigError

HERE = "#!"  # marks the line that a problem must name


def problems(place, *, pinned: bool = True):
    with pytest.raises(ConfigError) as caught:
        place.load(pinned=pinned)
    return caught.value.problems


def test_a_right_configuration_is_read(place):
    config = place.load()
    assert config.agent == "maintainer"
    assert config.tenant == "local"
    assert config.root == Path(os.path.realpath(place.folder / "repo"))
    assert config.contracts["files.write_file"].fields["path"].origins == (
        Origin.ANY_OF_REQUEST,
        Origin.RELEASE,
        Choice(("src-and-tests",)),
    )
    assert config.contracts["files.write_file"].sink
    assert not config.contracts["files.read_text_file"].sink
    assert [grant.id for grant in config.tasks["fix-bug"].grants] == ["fix-bug/files.write_file"]
    assert {"src-and-tests", "no-docs", "files/calls", "ci/calls", "cxi/reads"} <= set(config.registry.policies)
    assert config.declassifiers[0].destination == "files.write_file.path"
    assert not config.state.is_relative_to(config.root)
    assert set(config.surfaces) == set(config.contracts)


@pytest.mark.parametrize(
    "address",
    ["postgresql://gateway@db/cxi", "postgres://db1,db2:5433/cxi?sslmode=verify-full", "postgresql:///cxi?host=/run/pg"],
)
def test_a_ledger_of_many_gateways_is_named_without_a_password(place, address: str) -> None:
    place.change("mode: enforce", f"ledger: {address}\ntenant: acme")
    config = place.load()
    assert (config.ledger, config.tenant) == (address, "acme")


# One row a fault: what is replaced, by what (`#!` marks the line that is to be named).
FAULTS = {
    "unknown key": ("mode: enforce", "modus: enforce #!"),
    "unknown key of a server": ("    pack: ci-report", "    pack: ci-report\n    packs: x #!"),
    "unknown key of a field": ("{path: {from: [any", "{path: {form: [a], #!\n          from: [any"),
    "another version": ("version: 1", "version: 2 #!"),
    "version as a boolean": ("version: 1", "version: true #!"),
    "empty agent": ("agent: maintainer", "agent: #!"),
    "agent as a list": ("agent: maintainer", "agent: [maintainer] #!"),
    "agent with a blank": ("agent: maintainer", "agent: the maintainer #!"),
    "no such root": ("root: ./repo", "root: ./nowhere #!"),
    "the whole file system as root": ("root: ./repo", "root: / #!"),
    "policies as text": ("policies: [policies/*.cedar]", "policies: policies/*.cedar #!"),
    "policies that find nothing": ("policies: [policies/*.cedar]", "policies: [policies/*.cedar,\n  rules/*.cedar] #!"),
    "an empty list of policies": ("policies: [policies/*.cedar]", "policies: [] #!"),
    "policies over the whole root": ("policies: [policies/*.cedar]", "policies: [policies/p.cedar,\n  '**/*.cedar'] #!"),
    "prose that is not there": ("prose: [repo/AGENTS.md]", "prose: [repo/RULES.md] #!"),
    "mode shadow": ("mode: enforce", "mode: shadow #!"),
    "unknown mode": ("mode: enforce", "mode: open #!"),
    "state inside the root": ("mode: enforce", "state: repo/state #!"),
    "a tenant with a blank": ("mode: enforce", "tenant: the tenant #!"),
    "a ledger of another kind": ("mode: enforce", "ledger: sqlite:///x #!"),
    "a ledger with a password": ("mode: enforce", "ledger: postgresql://gateway:secret@db/cxi #!"),
    "a ledger with a password behind": ("mode: enforce", "ledger: postgresql://db/cxi?password=secret #!"),
    "server name with capitals": ("  ci:\n", "  CI: #!\n"),
    "server without a command": ("    command: [sh]\n", ""),
    "command as text": ("command: [sh]", "command: sh #!"),
    "no such program": ("command: [sh]", "command: [no-such-program-at-all] #!"),
    "a secret in the command": ("command: [sh]", "command: [sh, '${TOKEN}'] #!"),
    "url": ("    pack: ci-report", "    url: https://example.org/mcp #!\n    pack: ci-report"),
    "unknown pack": ("pack: ci-report", "pack: ci-reprot #!"),
    "a pack file that is not there": ("pack: ci-report", "pack: ./ci.yaml #!"),
    "an unset variable": ("    pack: ci-report", "    env: {A: x,\n      B: '${NOT_SET}'} #!\n    pack: ci-report"),
    "a number in env": ("    pack: ci-report", "    env: {A: 1} #!\n    pack: ci-report"),
    "a bad timeout": ("    pack: ci-report", "    timeout: soon #!\n    pack: ci-report"),
    "a choice that names no policy": ("{choice: [src-and-tests]}", "{choice: [src]}"),
    "a choice that names a forbid": ("{choice: [src-and-tests]}", "{choice: [no-docs]}"),
    "an empty choice": ("{choice: [src-and-tests]}", "{choice: []}"),
    "an unknown origin": ("[any-of-request, release,", "[any-of-request, relaese,"),
    "constant is no origin": ("[any-of-request, release,", "[constant, release,"),
    "request and any-of-request": ("[any-of-request, release,", "[any-of-request, request, release,"),
    "anyone on a sink": ("[any-of-request, release,", "[anyone, release,"),
    "a tuple of one": ("{path: {from:", "{path: {together: alone, from:"),
    "after without a request": (
        "{path: {from: [any-of-request, release, {choice: [src-and-tests]}]",
        "{path: {after: to, from: [release]",
    ),
    "an unknown type": ("{path: {from:", "{path: {type: RepoPaht, from:"),
    "an unknown type parameter": ("{path: {from:", "{path: {type: {RepoPath: {last: keep}}, from:"),
    "an unknown adapter": ("{fields: {path:", "{effect: {adapter: fiel, path: path}, fields: {path:"),
    "an unknown adapter input": ("{fields: {path:", "{effect: {adapter: file, pfad: path}, fields: {path:"),
    "an input that is no field": ("{fields: {path:", "{effect: {adapter: file, path: paht}, fields: {path:"),
    "an unknown atom": ("{fields: {path:", "{effect: [fs.wriet(path)], fields: {path:"),
    "an atom on no field": ("{fields: {path:", "{effect: [fs.write(paht)], fields: {path:"),
    "an atom on a payload": ("{fields: {path:", "{effect: [fs.write(content)], fields: {path:"),
    "an effect that is no effect": ("{fields: {path:", "{effect: nothing, fields: {path:"),
    "sink false on a writer": ("{fields: {path:", "{sink: false, fields: {path:"),
    "an unknown repeat": ("{fields: {path:", "{repeat: again, fields: {path:"),
    "an unknown target type": ("{fields: {path:", "{target: Fiel(path), fields: {path:"),
    "a target that is no field": ("{fields: {path:", "{target: File(paht), fields: {path:"),
    "a result position that is no path": ("{fields: {path:", "{result: {'$.[': platform}, fields: {path:"),
    "an unknown writer": ("{fields: {path:", "{result: {content: me}, fields: {path:"),
    "evidence from an unknown tool": (
        "{from: {tool: ci.get_report, path: '$.run',",
        "{from: {tool: ci.get_reprot, path: '$.run',",
    ),
    "evidence from an outsider": ("path: '$.run', written_by", "path: '$.log', written_by"),
    "evidence that holds what an outsider wrote": ("path: '$.run', written_by", "path: '$', written_by"),
    "evidence without a subject": ("subject: commit, ", ""),
    "evidence about something unknown": ("subject: commit", "subject: comit"),
    "an expiry without a unit": ("expires: 1h", "expires: 1 hour"),
    "a declassifier from an outsider": ("].file', written_by", "].message', written_by"),
    "a declassifier that an outsider selects": ('(@.status=="failed")].file', '(@.message=="failed")].file'),
    "a declassifier that reaches anywhere": ("""'$.testcases[?(@.status=="failed")].file'""", "'$..file'"),
    "a declassifier that is written by an outsider": ("written_by: platform, complete", "written_by: outsider, complete"),
    "a declassifier from partial reads": ("complete: true", "complete: false"),
    "a declassifier of another type": ("    type: RepoPath", "    type: Url #!"),
    "an unknown validator": ("validate: [tracked-file]", "validate: [tracked-fiel] #!"),
    "a destination that is no tool": ("to: files.write_file.path", "to: files.write_fiel.path #!"),
    "a destination that is no field": ("to: files.write_file.path", "to: files.write_file.paht #!"),
    "a destination that is a payload": ("to: files.write_file.path", "to: files.write_file.content #!"),
    "a destination that takes no release": ("to: files.write_file.path", "to: files.move_file.source #!"),
    "an unknown selection": ("selection: all", "selection: some #!"),
    "an extractor that is not there": ("selection: all", "extract: code/x.py:find #!"),
    "a grant for an unknown tool": ("{files.write_file: 20}", "{files.write_fiel: 20} #!"),
    "a grant of none": ("{files.write_file: 20}", "{files.write_file: 0} #!"),
    "a grant as text": ("{files.write_file: 20}", "{files.write_file: many} #!"),
    "a grant on no field": ("{files.write_file: 20}", "{files.write_file: {count: 1, where: {paht: [a]}}} #!"),
    "a grant on a payload": ("{files.write_file: 20}", "{files.write_file: {count: 1, where: {content: [a]}}} #!"),
    "a grant on a bad value": ("{files.write_file: 20}", "{files.write_file: {count: 1, where: {path: [../../x]}}} #!"),
    "a task without grants": ("    grants: {files.write_file: 20}", "    expires: 1h"),
    "a task that is called standing": ("  fix-bug:", "  standing: #!"),
    "a duplicate key": ("mode: enforce", "mode: enforce\nmode: enforce #!"),
}
# Where no line of the replacement is marked, it is the line of the piece that was replaced; these stand elsewhere.
LINES = {"server without a command": 12, "a task without grants": 25}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_with_its_line(place, fault: str):
    old, new = FAULTS[fault]
    before = place.change(old, old)
    text = place.change(old, new)
    line = LINES.get(fault) or (
        text.split("\n").index(next(row for row in text.split("\n") if HERE in row)) + 1
        if HERE in text
        else before[: before.index(old)].count("\n") + 1
    )
    found = problems(place)
    assert ("cxi.yaml", line) in {(problem.file, problem.line) for problem in found}, [str(problem) for problem in found]
    assert all(problem.mend for problem in found if problem.line == line)


def test_all_problems_come_at_once(place):
    place.write("cxi.yaml", "version: 1\nagnet: x\nroot: ./repo\nmode: shadow\nservers:\n  a: {command: [sh], pak: git}\n")
    found = {(problem.line, problem.detail.split("`")[1]) for problem in problems(place)}
    assert {(1, "agent"), (2, "agnet"), (4, "shadow"), (6, "a")} <= found


def test_a_misspelled_key_is_answered_with_the_right_one(place):
    place.change("mode: enforce", "mod: enforce")
    assert [problem.mend for problem in problems(place)] == ["did you mean `mode`?"]


def test_a_policy_error_is_named_with_the_policies_file_and_line(place):
    place.write("policies/q.cedar", '\n\n@id("x") permit (principal, action == Action::"fs.wriet", resource);\n')
    assert {(problem.file, problem.line) for problem in problems(place)} == {("policies/q.cedar", 3)}


def test_a_duplicate_policy_id_is_named_where_it_is_second(place):
    place.write("policies/q.cedar", '@id("src-and-tests") permit (principal, action == Action::"fs.write", resource);\n')
    assert [(problem.file, problem.line) for problem in problems(place)] == [("policies/q.cedar", 1)]


def test_a_policy_may_not_take_the_id_of_a_shipped_one(place):
    place.write("policies/q.cedar", '@id("files/calls") permit (principal, action == Action::"fs.write", resource);\n')
    assert [problem.file for problem in problems(place)] == ["policies/q.cedar"]


def test_an_unknown_agent_in_a_policy_is_a_start_up_error(place):
    place.write("policies/q.cedar", '@id("x") permit (principal == Agent::"other", action == Action::"fs.write", resource);\n')
    assert {(problem.file, problem.line) for problem in problems(place)} == {("policies/q.cedar", 1)}
    place.change("agent: maintainer", "agent: maintainer\nagents: [other]")
    assert place.load().agents == ("maintainer", "other")


def test_a_file_that_is_not_there_is_a_configuration_error(place):
    (place.folder / "cxi.yaml").unlink()
    assert len(problems(place)) == 1


def test_prose_with_hidden_text_is_refused_with_its_line(place):
    place.write("repo/AGENTS.md", "# Rules ⚠️\nNever push\u200b.\n")
    assert [(problem.file, problem.line) for problem in problems(place)] == [("repo/AGENTS.md", 2)]


def test_prose_that_differs_from_its_pin_is_refused_until_a_person_pins_it(place, tools_of):
    config = place.load()
    write_lock(config.lock_file, make_lock(config, {name: tools_of(config, name) for name in config.servers}))
    place.load()
    place.write("repo/AGENTS.md", "# Other rules\n")
    assert [problem.file for problem in problems(place)] == ["repo/AGENTS.md"]
    config = place.load(pinned=False)
    write_lock(config.lock_file, make_lock(config, {name: tools_of(config, name) for name in config.servers}))
    assert place.load().prose[0].text == "# Other rules\n"


def test_a_written_contract_for_a_tool_that_the_server_lacks_is_a_start_up_error(place, tools_of):
    config = place.load()
    listed = {name: tools_of(config, name) for name in config.servers}
    listed["files"] = [tool for tool in listed["files"] if tool["name"] != "write_file"]
    write_lock(config.lock_file, make_lock(config, listed))
    assert ("cxi.yaml", 11) in {(problem.file, problem.line) for problem in problems(place)}


def test_a_damaged_lock_is_a_start_up_error(place):
    place.write("cxi.lock", '{"version": 1}')
    assert {problem.file for problem in problems(place)} == {"cxi.lock"}


def test_what_is_of_cxi_is_protected_through_links_too(place):
    (place.folder / "real.cedar").write_text((place.folder / "policies/p.cedar").read_text())
    (place.folder / "policies/p.cedar").unlink()
    (place.folder / "policies/p.cedar").symlink_to("../real.cedar")
    config = place.load()
    named = dict(config.protected)
    for name in ("cxi.yaml", "cxi.lock", "repo/AGENTS.md", "server.py", "policies/p.cedar", "real.cedar", "repo/.mcp.json"):
        assert named[str(place.folder / name)] is ProtectedKind.FILE
    assert named[str(place.folder / "policies")] is ProtectedKind.FOLDER
    assert named[str(config.state)] is ProtectedKind.FOLDER


def test_a_module_that_is_started_is_protected(place):
    place.write("tools/server.py", "")
    place.change("command: [sh, server.py]", "command: [sh, -m, tools.server]")
    assert str(place.folder / "tools/server.py") in dict(place.load().protected)


def test_the_digest_follows_what_decides_and_nothing_else(place):
    first = place.load().digest
    place.change("mode: enforce", "# a comment\nmode: enforce")
    assert place.load().digest == first
    place.change("{files.write_file: 20}", "{files.write_file: 21}")
    assert place.load().digest != first
    place.change("release, {choice", "release, approval, {choice")
    assert place.load().digest != first
    place.change("mode: enforce", "mode: enforce")
    place.write("policies/p.cedar", (place.folder / "policies/p.cedar").read_text() + "\n")
    assert place.load().digest != first


def test_secrets_stay_references_until_the_server_starts(place):
    place.change("    pack: ci-report", "    env: {TOKEN: 'x-${SECRET}'}\n    pack: ci-report")
    place.environ = {**place.environ, "SECRET": "s3cret"}
    config = place.load()
    server = config.servers["ci"]
    assert "s3cret" not in repr(config)
    assert server.environment(place.environ) == {"TOKEN": "x-s3cret"}
    identity = server.identity
    place.environ = {**place.environ, "SECRET": "another"}
    assert place.load().servers["ci"].identity == identity


def test_identity_is_the_program_and_its_arguments(place):
    first = place.load().servers["ci"].identity
    place.change("command: [sh]", "command: [sh, -x]")
    assert place.load().servers["ci"].identity != first
    place.change("command: [sh]", "command: [cat]")
    assert place.load().servers["ci"].identity != first


def test_grant_constraints_are_read_as_the_field_reads_them(place):
    place.change("{files.write_file: 20}", "{files.write_file: {count: 3, window: 10m, where: {path: [./src/../src/a.py]}}}")
    grant = place.load().tasks["fix-bug"].grants[0]
    assert (grant.count, grant.window, grant.constraints) == (3, 600.0, {"path": ("src/a.py",)})


def test_standing_grants_need_no_task(place):
    place.change("mode: enforce", "grants: {files.create_directory: 2}")
    assert [grant.id for grant in place.load().standing] == ["standing/files.create_directory"]


def test_a_pack_of_the_operators_own_brings_contracts_and_call_permits(place):
    place.write("crm.yaml", "version: 1\ntools:\n  find: {effect: none, fields: {q: {role: payload}}}\n")
    place.change("pack: ci-report", "pack: ci-report\n  crm: {command: [sh], pack: ./crm.yaml}")
    config = place.load()
    assert not config.contracts["crm.find"].sink
    assert "crm/calls" in config.registry.policies
    assert str(place.folder / "crm.yaml") in dict(config.protected)


def test_a_tool_written_by_hand_gets_no_call_permit_of_itself(place):
    place.change(
        "    tools:\n",
        "    tools:\n      shred: {effect: call, fields: {path: {role: protected, type: RepoPath, from: [request]}}}\n",
    )
    config = place.load()
    permitted = config.registry.policies["files/calls"].actions
    assert "tool:files.write_file" in permitted
    assert "tool:files.shred" not in permitted


def test_outward_methods_have_contracts_too(place):
    place.change("pack: ci-report", "pack: ci-report\n  web: {command: [sh], pack: fetch}")
    config = place.load()
    assert config.methods["web:prompts/get"].sink
    assert config.methods["web:prompts/get"].name in config.surfaces
    assert "tool:web.prompts/get" in config.registry.policies["web/calls"].actions


CODE = "def find(value):\n    return value['file']\n"


def with_extractor(place, tools_of):
    place.write("code/x.py", CODE)
    place.change("selection: all", "selection: all\n    extract: code/x.py:find")
    config = place.load(pinned=False)
    write_lock(config.lock_file, make_lock(config, {name: tools_of(config, name) for name in config.servers}))


def test_an_extractor_runs_only_where_a_person_pinned_it(place, tools_of):
    place.write("code/x.py", CODE)
    place.change("selection: all", "selection: all\n    extract: code/x.py:find")
    assert place.load().declassifiers[0].function is None
    with_extractor(place, tools_of)
    (declassifier,) = place.load().declassifiers
    assert declassifier.function({"file": "a.py"}) == "a.py"
    place.write("code/x.py", CODE + "raise SystemExit\n")
    assert [problem.file for problem in problems(place)] == ["code/x.py"]


def test_an_extractor_is_part_of_its_declassifiers_version_and_protected(place, tools_of):
    with_extractor(place, tools_of)
    config = place.load()
    assert str(place.folder / "code/x.py") in dict(config.protected)
    place.write("code/x.py", CODE + "# other\n")
    assert place.load(pinned=False).declassifiers[0].digest != config.declassifiers[0].digest


def test_an_extractor_that_does_not_load_is_a_start_up_error(place, tools_of):
    for text in ("def other(value): ...\n", "def find(:\n", "1 / 0\n"):
        place.write("code/x.py", text)
        place.change("selection: all", "selection: all\n    extract: code/x.py:find")
        config = place.load(pinned=False)
        write_lock(config.lock_file, make_lock(config, {name: tools_of(config, name) for name in config.servers}))
        assert [problem.file for problem in problems(place)] == ["code/x.py"]


FILES = """command: [sh, server.py]
    pack: filesystem
    tools:
      write_file: {fields: {path: {from: [any-of-request, release, {choice: [src-and-tests]}]}}}
"""
NAMING = """
@id("names-both")
permit (principal, action in [Action::"tool:files.write_file", Action::"tool:ci.get_report"], resource);
@id("names-evidence") @evidence("test-run")
forbid (principal, action == Action::"fs.write", resource) unless { context.evidence has test_run };
"""


@pytest.mark.parametrize(
    ("there", "instead", "count"),
    [
        ("pack: filesystem", "pack: filesytem", 1),
        ("pack: filesystem", "pack: ./packs/none.yaml", 1),
        (FILES, "url: https://example.org/mcp\n", 1),
        ("command: [sh]\n    pack: ci-report", "url: https://example.org/mcp", 1),
        ("pack: ci-report", "pack: ci-reprot", 1),
        ("  ci:\n    command: [sh]\n    pack: ci-report", "  CI:\n    command: [sh]\n    pack: ci-report\n  ci: 3", 2),
    ],
)
def test_a_server_whose_tools_are_not_known_is_no_problem_of_what_names_them(place, there: str, instead: str, count: int):
    policies = (place.folder / "policies" / "p.cedar").read_text(encoding="utf-8") + NAMING
    place.write("policies/p.cedar", policies)
    place.load()
    base = (place.folder / "cxi.yaml").read_text(encoding="utf-8")
    assert there in base
    place.write("cxi.yaml", base.replace(there, instead))
    assert len(problems(place)) == count, [str(problem) for problem in problems(place)]
    place.write("policies/p.cedar", policies + '@id("wrong")\npermit (principal, action == Action::"fs.wirte", resource);\n')
    assert any("fs.wirte" in problem.detail for problem in problems(place))
    place.write("cxi.yaml", base.replace(there, instead).replace("grants: {", "grants: {nobody.tool: 1, "))
    assert any("nobody.tool" in problem.detail for problem in problems(place))
