"""The real-world faults, through the public API: outcome and mapped reason, and each fault's sibling with authority."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.lab.cases import Case, judge, read, run

FILE = Path(__file__).parent / "cases.jsonl"
BUILT = {"field", "mcp", "effect-path", "effect-shell", "canonical", "invocation"}
# Parts that are not built yet: GraphQL, SQL.
NOT_YET = {"F05", "X06"}
CASES = [case for case in read(FILE) if case.area in BUILT]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_agrees_and_its_sibling_with_authority_is_admitted(case):
    row = judge(case)
    if case.id in NOT_YET:
        assert row["verdict"] == "not_yet"
        return
    assert row["verdict"] == "agrees", row
    if case.outcome != "admit":
        assert row["sibling"]["outcome"] == "admit", row


def test_a_case_whose_expectation_is_wrong_disagrees():
    wrong = [Case(c.id, c.area, c.input, "admit" if c.outcome != "admit" else "reject", c.reason, c.polarity) for c in CASES]
    rows = [judge(case) for case in wrong if case.id not in NOT_YET]
    assert {row["verdict"] for row in rows} == {"disagrees"}


def test_a_reason_of_another_kind_disagrees():
    case = next(case for case in CASES if case.id == "P01")
    assert (
        judge(Case(case.id, case.area, case.input, case.outcome, "FIELD_NO_AUTHORITY", case.polarity))["verdict"] == "disagrees"
    )


def test_an_area_or_shape_that_is_not_built_is_not_yet_and_never_agrees():
    rows = [
        judge(Case("Z1", "effect-yaml", {}, "reject", "X", "fault")),
        judge(Case("Z2", "field", {"odd": 1}, "reject", "X", "fault")),
    ]
    assert [row["verdict"] for row in rows] == ["not_yet", "not_yet"]


def test_the_command_gives_the_shape_that_all_experiments_share():
    answer = CliRunner().invoke(app, ["lab", "cases", str(FILE), "--json"])
    result = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert result["ok"] is True
    assert set(result) >= {"experiment", "inputs", "denominators", "figures", "violations", "ok"}
    assert result["denominators"]["disagrees"] == 0
    assert result["denominators"]["agrees"] == len(CASES) - len(NOT_YET)
    assert result["figures"]["siblings_admitted"] == result["denominators"]["siblings"]


def test_a_line_that_is_no_case_is_an_error_with_its_number(tmp_path):
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": "A"}\nnot json\n')
    with pytest.raises(Exception) as caught:
        run(file)
    assert [problem.line for problem in caught.value.problems] == [1, 2]
