"""Where do a command's descriptors lead? In the order in which the redirections are written (bash's manual, 3.6).

- A file is opened, and made or emptied, before the command runs; where that fails, the command does not run.
- `/dev/null`, `/dev/stdout` and their like are no files; other devices, `/dev/tcp` and `/proc` are refused.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import Final

from cxi.effects.shell.expand import Runner, fields, single
from cxi.effects.shell.field import Hole
from cxi.effects.shell.state import CLOSED, NULL, End, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.effects.shell.syntax import Redirect
from cxi.values.base import EntryKind

_STANDARD: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/0": 0, "/dev/fd/1": 1, "/dev/fd/2": 2}
_SOURCES: Final = frozenset({"/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"})


def redirected(runner: Runner, state: State, redirects: tuple[Redirect, ...]) -> bool:
    """Apply redirections; False where one fails, so that the command does not run."""
    return all(_apply(runner, state, redirect) for redirect in redirects)


def _apply(runner: Runner, state: State, redirect: Redirect) -> bool:
    op, fd = redirect.op, redirect.fd
    if op in ("<<", "<<<"):
        body = redirect.here.body if redirect.here is not None else redirect.word
        if body is None:
            raise AssertionError("a here-document without a body")
        text = single(runner, state, body)
        key = _fresh(state)
        data = None if isinstance(text, Hole) else text + ("\n" if op == "<<<" else "")
        state.buffers[key] = None if data is None else data.encode("utf-8", "surrogateescape")
        state.fds[0 if fd is None else fd] = End("buffer", key=key)
        return True
    found = fields(runner, state, [redirect.word])
    if len(found) != 1 or isinstance(found[0], Hole):
        raise Stop(KNOW, "a redirection to a place that is not known", redirect.start, redirect.end, needs="write the path")
    target = str(found[0])
    if op in ("<&", ">&"):
        duplicated = _duplicate(state, redirect, target)
        if duplicated is not None:
            return duplicated
        op = "&>"
    both = op in ("&>", "&>>")
    number = fd if fd is not None else (0 if op in ("<", "<>") else 1)
    end = open_end(state, target, mode={"<": "read", "<>": "both", ">>": "append", "&>>": "append"}.get(op, "write"))
    if end is None:
        return False
    state.fds[number] = end
    if both:
        state.fds[2] = end
    return True


def _duplicate(state: State, redirect: Redirect, target: str) -> bool | None:
    """`n>&m`, `n>&-`; None where the target is a file, for `>&file` only."""
    number = redirect.fd if redirect.fd is not None else (0 if redirect.op == "<&" else 1)
    if target == "-":
        state.fds[number] = CLOSED
        return True
    moved = re.fullmatch(r"(\d{1,3})(-?)", target)
    if moved:
        source = state.fds.get(int(moved[1]), CLOSED)
        if source is CLOSED:
            return False
        state.fds[number] = source
        if moved[2] and int(moved[1]) != number:
            state.fds[int(moved[1])] = CLOSED
        return True
    if redirect.op == ">&" and redirect.fd is None:
        return None
    raise Stop(KNOW, "a descriptor that is no number", redirect.start, redirect.end)


def _fresh(state: State) -> int:
    return min(state.buffers, default=0) - 1 if min(state.buffers, default=0) <= 0 else -1


def open_end(state: State, target: str, *, mode: str) -> End | None:
    """Open a path as the shell or a program does; None where that fails. `mode` is `read`, `write`, `append` or `both`."""
    beside = re.fullmatch(r"/dev/fd/(\d+)", target)
    if beside and mode == "read" and state.fds.get(int(beside[1]), CLOSED).kind == "device":
        return state.fds[int(beside[1])]
    standard = _STANDARD.get(target)
    if standard is not None:
        end = state.fds.get(standard, CLOSED)
        if end.kind == "file" and mode != "read":
            raise Stop(KNOW, f"`{target}` opens the file behind it anew")
        return None if end.kind == "closed" else end
    if target.startswith(("/dev/tcp/", "/dev/udp/")):
        raise Stop(KNOW, "a connection made by the shell", needs="use curl")
    place = state.resolve(target)
    path = place.path
    if path == "/dev/null" or posixpath.normpath(target) == "/dev/null":
        return NULL
    if path.startswith(("/dev/", "/proc/", "/sys/")) or path in ("/dev", "/proc", "/sys"):
        if mode == "read" and target in _SOURCES:
            return End("device", path)
        raise Stop(KNOW, f"`{target}` is a device or a view of a process")
    if place.problem:
        return None
    node = state.look(path)
    if mode == "read":
        if node.kind is EntryKind.ABSENT and not state.opaque:
            return None
        if node.kind is EntryKind.FOLDER:
            state.read(path)
            return End("device", path)
        _plain(state, path, node)
        state.read(path)
        key = _fresh(state)
        state.buffers[key] = node.data
        return End("buffer", path, key)
    if node.kind is EntryKind.FOLDER or (node.kind is EntryKind.ABSENT and target.endswith("/")):
        return None
    _plain(state, path, node)
    if node.same_as or (path in state.disk and node.links > 1):
        raise Stop(KNOW, f"`{state.show(path)}` is written after it was linked", needs="do it in two calls")
    unsure = _opened(state, path)
    if node.kind is EntryKind.ABSENT:
        state.put(path, Node(EntryKind.FILE, 0o644, None if unsure or (state.opaque and mode != "write") else b""))
    elif mode == "write":
        state.put(path, replace(node, data=None if unsure else b""))
    elif unsure:
        state.put(path, replace(node, data=None))
    if mode == "both":
        state.read(path)
        state.put(path, replace(state.look(path), data=None) if node.kind is EntryKind.ABSENT else replace(node, data=None))
    return End("file", path)


def _opened(state: State, path: str) -> bool:
    """Whether another descriptor has the file open: two of them overwrite each other."""
    return any(end.kind == "file" and end.path == path for end in state.fds.values())


def _plain(state: State, path: str, node: Node) -> None:
    if node.kind not in (EntryKind.FILE, EntryKind.ABSENT):
        raise Stop(KNOW, f"`{state.show(path)}` is no ordinary file ({node.kind})")
