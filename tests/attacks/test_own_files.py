"""Threat: an admitted effect rewrites what guards it: CXI's configuration, policies, keys, ledger or log."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

import pytest

from cxi.effects.base import Atom, Effect
from cxi.effects.file import FileAdapter
from cxi.effects.protect import ProtectedPaths, observe, touches
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.manifest import Assurance, CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "repo"
    (root / "src").mkdir(parents=True)
    (root / "policies").mkdir()
    (root / "cxi.yaml").write_text("version: 1\n")
    (root / "policies/main.cedar").write_text("permit;\n")
    (root / "src/app.py").write_text("x = 1\n")
    state = root.parent / "state"
    state.mkdir()
    (state / "key").write_text("secret")
    return root


def own(root: Path) -> ProtectedPaths:
    paths = {str(root / "cxi.yaml"): "write", str(root / "policies"): "write", str(root / "new/cxi.lock"): "write"}
    return observe(paths | {str(root.parent / "state"): "any"}, DiskWorld())


def judge(root: Path, *atoms: Atom) -> tuple[str, ...]:
    protected = own(root)
    effect = Effect("test/1", atoms, Assurance.CHECKED)
    return tuple(reason.code for reason in touches(effect, protected, RecordingSnapshot(DiskWorld(), str(root))))


def atom(kind: str, target: str, **attributes: str) -> Atom:
    return Atom(kind, target, attributes)


def plan(root: Path, **fields: str) -> Effect | Refused:
    inputs = {name: value if value.startswith("=") else name for name, value in fields.items()}
    leaves = tuple(FieldValue(name, name, Role.PAYLOAD, Value("Text", text, text)) for name, text in fields.items())
    call = CanonicalCall("files", "x", leaves, MappingProxyType({}))
    return FileAdapter().plan(call, inputs, RecordingSnapshot(DiskWorld(), str(root)))


REFUSED = ("PATH_PROTECTED",)


@pytest.mark.parametrize("kind", ["fs.write", "fs.create", "fs.delete", "fs.chmod", "fs.symlink", "fs.touch", "git.index"])
@pytest.mark.parametrize(
    "target",
    [
        "cxi.yaml",
        "CXI.yaml",
        "Cxi.Yaml",
        "policies/main.cedar",
        "policies/other.cedar",
        "policies/deep/er/x",
        "POLICIES/main.cedar",
        "cxi\u200b.yaml",
        "new/cxi.lock",
    ],
)
def test_no_act_reaches_an_own_file_however_it_is_spelled(root, kind, target):
    assert judge(root, atom(kind, target)) == REFUSED


def test_a_composed_and_a_decomposed_name_are_one(root):
    protected = observe({str(root / "poli\u0301cies"): "write"}, DiskWorld())
    effect = Effect("test/1", (atom("fs.create", "pol\u00edcies/x"),), Assurance.CHECKED)
    assert [reason.code for reason in touches(effect, protected, RecordingSnapshot(DiskWorld(), str(root)))] == list(REFUSED)


def test_an_own_file_is_not_reached_through_a_link_to_it(root):
    (root / "src/notes.md").symlink_to("../cxi.yaml")
    assert judge(root, atom("fs.write", "src/notes.md")) == REFUSED


def test_an_own_folder_is_not_reached_through_a_link_above_it(root):
    (root / "src/shared").symlink_to("../policies")
    assert judge(root, atom("fs.create", "src/shared/allow.cedar")) == REFUSED
    (root / "src/chain").symlink_to("shared")
    assert judge(root, atom("fs.create", "src/chain/allow.cedar")) == REFUSED


def test_an_own_file_is_not_reached_by_another_name_of_it(root):
    os.link(root / "cxi.yaml", root / "src/other.yaml")
    assert judge(root, atom("fs.write", "src/other.yaml")) == REFUSED
    assert judge(root, atom("fs.read", "src/other.yaml")) == ()


def test_a_planned_write_of_a_shared_file_names_every_name_it_has(root):
    os.link(root / "cxi.yaml", root / "src/other.yaml")
    effect = plan(root, path="src/other.yaml", content="allow: all\n")
    assert isinstance(effect, Effect)
    assert {item.target for item in effect.atoms} == {"src/other.yaml", "cxi.yaml"}


def test_a_protected_path_that_is_itself_a_link_is_protected_at_both_ends(root):
    (root / "real.yaml").write_text("version: 1\n")
    (root / "cxi.yaml").unlink()
    (root / "cxi.yaml").symlink_to("real.yaml")
    assert judge(root, atom("fs.write", "real.yaml")) == REFUSED
    assert judge(root, atom("fs.delete", "cxi.yaml")) == REFUSED


def test_a_folder_above_an_own_file_does_not_move_away(root):
    assert judge(root, atom("fs.rmdir", ".")) == REFUSED
    assert judge(root, atom("fs.delete", "new")) == REFUSED
    effect = plan(root, op="=move", source="policies", destination="src/policies")
    assert isinstance(effect, Effect)
    assert set(judge(root, *effect.atoms)) == set(REFUSED)


def test_a_link_to_an_own_file_is_not_made(root):
    assert judge(root, atom("fs.symlink", "src/l", to="../cxi.yaml")) == REFUSED
    assert judge(root, atom("fs.symlink", "src/l", to=str(root / "policies"))) == REFUSED
    assert judge(root, atom("fs.link", "src/l", to=str(root / "cxi.yaml"))) == REFUSED
    assert judge(root, atom("fs.symlink", "src/l", to="app.py")) == ()


@pytest.mark.parametrize("target", ["*", "**", "pol*/x", "policies/*.cedar", "{cxi,x}.yaml", "new/**"])
def test_a_glob_that_could_cover_an_own_file_is_refused(root, target):
    assert judge(root, Atom("fs.write", target, {}, pattern=True)) == REFUSED


def test_a_glob_elsewhere_is_left_to_the_policies(root):
    assert judge(root, Atom("fs.write", "src/*.py", {}, pattern=True)) == ()


def test_reading_the_configuration_is_no_act_but_keys_are_not_even_read(root):
    state = root.parent / "state"
    assert judge(root, atom("fs.read", "cxi.yaml"), atom("fs.read", ".")) == ()
    assert judge(root, atom("fs.read", str(state / "key"))) == REFUSED
    assert judge(root, atom("fs.read", str(state))) == REFUSED
    assert judge(root, Atom("fs.read", f"{root.parent}/**", {}, pattern=True)) == REFUSED
    (root / "src/k").symlink_to(state / "key")
    assert judge(root, atom("fs.read", "src/k")) == REFUSED


def test_ordinary_work_is_left_alone(root):
    assert judge(root, atom("fs.write", "src/app.py"), atom("fs.create", "src/cxi.yaml"), atom("git.index", "src/app.py")) == ()
    assert judge(root, atom("fs.create", "policies-draft/x"), atom("fs.create", "cxi.yaml.md")) == ()
