"""What the gate reads in a git folder by itself, or remembers, is what git says at that moment: byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from cxi.effects.git import QUESTIONS
from cxi.effects.repository import EMPTY_TREE
from cxi.sinks import look
from cxi.sinks.disk import DiskWorld
from cxi.sinks.ground import Grounds
from cxi.sinks.plumbing import Plumbing
from cxi.sinks.reading import Memory, Reading

FEW = max(3, settings().max_examples // 20)  # each example asks hundreds of real git processes

PATHS = ("a", "b.t", "d/x", "d/y.t", "d/e/z", "skip.ign")
CONTENTS = (b"1\n", b"2\n", b"", b"x\r\ny\r\n", b"longer\n")
RULES = (b"", b"* text=auto\n", b"*.t text eol=crlf\n", b"*.t filter=f\n", b"a -text\n")
IGNORED = (b"", b"*.ign\n", b"d/\n", b"a\n!a\n", b"*.t\n")
SETTINGS = (
    "core.autocrlf=true",
    "core.autocrlf=input",
    "core.filemode=false",
    "core.trustctime=false",
    "core.checkstat=minimal",
    "core.ignorecase=true",
    "core.hooksPath=~/hooks",
    "core.hooksPath=tools",
    "filter.f.clean=tr a-z A-Z",
    "core.attributesFile=~/attributes",
    "core.excludesFile=~/excludes",
    "core.symlinks=false",
    "include.path=more",
    "includeIf.onbranch:other.path=more",
    "includeIf.gitdir:~/r/.git.path=~/more",
)
OWN = (".gitattributes", "d/.gitattributes", ".git/info/attributes")
RULED = (".gitignore", "d/.gitignore", ".git/info/exclude")
GIT = (
    "add -A",
    "add -f -N -- a b.t",
    "rm -q -r --cached --ignore-unmatch -- d",
    "update-index --assume-unchanged a",
    "update-index --skip-worktree d/x",
    "update-index --index-version 4",
    "update-index --split-index",
    "update-index --no-split-index",
    "commit -q --allow-empty -m more",
    "checkout -q -f -B other",
    "checkout -q -f main",
    "checkout -q -f --detach",
    "checkout -q --orphan empty",
    "pack-refs --all",
    "repack -q -a -d",
    "tag -f -a -m t v1",
    "branch -f side",
    "symbolic-ref refs/heads/alias refs/heads/main",
    "update-ref -d refs/heads/main",
    "replace -f HEAD HEAD~1",
    "replace -d HEAD",
    "rm -q --cached --ignore-unmatch -- .gitattributes",
)

pick, nothing = st.sampled_from, st.just(b"")
turn = st.one_of(
    st.tuples(pick(("write", "write", "rewrite", "delete", "chmod", "link", "folder", "old")), pick(PATHS), pick(CONTENTS)),
    st.tuples(st.just("write"), pick((*OWN, "home/attributes", "home/.config/git/attributes")), pick(RULES)),
    st.tuples(st.just("write"), pick((*RULED, "home/excludes", "home/.config/git/ignore")), pick(IGNORED)),
    st.tuples(st.just("set"), pick(("--local", "--global")), pick(SETTINGS)),
    st.tuples(st.just("write"), pick((".git/more", "home/more")), pick((b"", b"[core]\n\tautocrlf = true\n"))),
    st.tuples(st.just("git"), pick(GIT), nothing),
    st.tuples(pick(("keep index", "put index", "age index", "conflict", "swap", "nest", "unnest")), st.just(""), nothing),
)


@pytest.fixture(autouse=True, scope="module")
def _remembered_at_once() -> Iterator[None]:
    """Nothing else writes here, so that every file is old enough to be remembered by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look, "_FINE", 0)
        patch.setattr(look, "_COARSE", 0)
        yield


class Place:
    def __init__(self, base: Path) -> None:
        self.repo, self.home = base / "home/r", base / "home"
        self.repo.mkdir(parents=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        self.index = b""
        self.run("init", "-q", "-b", "main")
        self.run("config", "--global", "user.email", "t@example.org")
        self.run("config", "--global", "user.name", "t")
        for name, data in zip(PATHS, CONTENTS, strict=False):
            self.write(name, data)
        self.run("add", "-A")
        self.run("commit", "-q", "-m", "1")
        self.run("commit", "-q", "--allow-empty", "-m", "2")

    def run(self, *arguments: str, given: bytes = b"", check: bool = True) -> None:
        subprocess.run(["git", *arguments], cwd=self.repo, env=self.environment, input=given, capture_output=True, check=check)

    def write(self, name: str, data: bytes) -> None:
        path = self.home / name.removeprefix("home/") if name.startswith("home/") else self.repo / name
        self.clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def clear(self, path: Path) -> None:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)

    def turn(self, action: str, name: str, value: object) -> None:
        path, index = self.repo / name, self.repo / ".git/index"
        try:
            match action:
                case "write":
                    self.write(name, value)
                case "rewrite" if path.is_file() and not path.is_symlink():
                    # Other bytes of the same length under the same time, in the same inode.
                    status = path.stat()
                    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
                    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
                case "old" if path.is_file() and not path.is_symlink():
                    os.utime(path, ns=(10**18, 10**18))
                case "delete":
                    self.clear(path)
                case "chmod" if path.is_file() and not path.is_symlink():
                    path.chmod(path.stat().st_mode ^ 0o111)
                case "link":
                    self.clear(path)
                    path.symlink_to("a" if name != "a" else "b.t")
                case "folder":
                    self.clear(path)
                    (path / "below").mkdir(parents=True)
                    (path / "below/file").touch()
                case "set":
                    key, _, text = value.partition("=")
                    self.run("config", name, key, text)
                case "git":
                    self.run(*name.split(" "), check=False)
                case "keep index":
                    self.index = index.read_bytes()
                case "put index":
                    index.write_bytes(self.index)
                case "age index":
                    os.utime(index, ns=(3 * 10**18, 3 * 10**18))
                case "conflict":
                    self.run("update-index", "--index-info", given=b"100644 " + b"1" * 40 + b" 1\ta\n", check=False)
                case "swap":
                    (self.repo / "d").rename(self.repo / "moved")
                    (self.repo / "d").symlink_to("moved")
                case "nest":
                    self.run("init", "-q", "d", check=False)
                case "unnest":
                    self.clear(self.repo / "d/.git")
        except (FileExistsError, NotADirectoryError, FileNotFoundError, IsADirectoryError):
            pass  # something else stands there


