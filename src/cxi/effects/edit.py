r"""Which text comes out of an edit, and is it certain?

- The rules are those of `edit_file` of `@modelcontextprotocol/server-filesystem`: CRLF becomes LF in the file and in both texts,
  edits apply one after the other, the first occurrence is replaced.
- Only what every version of that server does alike is computed: the old text is there exactly once, and the new text holds no
  `$$`, `$&`, `` $` `` or `$'` (older versions read them as JavaScript's replacement patterns).
- Its fallback, which matches lines by their trimmed text and guesses the indentation, is refused.

    >>> apply(b"a\nb\n", [("b", "c")])
    b'a\nc\n'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cxi.errors import Code, Refused

_PATTERNS: Final = re.compile(r"\$[$&`']")


def apply(data: bytes, edits: Sequence[tuple[str, str]], *, where: str = "edits") -> bytes | Refused:
    """The file's bytes after the edits.

    Args:
        data: The file's bytes before.
        edits: (old text, new text), in order.
        where: The field, for a refusal.
    """
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Refused.of(Code.EFFECT_UNSUPPORTED, "the file is not UTF-8, so an edit would change other bytes too", where=where)
    for index, (raw_old, raw_new) in enumerate(edits):
        old, new = raw_old.replace("\r\n", "\n"), raw_new.replace("\r\n", "\n")
        place = f"{where}[{index}]"
        # Overlapping occurrences count: which of them is meant is as open as with two apart.
        first = text.find(old)
        if not old or first < 0 or text.find(old, first + 1) >= 0:
            found = "is not there" if old and first < 0 else "is empty" if not old else "is there more than once"
            return Refused.of(Code.EFFECT_INEXACT, f"the old text {found}", where=place, needs="quote a longer piece, exactly")
        if _PATTERNS.search(new):
            return Refused.of(
                Code.EFFECT_UNSUPPORTED,
                "servers differ on `$` patterns in the new text",
                where=place,
                needs="write the whole file",
            )
        text = text[:first] + new + text[first + len(old) :]
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return Refused.of(Code.EFFECT_UNREADABLE, "the new text has no UTF-8 form", where=where)
