"""Contracts are read whole; what the configuration says is laid over what a pack says."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from cxi.authority.contract import (
    AdapterEffect,
    Choice,
    ListedAtom,
    ListedEffect,
    NoEffect,
    Origin,
    Repeat,
    ToolContract,
    TypeRef,
    Writer,
)
from cxi.config.contract import read_contracts
from cxi.config.reader import Reader
from cxi.config.server import PACKS, shipped_packs
from cxi.config.words import READ_OPS, known_words
from cxi.config.yaml import read_tree
from cxi.effects import ADAPTERS, file, git
from cxi.manifest import Role

KNOWN = known_words()


def read(written: str, shipped: str = "") -> tuple[dict[str, ToolContract], list[int]]:
    """The contracts of a server, and the lines of all problems."""
    reader = Reader()
    base = read_tree(shipped, file="pack.yaml") if shipped else None
    over = read_tree(written, file="cxi.yaml") if written else None
    found = read_contracts(reader, "s", base, over, KNOWN)
    return {name: item.contract for name, item in found.items()}, [problem.line for problem in reader.problems]


def test_nested_maps_and_dotted_paths_read_alike():
    nested = """
edit:
  effect: call
  fields:
    target: {fields: {path: {role: protected, type: RepoPath, from: [request]}}}
    edits: {items: {fields: {old: {role: payload}, new: {role: payload, optional: true}}}, max_items: 5}
    files: {items: {role: protected, type: RepoPath, from: [request]}}
"""
    dotted = """
edit:
  effect: call
  fields:
    target.path: {role: protected, type: RepoPath, from: [request]}
    edits[].old: {role: payload, max_items: 5}
    edits[].new: {role: payload, optional: true, max_items: 5}
    files[]: {role: protected, type: RepoPath, from: [request]}
