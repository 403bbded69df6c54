"""What the client sends is read once, strictly, and answered under its id where that can be told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.gateway.client import Notice, Request, Unreadable, guess_id, read_client


def line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def test_a_request_and_a_notification_are_told_apart() -> None:
    assert read_client(line(id=1, method="ping")) == Request(1, "ping", {})
    assert read_client(line(id="a", method="ping", params=None)) == Request("a", "ping", {})
    assert read_client(line(method="notifications/initialized", params={"a": 1})) == Notice("notifications/initialized", {"a": 1})


def test_a_response_is_passed_over() -> None:
    assert read_client(line(id=1, result={})) is None
    assert read_client(line(id=1, error={"code": 1, "message": ""})) is None


@pytest.mark.parametrize(
    ("data", "id", "code", "where"),
    [
        (b"nonsense", None, "MALFORMED_JSON", "position 0"),
        (b"[]", None, "MALFORMED_JSON", ""),
        (b"\xff", None, "MALFORMED_JSON", "bytes 0-1"),
        (line(id=1, method=5), 1, "MALFORMED_JSON", "method"),
        (line(id=1, method="x", params=[1]), 1, "MALFORMED_JSON", "params"),
        (line(id=None, method="x"), None, "MALFORMED_JSON", "id"),
        (line(id=True, method="x"), None, "MALFORMED_JSON", "id"),
        (line(id=1.5, method="x"), None, "MALFORMED_JSON", "id"),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', 1, "MALFORMED_JSON", "jsonrpc"),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"path":"a","path":"b"}}}',
            7,
            "DUPLICATE_KEY",
            "params.arguments.path",
        ),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}', None, "DUPLICATE_KEY", "method"),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"rows":[1,9007199254740993]}}}',
            7,
            "NUMBER_NOT_EXACT",
            "params.arguments.rows[1]",
        ),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"to":"\\ud800"}}}',
            7,
            "NON_CANONICAL_TEXT",
            "params.arguments.to",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(data: bytes, id: object, code: str, where: str) -> None:
    found = read_client(data)
    assert isinstance(found, Unreadable)
    assert (found.id, str(found.reason.code), found.reason.where) == (id, code, where)


def test_a_line_over_the_limit_is_refused() -> None:
    found = read_client(line(id=1, method="ping"), limit=10)
    assert isinstance(found, Unreadable)
    assert found.reason.code == "TOO_LARGE"


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_line_is_more_than_refused(data: bytes) -> None:
    read_client(data)
    guess_id(data)


@given(
    st.integers(0, 10**15 - 1)
    | st.text(st.characters(codec="ascii", exclude_characters='\\"\x7f', min_codepoint=32), min_size=1, max_size=50)
)
def test_the_id_of_a_line_that_is_too_long_is_guessed_from_its_head(id: int | str) -> None:
    for message in (
        {"jsonrpc": "2.0", "id": id, "method": "x"},
        {"method": "tools/call", "jsonrpc": "2.0", "id": id, "params": {}},
    ):
        assert guess_id(json.dumps(message).encode()) == id


def test_an_id_that_is_not_the_messages_own_is_not_guessed() -> None:
    assert guess_id(b'{"jsonrpc":"2.0","params":{"id":5,"x":1},"id":6,') is None
    assert guess_id(b'{"id":"\xff\xfe","x":1}') is None
    assert guess_id(b'{"id":007,"x":1}') is None
    assert guess_id(b'{"method":"a\\",\\"id\\":5,","id":6,') is None
