"""What of a tool's result did the platform write, and is the read whole?

- A result is an MCP `CallToolResult`: its structured content, else its one text part, parsed strictly. An error, several parts,
  or text that is not one JSON value hold nothing to release.
- A contract gives positions to their writers. The most exact position that covers a place says who wrote it, an outsider wins a
  tie, and what none covers was written by an outsider. A platform position may not filter or descend: what it covers is plain.
- `platform_part` takes everything else away before anything selects from it: a filter can then only read what the platform wrote.
- A read is whole if no field that narrows it was given and, where the contract declares it, `complete` is true.

    >>> part = platform_part(ResultContract((("$.run", Writer.PLATFORM),)), {"run": {"id": 7}, "log": "…"})
    >>> [(found.position, found.value) for found in part.select("$.run.id")]
    [("$['run']['id']", 7)]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import jsonpath_rfc9535
from jsonpath_rfc9535 import segments, selectors

from cxi.authority.contract import ResultContract, ToolContract, Writer
from cxi.canonical import JsonValue, parse_json
from cxi.errors import MalformedError
from cxi.manifest import CanonicalCall

Location: TypeAlias = tuple[int | str, ...]

MAX_MATCHES: Final = 10_000  # more values than this at one position is a flood, and gives nothing
_GONE: Final = object()


@dataclass(frozen=True, slots=True)
class Match:
    """A value that a JSONPath selects.

    Attributes:
        location: Names and indexes from the top.
        position: The normalized path (RFC 9535, section 2.7).
        value: The value, without what an outsider wrote in it.
    """

    location: Location
    position: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Part:
    """The platform's part of a result.

    Attributes:
        document: The result's JSON; list items that are not the platform's are null, other such values are absent.
        written: Where the platform wrote.
    """

    document: JsonValue
    written: frozenset[Location]

    def select(self, path: str) -> tuple[Match, ...] | None:
        """What a path selects among what the platform wrote; None where it selects too much or cannot be read."""
        found = _find(path, self.document)
        if found is None or len(found) > MAX_MATCHES:
            return None
        return tuple(match for match in found if match.location in self.written)


def read_result(result: JsonValue) -> JsonValue | str:
    """The JSON of a `CallToolResult`, wrapped in a list of one, or why there is none.

    Returns:
        `[value]`, or one lowercase line.
    """
    if not isinstance(result, Mapping):
        return "the result is no object"
    if result.get("isError", False) is not False:
        return "the tool reports an error"
    structured = result.get("structuredContent")
    if structured is not None:
        return [_plain(structured)] if isinstance(structured, Mapping) else "the structured content is no object"
    content = result.get("content")
    if not isinstance(content, list | tuple) or len(content) != 1 or not isinstance(content[0], Mapping):
        return "the result is not one text"
    text = content[0].get("text")
    if content[0].get("type") != "text" or not isinstance(text, str):
        return "the result is not one text"
    try:
        return [parse_json(text)]
    except MalformedError as error:
        return f"the text is not one JSON value ({error.reason.code})"


def narrowed_by(contract: ToolContract, call: CanonicalCall) -> str:
    """The field that made a read partial, or empty."""
    given = {leaf.contract for leaf in call.fields if leaf.value.canonical is not None} | {
        # an empty list is given too; no contract names its marker
        re.sub(r"\[\d+\]", "[]", leaf.path) + suffix
        for leaf in call.fields
        if not leaf.contract and leaf.value.canonical is not None
        for suffix in ("", "[]")
    }
    return next((path for path, entry in contract.fields.items() if entry.narrows and path in given), "")


def is_complete(contract: ResultContract, part: Part) -> bool:
    """Whether the platform says that the read is whole, where the contract declares that it says so."""
    if not contract.complete:
        return True
    found = part.select(contract.complete)
    return found is not None and len(found) == 1 and found[0].value is True


def platform_part(contract: ResultContract, document: JsonValue) -> Part:
    """Take away what the platform did not write."""
    platform: set[Location] = set()
    outsider: set[Location] = set()
    # what says whether the read is whole is the platform's by its declaration
    complete = ((contract.complete, Writer.PLATFORM),) if contract.complete else ()
    for path, writer in (*contract.positions, *complete):
        whole = "$" if path == "content" else path
        found = _find(whole, document)
        if found is None:
            return Part(None, frozenset())
        if writer is Writer.OUTSIDER:
            outsider.update(match.location for match in found)
        elif _is_plain(whole):
            platform.update(match.location for match in found)
    written: set[Location] = set()

    def keep(value: JsonValue, at: Location, by_platform: bool) -> Any:
        by_platform = at not in outsider and (by_platform or at in platform)
        kept: Any = value
        if isinstance(value, Mapping):
            pairs = {key: keep(item, (*at, key), by_platform) for key, item in value.items()}
            kept = {key: item for key, item in pairs.items() if item is not _GONE}
        elif isinstance(value, list):
            items = [keep(item, (*at, index), by_platform) for index, item in enumerate(value)]
            kept = [None if item is _GONE else item for item in items]
            if not by_platform and all(item is _GONE for item in items):
                return _GONE
        if by_platform:
            written.add(at)
            return kept
        return kept if isinstance(value, Mapping | list) and kept else _GONE

    kept = keep(document, (), False)
    return Part(None if kept is _GONE else kept, frozenset(written))


def _find(path: str, document: JsonValue) -> list[Match] | None:
    try:
        nodes = jsonpath_rfc9535.compile(path).find(document)  # type: ignore[arg-type]  # plain JSON
    except (jsonpath_rfc9535.JSONPathError, RecursionError):
        return None
    return [Match(tuple(node.location), node.path(), node.value) for node in nodes]  # type: ignore[arg-type]  # plain JSON


def _is_plain(path: str) -> bool:
    """Whether a path's places can be told from itself: names, indexes, slices and wildcards only."""
    try:
        query = jsonpath_rfc9535.compile(path)
    except jsonpath_rfc9535.JSONPathError:
        return False
    return all(
        isinstance(segment, segments.JSONPathChildSegment)
        and not any(isinstance(selector, selectors.FilterSelector) for selector in segment.selectors)
        for segment in query.segments
    )


def _plain(value: JsonValue) -> JsonValue:
    """The value in dicts and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
