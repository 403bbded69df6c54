import json

import pytest
from cedarpy import Schema

from cxi.errors import ConfigError
from cxi.policy.schema import EvidenceSurface, ToolSurface, make_schema, parse, render
from cxi.policy.vocabulary import ENTITIES, KINDS, STRING


def test_every_kind_is_an_action_on_its_resource(schema):
    for kind in KINDS.values():
        applies = schema[""]["actions"][kind.name]["appliesTo"]
        assert applies["principalTypes"] == ["Agent"]
        assert applies["resourceTypes"] == [kind.resource]


def test_every_kind_of_a_file_has_a_pattern_on_a_folder_and_no_other_kind_has():
    for kind in KINDS.values():
        if kind.exact:
            assert (kind.resource, KINDS[kind.exact].pattern, kind.pattern) == ("Folder", kind.name, "")
        else:
            assert bool(kind.pattern) == (kind.resource in {"File", "Folder"})


def test_the_kinds_are_those_of_the_vocabulary():
    fs = {"create", "write", "delete", "chmod", "symlink", "link", "mkdir", "rmdir", "mkfifo", "touch", "read"}
    git = {"index", "commit", "ref", "checkout", "push", "fetch", "config", "hook"}
    db = {"select", "insert", "update", "delete", "ddl", "function", "sequence", "lock", "notify", "session"}
    text = {"link", "fetch", "mention", "command", "secret"}
    named = {
        "ci": {
            *("trigger", "permission", "step", "secret", "untrusted_expression", "job", "runner", "environment", "concurrency"),
            *("reusable", "container", "needs", "condition", "env", "defaults", "strategy", "outputs", "limits"),
        },
        "pkg": {"install", "remove", "script", "index"},
    }
    named |= {"fs": fs, "git": git, "db": db, "text": text}
    named |= {"proc": {"exec"}, "net": {"connect"}, "http": {"request"}, "mail": {"send"}}
    assert {name for name, kind in KINDS.items() if not kind.exact} == {
        f"{of}.{one}" for of, all_ in named.items() for one in all_
    }


def test_every_resource_type_is_an_entity_type():
    assert {kind.resource for kind in KINDS.values()} <= set(ENTITIES)


def test_the_human_text_is_the_same_schema(schema):
    text = render(schema)
    assert "tool:files.write_file" in text
    assert Schema.from_str(text) is not None
    assert json.loads(render(schema, human=False)) == schema


def test_the_schema_parses(schema):
    assert parse(schema) is not None


def test_a_context_keeps_its_five_parts_apart(schema):
    for action in schema[""]["actions"].values():
        assert set(action["appliesTo"]["context"]["attributes"]) == {"field", "evidence", "approval", "task", "effect"}


@pytest.mark.parametrize(
    ("agents", "tools", "evidence"),
    [
        ([], [], []),
        (["a"], [ToolSurface("x.y", "Nothing", {})], []),
        (["a"], [ToolSurface("x.y", "Server", {}), ToolSurface("x.y", "Server", {})], []),
        (["a"], [ToolSurface("x.y", "Server", {"a.b": STRING, "a_b": STRING})], []),
        (["a"], [], [EvidenceSurface("test-run", {}), EvidenceSurface("test.run", {})]),
        (["a"], [], [EvidenceSurface("run", {"x-y": STRING, "x.y": STRING})]),
    ],
)
def test_what_would_merge_or_name_nothing_is_a_start_up_error(agents, tools, evidence):
    with pytest.raises(ConfigError):
        make_schema(agents, tools, evidence, [])
