"""Who could have written or influenced this?

- Every piece of context is a `Segment` with a `Source` and a `Label`; a label is trusted only if *every* influence is.
- A derived segment (summary, memory, repair, retry) carries the union of its parents' influences: `derive`.
- A role is a claim, not provenance: only the channels named in `TRUSTED` make T, and `REQUEST` only through a credential that
  the agent does not hold (`open_request`). Other user or system text, replayed assistant turns, compaction summaries, prompt
  templates of servers and briefs to sub-agents are W.

    >>> report = Segment.of("s1", Source(Channel.TOOL_RESULT, "ci.get_report"), "…")
    >>> derive("s2", Source(Channel.DERIVED, "summary"), "…", (report,)).label.trusted
    False
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from cxi.errors import Code, Reason


class Channel(StrEnum):
    """How a piece of context came in."""

    REQUEST = "request"  # the trusted request, through a channel whose credential the agent does not hold
    POLICY = "policy"
    REGISTRY = "registry"  # a trusted registry or configuration of the operator
    APPROVAL = "approval"
    SNAPSHOT = "snapshot"  # trusted state that the gate itself read
    AGENT = "agent"  # what the agent's program or model sent
    TOOL_RESULT = "tool-result"
    TOOL_DEFINITION = "tool-definition"
    SERVER_TEXT = "server-text"  # prompts, resources, completions, logs, instructions of a server
    ROLE_TEXT = "role-text"  # text under a user or system role that no channel vouches for
    DERIVED = "derived"  # summary, memory, repair, retry


# INVARIANT (trusted-channels): a label is T exactly if every influence came through one of these.
TRUSTED: Final = frozenset({Channel.REQUEST, Channel.POLICY, Channel.REGISTRY, Channel.APPROVAL, Channel.SNAPSHOT})


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where a segment came from.

    Attributes:
        channel: How it came in.
        name: Who or what: a tool (`ci.get_report`), a file, a credential's id.
        record: Which record of it, where one is known (a call id, a path, a row).
    """

    channel: Channel
    name: str
    record: str = ""

    @property
    def trusted(self) -> bool:
        return self.channel in TRUSTED


@dataclass(frozen=True, slots=True)
class Label:
    """Everything that could have written or influenced a value.

    Attributes:
        influences: All sources; never empty.
    """

    influences: frozenset[Source]

    def __post_init__(self) -> None:
        if not self.influences:
            raise ValueError("a label has at least one influence")

    @property
    def trusted(self) -> bool:
        return all(source.trusted for source in self.influences)

    def __or__(self, other: Label) -> Label:
        return Label(self.influences | other.influences)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of context with its provenance.

    Attributes:
        id: Unique in its session.
        source: Where it came from.
        label: All influences, its source and its parents' among them.
        text: The exact text.
        parents: Ids of the segments that it was derived from.
    """

    id: str
    source: Source
    label: Label
    text: str
    parents: tuple[str, ...] = ()

    @classmethod
    def of(cls, id: str, source: Source, text: str) -> Self:
        """A segment that was derived from nothing."""
        return cls(id, source, Label(frozenset({source})), text)

    @property
    def trusted(self) -> bool:
        return self.label.trusted


def derive(id: str, source: Source, text: str, parents: tuple[Segment, ...]) -> Segment:
    """Make a segment from others; its influences are the union of theirs and its own source.

    Raises:
        ValueError: if it has no parents: then it is not derived.
    """
    if not parents:
        raise ValueError("a derived segment has parents")
    label = Label(frozenset({source}))
    for parent in parents:
        label = label | parent.label
    return Segment(id, source, label, text, tuple(parent.id for parent in parents))


class RequestChannel(StrEnum):
    """The channels that can carry a trusted request (design, section 0)."""

    CONTROL_SOCKET = "control-socket"  # `cxi task start`
    COMMAND_LINE = "command-line"  # `cxi gateway --request`
    HOST_API = "host-api"  # the program that embeds CXI
    PROMPT_HOOK = "prompt-hook"
    SIGNED_HEADER = "signed-header"
    REGISTERED = "registered"  # the proxy, for text that is byte-equal to a registered request


@dataclass(frozen=True, slots=True)
class TrustedRequest:
    """What the person asked for, in their own words; a later message is a new segment.

    Attributes:
        segments: T segments of the channel `REQUEST`, in order.
    """

    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        for segment in self.segments:
            # INVARIANT (request-is-trusted): nothing derived and nothing of another channel is ever part of a request.
            if segment.source.channel is not Channel.REQUEST or not segment.trusted or segment.parents:
                raise ValueError("a trusted request is made of underived request segments only")

    @property
    def text(self) -> str:
        return "\n\n".join(segment.text for segment in self.segments)


def open_request(id: str, channel: RequestChannel, credential: str, text: str) -> Segment | Reason:
    """Make a T segment from a person's words.

    Args:
        id: The segment's id.
        channel: The channel that carried it.
        credential: The id of the credential that the host checked; the agent must not hold it. Never the secret itself.
        text: The words, exactly.

    Returns:
        The segment, or the reason why these words cannot be a request.
    """
    if not credential:
        return Reason(Code.SESSION_UNKNOWN, "the channel names no credential, so the text stays untrusted", where="request")
    if not text.strip():
        return Reason(Code.TASK_NONE, "the request is empty", where="request")
    return Segment.of(id, Source(Channel.REQUEST, f"{channel}:{credential}"), text)
