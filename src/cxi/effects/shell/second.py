"""Does a second reader, written by others, see the same commands?

- tree-sitter's grammar for bash recovers silently: any error or missing node is a refusal.
- Simple commands begin where our own reader has them begin. A disagreement is a refusal: one of the two misreads the text.
- It is an optional part (`cxi[shell]`), loaded when it is first needed; without it nothing is admitted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cxi.effects.shell.stop import KNOW, READ, Stop

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

NEEDS: Final = "pip install 'cxi[shell]'"
_COMMANDS: Final = "[(command_name) (declaration_command) (unset_command) (test_command)] @c (ERROR) @e (MISSING) @e"


def compare(text: str, commands: list[int], *, foreign: bool) -> None:
    """Refuse a text that the second reader reads otherwise.

    Args:
        text: The text.
        commands: Where each simple command's first word stands.
        foreign: Whether others stand in a text of their own (backticks, here-documents), which count for the second reader only.

    Raises:
        Stop: it finds an error, or other commands; or it is not installed.
    """
    parser, query = load()
    data = text.encode()
    root = parser.parse(data).root_node
    from tree_sitter import QueryCursor  # noqa: PLC0415 - `load` has seen that it is there

    found = QueryCursor(query).captures(root)
    if root.has_error:
        start, end = next(((node.start_byte, node.end_byte) for node in found.get("e", ())), (0, len(data)))
        raise Stop(READ, "the second reader finds an error", len(data[:start].decode()), len(data[:end].decode()))
    theirs = [node.start_byte for node in found.get("c", ())]
    # `((` and `[[` are commands of their own kind to us, words of a command to it.
    theirs = [at for at in theirs if data[at : at + 2] not in (b"((", b"[[")]
    ours = commands if text.isascii() else [len(text[:at].encode()) for at in commands]
    differing = set(ours) - set(theirs) if foreign else set(theirs) ^ set(ours)
    if differing:
        at = len(data[: min(differing)].decode(errors="ignore"))
        raise Stop(READ, "the second reader finds other commands", at, at + 1)


@lru_cache(maxsize=1)
def load() -> tuple[Parser, Query]:
    """The second reader.

    Raises:
        Stop: it is not installed.
    """
    try:
        import tree_sitter  # noqa: PLC0415 - an optional part
        import tree_sitter_bash  # noqa: PLC0415
    except ImportError:
        raise Stop(KNOW, "the second reader of shell texts is not installed", needs=NEEDS) from None
    language = tree_sitter.Language(tree_sitter_bash.language())
    return tree_sitter.Parser(language), tree_sitter.Query(language, _COMMANDS)
