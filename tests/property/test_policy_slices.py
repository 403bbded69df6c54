"""A slice decides as the whole set does, and a glob is permitted only if no path that it names is forbidden."""

import re
from functools import cache

from cedarpy import validate_policies
from hypothesis import given
from hypothesis import strategies as st

from cxi.effects.base import Atom
from cxi.effects.entity import atom_request
from cxi.errors import Refused
from cxi.manifest import Assurance
from cxi.policy.base import Permitted, PolicyRequest
from cxi.policy.monitor import CedarMonitor
from cxi.policy.registry import PolicySource, load
from cxi.policy.schema import EvidenceSurface, make_schema, parse
from cxi.values.base import Root

ASKED = ["fs.write", "fs.read", "fs.delete", "db.update", "fs.write_any"]
WHOLE = make_schema(["a", "b"], [], [EvidenceSurface("run", {})], [])[""]
SCHEMA = {"": {**WHOLE, "actions": {kind: WHOLE["actions"][kind] for kind in ASKED}}}  # validation is quicker over few actions
ROOT = Root("/repo", None)  # nothing looks

NAMES = ["src", "lib", "x.py", "X.PY", ".env", "k.pem", "a"]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
folders = st.one_of(st.just("."), st.just("/"), paths, paths.map("/{}".format))
targets = st.one_of(paths, paths.map("/{}".format))
pieces = st.sampled_from([*NAMES, "*", "*.py", "x.*", "?.py", "[a-z].p*", "**", ".*", "k*", "s*c"])
globs = st.lists(pieces, min_size=1, max_size=3).map("/".join).filter(lambda glob: re.search(r"[*?\[]", glob))

principals = st.sampled_from(
    ["principal", "principal is Agent", *(f'principal {op} Agent::"{who}"' for op in ("==", "in") for who in "ab")]
)
actions = st.one_of(
    st.just("action"),
    st.sampled_from(ASKED).map('action == Action::"{}"'.format),
    st.lists(st.sampled_from(ASKED), min_size=1, max_size=3).map(
        lambda kinds: f"action in [{', '.join(f'Action::{kind!r}' for kind in kinds)}]".replace("'", '"')
    ),
)
resources = st.one_of(
    st.sampled_from(["resource", "resource is File", "resource is Folder", "resource is Table"]),
    targets.map('resource == File::"{}"'.format),
    folders.map('resource in Folder::"{}"'.format),
    folders.map('resource is File in Folder::"{}"'.format),
    st.just('resource == Table::"tickets"'),
)
ATOMS = st.one_of(
    st.just("true"),
    st.just("context.approval.given"),
    st.just("context.evidence has run"),
    st.just("context has effect"),
    folders.map('resource in Folder::"{}"'.format),
    targets.map('resource == File::"{}"'.format),
    st.sampled_from(["*.pem", "*.py", ".e*", "k*", "*", "x.py", "*s*"]).map(
        'resource has name && resource.name like "{}"'.format
    ),
    st.sampled_from(["a", "b"]).map('principal == Agent::"{}"'.format),
    st.just("resource is File"),
    st.just("(9223372036854775807 + (if context.approval.given then 1 else 0)) > 0"),  # an error where it is given
)


def combine(inner):
    return st.one_of(
        st.tuples(inner, inner).map("({0[0]} && {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} || {0[1]})".format),
        inner.map("!({})".format),
        st.tuples(inner, inner, inner).map("(if {0[0]} then {0[1]} else {0[2]})".format),
    )


conditions = st.recursive(ATOMS.map("({})".format), combine, max_leaves=3)
clauses = st.lists(st.tuples(st.sampled_from(["when", "unless"]), conditions).map("{0[0]} {{ {0[1]} }}".format), max_size=2).map(
    " ".join
)
bodies = st.tuples(st.sampled_from(["permit", "forbid"]), principals, actions, resources, clauses).map(
    "{0[0]} ({0[1]}, {0[2]}, {0[3]}) {0[4]};".format
)


HANDLE = parse(SCHEMA)


@cache
def fits(body: str) -> bool:
    """Whether the policy alone passes validation: not every action goes with every resource."""
    return validate_policies(body, HANDLE).validation_passed


def registry_of(bodies):
    text = "\n".join(f'@id("p{number}") {body}' for number, body in enumerate(bodies))
    return load([PolicySource("p", text)], SCHEMA, agents=["a", "b"])


def request_of(kind, target, agent, approval, *, pattern=False):
    made = atom_request(
        Atom(kind, target, {}, pattern=pattern),
        agent=agent,
        root=ROOT,
        evidence={},
        approval=approval,
        task=None,
        tool="x.y",
        assurance=Assurance.CHECKED,
    )
    assert isinstance(made, PolicyRequest)
    return made


@given(
    st.lists(bodies.filter(fits), min_size=1, max_size=6),
    st.lists(
        st.tuples(
            st.sampled_from(["fs.write", "fs.read", "fs.delete", "db.update"]), targets, st.sampled_from("abc"), st.booleans()
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_a_slice_decides_as_the_whole_set_does(policies, requests):
    registry = registry_of(policies)
    sliced, whole = registry.monitor(), CedarMonitor(registry, whole=True)
    for kind, target, agent, approval in requests:
        request = request_of(kind, "tickets" if kind == "db.update" else target, agent, approval)
        assert sliced.decide(request) == whole.decide(request)


def regex_of(glob: str) -> re.Pattern[str]:
    """The plainest reading of a canonical glob: `*` within a component, `**` over any number of them."""
    out = ""
    for piece in re.findall(r"/\*\*/|^\*\*/|/\*\*$|\*\*|\*|\?|\[[^\]]*\]|.", glob):
        out += {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(
            piece, piece if piece.startswith("[") else re.escape(piece)
        )
    return re.compile(out, re.DOTALL)


@given(
    st.lists(bodies.filter(lambda body: body.startswith("forbid")).filter(fits), min_size=1, max_size=3),
    globs,
    st.lists(paths, min_size=1, max_size=12),
    st.booleans(),
)
def test_a_permitted_glob_names_no_path_that_a_forbid_holds_for(forbids, glob, tried, approval):
    monitor = registry_of(["permit (principal, action, resource);", *forbids]).monitor()
    answer = monitor.decide(request_of("fs.write", glob, "a", approval, pattern=True))
    if isinstance(answer, Permitted):
        read = regex_of(glob)
        for path in (path for path in tried if read.fullmatch(path)):
            exact = monitor.decide(request_of("fs.write", path, "a", approval))
            assert not (isinstance(exact, Refused) and "POLICY_FORBIDS" in exact.codes), (glob, path)
