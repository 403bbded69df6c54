import pytest

from cxi.effects.base import Atom, Effect
from cxi.effects.entity import ENTITY_OF, ancestors, atom_request, call_request
from cxi.errors import Refused
from cxi.manifest import Assurance, CanonicalCall, FieldValue, Role
from cxi.policy.base import PolicyRequest
from cxi.policy.schema import ToolSurface
from cxi.policy.vocabulary import ENTITIES, LONG, STRING, STRINGS
from cxi.values.base import Root, Value

ROOT = Root("/home/u/repo", None)  # nothing looks
STANDING = {"agent": "maintainer", "root": ROOT, "evidence": {}, "approval": False, "task": None}


def ask(atom, root=ROOT):
    return atom_request(atom, **{**STANDING, "root": root}, tool="files.x", assurance=Assurance.ATOMIC)


def codes(answer):
    assert isinstance(answer, Refused)
    return answer.codes


@pytest.mark.parametrize(
    ("target", "above"),
    [
        ("src/a/b.py", ["src/a", "src", "."]),
        ("b.py", ["."]),
        (".", []),
        ("/etc/ssl/x", ["/etc/ssl", "/etc", "/"]),
        ("/x", ["/"]),
        ("/", []),
    ],
)
def test_a_path_is_in_every_folder_above_it(target, above):
    request = ask(Atom("fs.write", target, {}))
    assert (request.resource.type, request.resource.id) == ("File", target)
    assert list(request.resource.parents) == [("Folder", folder) for folder in above]
    assert [folder.id for folder in request.ancestors] == above
    assert [folder.id for folder in ancestors(target, ROOT)] == above
    for position, folder in enumerate(request.ancestors):
        assert [name for _, name in folder.parents] == above[position + 1 :]


@pytest.mark.parametrize(
    ("target", "name", "extension"),
    [("src/a.tar.gz", "a.tar.gz", "gz"), ("src/.env", ".env", ""), ("Makefile", "Makefile", ""), ("a.", "a.", ""), (".", "", "")],
)
def test_a_file_has_its_name_and_extension(target, name, extension):
    given = ask(Atom("fs.write", target, {})).resource.attributes
    assert (given["path"], given["name"], given["extension"]) == (target, name, extension)


def test_folded_attributes_have_one_spelling():
    for spelled in (".GIT/Hooks/x", ".g\u200cit/hooks/x", ".gıt/x".replace("ı", "i")):
        assert ".git" in ask(Atom("fs.write", spelled, {})).resource.attributes["parts_folded"]
    composed = ask(Atom("fs.write", "caf\u00e9", {})).resource.attributes["name_folded"]
    assert composed == ask(Atom("fs.write", "CAFE\u0301", {})).resource.attributes["name_folded"]
    assert ask(Atom("fs.write", ".ſſh/x", {})).resource.attributes["parts_folded"] == [".ssh", "x"]


def test_a_path_knows_its_side_of_the_root_and_the_case_rule():
    outside = ask(Atom("fs.write", "/etc/x", {}), Root("/repo", None, case_sensitive=False)).resource.attributes
    inside = ask(Atom("fs.write", "x", {})).resource.attributes
    assert (outside["inside_root"], outside["case_sensitive"]) == (False, False)
    assert (inside["inside_root"], inside["case_sensitive"]) == (True, True)


def test_attributes_that_the_vocabulary_does_not_type_are_left_out():
    request = ask(Atom("fs.write", "a", {"before": "sha256:1", "secret": "x", "__entity": {"type": "Agent", "id": "root"}}))
    assert request.context["effect"] == {"before": "sha256:1", "tool": "files.x", "assurance": "atomic"}


def test_an_attribute_cannot_stand_in_for_what_the_gate_knows():
    request = ask(Atom("fs.write", "a", {"tool": "other", "assurance": "declared", "pattern": "x"}))
    assert request.context["effect"] == {"tool": "files.x", "assurance": "atomic"}


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("fs.write", {"before": 7}),
        ("fs.symlink", {"to": ["x"]}),
        ("proc.exec", {"inputs_writable": "no"}),
        ("db.update", {"rows": [7]}),
        ("db.update", {"rows": "7"}),
    ],
)
def test_an_attribute_of_another_type_is_refused(kind, attributes):
    assert codes(ask(Atom(kind, "a", attributes))) == ("POLICY_ERROR",)


