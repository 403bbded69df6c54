"""Evidence is present exactly while it holds, and absent otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from authority_case import MemoryWorld, called, contract_of, outsider, protected, snapshot_of
from cxi.authority.contract import Origin, ResultContract, Writer
from cxi.authority.evidence import Evidence, EvidenceSource, collect, present
from cxi.canonical import JsonValue

HEAD = "9c0e" * 10
OTHER = "1234" * 10
READ = contract_of(
    protected("limit", "Integer", (Origin.ANYONE,), required=False, narrows=True),
    name="ci.get_report",
    sink=False,
    result=ResultContract((("$.run", Writer.PLATFORM), ("$.run.note", Writer.OUTSIDER)), complete="$.complete"),
)
SOURCE = EvidenceSource("test-run", "ci.get_report", "$.run", "commit", 60.0, MappingProxyType({"passed": "Long"}))
RUN: dict[str, JsonValue] = {"commit": HEAD, "result": "passed", "passed": 7, "revision": 3, "note": "x", "time": "today"}
WORLD = MemoryWorld(git={("resolve", "HEAD"): f"{HEAD}\n".encode()})


def read(
    run: JsonValue, source: EvidenceSource = SOURCE, arguments: JsonValue | None = None, **more: JsonValue
) -> Evidence | None:
    result = {"structuredContent": {"run": run, "complete": True, **more}}
    return collect(source, READ, called(READ, arguments or {}), result, outsider("…"), 100.0)


def shown(*evidence: Evidence, now: float = 110.0, world: MemoryWorld = WORLD) -> Mapping[str, Mapping[str, Any]]:
    return present(evidence, snapshot_of(world), now)


def one() -> Evidence:
    found = read(RUN)
    assert found is not None
    return found


def test_a_policy_sees_the_record_under_an_identifier() -> None:
    assert shown(one()) == {
        "test_run": {
            "result": "passed",
            "issuer": "ci.get_report",
            "subject": HEAD,
            "revision": "3",
            "time": 100,
            "expires": 160,
            "passed": 7,
        }
    }


def test_evidence_about_another_commit_is_absent() -> None:
    for head in (OTHER.encode(), b"", None):
        git = {} if head is None else {("resolve", "HEAD"): head}
        assert shown(one(), world=MemoryWorld(git=git)) == {}


@pytest.mark.parametrize(("now", "there"), [(100.0, True), (159.9, True), (160.0, False), (99.0, False)])
def test_evidence_is_present_between_its_time_and_its_expiry(now: float, there: bool) -> None:
    assert bool(shown(one(), now=now)) is there


def test_the_newest_of_one_name_speaks_alone() -> None:
    failed = replace(one(), time=105.0, attributes={"result": "failed"})
    assert shown(one(), failed)["test_run"]["result"] == "failed"
    assert shown(failed, one())["test_run"]["result"] == "failed"
    assert shown(one(), replace(failed, subject=OTHER)) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"commit": HEAD[:7]},
        {"commit": HEAD.upper()},
        {"commit": 7},
        {"commit": f"{HEAD}\n"},
        {"passed": "7"},
        {"passed": True},
        {"passed": None},
    ],
)
def test_a_record_with_a_wrong_attribute_is_absent(change: dict[str, JsonValue]) -> None:
    assert read({**RUN, **change}) is None


@pytest.mark.parametrize("run", [None, [], 7, {}, [RUN], {"commit": HEAD}])
def test_a_record_of_another_shape_is_absent(run: JsonValue) -> None:
    assert read(run) is None


def test_a_partial_read_is_no_evidence() -> None:
    assert read(RUN, arguments={"limit": 1}) is None
    assert read(RUN, complete=False) is None


def test_an_outsiders_attribute_is_no_evidence() -> None:
    assert read(RUN, replace(SOURCE, attributes={"note": "String"})) is None
    assert read(RUN, replace(SOURCE, position="$.other", attributes={}), other=RUN) is None


def test_a_selection_of_several_records_is_no_evidence() -> None:
    contract = replace(READ, result=ResultContract((("$.runs", Writer.PLATFORM),)))
    source = replace(SOURCE, position="$.runs[*]")
    for runs, there in (([RUN], True), ([RUN, {**RUN, "result": "failed"}], False), ([], False)):
        found = collect(source, contract, called(contract, {}), {"structuredContent": {"runs": runs}}, outsider("…"), 0.0)
        assert (found is not None) is there


def test_evidence_about_nothing_in_particular_needs_no_commit() -> None:
    found = read("open", replace(SOURCE, subject="none", attributes={}))
    assert found is not None
    assert shown(found, world=MemoryWorld())["test_run"]["result"] == "open"
    assert read(RUN, replace(SOURCE, subject="planet")) is None


def test_an_error_is_no_evidence() -> None:
    result = {"isError": True, "structuredContent": {"run": RUN, "complete": True}}
    assert collect(SOURCE, READ, called(READ, {}), result, outsider("…"), 0.0) is None


def test_the_world_is_asked_only_for_evidence_about_a_commit() -> None:
    snapshot = snapshot_of(WORLD)
    present((), snapshot, 0.0)
    assert dict(snapshot.reads) == {}
