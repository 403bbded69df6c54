"""Code that a server loads out of the root is protected with its folder, and its content counts."""

from __future__ import annotations

import pytest

from cxi.config.launch import find_code
from cxi.config.lock import PinStanding, compare, make_lock
from cxi.config.model import ProtectedKind
from cxi.errors import ConfigError


@pytest.fixture
def root(tmp_path):
    for name in (
        "srv/server.py",
        "srv/pkg/__init__.py",
        "srv/pkg/__main__.py",
        "bin/run.sh",
        "venv/bin/tool",
        "venv/pyvenv.cfg",
        "top.py",
    ):
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text("#!/bin/sh\n")
    (tmp_path / "root/data").mkdir()
    (tmp_path / "root/data/app.db").write_text("rows")
    return tmp_path.resolve() / "root"


PYTHON = "/usr/bin/python3"


@pytest.mark.parametrize(
    ("program", "args", "env", "cwd", "folders"),
    [
        (PYTHON, ("{root}/srv/server.py",), {}, ".", {"srv"}),
        (PYTHON, ("-u", "-X", "dev", "root/srv/server.py"), {}, ".", {"srv"}),
        (PYTHON, ("-m", "pkg"), {}, "root/srv", {"srv", "srv/pkg"}),
        (PYTHON, ("-Im", "pkg"), {}, "root/srv", {"srv", "srv/pkg"}),
        (PYTHON, ("-um", "pkg"), {"PYTHONPATH": "{root}/srv"}, ".", {"srv", "srv/pkg"}),
        ("{root}/bin/run.sh", (), {}, ".", {"bin"}),
        ("{root}/venv/bin/tool", (), {}, ".", {"venv", "venv/bin"}),
        ("/usr/bin/uv", ("run", "--directory", "{root}/srv", "server.py"), {}, ".", {"srv"}),
        ("/usr/bin/uv", ("run", "python", "-m", "pkg"), {}, "root/srv", {"srv", "srv/pkg"}),
        ("/usr/bin/sh", ("-c", "exec python3 {root}/srv/server.py"), {}, ".", {"srv"}),
        # What is no code: the folders and files that a server works on.
        ("/usr/bin/mcp-server-git", ("--repository", "{root}"), {}, "root", set()),
        ("/usr/bin/server", ("{root}/data", "--db={root}/data/app.db"), {}, "root", set()),
        (PYTHON, ("-I", "-m", "mcp_server_git"), {}, "root", set()),
    ],
)
def test_folders_of_code_in_the_root_are_found(root, program, args, env, cwd, folders):
    fill = lambda text: text.replace("{root}", str(root))  # noqa: E731
    found = find_code(
        fill(program), tuple(map(fill, args)), {name: fill(text) for name, text in env.items()}, root.parent / cwd, root
    )
    assert {str(path.relative_to(root)) for path in found.folders} == folders
    assert found.exposed == ()


@pytest.mark.parametrize(
    ("args", "env", "cwd"),
    [
        (("{root}/top.py",), {}, "."),
        (("-m", "pkg"), {}, "root"),  # a `json.py` in the root would be loaded for Python's own
        (("-c", "import x"), {}, "root"),
        (("-m", "root.srv.pkg"), {}, "."),  # loads an `__init__.py` of the root, once there is one
        (("srv/server.py",), {"PYTHONPATH": "{root}"}, "root"),
    ],
)
def test_code_in_the_root_itself_is_found(root, args, env, cwd):
    fill = lambda text: text.replace("{root}", str(root))  # noqa: E731
    env = {name: fill(text) for name, text in env.items()}
    assert find_code(PYTHON, tuple(map(fill, args)), env, root.parent / cwd, root).exposed == (root,)


def test_data_is_no_part_of_the_identity(root):
    found = find_code("/usr/bin/env", ("--db", str(root / "data/app.db"), str(root / "srv/server.py")), {}, root, root)
    assert set(found.digests) == {"/usr/bin/env", str(root / "srv/server.py")}
    assert root / "data/app.db" in found.files


def test_a_link_protects_where_it_leads_too(root):
    (root / "link.d").mkdir()
    (root / "link.d/s.py").symlink_to(root / "srv/server.py")
    assert {root / "link.d", root / "srv"} == set(find_code(PYTHON, (str(root / "link.d/s.py"),), {}, root.parent, root).folders)


def test_a_folder_of_code_in_the_root_is_protected(place):
    place.write("repo/srv/server.py", "")
    place.change("command: [sh]", "command: [sh, repo/srv/server.py]")
    assert dict(place.load().protected)[str(place.folder / "repo/srv")] is ProtectedKind.FOLDER


def test_a_program_in_the_root_itself_is_refused_where_it_is_named(place):
    place.write("repo/server.py", "")
    place.change("command: [sh]", "command: [sh, repo/server.py]")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [("cxi.yaml", 13)]


def test_a_changed_script_is_a_changed_server(place, tools_of):
    config = place.load(pinned=False)
    listed = {name: tools_of(config, name) for name in config.servers}
    lock = make_lock(config, listed)

    def standing(server):
        return {one.state for one in compare(lock, server, place.load(pinned=False).servers[server].identity, listed[server])}

    assert standing("files") == {PinStanding.OK}
    place.write("server.py", "import os\n")
    assert standing("files") == {PinStanding.SERVER_CHANGED}
    assert standing("ci") == {PinStanding.OK}
