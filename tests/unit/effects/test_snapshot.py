"""Snapshots, read sets, and what is realized of an effect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cxi.canonical import digest_bytes
from cxi.effects.base import Atom, Effect
from cxi.effects.realized import differences
from cxi.effects.snapshot import RecordingSnapshot, read_set_digest, stale
from cxi.manifest import Assurance
from cxi.sinks.disk import DiskWorld


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("1")
    return tmp_path.resolve()


def snap(root: Path) -> RecordingSnapshot:
    return RecordingSnapshot(DiskWorld(), str(root))


def test_one_question_has_one_answer_in_a_snapshot(root):
    snapshot = snap(root)
    assert snapshot.content(str(root / "a")) == b"1"
    (root / "a").write_text("2")
    assert snapshot.content(str(root / "a")) == b"1"
    assert snap(root).content(str(root / "a")) == b"2"


def test_the_root_is_seen_through_the_snapshot(root):
    snapshot = snap(root)
    assert snapshot.root.view is snapshot
    snapshot.root.view.entry(str(root / "a"))
    assert list(snapshot.reads) == [("entry", str(root / "a"))]


def test_what_was_read_and_changed_is_stale_and_nothing_else(root):
    snapshot, world = snap(root), DiskWorld()
    snapshot.content(str(root / "a"))
    snapshot.entry(str(root / "b"))
    snapshot.names(str(root))
    assert stale(snapshot.reads, world) == ()
    (root / "a").write_text("2")
    assert stale(snapshot.reads, world) == (("content", str(root / "a")),)
    (root / "b").mkdir()
    assert len(stale(snapshot.reads, world)) == 3


def test_the_same_bytes_in_a_new_file_are_no_change(root):
    snapshot = snap(root)
    snapshot.entry(str(root / "a"))
    snapshot.content(str(root / "a"))
    (root / "new").write_text("1")
    (root / "new").replace(root / "a")
    assert stale(snapshot.reads, DiskWorld()) == ()


@pytest.mark.parametrize("change", ["mode", "kind", "link", "shared"])
def test_an_entry_covers_mode_kind_link_text_and_other_names(root, change):
    (root / "l").symlink_to("a")
    snapshot = snap(root)
    snapshot.entry(str(root / "a"))
    snapshot.entry(str(root / "l"))
    match change:
        case "mode":
            (root / "a").chmod(0o755)
        case "kind":
            (root / "a").unlink()
            (root / "a").mkdir()
        case "link":
            (root / "l").unlink()
            (root / "l").symlink_to("b")
        case "shared":
            os.link(root / "a", root / "b")
    assert len(stale(snapshot.reads, DiskWorld())) == 1


def test_the_digest_tells_questions_answers_and_borders_apart(root):
    one = {("git", "/r", "tree", "a", "b"): "sha256:x"}
    assert read_set_digest(one) == read_set_digest(dict(one))
    others = [
        {("git", "/r", "tree", "ab"): "sha256:x"},
        {("git", "/r", "tree", "a\x1fb"): "sha256:x"},
        {("git", "/r", "tree", "a", "b"): "sha256:y"},
        {},
    ]
    assert len({read_set_digest(reads) for reads in [one, *others]}) == 5


def test_names_that_are_no_utf8_have_a_digest(root):
    (root / os.fsdecode(b"\xff")).touch()
    snapshot = snap(root)
    names = snapshot.names(str(root)) or ()
    for name in names:
        snapshot.content(f"{root}/{name}")
    assert snapshot.digest.startswith("sha256:")


def effect(*atoms: Atom) -> Effect:
    return Effect("file/1", atoms, Assurance.CHECKED)


def test_a_realized_effect_has_no_differences(root):
    made = Atom("fs.write", "a", {"before": digest_bytes(b"0"), "after": digest_bytes(b"1")})
    gone = Atom("fs.delete", "b", {})
    read = Atom("fs.read", "**", {}, pattern=True)
    assert differences(effect(made, gone, read), str(root), DiskWorld()) == ()


@pytest.mark.parametrize(
    "atom",
    [
        Atom("fs.write", "a", {"after": digest_bytes(b"2")}),
        Atom("fs.create", "b", {"after": digest_bytes(b"1")}),
        Atom("fs.create", "b", {}),
        Atom("fs.delete", "a", {}),
        Atom("fs.mkdir", "a", {}),
        Atom("fs.symlink", "a", {"to": "x"}),
        Atom("fs.symlink", "l", {"to": "x"}),
        Atom("fs.rmdir", "d", {}),
        Atom("fs.write", "l", {"after": digest_bytes(b"1")}),
    ],
)
def test_an_effect_that_is_not_there_is_a_difference(root, atom):
    (root / "l").symlink_to("a")
    (root / "d").mkdir()
    assert len(differences(effect(atom), str(root), DiskWorld())) == 1


def test_another_name_may_keep_its_bytes_but_have_no_third(root):
    shared = {"before": digest_bytes(b"1"), "after": digest_bytes(b"2"), "maybe": True}
    assert differences(effect(Atom("fs.write", "a", shared)), str(root), DiskWorld()) == ()
    (root / "a").write_text("3")
    assert differences(effect(Atom("fs.write", "a", shared)), str(root), DiskWorld()) != ()
