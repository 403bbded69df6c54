"""`cxi log`: what happened, and is the record whole?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cxi.cli.open import open_book
from cxi.cli.output import DIM, GREEN, RED, YELLOW, Config, Json, fail, give, say

if TYPE_CHECKING:
    from cxi.cli.book import Book
    from cxi.log.story import Story

app = typer.Typer(help="what happened: show, verify, receipts", no_args_is_help=True)
COLORS = {"admitted": GREEN, "refused": RED, "no-op": DIM, "recorded": DIM, "unknown": YELLOW}
MARKS = {"admitted": "ok", "refused": "NO", "no-op": "--", "recorded": "=="}
OPEN = ("leased", "outcome_unknown", "released")  # nobody knows whether it happened
Session = Annotated[str, typer.Option("--session", help="only this session")]


@app.command("show")
def show(
    config: Config = "",
    session: Session = "",
    last: Annotated[int, typer.Option("--last", "-n", min=0, help="only the last N calls; 0 for all")] = 0,
    json: Json = False,
) -> None:
    """One line a call: decision, tool, values, why."""
    with open_book(config) as book:
        whole = is_whole(book)
        found = [story for story in stories(book) if not session or story.session == session]
        found = found[-last:] if last else found
        if json:
            give({"calls": [story.to_json() for story in found], "entries": book.count(), "verified": whole})
        else:
            for story in found:
                mark, color = MARKS.get(story.decision, "??"), COLORS.get(story.decision, "")
                if story.decision == "admitted" and story.state in OPEN:
                    mark, color = "??", YELLOW
                say(f" {mark}  {story.id}  {story.tool:<24}  {story.shown[:48]:<48}  {story.why}", color)
            counts = {name: sum(story.decision == name for story in found) for name in COLORS}
            say(f"{len(found)} calls: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count), DIM)
    if not whole:
        raise typer.Exit(1)


def is_whole(book: Book) -> bool:
    """Whether the log verifies; a warning where it does not, as what is shown of it may not be what happened."""
    from cxi.log.finding import Broken

    answer = book.verify()
    if not isinstance(answer, Broken):
        return True
    first = answer.findings[0]
    count = len(answer.findings)
    fail(f"this log does not verify ({first.kind} at entry {first.seq}, {count} in all); see `cxi log verify`")
    return False


def stories(book: Book) -> tuple[Story, ...]:
    """The stories of all calls, with the openings that are still there."""
    from cxi.log.story import tell

    return tell(book.entries(), book.opened)


@app.command("verify")
def check(
    config: Config = "",
    state: Annotated[
        Path | None, typer.Option("--state", help="a copied state folder; with --key, and without configuration")
    ] = None,
    key: Annotated[typer.FileBinaryRead | None, typer.Option("--key", help="the log's public key, PEM, with --state")] = None,
    json: Json = False,
) -> None:
    """Recompute the chain and compare it with the signed checkpoints; names whatever was removed, moved, altered or cut off.

    The ledger is compared with what the log tells: calls and their states, epochs, closed sessions and revocations.
    """
    from cxi.log.finding import Broken

    if (state is None) is not (key is None):
        fail("`--state` and `--key` go together: a copied folder's own key vouches for nothing")
        raise typer.Exit(2)
    if state is not None and key is not None:
        _check_replica(state, key.read(), json=json)
        return
    began = time.perf_counter()
    with open_book(config) as book:
        checkpoints = book.checkpoints()
        answer = book.verify()
    seconds = time.perf_counter() - began
    if isinstance(answer, Broken):
        if json:
            give({"ok": False, "findings": [{"kind": str(f.kind), "seq": f.seq, "detail": f.detail} for f in answer.findings]})
        for finding in answer.findings:
            fail(f"log entry {finding.seq}: {finding.kind}: {finding.detail}")
        raise typer.Exit(1)
    if json:
        give(
            {
                "ok": True,
                "entries": answer.count,
                "head": answer.head,
                "checkpoints": len(checkpoints),
                "seconds": round(seconds, 3),
            }
        )
        return
    say(f"verified: {answer.count} entries, {len(checkpoints)} signed checkpoints, head {answer.head[:23]}…", GREEN)


def _check_replica(state: Path, pem: bytes, *, json: bool) -> None:
    """A copied state folder, by a key that was handed over before; nothing of the folder is trusted, or written."""
    from cxi.ledger.replica import verify_replica
    from cxi.log.envelope import read_public
    from cxi.log.finding import Broken

    answer = verify_replica(state, read_public(pem))
    if isinstance(answer, Broken):
        if json:
            give({"ok": False, "findings": [{"kind": str(f.kind), "seq": f.seq, "detail": f.detail} for f in answer.findings]})
        for finding in answer.findings:
            fail(f"log entry {finding.seq}: {finding.kind}: {finding.detail}")
        raise typer.Exit(1)
    if json:
        give({"ok": True, "entries": answer.count, "head": answer.head, "signed": answer.signed})
        return
    say(f"verified: {answer.count} entries, {answer.signed} of them under a signed checkpoint, head {answer.head[:23]}…", GREEN)


@app.command("checkpoint")
def checkpoint(config: Config = "", json: Json = False) -> None:
    """Sign the log's present head."""
    with open_book(config) as book:
        size, head = book.sign_head()
    if json:
        give({"size": size, "head": head})
        return
    say(f"signed: {size} entries, head {head[:23]}…")


