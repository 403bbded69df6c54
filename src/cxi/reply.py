"""What does the agent read in place of a result?

- A refusal is an ordinary tool result (`isError`): each reason with its place, what would help, and how a person finds out more;
  the codes stand in `_meta` for programs. It is W itself where it echoes a value.
- Advice is only about what the person wrote, and never repeats what untrusted text named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from cxi.authority.contract import Origin, ToolContract
from cxi.canonical import JsonValue
from cxi.errors import Code, Reason, Refused
from cxi.manifest import FieldValue
from cxi.provenance import Segment, TrustedRequest
from cxi.values.hidden import visible

PATH_TYPES: Final = frozenset({"RepoPath", "FilePath"})


def advise(
    refused: Refused,
    leaves: Sequence[FieldValue],
    contract: ToolContract | None,
    request: TrustedRequest | None,
    segments: Sequence[Segment],
) -> Refused:
    """The refusal, where a request that names a file without its folder is told how to name it.

    Args:
        refused: The refusal.
        leaves: What the call names.
        contract: The tool's contract.
        request: The trusted request.
        segments: What the agent has read: a path that untrusted text named is not repeated.
    """
    if contract is None or request is None:
        return refused
    words = "\n".join(segment.text for segment in request.segments)
    advice: dict[str, str] = {}
    for leaf in leaves:
        path = leaf.value.canonical
        if not isinstance(path, str) or leaf.value.type not in PATH_TYPES or not _names_last_part(words, path):
            continue
        asked = {Origin.REQUEST, Origin.ANY_OF_REQUEST} & {*contract.fields[leaf.contract].origins}
        if asked and not any(path in segment.text for segment in segments):
            advice[leaf.path] = f"the path as written from the root, `{visible(path)}`, in the user's request"
    return Refused(
        tuple(
            replace(reason, needs=advice[reason.where])
            if reason.code is Code.FIELD_NO_AUTHORITY and reason.where in advice
            else reason
            for reason in refused.reasons
        )
    )


def _names_last_part(words: str, path: str) -> bool:
    """Whether the words hold the last part of a path as a whole word, and not the path itself."""
    folder, _, name = path.rpartition("/")
    return (
        bool(folder and name) and path not in words and bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", words))
    )


def render_refusal(tool: str, refused: Refused, call: str, *, changed: bool = False, waits: str = "") -> str:
    """What the agent reads: each reason, what would help, and how a person finds out more.

    Args:
        tool: The tool as policies name it.
        refused: The refusal.
        call: The call's id in the log.
        changed: Whether something may have happened already.
        waits: Under which id a person is asked about it, or empty.
    """
    lines = [f"refused: {tool}"]
    width = max(len(code) for code in refused.codes)
    for reason in refused.reasons:
        lines.append(f"  {reason.code:<{width}}  {_placed(reason)}")
        lines.append(f"    needs: {reason.helps}")
    if waits:
        lines.append(f"a person is asked about it ({waits}); the same call can be made again once they said yes")
    tail = "something may have changed" if changed else "nothing was changed"
    lines.append(f"{tail}. explain: cxi explain {call}")
    return "\n".join(lines)


def _placed(reason: Reason) -> str:
    """The detail behind its place, which is left out only where the detail names it by itself."""
    where, detail = reason.where, reason.detail
    named = not where or detail.startswith(f"{where}:") or f"`{where}`" in detail
    return detail if named else f"{where}: {detail}"


def text_result(text: str, *, failed: bool = False) -> dict[str, JsonValue]:
    """An MCP `CallToolResult` of one text."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def refusal_result(tool: str, refused: Refused, call: str, *, changed: bool = False, waits: str = "") -> dict[str, JsonValue]:
    """A refusal as an ordinary tool result (`isError`), with the codes in `_meta` for programs."""
    result = text_result(render_refusal(tool, refused, call, changed=changed, waits=waits), failed=True)
    told: dict[str, JsonValue] = {"call": call, "codes": list(refused.codes), **({"approval": waits} if waits else {})}
    return {**result, "_meta": {"cxi.dev/refusal": told}}


def result_text(result: Mapping[str, JsonValue]) -> str:
    """Everything in a tool result that a model could read, as text."""
    parts: list[str] = []
    content = result.get("content")
    if isinstance(content, list):
        for block in content:
            if isinstance(block, Mapping):
                text = block.get("text")
                parts.append(text if isinstance(text, str) else _json(block))
    structured = result.get("structuredContent")
    if structured is not None and not parts:
        parts.append(_json(structured))
    return "\n".join(parts).encode("utf-8", "replace").decode()


def _json(value: JsonValue) -> str:
    """Readable, for any JSON that a server can send, numbers of any size among it; empty for what an in-process tool made up."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=1, default=dict)
    except (TypeError, ValueError, RecursionError):
        return ""
