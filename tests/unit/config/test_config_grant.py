"""Grants in the configuration: what is read, and what is wrong on which line."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from cxi.authority.grant import Across, Batch, Total
from cxi.authority.schedule import Hours
from cxi.config.schema import config_schema
from cxi.config.yaml import read_tree
from cxi.errors import ConfigError
from cxi.ledger.base import Requirement

EDIT = "    grants: {files.write_file: 20}"
GRANT = """    grants:
      files.edit_file: 2
      files.write_file:
        count: 20
"""


def write(place: Any, *lines: str, base: str = GRANT) -> str:
    return place.change(EDIT, base + "".join(f"        {line}\n" for line in lines))


def grant(place: Any, *lines: str) -> Any:
    text = write(place, *lines)
    assert list(jsonschema.Draft202012Validator(config_schema()).iter_errors(read_tree(text, file="x.yaml").to_json())) == []
    return place.load(pinned=False).tasks["fix-bug"].grants[1]


def test_every_term_of_a_grant_is_read(place) -> None:
    found = grant(
        place,
        "window: 1h",
        "across: user",
        "batch: {field: content, most: 20}",
        "total: {field: content, most: 500.00 EUR, window: 1d}",
        "after: [files.edit_file]",
        'not_before: "2026-03-01T09:00:00+01:00"',
        'not_after: "2026-03-02T09:00:00Z"',
        'hours: {days: [mon-wed, fri], from: "09:00", to: "17:30", zone: Europe/Berlin}',
        "retries: 0",
    )
    assert (found.count, found.window, found.across, found.retries) == (20, 3600.0, Across.USER, 0)
    assert found.batches == (Batch("content", 20),)
    assert found.totals == (Total("content", 50_000, 2, "EUR", "", 86_400.0),)
    assert found.after == (Requirement("fix-bug/files.edit_file"),)
    assert (found.not_before, found.expires) == (1_772_352_000.0, 1_772_442_000.0)
    assert found.hours == (Hours((0, 1, 2, 4), 540, 1050, "Europe/Berlin"),)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("total: {field: content, most: 500}", "totals", (Total("content", 500),)),
        ("total: {field: content, most: 500, scale: 2}", "totals", (Total("content", 50_000, 2),)),
        ('total: {field: content, most: "0.5"}', "totals", (Total("content", 5, 1),)),
        (
            "total: {field: 'content.rows[].amount', most: 5 EUR, currency: content.currency}",
            "totals",
            (Total("content.rows[].amount", 5, 0, "EUR", "content.currency"),),
        ),
        (
            "total: [{field: content, most: 1, window: 1d}, {field: content, most: 2}]",
            "totals",
            (Total("content", 1, window=86_400.0), Total("content", 2)),
        ),
        ("after: {fix-bug/files.edit_file: 2}", "after", (Requirement("fix-bug/files.edit_file", 2),)),
        ("hours: {zone: UTC}", "hours", (Hours((0, 1, 2, 3, 4, 5, 6), 0, 1440, "UTC"),)),
        ('hours: {days: [sat-mon], zone: UTC, from: "22:00", to: "00:00"}', "hours", (Hours((0, 5, 6), 1320, 1440, "UTC"),)),
        ('hours: {zone: UTC, from: "22:00", to: "06:00"}', "hours", (Hours((0, 1, 2, 3, 4, 5, 6), 1320, 360, "UTC"),)),
        ("retries: 2", "retries", 2),
        ("across: tenant", "across", Across.TENANT),
    ],
)
def test_the_forms_of_a_term(place, line: str, name: str, value: Any) -> None:
    assert getattr(grant(place, line), name) == value


@pytest.mark.parametrize(
    "line",
    [
        "across: team",
        "batch: {field: content}",
        "batch: {field: nothing, most: 2}",
        "batch: {field: content, most: 0}",
        "total: {field: content, most: 500.5}",
        "total: {field: content, most: 0}",
        "total: {field: content, most: -1}",
        "total: {field: content, most: 500 euros}",
        "total: {field: content, most: 9007199254740993}",
        "total: {field: content, most: 1, scale: 10}",
        "total: {field: content, most: 0.001 EUR, scale: 2}",
        "total: {field: content, most: 1, currency: content.currency}",
        "total: {field: nothing, most: 1}",
        "total: {field: content, most: 1, window: soon}",
        "after: [files.write_file]",
        "after: [files.move_file]",
        "after: [other/files.edit_file]",
        "after: {files.edit_file: 0}",
        "after: []",
        "not_before: yesterday",
        'not_before: "2026-03-01"',
        'not_before: "2026-03-01T09:00:00"',
        'not_after: "2026-13-01T09:00:00Z"',
        "hours: {from: '09:00'}",
        "hours: {zone: Mars/Base}",
        "hours: {zone: ../../etc/passwd}",
        "hours: {zone: UTC, from: '9:00'}",
        "hours: {zone: UTC, from: '24:00'}",
        "hours: {zone: UTC, to: '24:30'}",
        "hours: {zone: UTC, from: '09:00', to: '09:00'}",
        "hours: {zone: UTC, days: [someday]}",
        "hours: {zone: UTC, days: []}",
        "retries: -1",
        "retries: many",
        "retires: 2",
    ],
)
def test_what_is_wrong_of_a_term_is_told_with_its_line(place, line: str) -> None:
    text = write(place, line)
    number = text.splitlines().index(f"        {line}") + 1
    with pytest.raises(ConfigError) as caught:
        place.load(pinned=False)
    assert {(problem.file, problem.line) for problem in caught.value.problems} == {("cxi.yaml", number)}, caught.value


def test_a_grant_that_ends_before_it_begins_is_an_error(place) -> None:
    last = 'not_after: "2026-03-01T00:00:00Z"'
    text = write(place, 'not_before: "2026-03-02T00:00:00Z"', last)
    with pytest.raises(ConfigError) as caught:
        place.load(pinned=False)
    assert [problem.line for problem in caught.value.problems] == [text.splitlines().index(f"        {last}") + 1]


def test_a_standing_grant_may_be_waited_for(place) -> None:
    text = write(place, "after: [standing/files.move_file, files.create_directory]")
    place.write("cxi.yaml", text + "grants: {files.move_file: 1, files.create_directory: 1}\n")
    after = place.load(pinned=False).tasks["fix-bug"].grants[1].after
    assert [needed.grant for needed in after] == ["standing/files.move_file", "standing/files.create_directory"]


def test_grants_that_wait_for_each_other_are_an_error(place) -> None:
    circle = (
        "    grants:\n      files.edit_file: {count: 1, after: [files.write_file]}\n      files.write_file:\n        count: 2\n"
    )
    write(place, "after: [files.edit_file]", base=circle)
    with pytest.raises(ConfigError):
        place.load(pinned=False)


def test_each_term_is_part_of_the_epoch(place) -> None:
    terms = ("retries: 2", "across: user", "after: [files.edit_file]", "hours: {zone: UTC}", "batch: {field: content, most: 2}")
    seen = set()
    for lines in ((), *((term,) for term in terms)):
        write(place, *lines)
        seen.add(place.load(pinned=False).digest)
    assert len(seen) == 1 + len(terms)