@app.command("receipt")
def receipt(
    call: Annotated[str, typer.Argument(help="the call's id, a-…")],
    config: Config = "",
) -> None:
    """The receipt of an admitted call, as a DSSE envelope that a third party verifies with the public key alone."""
    with open_book(config) as book:
        envelope = book.receipt(call)
    if envelope is None:
        fail(f"`{call}` is no settled admission in this log")
        raise typer.Exit(1)
    give(envelope)


@app.command("verify-receipt")
def check_receipt(
    file: Annotated[typer.FileText, typer.Argument(help="the envelope; `-` for standard input")],
    key: Annotated[typer.FileBinaryRead, typer.Option("--key", help="the log's public key, PEM")],
    json: Json = False,
) -> None:
    """Verify a receipt offline, with nothing but the public key."""
    from cxi.canonical import parse_json
    from cxi.log.envelope import read_public
    from cxi.log.finding import Broken
    from cxi.log.receipt import verify_receipt

    answer = verify_receipt(parse_json(file.read()), read_public(key.read()))
    if isinstance(answer, Broken):
        for finding in answer.findings:
            fail(f"{finding.kind}: {finding.detail}")
        raise typer.Exit(1)
    if json:
        give(
            {
                "ok": True,
                "call": answer.call,
                "manifest": answer.manifest,
                "state": str(answer.state),
                "assurance": answer.assurance,
            }
        )
        return
    say(f"verified: {answer.call} {answer.state}, assurance {answer.assurance}, carriage {answer.carriage}", GREEN)


@app.command("erase")
def erase(
    reason: Annotated[str, typer.Option("--reason", help="why, for the log")],
    config: Config = "",
    session: Session = "",
    days: Annotated[int, typer.Option("--older-than", min=0, help="all that is older than this many days")] = -1,
    json: Json = False,
) -> None:
    """Erase the values behind the log's commitments; the chain still verifies, and what is erased cannot be shown again."""
    if not session and days < 0:
        fail("say what to erase: `--session ID`, `--older-than DAYS`, or both")
        raise typer.Exit(2)
    with open_book(config) as book:
        count = book.erase(session=session, before=time.time() - days * 86_400 if days >= 0 else None, reason=reason)
    if json:
        give({"erased": count})
        return
    say(f"erased: {count} openings")


@app.command("key")
def key(config: Config = "") -> None:
    """The log's public key, PEM."""
    with open_book(config) as book:
        typer.echo(book.public_pem().decode(), nl=False)
