"""Which revisions does a plan read?

- A name, with `~2`, `^` or `^2` behind it (gitrevisions(7)).
- Not read, because they name several things, depend on a log or search: ranges, `@{...}`, `:/text`, `^{/text}`, and what could
  be taken for an option or a path.

    >>> bool(REVISION.fullmatch("main~2")), bool(REVISION.fullmatch("main..other"))
    (True, False)
"""

from __future__ import annotations

import re
from typing import Final

REVISION: Final = re.compile(r"(?!-)(?!.*\.\.)(?!.*@\{)[^\s:*?\[\\^~\x00-\x1f\x7f]+(?:[~^]\d*)*")
