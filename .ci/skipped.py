"""List the tests that pytest's JUnit reports call skipped; exit 1 if there is one, or if no test ran at all."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def main(reports: list[str]) -> int:
    """Read the reports and print the list."""
    ran = 0
    skipped: list[str] = []
    for report in reports:
        cases = list(ET.fromstring(Path(report).read_text(encoding="utf-8")).iter("testcase"))  # noqa: S314  # pytest's own file
        for case in cases:
            found = case.find("skipped")
            if found is None:
                ran += 1
            elif found.get("type") != "pytest.xfail":
                skipped.append(f"{case.get('classname')}::{case.get('name')}: {found.get('message', '')}")
    print("\n".join(sorted(skipped)) or f"none; {ran} tests ran")
    return 1 if skipped or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
