"""Is a file still the one that was read?"""

from __future__ import annotations

import os
import time

from cxi.sinks import look as module
from cxi.sinks.look import ABSENT, look, witness


def test_a_look_is_identity_times_and_bytes(tmp_path):
    file = tmp_path / "f"
    assert look(str(file)) == ABSENT
    file.write_bytes(b"abc")
    status = file.stat()
    assert look(str(file)) == (status.st_dev, status.st_ino, 3, status.st_mtime_ns, status.st_ctime_ns, b"abc")
    (tmp_path / "l").symlink_to("f")
    assert look(str(tmp_path / "l")) == look(str(file))
    assert len(look(str(tmp_path / "l"), through_links=False) or ()) == 1
    assert len(look(str(file / "below")) or ()) == 1
    os.mkfifo(tmp_path / "p")
    assert [look(str(tmp_path / "p")), look(str(tmp_path)), look("a\0b")] == [None] * 3


def test_a_file_is_settled_once_a_change_has_to_show(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"abc")
    seen = look(str(file))
    assert seen is not None
    newest = file.stat().st_ctime_ns
    assert witness(str(file), seen, newest + module._FINE // 2) is None
    assert witness(str(file), seen, newest + module._COARSE + 1) == seen[:5]
    assert witness(str(file), seen, newest - 10**12) is None  # a clock that was set back
    whole = (*seen[:3], 10**18, 10**18, b"abc")  # a file system that keeps whole seconds
    assert witness(str(file), whole, 10**18 + 2 * module._FINE) is None
    assert witness(str(file), (13,), newest + 10**12) is None


def test_a_file_that_is_there_for_a_moment_leaves_another_witness(tmp_path):
    file, later = tmp_path / "none" / "f", time.time_ns() + 10**13
    before = witness(str(file), ABSENT, later)
    assert before is not None
    assert witness(str(file), ABSENT, later) == before
    file.parent.mkdir()
    file.touch()
    file.unlink()
    file.parent.rmdir()
    assert look(str(file)) == ABSENT
    assert witness(str(file), ABSENT, later) != before
