"""Which files did the operator name, and what exactly do they say?

- Policies and prose are named by path or glob, relative to the configuration; a name that finds nothing is a problem.
- A file is read once, here; what is loaded is what was read. Text that a reader cannot see is refused.
- A glob of policies may not reach over the agent's whole root: a file that it finds tomorrow would be a policy.
"""

from __future__ import annotations

import glob
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cxi.config.reader import Reader
from cxi.config.yaml import Node
from cxi.errors import Code
from cxi.values.hidden import hidden

MAX_BYTES: Final = 4 * 1024 * 1024
_MAGIC: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Material:
    """One file that was read.

    Attributes:
        name: Relative to the configuration's folder where it is below, as errors show it.
        path: Absolute.
        text: Exactly.
        data: Its bytes.
    """

    name: str
    path: Path
    text: str
    data: bytes


def read_files(reader: Reader, node: Node, what: str, folder: Path) -> tuple[Material, ...]:
    """Read all files that a list of paths and globs names, each once, in the order of the list and then of the names."""
    found: dict[Path, Material] = {}
    for item in reader.items(node, f"`{what}`") or ():
        pattern = reader.text(item, f"an item of `{what}`")
        if pattern is None:
            continue
        # `Path.glob` takes no absolute patterns.
        matches = sorted(glob.glob(pattern, root_dir=folder, recursive=True, include_hidden=True))  # noqa: PTH207
        files = [folder / match for match in matches if (folder / match).is_file()]
        if not files:
            reader.note(item.problem(f"`{pattern}` in `{what}` finds no file", f"name a file below `{folder.name}/`"))
        for path in files:
            absolute = Path(os.path.normpath(path))
            if absolute not in found and (material := _read(reader, item, absolute, folder)) is not None:
                found[absolute] = material
    return tuple(found.values())


def read_prose(reader: Reader, node: Node, folder: Path) -> tuple[Material, ...]:
    """Read all prose sources, as `read_files`; hidden text in them is refused."""
    found = read_files(reader, node, "prose", folder)
    for material in found:
        _refuse_hidden(reader, material)
    return found


def literal_folders(node: Node, folder: Path) -> Iterator[tuple[Node, Path]]:
    """For each glob of a list, the longest folder that it names literally: a new file there could match it."""
    for item in node.value if isinstance(node.value, tuple) else ():
        if isinstance(item.value, str) and _MAGIC & set(item.value):
            parts: list[str] = []
            for part in item.value.split("/"):
                if _MAGIC & set(part):
                    break
                parts.append(part)
            yield item, Path("/") if parts == [""] else Path(os.path.normpath(folder / "/".join(parts)))


def _read(reader: Reader, item: Node, path: Path, folder: Path) -> Material | None:
    name = os.path.relpath(path, folder)
    try:
        data = path.read_bytes()
    except OSError as error:
        reader.note(item.problem(f"`{name}` cannot be read: {error.strerror}", "make it readable"))
        return None
    if len(data) > MAX_BYTES:
        reader.note(item.problem(f"`{name}` is longer than {MAX_BYTES} bytes", "split it"))
        return None
    try:
        return Material(name, path, data.decode("utf-8"), data)
    except UnicodeDecodeError:
        reader.note(item.problem(f"`{name}` is not UTF-8", "save it as UTF-8"))
        return None


def _refuse_hidden(reader: Reader, material: Material) -> None:
    """Prose is carried to the model as it is: what a person cannot see in it, nobody vouched for.

    Letters of two scripts in one word are ordinary in prose, so confusables are not refused here.
    """
    for place in hidden(material.text):
        if place.kind == "confusable":
            continue
        line = material.text.count("\n", 0, place.span[0]) + 1
        shown = unicodedata.name(material.text[place.span[0]], f"U+{ord(material.text[place.span[0]]):04X}").lower()
        reader.note(Node(None, material.name, line).problem(f"{Code.HIDDEN_TEXT}: the hidden character {shown}", "remove it"))
