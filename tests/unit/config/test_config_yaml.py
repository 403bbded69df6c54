"""YAML is read strictly, and every node has its line."""

from __future__ import annotations

import pytest

from cxi.config.yaml import read_tree
from cxi.errors import ConfigError


def test_yaml_words_that_only_version_1_1_calls_booleans_stay_text():
    tree = read_tree("on: yes\noff: y\nratio: 1:20\n", file="x.yaml")
    assert tree.to_json() == {"on": "yes", "off": "y", "ratio": "1:20"}


def test_scalars_of_the_core_schema_are_read():
    tree = read_tree(
        "[true, False, null, ~, 12, -3, 1.5, 'true', \"12\", |\n  text\n]".replace("|\n  text\n", "plain"), file="x.yaml"
    )
    assert tree.to_json() == [True, False, None, None, 12, -3, 1.5, "true", "12", "plain"]


def test_every_node_and_key_has_its_line():
    tree = read_tree("a:\n  b: 1\n\n  c:\n    - x\n    - y\n", file="x.yaml")
    inner = tree.value["a"]
    assert (tree.key_lines["a"], inner.key_lines["b"], inner.key_lines["c"]) == (1, 2, 4)
    assert [item.line for item in inner.value["c"].value] == [5, 6]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", 3),
        ("a: 1\nb: &anchor 2\n", 2),
        ("a: *anchor\n", 1),
        ("a: 1\n<<: {b: 1}\n", 2),
        ("a: 1\nb: !!str 2\n", 2),
        ("a: !custom 2\n", 1),
        ("a: !!map {b: 1}\n", 1),
        ("a: 1\n---\nb: 1\n", 2),
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("? [a]\n: 1\n", 1),
        ("1: a\n", 1),
        ("true: a\n", 1),
        ("a: 1\nb: 010\n", 2),
        ("a: 0x10\n", 1),
        ("a: .inf\n", 1),
        ("a: 1e999\n", 1),
        ("a: 9007199254740993\n", 1),
        ("a: 1\nb: x\u202ey\n", 2),
        ("a: x\u200by\n", 1),
        ("a: 1\n# \U000e0041\n", 2),
        ("a: [\n", 2),
        ("- a\n-\tb\n", 2),
        ("", 1),
        ("# only a comment\n", 1),
        ("null\n", 1),
    ],
)
def test_what_two_readers_could_see_differently_is_refused_with_its_line(text: str, line: int):
    with pytest.raises(ConfigError) as caught:
        read_tree(text, file="x.yaml")
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [("x.yaml", line)]


def test_text_that_is_not_utf_8_is_refused_with_its_line():
    with pytest.raises(ConfigError) as caught:
        read_tree(b"a: 1\nb: \xff\n", file="x.yaml")
    assert caught.value.problems[0].line == 2


def test_depth_is_limited():
    with pytest.raises(ConfigError):
        read_tree("[" * 100 + "]" * 100, file="x.yaml")
