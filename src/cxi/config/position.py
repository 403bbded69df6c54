"""Does the platform write this position of a result, and everything that selects it?

- A contract gives result positions to their writer; the most exact position that covers a place says who wrote it, and a place
  that none covers was written by an outsider.
- A filter selects by what it reads: `$.testcases[?(@.status=="failed")].file` needs `status` as well as `file` from the platform.
- A path with `..` could reach anything, so it covers nothing.

    >>> result = ResultContract((("$.run", Writer.PLATFORM), ("$.run.log", Writer.OUTSIDER)))
    >>> strangers("$.run.commit", result), strangers("$.run.log", result)
    ((), ('$.run.log',))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import jsonpath_rfc9535
from jsonpath_rfc9535 import filter_expressions as expressions
from jsonpath_rfc9535 import segments, selectors

from cxi.authority.contract import ResultContract, Writer

_ANY: Final = None
Step: TypeAlias = str | None  # a name, or any member


def strangers(path: str, result: ResultContract) -> tuple[str, ...]:
    """The places that `path` selects or reads and that the platform does not write; empty where there are none.

    Args:
        path: A JSONPath (RFC 9535).
        result: Who writes what.
    """
    try:
        places = list(_places(jsonpath_rfc9535.compile(path), ()))
    except _Unbounded:
        return (path,)
    return tuple(dict.fromkeys(_show(place) for place in places if _writer(place, result) is not Writer.PLATFORM))


class _Unbounded(Exception):
    """The path could reach anything."""


def _places(query: jsonpath_rfc9535.JSONPathQuery, at: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Every place that a query selects, and every place that its filters read."""
    current = [at]
    for segment in query.segments:
        if not isinstance(segment, segments.JSONPathChildSegment):
            raise _Unbounded
        following: list[tuple[Step, ...]] = []
        for place in current:
            for selector in segment.selectors:
                inner = (*place, selector.name if isinstance(selector, selectors.NameSelector) else _ANY)
                following.append(inner)
                if isinstance(selector, selectors.FilterSelector):
                    yield from _read_by(selector.expression, inner)
        current = following
    yield from current


def _read_by(expression: expressions.Expression, at: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    match expression:
        case expressions.FilterExpression():
            yield from _read_by(expression.expression, at)
        case expressions.PrefixExpression():
            yield from _read_by(expression.right, at)
        case expressions.LogicalExpression() | expressions.ComparisonExpression():
            yield from _read_by(expression.left, at)
            yield from _read_by(expression.right, at)
        case expressions.FunctionExtension():
            for argument in expression.args:
                yield from _read_by(argument, at)
        case expressions.RelativeFilterQuery():
            yield from _places(expression.query, at)
        case expressions.RootFilterQuery():
            yield from _places(expression.query, ())
        case expressions.FilterExpressionLiteral():
            return
        case _:
            raise _Unbounded


def _writer(place: tuple[Step, ...], result: ResultContract) -> Writer:
    """The writer of the most exact covering position.

    What an outsider wrote below `place` is taken away before anything is read (`cxi.authority.result`): it does not matter here.
    """
    best, depth = Writer.OUTSIDER, -1
    for position, writer in result.positions:
        if position == "content":
            steps: tuple[Step, ...] = ()
        else:
            try:
                covered = list(_places(jsonpath_rfc9535.compile(position), ()))
            except _Unbounded:
                continue
            if len(covered) != 1:  # a filter in a position covers a part that cannot be told from here
                continue
            steps = covered[0]
        if _covers(steps, place):
            if len(steps) > depth or (len(steps) == depth and writer is Writer.OUTSIDER):
                best, depth = writer, len(steps)
        elif writer is Writer.OUTSIDER and len(steps) <= len(place) and _meets(steps, place):
            return Writer.OUTSIDER  # the place may be one that an outsider wrote
    return best


def _covers(position: tuple[Step, ...], place: tuple[Step, ...]) -> bool:
    """Whether everything at `place` is at or below `position`."""
    if len(position) > len(place):
        return False
    return all(step is _ANY or step == at for step, at in zip(position, place[: len(position)], strict=True))


def _meets(position: tuple[Step, ...], place: tuple[Step, ...]) -> bool:
    """Whether something can be at or below both."""
    return all(step is _ANY or at is _ANY or step == at for step, at in zip(position, place, strict=False))


def _show(place: tuple[Step, ...]) -> str:
    return "$" + "".join("[*]" if step is _ANY else f".{step}" for step in place)
