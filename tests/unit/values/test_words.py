"""Words are whole: without the sentence's punctuation, and never a part of what they are glued to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.values.word import is_whole, unquote, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix src/tax.py, please.", ["Fix", "src/tax.py", "please"]),
        ("Don't touch it!", ["Don't", "touch", "it"]),
        ("(see src/tax.py).", ["see", "src/tax.py"]),
        ("app/(group)/page.tsx and pages/[id].tsx", ["app/(group)/page.tsx", "and", "pages/[id].tsx"]),
        ("(app/(group)/x)", ["app/(group)/x"]),
        ("go to ../..", ["go", "to", "../.."]),
        ("**src/tax.py** _x_", ["src/tax.py", "_x_"]),
        ("all *.py and src/**, **/x or *", ["all", "*.py", "and", "src/**", "**/x", "or", "*"]),
        ("__init__.py's end", ["__init__.py", "end"]),
        ("<https://a.example/b>.", ["https://a.example/b"]),
        ("> quoted", ["quoted"]),
        ("… !!! ---", ["---"]),
        ("a\u00a0b\u3000c\nd", ["a", "b", "c", "d"]),
        ('src/"tax.py"', ['src/"tax.py']),
        ("`a`.py", ["a`.py"]),
        ('it says "open', ["it", "says", "open"]),
        ("the users' data's end", ["the", "users", "data", "end"]),
    ],
)
def test_plain_words_are_whole(text: str, expected: list[str]) -> None:
    assert [word.text for word in words(text)] == expected
    assert not any(word.quoted for word in words(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `my file` b", "my file"),
        ('a "my file", b', "my file"),
        ("a 'it's there' b", "it's there"),
        ("a “my file”. b", "my file"),
        ("a „my file“ b", "my file"),
        ("a «my file» b", "my file"),
        ("a 「my file」 b", "my file"),
        ("a ``x`y`` b", "x`y"),
        ('(a="my file")', "my file"),
        ("a `x`'s b", "x"),
    ],
)
def test_a_quoted_span_is_one_word(text: str, expected: str) -> None:
    assert [word.text for word in words(text) if word.quoted] == [expected]


def test_a_quote_ends_with_its_line() -> None:
    assert not any(word.quoted for word in words('say "one\ntwo" now'))


def test_a_quoted_span_can_be_taken_apart() -> None:
    text = 'run "python src/tax.py --fast" now'
    (quoted,) = [word for word in words(text) if word.quoted]
    assert [text[word.start : word.end] for word in unquote(quoted)] == ["python", "src/tax.py", "--fast"]


@given(st.text(st.sampled_from("ab.,;:!?()[]{}<>*'\"`“”‘’«»„「」/-_ \n\t\u00a0é")))
def test_words_are_where_they_say_in_order_and_apart(text: str) -> None:
    end = 0
    for word in words(text):
        assert end <= word.start < word.end
        assert text[word.start : word.end] == word.text
        assert word.quoted or not any(char.isspace() for char in word.text)
        end = word.end


@pytest.mark.parametrize("text", ["x", "(x)", "x.", '"x"', "a x, b", "x: y", "x\n"])
def test_a_span_that_stands_alone_is_whole(text: str) -> None:
    at = text.index("x")
    assert is_whole(text, at, at + 1)


@pytest.mark.parametrize(
    "text", ["ax", "xa", "x-y", "x_1", "a/x", "x/a", "x.py", ".x", "a:x", "x's", "#x", "x1", "éx", "1,x", "$x", "x="]
)
def test_a_span_that_is_glued_to_more_is_not_whole(text: str) -> None:
    at = text.index("x")
    assert not is_whole(text, at, at + 1)
