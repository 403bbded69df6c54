"""The bytes of an index, read as git reads them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.sinks import index
from cxi.sinks.index import read_index


def git(repo: Path, *arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, input=given).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("a", "d/x", "d/" + "long" * 60, "d.x", "é"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "l").symlink_to("a")
    git(tmp_path, "add", "-A")
    git(tmp_path, "update-index", "--assume-unchanged", "a")
    git(tmp_path, "update-index", "--skip-worktree", "d/x")
    git(tmp_path, "update-index", "--index-info", given=b"100644 " + b"1" * 40 + b" 1\tz\n100644 " + b"2" * 40 + b" 3\tz\n")
    return tmp_path


def sealed(data: bytes) -> bytes:
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


@pytest.mark.parametrize("version", [2, 4])  # git writes 3 by itself where an entry needs it
def test_listing_and_flags_are_those_of_git(repo, version):
    git(repo, "update-index", "--index-version", str(version))
    found = read_index((repo / ".git/index").read_bytes())
    assert found is not None
    assert found.listing() == git(repo, "ls-files", "--stage", "-z")
    assert found.flags() == git(repo, "ls-files", "-v", "-z")
    assert found.conflicts
    assert (found.holds_below(b"d"), found.holds_below(b"a"), found.holds_below(b"zz")) == (True, False, False)


def test_a_name_longer_than_its_length_field_is_read(repo):
    name = "/".join(["n" * 200] * 25)
    git(repo, "update-index", "--index-info", given=b"100644 " + b"1" * 40 + b" 0\t" + name.encode() + b"\n")
    found = read_index((repo / ".git/index").read_bytes())
    assert found is not None
    assert found.listing() == git(repo, "ls-files", "--stage", "-z")


def test_what_is_not_whole_or_needs_another_file_is_not_read(repo, monkeypatch):
    data = (repo / ".git/index").read_bytes()
    body = data[:-20]
    assert read_index(sealed(body)) is not None
    assert read_index(body + bytes(20)) is not None  # `index.skipHash`
    assert read_index(body + b"x" * 20) is None
    assert read_index(sealed(body.replace(b"DIRC", b"DIRD"))) is None
    assert read_index(sealed(body[:60])) is None
    for name, optional in ((b"link", False), (b"sdir", False), (b"ABCD", True)):
        assert (read_index(sealed(body + name + b"\0\0\0\0")) is not None) is optional
    assert read_index(sealed(body + b"ABCD\0\0\0\1")) is None
    git(repo, "update-index", "--split-index")
    assert read_index((repo / ".git/index").read_bytes()) is None
    monkeypatch.setattr(index, "MOST_ENTRIES", 3)
    assert read_index(data) is None


def test_entries_out_of_order_are_not_read(tmp_path):
    git(tmp_path, "init", "-q")
    rows = b"".join(b"100644 " + b"1" * 40 + b" 0\t" + name + b"\n" for name in (b"a", b"b"))
    git(tmp_path, "update-index", "--index-info", given=rows)
    body = (tmp_path / ".git/index").read_bytes()[:-20]
    assert read_index(sealed(body)) is not None
    assert read_index(sealed(body.replace(b"a\0", b"b\0", 1))) is None
    assert read_index(sealed(body.replace(b"a\0", b"c\0", 1))) is None


@given(st.binary(max_size=200), st.sampled_from([2, 3, 4]), st.integers(0, 3))
def test_no_bytes_raise(data, version, count):
    read_index(sealed(b"DIRC" + version.to_bytes(4, "big") + count.to_bytes(4, "big") + data))
