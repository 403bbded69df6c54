"""Step 1: a call is read whole, or refused with every reason."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from authority_case import MemoryWorld, codes_of, contract_of, payload, protected, root_of, types_of
from cxi.authority.contract import FieldContract, Origin, ToolContract, TypeRef
from cxi.authority.reading import read_call
from cxi.canonical import JsonValue
from cxi.errors import Refused
from cxi.manifest import Action, CanonicalCall, Principal, Role

ROOT = root_of(MemoryWorld(["src/tax.py"]))
WRITE = contract_of(protected("path"), payload("content"))


def fixed(path: str, constant: JsonValue, type: str = "") -> FieldContract:
    return FieldContract(path, Role.FIXED, types_of(type) if type else (), fixed=constant)


def read(contract: ToolContract, arguments: JsonValue) -> CanonicalCall | Refused:
    return read_call(contract, arguments, ROOT, constants={"root": "/srv/repo"})


def call(contract: ToolContract, arguments: JsonValue) -> CanonicalCall:
    found = read(contract, arguments)
    assert isinstance(found, CanonicalCall), found
    return found


def refusals(contract: ToolContract, arguments: JsonValue) -> set[tuple[str, str]]:
    found = read(contract, arguments)
    assert isinstance(found, Refused), found
    return {(str(reason.code), reason.where) for reason in found.reasons}


def action_of(contract: ToolContract, arguments: JsonValue) -> str:
    return Action(Principal("t", "u", "a", "s"), "sha256:0", "sha256:1", call(contract, arguments)).digest


def test_the_arguments_are_written_anew_from_canonical_values() -> None:
    found = call(WRITE, {"path": "src/./../src//tax.py", "content": "x"})
    assert found.arguments == {"path": "/srv/repo/src/tax.py", "content": "x"}
    assert [(leaf.path, leaf.value.canonical) for leaf in found.fields] == [("content", "x"), ("path", "src/tax.py")]


def test_every_reason_is_reported_at_once() -> None:
    assert refusals(WRITE, {"path": 7, "mode": "x", "also": {"a": 1}}) == {
        ("FIELD_TYPE", "path"),
        ("FIELD_MISSING", "content"),
        ("FIELD_UNCLASSIFIED", "mode"),
        ("FIELD_UNCLASSIFIED", "also"),
    }


@pytest.mark.parametrize("arguments", [None, [], "x", 7, True, ["path"]])
def test_arguments_that_are_no_object_are_refused(arguments: JsonValue) -> None:
    assert codes_of(read(WRITE, arguments)) == ("FIELD_TYPE",)


@pytest.mark.parametrize(
    "key", ["Path", "path ", "path\u200b", "content.x", "[]", "", "path[0]", "__proto__", "\ud800", "p" * 9999]
)
def test_an_unknown_key_is_refused_whatever_it_looks_like(key: str) -> None:
    assert codes_of(read(WRITE, {"path": "a", "content": "", key: 1})) in (("FIELD_UNCLASSIFIED",), ("NON_CANONICAL_TEXT",))


def test_an_unknown_field_is_found_at_any_depth() -> None:
    contract = contract_of(protected("edits[].path"), protected("o.deep.path", required=False))
    where = {"edits": [{"path": "a"}, {"path": "b", "x": 1}], "o": {"deep": {"y": 1}, "z": []}}
    assert refusals(contract, where) == {
        ("FIELD_UNCLASSIFIED", "edits[1].x"),
        ("FIELD_UNCLASSIFIED", "o.deep.y"),
        ("FIELD_UNCLASSIFIED", "o.z"),
    }


def test_a_types_own_refusal_is_told_with_the_fields_path() -> None:
    contract = contract_of(protected("files[]"))
    assert refusals(contract, {"files": ["a", "../../etc/passwd", ""]}) == {
        ("PATH_OUTSIDE_ROOT", "files[1]"),
        ("PATH_MALFORMED", "files[2]"),
    }


def test_a_required_field_is_required_in_each_item_and_in_an_object() -> None:
    contract = contract_of(protected("edits[].path"), protected("o.path"), payload("edits[].text", required=False))
    assert refusals(contract, {"edits": [{"path": "a"}, {"text": "x"}, {}]}) == {
        ("FIELD_MISSING", "edits[1].path"),
        ("FIELD_MISSING", "edits[2].path"),
        ("FIELD_MISSING", "o.path"),
    }
    assert call(contract, {"o": {"path": "a"}}).arguments == {"o": {"path": "/srv/repo/a"}}


def test_a_required_list_must_be_there() -> None:
    assert refusals(contract_of(protected("files[]")), {}) == {("FIELD_MISSING", "files")}
    assert call(contract_of(protected("files[]", required=False)), {}).arguments == {}


@pytest.mark.parametrize(
    ("raw", "code"), [("a", "FIELD_TYPE"), ({"0": "a"}, "FIELD_TYPE"), ([["a"]], "FIELD_TYPE"), ([None], "FIELD_TYPE")]
)
def test_a_list_field_takes_a_flat_list_only(raw: JsonValue, code: str) -> None:
    assert codes_of(read(contract_of(protected("files[]")), {"files": raw})) == (code,)


@pytest.mark.parametrize("raw", [{"a": 1}, ["a"], {}, []])
def test_a_protected_value_is_no_object_and_no_list(raw: JsonValue) -> None:
    assert codes_of(read(WRITE, {"path": raw, "content": ""})) == ("FIELD_TYPE",)


def test_a_contract_can_take_one_value_or_a_list() -> None:
    contract = contract_of(protected("path", required=False), protected("path[]", required=False))
    assert call(contract, {"path": "a"}).arguments == {"path": "/srv/repo/a"}
    assert call(contract, {"path": ["a", "b"]}).arguments == {"path": ["/srv/repo/a", "/srv/repo/b"]}


def test_a_list_is_limited() -> None:
    contract = contract_of(protected("files[]", max_items=2))
    assert codes_of(read(contract, {"files": ["a", "b"]})) == ()
    assert refusals(contract, {"files": ["a", "b", "c"]}) == {("TOO_LARGE", "files")}
    assert codes_of(read(contract_of(protected("files[]")), {"files": ["a"] * 1001})) == ("TOO_LARGE",)


@pytest.mark.parametrize("raw", ["text", "", 0, False, [], {}, {"a": [1, {"b": None}]}, 1.5, {"x": 1e-7}])
def test_a_payload_is_one_leaf_kept_exactly(raw: JsonValue) -> None:
    found = call(contract_of(payload("body")), {"body": raw})
    assert [(leaf.path, leaf.contract, leaf.value.canonical) for leaf in found.fields] == [("body", "body", raw)]
    assert found.arguments == {"body": raw}
    assert action_of(contract_of(payload("body")), {"body": raw})


def test_what_an_adapter_reads_out_of_a_payload_is_not_in_the_arguments() -> None:
    contract = contract_of(payload("query"), protected("query.rows", "RecordId"))
    assert [leaf.path for leaf in call(contract, {"query": "SELECT 1"}).fields] == ["query"]
    assert [leaf.path for leaf in call(contract, {"query": {"rows": 9}}).fields] == ["query"]


@pytest.mark.parametrize("raw", [None, "text", 7])
def test_null_is_absence_only_where_the_contract_says_so(raw: JsonValue) -> None:
    assert codes_of(read(contract_of(payload("body")), {"body": None})) == ("FIELD_TYPE",)
    assert codes_of(read(contract_of(protected("path")), {"path": None})) == ("FIELD_TYPE",)
    optional = contract_of(protected("path", required=False, nullable=True))
    found = call(optional, {"path": None})
    assert found.arguments == {"path": None}
    assert found.value("path") is None


def test_empty_containers_and_nulls_are_kept_and_tell_calls_apart() -> None:
    contract = contract_of(
        protected("files[]", required=False, nullable=True), protected("o.a", required=False), protected("o.b[]", required=False)
    )
    every: list[JsonValue] = [{}, {"files": []}, {"files": None}, {"o": {}}, {"o": {"b": []}}, {"files": [], "o": {}}]
    assert [call(contract, arguments).arguments for arguments in every] == every
    assert len({action_of(contract, arguments) for arguments in every}) == len(every)
    assert call(contract, {"files": []}).at("files[]") == ()


def test_a_fixed_field_is_filled_in() -> None:
    contract = contract_of(
        fixed("repo", "${root}", "FilePath"), fixed("o.deep", ["${root}/x", 1]), payload("edits[].t"), fixed("edits[].n", 3)
    )
    found = call(contract, {"edits": [{"t": "a"}]})
    assert found.arguments == {"repo": "/srv/repo", "o": {"deep": ["/srv/repo/x", 1]}, "edits": [{"t": "a", "n": 3}]}
    assert {leaf.path: leaf.role for leaf in found.fields}["edits[0].n"] is Role.FIXED


def test_a_fixed_field_that_is_sent_must_be_the_constant() -> None:
    contract = contract_of(fixed("repo", "${root}", "FilePath"), fixed("on", True))
    assert call(contract, {"repo": "/srv/./repo//", "on": True}).arguments == {"repo": "/srv/repo", "on": True}
    for arguments in ({"repo": "/srv/other"}, {"repo": None}, {"on": 1}, {"on": False}, {"on": "true"}, {"repo": 7}):
        assert codes_of(read(contract, arguments)) == ("FIELD_NOT_FIXED",)


def test_a_constant_that_is_not_known_is_refused() -> None:
    assert refusals(contract_of(fixed("x", "${home}/a")), {}) == {("FIELD_NOT_FIXED", "x")}


def test_a_constant_is_not_expanded_twice() -> None:
    contract = contract_of(fixed("x", "${a}"))
    found = read_call(contract, {}, ROOT, constants={"a": "${root}", "root": "/"})
    assert codes_of(found) == ("FIELD_NOT_FIXED",)


def test_a_constant_inside_a_payload_is_refused() -> None:
    contract = contract_of(payload("body"), fixed("body.mode", "safe"))
    assert codes_of(read(contract, {"body": {"mode": "unsafe"}})) == ("FIELD_UNCLASSIFIED",)


ENUM = TypeRef("Enum", MappingProxyType({"values": ["auto", "1"]}))


def test_exactly_one_of_several_types_reads_a_value() -> None:
    contract = contract_of(protected("n", (*types_of("Integer"), ENUM)))
    assert call(contract, {"n": 1}).arguments == {"n": 1}
    assert call(contract, {"n": "auto"}).arguments == {"n": "auto"}
    assert refusals(contract, {"n": "other"}) == {("FIELD_TYPE", "n")}


def test_several_types_that_read_a_value_differently_are_ambiguous() -> None:
    contract = contract_of(protected("n", (TypeRef("RecordId", MappingProxyType({"form": "integer"})), *types_of("Text"))))
    assert refusals(contract, {"n": "7"}) == {("FIELD_TYPE", "n")}
    assert call(contract, {"n": "seven"}).arguments == {"n": "seven"}
    agreeing = contract_of(protected("n", types_of("Text", "RecordId")))
    assert call(agreeing, {"n": "x"}).arguments == {"n": "x"}


def test_a_type_that_does_not_exist_reads_nothing() -> None:
    assert codes_of(read(contract_of(protected("n", types_of("NoSuchType"))), {"n": "x"})) == ("FIELD_TYPE",)
    assert codes_of(read(contract_of(protected("n", ())), {"n": "x"})) == ("FIELD_TYPE",)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (float("nan"), "NUMBER_NOT_EXACT"),
        (2**60, "NUMBER_NOT_EXACT"),
        ("\ud800", "NON_CANONICAL_TEXT"),
        ((1, 2), "MALFORMED_JSON"),
        ({1: 2}, "MALFORMED_JSON"),
        (object(), "MALFORMED_JSON"),
    ],
)
def test_what_is_no_json_is_refused_and_never_raises(raw: object, code: str) -> None:
    assert codes_of(read(contract_of(payload("body")), {"body": raw})) == (code,)  # type: ignore[dict-item]


def test_deep_nesting_is_refused_and_never_raises() -> None:
    deep: JsonValue = []
    for _ in range(5000):
        deep = [deep]
    assert codes_of(read(contract_of(payload("body")), {"body": deep})) == ("TOO_LARGE",)


def test_a_flood_of_unknown_fields_is_not_echoed_whole() -> None:
    found = read(WRITE, {f"x{index}": 1 for index in range(5000)})
    assert isinstance(found, Refused)
    assert len(found.reasons) <= 50


def test_the_order_of_keys_makes_no_other_call() -> None:
    one = call(WRITE, {"path": "a", "content": "x"})
    assert one == call(WRITE, {"content": "x", "path": "a"})
    assert one != call(replace(WRITE, tool="other"), {"content": "x", "path": "a"})
    assert Origin.REQUEST in WRITE.fields["path"].origins
