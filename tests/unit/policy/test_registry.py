import pytest

from cxi.errors import ConfigError
from cxi.policy.registry import PolicySource, load, shipped

AGENTS = ["maintainer", "reviewer"]
GOOD = '@id("a") permit (principal, action == Action::"fs.write", resource);\n'


def problems(schema, *texts):
    with pytest.raises(ConfigError) as caught:
        load([PolicySource(f"{index}.cedar", text) for index, text in enumerate(texts)], schema, agents=AGENTS)
    return [(problem.file, problem.line) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "policy",
    [
        'permit (principal, action == Action::"fs.write", resource);',  # no @id
        '@id("") permit (principal, action == Action::"fs.write", resource);',
        '@id("two words") permit (principal, action == Action::"fs.write", resource);',
        '@id("b") @reason("x") permit (principal, action == Action::"fs.write", resource);',  # unknown annotation
        '@id("b") @evidence("nosuch") permit (principal, action == Action::"fs.write", resource);',
        '@id("b") permit (principal, action == Action::"fs.wrote", resource);',
        '@id("b") permit (principal, action == Action::"tool:files.nosuch", resource);',
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { resource.pathname == "x" };',
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { context.path == "x" };',
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { context.effect.before == "x" };',  # no `has`
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { resource.name == 3 };',
        '@id("b") permit (principal, action == Action::"fs.write", resource is Table);',
        '@id("b") permit (principal, action == Action::"fs.write", resource == Fyle::"x");',
        '@id("b") permit (principal == Agent::"nobody", action == Action::"fs.write", resource);',
        '@id("b") permit (principal, action, resource) when { principal == Agent::"nobody" };',
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { File::"x".name == "x" };',
        '@id("b") permit (principal, action == Action::"fs.write", resource) when { !(Folder::"a" in Folder::"b") };',
        '@id("b") permit (principal, action, resource is File) when { (if true then resource else File::"x").name == "x" };',
        '@id("b") permit (principal == ?principal, action == Action::"fs.write", resource);',
        '@id("b") permit (principal, action == Action::"fs.write", resource == ?resource);',
        '@id("a") forbid (principal, action == Action::"fs.write", resource);',  # duplicate id
        '@id("b") @id("c") permit (principal, action, resource);',
        '@id("b") permit (principal, action, resource)',  # no `;`
        '@id("b") permit (principal, action, resource) when { "open };',
        '@id("b") allow (principal, action, resource);',
    ],
)
def test_a_wrong_policy_is_an_error_at_its_line(schema, policy):
    found = problems(schema, GOOD + "\n// a comment; with a semicolon\n" + policy)
    assert set(found) == {("0.cedar", 4)}


def test_every_problem_of_every_file_is_reported_at_once(schema):
    found = problems(schema, GOOD + "permit (principal, action, resource);", "// nothing", GOOD)
    assert {("0.cedar", 2), ("1.cedar", 0), ("2.cedar", 1)} <= set(found)


@pytest.mark.parametrize("text", ["", "\n \n", "// only a comment\n"])
def test_an_empty_file_is_an_error(schema, text):
    assert problems(schema, GOOD, text) == [("1.cedar", 0)]


def test_an_empty_registry_is_an_error(schema):
    assert len(problems(schema)) == 1


@pytest.mark.parametrize(
    "char",
    ["\u202e", "\u200b", "\ufeff", "\u00ad", "\U000e0041", "\u2066", "\u2028", "\x00", "\x1b", "\u3164", "\ufe0f", "\U000e0100"],
)
def test_hidden_text_in_a_policy_is_an_error(schema, char):
    text = f'@id("a") @text("x{char}y") permit (principal, action == Action::"fs.write", resource);'
    assert problems(schema, "\n" + text) == [("0.cedar", 2)]
    escaped = text.replace(char, f"\\u{{{ord(char):x}}}")
    assert problems(schema, "\n" + escaped) == [("0.cedar", 2)]


