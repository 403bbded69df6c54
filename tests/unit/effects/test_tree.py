"""A world that is written down answers as a disk would."""

import pytest

from cxi.effects.tree import Tree
from cxi.values.base import EntryKind

TREE = Tree("/srv", {"src/a.py": {"text": "x", "mode": "755"}, "l": {"link": "src"}, "d/": {}, "/etc/hosts": {"text": "h"}})


def test_files_folders_links_and_what_is_absent():
    kinds = {
        path: TREE.entry(path).kind
        for path in ("/srv/src/a.py", "/srv/src", "/srv/l", "/srv/d", "/srv/no", "/srv/src/a.py/x", "/")
    }
    assert list(kinds.values()) == [
        EntryKind.FILE,
        EntryKind.FOLDER,
        EntryKind.LINK,
        EntryKind.FOLDER,
        EntryKind.ABSENT,
        EntryKind.NOT_A_FOLDER,
        EntryKind.FOLDER,
    ]
    assert TREE.entry("/srv/src/a.py").mode == 0o755
    assert TREE.names("/srv") == ("d", "l", "src")
    assert TREE.names("/srv/l") is None
    assert TREE.content("/etc/hosts") == b"h"
    assert TREE.content("/srv/src") is None
    assert TREE.git("/srv", "config", ()) is None


@pytest.mark.parametrize("entry", ["text", {"text": 3}, {"other": "x"}, None])
def test_an_entry_that_is_none_is_an_error(entry):
    with pytest.raises(ValueError):
        Tree("/srv", {"a": entry})
