"""An interval tree finds what holds a number, and `like` matches as the plainest reading does."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from cxi.policy.evaluator import _like
from cxi.policy.index import _ends, _inside, _spans, _starts

numbers = st.integers(min_value=-8, max_value=8)
texts = st.text(alphabet="ab", max_size=8)


@given(st.lists(st.tuples(numbers, numbers), max_size=12), st.integers(min_value=-9, max_value=9))
def test_the_spans_that_hold_a_number_are_found_and_no_others(spans, value):
    table = {}
    for position, span in enumerate(spans):
        table.setdefault(span, []).append(position)
    found = []
    _spans(table)(value, found)
    assert sorted(found) == [position for position, (low, high) in enumerate(spans) if low <= value <= high]


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=6), texts)
def test_the_texts_at_the_start_at_the_end_and_inside_are_found_and_no_others(keys, value):
    table = {key: (position,) for position, key in enumerate(keys)}
    table |= {"c" * length: tuple(range(1000 * length, 1000 * length + 900)) for length in (1, 2)}  # many others
    for find, holds in ((_starts, str.startswith), (_ends, str.endswith), (_inside, str.__contains__)):
        found = []
        find(table)(value, found)
        assert set(found) == {position for key, positions in table.items() for position in positions if holds(value, key)}


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=6), texts)
def test_of_few_policies_none_is_missed_by_the_text_inside(keys, value):
    found = []
    _inside({key: (position,) for position, key in enumerate(keys)})(value, found)
    assert set(found) >= {keys.index(key) for key in keys if key in value and keys.count(key) == 1}


@example("a", ["a", "a"])  # the first piece and the last may not overlap
@given(texts, st.lists(st.text(alphabet="ab", max_size=3), min_size=2, max_size=5))
def test_like_matches_as_its_plainest_reading_does(text, pieces):
    read = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
    assert _like(text, pieces[0], pieces[1:-1], pieces[-1]) == (read.fullmatch(text) is not None)


def test_a_pattern_of_many_wildcards_is_matched_in_little_time():
    assert not _like("a" * 20_000, "", ["a"] * 200, "b")
    assert _like("a" * 20_000, "", ["a"] * 200, "a")
