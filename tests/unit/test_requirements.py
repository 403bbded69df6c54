"""Promises and tests are held against each other, in both directions."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


PROMISES = runpy.run_path(str(ROOT / "tests" / "requirements.py"))["PROMISES"]


def functions_of(file: Path) -> set[str]:
    """The names of a file's tests; those of a class stand by their own name."""
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def test_each_promise_has_an_id_of_its_own_a_source_and_tests():
    ids = [promise.id for promise in PROMISES]
    assert len(ids) == len(set(ids))
    for promise in PROMISES:
        assert (ROOT / "docs" / promise.source.partition("#")[0]).is_file(), promise.id
        assert bool(promise.tests) is not promise.pending, f"{promise.id}: pending exactly if it names no test"


def test_each_test_that_a_promise_names_exists():
    missing = []
    for promise in PROMISES:
        for test in promise.tests:
            name, _, function = test.partition("::")
            file = ROOT / name
            if not file.is_file() or not functions_of(file) or (function and function not in functions_of(file)):
                missing.append(f"{promise.id}: {test}")
    assert missing == []


def test_each_file_of_attacks_belongs_to_a_promise():
    named = {test.partition("::")[0] for promise in PROMISES for test in promise.tests}
    files = {file.relative_to(ROOT).as_posix() for file in (ROOT / "tests" / "attacks").rglob("test_*.py")}
    assert sorted(files - named) == []
