"""What the agent itself wrote earlier comes back as a platform's record; it is no source until a person vouches for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from authority_case import EPOCH, MemoryWorld, called, contract_of, outsider, protected, snapshot_of, types_of
from cxi.authority.contract import Origin, ResultContract, Writer
from cxi.authority.declassifier import Declassifier, declassify
from cxi.canonical import JsonValue

LIST = contract_of(name="tickets.list", sink=False, result=ResultContract((("content", Writer.PLATFORM),)))
READ = contract_of(
    protected("path", origins=(Origin.ANYONE,)),
    name="files.read_json",
    sink=False,
    result=ResultContract((("content", Writer.PLATFORM),)),
)
FILES = Declassifier(
    "assigned-file", "tickets.list", "$.tickets[*].file", types_of("RepoPath")[0], (), "files.write_file.path", "all", 60.0
)
WORLD = MemoryWorld(["a.py", "b.py", "note.json"])
TICKETS: JsonValue = {"structuredContent": {"tickets": [{"id": "T-1", "file": "a.py"}, {"id": "T-2", "file": "b.py"}]}}


def released(touched: set[tuple[str, str]], declassifier: Declassifier = FILES) -> list[JsonValue]:
    found, notes = declassify(
        declassifier,
        LIST,
        called(LIST, {}),
        TICKETS,
        outsider("…"),
        snapshot_of(WORLD),
        touched=frozenset(touched),
        task="fix",
        epoch=EPOCH,
        now=0.0,
    )
    assert len(found) + len(notes) == 2
    return [release.value.canonical for release in found]


def test_records_that_nobody_touched_are_sources() -> None:
    assert released(set()) == ["a.py", "b.py"]
    assert released({("path", "c.py"), ("RecordId", "T-9")}) == ["a.py", "b.py"]


@pytest.mark.parametrize("kind", ["path", "RepoPath", "FilePath"])
def test_a_path_that_an_earlier_call_wrote_is_not_released(kind: str) -> None:
    assert released({(kind, "a.py")}) == ["b.py"]
    assert released({(kind, "/srv/repo/a.py")}) == ["b.py"]


def test_a_record_that_an_earlier_call_wrote_is_not_a_source() -> None:
    named = replace(FILES, record="$.tickets[*].id")
    assert released(set(), named) == ["a.py", "b.py"]
    assert released({("RecordId", "T-2")}, named) == ["a.py"]


def test_a_record_without_its_name_is_not_a_source() -> None:
    assert released(set(), replace(FILES, record="$.tickets[*].number")) == []


def test_a_word_that_was_used_before_is_no_record() -> None:
    states = replace(FILES, position="$.tickets[*].file", type=types_of("Text")[0])
    assert released({("Text", "a.py")}, states) == ["a.py", "b.py"]


@pytest.mark.parametrize(("touched", "count"), [(set(), 1), ({("path", "note.json")}, 0), ({("path", "other.json")}, 1)])
def test_a_file_that_an_earlier_call_wrote_releases_nothing(touched: set[tuple[str, str]], count: int) -> None:
    declassifier = replace(FILES, tool="files.read_json", position="$.file")
    found, _ = declassify(
        declassifier,
        READ,
        called(READ, {"path": "note.json"}),
        {"structuredContent": {"file": "a.py"}},
        outsider("…"),
        snapshot_of(WORLD),
        touched=touched,
        task="fix",
        epoch=EPOCH,
        now=0.0,
    )
    assert len(found) == count
