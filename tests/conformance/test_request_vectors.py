"""`vectors/request.json`: the same clauses, and authority for the same values, from the file alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from authority_case import root_of
from cxi.authority.request import candidates, clauses
from cxi.values import value_type

FOLDER = Path(__file__).parents[2] / "vectors"
VECTORS: list[dict[str, Any]] = json.loads((FOLDER / "request.json").read_text(encoding="utf-8"))["vectors"]


def test_the_request_vectors_are_what_their_generator_writes() -> None:
    done = subprocess.run([sys.executable, FOLDER / "generate_request.py"], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == (FOLDER / "request.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["text"][:40])
def test_a_text_gives_authority_to_the_values_of_its_vector(vector: dict[str, Any]) -> None:
    found = clauses(vector["text"])
    assert [{"span": list(item.span), "affirmed": item.affirmed, "why": item.why} for item in found] == vector["clauses"]
    paths = candidates(found, [value_type("RepoPath", {})], root_of())
    assert [{"value": item.value.canonical, "span": list(item.span), "affirmed": item.affirmed} for item in paths] == vector[
        "paths"
    ]


def test_the_vectors_hold_both_kinds() -> None:
    kinds = {path["affirmed"] for vector in VECTORS for path in vector["paths"]}
    assert kinds == {True, False}
