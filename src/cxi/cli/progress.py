"""How far is it? One line on a terminal's stderr, for what takes longer than a moment; nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

AFTER: Final = 1.0  # seconds before the first line
EVERY: Final = 1024  # items between two looks at the clock
_BAR: Final = 30
_WIPE: Final = "\r\x1b[K"


def watched(items: Iterable[T], total: int) -> Iterator[T]:
    """The same items; how many of `total` went by is shown meanwhile; 0 where nobody knows how many there are."""
    if not sys.stderr.isatty():
        yield from items
        return
    began = shown = time.monotonic()
    drawn = False
    try:
        for count, item in enumerate(items, start=1):
            if not count % EVERY:
                now = time.monotonic()
                if now - began > AFTER and now - shown > 0.1:
                    _draw(count, total, now - began)
                    shown, drawn = now, True
            yield item
    finally:
        if drawn:
            sys.stderr.write(_WIPE)
            sys.stderr.flush()


def _draw(count: int, total: int, seconds: float) -> None:
    if total < count:
        sys.stderr.write(f"{_WIPE}{count:,} entries")
    else:
        bar = "=" * (_BAR * count // total)
        left = seconds * (total - count) / count
        sys.stderr.write(f"{_WIPE}[{bar:<{_BAR}}] {count:,} of {total:,} entries, {left:.0f} s left")
    sys.stderr.flush()
