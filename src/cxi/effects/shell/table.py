"""Which data files are there? `effects/grammars/*.yaml`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, TypeAlias

import yaml

TABLES: Final = "cxi.effects.grammars"

Table: TypeAlias = Mapping[str, object]


@lru_cache(maxsize=32)
def load_table(name: str) -> Table:
    """One of the files, as data."""
    text = (files(TABLES) / f"{name}.yaml").read_text(encoding="utf-8")
    table = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - the safe loader, in C where it is there
    if not isinstance(table, dict):
        raise AssertionError(f"{name}.yaml is no mapping")
    return table
