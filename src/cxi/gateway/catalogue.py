"""What do the servers list, and which of them is a URI for?

- A list is asked of all servers at once; one that does not answer in time is left out, and the client is told when it has.
- What was listed last is kept, to route by: the client's next list asks again.
- A URI goes to the one server that lists it, else to the one whose template it fits (RFC 6570, level 1 and `+`),
  else to the only server that has resources. Two that claim it: refused, and left out of the lists.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Code, NotStarted, OutcomeUnknown, Refused
from cxi.sinks.mcp import Upstream

Item: TypeAlias = Mapping[str, JsonValue]

# List method to (capability, key of the result, notification that it changed).
LISTS: Final = {
    "resources/list": ("resources", "resources", "notifications/resources/list_changed"),
    "resources/templates/list": ("resources", "resourceTemplates", "notifications/resources/list_changed"),
    "prompts/list": ("prompts", "prompts", "notifications/prompts/list_changed"),
}
MAX_EXPRESSIONS: Final = 32
MAX_URI: Final = 8192
_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")


class Catalogue:
    """The lists of all servers."""

    def __init__(
        self, upstreams: Sequence[Upstream], *, patience: float, changed: Callable[[str], Coroutine[None, None, None]]
    ) -> None:
        """Nothing is asked yet.

        Args:
            upstreams: The servers, in the order of the configuration.
            patience: Seconds that a list waits for a slow server.
            changed: Tells the client that a list changed, by its notification.
        """
        self._upstreams = tuple(upstreams)
        self._patience = patience
        self._changed = changed
        self._known: dict[tuple[str, str], tuple[Item, ...]] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._telling: set[asyncio.Task[None]] = set()

    def forget(self, server: str, notification: str) -> None:
        """What this server listed under the lists of this notification is asked for again."""
        for method, (_, _, name) in LISTS.items():
            if name == notification:
                self._known.pop((server, method), None)

    async def gather(self, method: str) -> Mapping[str, tuple[Item, ...]]:
        """The items of a list, by server, freshly asked for.

        A server that is down, has no such list or answers nonsense is left out.
        """
        await self._ask(method, self._upstreams)
        return {
            upstream.name: self._known[upstream.name, method]
            for upstream in self._upstreams
            if (upstream.name, method) in self._known
        }

    async def find(self, uri: str) -> Upstream | Refused:
        """The server that a resource's URI, or a template's, is for."""
        for method in ("resources/list", "resources/templates/list"):
            await self._ask(method, [one for one in self._upstreams if (one.name, method) not in self._known])
        for claims in (self._lists, self._fits):
            found = [upstream for upstream in self._upstreams if claims(upstream, uri)]
            if len(found) == 1:
                return found[0]
            if found:
                names = ", ".join(f"`{upstream.name}`" for upstream in found)
                return Refused.of(Code.FIELD_AMBIGUOUS, f"the URI is one of several servers: {names}", where="uri")
        having = [upstream for upstream in self._upstreams if "resources" in upstream.capabilities]
        if len(having) == 1:
            return having[0]
        return Refused.of(Code.FIELD_TYPE, "no server lists this URI, or has a template that it fits", where="uri")

    def close(self) -> None:
        """Nothing is waited for any more."""
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, method: str, upstreams: Sequence[Upstream]) -> None:
        tasks: list[asyncio.Task[None]] = []
        for upstream in upstreams:
            key = (upstream.name, method)
            if key not in self._asking:
                self._asking[key] = asyncio.create_task(self._fetch(upstream, method), name=f"{upstream.name}: {method}")
            tasks.append(self._asking[key])
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._patience)
        for task in late:
            task.add_done_callback(partial(self._tell, method))

    async def _fetch(self, upstream: Upstream, method: str) -> None:
        capability, key, _ = LISTS[method]
        try:
            await upstream.ready()
            items: tuple[Item, ...] = ()
            if capability in upstream.capabilities:
                items = await upstream.list_all(method, key)
            self._known[upstream.name, method] = items
        except (NotStarted, OutcomeUnknown):
            self._known.pop((upstream.name, method), None)
        finally:
            self._asking.pop((upstream.name, method), None)

    def _tell(self, method: str, done: asyncio.Task[None]) -> None:
        if not done.cancelled() and done.exception() is None:
            task = asyncio.create_task(self._changed(LISTS[method][2]))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _lists(self, upstream: Upstream, uri: str) -> bool:
        return any(item.get("uri") == uri for item in self._known.get((upstream.name, "resources/list"), ()))

    def _fits(self, upstream: Upstream, uri: str) -> bool:
        templates = self._known.get((upstream.name, "resources/templates/list"), ())
        return any(isinstance(text := item.get("uriTemplate"), str) and fits(text, uri) for item in templates)


def shared(items: Mapping[str, Sequence[Item]], key: str) -> frozenset[str]:
    """The values of `key` that more than one server lists."""
    counts: Counter[str] = Counter()
    for listed in items.values():
        counts.update({str(item.get(key)) for item in listed})
    return frozenset(value for value, count in counts.items() if count > 1)


def fits(template: str, uri: str) -> bool:
    """Whether a URI could come from a template: exactly the template, or its expressions filled.

    `{name}` is anything without `/`, `?` and `#`; with an operator or a modifier (`{+path}`, `{path*}`, `{?query}`), anything.
    """
    if template == uri:
        return True
    parts = _EXPRESSION.split(template)  # literals, with the expressions' insides in between
    if len(parts) == 1 or len(parts) > 2 * MAX_EXPRESSIONS or len(uri) > MAX_URI:
        return False
    # Where matching can stand after each part; a backtracking pattern could be made slow by a server's template.
    reached = [True] + [False] * len(uri)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            size = len(part)
            reached = [i >= size and reached[i - size] and uri.startswith(part, i - size) for i in range(len(uri) + 1)]
        else:
            reached = _spread(reached, uri, "/?#" if part.replace("_", "").isalnum() else None)
    return reached[-1]


def _spread(reached: Sequence[bool], uri: str, ends: str | None) -> list[bool]:
    """What an expression reaches: one or more characters up to `ends`, or any number where `ends` is None."""
    found = [ends is None and reached[0]]
    alive = False
    for i, char in enumerate(uri):
        alive = (alive or reached[i]) and (ends is None or char not in ends)
        found.append(alive or (ends is None and reached[i + 1]))
    return found
