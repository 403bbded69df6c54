"""What of a turn enters the log, and what of it stays hidden?

- Names, codes and counts stand in an entry's body; values stand there as salted commitments (`cxi.log.commitment`), and only what
  is returned here as hidden is ever opened.
- What an agent sent is cut before it is kept: it may send what it likes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Refused
from cxi.gate import Admissible
from cxi.log.commitment import Opening, conceal, conceal_bytes
from cxi.manifest import Action, FieldValue, Manifest, Role

MAX_TOOL_NAME: Final = 200  # code points of a tool's name that are kept
MAX_TOLD: Final = 100  # values of a refused call that are kept, to tell what was refused
MAX_TOLD_VALUE: Final = 1000  # code points of one of them
_SALT: Final = 16

Entropy: TypeAlias = Callable[[int], bytes]


def hide(hidden: Mapping[str, JsonValue], entropy: Entropy) -> list[tuple[str, Opening]]:
    """Commit to each value, under a salt of its own."""
    return [(name, conceal(value, entropy(_SALT))) for name, value in hidden.items()]


def describe_admission(manifest: Manifest, found: Admissible, entropy: Entropy) -> tuple[dict[str, JsonValue], list[Opening]]:
    """The admission's body. The manifest's digest is itself a commitment to it: its nonce is random and not in the log."""
    hidden = hide({**values_of(leaves_of(found.action)), "atoms": [atom.to_json() for atom in found.effect.atoms]}, entropy)
    hidden.append(("manifest", conceal_bytes(manifest.canonical, entropy(_SALT))))
    kinds: dict[str, int] = {}
    for atom in found.effect.atoms:
        kinds[atom.kind] = kinds.get(atom.kind, 0) + 1
    body: dict[str, JsonValue] = {
        "mode": "enforce",
        "tool": found.proposal.tool,
        **fixed_of(leaves_of(found.action)),
        "manifest": manifest.digest,
        "evidence": {item.path: {"regime": str(item.regime), "kind": item.kind} for item in manifest.evidence},
        "effect": {
            "adapter": manifest.effect.adapter,
            "assurance": str(manifest.effect.assurance),
            "atoms": kinds,
            "authorized_by": list(manifest.effect.authorized_by),
        },
        "grant": manifest.invocation.grant,
        "sequence": manifest.invocation.sequence,
        "limit": found.grant.count,
        "policy_epoch": list(manifest.effect.policy_epoch),
        "carriage": manifest.carriage or "not claimed",
        "hidden": {name: opening.commitment for name, opening in hidden},
    }
    return body, [opening for _, opening in hidden]


def leaves_of(action: Action) -> tuple[FieldValue, ...]:
    """Every leaf of a call, and what was derived from its payloads."""
    return (*action.call.fields, *action.derived)


def values_of(leaves: Iterable[FieldValue]) -> dict[str, JsonValue]:
    """The protected and fixed values of a call, by their path, as log and `explain` name them."""
    return {f"field:{leaf.path}": leaf.value.canonical for leaf in leaves if leaf.role in (Role.PROTECTED, Role.FIXED)}


def fixed_of(leaves: Iterable[FieldValue]) -> dict[str, JsonValue]:
    """Which of them are constants of the contract: their paths, for the entry's body; the values stay hidden."""
    paths: list[JsonValue] = [leaf.path for leaf in leaves if leaf.role is Role.FIXED]
    return {"fixed": paths} if paths else {}


def shortened(value: JsonValue) -> JsonValue:
    """A value of a refused call, told in short where it is long: an agent may send what it likes."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)
    return value if len(text) <= MAX_TOLD_VALUE else f"{text[:MAX_TOLD_VALUE]}…"


def tellable(tool: str) -> str:
    """What has no UTF-8 form, or is longer than any name, is the name of no tool; it is cut only to be told."""
    return (tool if len(tool) <= MAX_TOOL_NAME else f"{tool[:MAX_TOOL_NAME]}…").encode("utf-8", "backslashreplace").decode()


def codes_of(tool: str, refused: Refused) -> dict[str, JsonValue]:
    """What of a refusal stands in an entry's body."""
    return {"tool": tool, "reasons": list(refused.codes)}


def details_of(refused: Refused) -> dict[str, JsonValue]:
    """What of a refusal stays hidden: details echo values."""
    return {
        "reasons": [
            {"code": str(reason.code), "where": reason.where, "detail": reason.detail, "needs": reason.helps}
            for reason in refused.reasons
        ]
    }
