"""`cxi log`: what happened, and is the record whole?"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cxi.cli.key import app as key_app
from cxi.cli.open import open_book
from cxi.cli.output import DIM, GREEN, RED, YELLOW, Config, Json, fail, give, say

if TYPE_CHECKING:
    from cxi.canonical import JsonValue
    from cxi.cli.book import Book
    from cxi.log.finding import Broken
    from cxi.log.story import Story

app = typer.Typer(help="what happened: show, verify, receipts, export, keys", no_args_is_help=True)
app.add_typer(key_app, name="key")
COLORS = {"admitted": GREEN, "refused": RED, "no-op": DIM, "recorded": DIM, "unknown": YELLOW}
MARKS = {"admitted": "ok", "refused": "NO", "no-op": "--", "recorded": "=="}
OPEN = ("leased", "outcome_unknown", "released")  # nobody knows whether it happened
MOST = 20  # findings that are told one by one
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
    file: Annotated[Path | None, typer.Argument(help="an export; with --key, and without configuration")] = None,
    config: Config = "",
    state: Annotated[
        Path | None, typer.Option("--state", help="a copied state folder; with --key, and without configuration")
    ] = None,
    key: Annotated[
        typer.FileBinaryRead | None, typer.Option("--key", help="the log's public key, PEM, with FILE or --state")
    ] = None,
    against: Annotated[
        list[Path] | None, typer.Option("--against", help="a checkpoint or note that was kept elsewhere; as many as there are")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute chain and tree, compare them with the signed checkpoints, and name what is wrong, and where.

    Entries that were removed, put in, moved, altered or cut off are found, and keys that had no right to sign. The ledger is
    compared with what the log tells: calls and their states, epochs, closed sessions and revocations.
    """
    from cxi.cli.progress import watched
    from cxi.log.finding import Broken

    if (file is None and state is None) is not (key is None) or (file is not None and state is not None):
        fail("FILE or `--state` goes with `--key`: what a copy brings of its own vouches for nothing")
        raise typer.Exit(2)
    if key is not None and against:
        fail("`--against` is for the log of this machine")
        raise typer.Exit(2)
    if key is not None:
        _check_copy(file, state, key.read(), json=json)
        return
    others = [_read_checkpoint(path) for path in against or ()]
    began = time.perf_counter()
    with open_book(config) as book:
        book.progress = watched
        checkpoints = len(book.checkpoints()) + len(others)
        answer = book.verify(others=others)
    seconds = time.perf_counter() - began
    if isinstance(answer, Broken):
        _tell_findings(answer, json=json)
    if json:
        give(
            {
                "ok": True,
                "entries": answer.count,
                "signed": answer.signed,
                "head": answer.head,
                "root": answer.root,
                "checkpoints": checkpoints,
                "seconds": round(seconds, 3),
            }
        )
        return
    say(f"verified: {answer.count} entries, {checkpoints} signed checkpoints, head {answer.head[:23]}…", GREEN)


def _check_copy(file: Path | None, state: Path | None, pem: bytes, *, json: bool) -> None:
    """An export or a copied state folder, by a key that was handed over before; nothing of it is trusted, or written."""
    from cxi.cli.progress import watched
    from cxi.ledger.replica import verify_replica
    from cxi.log.envelope import read_public
    from cxi.log.export import verify_export
    from cxi.log.finding import Broken

    key = read_public(pem)
    if file is not None:
        with file.open("rb") as lines:
            answer = verify_export(watched(lines, 0), [key])
    elif state is not None:
        answer = verify_replica(state, key)
    else:  # INVARIANT (one-of-both): the command sees to it
        raise AssertionError
    if isinstance(answer, Broken):
        _tell_findings(answer, json=json)
    if json:
        give({"ok": True, "entries": answer.count, "head": answer.head, "signed": answer.signed, "root": answer.root})
        return
    head = f", head {answer.head[:23]}…" if answer.head else ""
    say(f"verified: {answer.count} entries, {answer.signed} of them under a signed checkpoint{head}", GREEN)


def _tell_findings(broken: Broken, *, json: bool) -> NoReturn:
    if json:
        give({"ok": False, "findings": [{"kind": str(f.kind), "seq": f.seq, "detail": f.detail} for f in broken.findings]})
    for finding in broken.findings[:MOST]:
        fail(f"log entry {finding.seq}: {finding.kind}: {finding.detail}")
    if len(broken.findings) > MOST:
        fail(f"and {len(broken.findings) - MOST} findings more; `--json` has all of them")
    raise typer.Exit(1)


def _read_checkpoint(path: Path) -> JsonValue:
    """A checkpoint that was kept: a note, or the envelope as JSON."""
    from cxi.canonical import parse_json

    text = path.read_text(encoding="utf-8")
    return parse_json(text) if text.lstrip().startswith("{") else text


