"""Effects that a contract lists."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects.base import Effect
from cxi.effects.listed import plan_listed
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "d/e").mkdir(parents=True)
    (root / "d/x").write_text("x")
    (root / "a").write_text("a")
    return root


def plan(root: Path, *listed: tuple[str, str], **fields: str | list[str]) -> Effect | Refused:
    leaves = []
    for name, value in fields.items():
        for at, item in enumerate(value if isinstance(value, list) else [value]):
            path, contract = (f"{name}[{at}]", f"{name}[]") if isinstance(value, list) else (name, name)
            leaves.append(FieldValue(path, contract, Role.PROTECTED, Value("RepoPath", item, item)))
    call = CanonicalCall("s", "t", tuple(leaves), MappingProxyType({}))
    return plan_listed(listed, call, RecordingSnapshot(DiskWorld(), str(root)))


def test_one_atom_a_value_with_its_concrete_field(root):
    effect = plan(root, ("fs.read", "paths[]"), paths=["a", "none", "d"])
    assert isinstance(effect, Effect)
    assert [(atom.target, atom.field) for atom in effect.atoms] == [("a", "paths[0]"), ("none", "paths[1]"), ("d", "paths[2]")]
    assert effect.assurance == "checked"


def test_what_the_disk_does_not_show_is_only_declared(root):
    effect = plan(root, ("mail.send", "to"), to="a@example.org")
    assert isinstance(effect, Effect)
    assert effect.assurance == "declared"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("fs.create", "a"),
        ("fs.create", "d"),
        ("fs.create", "a/x"),
        ("fs.delete", "none"),
        ("fs.write", "none"),
        ("fs.write", "d"),
        ("fs.mkdir", "a"),
        ("fs.rmdir", "d"),
        ("fs.chmod", "none"),
    ],
)
def test_a_list_that_does_not_fit_what_is_there_is_refused(root, kind, path):
    refused = plan(root, (kind, "path"), path=path)
    assert isinstance(refused, Refused)
    assert refused.codes == ("EFFECT_INEXACT",)


@pytest.mark.parametrize("kind", ["fs.unheard", "fs.write_any", "tool:x", ""])
def test_an_unknown_kind_is_refused(root, kind):
    refused = plan(root, (kind, "path"), path="a")
    assert isinstance(refused, Refused)
    assert refused.codes == ("EFFECT_UNSUPPORTED",)


def test_an_absent_field_is_refused_for_the_servers_default_is_not_known(root):
    refused = plan(root, ("fs.read", "path"))
    assert isinstance(refused, Refused)
    assert refused.codes == ("EFFECT_UNREADABLE",)


def test_a_deleted_folder_is_all_that_it_holds(root):
    effect = plan(root, ("fs.delete", "path"), path="d")
    assert isinstance(effect, Effect)
    assert {(atom.kind, atom.target) for atom in effect.atoms} == {("fs.delete", "d/x"), ("fs.rmdir", "d/e"), ("fs.rmdir", "d")}
    assert effect.atoms[-1].target == "d"


def test_a_folder_that_moves_needs_an_adapter(root):
    pair = (("fs.delete", "source"), ("fs.create", "destination"))
    refused = plan(root, *pair, source="d", destination="e")
    assert isinstance(refused, Refused)
    assert refused.codes == ("EFFECT_UNSUPPORTED",)
    assert isinstance(plan(root, *pair, source="a", destination="e"), Effect)


def test_a_listed_change_of_a_hook_is_seen(root):
    effect = plan(root, ("fs.create", "path"), path=".git/hooks/pre-commit")
    assert isinstance(effect, Effect)
    assert [atom.kind for atom in effect.atoms] == ["fs.create", "git.hook"]
