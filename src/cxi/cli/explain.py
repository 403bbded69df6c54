"""`cxi explain`: one call, or one reason code, from the log alone."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated

import typer

from cxi.cli.log import COLORS, is_whole, stories
from cxi.cli.open import open_book
from cxi.cli.output import DIM, Config, Json, fail, give, say
from cxi.errors import CODES, Code

if TYPE_CHECKING:
    from cxi.log.story import Story


def explain(
    what: Annotated[str, typer.Argument(help="a call's id (a-…), or a reason code")],
    config: Config = "",
    json: Json = False,
) -> None:
    """Why was this decided so: each field with its source, each atom with the deciding policies, the grant, the outcome."""
    if what.upper() in Code.__members__:
        _explain_code(Code[what.upper()], json=json)
        return
    if not what.startswith("a-"):
        near = difflib.get_close_matches(what.upper(), list(Code.__members__), 1)
        fail(f"`{what}` is neither a call's id nor a reason code" + (f"; did you mean `{near[0]}`?" if near else ""))
        raise typer.Exit(2)
    with open_book(config) as book:
        whole = is_whole(book)
        found = [story for story in stories(book) if story.id == what]
        if not found:
            fail(f"no call `{what}` in this log")
            raise typer.Exit(1)
        if json:
            policies = {name: book.policy_text(name) for name in found[0].authorized_by}
            give({**found[0].to_json(), "policies": policies, "verified": whole})
        else:
            _show(found[0], book.policy_text)
    if not whole:
        raise typer.Exit(1)


def _explain_code(code: Code, *, json: bool) -> None:
    row = CODES[code]
    if json:
        give({"code": str(code), "meaning": row.meaning, "helps": row.helps})
        return
    say(f"{code}: {row.meaning}.")
    say(f"what helps: {row.helps}.")


def _show(story: Story, policy_text: object) -> None:
    text = policy_text if callable(policy_text) else (lambda _id: "")
    say(
        f"{story.id}  {story.tool}  {story.decision}" + (f", {story.state}" if story.state else ""),
        COLORS.get(story.decision, ""),
    )
    for path, value in story.fields.items():
        evidence = story.evidence.get(path)
        constant = "a constant of the contract" if path in story.fixed else ""
        grounds = f"{evidence[1]} {evidence[2]} ({evidence[0]})" if evidence else constant
        say(f"  field  {path} = `{value}`  {grounds}".rstrip())
    for atom in story.atoms:
        extra = {key: value for key, value in atom.items() if key not in ("kind", "target", "pattern")}
        say(f"  atom   {atom.get('kind')} `{atom.get('target')}`  {extra or ''}".rstrip())
    for policy in story.authorized_by:
        say(f"  permit {policy}: {text(policy)}")
    if story.grant is not None:
        say(f"  event  {story.grant[0]}, {story.grant[1]} of {story.grant[2]}")
    if story.assurance:
        say(f"  effect assurance: {story.assurance}")
    for reason in story.reasons:
        say(f"  {reason['code']}  {reason.get('where', '')}: {reason.get('detail', '')}")
        say(f"    needs: {reason.get('needs', '')}", DIM)
    for difference in story.differs:
        say(f"  DIFFERS {difference}")
    for name, values in story.released.items():
        say(f"  released by {name}: {', '.join(str(value) for value in values) or 'nothing'}")
    if story.recorded:
        say(f"  the recorded answer of {story.recorded} was given again")
    say(f"  log entries {', '.join(str(seq) for seq in story.seqs)}; manifest {story.manifest or 'none'}", DIM)
