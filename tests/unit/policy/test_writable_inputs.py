"""A rule about programs whose inputs somebody could have written."""

from __future__ import annotations

from cxi.effects.base import Atom
from cxi.effects.entity import atom_request
from cxi.errors import Refused
from cxi.manifest import Assurance
from cxi.policy.base import Permitted, PolicyRequest
from cxi.values.base import Root

RULES = """
@id("runs") @text("x") permit (principal, action == Action::"proc.exec", resource);
@id("untrusted-inputs") @text("x") forbid (principal, action == Action::"proc.exec", resource)
when { context.effect has inputs_writable && context.effect.inputs_writable };
"""


def program(**attributes: bool) -> PolicyRequest:
    request = atom_request(
        Atom("proc.exec", ".git/hooks/pre-commit", {"argv": ["x"], **attributes}),
        agent="maintainer",
        root=Root("/repo", None),  # type: ignore[arg-type]  # nothing looks
        evidence={},
        approval=False,
        task="",
        tool="files.write_file",
        assurance=Assurance.CHECKED,
    )
    assert isinstance(request, PolicyRequest)
    return request


def test_a_forbid_that_reads_whether_inputs_are_writable_fires(monitor_of):
    answer = monitor_of(RULES).decide(program())
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_FORBIDS",)


def test_it_leaves_a_program_alone_of_which_the_opposite_was_proved(monitor_of):
    assert monitor_of(RULES).decide(program(inputs_writable=False)) == Permitted(("runs",))
