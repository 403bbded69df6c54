"""What do archives hold, and where does it go? What is not a plain file or folder is refused.

- An extracted file replaces what stands at its place; a link on the way that the archive did not make is followed, as tar does.
- A compressing tar runs the compressor.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
import zipfile
import zlib
from dataclasses import replace
from typing import Final

from cxi.effects.place import LIMIT
from cxi.effects.shell.call import Call, execute
from cxi.effects.shell.files import make_folder
from cxi.effects.shell.state import ABSENT, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

_LARGEST: Final = 64 * 1024 * 1024  # bytes that an archive may hold
_COMPRESSORS: Final = {"z": "gzip", "j": "bzip2", "J": "xz", "zstd": "zstd"}
_SUFFIXES: Final = {".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".tbz2": "bzip2", ".xz": "xz", ".txz": "xz", ".zst": "zstd"}


def _archive(call: Call, text: str) -> bytes | None:
    """The bytes of an archive; None where it is not there."""
    place = call.state.resolve(text)
    node = call.state.look(place.path) if not place.problem else ABSENT
    if node.kind is EntryKind.ABSENT and not call.state.opaque:
        call.failed = True
        return None
    data = call.state.bytes_of(node.data) if node.kind is EntryKind.FILE else None
    if data is None:
        raise Stop(KNOW, f"what `{text}` holds is not known")
    call.state.read(place.path)
    return data


def tar(call: Call) -> list[State]:
    """Packs, unpacks or lists."""
    state = call.state
    given = call.given
    modes = [one for one in ("c", "x", "t", "r", "u", "A", "d") if given.has(one)]
    if len(modes) != 1 or modes[0] not in ("c", "x", "t"):
        raise Stop(KNOW, "`tar` in a mode that is not read")
    file = given.last("f")
    name = call.known(file) if file is not None else "-"
    if ":" in name:
        raise Stop(KNOW, "`tar -f` of another machine's file")
    execute(state, call.name, call.words)
    base = ""
    for folder in given.all("C"):
        base = posixpath.join(base or state.cwd, call.known(folder))
    compressor = next((program for option, program in _COMPRESSORS.items() if given.has(option)), None)
    if compressor is None and (modes[0] != "c" or given.has("a")):
        compressor = next((program for suffix, program in _SUFFIXES.items() if name.endswith(suffix)), None)
    if compressor is not None:
        state.act(
            "proc.exec", compressor, {"argv": [compressor] if modes[0] == "c" else [compressor, "-d"], "inputs_writable": False}
        )
    if modes[0] == "c":
        for text in call.operands():
            place = state.resolve(text, base=base, follow=given.has("h"))
            if place.problem or state.look(place.path).kind is EntryKind.ABSENT:
                call.failed = True
                continue
            call.tree(place.path)
        if name != "-":
            call.write(name, None)
        state.status = None
        return [state]
    if name == "-":
        raise Stop(KNOW, "`tar` of an archive that is not known", needs="extract a file")
    data = _archive(call, name)
    if data is None:
        return call.settle()
    if modes[0] == "t":
        state.status = None
        return [state]
    if call.operands():
        raise Stop(KNOW, "`tar -x` of named members")
    strip = given.last("strip-components")
    for member, mode, body in _tar_members(data):
        parts = [part for part in member.split("/") if part not in ("", ".")]
        if strip is not None:
            parts = parts[int(call.known(strip)) :] if call.known(strip).isdigit() else parts
        if parts:
            _place(call, posixpath.join(base or state.cwd, "/".join(parts)), mode, body, keep=given.has("k"))
    state.status = None
    return [state]


def _tar_members(data: bytes) -> list[tuple[str, int, bytes | None]]:
    out: list[tuple[str, int, bytes | None]] = []
    size = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as opened:
            for member in opened:
                size += max(member.size, 0)
                if len(out) > LIMIT or size > _LARGEST:
                    raise Stop(KNOW, "an archive of that size")
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise Stop(KNOW, f"the archive's `{member.name}` is no plain file or folder")
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise Stop(KNOW, f"the archive's `{member.name}` leads elsewhere")
                body = opened.extractfile(member) if member.isreg() else None
                out.append((member.name, member.mode & 0o777, body.read() if body is not None else None))
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, ImportError):
        raise Stop(KNOW, "an archive that is not read whole") from None
    return out


def _place(call: Call, text: str, mode: int, body: bytes | None, *, keep: bool) -> None:
    """One member comes to stand at a path."""
    state = call.state
    parts = text.split("/")
    for at in range(2, len(parts)):
        if not make_folder(state, "/".join(parts[:at])):
            raise Stop(KNOW, f"`{text}` cannot be extracted where a file stands")
    place = state.resolve(text, follow=False)
    there = state.look(place.path)
    if body is None:
        if there.kind is EntryKind.LINK:
            raise Stop(KNOW, f"`{text}` is a link where the archive has a folder")
        if not make_folder(state, text):
            raise Stop(KNOW, f"`{text}` cannot be extracted where a file stands")
        node = state.look(place.path)
        if node.mode != mode:
            state.put(place.path, replace(node, mode=mode))
        return
    if there.kind is EntryKind.FOLDER:
        raise Stop(KNOW, f"`{text}` cannot be extracted where a folder stands")
    if there.kind is not EntryKind.ABSENT and keep:
        return
    state.put(place.path, Node(EntryKind.FILE, mode, body))


def unzip(call: Call) -> list[State]:
    """Unpacks or lists."""
    state = call.state
    given = call.given
    operands = call.operands()
    execute(state, call.name, call.words)
    if given.has("l", "v", "t", "p", "Z"):
        for text in operands[:1]:
            call.read(text)
        state.status = None
        return [state]
    if len(operands) != 1:
        raise Stop(KNOW, "`unzip` of named members, or of several archives")
    name = operands[0] if state.look_through(operands[0]) is not EntryKind.ABSENT else f"{operands[0]}.zip"
    data = _archive(call, name)
    if data is None:
        return call.settle()
    folder = given.last("d")
    base = posixpath.join(state.cwd, call.known(folder)) if folder is not None else state.cwd
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            infos = opened.infolist()
            if len(infos) > LIMIT or sum(info.file_size for info in infos) > _LARGEST:
                raise Stop(KNOW, "an archive of that size")
            for info in infos:
                _unzip_one(call, base, opened, info)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, ValueError, RuntimeError, NotImplementedError):
        raise Stop(KNOW, "an archive that is not read whole") from None
    state.status = None
    return [state]


def _unzip_one(call: Call, base: str, opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    mode = info.external_attr >> 16
    if (mode & 0o170000) not in (0, 0o100000, 0o040000) or info.flag_bits & 1:
        raise Stop(KNOW, f"the archive's `{info.filename}` is no plain file or folder")
    name = info.filename
    if name.startswith("/") or ".." in name.split("/") or "\\" in name or not name.isprintable():
        raise Stop(KNOW, f"the archive's `{name}` leads elsewhere")
    text = posixpath.join(base, name.rstrip("/"))
    there = call.state.resolve(text, follow=False)
    exists = not there.problem and call.state.look(there.path).kind is not EntryKind.ABSENT
    if exists and not name.endswith("/"):
        if call.given.has("n"):
            return
        if not call.given.has("o"):
            raise Stop(KNOW, f"`unzip` would ask whether to replace `{name}`", needs="`-o` or `-n`")
    _place(call, text, mode & 0o777 or 0o644, None if name.endswith("/") else opened.read(info), keep=False)


def zipped(call: Call) -> list[State]:
    """`zip`: makes or changes an archive."""
    state = call.state
    operands = call.operands()
    execute(state, call.name, call.words)
    if len(operands) < 2:
        call.failed = True
        return call.settle()
    name, *paths = operands
    base = posixpath.basename(name)
    for text in paths:
        place = state.resolve(text)
        if place.problem or state.look(place.path).kind is EntryKind.ABSENT:
            continue
        if call.given.has("r"):
            call.tree(place.path)
        else:
            state.read(place.path)
    call.write(name if "." in base else f"{name}.zip", None)
    state.status = None
    return [state]


def gzip(call: Call) -> list[State]:
    """`gzip`, `bzip2`, `xz`, `zstd` and what undoes them: a file becomes another."""
    state = call.state
    given = call.given
    suffix = str(call.grammar.facts.get("suffix", ".gz"))
    undo = call.grammar.facts.get("undo") is True or given.has("d")
    keeps = call.grammar.facts.get("keeps") is True
    execute(state, call.name, call.words)
    operands = call.operands()
    if given.has("c", "l", "t") or not operands:
        for text in operands:
            call.read(text)
        state.take()
        state.status = None
        return [state]
    if given.has("r"):
        raise Stop(KNOW, f"`{call.name} -r`")
    for given_name in operands:
        text = given_name
        place = state.resolve(text, follow=False)
        node = state.look(place.path) if not place.problem else ABSENT
        if undo and node.kind is EntryKind.ABSENT:
            text += suffix
            place = state.resolve(text, follow=False)
            node = state.look(place.path) if not place.problem else ABSENT
        if node.kind is not EntryKind.FILE or node.links > 1:
            if node.kind is EntryKind.LINK or node.links > 1 or state.opaque:
                raise Stop(KNOW, f"`{call.name}` of what is no plain file")
            call.failed = True
            continue
        if undo and not text.endswith(suffix):
            if text.endswith((".tgz", ".taz", ".z", "-gz", ".Z", "_z", ".tbz", ".tbz2", ".txz", ".tzst")):
                raise Stop(KNOW, f"the name that `{call.name}` gives `{text}`")
            call.failed = True
            continue
        if not undo and text.endswith(suffix):
            call.failed = True
            continue
        target = state.resolve(text[: -len(suffix)] if undo else text + suffix, follow=False)
        if state.look(target.path).kind is not EntryKind.ABSENT and not given.has("f"):
            call.failed = True
            continue
        state.read(place.path)
        state.put(target.path, Node(EntryKind.FILE, node.mode, None))
        if not given.has("k") and not keeps:
            state.put(place.path, ABSENT)
    state.status = None
    return [state]
