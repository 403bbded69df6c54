"""A position is the platform's only if the platform writes it and everything that selects it."""

from __future__ import annotations

import pytest

from cxi.authority.contract import ResultContract, Writer
from cxi.config.position import strangers

PLATFORM, OUTSIDER = Writer.PLATFORM, Writer.OUTSIDER
RESULT = ResultContract(
    (
        ("$.run", PLATFORM),
        ("$.run.note", OUTSIDER),
        ("$.cases[*].file", PLATFORM),
        ("$.cases[*].status", PLATFORM),
        ("$.cases[*].log", OUTSIDER),
        ("$.meta", PLATFORM),
        ("$.meta.by['a b']", OUTSIDER),
        ("$.total", PLATFORM),
    )
)


@pytest.mark.parametrize(
    "path",
    [
        "$.run",  # the note is taken away before it is read
        "$.meta.by",
        "$.run.commit",
        "$.cases[*].file",
        "$.cases[0].file",
        "$.cases[1:3].status",
        '$.cases[?(@.status=="failed")].file',
        '$.cases[?(@.status=="failed" && @.file!="x")].file',
        '$.cases[?(@.status=="failed" || $.total==1)].file',
        "$.cases[?(length(@.file)>1)].file",
        "$.cases[*]['file','status']",
        "$.meta.when",
        "$['run']['commit']",
    ],
)
def test_what_the_platform_writes_and_selects_is_its_own(path: str):
    assert strangers(path, RESULT) == ()


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "$.run.note",
        "$.run[*]",  # may be the note
        "$.run.note.x",
        "$.cases",
        "$.cases[*]",
        "$.cases[*].log",
        '$.cases[?(@.log=="x")].file',
        "$.cases[?(@.log)].file",
        '$.cases[?(!(@.log=="x"))].file',
        '$.cases[?($.other=="x")].file',
        '$.cases[?(match(@.log, "x"))].file',
        "$.cases[*]['file','log']",
        "$.cases[*][*]",
        "$..file",
        "$.meta[*]['a b']",
        "$.other",
        "$.Run.commit",
    ],
)
def test_what_an_outsider_writes_holds_or_selects_is_not(path: str):
    assert strangers(path, RESULT) != ()


def test_the_whole_content_can_be_the_platforms():
    assert strangers("$.a.b", ResultContract((("content", PLATFORM),))) == ()
    assert strangers("$.a.b", ResultContract((("content", PLATFORM), ("$.a", OUTSIDER)))) != ()
    assert strangers("$.a.b", ResultContract()) != ()


def test_of_two_writers_of_one_position_it_is_the_outsider():
    assert strangers("$.a", ResultContract((("$.a", PLATFORM), ("$['a']", OUTSIDER)))) != ()
