"""Requests are read clause by clause; `tests/attacks/test_request_polarity_and_quotation.py` holds the phrasings."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authority_case import MemoryWorld, request_of, root_of
from cxi.authority.quotation import regions
from cxi.authority.request import MAX_TEXT, candidates, clauses, fragments, named
from cxi.values import value_type

PATH = value_type("RepoPath", {})
TEXT = value_type("Text", {})
WORDS = st.sampled_from(
    [
        "Fix",
        "a.py",
        "b.py",
        "and",
        "not",
        "don't",
        "but",
        "if",
        "said",
        ",",
        ";",
        ".",
        "?",
        "\n",
        "\n\n",
        "- ",
        "> ",
        "```",
        "`",
        '"',
        "'",
        "“",
        "”",
        "<x>",
        "</x>",
        "From:",
        "(",
        ")",
        ":",
        "please",
        "e.g.",
        "…",
        "no",
        "\u202e",
        "\u2028",
        "\r\n",
        "    ",
        "~~",
    ]
)


def test_spans_and_texts_agree_and_clauses_stand_in_order() -> None:
    text = 'Fix `a.py`, not "the old b.py"; then c.py.\n\n> d.py\n\nIs it e.py?'
    found = clauses(text)
    assert all(text[slice(*clause.span)] == clause.text for clause in found)
    assert [clause.span[0] for clause in found] == sorted(clause.span[0] for clause in found)
    assert [clause.why for clause in found] == ["", "negated", "quoted", "undirected", "quoted", "question"]


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.lists(WORDS, max_size=25).map("".join) | st.text(max_size=60))
def test_any_text_is_read_whole_and_nothing_raises(text: str) -> None:
    found = clauses(text)
    for clause in found:
        assert text[slice(*clause.span)] == clause.text
        assert clause.affirmed is (clause.why == "")
        assert len(clause.said) == len(clause.text)
        assert clause.host < len(found)
    said = [clause.span for clause in found if clause.host < 0 and not any(_holds(other, clause) for other in found)]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(said))
    for item in candidates(found, [PATH], root_of()):
        assert found[item.clause].affirmed or not item.affirmed
        assert all(start <= end for start, end in fragments(found[item.clause]))


def _holds(other: object, clause: object) -> bool:
    return other is not clause and other.span[0] <= clause.span[0] and clause.span[1] <= other.span[1]  # type: ignore[attr-defined]


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_regions_do_not_overlap(text: str) -> None:
    found = regions(text)
    assert all(0 <= region.start < region.end <= len(text) for region in found)
    assert all(before.end <= after.start for before, after in itertools.pairwise(found))


@given(st.lists(st.sampled_from(["a.py", "b.py", "and", "fix", "to", "or", "\n", "then"]), max_size=12).map(" ".join))
def test_what_follows_do_not_is_never_affirmed(text: str) -> None:
    text = re.sub(r"\s*\n\s*", "\n", text).lstrip()  # a blank line ends what came before it
    for negation in ("Do not ", "Never ", "don't ", "Please avoid "):
        assert not [item for item in candidates(clauses(negation + text), [PATH], root_of()) if item.affirmed]


def test_a_text_beyond_the_limit_gives_nothing_there() -> None:
    text = "Fix a.py.\n" + "x" * MAX_TEXT + "\nFix b.py."
    assert [(item.value.canonical, item.affirmed) for item in candidates(clauses(text), [PATH], root_of())][:1] == [
        ("a.py", True)
    ]
    assert not any(clause.affirmed for clause in clauses(text) if "b.py" in clause.text)


def test_a_quotation_that_is_one_value_of_the_type_is_named() -> None:
    text = 'Commit with "fix the rounding" and edit "my file.txt".'
    world = MemoryWorld(["my file.txt"])
    texts = [item.value.canonical for item in candidates(clauses(text), [TEXT], root_of(world)) if item.affirmed]
    assert texts == ["fix the rounding", "my file.txt"]
    paths = [item.value.canonical for item in candidates(clauses(text), [PATH], root_of(world)) if item.affirmed]
    assert paths == ["my file.txt"]


def test_a_quotation_in_a_negated_clause_is_not_named() -> None:
    found = candidates(clauses('Do not commit with "fix the rounding".'), [TEXT], root_of())
    assert [item.affirmed for item in found] == [False]


def test_what_is_glued_to_a_quotation_is_no_value() -> None:
    assert [item for item in candidates(clauses('Edit "a b"c.py.'), [PATH], root_of()) if item.affirmed] == []


@pytest.mark.parametrize(
    ("text", "words", "follows"),
    [
        ("Move it to b.py.", ("move", "it", "to"), True),
        ("Move it to the file b.py.", ("it", "to", "the", "file"), True),
        ("Move it to a.py b.py.", ("move", "it", "to", "a.py"), False),
        ("Move it to: b.py.", ("move", "it", "to"), True),
        ("Move it to safety, the b.py.", ("it", "to", "safety", "the"), False),
        ("Move it into b.py.", ("move", "it", "into"), False),
        ("b.py.", (), False),
    ],
)
def test_the_words_before_a_candidate(text: str, words: tuple[str, ...], follows: bool) -> None:
    (item,) = [found for found in candidates(clauses(text), [PATH], root_of()) if found.value.canonical == "b.py"]
    assert item.before == words
    assert item.follows("to") is follows


def test_fragments_are_cut_at_coordinators() -> None:
    text = "Pay A 10, B 500 and C 7 then D 1."
    (clause,) = clauses(text)
    assert [text[slice(*span)].strip() for span in fragments(clause)] == ["Pay A 10,", "B 500", "and C 7", "then D 1."]


def test_candidates_of_several_messages_keep_their_message() -> None:
    found = named(request_of("Fix a.py.", "Fix b.py."), [PATH], root_of())
    assert [(item.segment, item.value.canonical) for item in found] == [(0, "a.py"), (1, "b.py")]
    assert named(None, [PATH], root_of()) == ()


def test_sentences_are_numbered() -> None:
    assert [clause.sentence for clause in clauses("Fix a.py; then b.py. Fix c.py.")] == [0, 0, 1]
