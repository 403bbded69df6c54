"""What would this call really do? One file a language or tool family.

Adding an adapter is one new file and one line in `ADAPTERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cxi.effects.base import Adapter
from cxi.effects.file import FileAdapter
from cxi.effects.git import GitAdapter
from cxi.effects.shell import ShellAdapter

ADAPTERS: Final[Mapping[str, Adapter]] = MappingProxyType({"file": FileAdapter(), "git": GitAdapter(), "shell": ShellAdapter()})
