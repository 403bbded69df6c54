"""A server, a tool or a policy tries to be taken for another by its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cxi.config.load import load
from cxi.config.lock import PinStanding, compare, make_lock
from cxi.config.naming import route
from cxi.errors import ConfigError

ENVIRON = {"PATH": os.defpath, "HOME": "/nonexistent"}


def write(folder: Path, servers: str, policy: str = "") -> Path:
    (folder / "repo").mkdir(exist_ok=True)
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies/p.cedar").write_text(policy or '@id("p") permit (principal, action == Action::"fs.write", resource);\n')
    file = folder / "cxi.yaml"
    file.write_text(f"version: 1\nagent: m\nroot: repo\nstate: state\npolicies: [policies/*.cedar]\nservers:\n{servers}")
    return file


def lines(file: Path) -> set[tuple[str, int]]:
    with pytest.raises(ConfigError) as caught:
        load(file, environ=ENVIRON)
    return {(problem.file, problem.line) for problem in caught.value.problems}


TOOL = "{effect: none, fields: {}}"


def test_two_tools_of_one_exposed_name_are_a_start_up_error(tmp_path: Path):
    servers = f"  a:\n    command: [sh]\n    tools:\n      x.y: {TOOL}\n      x_y: {TOOL}\n"
    assert lines(write(tmp_path, servers)) == {("cxi.yaml", 7)}


def test_a_name_that_would_be_cut_to_pass_for_another_is_a_start_up_error(tmp_path: Path):
    assert lines(write(tmp_path, f"  a:\n    command: [sh]\n    tools:\n      {'x' * 70}: {TOOL}\n")) == {("cxi.yaml", 7)}


@pytest.mark.parametrize("name", ["a_b", "a__b", "A", "a.b", "a:b", "'а'", "a/b", "''", "'a b'"])
def test_a_server_cannot_be_named_so_that_the_border_moves(tmp_path: Path, name: str):
    assert ("cxi.yaml", 7) in lines(write(tmp_path, f"  {name}:\n    command: [sh]\n    tools: {{t: {TOOL}}}\n"))


def test_two_servers_of_one_name_are_a_start_up_error(tmp_path: Path):
    assert lines(write(tmp_path, f"  a: {{command: [sh], tools: {{t: {TOOL}}}}}\n  a: {{command: [cat]}}\n")) == {("cxi.yaml", 8)}


def test_a_tool_cannot_take_the_name_of_another_servers_tool(tmp_path: Path):
    config = load(
        write(tmp_path, f"  a: {{command: [sh], tools: {{b__t: {TOOL}}}}}\n  a--b: {{command: [sh], tools: {{t: {TOOL}}}}}\n"),
        environ=ENVIRON,
    )
    table, problems = route((contract.server, contract.tool) for contract in config.contracts.values())
    assert problems == ()
    assert table["a__b__t"] == ("a", "b__t")
    assert table["a--b__t"] == ("a--b", "t")


def test_a_listing_that_names_a_tool_twice_is_not_pinned_and_not_compared(tmp_path: Path):
    config = load(write(tmp_path, f"  a: {{command: [sh], tools: {{t: {TOOL}}}}}\n"), environ=ENVIRON)
    lock = make_lock(config, {"a": [{"name": "t"}]})
    for listing in ([{"name": "t"}, {"name": "t", "description": "the other"}], [{"name": "t"}, {"name": "t"}]):
        with pytest.raises(ConfigError):
            make_lock(config, {"a": listing})
        with pytest.raises(ConfigError):
            compare(lock, "a", config.servers["a"].identity, listing)


def test_a_lookalike_of_a_pinned_tool_is_another_tool(tmp_path: Path):
    config = load(write(tmp_path, f"  a: {{command: [sh], tools: {{read: {TOOL}}}}}\n"), environ=ENVIRON)
    lock = make_lock(config, {"a": [{"name": "read"}]})
    found = {state.tool: state.state for state in compare(lock, "a", config.servers["a"].identity, [{"name": "rеad"}])}
    assert found == {"read": PinStanding.GONE, "rеad": PinStanding.UNPINNED}


@pytest.mark.parametrize("taken", ["cxi/reads", "cxi/no-private-keys", "a/calls"])
def test_a_policy_cannot_take_the_id_of_a_shipped_one(tmp_path: Path, taken: str):
    (tmp_path / "pack.yaml").write_text(f"version: 1\ntools: {{t: {TOOL}}}\n")
    policy = f'@id("{taken}") permit (principal, action == Action::"fs.write", resource);\n'
    assert lines(write(tmp_path, "  a: {command: [sh], pack: ./pack.yaml}\n", policy)) == {("policies/p.cedar", 1)}


def test_a_tool_named_like_an_atom_gets_no_atoms_permit(tmp_path: Path):
    config = load(
        write(tmp_path, "  fs: {command: [sh], tools: {write: {effect: call, fields: {}}}}\n"),
        environ=ENVIRON,
    )
    actions = config.registry.schema[""]["actions"]
    assert {"fs.write", "tool:fs.write"} <= set(actions)
    assert actions["tool:fs.write"]["appliesTo"]["resourceTypes"] == ["Server"]


def test_a_tool_name_cannot_write_cedar(tmp_path: Path):
    (tmp_path / "pack.yaml").write_text(
        "version: 1\ntools:\n  't\"], resource); permit (principal, action, resource); //': {effect: none, fields: {}}\n"
    )
    try:
        config = load(write(tmp_path, "  a: {command: [sh], pack: ./pack.yaml}\n"), environ=ENVIRON)
    except ConfigError:
        return
    assert all(policy.actions is not None for policy in config.registry.policies.values() if policy.effect == "permit")
