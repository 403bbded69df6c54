"""A built wheel works alone: outside the tree, with the run-time pins and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "-qq"]

pytestmark = pytest.mark.slow  # .ci/run names this file


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, *PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the run-time pins and the wheel."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=True)
    found = folder / "bin" / "python"
    run(found, *PIP, "install", "--require-hashes", "-r", ROOT / "requirements" / "run.txt", cwd=folder)
    run(found, *PIP, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    return found


def test_the_wheel_holds_every_file_of_the_package(wheel: Path):
    tracked = run("git", "ls-files", "src/cxi", cwd=ROOT).split() if (ROOT / ".git").exists() else []
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.removeprefix("src/") for name in tracked} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_command_of_an_installed_wheel_answers(python: Path):
    cwd = python.parent
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    where, installed = run(
        python, "-I", "-c", "import cxi, importlib.metadata as m; print(cxi.__file__, m.version('cxi'))", cwd=cwd
    ).split()
    assert Path(where).is_relative_to(cwd.parent)
    assert installed == version
    assert "Usage" in run(cwd / "cxi", "--help", cwd=cwd)


# The modules of an extra, by the package that it brings; whatever imports one of them does so where it is needed.
OF_EXTRAS = {
    "cxi.lab.faults.postgres": "psycopg",
    "cxi.ledger.comparison": "psycopg",
    "cxi.ledger.line": "psycopg",
    "cxi.ledger.migration": "psycopg",
    "cxi.ledger.postgres": "psycopg",
    "cxi.ledger.spending": "psycopg",
}


def test_every_module_of_an_installed_wheel_imports_or_lacks_its_extra_alone(python: Path):
    script = (
        "import cxi, importlib, json, pkgutil\n"
        "lacking = {}\n"
        "for found in pkgutil.walk_packages(cxi.__path__, 'cxi.'):\n"
        "    if found.name.endswith('__main__'): continue\n"
        "    try: importlib.import_module(found.name)\n"
        "    except ModuleNotFoundError as error: lacking[found.name] = error.name\n"
        "print(json.dumps(lacking))\n"
    )
    assert json.loads(run(python, "-I", "-W", "error", "-c", script, cwd=python.parent)) == OF_EXTRAS


def test_the_run_time_pins_are_all_that_the_wheel_asks_for(python: Path):
    run(python, *PIP, "check", cwd=python.parent)
    assert "PYTHONPATH" not in os.environ
