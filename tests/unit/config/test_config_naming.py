"""Exposed names are routed by a table; what cannot be told apart is in no table."""

from __future__ import annotations

from cxi.config.naming import expose, route


def test_names_are_exposed_with_their_server():
    table, problems = route([("files", "write_file"), ("git", "git_add")])
    assert dict(table) == {"files__write_file": ("files", "write_file"), "git__git_add": ("git", "git_add")}
    assert problems == ()


def test_characters_that_clients_do_not_take_are_replaced():
    assert expose("crm", "find.by:name") == "crm__find_by_name"


def test_of_two_tools_of_one_exposed_name_neither_is_routed():
    table, problems = route([("a", "x.y"), ("a", "x_y"), ("a", "z")])
    assert dict(table) == {"a__z": ("a", "z")}
    assert len(problems) == 1


def test_a_name_of_64_is_exposed_and_one_of_65_is_not():
    table, problems = route([("s", "x" * 61), ("s", "x" * 62)])
    assert list(table) == ["s__" + "x" * 61]
    assert len(problems) == 1


def test_a_tool_that_is_listed_twice_collides_with_nothing():
    assert route([("a", "x"), ("a", "x")])[1] == ()
