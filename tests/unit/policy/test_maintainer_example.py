"""The worked example's policies decide as its table says."""

import pytest

from cxi.errors import Refused
from cxi.policy.base import Permitted
from cxi.policy.registry import load, shipped


@pytest.fixture(scope="module")
def monitor(schema, maintainer):
    return load([maintainer, shipped()], schema, agents=["maintainer", "reviewer"]).monitor()


@pytest.mark.parametrize(
    ("kind", "target", "by"),
    [
        ("fs.write", "src/tax.py", ("src-and-tests",)),
        ("fs.create", "tests/deep/er/test_tax.py", ("src-and-tests",)),
        ("fs.read", "README.md", ("cxi/reads",)),
        ("db.select", "tickets", ("cxi/reads",)),
        ("git.index", "src/tax.py", ("maintainer-commits",)),
        ("git.commit", "main", ("maintainer-commits",)),
    ],
)
def test_ordinary_work_is_permitted_by_the_policy_that_says_so(monitor, ask, kind, target, by):
    assert monitor.decide(ask(kind, target)) == Permitted(by)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("fs.write", ".github/workflows/ci.yml"),
        ("fs.write", "srcs/tax.py"),
        ("fs.write", "/src/tax.py"),
        ("fs.write", "src"),  # the folder's own name as a file
        ("fs.delete", "src/tax.py"),
        ("fs.create", ".github/tax.py"),
        ("git.push", "origin"),
        ("db.update", "users"),
        ("net.connect", "example.com:443"),
        ("http.request", "GET https://example.com:443/"),
    ],
)
def test_what_no_policy_permits_is_refused(monitor, ask, kind, target):
    answer = monitor.decide(ask(kind, target))
    assert isinstance(answer, Refused)
    assert answer.codes == ("EFFECT_FORBIDDEN",)


def test_another_agent_gets_nothing_of_it(monitor, ask):
    answer = monitor.decide(ask("fs.write", "src/tax.py", agent="reviewer"))
    assert isinstance(answer, Refused)
    assert answer.codes == ("EFFECT_FORBIDDEN",)


def test_a_ticket_is_not_updated_without_evidence_and_the_text_is_quoted(monitor, ask, maintainer):
    answer = monitor.decide(ask("db.update", "tickets", {"rows": ["7"]}))
    assert isinstance(answer, Refused)
    assert answer.codes == ("POLICY_FORBIDS",)
    [reason] = answer.reasons
    assert "verified-before-closing" in reason.detail
    assert reason.needs == "A ticket is closed only when the test run for the current commit passed."
    assert reason.needs in reason.detail
    assert reason.where == "db.update tickets"


def test_a_failed_run_is_no_evidence_and_a_passed_one_is(monitor, ask, test_run):
    failed = monitor.decide(ask("db.update", "tickets", evidence=test_run("failed")))
    assert isinstance(failed, Refused)
    assert failed.codes == ("POLICY_FORBIDS",)
    assert monitor.decide(ask("db.update", "tickets", evidence=test_run("passed"))) == Permitted(("maintainer-updates-tickets",))
