"""What do the programs that make, move, copy and remove files do? After GNU coreutils' manual.

- Operands are taken one by one, as the programs do: what fails makes the status 1, and the others are still done.
- A rename replaces what stands at its end and follows no link there; a copy writes through a link.
- Where the order of names matters and a glob gave them, locales differ: refused.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from cxi.effects.place import join
from cxi.effects.shell.call import Call, execute, pattern_below, several_found
from cxi.effects.shell.field import Field
from cxi.effects.shell.state import ABSENT, FOLDER, LIKELY, Node, State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

_GONE = (EntryKind.ABSENT, EntryKind.NOT_A_FOLDER)


def _begin(call: Call) -> State:
    execute(call.state, call.name, call.words)
    return call.state


def cat(call: Call) -> list[State]:
    """Prints files, one after the other."""
    state = call.state
    plain = not call.given.options and not several_found(list(call.given.operands))
    operands = call.operands()
    pieces: list[bytes | None] = []
    for text in operands or ["-"]:
        if text == "-":
            pieces.append(state.take())
        elif call.read(text):
            place = state.resolve(text)
            node = state.look(place.path)
            pieces.append(state.bytes_of(node.data) if node.kind is EntryKind.FILE and plain else None)
    known = [piece for piece in pieces if piece is not None]
    output = b"".join(known) if plain and len(known) == len(pieces) and not call.failed else None
    execute(state, call.name, call.words, noisy=False)
    state.write(1, output)
    if call.failed or output is None:
        state.write(2, None)
    return call.settle()


def tee(call: Call) -> list[State]:
    """Copies its input to files and to its output."""
    state = call.state
    append = call.given.has("a")
    operands = call.operands()
    for text in operands:
        call.write(text, b"", append=append)
    data = state.take()  # its files are opened, and emptied, before it reads
    for text in operands:
        call.write(text, data, append=True)
    execute(state, call.name, call.words, noisy=False)
    state.write(1, data)
    return call.settle()


def mkdir(call: Call) -> list[State]:
    """Makes folders."""
    state = _begin(call)
    parents = call.given.has("p")
    for text in call.operands():
        _mkdir(call, state, text, parents=parents)
    return call.settle()


def _mkdir(call: Call, state: State, text: str, *, parents: bool) -> None:
    if parents:
        parts = [part for part in text.split("/") if part]
        here = "/" if text.startswith("/") else ""
        for part in parts:
            here = f"{here}{part}/"
            if part not in (".", "..") and not make_folder(state, here):
                call.failed = True
                return
        return
    place = state.resolve(text.rstrip("/") or "/", follow=False)
    if place.problem or state.look(place.path).kind is not EntryKind.ABSENT:
        call.failed = True
        return
    state.put(place.path, FOLDER)


def make_folder(state: State, text: str) -> bool:
    """A folder that is there, or is made now; False where it cannot be."""
    place = state.resolve(text)
    if place.problem:
        return False
    kind = state.look(place.path).kind
    if kind is EntryKind.ABSENT:
        link = state.resolve(text.rstrip("/"), follow=False)
        if not link.problem and state.look(link.path).kind is EntryKind.LINK:
            return False
        state.put(place.path, FOLDER)
    return kind in (EntryKind.ABSENT, EntryKind.FOLDER)


def rmdir(call: Call) -> list[State]:
    """Removes empty folders."""
    state = _begin(call)
    for text in call.operands():
        chain = [text.rstrip("/") or "/"]
        if call.given.has("p"):
            while (above := posixpath.dirname(chain[-1])) not in ("", "/", "."):
                chain.append(above)
        for one in chain:
            place = state.resolve(one, follow=False)
            last = one.rsplit("/", 1)[-1]
            if place.problem or last in (".", "..") or state.look(place.path).kind is not EntryKind.FOLDER:
                call.failed = True
                break
            if state.names(place.path):
                call.failed = call.failed or not call.given.has("ignore-fail-on-non-empty")
                call.unsure = True
                if not state.opaque:
                    break
            state.put(place.path, ABSENT)
    return call.settle()


def rm(call: Call) -> list[State]:
    """Removes files, and folders with all that they hold."""
    state = _begin(call)
    recursive, force = call.given.has("r", "R"), call.given.has("f")
    call.unsure = call.given.has("i", "I", "interactive")
    for text in call.operands():
        _rm(call, state, text, recursive=recursive, force=force)
    return call.settle()


def _rm(call: Call, state: State, text: str, *, recursive: bool, force: bool) -> None:
    stripped = text.rstrip("/")
    if stripped.rsplit("/", 1)[-1] in (".", "..", ""):
        call.failed = True  # it refuses these itself
        return
    bare = state.resolve(stripped, follow=False)
    node = state.look(bare.path) if not bare.problem else ABSENT
    if bare.problem or node.kind in _GONE:
        call.failed = call.failed or not force
        return
    if text != stripped and node.kind is EntryKind.LINK:
        place = state.resolve(text)
        call.failed = True  # what a link with a slash leads to is emptied, and stays
        if not place.problem and state.look(place.path).kind is EntryKind.FOLDER and recursive:
            _empty(state, place.path)
        return
    if text != stripped and node.kind is not EntryKind.FOLDER:
        call.failed = True
        return
    if node.kind is EntryKind.FOLDER:
        if not recursive:
            call.failed = True
            if not call.given.has("d") or state.names(bare.path):
                return
            call.failed = False
        elif _holds_cwd(state, bare.path):
            raise Stop(KNOW, "the working directory itself would be removed", needs="leave it first")
        _empty(state, bare.path)
    state.put(bare.path, ABSENT)


def _holds_cwd(state: State, path: str) -> bool:
    here = state.resolve(state.cwd).path
    return here == path or here.startswith(join(path, ""))


def _empty(state: State, path: str) -> None:
    if state.opaque:
        state.act("fs.delete", pattern_below(state.show(path)), {"maybe": True}, pattern=True)
    for there, _ in state.below(path):
        state.put(there, ABSENT)


def touch(call: Call) -> list[State]:
    """Sets times, and makes what is not there."""
    state = _begin(call)
    for field in call.given.all("r"):
        call.read(field)
    for text in call.operands():
        if text == "-":
            continue
        place = state.resolve(text, follow=not call.given.has("h"))
        if place.problem:
            call.failed = True
            continue
        node = state.look(place.path)
        if node.kind is EntryKind.ABSENT:
            if call.given.has("c", "h"):
                continue
            if text.endswith("/"):
                call.failed = True
                continue
            state.put(place.path, Node(EntryKind.FILE, 0o644, None if state.opaque else b""))
        elif node.kind in (EntryKind.FILE, EntryKind.FOLDER):
            state.put(place.path, replace(node, touched=True))
        else:
            state.act("fs.touch", state.show(place.path))
    return call.settle()


# --- modes


def chmod(call: Call) -> list[State]:
    """Sets modes."""
    state = _begin(call)
    operands = call.operands()
    if call.given.has("reference"):
        raise Stop(KNOW, "`chmod --reference`")
    if not operands:
        call.failed = True
        return call.settle()
    mode, *paths = operands
    for text in paths:
        place = state.resolve(text)
        node = state.look(place.path) if not place.problem else ABSENT
        if node.kind in _GONE:
            call.failed = True
            continue
        _chmod(state, place.path, node, mode)
        if call.given.has("R") and node.kind is EntryKind.FOLDER:
            if state.opaque:
                state.act("fs.chmod", pattern_below(state.show(place.path)), {"maybe": True}, pattern=True)
            for there, inner in state.below(place.path):
                if inner.kind is not EntryKind.LINK:
                    _chmod(state, there, inner, mode)
    return call.settle()


def _chmod(state: State, path: str, node: Node, mode: str) -> None:
    after = new_mode(node.mode, mode, folder=node.kind is EntryKind.FOLDER)
    if after == node.mode and not state.opaque:
        return
    if node.kind is EntryKind.OTHER or state.opaque:
        state.act("fs.chmod", state.show(path), {"mode": f"{after:o}"})
    else:
        state.put(path, replace(node, mode=after))


_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]))+)")


def new_mode(before: int, mode: str, *, folder: bool) -> int:
    """The mode after `chmod`, with a umask of 022 where nobody is named (chmod(1)).

    Raises:
        Stop: the mode is not read.
    """
    if re.fullmatch(r"[0-7]{1,4}", mode):
        value = int(mode, 8)
        return value | (before & 0o6000) if folder and len(mode) < 5 else value
    for clause in mode.split(","):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise Stop(KNOW, f"the mode `{mode}` is not read")
        who = found[1] or "a"
        mask = sum({"u": 0o4700, "g": 0o2070, "o": 0o1007, "a": 0o7777}[one] for one in set(who)) if "a" not in who else 0o7777
        if not found[1]:
            mask &= ~0o022
        for op, letters in re.findall(r"([-+=])([rwxXstugo]*)", found[2]):
            bits = 0
            for letter in letters:
                if letter in "ugo":
                    shift = {"u": 6, "g": 3, "o": 0}[letter]
                    bits |= ((before >> shift) & 7) * 0o111
                elif letter == "X":
                    bits |= 0o111 if folder or before & 0o111 else 0
                else:
                    bits |= {"r": 0o444, "w": 0o222, "x": 0o111, "s": 0o6000, "t": 0o1000}[letter]
            bits &= mask
            before = before | bits if op == "+" else before & ~bits if op == "-" else (before & ~(mask & 0o777)) | bits
    return before


# --- copying and moving


def _ends(call: Call) -> tuple[list[str], str, bool] | None:
    """Sources, destination, and whether the destination is a folder to put them into."""
    operands = call.operands()
    folder = call.given.last("t")
    if folder is not None:
        text = call.known(folder)
        return operands, text, True
    if len(operands) < 2:
        call.failed = True
        return None
    if several_found(list(call.given.operands)) and isinstance(call.given.operands[-1], str):
        last: Field = call.given.operands[-1]
        if several_found([last, last]):
            raise Stop(KNOW, f"which name is the last one of a glob is up to the locale, and `{call.name}` writes there")
    *sources, destination = operands
    if call.given.has("T"):
        if len(sources) > 1:
            call.failed = True
            return None
        return sources, destination, False
    into = call.state.look_through(destination) is EntryKind.FOLDER
    if len(sources) > 1 and not into:
        if call.state.opaque and call.state.look_through(destination) is EntryKind.ABSENT:
            return sources, destination, True
        call.failed = True
        return None
    return sources, destination, into


def _inside(destination: str, source: str) -> str:
    base = source.rstrip("/").rsplit("/", 1)[-1]
    return f"{destination.rstrip('/') or ''}/{base}" if destination != "" else base


def copy(call: Call) -> list[State]:
    """Copies."""
    state = _begin(call)
    recursive = call.given.has("r", "R", "a")
    follow = call.given.has("L") or not (recursive or call.given.has("d", "P"))
    call.unsure = call.given.has("i", "u", "n")
    found = _ends(call)
    if found is not None:
        sources, destination, into = found
        seen: set[str] = set()
        for source in sources:
            target = _inside(destination, source) if into else destination
            if target in seen:
                raise Stop(KNOW, "two sources of one name")
            seen.add(target)
            place = state.resolve(source, follow=follow or call.given.has("H"))
            node = state.look(place.path) if not place.problem else ABSENT
            if node.kind in _GONE:
                if not state.opaque:
                    call.failed = True
                    continue
                if recursive:
                    raise Stop(KNOW, f"what `{source}` is, which a program may have made, is not known")
                node = Node(EntryKind.FILE, 0o644, None)
            if node.kind is EntryKind.FOLDER and not recursive:
                call.failed = True
                continue
            _copy(call, state, place.path, node, target, follow=follow, recursive=recursive)
    return call.settle()


def _copy(call: Call, state: State, source: str, node: Node, target: str, *, follow: bool, recursive: bool) -> None:
    """One thing, to a path as it was given."""
    own = state.resolve(target, follow=False)
    if node.kind is EntryKind.FILE:
        state.read(source)
    if own.problem:
        call.failed = True
        return
    there = state.look(own.path)
    match node.kind:
        case EntryKind.FILE:
            _copy_file(call, state, source, node, target, there, recursive=recursive)
        case EntryKind.LINK:
            if there.kind is EntryKind.FOLDER or target.endswith("/"):
                call.failed = True
                return
            if there.kind is not EntryKind.ABSENT and call.given.has("n"):
                return
            state.put(own.path, Node(EntryKind.LINK, 0o777, target=node.target))
        case EntryKind.FOLDER:
            if there.kind is EntryKind.LINK:
                raise Stop(KNOW, f"`{target}` is a link, and a folder is copied there")
            if there.kind not in (EntryKind.ABSENT, EntryKind.FOLDER):
                call.failed = True
                return
            if own.path == source or own.path.startswith(join(source, "")):
                raise Stop(KNOW, "a folder is copied into itself")
            inside = state.below(source)
            state.read(source)
            if there.kind is EntryKind.ABSENT:
                state.put(own.path, replace(FOLDER, mode=node.mode))
            if state.opaque:
                state.act("fs.create", pattern_below(state.show(own.path)), {"maybe": True}, pattern=True)
            for path, inner in inside:
                if follow and inner.kind is EntryKind.LINK:
                    raise Stop(KNOW, "a link below a folder that is copied with links followed")
                to = join(own.path, path[len(join(source, "")) :])
                existing = state.look(to)
                if existing.kind is EntryKind.LINK:
                    raise Stop(KNOW, f"`{state.show(to)}` is a link, and is copied over")
                if inner.kind is EntryKind.FOLDER:
                    if existing.kind is EntryKind.ABSENT:
                        state.put(to, replace(FOLDER, mode=inner.mode))
                    elif existing.kind is not EntryKind.FOLDER:
                        raise Stop(KNOW, f"`{state.show(to)}` is in the way of a folder")
                    continue
                _copy(call, state, path, inner, to, follow=follow, recursive=recursive)
        case _:
            raise Stop(KNOW, f"`{state.show(source)}` is no file, folder or link")


def _copy_file(call: Call, state: State, source: str, node: Node, target: str, there: Node, *, recursive: bool) -> None:
    if there.kind is EntryKind.LINK and recursive:
        raise Stop(KNOW, f"`{target}` is a link, and is copied over")
    place = state.resolve(target)
    through = state.look(place.path) if not place.problem else ABSENT
    if there.kind is EntryKind.LINK and through.kind in _GONE:
        call.failed = True  # a link that leads nowhere is not written through
        return
    if place.path == source:
        call.failed = True
        return
    exists = through.kind not in _GONE
    if exists and call.given.has("n"):
        return
    data = node.data
    if exists and call.given.has("u", "i"):
        data = None
    if state.bytes_of(data) is None:
        call.write(target, None)
    else:
        call.write(target, b"x")
        if not call.failed and place.path in state.disk and state.look(place.path).kind is not EntryKind.FOLDER:
            state.put(place.path, replace(state.look(place.path), data=data))
    if not exists and place.path in state.disk:
        state.put(place.path, replace(state.look(place.path), mode=node.mode & 0o777))
    elif call.given.has("a", "p") and place.path in state.disk:
        state.put(place.path, replace(state.look(place.path), mode=node.mode))


def move(call: Call) -> list[State]:
    """Renames."""
    state = _begin(call)
    call.unsure = call.given.has("i", "u", "n")
    found = _ends(call)
    if found is not None:
        sources, destination, into = found
        for source in sources:
            _move(call, state, source, _inside(destination, source) if into else destination)
    return call.settle()


def _move(call: Call, state: State, source: str, target: str) -> None:
    stripped = source.rstrip("/")
    if stripped.rsplit("/", 1)[-1] in (".", "..", ""):
        call.failed = True
        return
    place = state.resolve(stripped, follow=False)
    node = state.look(place.path) if not place.problem else ABSENT
    if place.problem or node.kind in _GONE:
        if not state.opaque or place.problem:
            call.failed = True
            return
        call.unsure = True
        node = Node(EntryKind.FILE, 0o644, None)
        shown = state.show(state.resolve(target, follow=False).path)
        state.act("fs.create", pattern_below(shown), {"maybe": True}, pattern=True)
    if source != stripped and node.kind is not EntryKind.FOLDER:
        raise Stop(KNOW, f"`{source}` is moved, and is no folder")
    to = state.resolve(target.rstrip("/") or "/", follow=False)
    if to.problem or (target.endswith("/") and node.kind is not EntryKind.FOLDER):
        call.failed = True
        return
    there = state.look(to.path)
    if there.kind is not EntryKind.ABSENT:
        if call.given.has("n") or to.path == place.path:
            call.failed = call.failed or to.path == place.path
            return
        if there.kind is EntryKind.FOLDER and node.kind is EntryKind.FOLDER and not state.names(to.path):
            state.put(to.path, ABSENT)
        elif EntryKind.FOLDER in (there.kind, node.kind):
            call.failed = True
            return
        if node.same_as == to.path or there.same_as == place.path or (node.links > 1 and there.links > 1):
            raise Stop(KNOW, "one name of a file is moved to what may be another")
    if to.path.startswith(join(place.path, "")):
        call.failed = True
        return
    if node.kind is EntryKind.FOLDER and _holds_cwd(state, place.path):
        raise Stop(KNOW, "the working directory itself would be moved", needs="leave it first")
    inside = state.below(place.path) if node.kind is EntryKind.FOLDER else []
    for path, inner in [(place.path, node), *inside]:
        origin = inner.origin or ("" if path in state.disk and inner.kind is not EntryKind.ABSENT else path)
        moved = replace(inner, origin=origin, fresh=inner.kind is EntryKind.FOLDER)
        state.put(to.path + path[len(place.path) :], moved)
        state.put(path, ABSENT)
    if inside and state.opaque:
        state.act("fs.create", pattern_below(state.show(to.path)), {"maybe": True}, pattern=True)
        state.act("fs.delete", pattern_below(state.show(place.path)), {"maybe": True}, pattern=True)


def link(call: Call) -> list[State]:
    """Makes links."""
    state = _begin(call)
    symbolic, force = call.given.has("s"), call.given.has("f")
    operands = call.operands()
    folder = call.given.last("t")
    if folder is not None:
        pairs = [(one, _inside(call.known(folder), one)) for one in operands]
    elif len(operands) == 1:
        pairs = [(operands[0], _inside(".", operands[0]))]
    elif operands:
        *sources, last = operands
        through = state.look_through(last, follow=not call.given.has("n")) is EntryKind.FOLDER and not call.given.has("T")
        if len(sources) > 1 and not through:
            call.failed = True
            return call.settle()
        pairs = [(one, _inside(last, one) if through else last) for one in sources]
    else:
        call.failed = True
        return call.settle()
    for source, target in pairs:
        _link(call, state, source, target, symbolic=symbolic, force=force)
    return call.settle()


def _link(call: Call, state: State, source: str, target: str, *, symbolic: bool, force: bool) -> None:
    place = state.resolve(target, follow=False)
    if place.problem or target.endswith("/"):
        call.failed = True
        return
    there = state.look(place.path)
    if there.kind is not EntryKind.ABSENT and (not force or there.kind is EntryKind.FOLDER):
        call.failed = True
        return
    if symbolic:
        state.put(place.path, Node(EntryKind.LINK, 0o777, target=source))
        return
    origin = state.resolve(source, follow=call.given.has("L"))
    node = state.look(origin.path) if not origin.problem else ABSENT
    if node.kind in _GONE or node.kind is EntryKind.FOLDER or origin.path == place.path:
        call.failed = True
        return
    if node.kind is not EntryKind.FILE or state.opaque:
        raise Stop(KNOW, "a hard link to what is no file")
    state.put(origin.path, replace(node, links=node.links + 1))
    state.put(place.path, replace(node, same_as=node.same_as or origin.path, links=node.links + 1))


def install(call: Call) -> list[State]:
    """Copies in place of what is there, with a mode."""
    state = _begin(call)
    mode = call.given.last("m")
    bits = new_mode(0o755, call.known(mode), folder=False) if mode is not None else 0o755
    if call.given.has("d"):
        for text in call.operands():
            _mkdir(call, state, text, parents=True)
        return call.settle()
    found = _ends(call)
    if found is None:
        return call.settle()
    sources, destination, into = found
    for source in sources:
        target = _inside(destination, source) if into else destination
        if call.given.has("D") and (above := posixpath.dirname(target)):
            _mkdir(call, state, above, parents=True)
        place, to = state.resolve(source), state.resolve(target, follow=False)
        node = state.look(place.path) if not place.problem else ABSENT
        if node.kind is EntryKind.FILE:
            state.read(place.path)
        if node.kind is not EntryKind.FILE or to.problem or state.look(to.path).kind is EntryKind.FOLDER:
            if state.opaque:
                raise Stop(KNOW, f"what `{source}` is, which a program may have made, is not known")
            call.failed = True
            continue
        state.put(to.path, Node(EntryKind.FILE, bits, node.data))
    return call.settle()


def truncate(call: Call) -> list[State]:
    """Sets sizes."""
    state = _begin(call)
    for field in call.given.all("r"):
        call.read(field)
    empties = call.given.last("s") == "0"
    for text in call.operands():
        place = state.resolve(text)
        if call.given.has("c") and (place.problem or state.look(place.path).kind is EntryKind.ABSENT):
            continue
        if not empties and not place.problem and state.look(place.path).kind is EntryKind.FILE:
            call.write(text, None, append=True)
        else:
            call.write(text, b"" if empties else None)
    return call.settle()


def dd(call: Call) -> list[State]:
    """Copies blocks."""
    state = _begin(call)
    for text in call.operands():
        key, equals, value = text.partition("=")
        if not equals or key not in call.fact("keys"):
            raise Stop(KNOW, f"`dd {text}` is not read")
        if key == "if":
            call.read(value)
        elif key == "of":
            call.write(value, None)
    state.take()
    return call.settle()


def mktemp(call: Call) -> list[State]:
    """Makes a file of a name that is not known."""
    state = _begin(call)
    folder = call.given.last("p")
    if call.given.operands or folder is not None or call.given.has("t"):
        raise Stop(KNOW, "`mktemp` with a template", needs="name a file of your own")
    if not call.given.has("u"):
        kind = "fs.mkdir" if call.given.has("d") else "fs.create"
        if state.value("TMPDIR") not in (None, ""):
            raise Stop(KNOW, "`mktemp` in `TMPDIR`")
        state.act(kind, "/tmp/tmp.*", pattern=True)  # noqa: S108 - the program's own default
    state.status = LIKELY
    return [state]
