"""The recipes of `docs/receipts.md` are run as they stand there: a receipt is verified with no CXI at all."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cxi.cli.app import app
from gate_case import opened

PAGE = (Path(__file__).parents[2] / "docs" / "receipts.md").read_text(encoding="utf-8")
RUN = CliRunner()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a receipt and the public key, and nothing else."""
    folder = tmp_path_factory.mktemp("handed")
    with opened() as case:
        call = case.call("put", path="src/a.py", content="a = 2\n").id
        for name, command in (("receipt.json", ("receipt", call)), ("log.pem", ("key",))):
            done = RUN.invoke(app, ["log", *command, "--config", str(case.file)])
            assert done.exit_code == 0, done.output
            (folder / name).write_text(done.stdout, encoding="utf-8")
    return folder


def shell(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-ec", block("sh")], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_the_signature_and_not_one_of_a_changed_statement(handed: Path, tmp_path: Path) -> None:
    done = shell(handed)
    assert (done.returncode, done.stdout.strip()) == (0, "Signature Verified Successfully"), done.stderr
    text = (handed / "receipt.json").read_text()
    payload = re.search(r'"payload": "([^"]*)"', text)
    assert payload is not None
    at = payload.start(1) + 40
    (tmp_path / "receipt.json").write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :])
    shutil.copy(handed / "log.pem", tmp_path)
    assert shell(tmp_path).returncode != 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_python_alone_follows_the_entries_to_the_root_and_not_changed_ones(handed: Path, tmp_path: Path) -> None:
    assert shell(handed).returncode == 0
    command = [sys.executable, "-I", "-c", block("py")]
    done = subprocess.run(command, cwd=handed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "both are in the log" in done.stdout
    statement = (handed / "statement.json").read_text(encoding="utf-8")
    (tmp_path / "statement.json").write_text(statement.replace('"state":"done"', '"state":"failed"'), encoding="utf-8")
    assert (tmp_path / "statement.json").read_text() != statement
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0
