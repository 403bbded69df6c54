"""What a reader does not see is listed and written out; ordinary writing is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values.hidden import hidden, refuse_unseen, visible

ORDINARY = [
    "Fix the failing test, then commit.\n\tIndented\r\n",
    "Привет, мир: исправь тест и закрой заявку 7.",
    "Διόρθωσε το τεστ και κλείσε το αίτημα 7.",
    "テストを修正して、チケット７を閉じてください。ＡＢＣ",
    "한국어 문장도 그대로 둔다",
    "می‌خواهم این را درست کنم",
    "क्‍ष और नमस्ते",
    "שלום עולם",
    "naïve café, Straße, Łódź, İstanbul, ngày",
    "👩‍💻 fixed it ❤️ ⚠️ ✔️ 1️⃣ 👍🏽 👨‍👩‍👧‍👦 ↔️",
    "Δt ≈ 5 μs, Ω, π·r², ½ and 1⁄2",
    "Python-скрипт в папке Иванов_data",
    "a NBSP\u00a0and a narrow one: 10\u202f000",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_writing_is_not_hidden(text: str) -> None:
    assert hidden(text) == ()
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("a\u200bb", "invisible", r"a\u{200B}b"),
        ("a\u00adb", "invisible", r"a\u{AD}b"),
        ("a\ufeffb", "invisible", r"a\u{FEFF}b"),
        ("a\u2060b", "invisible", r"a\u{2060}b"),
        ("a\u3164b", "invisible", r"a\u{3164}b"),
        ("a\u2800b", "invisible", r"a\u{2800}b"),
        ("a\ufe01b", "invisible", r"a\u{FE01}b"),
        ("a\ufe0fb", "invisible", r"a\u{FE0F}b"),
        ("👍\U000e0110", "invisible", r"👍\u{E0110}"),
        ("pass\u200dword", "invisible", r"pass\u{200D}word"),
        ("user\u202etxt.exe", "bidi", r"user\u{202E}txt.exe"),
        ("a\u2066b", "bidi", r"a\u{2066}b"),
        ("a\u200fb", "bidi", r"a\u{200F}b"),
        ("a\u061cb", "bidi", r"a\u{61C}b"),
        ("hi\U000e0069", "tag", r"hi\u{E0069}"),
        ("a\x00b", "control", r"a\u{0}b"),
        ("a\x1b[2Kb", "control", r"a\u{1B}[2Kb"),
        ("a\rb", "control", r"a\u{D}b"),
        ("a\x9bb", "control", r"a\u{9B}b"),
        ("a\u2028b", "control", r"a\u{2028}b"),
        ("a\ud800b", "control", r"a\u{D800}b"),
        ("p\u0430ypal", "confusable", r"p\u{430}ypal"),
        ("g\u03bfogle.com", "confusable", r"g\u{3BF}ogle.com"),
        ("tit\u0585", "confusable", r"tit\u{585}"),
        ("\uff50ython", "confusable", r"\u{FF50}ython"),
        ("\U0001d41badmin", "confusable", r"\u{1D41B}admin"),
        ("src\u2215tax.py", "confusable", r"src\u{2215}tax.py"),
        ("example\u2024com", "confusable", r"example\u{2024}com"),
        ("слоBо", "confusable", r"сло\u{42}о"),
    ],
)
def test_what_is_hidden_has_a_kind_and_is_written_out(text: str, kind: str, shown: str) -> None:
    assert [found.kind for found in hidden(text)] == [kind]
    assert visible(text) == shown


def test_places_are_in_code_points_from_left_to_right() -> None:
    found = hidden("😀\u200b p\u0430y\u202e")
    assert [(item.span, item.kind) for item in found] == [((1, 2), "invisible"), ((4, 5), "confusable"), ((6, 7), "bidi")]


def test_a_written_escape_is_not_taken_for_a_hidden_character() -> None:
    assert visible(r"a\u{202E}") != visible("a\u202e")
    assert hidden(r"a\u{202E}") == ()


CHARS = st.text(st.sampled_from("ab \\u{}20E\u202e\u200b\ufe0f\u200d👍\u0430\U000e0041\r\n") | st.characters(), max_size=30)


@given(CHARS, CHARS)
@example("\\u{202E}", "\u202e")
@example("\\u{5C}u{", "\\u{")
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    if one != other:
        assert visible(one) != visible(other)


@given(CHARS)
def test_what_is_shown_holds_nothing_hidden_but_letters_of_its_own(text: str) -> None:
    shown = visible(text)
    assert [found for found in hidden(shown) if found.kind != "confusable"] == []


@pytest.mark.parametrize(
    "char", ["\x00", "\t", "\n", "\x7f", "\x85", "\u200d", "\u202e", "\ufe0f", "\U000e0041", "\ud800", "\u2028", "\u3164"]
)
def test_protected_text_holds_no_unseen_character(char: str) -> None:
    refused = refuse_unseen(f"a{char}b", "path")
    assert isinstance(refused, Refused)
    assert refused.codes == ("NON_CANONICAL_TEXT",)


@pytest.mark.parametrize("text", ["", "src/tax.py", "Привет 日本 é e\u0301", "a b", "👍"])
def test_protected_text_may_be_of_any_script(text: str) -> None:
    assert refuse_unseen(text, "path") is None
