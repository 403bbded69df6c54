"""Which server a URI is for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.gateway.catalogue import fits, shared


@pytest.mark.parametrize(
    ("template", "uri", "does"),
    [
        ("a://x/{id}", "a://x/1", True),
        ("a://x/{id}", "a://x/1/2", False),
        ("a://x/{id}", "a://x/", False),
        ("a://x/{id}", "a://x/1?q", False),
        ("a://x/{+path}", "a://x/1/2", True),
        ("a://{a}/{b}/end", "a://1/2/end", True),
        ("a://{a}/{b}/end", "a://1/2/3/end", False),
        ("a://x{?q}", "a://x?q=1", True),
        ("a://x", "a://x", True),
        ("a://x", "a://y", False),
        ("a://{a}b{c}b", "a://bbbb", True),
        ("a://[{a}].*", "a://[1].*", True),
        ("a://[{a}].*", "a://[1]xx", False),
    ],
)
def test_a_uri_fits_a_template_by_its_expressions(template: str, uri: str, does: bool) -> None:
    assert fits(template, uri) is does


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="/?#{}"), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_a_filled_template_always_fits(parts: list[str]) -> None:
    template = "x://" + "/".join(f"{{v{index}}}" for index in range(len(parts)))
    assert fits(template, "x://" + "/".join(parts))


def test_a_template_cannot_make_matching_slow() -> None:
    # Were it a backtracking match, neither would ever return.
    assert not fits("a" + "{a}{+b}a" * 15 + "c", "a" * 8000)
    assert not fits("{a}" * 500, "a" * 8000)


def test_what_two_servers_list_is_shared() -> None:
    assert shared({"a": [{"uri": "x"}, {"uri": "y"}], "b": [{"uri": "y"}], "c": []}, "uri") == {"y"}
