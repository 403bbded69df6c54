"""The editors' schemas agree with the reader, as far as one file can tell."""

from __future__ import annotations

from pathlib import Path
from string import Template

import jsonschema
import pytest

from cxi.config.schema import FILES, config_schema, contract_schema, render_schemas
from cxi.config.server import PACKS, shipped_packs
from cxi.config.yaml import read_tree

ROOT = Path(__file__).parents[3]
CONFIG = jsonschema.Draft202012Validator(config_schema())
CONTRACT = jsonschema.Draft202012Validator(contract_schema())


def tree(text: str) -> object:
    return read_tree(text, file="x.yaml").to_json()


def test_both_are_schemas():
    for schema in (config_schema(), contract_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", shipped_packs())
def test_each_shipped_pack_is_valid(name: str):
    assert list(CONTRACT.iter_errors(tree((PACKS / f"{name}.yaml").read_text()))) == []


def test_the_example_is_valid():
    template = Template((ROOT / "examples/maintainer/cxi.yaml.in").read_text())
    commands = dict.fromkeys(("files_command", "git_command", "ci_command"), "[program]")
    assert list(CONFIG.iter_errors(tree(template.substitute(commands, root="repo", state="state")))) == []


BASE = "version: 1\nagent: a\nroot: r\nservers: {s: {command: [x], tools: {t: {fields: {f: {from: [request]}}}}}}\n"


def test_the_base_is_valid():
    assert list(CONFIG.iter_errors(tree(BASE))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("agent: a", "agnet: a"),
        ("agent: a\n", ""),
        ("version: 1", "version: 2"),
        ("command: [x]", "comand: [x]"),
        ("command: [x]", "command: []"),
        ("command: [x]", "command: [x], pack: fielsystem"),
        ("from: [request]", "form: [request]"),
        ("from: [request]", "from: [reqeust]"),
        ("from: [request]", "from: []"),
        ("{s:", "{S:"),
        ("fields:", "field:"),
    ],
)
def test_what_the_reader_refuses_in_one_file_the_schema_refuses(old: str, new: str):
    assert BASE.count(old) == 1
    assert list(CONFIG.iter_errors(tree(BASE.replace(old, new)))) != []


@pytest.mark.parametrize(
    "tool",
    [
        "{effect: none}",
        "{fields: {}}",
        "{effect: nothing, fields: {}}",
        "{effect: none, fields: {a: {role: payload, type: Url}}}",
        "{effect: none, fields: {a: {role: protected, type: Url}}}",
        "{effect: none, fields: {a: {role: protected, type: Uri, from: [request]}}}",
        "{effect: [fs.wriet(a)], fields: {}}",
        "{effect: {adapter: fiel}, fields: {}}",
        "{effect: {adapter: file, pth: a}, fields: {}}",
        "{effect: none, fields: {}, extra: 1}",
        "{effect: none, fields: {}, result: {content: me}}",
        "{effect: none, fields: {}, repeat: again}",
    ],
)
def test_a_pack_with_a_fault_is_invalid(tool: str):
    assert list(CONTRACT.iter_errors(tree(f"version: 1\ntools: {{t: {tool}}}\n"))) != []


def test_the_documentations_copies_are_current():
    assert {file: (ROOT / "docs/schemas" / file).read_text() for file in FILES} == dict(render_schemas())
