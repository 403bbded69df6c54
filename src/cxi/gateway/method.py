"""Which MCP messages pass, and as what?

- Every method of the revisions 2025-06-18 and 2025-11-25 has a row, in each direction it can take. What has no row is refused.
- `transparent`: nothing of it can be chosen freely by the agent or read by it as text.
- `inward`: text of a server that the agent will see: W.
- `outward`: a field of the agent's choosing leaves for a server: it needs a contract, as a tool does.
- `off`: the gateway offers it to neither side.

    >>> TABLE[Sender.CLIENT, "tools/call"].passage
    <Passage.OUTWARD: 'outward'>
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

REVISIONS: Final = ("2025-06-18", "2025-11-25")
_SINCE_NOVEMBER: Final = ("2025-11-25",)


class Sender(StrEnum):
    """Who sends it."""

    CLIENT = "client"
    SERVER = "server"


class Passage(StrEnum):
    """As what it passes."""

    TRANSPARENT = "transparent"
    INWARD = "inward"
    OUTWARD = "outward"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Row:
    """One method in one direction.

    Attributes:
        passage: As what it passes.
        does: What the gateway does with it.
        request: Whether it is a request; else it is a notification.
        revisions: The revisions that have it.
    """

    passage: Passage
    does: str
    request: bool = True
    revisions: tuple[str, ...] = REVISIONS

    @property
    def on(self) -> bool:
        return self.passage is not Passage.OFF


def _off(does: str, *, request: bool = True, revisions: tuple[str, ...] = REVISIONS) -> Row:
    return Row(Passage.OFF, does, request, revisions)


def _notice(passage: Passage, does: str) -> Row:
    return Row(passage, does, request=False)


_NO_TASKS: Final = "tasks are offered to neither side, so that one call is one lease"

TABLE: Final[MappingProxyType[tuple[Sender, str], Row]] = MappingProxyType(
    {
        # --- the client's requests
        (Sender.CLIENT, "initialize"): Row(
            Passage.INWARD,
            "answered by the gateway: the capabilities of all servers in one, their instructions fenced, one server each",
        ),
        (Sender.CLIENT, "ping"): Row(Passage.TRANSPARENT, "answered by the gateway"),
        (Sender.CLIENT, "tools/list"): Row(
            Passage.INWARD,
            "the tools of all servers, under their exposed names, all pages in one; those that the lock refuses are left out",
        ),
        (Sender.CLIENT, "tools/call"): Row(
            Passage.OUTWARD,
            "through the gate, and written anew from the manifest; of `_meta` only a progress token of our own goes on",
        ),
        (Sender.CLIENT, "resources/list"): Row(
            Passage.INWARD, "the resources of all servers, all pages in one; a URI that two servers list is left out"
        ),
        (Sender.CLIENT, "resources/templates/list"): Row(
            Passage.INWARD, "the templates of all servers, all pages in one; one that two servers list is left out"
        ),
        (Sender.CLIENT, "resources/read"): Row(
            Passage.OUTWARD, "`uri` needs a contract; it goes to the one server that lists it, or whose template it fits"
        ),
        (Sender.CLIENT, "resources/subscribe"): Row(Passage.OUTWARD, "`uri` needs a contract; routed as `resources/read`"),
        (Sender.CLIENT, "resources/unsubscribe"): Row(
            Passage.TRANSPARENT, "passes for a URI that is subscribed, to the server that has the subscription"
        ),
        (Sender.CLIENT, "prompts/list"): Row(
            Passage.INWARD, "the prompts of all servers, under exposed names as tools, all pages in one"
        ),
        (Sender.CLIENT, "prompts/get"): Row(
            Passage.OUTWARD, "`name` and `arguments` need a contract; the messages that come back are W"
        ),
        (Sender.CLIENT, "completion/complete"): Row(
            Passage.OUTWARD, "`ref`, `argument` and `context` need a contract; the values that come back are W"
        ),
        (Sender.CLIENT, "logging/setLevel"): Row(
            Passage.TRANSPARENT, "one of the eight levels, sent to every server that logs, and to those that start later"
        ),
        (Sender.CLIENT, "tasks/get"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.CLIENT, "tasks/result"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.CLIENT, "tasks/list"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.CLIENT, "tasks/cancel"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        # --- the client's notifications
        (Sender.CLIENT, "notifications/initialized"): _notice(
            Passage.TRANSPARENT, "taken by the gateway, which initialized the servers itself"
        ),
        (Sender.CLIENT, "notifications/cancelled"): _notice(
            Passage.TRANSPARENT,
            "passed on under the server's own request id; the outcome of a cancelled sink call is unknown unless it answers",
        ),
        (Sender.CLIENT, "notifications/progress"): _notice(
            Passage.OFF, "dropped: no request of a server passes that could have progress"
        ),
        (Sender.CLIENT, "notifications/roots/list_changed"): _notice(Passage.OFF, "dropped: roots are not offered"),
        (Sender.CLIENT, "notifications/tasks/status"): _off(_NO_TASKS, request=False, revisions=_SINCE_NOVEMBER),
        # --- a server's requests
        (Sender.SERVER, "ping"): Row(Passage.TRANSPARENT, "answered by the gateway"),
        (Sender.SERVER, "sampling/createMessage"): _off("refused: a server does not speak to the model by itself"),
        (Sender.SERVER, "elicitation/create"): _off("refused: a server does not ask the person by itself"),
        (Sender.SERVER, "roots/list"): _off("refused: a server learns of the host what its configuration says"),
        (Sender.SERVER, "tasks/get"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.SERVER, "tasks/result"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.SERVER, "tasks/list"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        (Sender.SERVER, "tasks/cancel"): _off(_NO_TASKS, revisions=_SINCE_NOVEMBER),
        # --- a server's notifications
        (Sender.SERVER, "notifications/progress"): _notice(
            Passage.INWARD, "relayed under the client's token, while its call runs"
        ),
        (Sender.SERVER, "notifications/message"): _notice(Passage.INWARD, "relayed; the logger is named after its server"),
        (Sender.SERVER, "notifications/resources/updated"): _notice(
            Passage.INWARD, "relayed for a URI that the client subscribed to at this server"
        ),
        (Sender.SERVER, "notifications/tools/list_changed"): _notice(
            Passage.TRANSPARENT, "relayed; the tools are listed and compared with the lock again before the next call"
        ),
        (Sender.SERVER, "notifications/resources/list_changed"): _notice(
            Passage.TRANSPARENT, "relayed; what is known of it is forgotten"
        ),
        (Sender.SERVER, "notifications/prompts/list_changed"): _notice(
            Passage.TRANSPARENT, "relayed; what is known of it is forgotten"
        ),
        (Sender.SERVER, "notifications/cancelled"): _notice(
            Passage.TRANSPARENT, "taken by the gateway: a server's requests are answered at once, so there is nothing to cancel"
        ),
        (Sender.SERVER, "notifications/elicitation/complete"): _off(
            "dropped: elicitation is not offered", request=False, revisions=_SINCE_NOVEMBER
        ),
        (Sender.SERVER, "notifications/tasks/status"): _off(_NO_TASKS, request=False, revisions=_SINCE_NOVEMBER),
    }
)

DIFFERENCES: Final = (
    "Tools and prompts have exposed names, `server__name`; a character that clients do not take is written `_`.",
    "A tool that `cxi.lock` does not pin, or pins otherwise, is not listed.",
    "A pinned tool without a contract is listed, and refused when it is called.",
    "Lists come in one page, whatever pages the servers make; a cursor is refused.",
    "A URI or template that two servers list is left out, and refused (`FIELD_AMBIGUOUS`).",
    "`serverInfo`, `capabilities` and `instructions` are the gateway's; the servers' instructions are fenced, one server each.",
    "Every `listChanged` is offered, since a server that starts again may list other tools.",
    "`experimental` capabilities and tasks are not offered; a `task` param of a call is ignored.",
    "Servers are offered no sampling, no elicitation and no roots, whatever the client can do.",
    "`resources/read`, `resources/subscribe`, `prompts/get` and `completion/complete` need a contract; without one they are off.",
    (
        "A refused call is a result with `isError`, one text and `cxi.dev/refusal` in `_meta`, with no `structuredContent`; "
        "other methods get an error with the code in its data."
    ),
    "A sink's call that would change nothing, and one whose answer is recorded, are answered without calling the server.",
    "A call whose effect turns out to be another one gets `EFFECT_DIFFERS` in place of the server's answer.",
    "Arguments are written anew from their canonical form: defaults are not added, and paths become absolute.",
    (
        "Messages are read strictly: batches, a key that is there twice, an integer beyond 2^53, a lone surrogate and a param "
        "that no revision names are refused."
    ),
    "Sink calls to one server are made one after another.",
    "`_meta` of a request is not passed on, but for a progress token, which the server sees as one of the gateway's.",
    "Loggers are named `server` or `server/logger`.",
    (
        "The gateway speaks the newest revision with each server, whatever the client chose: "
        "fields of 2025-11-25 may reach any client."
    ),
    "A client that asks for another revision than these two is answered with 2025-11-25; 2026-07-28 is not in this version.",
    "Each server has limits on time and size; what is late or too large is an error of that call.",
)


def render_table() -> str:
    """The table as the documentation shows it (Markdown)."""
    lines = [
        "# MCP methods",
        "",
        (
            "What the gateway does with each message of the Model Context Protocol, revisions "
            "2025-06-18 and 2025-11-25. What is not in the"
        ),
        (
            "table is refused (`METHOD_UNKNOWN`); a method that is off, or outward with no "
            "contract, is refused with `METHOD_OFF`. The table is"
        ),
        "made from `cxi.gateway.method`.",
        "",
        "- *transparent*: nothing in it can be chosen freely by the agent, or read by it as text;",
        "- *inward*: text of a server that the agent will see, so it is untrusted (W);",
        "- *outward*: a field of the agent's choosing leaves for a server, so it needs a contract, as a tool does;",
        "- *off*: offered to neither side.",
    ]
    titles = {Sender.CLIENT: "From the client", Sender.SERVER: "From a server"}
    for sender, title in titles.items():
        lines += ["", f"## {title}", "", "| method | kind | passes | what happens |", "|---|---|---|---|"]
        for (who, name), row in TABLE.items():
            if who is sender:
                since = "" if row.revisions == REVISIONS else f" ({row.revisions[0]} only)"
                kind = "request" if row.request else "notification"
                lines.append(f"| `{name}`{since} | {kind} | {row.passage} | {row.does} |")
    lines += ["", "## What a client sees otherwise than without the gateway", ""]
    lines += [f"- {difference}" for difference in DIFFERENCES]
    return "\n".join(lines) + "\n"
