"""A copied state folder is verified by a key that was handed over before: without configuration, and without a trace."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from cxi.cli.app import app
from cxi.errors import LedgerError
from cxi.log.envelope import export_public
from gate_case import opened

RUN = CliRunner()


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The copied folder, and the file of the public key."""
    with opened() as case:
        for _ in range(3):
            case.call("read", path="docs/d.md")
        case.guard.sign_head()
        case.call("read", path="docs/d.md")  # behind the checkpoint, in the write-ahead log
        key = tmp_path / "log.pem"
        key.write_text(RUN.invoke(app, ["log", "key", "--config", str(case.file)]).stdout, encoding="utf-8")
        folder = tmp_path / "copied"
        folder.mkdir()
        for source in case.guard.config.state.iterdir():
            if source.name.startswith(("ledger.sqlite", "checkpoints")):
                shutil.copy(source, folder / source.name)
        yield folder, key


def run(folder: Path, key: Path) -> tuple[int, dict[str, object]]:
    done = RUN.invoke(app, ["log", "verify", "--state", str(folder), "--key", str(key), "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_a_whole_copy_verifies_and_is_not_written(copied: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, key = copied
    monkeypatch.chdir(folder.parent)  # no configuration here or above
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    code, found = run(folder, key)
    assert (code, found["ok"]) == (0, True)
    assert isinstance(found["entries"], int)
    assert isinstance(found["signed"], int)
    assert found["entries"] > found["signed"] > 0
    assert RUN.invoke(app, ["log", "verify", "--state", str(folder), "--key", str(key)]).exit_code == 0
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET content = replace(content, 'it.read', 'it.rear') WHERE content LIKE '%it.read%'",
        "UPDATE log SET content = 'x' WHERE seq = 3",
        "UPDATE log SET content = '[]' WHERE seq = 3",
        "DELETE FROM log WHERE seq = 3",
        "DELETE FROM log WHERE seq > 2",
    ],
)
def test_a_copy_that_was_changed_does_not_verify(copied: tuple[Path, Path], change: str) -> None:
    folder, key = copied
    with sqlite3.connect(folder / "ledger.sqlite") as database:
        assert database.execute(change).rowcount
    database.close()
    code, found = run(folder, key)
    assert (code, found["ok"]) == (1, False)
    assert found["findings"]


def test_another_key_and_missing_checkpoints_vouch_for_nothing(copied: tuple[Path, Path], tmp_path: Path) -> None:
    folder, key = copied
    other = tmp_path / "other.pem"
    other.write_bytes(export_public(Ed25519PrivateKey.generate().public_key()))
    assert run(folder, other)[0] == 1
    (folder / "checkpoints.jsonl").unlink()
    assert run(folder, key)[0] == 1


def test_a_folder_without_a_log_is_an_error_and_so_is_one_option_alone(copied: tuple[Path, Path], tmp_path: Path) -> None:
    folder, key = copied
    assert isinstance(RUN.invoke(app, ["log", "verify", "--state", str(tmp_path), "--key", str(key)]).exception, LedgerError)
    assert RUN.invoke(app, ["log", "verify", "--state", str(folder)]).exit_code == 2
    assert RUN.invoke(app, ["log", "verify", "--key", str(key)]).exit_code == 2
