"""The lock pins what servers and files could change later."""

from __future__ import annotations

import json

import pytest

from cxi.config.lock import (
    Lock,
    PinStanding,
    compare,
    digest_definition,
    make_lock,
    pin_server,
    read_lock,
    render_lock,
    write_lock,
)
from cxi.errors import ConfigError

TOOL = {"name": "read", "description": "Reads.", "inputSchema": {"type": "object", "properties": {"n": {"multipleOf": 0.5}}}}
IDENTITY = "sha256:" + "1" * 64


def lock_of(*tools: dict[str, object]) -> Lock:
    return Lock.of({"s": pin_server(IDENTITY, tools)}, {}, {})


def states(lock: Lock | None, *tools: dict[str, object], identity: str = IDENTITY) -> dict[str, PinStanding]:
    return {state.tool: state.state for state in compare(lock, "s", identity, tools)}


def test_what_is_as_pinned_is_ok_whatever_the_order_of_keys():
    reordered = json.loads(json.dumps(dict(reversed(TOOL.items()))))
    assert states(lock_of(TOOL), reordered) == {"read": PinStanding.OK}
    assert digest_definition(reordered) == digest_definition(TOOL)


@pytest.mark.parametrize(
    "changed",
    [
        {**TOOL, "description": "Reads. "},
        {**TOOL, "description": "Reads.\u200b"},
        {**TOOL, "annotations": {}},
        {**TOOL, "inputSchema": {"type": "object"}},
        {key: value for key, value in TOOL.items() if key != "description"},
    ],
)
def test_any_other_definition_is_changed(changed: dict[str, object]):
    (state,) = compare(lock_of(TOOL), "s", IDENTITY, [changed])
    assert state.state is PinStanding.CHANGED
    assert state.difference


def test_hidden_characters_are_visible_in_the_difference():
    (state,) = compare(lock_of(TOOL), "s", IDENTITY, [{**TOOL, "description": "Reads.\u202e"}])
    assert "\u202e" not in state.difference
    assert "202E" in state.difference


def test_unpinned_tools_gone_tools_and_changed_servers_are_told_apart():
    other = {"name": "write"}
    assert states(None, TOOL) == {"read": PinStanding.UNPINNED}
    assert states(Lock.of({}, {}, {}), TOOL) == {"read": PinStanding.UNPINNED}
    assert states(lock_of(TOOL), TOOL, other) == {"read": PinStanding.OK, "write": PinStanding.UNPINNED}
    assert states(lock_of(TOOL, other), TOOL) == {"read": PinStanding.OK, "write": PinStanding.GONE}
    assert states(lock_of(TOOL), TOOL, identity="sha256:2") == {"read": PinStanding.SERVER_CHANGED}


def test_a_listing_that_cannot_be_pinned_is_refused():
    for tools in ([{"description": "no name"}], [TOOL, TOOL], [{"name": "x", "n": 2**60}], [{"name": ""}], [{"name": "\ud800"}]):
        with pytest.raises(ConfigError):
            pin_server(IDENTITY, tools)


def test_a_lock_is_written_and_read_back_equal(tmp_path):
    lock = Lock.of({"s": pin_server(IDENTITY, [TOOL])}, {"AGENTS.md": "sha256:1"}, {"x.py": "sha256:2"})
    path = tmp_path / "cxi.lock"
    write_lock(path, lock)
    assert read_lock(path) == lock
    assert [entry.name for entry in tmp_path.iterdir()] == ["cxi.lock"]


def test_equal_pins_have_equal_text():
    one = Lock.of({"a": pin_server(IDENTITY, [TOOL, {"name": "b"}]), "b": pin_server(IDENTITY, [])}, {"x": "1", "y": "2"}, {})
    other = Lock.of({"b": pin_server(IDENTITY, []), "a": pin_server(IDENTITY, [{"name": "b"}, TOOL])}, {"y": "2", "x": "1"}, {})
    assert render_lock(one) == render_lock(other)
    assert one.digest == other.digest


def test_there_is_no_lock_where_there_is_no_file(tmp_path):
    assert read_lock(tmp_path / "cxi.lock") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.update(version=2),
        lambda body: body.update(extra=1),
        lambda body: body.pop("prose"),
        lambda body: body["servers"]["s"]["tools"]["read"]["definition"].update(description="other"),
        lambda body: body["servers"]["s"]["tools"]["read"].update(digest="sha256:0"),
        lambda body: body["servers"]["s"]["tools"].update(other=body["servers"]["s"]["tools"].pop("read")),
        lambda body: body["servers"]["s"].update(identity=1),
        lambda body: body["servers"].update(s=[]),
        lambda body: body.update(servers=[]),
        lambda body: body["prose"].update(a=1),
    ],
)
def test_a_lock_that_is_not_what_it_says_is_refused(tmp_path, damage):
    body = json.loads(render_lock(lock_of(TOOL)))
    damage(body)
    path = tmp_path / "cxi.lock"
    path.write_text(json.dumps(body))
    with pytest.raises(ConfigError):
        read_lock(path)


def test_no_json_and_duplicate_keys_are_refused(tmp_path):
    path = tmp_path / "cxi.lock"
    for text in ("", "{", "[]", "1", '{"version": 1, "version": 1}'):
        path.write_text(text)
        with pytest.raises(ConfigError):
            read_lock(path)


def test_a_lock_of_a_configuration_names_every_server(place, tools_of):
    config = place.load()
    with pytest.raises(ConfigError):
        make_lock(config, {"files": tools_of(config, "files")})
    lock = make_lock(config, {name: tools_of(config, name) for name in config.servers})
    assert set(lock.servers) == {"files", "ci"}
    assert set(lock.prose) == {"repo/AGENTS.md"}
    assert lock.servers["ci"].identity == config.servers["ci"].identity


def test_a_lock_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(ConfigError):
        write_lock(tmp_path / "nowhere" / "cxi.lock", lock_of(TOOL))
