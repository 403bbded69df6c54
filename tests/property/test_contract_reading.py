"""Reading a contract is total, and gives back what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from cxi.authority.contract import Choice, Origin
from cxi.config.contract import Known, lay_over, read_contracts
from cxi.config.field import Types, read_fields
from cxi.config.reader import Reader
from cxi.config.yaml import Node, read_tree
from cxi.errors import ConfigError
from cxi.manifest import Role

KNOWN = Known(
    types=Types(frozenset({"RepoPath", "Url"}), lambda ref: None),
    adapters={"file": frozenset({"op", "path"})},
    reads={"file": frozenset({"list"})},
    kinds={"fs.read": "File", "fs.write": "File"},
    targets=frozenset({"Server", "File"}),
)

words = st.sampled_from(
    [
        *(
            "effect",
            "fields",
            "result",
            "repeat",
            "target",
            "sink",
            "role",
            "type",
            "from",
            "together",
            "after",
            "optional",
            "value",
        ),
        *(
            "items",
            "choice",
            "adapter",
            "op",
            "path",
            "none",
            "call",
            "protected",
            "payload",
            "opaque",
            "fixed",
            "grammar",
            "plain",
        ),
        *(
            "RepoPath",
            "Url",
            "request",
            "anyone",
            "release",
            "file",
            "=list",
            "fs.read(path)",
            "fs.write(a)",
            "content",
            "platform",
            "",
        ),
    ]
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.just(1.5) | words | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)


def tree(value: object) -> Node | None:
    """The value as a tree; JSON is YAML, but for a few texts that only JSON allows."""
    try:
        return read_tree(json.dumps(value, ensure_ascii=False), file="x.yaml")
    except ConfigError:
        return None


@given(junk)
def test_any_tree_is_read_without_raising(value: object):
    node = tree(value)
    if node is not None:
        read_contracts(Reader(), "s", None, node, KNOWN)
        read_contracts(Reader(), "s", node, node, KNOWN)
        read_contracts(Reader(), "s", None, node, KNOWN, methods=True)


@given(junk)
def test_what_is_read_without_a_problem_is_whole_and_widens_nothing(value: object):
    node = tree({"t": value})
    if node is None:
        return
    reader = Reader()
    for read in read_contracts(reader, "s", None, node, KNOWN).values():
        if reader.problems:
            return
        for path, field in read.contract.fields.items():
            assert field.path == path
            assert (field.role is Role.PROTECTED) == bool(field.origins)
            assert not (read.contract.sink and Origin.ANYONE in field.origins)
            assert path in read.fields


origins = st.lists(
    st.sampled_from([Origin.REQUEST, Origin.STATE, Origin.RELEASE, Origin.APPROVAL, Choice(("a",)), Choice(("b", "c"))]),
    min_size=1,
    unique=True,
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)


@given(st.dictionaries(names, origins, min_size=1, max_size=5))
def test_protected_fields_are_read_back_as_written(fields: Mapping[str, list[Origin | Choice]]):
    written = {
        name: {
            "role": "protected",
            "type": "Url",
            "from": [str(one) if isinstance(one, Origin) else {"choice": list(one.policies)} for one in found],
        }
        for name, found in fields.items()
    }
    reader = Reader()
    node = tree(written)
    assert node is not None
    read = read_fields(reader, node, "`t`", KNOWN.types)
    assert reader.problems == []
    assert {name: list(field.contract.origins) for name, field in read.items()} == dict(fields)


plain = st.recursive(
    st.sampled_from(["a", "b", 1, True]),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "fields"]), inner),
    max_leaves=8,
)


@given(plain, plain)
def test_what_is_laid_over_wins_and_nothing_is_lost(base: object, over: object):
    one, other = tree({"fields": base}), tree({"fields": over})
    assert one is not None
    assert other is not None
    merged = lay_over(one, other).to_json()
    assert isinstance(merged, Mapping)

    def within(part: object, whole: object) -> bool:
        if isinstance(part, Mapping) and part and isinstance(whole, Mapping):
            return all(key in whole and within(value, whole[key]) for key, value in part.items())
        return part == whole or part == {}

    assert within(over, merged["fields"])
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        assert base.keys() | over.keys() == merged["fields"].keys()


@given(junk)
def test_every_problem_has_its_place_and_its_mend(value: object):
    node = tree({"t": value})
    if node is None:
        return
    reader = Reader()
    read_contracts(reader, "s", None, node, KNOWN)
    assert all(problem.file == "x.yaml" and problem.line >= 1 and problem.mend for problem in reader.problems)
