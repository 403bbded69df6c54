"""`vectors/gate.json`: the worked example's proposed calls, played from the file alone, come to the same decisions."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "vectors"
BODY: dict[str, Any] = json.loads((FOLDER / "gate.json").read_text(encoding="utf-8"))
ANSWERS = ("decision", "codes", "fields", "atoms", "grant")


def test_the_gate_vectors_are_what_their_generator_writes() -> None:
    done = subprocess.run([sys.executable, FOLDER / "generate_gate.py"], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == (FOLDER / "gate.json").read_text(encoding="utf-8")


def test_each_proposed_call_comes_to_the_decision_of_its_vector() -> None:
    generator = runpy.run_path(str(FOLDER / "generate_gate.py"))
    world = generator["opened"]
    with world() as opened:
        for vector in BODY["vectors"]:
            step = {key: value for key, value in vector.items() if key not in ANSWERS}
            found = opened.play(step) or {}
            assert found == {key: vector[key] for key in ANSWERS if key in vector}, step


def test_the_vectors_hold_every_kind_of_decision() -> None:
    decisions = {vector["decision"] for vector in BODY["vectors"] if "decision" in vector}
    assert decisions == {"admitted", "refused", "recorded", "no-op", "failed"}
    codes = {code for vector in BODY["vectors"] for code in vector.get("codes", ())}
    assert codes >= {
        "FIELD_NO_AUTHORITY",
        "EFFECT_FORBIDDEN",
        "GRANT_MISSING",
        "EVENT_REPEATED",
        "SNAPSHOT_CHANGED",
        "OUTCOME_UNKNOWN",
    }
    for vector in BODY["vectors"]:
        if "decision" in vector:
            assert bool(vector["codes"]) is (vector["decision"] in ("refused", "failed"))
