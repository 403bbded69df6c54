"""Which configuration does a command mean? Light: what reads and writes its state is loaded when a book is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cxi.errors import ConfigError, Problem

if TYPE_CHECKING:
    from cxi.cli.book import Book
    from cxi.config.model import Configuration

NAME: Final = "cxi.yaml"


def find_config(given: str) -> Path:
    """The configuration file: the one given, else the nearest `cxi.yaml` from here upwards.

    Raises:
        ConfigError: where there is none.
    """
    if given:
        return Path(given)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    mend = "give one with `--config FILE`; the documentation's page `configuration.md` shows a whole one"
    raise ConfigError(Problem(NAME, 0, f"no `{NAME}` here or above", mend))


def open_config(given: str, *, pinned: bool = True) -> Configuration:
    """Read the configuration.

    Raises:
        ConfigError: with every problem.
    """
    from cxi.config.load import load

    return load(find_config(given), environ=os.environ, pinned=pinned)


def open_book(given: str) -> Book:
    """The book of a configuration.

    Raises:
        ConfigError: where the configuration is wrong.
        LedgerError: where there is no state yet, or it cannot be used.
    """
    from cxi.cli.book import Book

    return Book(open_config(given))
