"""A glob is permitted only by a policy that names its kind, and refused if it could meet a forbid."""

from functools import cache

import pytest

from cxi.effects.base import Atom
from cxi.effects.entity import atom_request
from cxi.errors import Refused
from cxi.manifest import Assurance
from cxi.policy.base import Permitted
from cxi.policy.registry import PolicySource, load, shipped
from cxi.policy.schema import EvidenceSurface, make_schema
from cxi.values.base import Root

SCHEMA = make_schema(["a", "b"], [], [EvidenceSurface("run", {})], [])
ANY = '@id("any") permit (principal, action, resource);'


@cache
def monitor_of(policies, base):
    sources = [PolicySource(str(index), text) for index, text in enumerate(policies)]
    return load([*sources, *([shipped()] if base else [])], SCHEMA, agents=["a", "b"]).monitor()


def decide(glob, *policies, kind="fs.write", base=False, approval=False):
    monitor = monitor_of(policies, base)
    request = atom_request(
        Atom(kind, glob, {}, pattern=True),
        agent="a",
        root=Root("/repo", None),  # type: ignore[arg-type]
        evidence={},
        approval=approval,
        task="t",
        tool="x.y",
        assurance=Assurance.CHECKED,
    )
    return request if isinstance(request, Refused) else monitor.decide(request)


def codes(answer):
    assert isinstance(answer, Refused)
    return answer.codes


def test_a_permit_for_single_files_permits_no_glob():
    permit = '@id("p") permit (principal, action == Action::"fs.write", resource in Folder::"src");'
    assert codes(decide("src/*.py", permit)) == ("EFFECT_FORBIDDEN",)


def test_a_permit_that_names_the_kind_does_on_its_folder_only():
    permit = '@id("p") permit (principal, action == Action::"fs.write_any", resource in Folder::"src");'
    assert decide("src/*.py", permit) == Permitted(("p",))
    assert decide("src/a/**", permit) == Permitted(("p",))
    for wider in ("*", "**", "s*/x", "{src,etc}/*", "*/src/*", "/tmp/src/*"):
        assert codes(decide(wider, permit)) == ("EFFECT_FORBIDDEN",)


