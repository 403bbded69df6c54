"""How many, and how much: exactly, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from cxi.authority.amount import read_amount, values_at
from cxi.errors import Refused


def amount(raw: Any, scale: int = 2, unit: str = "", *, said: bool = False) -> Any:
    found = read_amount(raw, scale=scale, unit=unit, where="amount", said=said)
    return found.codes[0] if isinstance(found, Refused) else found


@pytest.mark.parametrize(
    ("raw", "scale", "found"),
    [
        (0, 2, 0),
        (12, 2, 1200),
        (12, 0, 12),
        ("12", 2, 1200),
        ("12.5", 2, 1250),
        ("12.50", 2, 1250),
        ("12.500", 2, 1250),
        ("0.01", 2, 1),
        ("999999999999999999.99", 2, 99999999999999999999),
        ("12.505", 2, "NUMBER_NOT_EXACT"),
        ("12.5", 0, "NUMBER_NOT_EXACT"),
        (12.5, 2, "NUMBER_NOT_EXACT"),
        (12.0, 2, "NUMBER_NOT_EXACT"),
        (-1, 2, "FIELD_TYPE"),
        ("-1", 2, "FIELD_TYPE"),
        ("+1", 2, "FIELD_TYPE"),
        ("1e3", 2, "FIELD_TYPE"),
        ("1,000", 2, "FIELD_TYPE"),
        ("1_000", 2, "FIELD_TYPE"),
        ("01", 2, "FIELD_TYPE"),
        ("1.", 2, "FIELD_TYPE"),
        (".5", 2, "FIELD_TYPE"),
        (" 1", 2, "FIELD_TYPE"),
        ("1\n", 2, "FIELD_TYPE"),
        ("١٢", 2, "FIELD_TYPE"),
        ("", 2, "FIELD_TYPE"),
        (True, 2, "FIELD_TYPE"),
        (None, 2, "FIELD_TYPE"),
        ([1], 2, "FIELD_TYPE"),
    ],
)
def test_an_amount_is_read_exactly_or_refused(raw: Any, scale: int, found: Any) -> None:
    assert amount(raw, scale) == found


@pytest.mark.parametrize(
    ("raw", "unit", "said", "found"),
    [
        ("12.50 EUR", "EUR", False, 1250),
        ("EUR 12.50", "EUR", False, 1250),
        ("EUR 12.50 EUR", "EUR", False, "FIELD_TYPE"),
        ("12.50 USD", "EUR", False, "FIELD_TYPE"),
        ("12.50", "EUR", False, "FIELD_TYPE"),
        (12, "EUR", False, "FIELD_TYPE"),
        ("12.50", "EUR", True, 1250),
        (12, "EUR", True, 1200),
        ("12.50 USD", "EUR", True, "FIELD_TYPE"),
        ("12.50 EUR", "", False, "FIELD_TYPE"),
        ("12.50 eur", "EUR", False, "FIELD_TYPE"),
    ],
)
def test_a_unit_is_said_and_is_the_limits(raw: Any, unit: str, said: bool, found: Any) -> None:
    assert amount(raw, unit=unit, said=said) == found


@pytest.mark.parametrize(
    ("path", "optional", "found"),
    [
        ("a", False, (1,)),
        ("rows[].n", False, (1, 2)),
        ("deep.list", False, ([3],)),
        ("deep.list[]", False, (3,)),
        ("grid[][]", False, (1, 2, 3)),
        ("empty[].n", False, ()),
        ("none", False, None),
        ("none", True, ()),
        ("null", True, ()),
        ("mixed[].n", False, None),
        ("mixed[].n", True, (1,)),
        ("a[]", True, None),
        ("a.b", True, None),
    ],
)
def test_values_are_found_by_their_path(path: str, optional: bool, found: Any) -> None:
    tree: Any = {
        "a": 1,
        "rows": [{"n": 1}, {"n": 2}],
        "deep": {"list": [3]},
        "grid": [[1, 2], [3]],
        "empty": [],
        "null": None,
        "mixed": [{"n": 1}, {}],
    }
    assert values_at(tree, path, optional=optional) == found
