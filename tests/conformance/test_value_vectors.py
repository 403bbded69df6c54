"""The published vectors are what this package answers, and what they say by themselves is true."""

from __future__ import annotations

import hashlib
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from cxi.errors import CODES

VECTORS = Path(__file__).parents[2] / "vectors"
SCRIPT = runpy.run_path(str(VECTORS / "generate_values.py"))
FILES = ("canonical.json", "paths.json", "hosts.json", "urls.json")


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="ascii"))


@pytest.mark.parametrize("name", FILES)
def test_generating_again_gives_the_same_bytes(name: str) -> None:
    assert SCRIPT["build"]()[name] == (VECTORS / name).read_text(encoding="ascii")


def test_every_file_is_generated_and_listed_by_its_digest() -> None:
    files = SCRIPT["build"]()
    assert tuple(files) == FILES
    assert SCRIPT["index"](files) == (VECTORS / "values.json").read_text(encoding="ascii")


@pytest.mark.parametrize("case", load("canonical.json"), ids=lambda case: case["name"])
def test_canonical_vectors_are_the_references(case: dict[str, Any]) -> None:
    assert SCRIPT["canonical_vector"](case["text"]) == {key: case[key] for key in case if key not in ("name", "text")}
    if "bytes" in case:
        data = bytes.fromhex(case["bytes"])
        assert data == rfc8785.dumps(json.loads(case["text"]))
        assert hashlib.sha256(data).hexdigest() == case["sha256"]
        assert case["digest"] in (f"sha256:{case['sha256']}", "refused: NUMBER_NOT_EXACT")


def test_values_are_read_as_the_vectors_say() -> None:
    paths = load("paths.json")
    assert (paths["root"], paths["tree"]) == (SCRIPT["ROOT"].path, SCRIPT["TREE"])
    cases = [(case.get("type"), case) for case in paths["cases"]]
    cases += [("Host", case) for case in load("hosts.json")] + [("Url", case) for case in load("urls.json")]
    for name, case in cases:
        expected = {key: case[key] for key in ("canonical", "wire", "refused") if key in case}
        assert SCRIPT["value_vector"](name, case.get("parameters", {}), case["raw"]) == expected, case


def test_every_refusal_of_the_vectors_is_a_documented_code() -> None:
    codes = {str(code) for code in CODES}
    for name in FILES:
        content = load(name)
        cases = content["cases"] if isinstance(content, dict) else content
        refused = {case["refused"] for case in cases if "refused" in case}
        assert refused
        assert refused <= codes
