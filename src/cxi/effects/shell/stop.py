"""How does reading end early, from deep inside a text? By `Stop`, which the adapter alone catches and turns into a value."""

from __future__ import annotations

from typing import Final

from cxi.errors import Code, Refused

READ: Final = Code.EFFECT_UNREADABLE
KNOW: Final = Code.EFFECT_UNSUPPORTED


class Stop(Exception):
    """The text cannot be planned.

    Attributes:
        refused: Why, as the value that the adapter answers.
    """

    def __init__(self, code: Code, detail: str, start: int = -1, end: int = -1, *, needs: str = "") -> None:
        super().__init__(detail)
        self.code, self.detail, self.start, self.end, self.needs = code, detail, start, end, needs

    def at(self, start: int, end: int) -> Stop:
        """The same with a place, where it has none yet."""
        return self if self.start >= 0 else Stop(self.code, self.detail, start, end, needs=self.needs)

    def refuse(self, text: str, field: str) -> Refused:
        """As a value; the place is in bytes of the text."""
        where = field
        if self.start >= 0:
            first = len(text[: self.start].encode("utf-8", "surrogatepass"))
            last = first + len(text[self.start : max(self.end, self.start + 1)].encode("utf-8", "surrogatepass"))
            where = f"{field}: bytes {first}-{last}" if field else f"bytes {first}-{last}"
        return Refused.of(self.code, self.detail, where=where, needs=self.needs)