def test_ordinary_text_of_other_languages_is_no_problem(schema):
    text = '@id("a") @text("Größe, 日本語, naïve – “quoted”") permit (principal, action == Action::"fs.write", resource);'
    assert load([PolicySource("x", text)], schema, agents=AGENTS).policies["a"].text.startswith("Größe")


def test_a_policy_keeps_its_place_and_exact_source(schema):
    text = (
        '// head\n@id("a")\n@text("say; \\"so\\" // yes")\npermit (principal,\n action, // why; not\n resource);\n\n'
        '@id("b") forbid(principal,action,resource);'
    )
    found = load([PolicySource("x.cedar", text)], schema, agents=AGENTS).policies
    assert list(found) == ["a", "b"]
    a, b = found.values()
    assert (a.line, a.effect, a.text, a.actions) == (2, "permit", 'say; "so" // yes', None)
    assert a.source == text[text.index("@id") : text.index("\n\n@id")]
    assert (b.line, b.effect, b.source) == (8, "forbid", '@id("b") forbid(principal,action,resource);')


@pytest.mark.parametrize(
    "condition",
    [
        'resource == File::"x"',
        'File::"x" != resource',
        'resource in [Folder::"a", Folder::"b"]',
        'resource is File in Folder::"a"',
        '[File::"x", File::"y"].contains(resource)',
        'if context.approval.given then resource in Folder::"a" else principal == Agent::"reviewer"',
    ],
)
def test_an_entity_may_be_compared_with(schema, condition):
    text = f'@id("a") permit (principal, action == Action::"fs.write", resource) when {{ {condition} }};'
    assert list(load([PolicySource("x", text)], schema, agents=AGENTS).policies) == ["a"]


def test_annotations_and_action_scope_are_read(schema):
    text = (
        '@id("a") @issuer("org") @scope("repo") @priority("high") @evidence("test-run") @text("T")'
        'permit (principal, action in [Action::"fs.write", Action::"fs.create"], resource);'
    )
    policy = load([PolicySource("x", text)], schema, agents=AGENTS).policies["a"]
    assert (policy.issuer, policy.scope, policy.priority, policy.evidence) == ("org", "repo", "high", "test-run")
    assert policy.actions == {"fs.write", "fs.create"}


def test_the_digest_is_of_every_source_and_the_schema(schema):
    def digest(*texts, of=schema):
        return load([PolicySource("x", text) for text in texts], of, agents=AGENTS).digest

    other = GOOD.replace('"a"', '"b"')
    assert digest(GOOD) == digest(GOOD)
    assert digest(GOOD, other) == digest(other, GOOD)
    wider = {"": {**schema[""], "entityTypes": {**schema[""]["entityTypes"], "Agent": {"enum": [*AGENTS, "third"]}}}}
    assert len({digest(GOOD), digest(GOOD + "// x"), digest(GOOD, other), digest(GOOD, of=wider)}) == 4


def test_a_literal_that_names_nothing_is_a_warning(schema):
    text = (
        '@id("a") permit (principal, action == Action::"fs.write", resource in Folder::"scr");\n'
        '@id("b") permit (principal, action == Action::"db.update", resource == Table::"tickets");'
        '@id("c") permit (principal, action == Action::"fs.write", resource) when { resource in Folder::"src" };'
    )
    registry = load([PolicySource("x", text)], schema, agents=AGENTS, exists=lambda *named: named == ("Folder", "src"))
    assert [(warning.file, warning.line) for warning in registry.warnings] == [("x", 1), ("x", 2)]
    assert load([PolicySource("x", text)], schema, agents=AGENTS).warnings == ()


def test_the_shipped_policies_load_and_each_says_what_it_does(schema):
    policies = load([shipped()], schema, agents=AGENTS).policies
    assert all(policy.id.startswith("cxi/") and policy.text for policy in policies.values())