def questions() -> Iterator[tuple[str, tuple[str, ...]]]:
    names = ("HEAD", "refs/heads/main", "refs/heads/alias", "refs/heads/none")
    ends = ("", "^{commit}", "^{tree}", "^1")
    several: dict[str, tuple[tuple[str, ...], ...]] = {
        "symbolic": tuple((name,) for name in names),
        "resolve": (
            *((name + end,) for name in names[:2] for end in ends),
            ("refs/tags/v1^{commit}",),
            ("main",),
            ("other",),
            ("v1",),
        ),
        "type": (("HEAD",), ("HEAD^{tree}",)),
        "commit": (("HEAD",),),
        "blob": (("HEAD:a",),),
        "ref-format": (("refs/heads/x",), ("refs/heads/x..y",)),
        "tree": (("HEAD",), ("refs/heads/other",)),
        "staged": (("HEAD",), (EMPTY_TREE,)),
        "differs": (("HEAD",),),
        "changed": (("HEAD~1", "HEAD"),),
        "modified": ((), ("a",), ("d",), ("d/x", "b.t")),
        "tracked": ((), ("a",)),
        "untracked": ((), ("a",), ("d/x",), ("d",), ("d/e/z",), ("skip.ign",)),
        "attributes": (("a",), ("d/y.t",), PATHS),
        "attributes-staged": (PATHS,),
    }
    for question in QUESTIONS:
        for arguments in several.get(question, ((),)):
            yield question, arguments


HISTORY = ("symbolic", "resolve", "type", "tree", "staged", "changed")
# Of the others git is asked each time.
RULES_AND_INDEX = ("index", "index-flags", "modified", "untracked", "attributes", "attributes-staged")
READ = ("layout", "config", "hooks-path", "ref-format", *RULES_AND_INDEX, *HISTORY)
ASKED = tuple(each for each in questions() if each[0] in READ)


def truth(place: Place, question: str, arguments: tuple[str, ...]) -> bytes | None:
    """Git itself, asked by one that knows nothing."""
    plumbing = Plumbing(place.environment)
    return Reading(plumbing, Grounds(plumbing), Memory(), str(place.repo)).ask(question, arguments)


def compare(place: Place, world: DiskWorld, what: object) -> None:
    held = world.hold()
    commits = [name.decode().strip() for end in ("", "~1", "^{tree}") if (name := truth(place, "resolve", (f"HEAD{end}",)))]
    asked = [(question, (name,)) for question in ("type", "tree", "staged") for name in commits]
    asked += [("changed", (before, after)) for before in (*commits[1:2], EMPTY_TREE) for after in commits[:1]]
    asked += [("resolve", (f"{name}{end}",)) for name in commits[:1] for end in ("^{commit}", "^{tree}", "^1")]
    for question, arguments in (*ASKED, *asked):
        expected = truth(place, question, arguments)
        assert world.git(str(place.repo), question, arguments) == expected, (question, arguments, what)
        assert held.git(str(place.repo), question, arguments) == expected, (question, arguments, what)


@settings(max_examples=FEW, phases=(Phase.explicit, Phase.generate))  # to shrink would be to ask git for an hour
@given(st.lists(turn, min_size=1, max_size=5))
@example([("write", ".gitattributes", b"*.t filter=f\n"), ("git", "add -A", b""), ("delete", ".gitattributes", b"")])
@example([("set", "--global", "include.path=more"), ("write", "home/more", b"[core]\n\tautocrlf = true\n")])
@example([("set", "--local", "includeIf.onbranch:other.path=more"), ("git", "checkout -q -f -B other", b"")])
@example([("keep index", "", b""), ("rewrite", "a", b""), ("git", "add -A", b""), ("put index", "", b""), ("age index", "", b"")])
@example([("git", "pack-refs --all", b""), ("git", "commit -q --allow-empty -m more", b""), ("git", "pack-refs --all", b"")])
def test_every_answer_is_gits_after_every_turn(turns):
    with tempfile.TemporaryDirectory() as base:
        place = Place(Path(base).resolve())
        world = DiskWorld(place.environment)
        compare(place, world, "at first")
        for action in turns:
            place.turn(*action)
            compare(place, world, action)
