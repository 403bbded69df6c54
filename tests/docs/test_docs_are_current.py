"""The documentation is what the code says: generated pages, links, effects, and code that runs."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cxi.errors import CODES, Code
from cxi.policy.vocabulary import KINDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
READ = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def relative(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def code(language: str) -> list[tuple[str, str]]:
    """Every block of a language, as (`page:line`, text)."""
    return [
        (f"{relative(page)}:{text.count(chr(10), 0, block.start()) + 2}", block[2])
        for page in READ
        for text in [page.read_text(encoding="utf-8")]
        for block in FENCE.finditer(text)
        if block[1] == language
    ]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cxi_docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_what_the_code_makes(generate: ModuleType):
    assert sorted(generate.stale()) == [], "make generate"


def test_each_reason_code_has_a_row_and_one_section(generate: ModuleType):
    assert set(CODES) == set(Code)
    sections = [code for _, codes in generate.sections() for code in codes]
    assert sections == list(Code)


@pytest.mark.parametrize("page", READ, ids=relative)
def test_each_link_to_a_page_leads_to_one(page: Path):
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if name.startswith(("http:", "https:", "mailto:")):
            continue
        file = (page.parent / name).resolve() if name else page
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown makes them."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize(("place", "text"), code("python"), ids=lambda value: value if "\n" not in value else "")
def test_python_of_the_documentation_runs(place: str, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    exec(compile(text, place, "exec"), {"__name__": "documentation"})


def test_the_page_of_effects_has_every_kind_and_its_resource():
    page = (DOCS / "effects.md").read_text(encoding="utf-8")
    shown: dict[str, str] = {}
    for section in page.split("\n### ")[1:]:
        for row in section.splitlines():
            cells = [cell.strip() for cell in row.split("|")]
            for kind in re.findall(r"`([a-z]+\.[a-z_]+)`", cells[1] if len(cells) > 2 else ""):
                resources = re.findall(r"`([A-Z]\w+)`", section if section.startswith("Workflows") else cells[2])
                shown[kind] = resources[0]
    assert shown == {name: kind.resource for name, kind in KINDS.items() if not kind.exact}


def test_the_readme_and_the_home_page_say_how_to_see_it():
    for page in (ROOT / "README.md", DOCS / "index.md"):
        assert "make demo" in page.read_text(encoding="utf-8")


def test_no_page_names_a_place_of_one_machine():
    for page in READ:
        found = re.findall(r"(?<![\w.$/])/(?:work|root|opt|home)/\S*", page.read_text(encoding="utf-8"))
        assert found == [], relative(page)
