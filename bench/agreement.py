"""Does our own evaluator ever decide otherwise than Cedar does over the whole set of policies?

- Policies and requests are drawn as the property tests draw them (`tests/policy_case.py`), sets of 2 to 40 policies over one, two
  or all of nine actions; about one request in seven does not conform to the schema.
- Answers are compared whole: decision, policies named, codes and texts. Only where Cedar itself names now this, now that of
  several things that do not fit the schema, is its choice left out.
- Half of the sets are filed by their needs, however few they are, so that the index is tried as hard as the evaluator.

    python bench/agreement.py [--requests 1000000] [--each 400] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cxi.errors import Refused
from cxi.policy import index
from cxi.policy.base import Permitted
from cxi.policy.monitor import CedarMonitor
from policy_case import ASKED, alike, policies, request


def kind(answer: Permitted | Refused) -> str:
    return "permitted" if isinstance(answer, Permitted) else " + ".join(sorted(set(answer.codes)))


def compare(seed: int, each: int, counted: Counter[str], answers: Counter[str]) -> None:
    """One set of policies."""
    draw = Random(seed)
    about = draw.sample(list(ASKED), draw.choice([1, 2, len(ASKED)]))
    registry = policies(draw, draw.choice([2, 5, 10, 20, 40]), about)
    with patch.object(index, "_FEW", draw.choice([0, 16])):
        own = registry.monitor()
    whole = CedarMonitor(registry, whole=True)
    ask, asked = own._ask, Counter[str]()  # noqa: SLF001  # how often Cedar was asked is heard

    def hear(*given: object) -> Permitted | Refused:
        asked["cedar"] += 1
        return ask(*given)  # type: ignore[arg-type]

    counted["sets"] += 1
    counted["policies"] += len(registry.policies)
    with patch.object(own, "_ask", hear):
        for _ in range(each):
            one = request(draw, about)
            mine, cedars = own.decide(one), whole.decide(one)
            answers[kind(cedars)] += 1
            counted["requests"] += 1
            if isinstance(mine, Permitted) is not isinstance(cedars, Permitted):
                counted["differing decisions"] += 1
            if not alike(mine, cedars):
                counted["differing answers"] += 1
                print(f"seed {seed}: {one}\n  own:   {mine}\n  cedar: {cedars}", file=sys.stderr)
    counted["put to Cedar by the evaluator"] += asked["cedar"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counted = Counter({"differing decisions": 0, "differing answers": 0})
    answers: Counter[str] = Counter()
    start, seed = time.process_time(), options.seed * 1_000_000_000
    while counted["requests"] < options.requests:
        compare(seed, options.each, counted, answers)
        seed += 1
    for name, count in (*counted.items(), *(("answer: " + name, count) for name, count in answers.most_common())):
        print(f"{count:>10,}  {name}")
    print(f"{time.process_time() - start:>10,.0f}  seconds of CPU")
    return 1 if counted["differing answers"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
