"""Scanning takes time that grows with the text, and finds what parsing takes, whole, in order and apart."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import JsonValue
from cxi.values import TYPES, value_type
from cxi.values.base import Value, ValueType
from cxi.values.enum import make_enum
from cxi.values.git_ref import GitRef
from cxi.values.hidden import hidden, visible
from cxi.values.path import FilePath
from cxi.values.url import Url
from os_view import NOWHERE

MEMBERS: dict[str, JsonValue] = {"values": ["a", "aa", "open", "in progress"], "fold": True}
KINDS: list[tuple[str, dict[str, JsonValue]]] = [
    *((name, {}) for name in sorted(TYPES) if name != "Enum"),
    ("Enum", MEMBERS),
    ("RepoPath", {"final": "keep"}),
    ("RecordId", {"form": "integer"}),
    ("GitRef", {"kind": "revision"}),
    ("DateTime", {"form": "date"}),
]
MEGABYTE = 1_000_000


def types() -> list[ValueType]:
    return [value_type(name, parameters) for name, parameters in KINDS]


FRAGMENTS = st.sampled_from(
    [
        *(
            "src/tax.py",
            "tax.py",
            ":12",
            "::x",
            "#L3",
            ".",
            "..",
            "/",
            "//",
            "`",
            " ",
            '"',
            "'",
            "“",
            "”",
            "‘",
            "’",
            "(",
            ")",
            "[",
            "](",
        ),
        *(
            "{",
            "}",
            "<",
            ">",
            "*",
            ",",
            ";",
            "->",
            "—",
            "https://",
            "http://a.b/c",
            "example.com",
            "127.0.0.1",
            "[::1]",
            "branch ",
            "tag ",
        ),
        *(
            "main",
            "HEAD~1",
            "ticket ",
            "#7",
            "7",
            "7.5",
            "INC-204",
            "2024-02-29",
            "2024-02-29T23:30:00Z",
            "open",
            "in progress",
            "a",
            "é",
        ),
        *("\u202e", "\u200b", "\ud800", "日本", "\n", "\t", "\u00a0", "@", "~", "-"),
    ]
)
TEXTS = st.lists(FRAGMENTS | st.just(" ") | st.characters(), max_size=30).map("".join)


@given(TEXTS)
def test_what_is_found_is_whole_in_order_apart_and_parses(text: str) -> None:
    for kind in types():
        end = 0
        for (start, stop), value in kind.scan(text, NOWHERE):
            assert end <= start < stop <= len(text)
            end = stop
            assert value.type == kind.name
            parsed = kind.parse(text[start:stop], NOWHERE)
            if kind.name == "Integer":
                assert str(value.canonical) == text[start:stop]
            else:
                assert isinstance(parsed, Value)
                assert parsed == value


@given(st.text())
def test_no_text_makes_a_scan_raise(text: str) -> None:
    for kind in types():
        list(kind.scan(text, NOWHERE))


BOMBS = {
    "one word": "a" * MEGABYTE,
    "words": "a b " * (MEGABYTE // 4),
    "dots": "." * MEGABYTE,
    "dotted": "a." * (MEGABYTE // 2),
    "slashes": "a/" * (MEGABYTE // 2),
    "colons": ":1" * (MEGABYTE // 2),
    "double colons": "a::" * (MEGABYTE // 3),
    "backticks": "`" * MEGABYTE,
    "open backticks": " `a" * (MEGABYTE // 3),
    "quotes": '"' * MEGABYTE,
    "open quotes": " “a" * (MEGABYTE // 3),
    "apostrophes": "'a " * (MEGABYTE // 3),
    "runs of backticks": "".join("`" * (n % 900) + "a " for n in range(2000)),
    "open brackets": "(" * MEGABYTE,
    "closing brackets": ")" * MEGABYTE,
    "nested brackets": "(" * (MEGABYTE // 2) + ")" * (MEGABYTE // 2),
    "possessives": "'s" * (MEGABYTE // 2),
    "emphasis": "*" * MEGABYTE,
    "commas": "a.py," * (MEGABYTE // 5),
    "arrows": "->" * (MEGABYTE // 2),
    "links": "[a](" * (MEGABYTE // 4),
    "anchors": "#L1" * (MEGABYTE // 3),
    "schemes": "http://" * (MEGABYTE // 7),
    "digits": "1" * MEGABYTE,
    "dashes": "A-1" * (MEGABYTE // 3),
    "uuids": "12345678-1234-" * (MEGABYTE // 14),
    "cues": "ticket branch " * (MEGABYTE // 14),
    "newlines": "\n`" * (MEGABYTE // 2),
    "hidden": "\u202e" * (MEGABYTE // 4),
    "mixed scripts": "p\u0430y" * (MEGABYTE // 12),
    "separators": "a\u2024" * (MEGABYTE // 8),
    "escapes": "\\u{" * (MEGABYTE // 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_a_megabyte_of_anything_is_scanned_in_seconds(bomb: str) -> None:
    text = BOMBS[bomb]
    for kind in (FilePath(), make_enum(MEMBERS), Url(), GitRef()):
        spent = time.process_time()
        list(kind.scan(text, NOWHERE))
        assert time.process_time() - spent < 20, kind
    spent = time.process_time()
    hidden(text)
    visible(text)
    assert time.process_time() - spent < 20


@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_ten_times_the_text_is_about_ten_times_the_work(bomb: str) -> None:
    for kind in (*types(), None):
        short, long = (_work(kind, BOMBS[bomb][:size]) for size in (1_000, 10_000))
        # quadratic work would be a hundred times as much; a few calls for nothing do not matter
        assert long < 500 or long < 30 * short, kind


def _work(kind: ValueType | None, text: str) -> int:
    """How many calls a scan makes: the same on every machine, however busy."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        if kind is None:
            visible(text)
        else:
            list(kind.scan(text, NOWHERE))
    finally:
        sys.setprofile(None)
    return calls
