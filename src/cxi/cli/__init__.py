"""How does a person drive it?

- Everyday commands come first: `gateway`, `task`, `log`, `explain`, `check`, `lock`; then `ledger` and `lab`.
- `--json` stands beside every readable output. Exit codes: 0 done, 1 refused or violations found, 2 configuration or usage,
  3 the ledger or the log cannot be used, 130 interrupted.
- Everything that a command shows of untrusted text has its hidden characters made visible.
"""

from __future__ import annotations

import sys

from cxi.cli.app import app
from cxi.cli.output import fail
from cxi.errors import ConfigError, CxiError, LedgerError


def main() -> None:
    """Run the command line; faults become one clear message and an exit code."""
    try:
        app(standalone_mode=True)
    except ConfigError as error:
        for problem in error.problems:
            fail(str(problem))
        sys.exit(2)
    except LedgerError as error:
        fail(str(error))
        sys.exit(3)
    except CxiError as error:
        fail(str(error))
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        fail("interrupted; nothing that was written is lost")
        sys.exit(130)
