"""Contract totality: every leaf of the arguments is in the call or refused, and what is sent is exactly what was read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from authority_case import MemoryWorld, contract_of, payload, protected, root_of, types_of
from cxi.authority.contract import FieldContract, ToolContract
from cxi.authority.reading import read_call
from cxi.canonical import canonicalize
from cxi.errors import Code, Refused
from cxi.manifest import Action, CanonicalCall, Principal, Role

ROOT = root_of(MemoryWorld(["a", "b/a"]))
NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["a", "b/a", "", "../x", "\u202e", "é"]))
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=10)


@st.composite
def contracts(draw: st.DrawFn) -> ToolContract:
    """A contract of up to six fields, none of which stands behind another."""
    paths: list[str] = []
    for _ in range(draw(st.integers(0, 6))):
        steps = draw(st.lists(NAMES, min_size=1, max_size=3))
        path = ".".join(step + draw(st.sampled_from(["", "", "[]"])) for step in steps)
        if not any(_is_behind(path, other) or _is_behind(other, path) for other in paths):
            paths.append(path)
    return contract_of(*(_field(draw, path) for path in paths))


def _is_behind(path: str, other: str) -> bool:
    return path == other or path.startswith((other + ".", other + "["))


def _field(draw: st.DrawFn, path: str) -> FieldContract:
    required, nullable = draw(st.booleans()), draw(st.booleans())
    match draw(st.integers(0, 3)):
        case 0:
            return payload(path, required=required, nullable=nullable)
        case 1:
            return FieldContract(path, Role.FIXED, fixed=draw(st.sampled_from([1, "a", True, [], {"x": 1}])))
        case 2:
            return protected(path, types_of("Integer", "RepoPath"), required=required, nullable=nullable)
        case _:
            return protected(path, required=required, nullable=nullable)


def leaves_of(value: Any, at: str = "") -> dict[str, Any]:
    """Every leaf of a JSON value by its concrete path; an empty container is one."""
    if isinstance(value, dict) and (value or not at):
        return {path: leaf for key, item in value.items() for path, leaf in leaves_of(item, f"{at}.{key}" if at else key).items()}
    if isinstance(value, list) and value:
        return {path: leaf for index, item in enumerate(value) for path, leaf in leaves_of(item, f"{at}[{index}]").items()}
    return {at: value}


def _fitting(entry: FieldContract) -> st.SearchStrategy[Any]:
    """Mostly what the field takes."""
    match entry.role:
        case Role.FIXED:
            good: st.SearchStrategy[Any] = st.just(entry.fixed)
        case Role.PROTECTED:
            good = st.sampled_from(["a", "b/a", "./b//a"])
        case _:
            good = JSON.filter(lambda value: value is not None)
    rare = st.one_of(SCALARS, JSON) if not entry.nullable else st.none()
    return st.integers(0, 7).flatmap(lambda chance: rare if chance == 0 else good)


def shaped_by(contract: ToolContract, draw: st.DrawFn) -> dict[str, Any]:
    """Arguments that often fit: some of the contract's fields, with some values of theirs."""
    arguments: dict[str, Any] = {}
    for path, entry in contract.fields.items():
        if draw(st.integers(0, 9)) < (9 if entry.role is Role.FIXED else 1):
            continue
        where: Any = arguments
        steps = path.replace("[]", ".[]").split(".")
        for step, following in zip(steps, [*steps[1:], ""], strict=True):
            fresh: Any = [] if following == "[]" else {} if following else draw(_fitting(entry))
            if step == "[]" and isinstance(where, list):
                where[:] = where or [fresh]
                where = where[0]
            elif step != "[]" and isinstance(where, dict):
                where = where.setdefault(step, fresh)
            else:
                break
    return arguments


@st.composite
def calls(draw: st.DrawFn) -> tuple[ToolContract, Any]:
    contract = draw(contracts())
    return contract, draw(JSON) if draw(st.integers(0, 3)) == 0 else shaped_by(contract, draw)


@given(calls())
def test_every_leaf_is_in_the_call_or_refused(case: tuple[ToolContract, Any]) -> None:
    contract, arguments = case
    found = read_call(contract, arguments, ROOT, constants={})
    if isinstance(found, Refused):
        return
    assert isinstance(arguments, dict)
    # what is sent is named by the call's leaves, leaf for leaf, and nothing was dropped
    sent = leaves_of(dict(found.arguments))
    covered = {leaf.path: leaf for leaf in found.fields}
    assert len(covered) == len(found.fields)
    for path in sent:
        assert any(path == leaf or path.startswith((leaf + ".", leaf + "[")) for leaf in covered), path
    for path in leaves_of(arguments):
        assert path in sent
    for path, leaf in covered.items():
        assert leaf.contract == "" or leaf.contract in contract.fields
        assert canonicalize(_at(found.arguments, path)) == canonicalize(leaf.value.wire)


@given(calls())
def test_a_call_is_read_again_from_what_is_sent(case: tuple[ToolContract, Any]) -> None:
    contract, arguments = case
    found = read_call(contract, arguments, ROOT, constants={})
    if isinstance(found, CanonicalCall):
        again = read_call(contract, dict(found.arguments), ROOT, constants={})
        assert again == found


@given(calls(), NAMES.map(lambda name: name * 2), JSON)
def test_a_field_that_no_contract_names_is_refused(case: tuple[ToolContract, Any], key: str, value: Any) -> None:
    contract, arguments = case
    if isinstance(arguments, dict):
        found = read_call(contract, {**arguments, key: value}, ROOT, constants={})
        assert isinstance(found, Refused)
        assert any(reason.code is Code.FIELD_UNCLASSIFIED and reason.where == key for reason in found.reasons)


@given(contracts(), st.data())
def test_two_calls_with_one_action_digest_send_the_same(contract: ToolContract, data: st.DataObject) -> None:
    sent: dict[str, bytes] = {}
    for _ in range(4):
        found = read_call(contract, shaped_by(contract, data.draw), ROOT, constants={})
        if isinstance(found, CanonicalCall):
            key = Action(Principal("t", "u", "a", "s"), "sha256:0", "sha256:0", found).digest
            assert sent.setdefault(key, canonicalize(found.arguments)) == canonicalize(found.arguments)


def _at(arguments: Any, path: str) -> Any:
    where = arguments
    for step in path.replace("[", ".[").split("."):
        where = where[int(step[1:-1])] if step.startswith("[") else where[step]
    return where