FORBIDS_THAT_MEET = [
    (
        "src/*.py",
        'forbid (principal, action == Action::"fs.write", resource in Folder::"src/secret");',
        False,
    ),  # `*` stays in src/
    ("src/**", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src/secret");', True),
    ("src/**/*.py", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src/secret");', True),
    (
        "src/**/a.py",
        'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");',
        True,
    ),  # `**` is no folder too
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),
    ("SRC/*", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),  # one place on some disks
    ("SRC/a/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src");', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource == File::"srcs/a.py");', False),
    ("src/*.py", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.md");', False),
    ("src/[ab].py", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),
    ("src/?.py", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),
    ("src/{a,b}.py", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),
    ("src/{a/b,c}/*", 'forbid (principal, action == Action::"fs.write", resource == File::"src/x");', True),
    ("src/*/b.py", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src/secret");', True),
    ("src/a*/b.py", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src/secret");', False),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::"src");', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::".");', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::"/");', False),
    ("/etc/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::"/");', True),
    ("/etc/*", 'forbid (principal, action == Action::"fs.write", resource in Folder::".");', False),
    ("/etc/*", 'forbid (principal, action == Action::"fs.write", resource) when { !resource.inside_root };', True),
    ("src/\\*", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a.py");', True),
    ("src/@(a|b)", 'forbid (principal, action == Action::"fs.write", resource == File::"src/a");', True),
    ("src/[a/b]c", 'forbid (principal, action == Action::"fs.write", resource == File::"src/bc");', True),
    ("src/*", "forbid (principal, action, resource);", True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource);', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write_any", resource in Folder::"src/x");', True),
    ("src/*", 'forbid (principal, action == Action::"fs.delete", resource);', False),
    ("src/*", 'forbid (principal == Agent::"b", action, resource);', False),
    ("src/*", "forbid (principal, action, resource is Table);", False),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { resource.name like "*.pem" };', True),
    ("src/*.py", 'forbid (principal, action == Action::"fs.write", resource) when { resource.name like "*.pem" };', False),
    ("src/*.PEM", 'forbid (principal, action == Action::"fs.write", resource) when { resource.name_folded like "*.pem" };', True),
    ("src/*.p*", 'forbid (principal, action == Action::"fs.write", resource) when { resource.name like "*.pem" };', True),
    (
        "src/*.\u212aey",
        'forbid (principal, action == Action::"fs.write", resource) when { resource.name_folded like "*.key" };',
        True,
    ),
    ("src/*.py", 'forbid (principal, action == Action::"fs.write", resource) when { resource.extension == "pem" };', False),
    ("src/*.pem", 'forbid (principal, action == Action::"fs.write", resource) when { resource.extension == "pem" };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { resource.path like "*secret*" };', True),
    ("src/*.py", 'forbid (principal, action == Action::"fs.write", resource) when { resource.path like "etc/*" };', False),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) unless { resource in Folder::"src" };', False),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) unless { resource in Folder::"src/a" };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) unless { context.approval.given };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { context has evidence };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) unless { context.evidence has run };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { context.evidence has run };', False),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { context.effect has before };', True),
    ("src/*", 'forbid (principal, action == Action::"fs.write", resource) when { !resource.inside_root };', False),
    (
        "src/*",
        'forbid (principal, action == Action::"fs.write", resource) when { if resource.name == "a" then true else false };',
        True,
    ),
    (
        "src/*.py",
        'forbid (principal, action == Action::"fs.write", resource) when { resource.name == "a" || resource.name like "*.md" };',
        False,
    ),
    (
        "src/*.py",
        'forbid (principal, action == Action::"fs.write", resource) when { resource.name == "a.py" && resource in Folder::"x" };',
        False,
    ),
    (
        "src/*",
        'forbid (principal, action == Action::"fs.write", resource) when { resource in [Folder::"etc", Folder::"src/x"] };',
        True,
    ),
]


@pytest.mark.parametrize(("glob", "forbid", "meets"), FORBIDS_THAT_MEET)
def test_a_glob_is_refused_unless_every_forbid_is_proven_to_miss_it(glob, forbid, meets):
    answer = decide(glob, ANY, '@id("f") @text("No.") ' + forbid)
    if meets:
        assert codes(answer) == ("POLICY_FORBIDS",)
        assert answer.reasons[0].needs == "No."
    else:
        assert answer == Permitted(("any",))


def test_an_approval_that_lifts_a_forbid_lifts_it_for_a_glob():
    forbid = '@id("f") forbid (principal, action == Action::"fs.write", resource) unless { context.approval.given };'
    assert decide("src/*", ANY, forbid, approval=True) == Permitted(("any",))


@pytest.mark.parametrize("glob", ["**", "*", "a/**", ".git/*", "*/config", "*/.git/*", ".g*/hooks/x"])
def test_a_glob_that_could_reach_into_a_git_folder_is_refused(glob):
    kinds = ("fs.write", "fs.delete", "fs.chmod", "fs.rmdir")
    assert [codes(decide(glob, ANY, base=True, kind=kind)) for kind in kinds] == [("POLICY_FORBIDS",)] * len(kinds)


def test_an_ordinary_glob_beside_a_git_folder_is_left_alone():
    assert decide("src/*.py", ANY, base=True) == Permitted(("any",))
    assert decide("build/*.o", ANY, base=True, kind="fs.delete") == Permitted(("any",))


@pytest.mark.parametrize("glob", ["**", "*", ".e*", "config/*.pem", "*/id_rsa", "/home/u/.ssh/*", "/etc/*"])
def test_a_read_that_could_meet_a_secret_is_refused(glob):
    assert codes(decide(glob, base=True, kind="fs.read")) == ("POLICY_FORBIDS",)


def test_a_read_of_what_cannot_be_a_secret_is_permitted():
    assert decide("src/a?c/main.py", base=True, kind="fs.read") == Permitted(("cxi/reads",))
    assert decide("docs/ch[0-9].md", base=True, kind="fs.read") == Permitted(("cxi/reads",))


@pytest.mark.parametrize("glob", ["/**", "/rep*/x", "/repo/*", "../*", "src/../../*", "src/{a/../../etc,b}/*"])
def test_a_glob_that_could_stand_on_both_sides_of_the_root_is_refused(glob):
    assert codes(decide(glob, ANY)) == ("EFFECT_INEXACT",)
