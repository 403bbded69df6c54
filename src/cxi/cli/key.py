"""`cxi log key`: with which key is the log signed, and how does another take its place?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cxi.cli.open import open_book
from cxi.cli.output import Config, Json, fail, give, say

app = typer.Typer(help="the log's public key; show, list, rotate", invoke_without_command=True)


@app.callback()
def key(context: typer.Context, config: Config = "") -> None:
    """The log's public key, PEM."""
    if context.invoked_subcommand is None:
        with open_book(config) as book:
            typer.echo(book.public_pem().decode(), nl=False)


@app.command("list")
def show_all(config: Config = "", json: Json = False) -> None:
    """The keys of this installation, the first one's first; the last one signs."""
    from cxi.log.envelope import key_id

    with open_book(config) as book:
        rows = [(key_id(one.key), _day(one.since), one.reigns) for one in book.signers()]
    if json:
        give({"keys": [{"id": name, "introduced": since, "reigns": reigns} for name, since, reigns in rows]})
        return
    for name, since, reigns in rows:
        say(f" {'*' if reigns else ' '}  {name}  {f'introduced {since}' if since else 'the first one'}")


@app.command("show")
def show_one(
    id: Annotated[str, typer.Argument(help="the beginning of a key's id; the one that signs if not given")] = "",
    config: Config = "",
    json: Json = False,
) -> None:
    """One key: its id, its PEM, and the line by which other people's programs know it (a C2SP verifier key)."""
    from cxi.log.envelope import export_public, key_id
    from cxi.log.note import verifier

    with open_book(config) as book:
        origin = book.ledger.origin
        found = [one for one in book.signers() if (key_id(one.key).startswith((id, f"sha256:{id}")) if id else one.reigns)]
    if len(found) != 1:
        fail(f"{len(found)} keys have an id that begins with `{id}`; `cxi log key list` names them")
        raise typer.Exit(1)
    (one,) = found
    pem = export_public(one.key).decode()
    if json:
        note = verifier(origin, one.key)
        give({"id": key_id(one.key), "introduced": _day(one.since), "reigns": one.reigns, "pem": pem, "note": note})
        return
    say(f"id      {key_id(one.key)}")
    say(f"note    {verifier(origin, one.key)}")
    say(pem.rstrip())


@app.command("rotate")
def rotate(
    reason: Annotated[str, typer.Option("--reason", help="why, for the log")],
    config: Config = "",
    json: Json = False,
) -> None:
    """Let a new key take the place of the present one, which introduces it in the log and is then gone.

    Whoever holds an older key of this installation verifies what the new one signs by it. After a crash, do it again: it goes on
    where it was.
    """
    with open_book(config) as book:
        answer = book.rotate(reason)
    if json:
        give({"by": answer.by, "key": answer.key, "seq": answer.seq})
        return
    say(f"{answer.by[:23]}… introduced {answer.key[:23]}… in entry {answer.seq}, and is gone")


def _day(time: float | None) -> str:
    return "" if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
