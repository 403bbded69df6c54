"""JSON-RPC lines."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cxi.errors import MalformedError
from cxi.sinks.wire import (
    Lines,
    Oversized,
    read_json,
    read_lines,
    read_message,
    read_object,
    write_json,
    write_request,
    write_result,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_what_a_server_writes_is_read_as_any_reader_reads_it(value: object, indent: int | None, ascii: bool) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()
    assert read_json(raw) == value
    assert json.loads(write_json(value)) == value  # type: ignore[arg-type]


@given(JSON, st.integers(0, 2**53))
def test_a_result_is_kept_as_the_bytes_that_came(value: object, id: int) -> None:
    raw = json.dumps(value).encode()
    assert read_message(write_result(id, raw).rstrip(b"\n")).result == raw


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a":1,"a":2}', "DUPLICATE_KEY"),
        (b'{"a":1,"\\u0061":2}', "DUPLICATE_KEY"),
        (b'[{"x":{"a":1,"a":1}}]', "DUPLICATE_KEY"),
        (b"NaN", "NUMBER_NOT_EXACT"),
        (b"[-Infinity]", "NUMBER_NOT_EXACT"),
        (b'{"n":-1e400}', "NUMBER_NOT_EXACT"),
        (b'"\\ud800"', "NON_CANONICAL_TEXT"),
        (b"\xff", "MALFORMED_JSON"),
        (b"", "MALFORMED_JSON"),
        (b"1 2", "MALFORMED_JSON"),
        (b"[" * 100_000, "MALFORMED_JSON"),
        (b"9" * 5000, "MALFORMED_JSON"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(raw: bytes, code: str) -> None:
    with pytest.raises(MalformedError) as refused:
        read_json(raw)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b"1",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":1,"method":"x"}',
        b'{"jsonrpc":"2.0","id":null,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    ],
)
def test_what_is_no_one_message_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedError):
        read_message(line)


def test_params_that_are_no_object_are_refused_and_absent_ones_are_empty() -> None:
    assert read_object(b"") == read_object(b"null") == {}
    with pytest.raises(MalformedError):
        read_object(b"[1]")
    assert read_message(write_request(1, "x", b"").rstrip()).params == b""


async def lines_of(chunks: list[bytes], limit: int) -> list[bytes | Oversized]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [line async for line in read_lines(reader, limit)]


def test_lines_are_cut_and_one_over_the_limit_is_dropped_whole() -> None:
    data = b"one\n\n" + b"x" * 200_000 + b"\ntwo\n" + b"y" * 11 + b"\nthree\nunfinished"
    found = asyncio.run(lines_of([data], 10))
    assert [line if isinstance(line, bytes) else None for line in found] == [b"one", None, b"two", None, b"three"]
    assert isinstance(found[1], Oversized)
    assert len(found[1].head) == 1024


@given(st.lists(st.binary(max_size=12), max_size=8), st.integers(1, 8))
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], limit: int) -> None:
    data = b"".join(pieces)
    whole = [line for line in data.split(b"\n")[:-1] if line.strip()]
    found = asyncio.run(lines_of(pieces, limit))
    assert [line for line in found if isinstance(line, bytes)] == [line for line in whole if len(line) <= limit]


LINES = [b"r1\n", b"r22\n", b"n1\n", b"\n", b"r1\nn2\n", b"r", b"n", b"1\n", b"rrrrrrrrrrrr\n", b"nnnnnnnnnnnn", b" \n"]
PIECES = st.lists(st.sampled_from(LINES) | st.binary(max_size=6), max_size=12)


@given(PIECES, st.lists(st.sampled_from([True, True, True, False]), max_size=12), st.integers(2, 8))
def test_lines_that_are_taken_on_the_spot_stay_in_their_order(pieces: list[bytes], pauses: list[bool], limit: int) -> None:
    async def run() -> tuple[list[Any], int]:
        found: list[Any] = []
        taken = 0

        def take(line: bytes) -> bool:
            nonlocal taken
            if not line.startswith(b"r"):
                return False
            found.append(line)
            taken += 1
            return True

        lines, reader = Lines(limit, take), asyncio.StreamReader()

        async def consume() -> None:
            async for line in lines.read(reader):
                await asyncio.sleep(0)  # it takes its time
                found.append(line)

        task = asyncio.create_task(consume())
        for piece, pause in zip(pieces, [*pauses, *[True] * len(pieces)], strict=False):
            if pause:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            if piece and not lines.offer(piece):
                reader.feed_data(piece)
        reader.feed_eof()
        await task
        return found, taken

    found, taken = asyncio.run(run())
    event("some were taken" if taken else "none was taken")
    assert [line if isinstance(line, bytes) else None for line in found] == [
        line if isinstance(line, bytes) else None for line in asyncio.run(lines_of([b"".join(pieces)], limit))
    ]