"""
    (one, problems), (other, others) = read(nested), read(dotted)
    assert (problems, others) == ([], [])
    assert one == other
    assert list(one["edit"].fields) == ["target.path", "edits[].old", "edits[].new", "files[]"]


def test_a_field_in_an_optional_object_is_optional():
    found, problems = read(
        "t: {effect: call, fields: {a: {optional: true, fields: {b: {role: protected, type: Url, from: [request]}}}}}\n"
    )
    assert problems == []
    assert not found["t"].fields["a.b"].required


def test_unions_and_parameters_of_types_are_read():
    found, problems = read(
        "t: {effect: call, fields: {id: {role: protected, from: [approval], type: [RecordId, {Enum: {values: [all, none]}}]}}}\n"
    )
    assert problems == []
    assert found["t"].fields["id"].types == (
        TypeRef("RecordId", MappingProxyType({})),
        TypeRef("Enum", MappingProxyType({"values": ["all", "none"]})),
    )


@pytest.mark.parametrize(
    ("effect", "expected", "sink"),
    [
        ("none", NoEffect(), False),
        ("[fs.read(p)]", ListedEffect((ListedAtom("fs.read", "p"),)), False),
        ("[fs.read(p), fs.write(p)]", ListedEffect((ListedAtom("fs.read", "p"), ListedAtom("fs.write", "p"))), True),
        ("{adapter: file, op: =write, path: p}", AdapterEffect("file", MappingProxyType({"op": "=write", "path": "p"})), True),
        ("{adapter: file, op: =list, path: p}", AdapterEffect("file", MappingProxyType({"op": "=list", "path": "p"})), True),
    ],
)
def test_a_tool_is_no_sink_only_where_its_effect_reads(effect: str, expected: object, sink: bool):
    found, problems = read(f"t: {{effect: {effect}, fields: {{p: {{role: protected, type: RepoPath, from: [request]}}}}}}\n")
    assert problems == []
    assert (found["t"].effect, found["t"].sink) == (expected, sink)


def test_sink_false_holds_for_an_adapters_reads_only():
    body = "fields: {p: {role: protected, type: RepoPath, from: [anyone]}}"
    found, problems = read(f"t: {{sink: false, effect: {{adapter: file, op: =list, path: p}}, {body}}}\n")
    assert (problems, found["t"].sink) == ([], False)
    for effect in ("{adapter: file, op: =write, path: p}", "{adapter: file, path: p}", "{adapter: file, op: p, path: p}", "call"):
        assert read(f"t: {{sink: false, effect: {effect}, {body}}}\n")[1], effect
    assert read("t: {sink: true, effect: none, fields: {}}\n")[0]["t"].sink


def test_anyone_is_refused_on_a_tool_that_says_it_is_a_sink():
    assert read("t: {sink: true, effect: none, fields: {p: {role: protected, type: Url, from: [anyone]}}}\n")[1] == [1]


def test_a_derived_field_is_behind_a_payload_that_an_adapter_reads():
    body = "fields: {q: {role: payload}, q.rows: {role: protected, type: RecordId, from: [request]}}"
    assert read(f"t: {{effect: {{adapter: file, content: q}}, {body}}}\n")[1] == []
    assert read(f"t: {{effect: call, {body}}}\n")[1] == [1]
    assert read(
        f"t: {{effect: {{adapter: file, content: q}}, {body.replace('role: payload', 'role: opaque, grammar: plain')}}}\n"
    )[1]


@pytest.mark.parametrize(
    "field",
    [
        "{role: protected, type: Url}",
        "{role: protected, from: [request]}",
        "{role: opaque}",
        "{role: opaque, grammar: latin}",
        "{role: fixed}",
        "{role: payload, type: Url}",
        "{role: payload, from: [request]}",
        "{role: fixed, value: 1.5}",
        "{role: secret}",
        "{type: Url}",
        "{role: payload, max_items: 0}",
        "{role: payload, optional: maybe}",
        "{items: {role: payload}, fields: {a: {role: payload}}}",
        "payload",
        "{role: protected, type: [], from: [request]}",
        "{role: protected, type: Url, from: []}",
        "{role: protected, type: Url, from: [request, request]}",
        "{role: protected, type: [Url, Url], from: [request]}",
        "{role: protected, type: {Url: {}, Host: {}}, from: [request]}",
        "{role: protected, type: {Enum: {values: []}}, from: [request]}",
    ],
)
def test_a_field_has_a_role_and_what_the_role_needs_and_nothing_else(field: str):
    assert read(f"t:\n  effect: call\n  fields:\n    f: {field}\n")[1]


def test_a_place_is_one_field():
    assert read("t: {effect: call, fields: {a: {role: fixed, value: 1}, a.b: {role: payload}}}\n")[1]
    assert read("t: {effect: call, fields: {'a[]': {role: payload}, a: {role: payload}}}\n")[1]
    assert read("t: {effect: call, fields: {a.b: {role: payload}, a: {fields: {b: {role: payload}}}}}\n")[1]


def test_tuples_have_at_least_two_members():
    def fields(other: str) -> str:
        field = "role: protected, type: Url, from: [request]"
        return f"{{a: {{{field}, together: x}}, b: {{{field}{other}}}}}"

    assert read(f"t: {{effect: call, fields: {fields('')}}}\n")[1] == [1]
    assert read(f"t: {{effect: call, fields: {fields(', together: x')}}}\n")[1] == []


PACK = """
t:
  effect: {adapter: file, op: =write, path: path, content: content}
  fields:
    path: {role: protected, type: RepoPath, from: [request, release]}
    content: {role: payload}
    files: {items: {role: protected, type: RepoPath, from: [request]}, max_items: 9}
  result: {content: outsider}
  repeat: replay