def test_an_unknown_attribute_value_is_absent():
    assert "after" not in ask(Atom("fs.write", "a", {"after": None})).context["effect"]


def test_arguments_are_also_one_line():
    given = ask(Atom("proc.exec", "sh", {"argv": ["sh", "-c", "a b"]})).context["effect"]
    assert (given["argv"], given["command"]) == (["sh", "-c", "a b"], "sh -c 'a b'")


def test_the_inputs_of_a_program_are_writable_unless_an_adapter_proved_otherwise():
    assert ask(Atom("proc.exec", "sh", {"argv": ["sh"]})).context["effect"]["inputs_writable"] is True
    assert ask(Atom("proc.exec", "sh", {"inputs_writable": None})).context["effect"]["inputs_writable"] is True
    assert ask(Atom("proc.exec", "sh", {"inputs_writable": False})).context["effect"]["inputs_writable"] is False
    assert "inputs_writable" not in ask(Atom("fs.write", "a", {})).context["effect"]


@pytest.mark.parametrize("kind", ["fs.wrote", "fs.write_any", "tool:files.x", ""])
def test_an_unknown_kind_and_a_pattern_kind_as_atom_are_refused(kind):
    assert codes(ask(Atom(kind, "a", {}))) == ("EFFECT_UNSUPPORTED",)


@pytest.mark.parametrize(
    ("glob", "folder"),
    [("src/*.py", "src"), ("*", "."), ("src/a/**", "src/a"), ("/etc/*.d/x", "/etc"), ("/*", "/"), ("a[b/c", ".")],
)
def test_a_pattern_is_its_own_kind_on_its_longest_literal_folder(glob, folder):
    request = ask(Atom("fs.write", glob, {}, pattern=True), Root("/repo/x", None) if glob != "/*" else Root("", None))
    if glob == "/*":
        assert codes(request) == ("EFFECT_INEXACT",)  # it reaches into any root
        return
    assert isinstance(request, PolicyRequest)
    assert (request.action, request.resource.type, request.resource.id) == ("fs.write_any", "Folder", folder)
    assert request.context["effect"]["pattern"] == glob


@pytest.mark.parametrize(
    "glob", ["../*", "src/../*", "src/*/../x", "a//*", "./*", "/home/*", "/home/u/*", "/home/u/repo/*", "/**", "/HOME/u/*"]
)
def test_a_pattern_with_no_certain_place_is_refused(glob):
    assert codes(ask(Atom("fs.write", glob, {}, pattern=True))) == ("EFFECT_INEXACT",)


@pytest.mark.parametrize("kind", ["db.update", "net.connect", "proc.exec", "git.push", "http.request"])
def test_what_has_no_pattern_kind_is_refused_as_a_pattern(kind):
    assert codes(ask(Atom(kind, "a*", {}, pattern=True))) == ("EFFECT_INEXACT",)


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        ("net.connect", "example.com:443", {"host": "example.com", "port": 443}),
        ("net.connect", "[::1]:80", {"host": "[::1]", "port": 80}),
        ("net.connect", "example.com", {"host": "example.com"}),
        ("proc.exec", "git", {"name": "git", "on_path": True}),
        ("proc.exec", "/opt/x/git", {"name": "git", "on_path": False}),
        ("mail.send", "a@b@example.com", {"address": "a@b@example.com", "local": "a@b", "domain": "example.com"}),
        ("pkg.install", "npm:@scope/x@^1.2", {"ecosystem": "npm", "name": "@scope/x", "constraint": "^1.2"}),
        ("pkg.install", "pypi:requests@>=2", {"ecosystem": "pypi", "name": "requests", "constraint": ">=2"}),
        ("pkg.install", "pypi:requests", {"ecosystem": "pypi", "name": "requests", "constraint": ""}),
        ("db.session", "set:search_path", {"kind": "set", "name": "search_path"}),
        ("db.update", "audit.log", {"name": "log", "namespace": "audit", "kind": "table"}),
        ("ci.permission", "build:contents=write", {"name": "build:contents=write", "job": "build"}),
        ("ci.step", "build/uses:a/b@v1", {"name": "build/uses:a/b@v1", "job": "build"}),
        ("git.commit", "main", {"name": "main"}),
    ],
)
def test_other_targets_have_their_parts(kind, target, expected):
    assert ask(Atom(kind, target, {})).resource.attributes == expected


