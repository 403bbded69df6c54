"""Values are hidden by salt, shown by openings, and forgotten when the openings are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cxi.errors import LedgerError
from cxi.log.commitment import Opening, commit, conceal, opens
from cxi.log.opening import OpeningStore

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)
SALT = bytes(range(16))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpeningStore]:
    found = OpeningStore(tmp_path / "state" / "openings")
    yield found
    found.close()


@given(JSON, JSON, st.binary(min_size=16, max_size=32), st.binary(min_size=16, max_size=32))
def test_a_commitment_is_to_one_value_and_one_salt(value: object, other: object, salt: bytes, another: bytes) -> None:
    commitment = commit(value, salt)  # type: ignore[arg-type]
    same_value = repr(value) == repr(other)
    assert (commit(other, salt) == commitment) == same_value  # type: ignore[arg-type]
    assert (commit(value, another) == commitment) == (salt == another)  # type: ignore[arg-type]
    assert opens(conceal(value, salt), commitment)  # type: ignore[arg-type]


def test_a_short_salt_hides_nothing_and_is_refused() -> None:
    with pytest.raises(ValueError):
        commit("x", bytes(15))
    assert not opens(Opening("sha256:x", b"", b"1"), "sha256:x")


@given(values=st.lists(JSON, max_size=4), salt=st.binary(min_size=15, max_size=15))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_put_is_got(store: OpeningStore, values: list[object], salt: bytes) -> None:
    openings = [conceal(value, bytes([at]) + salt) for at, value in enumerate(values)]  # type: ignore[arg-type]
    store.put(openings, session="s-1", now=1.0)
    assert [store.get(opening.commitment) for opening in openings] == openings


def test_an_unknown_commitment_has_no_opening(store: OpeningStore) -> None:
    assert store.get("sha256:" + "0" * 64) is None


def test_openings_survive_a_close(tmp_path: Path) -> None:
    path = tmp_path / "state" / "openings"
    store = OpeningStore(path)
    opening = conceal({"a": 1.5}, SALT)
    store.put([opening], session="s-1", now=1.0)
    store.close()
    again = OpeningStore(path)
    assert again.get(opening.commitment) == opening
    again.close()


def test_erasing_is_by_session_or_by_age(store: OpeningStore) -> None:
    openings = [conceal(at, bytes([at]) * 16) for at in range(4)]
    for at, (session, now) in enumerate([("s-1", 1.0), ("s-1", 9.0), ("s-2", 1.0), ("s-2", 9.0)]):
        store.put([openings[at]], session=session, now=now)
    assert store.erase(session="s-1", before=5.0) == 1
    assert [store.get(opening.commitment) is not None for opening in openings] == [False, True, True, True]
    assert store.erase(before=5.0) == 1
    assert store.erase(session="s-2") == 1
    assert [store.get(opening.commitment) is not None for opening in openings] == [False, True, False, False]
    with pytest.raises(ValueError):
        store.erase()


def test_what_is_erased_is_in_no_file_any_more(store: OpeningStore, tmp_path: Path) -> None:
    secret = "a-secret-that-must-go-" * 400
    kept = conceal("what stays", bytes(16))
    store.put([conceal([secret, at], bytes([at + 1]) * 16) for at in range(20)], session="s-1", now=1.0)
    store.put([kept], session="s-2", now=1.0)
    files = tmp_path / "state"
    assert any(b"a-secret-that-must-go" in path.read_bytes() for path in (files / "openings").iterdir())
    assert store.erase(session="s-1") == 20
    assert not any(b"a-secret-that-must-go" in path.read_bytes() for path in (files / "openings").iterdir())
    assert store.get(kept.commitment) == kept


def test_erasing_what_another_program_still_writes_leaves_what_comes_after(store: OpeningStore, tmp_path: Path) -> None:
    other = OpeningStore(tmp_path / "state" / "openings")
    first, second = conceal("a-secret", SALT), conceal("what comes after", SALT)
    other.put([first], session="s-1", now=1.0)
    assert store.get(first.commitment) == first
    assert store.erase(session="s-1") == 1
    other.put([second], session="s-1", now=2.0)
    assert store.get(first.commitment) is None
    assert other.get(first.commitment) is None
    assert store.get(second.commitment) == second
    other.close()


def test_the_file_of_a_session_goes_away_with_its_last_opening(store: OpeningStore, tmp_path: Path) -> None:
    store.put([conceal("one", SALT)], session="s-1", now=1.0)
    store.close()
    assert store.erase(session="s-1") == 1
    assert list((tmp_path / "state" / "openings").iterdir()) == []
    again = conceal("two", SALT)
    store.put([again], session="s-1", now=2.0)
    assert store.get(again.commitment) == again


def test_a_line_that_was_not_written_whole_opens_nothing(store: OpeningStore, tmp_path: Path) -> None:
    whole, torn = conceal("whole", SALT), conceal("torn", SALT)
    store.put([torn], session="s-1", now=1.0)
    (path,) = (tmp_path / "state" / "openings").iterdir()
    path.write_bytes(path.read_bytes()[:-6] + b"\n")
    store.put([whole], session="s-1", now=2.0)
    assert store.get(torn.commitment) is None
    assert store.get(whole.commitment) == whole


def test_openings_that_cannot_be_written_are_said_so(store: OpeningStore, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "openings"
    folder.rmdir()
    with pytest.raises(LedgerError):
        store.put([conceal("one", SALT)], session="s-1", now=1.0)


def test_a_link_in_the_place_of_a_file_is_not_followed(store: OpeningStore, tmp_path: Path) -> None:
    store.put([conceal("one", SALT)], session="s-1", now=1.0)
    store.close()
    (path,) = (tmp_path / "state" / "openings").iterdir()
    path.unlink()
    (tmp_path / "elsewhere").write_text("kept")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError):
        store.put([conceal("two", SALT)], session="s-1", now=1.0)
    with pytest.raises(LedgerError):
        store.erase(session="s-1")
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_an_opening_that_was_altered_opens_nothing(store: OpeningStore, tmp_path: Path) -> None:
    opening = conceal("src/tax.py", SALT)
    store.put([opening], session="s-1", now=1.0)
    (path,) = (tmp_path / "state" / "openings").iterdir()
    path.write_bytes(path.read_bytes().replace(b"src/tax.py", b"src/oth.py"))
    assert store.get(opening.commitment) is None
