"""A trusted selection ("the largest file") is made on the state before the task's first sink call, and frozen.

Were it made anew at each reading, "delete the largest file" would delete them all, one after the other.
"""

import json
from contextlib import contextmanager

import pytest

from cxi.errors import ConfigError
from cxi.lab.arena import Tools, arena, define, permit_calls

LOOK = {
    "effect": "none",
    "fields": {"limit": {"role": "payload", "optional": True, "narrows": True}},
    "result": {"$.files[*].name": "platform", "$.files[*].size": "platform"},
}
REMOVE = {"effect": "call", "fields": {"name": {"role": "protected", "type": "Text", "from": ["release"]}}}


def declassifier(**more):
    base = {
        "from": {"tool": "it.look", "path": "$.files[*].name", "written_by": "platform"},
        "type": "Text",
        "to": "it.remove.name",
        "selection": "max",
        "by": "$.files[*].size",
    }
    return {key: value for key, value in (base | more).items() if value is not None}


@contextmanager
def opened(files, **more):
    with arena() as place:
        place.root.mkdir()
        file = place.configure(
            {"look": LOOK, "remove": REMOVE},
            policies=permit_calls(["look", "remove"]),
            tasks={"case": {"grants": {"it.remove": 5}}},
            declassifiers={"largest": declassifier(**more)},
        )

        def act(tool, arguments):
            if tool == "remove":
                files.pop(arguments["name"])
            return json.dumps({"files": [{"name": name, "size": size} for name, size in files.items()]})

        tools = Tools(define(["look", "remove"]), act=act)
        place.pin(file, tools)
        with place.open(file, tools, request="Delete the largest file.") as (_, talk):
            yield talk


def test_the_largest_is_released_and_no_other():
    with opened({"a": 1, "b": 9, "c": 5}) as talk:
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "c"}).codes == ("FIELD_NO_AUTHORITY",)
        assert talk.call("it.remove", {"name": "b"}).kind == "done"


def test_the_selection_does_not_move_on_after_the_first_sink_call():
    with opened({"a": 1, "b": 9, "c": 5}) as talk:
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "b"}).kind == "done"
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "c"}).codes == ("FIELD_NO_AUTHORITY",)


def test_the_selection_does_not_move_on_when_it_is_read_again():
    files = {"a": 1, "b": 9}
    with opened(files) as talk:
        talk.call("it.look", {})
        files["z"] = 99  # an outsider adds a larger one
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "z"}).codes == ("FIELD_NO_AUTHORITY",)
        assert talk.call("it.remove", {"name": "b"}).kind == "done"


def test_a_selection_that_was_never_made_before_acting_is_not_made_after():
    with opened({"a": 1, "b": 9}) as talk:
        talk.session._acted = True  # some other sink call of this task was admitted
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "b"}).codes == ("FIELD_NO_AUTHORITY",)


@pytest.mark.parametrize("files", [{"a": 9, "b": 9}, {"a": "9", "b": 1}, {}, {"a": True, "b": 0}])
def test_without_one_greatest_number_nothing_is_released(files):
    with opened(files) as talk:
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "a"}).codes == ("FIELD_NO_AUTHORITY",)


def test_a_partial_read_selects_nothing():
    with opened({"a": 1, "b": 9}) as talk:
        talk.call("it.look", {"limit": 1})
        assert talk.call("it.remove", {"name": "b"}).codes == ("FIELD_NO_AUTHORITY",)


def test_the_least_is_selected_by_min():
    with opened({"a": 1, "b": 9}, selection="min") as talk:
        talk.call("it.look", {})
        assert talk.call("it.remove", {"name": "a"}).kind == "done"


@pytest.mark.parametrize("more", [{"by": None}, {"selection": "one"}, {"selection": "largest"}])
def test_a_selection_needs_what_it_compares(more):
    with pytest.raises(ConfigError), opened({"a": 1}, **more):
        pass
