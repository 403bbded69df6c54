"""The harness of the benches: alternating arms, equal results."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ARMS = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "arms.py"), run_name="bench_arms")
Arm, alternate, report, histogram = ARMS["Arm"], ARMS["alternate"], ARMS["report"], ARMS["histogram"]


def test_arms_alternate_and_take_turns_at_going_first():
    order: list[str] = []
    alternate(Arm("a", lambda: None, lambda: order.append("a")), Arm("b", lambda: None, lambda: order.append("b")), rounds=5)
    assert order[2:] == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]


def test_arms_with_other_results_have_no_ratio(capsys: pytest.CaptureFixture[str]):
    measured = alternate(Arm("a", lambda: 1), Arm("b", lambda: 2), rounds=5, calls=1)
    assert not measured.equal
    assert measured.ratio is None
    assert report(measured, arguments=[]) == 1
    assert "no ratio" in capsys.readouterr().out


def test_fewer_than_five_rounds_are_refused():
    with pytest.raises(ValueError, match="five"):
        alternate(Arm("a", lambda: 1), Arm("b", lambda: 1), rounds=4)


def test_a_durable_figure_is_valid_json_with_its_histogram(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    measured = alternate(Arm("a", lambda: 1), Arm("b", lambda: 1), rounds=5, calls=1, durable_in=tmp_path, inputs={"n": 1})
    assert report(measured, arguments=["--json"]) == 0
    (figure,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["figures"]
    assert sum(count for _, count in figure["fdatasync_ms"]) == 200
    assert figure["ratio"] > 0
    assert figure["inputs"] == {"n": 1}


def test_the_histogram_counts_every_sync_once(tmp_path: Path):
    assert sum(count for _, count in histogram(tmp_path, count=7)) == 7


def test_what_is_done_after_a_call_is_outside_the_clock_and_makes_its_result():
    ticks = iter(range(1000))
    log: list[str] = []

    def after(answer: str) -> str:
        log.append(answer)
        next(ticks)  # would show in the figure
        return answer.upper()

    measured = alternate(
        Arm("a", lambda: "x", after=after), Arm("b", lambda: "X"), rounds=5, calls=2, clock=lambda: float(next(ticks))
    )
    assert measured.equal
    assert measured.rounds == ((1.0, 1.0),) * 5
    assert len(log) == 11
