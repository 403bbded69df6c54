"""Could a person's yes cure this refusal, and what exactly would they be asked?

- It is tried, not guessed: the same call is decided once more with a yes to exactly this call and effect beside it. Where that
  would still be refused (a forbid, an unreadable effect, CXI's own files), nobody is asked.
- The display is exact: every character that a reader cannot see is written out (`values.hidden`); what comes from untrusted text
  stands last, behind a fence, so that nothing in it can pass for the gate's own words.
- Risks are disclosed one line each: which value has no authority and where it was seen, which effect is only declared.

    display = appeal(gate, proposal, refused, standing, look, now).display
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cxi.authority.approval import Approval
from cxi.canonical import Digest
from cxi.effects.base import Atom, Effect, Snapshot
from cxi.errors import Code, Reason, Refused
from cxi.gate import Admissible, Cleared, Gate, Proposal, Standing
from cxi.manifest import Action, Assurance, FieldValue, Instant, Role
from cxi.values.hidden import visible

LONGEST_VALUE: Final = 4000  # code points of a value that are shown; the rest is told by its length and digest
FENCE: Final = "~~~"
# What says where a value stands, or that a grant is missing: a yes is about these.
_ABOUT_VALUES: Final = frozenset({Code.FIELD_NO_AUTHORITY, Code.FIELD_AMBIGUOUS, Code.TUPLE_SPLIT, Code.RELEASE_VOID})


@dataclass(frozen=True, slots=True)
class Appeal:
    """What a person is asked.

    Attributes:
        action: The action digest.
        effect: The effect commitment's digest.
        event: The event key.
        display: The exact text.
        risks: One line each; in the display too.
    """

    action: Digest
    effect: Digest
    event: Digest
    display: str
    risks: tuple[str, ...]


def appeal(
    gate: Gate, proposal: Proposal, refused: Refused, session: Standing, look: Callable[[], Snapshot], now: Instant
) -> Appeal | None:
    """What a person would be asked, or None where a yes would not cure the refusal.

    Args:
        gate: The gate that refused.
        proposal: The call.
        refused: Why.
        session: The session as the gate saw it.
        look: Makes a snapshot of the world that was asked nothing yet.
        now: Seconds since the epoch.
    """
    bound = gate.bind(proposal, session, look(), now)
    if bound is None:
        return None
    action, effect, commitment = bound
    yes = Approval("", action.digest, commitment.digest, "", "", "", action.principal.session, now + 1.0)
    asked = replace(session, approvals=(yes,), denials=())
    if not isinstance(gate.decide(replace(proposal, prior=None), asked, look(), now), Admissible | Cleared):
        return None
    risks = tuple(_risks(refused, effect))
    return Appeal(action.digest, commitment.digest, action.event_key(), _render(action, effect, refused, risks), risks)


def _risks(refused: Refused, effect: Effect) -> list[str]:
    found = [f"{reason.code}: {_line(reason)}" for reason in refused.reasons]
    if effect.assurance is Assurance.DECLARED:
        found.append("the effect is only declared: nobody can check what the server really does")
    if any(atom.attributes.get("inputs_writable") is True for atom in effect.atoms):
        found.append("a program runs whose inputs could have been written by others")
    return list(dict.fromkeys(found))


def _line(reason: Reason) -> str:
    where = f"{reason.where}: " if reason.where and not reason.detail.startswith(reason.where) else ""
    return _shown(f"{where}{reason.detail}")


def _render(action: Action, effect: Effect, refused: Refused, risks: Sequence[str]) -> str:
    doubtful = {reason.where for reason in refused.reasons if reason.code in _ABOUT_VALUES}
    names = {path for where in doubtful for path in where.split("+")}
    leaves = (*action.call.fields, *action.derived)
    known = [leaf for leaf in leaves if leaf.role in (Role.PROTECTED, Role.FIXED) and leaf.path not in names and leaf.contract]
    untrusted = [leaf for leaf in leaves if leaf not in known and (leaf.contract or leaf.role is not Role.FIXED)]
    lines = [f"May `{_shown(action.call.name)}` be called, once?", f"  agent {_shown(action.principal.agent)}"]
    lines += [f"  {_shown(leaf.path)} = {_value(leaf)}" for leaf in known]
    lines.append(f"It would do ({effect.assurance}):")
    lines += [f"  {_atom(atom)}" for atom in effect.atoms] or ["  what the tool does; it has no finer effect"]
    lines.append("Why it was refused, and what you take on:")
    lines += [f"  - {risk}" for risk in risks]
    if untrusted:
        lines += ["What follows came from the agent; nobody vouches for it.", FENCE]
        for leaf in untrusted:
            lines.append(f"{_shown(leaf.path)}:")
            lines += [f"| {line}" for line in _value(leaf).split("\n")]
        lines.append(FENCE)
    return "\n".join(lines)


def _atom(atom: Atom) -> str:
    said = {name: value for name, value in atom.attributes.items() if name not in ("before", "after")}
    more = f"  {_shown(json.dumps(said, ensure_ascii=False, sort_keys=True, default=dict))}" if said else ""
    return f"{atom.kind} {_shown(atom.target)}{' (a pattern)' if atom.pattern else ''}{more}"


def _value(leaf: FieldValue) -> str:
    raw = leaf.value.canonical
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, sort_keys=True)
    if len(text) <= LONGEST_VALUE:
        return visible(text)
    return f"{visible(text[:LONGEST_VALUE])}\n… and {len(text) - LONGEST_VALUE} characters more ({leaf.digest})"


def _shown(text: str) -> str:
    """On one line, with nothing that a reader cannot see."""
    return visible(text).replace("\n", "\\u{A}").replace("\t", "\\u{9}")
