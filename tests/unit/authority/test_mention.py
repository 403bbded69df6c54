"""A reading of the request is kept, and never outlives what it looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from cxi.authority import mention
from cxi.authority.mention import mentioned
from cxi.authority.request import named
from cxi.effects.snapshot import RecordingSnapshot
from cxi.provenance import RequestChannel, Segment, TrustedRequest, open_request
from cxi.sinks.disk import DiskWorld
from cxi.values import value_type

TYPES = (value_type("RepoPath", {}),)


def ask(text: str) -> TrustedRequest:
    segment = open_request("r1", RequestChannel.HOST_API, "host", text)
    assert isinstance(segment, Segment)
    return TrustedRequest((segment,))


def snap(root: Path) -> RecordingSnapshot:
    return RecordingSnapshot(DiskWorld(), str(root.resolve()))


def change_file(root: Path) -> None:
    (root / "notes").write_text("now it is there")


def change_link(root: Path) -> None:
    (root / "src").rename(root / "lib")
    (root / "src").symlink_to("lib")


def change_nothing(root: Path) -> None:
    assert root.is_dir()


@pytest.mark.parametrize(("change", "differs"), [(change_nothing, False), (change_file, True), (change_link, True)])
def test_a_kept_reading_is_what_a_new_one_would_be(tmp_path: Path, change, differs) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tax.py").touch()
    request = ask("Look at notes, then fix src/tax.py.")
    before = mentioned(request, TYPES, snap(tmp_path).root)
    change(tmp_path)
    kept, fresh = snap(tmp_path), snap(tmp_path)
    after = mentioned(request, TYPES, kept.root)
    assert after == named(request, TYPES, fresh.root)
    assert (after != before) == differs
    assert dict(fresh.reads).items() <= dict(kept.reads).items()


def test_a_kept_reading_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ask("Fix src/tax.py again.")
    first = mentioned(request, TYPES, snap(tmp_path).root)
    monkeypatch.setattr(mention, "named", lambda *_: pytest.fail("read again"))
    snapshot = snap(tmp_path)
    assert mentioned(request, TYPES, snapshot.root) == first
    assert snapshot.reads


def test_no_request_names_nothing(tmp_path: Path) -> None:
    assert mentioned(None, TYPES, snap(tmp_path).root) == ()


def test_another_request_has_its_own_reading(tmp_path: Path) -> None:
    (one,) = mentioned(ask("Fix src/a.py."), TYPES, snap(tmp_path).root)
    (other,) = mentioned(ask("Fix src/b.py."), TYPES, snap(tmp_path).root)
    assert (one.value.canonical, other.value.canonical) == ("src/a.py", "src/b.py")
