"""`lint` counts the surface, and fails on what no contract classifies."""

from __future__ import annotations

import json

import pytest

from cxi.config.check import Severity, lint
from cxi.config.lock import make_lock, write_lock


def locked(place, tools_of, change=lambda listed: None):
    config = place.load(pinned=False)
    listed = {name: tools_of(config, name) for name in config.servers}
    change(listed)
    write_lock(config.lock_file, make_lock(config, listed))
    return place.load()


def details(report, severity):
    return [finding.problem for finding in report.findings if finding.severity is severity]


def test_a_configuration_whose_tools_are_all_classified_passes(place, tools_of):
    report = lint(locked(place, tools_of))
    assert not report.failed
    assert details(report, Severity.ERROR) == []
    assert report.counts["unclassified"] == 0
    assert report.counts["locked_tools"] == 15


def test_the_surface_is_counted(place, tools_of):
    counts = lint(locked(place, tools_of)).counts
    config = place.load()
    fields = [field for contract in config.contracts.values() for field in contract.fields.values()]
    assert counts["servers"] == 2
    assert counts["tools"] == len(config.contracts) == 15
    assert counts["fields"] == len(fields) == counts["protected"] + counts["payload"] + counts["opaque"] + counts["fixed"]
    assert (counts["choices"], counts["effect_call"], counts["declassifiers"], counts["validators"]) == (1, 0, 1, 1)
    assert counts["permits"] + counts["forbids"] == len(config.registry.policies)


def test_a_tool_without_a_contract_fails(place, tools_of):
    report = lint(locked(place, tools_of, lambda listed: listed["ci"].append({"name": "rerun", "inputSchema": {}})))
    assert report.failed
    assert report.counts["unclassified"] == 1
    assert [(problem.file, problem.line) for problem in details(report, Severity.ERROR)] == [("cxi.yaml", 12)]


def test_a_property_that_no_contract_names_fails(place, tools_of):
    def add(listed):
        tool = next(tool for tool in listed["files"] if tool["name"] == "write_file")
        tool["inputSchema"]["properties"]["mode"] = {"type": "string"}

    report = lint(locked(place, tools_of, add))
    assert report.failed
    assert [(problem.file, problem.line) for problem in details(report, Severity.ERROR)] == [("cxi.yaml", 11)]


def test_properties_are_found_in_objects_lists_unions_and_references(place, tools_of):
    def add(listed):
        listed["ci"][0]["inputSchema"] = {
            "type": "object",
            "$defs": {"Inner": {"type": "object", "properties": {"deep": {"type": "string"}}}},
            "properties": {
                "a": {"$ref": "#/$defs/Inner"},
                "b": {"type": "array", "items": {"type": "object", "properties": {"c": {}}}},
                "d": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"e": {}}}]},
                "f": {"type": "array", "items": {"type": "string"}},
            },
        }

    report = lint(locked(place, tools_of, add))
    found = {problem.detail.split("`")[1] for problem in details(report, Severity.ERROR)}
    assert found == {"a.deep", "b[].c", "d.e", "f[]"}


def test_a_reference_that_loops_ends(place, tools_of):
    def add(listed):
        listed["ci"][0]["inputSchema"] = {
            "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}},
            "properties": {"n": {"$ref": "#/$defs/N"}},
        }

    assert lint(locked(place, tools_of, add)).failed


def test_a_server_that_is_not_pinned_is_a_warning(place):
    report = lint(place.load())
    assert not report.failed
    assert {6 + 1, 12} <= {problem.line for problem in details(report, Severity.WARNING)}


def test_concessions_are_warnings_where_they_are_written(place, tools_of):
    place.change("    tools:\n", "    tools:\n      shred: {effect: call, fields: {}}\n")
    lines = {problem.line for problem in details(lint(locked(place, tools_of)), Severity.WARNING)}
    assert {11, 12} <= lines  # `effect: call`, then the bounded choice


def test_a_folder_that_names_nothing_is_a_warning(place, tools_of):
    place.write("policies/q.cedar", '\n@id("q") permit (principal, action == Action::"fs.write", resource in Folder::"srcc");\n')
    warned = details(lint(locked(place, tools_of)), Severity.WARNING)
    assert ("policies/q.cedar", 2) in {(problem.file, problem.line) for problem in warned}
    assert not any(problem.file == "policies/p.cedar" for problem in warned)


def test_a_tool_that_only_a_pack_describes_may_be_missing(place, tools_of):
    report = lint(locked(place, tools_of, lambda listed: listed["files"].pop(0)))
    assert not report.failed
    assert report.counts["lacking"] == 1


