"""Which variables change what the shell or a program does, beyond being read by it?

- `grammars/environment.yaml` holds the names, as patterns, with why.
- `never` is refused wherever it is set; `read` is refused for programs whose effect is read from their arguments alone, and is
  recorded in the atom of a program that only running could tell of.
"""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import Final

from cxi.effects.shell.table import load_table

_TABLE: Final = "environment"


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = load_table(_TABLE)
    return _any(table["never"]), _any(table["read"])


def _any(names: object) -> re.Pattern[str]:
    if not isinstance(names, list):
        raise AssertionError("a list of names is expected")
    return re.compile("|".join(fnmatch.translate(str(name)) for name in names))


@lru_cache(maxsize=1024)
def is_guarded(name: str) -> bool:
    """Whether setting it is refused everywhere."""
    return _patterns()[0].match(name) is not None


@lru_cache(maxsize=1024)
def is_read(name: str) -> bool:
    """Whether programs read it for more than how they print."""
    return _patterns()[1].match(name) is not None