"""


def test_single_keys_of_a_pack_are_overridden_and_the_rest_stays():
    found, problems = read("t: {fields: {path: {from: [{choice: [a]}]}}}\n", PACK)
    assert problems == []
    contract = found["t"]
    assert contract.fields["path"].origins == (Choice(("a",)),)
    assert contract.fields["path"].types == (TypeRef("RepoPath", MappingProxyType({})),)
    assert contract.fields["content"].role is Role.PAYLOAD
    assert contract.repeat is Repeat.REPLAY
    assert contract.result.positions == (("content", Writer.OUTSIDER),)


def test_an_override_reaches_into_lists():
    found, problems = read("t: {fields: {files: {items: {from: [state]}}}}\n", PACK)
    assert problems == []
    field = found["t"].fields["files[]"]
    assert (field.origins, field.max_items) == ((Origin.STATE,), 9)


def test_effects_are_overridden_whole():
    found, problems = read("t: {effect: {adapter: file, op: =append, path: path}}\n", PACK)
    assert problems == []
    assert found["t"].effect == AdapterEffect("file", MappingProxyType({"op": "=append", "path": "path"}))


def test_another_role_inherits_nothing():
    found, problems = read("t: {fields: {path: {role: fixed, value: '${root}', type: RepoPath}}}\n", PACK)
    assert problems == []
    assert found["t"].fields["path"].origins == ()


def test_an_overriding_key_is_blamed_where_it_is_written():
    reader = Reader()
    read_contracts(
        reader,
        "s",
        read_tree(PACK, file="pack.yaml"),
        read_tree("\nt:\n  fields:\n    path: {from: [anyone]}\n", file="cxi.yaml"),
        KNOWN,
    )
    assert [(problem.file, problem.line) for problem in reader.problems] == [("cxi.yaml", 4)]


def test_a_target_is_a_field_or_an_id():
    body = "effect: call, fields: {p: {role: protected, type: RepoPath, from: [request]}}"
    assert read(f"t: {{{body}}}\n")[0]["t"].target == ("Server", "s")
    assert read(f"t: {{target: File(p), {body}}}\n")[0]["t"].target == ("File", "p")
    assert read(f"t: {{target: 'Table::\"tickets\"', {body}}}\n")[0]["t"].target == ("Table", "tickets")
    assert read(f"t: {{target: 'File::\"p\"', {body}}}\n")[1] == [1]


def test_the_ops_that_read_are_ops_of_their_adapters():
    operations = {"file": set(file._OPERATIONS), "git": set(git._OPERATIONS), "shell": set()}
    assert set(READ_OPS) == set(ADAPTERS)
    for kind, ops in READ_OPS.items():
        assert ops <= operations[kind]


def test_each_pack_is_read_without_a_problem():
    for name in shipped_packs():
        tree = read_tree((PACKS / f"{name}.yaml").read_bytes(), file=name)
        reader = Reader()
        read_contracts(reader, "s", tree.value.get("tools"), None, KNOWN)
        read_contracts(reader, "s", tree.value.get("methods"), None, KNOWN, methods=True)
        assert reader.problems == [], name


def test_packs_have_the_tools_of_the_servers_they_are_for():
    tools = {
        name: set(read_tree((PACKS / f"{name}.yaml").read_bytes(), file=name).value["tools"].value) for name in shipped_packs()
    }
    assert tools["filesystem"] == {
        *("read_file", "read_text_file", "read_media_file", "read_multiple_files", "write_file", "edit_file", "create_directory"),
        *("list_directory", "list_directory_with_sizes", "directory_tree", "move_file", "search_files", "get_file_info"),
        "list_allowed_directories",
    }
    assert tools["git"] == {
        *("git_status", "git_diff_unstaged", "git_diff_staged", "git_diff", "git_commit", "git_add", "git_reset", "git_log"),
        *("git_create_branch", "git_checkout", "git_show", "git_branch"),
    }
    assert (tools["fetch"], tools["ci-report"]) == ({"fetch"}, {"get_report"})


def test_no_pack_widens_a_sink():
    for name in shipped_packs():
        tree = read_tree((PACKS / f"{name}.yaml").read_bytes(), file=name)
        for read_one in read_contracts(Reader(), "s", tree.value.get("tools"), None, KNOWN).values():
            for field in read_one.contract.fields.values():
                assert not any(isinstance(origin, Choice) for origin in field.origins)
                assert not (read_one.contract.sink and Origin.ANYONE in field.origins)