def test_a_url_has_its_parts_and_its_method():
    given = ask(Atom("http.request", "POST https://example.com:8443/a/b", {})).resource.attributes
    assert {key: given[key] for key in ("method", "scheme", "host", "port", "path")} == {
        "method": "POST",
        "scheme": "https",
        "host": "example.com",
        "port": 8443,
        "path": "/a/b",
    }
    assert ask(Atom("text.link", "http://[broken", {})).resource.attributes["host"] == ""


@pytest.mark.parametrize(
    ("target", "parents"),
    [
        ("table:tickets", ["tickets"]),
        ("trigger:audit.t.x", ["audit.t"]),
        ("function:f(int)", []),
        ("view:v", ["v"]),
        ("index:i", []),
    ],
)
def test_what_changes_a_table_is_in_it(target, parents):
    request = ask(Atom("db.ddl", target, {}))
    assert [name for _, name in request.resource.parents] == parents
    assert [table.id for table in request.ancestors] == parents


def test_every_entity_type_has_a_maker_and_it_gives_what_is_always_known():
    assert set(ENTITY_OF) == set(ENTITIES)
    for name, make in ENTITY_OF.items():
        for text in ("", "x", "a:b", "a b://c", "/x/y", "a@b"):
            given = set(make(text, ROOT).attributes)
            assert (
                {key for key, of in ENTITIES[name].attributes.items() if of.required} <= given <= set(ENTITIES[name].attributes)
            )


class Contract:
    name = "files.write"

    def __init__(self, *fields, target=("Server", "files")):
        self.fields = dict.fromkeys(fields)
        self.target = target


def leaf(path, value, contract=""):
    return FieldValue(path, contract or path, Role.PROTECTED, Value("Text", value, value))


def call(*leaves):
    return CanonicalCall("files", "write", leaves, {})


SURFACE = ToolSurface(
    "files.write", "Server", {"path": STRING, "to[].name": STRINGS, "n": LONG.optional, "q.rows": STRINGS.optional}
)


def test_a_call_is_on_the_server_and_shows_its_protected_fields_by_type():
    made = call_request(
        call(
            leaf("path", "a"),
            leaf("to[0].name", "x", "to[].name"),
            leaf("to[1].name", "y", "to[].name"),
            leaf("n", 3),
            leaf("z", "w"),
        ),
        Contract("path", "to[].name", "n", "z"),
        SURFACE,
        **{**STANDING, "task": "fix-bug", "evidence": {"test-run": {"result": "passed"}}, "approval": True},
        effect=Effect("file/1", (Atom("fs.write", "a", {}),), Assurance.CHECKED, (leaf("q.rows", 7, "q.rows"),)),
    )
    assert (made.action, made.resource.type, made.resource.id) == ("tool:files.write", "Server", "files")
    assert made.context == {
        "field": {"path": "a", "to_name": ["x", "y"], "n": 3, "q_rows": ["7"]},
        "evidence": {"test_run": {"result": "passed"}},
        "approval": {"given": True},
        "task": {"name": "fix-bug", "open": True},
        "effect": {"kinds": ["fs.write"], "assurance": "checked"},
    }


@pytest.mark.parametrize(
    "leaves", [(leaf("path", ["a"]),), (leaf("path", True),), (leaf("n", "3"),), (leaf("path", "a"), leaf("path", "b"))]
)
def test_a_field_that_is_not_of_its_type_is_refused(leaves):
    assert codes(call_request(call(*leaves), Contract("path", "n"), SURFACE, **STANDING)) == ("POLICY_ERROR",)


def test_a_call_can_be_on_what_a_field_names():
    contract = Contract("path", target=("File", "path"))
    made = call_request(call(leaf("path", "src/a.py")), contract, SURFACE, **STANDING)
    assert (made.resource.type, made.resource.id) == ("File", "src/a.py")
    assert ("Folder", "src") in made.resource.parents
    assert codes(call_request(call(), contract, SURFACE, **STANDING)) == ("FIELD_MISSING",)
    assert codes(call_request(call(leaf("path", "a"), leaf("path", "b")), contract, SURFACE, **STANDING)) == ("FIELD_AMBIGUOUS",)
    assert codes(call_request(call(leaf("path", 7)), contract, SURFACE, **STANDING)) == ("FIELD_AMBIGUOUS",)