def test_hidden_text_in_a_definition_is_a_warning(place, tools_of):
    report = lint(locked(place, tools_of, lambda listed: listed["ci"][0].update(description="read\u200b this")))
    assert 12 in {problem.line for problem in details(report, Severity.WARNING)}


def test_a_server_with_another_program_fails(place, tools_of):
    locked(place, tools_of)
    place.change("command: [sh]", "command: [sh, -x]")
    report = lint(place.load())
    assert [(problem.file, problem.line) for problem in details(report, Severity.ERROR)] == [("cxi.yaml", 12)]


def test_the_report_is_plain_lines_and_json(place):
    report = lint(place.load())
    assert json.loads(json.dumps(report.to_json()))["counts"]["servers"] == 2
    assert all(line.isprintable() for line in report.lines())
    assert len(report.lines()) == 9 + len(report.findings)


def test_a_payload_that_no_effect_reads_is_a_warning(place, tools_of):
    before = details(lint(locked(place, tools_of)), Severity.WARNING)
    fields = "{p: {role: protected, type: RepoPath, from: [request]}, text: {role: payload}}"
    place.change("    tools:\n", f"    tools:\n      note: {{effect: [fs.write(p)], fields: {fields}}}\n")
    found = details(lint(locked(place, tools_of)), Severity.WARNING)
    assert len(found) == len(before) + 1
    assert ("cxi.yaml", 11) in {(problem.file, problem.line) for problem in found}


WRITE_FILE = "      write_file: {fields: {path: {from: [any-of-request, release, {choice: [src-and-tests]}]}}}\n"


def weakened(place, tools_of, entry, change=lambda listed: None):
    if entry.startswith("write_file"):
        place.change(WRITE_FILE, f"      {entry}\n")
    else:
        place.change(WRITE_FILE, f"{WRITE_FILE}      {entry}\n")
    report = lint(locked(place, tools_of, change))
    return report.failed, report.counts["weakened"]


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        ("edit_file: {effect: none, WEAKENS fields: {path: {from: [anyone]}}}", 3),
        ("write_file: {effect: 'call', WEAKENS repeat: refuse}", 1),
        ("write_file: {WEAKENS effect: {adapter: file, op: =write, path: path}}", 1),
        ("create_directory: {WEAKENS effect: ['fs.read(path)']}", 2),
        ("create_directory: {effect: call, WEAKENS fields: {path: {role: payload}}}", 2),
    ],
)
def test_what_is_laid_over_a_pack_and_loosens_it_is_an_error_unless_it_says_so(place, tools_of, entry, count):
    assert weakened(place, tools_of, entry.replace("WEAKENS ", "")) == (True, count)
    assert weakened(place, tools_of, entry.replace("WEAKENS", "weakens: true,")) == (False, count)


def test_what_restricts_a_pack_is_no_weakening(place, tools_of):
    assert weakened(place, tools_of, "write_file: {fields: {path: {from: [release]}, content: {role: fixed, value: x}}}")[1] == 0


@pytest.mark.parametrize("hints", [{"readOnlyHint": False}, {"destructiveHint": True}])
def test_a_server_that_says_a_read_acts_is_an_error_unless_the_configuration_says_so(place, tools_of, hints):
    def change(listed):
        next(tool for tool in listed["files"] if tool["name"] == "list_directory")["annotations"] = hints

    assert weakened(place, tools_of, "write_file: {repeat: refuse}", change) == (True, 1)
    assert weakened(place, tools_of, "list_directory: {weakens: true}", change) == (False, 1)


def test_a_server_that_says_it_only_reads_loosens_nothing(place, tools_of):
    def change(listed):
        for tool in listed["files"]:
            tool["annotations"] = {"readOnlyHint": True, "destructiveHint": False}

    assert weakened(place, tools_of, "write_file: {repeat: refuse}", change) == (False, 0)
    assert place.load().contracts["files.write_file"].sink


def test_a_misspelt_folder_in_a_condition_is_a_warning_in_text_and_json(place, tools_of):
    text = '\n@id("q") permit (principal, action == Action::"fs.write", resource) when { resource in Folder::"scr" };\n'
    place.write("policies/q.cedar", text)
    report = lint(locked(place, tools_of))
    assert any(line.startswith("warning: policies/q.cedar:2") for line in report.lines())
    assert ("warning", "policies/q.cedar", 2) in {
        (one["severity"], one["file"], one["line"]) for one in report.to_json()["findings"]
    }
