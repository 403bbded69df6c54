"""Each threat of the documentation has its file of attacks, and each file of attacks its threat."""

from __future__ import annotations

import re
from pathlib import Path

from cxi.errors import Code

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [row for row in PAGE.splitlines() if re.search(r"`test_\w+\.py` \|$", row)]


def test_each_attack_is_in_the_table_and_each_row_has_one():
    named = {name for row in ROWS for name in re.findall(r"`(test_\w+\.py)`", row)}
    assert named == {file.name for file in (ROOT / "tests" / "attacks").glob("test_*.py")}


def test_each_code_of_the_table_is_one():
    named = {code for row in ROWS for code in re.findall(r"`([A-Z]{2,}_[A-Z_]+)`", row)}
    assert named <= set(Code)
