"""The configuration that the documentation shows is what the reader takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cxi.config.schema import config_schema, contract_schema

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
MINIMAL = {"version": 1, "agent": "maintainer", "root": ".", "servers": {"files": {"command": ["file-server"]}}}


def blocks() -> list[Any]:
    return [
        pytest.param(block[1], id=f"{page.name}:{text.count(chr(10), 0, block.start()) + 2}")
        for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
        for text in [page.read_text(encoding="utf-8")]
        for block in FENCE.finditer(text)
        if not block[1].startswith("effect:")  # alternatives, one a line
    ]


@pytest.mark.parametrize("text", blocks())
def test_each_block_of_yaml_fits_its_schema(text: str):
    value = yaml.safe_load(text)
    if "tools" in value:
        jsonschema.validate({"version": 1, **value}, contract_schema())
    else:
        jsonschema.validate({**MINIMAL, **value}, config_schema())


def test_each_way_to_state_an_effect_fits_the_schema():
    page = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
    ways = re.findall(r"^effect: .+$", page, re.MULTILINE)
    assert len(ways) == 4
    for way in ways:
        tool = {**yaml.safe_load(way), "fields": {}}
        jsonschema.validate({"version": 1, "tools": {"shown": tool}}, contract_schema())


@pytest.mark.parametrize("key", sorted(config_schema()["properties"]))
def test_the_reference_has_a_row_for_each_key_of_the_configuration(key: str):
    assert re.search(rf"^\|[^|]*`{key}`", (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8"), re.MULTILINE)