@app.command("checkpoint")
def checkpoint(
    config: Config = "",
    note: Annotated[
        bool, typer.Option("--note", help="as a signed note (C2SP tlog-checkpoint), to be kept elsewhere; other programs read it")
    ] = False,
    json: Json = False,
) -> None:
    """Sign the log's present head."""
    with open_book(config) as book:
        head = book.sign_head()
        text = book.note(head) if note else ""
    if note:
        sys.stdout.write(text)
    elif json:
        give({"origin": head.origin, "size": head.size, "head": head.hash, "root": head.root})
    else:
        say(f"signed: {head.size} entries, head {head.hash[:23]}…")


@app.command("receipt")
def receipt(
    call: Annotated[str, typer.Argument(help="the call's id, a-…")],
    config: Config = "",
) -> None:
    """The receipt of an admitted call, as a DSSE envelope that a third party verifies with the public key alone."""
    from cxi.cli.progress import watched

    with open_book(config) as book:
        book.progress = watched
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
        if json:
            give({"ok": False, "findings": [{"kind": str(f.kind), "detail": f.detail} for f in answer.findings]})
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
                "carriage": answer.carriage,
                "admission": answer.admission.seq,
                "settlement": answer.settlement.seq,
                "log": {"origin": answer.head.origin, "size": answer.head.size, "root": answer.head.root},
            }
        )
        return
    say(f"verified: {answer.call} {answer.state}, assurance {answer.assurance}, carriage {answer.carriage}", GREEN)


@app.command("prove")
def prove(
    old: Annotated[Path, typer.Argument(help="the older checkpoint: a note, or the envelope as JSON")],
    config: Config = "",
) -> None:
    """Prove to whoever holds an older checkpoint that this log only grew since (RFC 9162)."""
    from cxi.cli.progress import watched
    from cxi.log.checkpoint import claimed

    head = claimed(_read_checkpoint(old))
    if head is None or not head.root:
        fail(f"`{old}` is no checkpoint with a root")
        raise typer.Exit(2)
    with open_book(config) as book:
        book.progress = watched
        give(book.grown(head))


@app.command("verify-proof")
def check_proof(
    file: Annotated[typer.FileText, typer.Argument(help="what `cxi log prove` gave; `-` for standard input")],
    old: Annotated[Path, typer.Option("--old", help="the older checkpoint, as it was kept")],
    key: Annotated[typer.FileBinaryRead, typer.Option("--key", help="the log's public key, PEM")],
    json: Json = False,
) -> None:
    """Verify offline that the log of the newer checkpoint begins with that of the older one."""
    from cxi.canonical import parse_json
    from cxi.log.envelope import read_public
    from cxi.log.finding import Broken
    from cxi.log.growth import verify_growth

    answer = verify_growth(_read_checkpoint(old), parse_json(file.read()), read_public(key.read()))
    if isinstance(answer, Broken):
        _tell_findings(answer, json=json)
    if json:
        give({"ok": True, "old": answer.old, "size": answer.size})
        return
    say(f"verified: the log of {answer.size} entries begins with the {answer.old} of the older checkpoint", GREEN)


@app.command("export")
def export(
    config: Config = "",
    out: Annotated[str, typer.Option("--jsonl", help="the file to write; `-` for standard output")] = "-",
    since: Annotated[str, typer.Option("--since", help="not before this time, as 2026-11-30 or 2026-11-30T08:00:00+01:00")] = "",
    until: Annotated[str, typer.Option("--until", help="before this time")] = "",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="only entries of this kind; as many as you like")] = None,
    origin: Annotated[str, typer.Option("--origin", help="which log, where the ledger has one for each writer")] = "",
) -> None:
    """The log as JSON lines; `cxi log verify FILE --key KEY` verifies it elsewhere, also where a filter leaves entries out."""
    from cxi.cli.progress import watched
    from cxi.log.entry import ChainedEntry, EntryType

    unknown = set(kind or ()) - set(EntryType)
    if unknown:
        fail(f"`--kind {min(unknown)}` is none of {', '.join(EntryType)}")
        raise typer.Exit(2)
    first, last = _instant(since, "--since"), _instant(until, "--until")

    def keep(entry: ChainedEntry) -> bool:
        return (
            (not kind or entry.entry.kind in kind)
            and (first is None or entry.time >= first)
            and (last is None or entry.time < last)
        )

    with open_book(config) as book:
        book.progress = watched
        names = book.origins()
        if origin not in names and (origin or len(names) > 1):
            fail(f"name the log with `--origin`: {', '.join(names)}")
            raise typer.Exit(2)
        whole = not kind and first is None and last is None
        lines = book.export(keep, whole=whole, origin=origin or "".join(names))
        with nullcontext(sys.stdout.buffer) if out == "-" else Path(out).open("xb") as file:
            file.writelines(lines)
            file.flush()


def _instant(text: str, option: str) -> float | None:
    """Seconds since the epoch; a time without a zone is UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fail(f"`{option} {text}` is no time as ISO 8601 has it: 2026-11-30, or 2026-11-30T08:00:00+01:00")
        raise typer.Exit(2) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


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
