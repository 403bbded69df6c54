"""Whatever bash does is in the plan: made-up texts are planned, then run by the real bash under strace, and compared.

- The one deadly error is an effect that happened and was in no atom: none, over all texts that are not refused.
- Texts that only running could tell of (scripts of their own) are planned, and not run.
"""

import os
import random
import shutil

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import shell_case
import shell_grammar
from cxi.errors import Refused

MANY = int(os.environ.get("CXI_SHELL_TEXTS", "5000"))


def deep(base):
    """A root with folders above it that texts may leave it into."""
    return base / "1/2/3/4/5/6/7/8/root"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    return tmp_path_factory.mktemp("shell").resolve()


def compare(text: str, base) -> str:
    """Plan and run one text; what became of it."""
    root = deep(base)
    shell_case.clear(root)
    shell_grammar.build(root)
    effect = shell_case.plan(text, root)
    if isinstance(effect, Refused):
        return "refused"
    if any(atom.attributes.get("inputs_writable") for atom in effect.atoms):
        return "opaque"
    happened = shell_case.run(text, root, base / "strace.log")
    missed = shell_case.misses(effect, happened, root)
    assert not missed, f"{text!r}: {missed}"
    return "exact" if not shell_case.extras(effect, happened) else "bounded"


@settings(max_examples=100, phases=(Phase.explicit, Phase.generate))  # each example runs programs: none is made smaller
@given(data=st.data())
def test_nothing_happens_that_is_not_in_the_plan(place, data):
    compare(shell_grammar.text(lambda options: data.draw(st.sampled_from(options))), place)


@pytest.mark.slow
def test_nothing_happens_that_is_not_in_the_plan_of_thousands_of_texts(place):
    counts: dict[str, int] = {}
    number = 0
    while counts.get("exact", 0) + counts.get("bounded", 0) < MANY:
        source = random.Random(number)
        became = compare(shell_grammar.text(source.choice), place)
        counts[became] = counts.get(became, 0) + 1
        number += 1
    print(number, counts)
    assert counts["refused"] < number / 2


@settings(max_examples=100)
@given(data=st.data())
def test_a_plan_reads_the_same_snapshot_the_same_way(place, data):
    text = shell_grammar.text(lambda options: data.draw(st.sampled_from(options)))
    root = deep(place)
    shell_case.clear(root)
    shell_grammar.build(root)
    first, second = shell_case.plan(text, root), shell_case.plan(text, root)
    assert first == second


@settings(max_examples=200)
@given(st.text(alphabet=st.sampled_from(list("ab $\"'`\\(){}[]<>|&;\n\t#*?~=!%-+/.,:0é\u200b\0")), max_size=60))
def test_any_characters_give_a_plan_or_a_refusal(place, text):
    root = deep(place)
    root.mkdir(parents=True, exist_ok=True)
    result = shell_case.plan(text, root)
    assert isinstance(result, Refused) or result.adapter == "shell/1"
