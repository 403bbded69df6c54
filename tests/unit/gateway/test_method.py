"""The method table against the official SDK's own lists."""

from __future__ import annotations

import re
from pathlib import Path

import mcp_types
import pytest
from mcp_types import methods

from cxi.gateway.method import REVISIONS, TABLE, Passage, Sender, render_table
from cxi.gateway.relay import HERE, OUTWARD

SDK = {
    (Sender.CLIENT, True): methods.CLIENT_REQUESTS,
    (Sender.CLIENT, False): methods.CLIENT_NOTIFICATIONS,
    (Sender.SERVER, True): methods.SERVER_REQUESTS,
    (Sender.SERVER, False): methods.SERVER_NOTIFICATIONS,
}


@pytest.mark.parametrize(("sender", "request_"), SDK)
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_that_the_sdk_knows_has_a_row_in_its_direction(sender: Sender, request_: bool, revision: str) -> None:
    known = {name for name, version in SDK[sender, request_] if version == revision}
    rows = {name for (who, name), row in TABLE.items() if who is sender and row.request is request_ and revision in row.revisions}
    assert known <= rows
    # The SDK leaves out tasks on purpose; the table has them, off.
    assert all("tasks" in name for name in rows - known)


def test_every_method_of_the_schema_has_a_row() -> None:
    schema = Path(mcp_types.__file__).parent / "_v2025_11_25" / "__init__.py"
    named = set(re.findall(r'^    method: Literal\["([^"]+)"\]', schema.read_text(), re.MULTILINE))
    assert len(named) > 25
    assert named == {name for _, name in TABLE}


def test_what_is_on_is_handled_and_nothing_else() -> None:
    on = {name for (who, name), row in TABLE.items() if who is Sender.CLIENT and row.request and row.on}
    assert set(HERE) | set(OUTWARD) == on
    assert set(HERE) & set(OUTWARD) == set()


def test_servers_ask_for_nothing_but_ping() -> None:
    on = {name for (who, name), row in TABLE.items() if who is Sender.SERVER and row.request and row.on}
    assert on == {"ping"}


def test_every_row_says_what_it_does_and_is_rendered() -> None:
    page = render_table()
    for (_, name), row in TABLE.items():
        assert row.does
        assert f"| `{name}`" in page
    assert page.count(f"| {Passage.OFF} |") == sum(not row.on for row in TABLE.values())
