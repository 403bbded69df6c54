"""How do agents reach it with no change of code?"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

__all__ = ["serve"]


def serve(
    config_path: str | Path,
    *,
    request: str | None = None,
    task: str | None = None,
    stdin: BinaryIO | None = None,
    stdout: BinaryIO | None = None,
    ledger: str = "",
    activate: bool = False,
) -> int:
    """Run the gateway over stdio until the client is done; see `cxi.gateway.service`.

    Args:
        config_path: `cxi.yaml`.
        request: The person's words, if the command line carries them.
        task: The task to start with them.
        stdin: Where the client writes; the standard input if not given.
        stdout: Where the client reads; the standard output if not given.
        ledger: The address of a ledger of many gateways, in place of `CXI_LEDGER` and the configuration's.
        activate: Whether these files are put in force though gateways at work run under others.

    Returns:
        The exit code, 0.

    Raises:
        ConfigError: something is wrong with the configuration, or with the names that the servers' tools would have.
        LedgerError: the ledger cannot be used.
    """
    from cxi.gateway.service import run  # noqa: PLC0415  # asyncio and the relay load only where they are needed

    run(config_path, request=request, task=task, stdin=stdin, stdout=stdout, ledger=ledger, activate=activate)
    return 0
