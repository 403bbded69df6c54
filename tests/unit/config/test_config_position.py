"""A position is the platform's only if the platform writes it and everything that selects it."""

from __future__ import annotations

import pytest

from cxi.authority.contract import ResultContract, Writer
from cxi.config.position import strangers

P, O = Writer.PLATFORM, Writer.OUTSIDER
RESULT = ResultContract(
    (
        ("$.run", P),
        ("$.run.note", O),
        ("$.cases[*].file", P),
        ("$.cases[*].status", P),
        ("$.cases[*].log", O),
        ("$.meta", P),
        ("$.meta.by['a b']", O),
        ("$.total", P),
    )
)


@pytest.mark.parametrize(
    "path",
    [
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
        "$.run",  # holds the note
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
        "$.meta",
        "$.meta.by",
        "$.meta[*]['a b']",
        "$.other",
        "$.Run.commit",
    ],
)
def test_what_an_outsider_writes_holds_or_selects_is_not(path: str):
    assert strangers(path, RESULT) != ()


def test_the_whole_content_can_be_the_platforms():
    assert strangers("$.a.b", ResultContract((("content", P),))) == ()
    assert strangers("$.a.b", ResultContract((("content", P), ("$.a", O)))) != ()
    assert strangers("$.a.b", ResultContract()) != ()


def test_of_two_writers_of_one_position_it_is_the_outsider():
    assert strangers("$.a", ResultContract((("$.a", P), ("$['a']", O)))) != ()
