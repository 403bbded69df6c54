"""The fault experiment finds nothing in the real ledger, and finds it where a ledger is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cxi.errors import Code
from cxi.lab import ledger_faults
from cxi.lab.faults import contention, kill, paper, postgres, storage, worker
from cxi.lab.faults.delivery import Delivery
from cxi.lab.faults.ground import Plan, SqliteGround, Tally, site
from cxi.lab.faults.postgres import Cut, PostgresGround
from cxi.lab.postgres_server import Unavailable, find_programs, run_as

SHORT = Plan(seconds=3.0, seed=7)


def clean(found: Iterable[Tally]) -> list[Tally]:
    done = list(found)
    assert [tally.violations for tally in done if tally.violations] == []
    return done


def test_the_ten_cases_have_no_duplicate() -> None:
    done = clean(paper.paper(SqliteGround(), SHORT))
    assert len(done) == 10
    assert all(tally.effects == tally.leases for tally in done)
    assert sum(tally.recorded for tally in done) == 2


@pytest.mark.parametrize("point", [worker.POINTS[1], worker.POINTS[3], worker.POINTS[5]])
def test_killed_between_the_steps_the_event_happens_once(point: str) -> None:
    with site(SqliteGround(), point) as at:
        kill._die_and_deliver_again(at, {"at": point}, mode=kill.MODES.get(point, "do"))
    (tally,) = clean([at.tally])
    assert (tally.killed, tally.effects, tally.refusals[Code.OUTCOME_UNKNOWN]) == (1, 1, 1)


@pytest.mark.parametrize("die", [{"in": "consume", "statement": 6}, {"in": "settle", "statement": 3}])
def test_killed_inside_a_transaction_the_event_happens_once(die: dict[str, Any]) -> None:
    with site(SqliteGround(), "inside") as at:
        kill._die_and_deliver_again(at, die)
    (tally,) = clean([at.tally])
    assert (tally.killed, tally.effects) == (1, 1)


@pytest.mark.slow
def test_killed_at_every_step_the_event_happens_once() -> None:
    assert len(clean(kill.kill_points(SqliteGround(), SHORT))) > 20


def test_killed_at_random_instants_nothing_acknowledged_is_lost() -> None:
    (tally,) = clean(kill.kill_at_random(SqliteGround(), Plan(seconds=1.0)))
    assert tally.killed >= 3


def test_every_contended_key_has_one_winner() -> None:
    (tally,) = clean(contention.contention(SqliteGround(), Plan(consumes=300)))
    assert (tally.tried, tally.leases, tally.effects) == (600, 300, 300)


@pytest.mark.parametrize("case", [contention.duplicates, contention.out_of_order], ids=["duplicates", "out of order"])
def test_answers_in_any_order_have_one_effect_each(case: Callable[..., list[Tally]]) -> None:
    (tally,) = clean(case(SqliteGround(), SHORT))
    assert tally.effects == tally.leases


@pytest.mark.parametrize(
    "case",
    [storage.clock_jumps, storage.limited_file, storage.full_disk, storage.read_only, storage.damaged_page, storage.lost_end],
    ids=lambda case: case.__name__,
)
def test_broken_storage_and_clocks_have_no_second_effect(case: Callable[..., Tally]) -> None:
    (tally,) = clean([case(SqliteGround(), SHORT)])
    assert tally.tried or tally.how.startswith("not made")


def test_the_result_has_the_shape_of_every_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_faults, "PARTS", (contention.out_of_order,))
    result = ledger_faults.run(SqliteGround(), SHORT)
    assert {"experiment", "inputs", "denominators", "figures", "violations", "ok"} <= result.keys()
    assert (result["ok"], result["denominators"]["cases"], result["inputs"]["seeds"]) == (True, 1, [7])


def test_an_interrupt_gives_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_ground: object, _plan: object) -> Iterator[Tally]:
        yield Tally("before")
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_faults, "PARTS", (contention.out_of_order, interrupted))
    result = ledger_faults.run(SqliteGround(), SHORT)
    assert (result["interrupted"], result["ok"], len(result["cases"])) == (True, False, 2)


# --- PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresGround]:
    try:
        find_programs(), run_as()
    except Unavailable as error:
        pytest.skip(str(error))
    with PostgresGround.started() as found:
        yield found


def test_a_process_killed_over_postgres_has_one_effect(server: PostgresGround) -> None:
    with site(server, "killed") as at:
        kill._die_and_deliver_again(at, {"at": worker.POINTS[5]})
    (tally,) = clean([at.tally])
    assert (tally.killed, tally.effects) == (1, 1)


@pytest.mark.parametrize(("step", "cut"), [("consume", Cut.BEFORE_THE_ANSWER), ("settle", Cut.WITHIN_THE_ANSWER)])
def test_a_connection_that_is_cut_has_one_effect(server: PostgresGround, step: str, cut: Cut) -> None:
    (tally,) = clean([postgres._cut_once(server, SHORT, step, cut)])
    assert tally.effects == 2


def test_every_contended_key_over_postgres_has_one_winner(server: PostgresGround) -> None:
    (tally,) = clean(contention.contention(server, Plan(consumes=60)))
    assert (tally.tried, tally.leases, tally.effects) == (120, 60, 60)


@pytest.mark.slow
def test_all_faults_over_postgres_have_one_effect(server: PostgresGround) -> None:
    result = ledger_faults.run(server, SHORT)
    assert (result["violations"], result["ok"]) == ([], True)
    assert result["denominators"]["cases"] > 25


# --- the experiment finds what is broken


def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, patch: str) -> None:
    """Break the ledger, in this process and in those that it starts."""
    (tmp_path / "sitecustomize.py").write_text(patch, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_ledger_that_forgets_what_is_used_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cxi.ledger.sqlite.examine", lambda _database, _manifest, _draw, time: time)
    done = list(paper.paper(SqliteGround(), SHORT))
    assert sum(bool(tally.violations) for tally in done) >= 8


def test_a_recovery_that_says_failed_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    patch = """
import cxi.ledger.sqlite as sqlite
step = sqlite.step
sqlite.step = lambda state, event: step(state, sqlite.Event.SETTLED_FAILED if event is sqlite.Event.WRITER_GONE else event)
"""
    broken(monkeypatch, tmp_path, patch)
    with site(SqliteGround(), "broken") as at:
        kill._die_and_deliver_again(at, {"at": worker.POINTS[5]})
    assert at.tally.violations


def test_an_effect_without_a_lease_and_a_second_one_are_found() -> None:
    with site(SqliteGround(), "broken") as at:
        ledger = at.ledger()
        lease = at.perform(ledger, Delivery("pay", "a-1"))
        worker.launch(at.sink.address, lease, "do")  # type: ignore[arg-type]
        with at.sink.file.open("a") as effects:
            effects.write("/repo/other a-9\n")
        at.shut()
        at.check()
    assert len(at.tally.violations) == 3  # a-1 twice: the call and its event; a-9: no lease


def test_a_lost_acknowledgement_is_found() -> None:
    with site(SqliteGround(), "broken") as at:
        at.acknowledged.append("a-1")
        at.check()
    assert len(at.tally.violations) == 1
