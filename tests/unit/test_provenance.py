"""A label is trusted only where every influence is; a role is a claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import Reason
from cxi.provenance import TRUSTED, Channel, Label, RequestChannel, Segment, Source, TrustedRequest, derive, open_request

SOURCES = st.builds(Source, st.sampled_from(Channel), st.text(max_size=3))


def segment(channel: Channel, id: str = "s") -> Segment:
    return Segment.of(id, Source(channel, "x"), "text")


def request(text: str = "Fix it") -> Segment:
    found = open_request("r1", RequestChannel.CONTROL_SOCKET, "person", text)
    assert isinstance(found, Segment)
    return found


def test_only_the_channels_that_the_agent_cannot_write_are_trusted() -> None:
    assert {Channel.REQUEST, Channel.POLICY, Channel.REGISTRY, Channel.APPROVAL, Channel.SNAPSHOT} == TRUSTED
    for channel in Channel:
        assert segment(channel).trusted is (channel in TRUSTED)


@pytest.mark.parametrize(
    "channel",
    [Channel.AGENT, Channel.TOOL_RESULT, Channel.TOOL_DEFINITION, Channel.SERVER_TEXT, Channel.ROLE_TEXT, Channel.DERIVED],
)
def test_what_an_outsider_could_have_written_is_untrusted(channel: Channel) -> None:
    assert not segment(channel).trusted


@given(st.lists(SOURCES, min_size=1, max_size=5), SOURCES)
def test_a_derived_segment_carries_every_influence(sources: list[Source], own: Source) -> None:
    parents = tuple(Segment.of(f"s{index}", source, "t") for index, source in enumerate(sources))
    child = derive("d", own, "summary", parents)
    assert child.label.influences == {*sources, own}
    assert child.trusted is all(source.trusted for source in (*sources, own))
    assert child.parents == tuple(parent.id for parent in parents)


@given(st.lists(SOURCES, min_size=1, max_size=3), st.lists(SOURCES, min_size=1, max_size=3))
def test_influences_are_never_lost_over_generations(first: list[Source], second: list[Source]) -> None:
    older = derive("a", Source(Channel.SNAPSHOT, "x"), "t", tuple(Segment.of("p", source, "t") for source in first))
    newer = derive("b", Source(Channel.SNAPSHOT, "y"), "t", (older, *(Segment.of("q", source, "t") for source in second)))
    assert newer.label.influences >= {*first, *second}
    assert newer.trusted is all(source.trusted for source in (*first, *second))


def test_a_summary_of_trusted_text_is_untrusted_where_the_summarizer_is() -> None:
    assert not derive("d", Source(Channel.DERIVED, "summary"), "t", (request(),)).trusted


def test_nothing_is_derived_from_nothing() -> None:
    with pytest.raises(ValueError):
        derive("d", Source(Channel.SNAPSHOT, "x"), "t", ())
    with pytest.raises(ValueError):
        Label(frozenset())


@given(st.frozensets(SOURCES, min_size=1), st.frozensets(SOURCES, min_size=1))
def test_joining_labels_only_ever_loses_trust(one: frozenset[Source], other: frozenset[Source]) -> None:
    joined = Label(one) | Label(other)
    assert joined.influences == one | other
    assert joined.trusted is (Label(one).trusted and Label(other).trusted)


@pytest.mark.parametrize("channel", RequestChannel)
def test_a_request_needs_a_credential_and_words(channel: RequestChannel) -> None:
    made = open_request("r", channel, "person", " Fix it\n")
    assert isinstance(made, Segment)
    assert (made.text, made.trusted, made.source.channel, made.parents) == (" Fix it\n", True, Channel.REQUEST, ())
    for credential, text, code in (
        ("", "Fix it", "SESSION_UNKNOWN"),
        ("person", "", "TASK_NONE"),
        ("person", " \n\t", "TASK_NONE"),
    ):
        refused = open_request("r", channel, credential, text)
        assert isinstance(refused, Reason)
        assert refused.code == code


def test_a_later_message_is_a_segment_of_its_own() -> None:
    assert TrustedRequest((request("one"), request("two"))).text == "one\n\ntwo"
    assert TrustedRequest(()).text == ""


@pytest.mark.parametrize("channel", [channel for channel in Channel if channel is not Channel.REQUEST])
def test_no_other_channel_is_ever_part_of_a_request(channel: Channel) -> None:
    with pytest.raises(ValueError):
        TrustedRequest((request(), segment(channel)))


def test_nothing_derived_is_ever_part_of_a_request() -> None:
    own = Source(Channel.REQUEST, "control-socket:person")
    for parent in (request(), segment(Channel.TOOL_RESULT)):
        with pytest.raises(ValueError):
            TrustedRequest((derive("d", own, "t", (parent,)),))
    with pytest.raises(ValueError):
        TrustedRequest((Segment("s", own, Label(frozenset({own, Source(Channel.AGENT, "a")})), "t"),))
