"""Several servers as one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cxi.gateway.exposure import fence_instructions, merge_capabilities, split_exposed


def server(alive: bool, **capabilities: Any) -> Any:
    return SimpleNamespace(alive=alive, capabilities=capabilities)


@given(st.text(max_size=40) | st.text("~\n a", max_size=40))
def test_no_text_leaves_its_fence(text: str) -> None:
    fenced = fence_instructions({"it": text})
    if not text.strip():
        assert fenced == ""
        return
    _, fence, body = fenced.split("\n", 2)
    assert set(fence) == {"~"}
    assert fence not in body.removesuffix(fence)
    assert body == f"{text}\n{fence}"


def test_capabilities_are_merged_and_what_is_off_is_left_out() -> None:
    merged = merge_capabilities(
        [server(True, tools={}, sampling={}, tasks={}), server(True, logging={}, resources={"subscribe": True})]
    )
    assert merged == {
        "tools": {"listChanged": True},
        "logging": {},
        "resources": {"subscribe": True, "listChanged": True},
    }


def test_a_server_that_is_not_up_may_have_anything() -> None:
    assert set(merge_capabilities([server(False)])) == {"tools", "resources", "prompts", "logging", "completions"}


def test_an_exposed_prompt_is_taken_apart_at_the_first_border() -> None:
    assert split_exposed("a-b__c__d") == ("a-b", "c__d")
    assert [split_exposed(name) for name in ("", "a", "__a", "a__")] == [None] * 4
