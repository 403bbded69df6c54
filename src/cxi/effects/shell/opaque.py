"""Programs that do what files tell them: interpreters, test runners, builders, package managers.

- What they do, only running could tell: `proc.exec` with their words, the digests of the files that decide it as far as they are
  named, and `inputs_writable`. What follows in the text is planned for a disk that may have changed.
- Asking for a version or for help does nothing.
"""

from __future__ import annotations

import re
from typing import Final

from cxi.canonical import JsonValue, digest_bytes
from cxi.effects.shell.call import Call, execute, input_of
from cxi.effects.shell.state import State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

_ASKS: Final = frozenset({"--version", "-V", "--help", "-h", "version", "help"})
_NAMED: Final = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9,._ -]*\])?\s*((?:[=<>!~]=?|===).*)?")


def _words(call: Call) -> list[str]:
    return [call.known(word) for word in call.words[1:]]


def _done(call: Call, inputs: dict[str, JsonValue]) -> list[State]:
    execute(call.state, call.name, call.words, inputs=inputs, opaque=True)
    call.state.status = None
    return [call.state]


def _asked(call: Call) -> list[State]:
    execute(call.state, call.name, call.words)
    call.state.status = None
    return [call.state]


def runs(call: Call) -> list[State]:
    """A program that runs what files say: each file and each well-known file beside it is named."""
    words = _words(call)
    if len(words) == 1 and words[0] in _ASKS:
        return _asked(call)
    inputs: dict[str, JsonValue] = {}
    for text in [*call.fact("files"), *(word.split("::")[0] for word in words if not word.startswith("-"))]:
        if text and call.state.look_through(text) is EntryKind.FILE:
            inputs.update(input_of(call.state, text))
    if call.state.fds.get(0) is not None and call.state.fds[0].kind == "buffer" and call.grammar.facts.get("stdin") is True:
        _piped(call, inputs, words)
    return _done(call, inputs)


def _piped(call: Call, inputs: dict[str, JsonValue], words: list[str]) -> None:
    """A program that is read from the input decides like a file; one that is not known is refused."""
    if any(not word.startswith("-") or word in ("-c", "-e", "-m") for word in words):
        return
    data = call.state.take()
    if data is None:
        raise Stop(KNOW, f"`{call.name}` runs what it reads, which is not known", needs="write it to a file first, and run that")
    inputs["-"] = digest_bytes(data)


def python(call: Call) -> list[State]:
    """`python FILE`, `-c TEXT`, `-m MODULE`, or a program from its input."""
    words = _words(call)
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        if word in ("--version", "--help", "-V", "-VV", "-h"):
            return _asked(call)
        found = re.fullmatch(r"-([bBdEiIOPqsSuvx]*)([cmWX]?)(.*)", word, re.DOTALL)
        if found is None or (found[3] and not found[2]):
            raise Stop(KNOW, f"`{call.name} {word}` is not read")
        if found[2] in ("c", "m"):
            return _module(call, words, at, found[2], found[3])
        at += 2 if found[2] and not found[3] else 1
    inputs: dict[str, JsonValue] = {}
    if at >= len(words) or words[at] == "-":
        _piped(call, inputs, [])
        return _done(call, inputs)
    script = words[at]
    if call.state.look_through(script) is EntryKind.FOLDER:
        script = script.rstrip("/") + "/__main__.py"
    inputs.update(input_of(call.state, script))
    return _done(call, inputs)


def _module(call: Call, words: list[str], at: int, kind: str, attached: str) -> list[State]:
    inputs: dict[str, JsonValue] = {}
    if kind == "m":
        module = attached or (words[at + 1] if at + 1 < len(words) else "")
        rest = words[at + 1 + (not attached) :]
        if module == "pip":
            _packages(call, rest)
            if rest and rest[0] in call.fact("reads"):
                return _asked(call)
        for text in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__main__.py"):
            if call.state.look_through(text) is EntryKind.FILE:
                inputs.update(input_of(call.state, text))
        for word in rest:
            text = word.split("::")[0]
            if text and not word.startswith("-") and call.state.look_through(text) is EntryKind.FILE:
                inputs.update(input_of(call.state, text))
    return _done(call, inputs)


def make(call: Call) -> list[State]:
    """Even `make -n` runs what the makefile says while it is read."""
    words = _words(call)
    if words in (["--version"], ["-v"], ["--help"], ["-h"]):
        return _asked(call)
    inputs: dict[str, JsonValue] = {}
    folder, named = "", False
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-C", "-f", "--file", "--directory", "--makefile") and at + 1 < len(words):
            at += 1
            if word in ("-C", "--directory"):
                folder = f"{folder}{words[at].rstrip('/')}/"
            else:
                named = True
                inputs.update(input_of(call.state, folder + words[at]))
        at += 1
    if not named:
        for text in ("GNUmakefile", "makefile", "Makefile"):
            if call.state.look_through(folder + text) is EntryKind.FILE:
                inputs.update(input_of(call.state, folder + text))
                break
    return _done(call, inputs)


def pip(call: Call) -> list[State]:
    """Installs, removes or lists packages."""
    words = _words(call)
    if not words or words[0] in _ASKS or words[0] in call.fact("reads"):
        return _asked(call)
    inputs = _packages(call, words)
    return _done(call, inputs)


def _packages(call: Call, words: list[str]) -> dict[str, JsonValue]:
    """The packages that `pip install` and `pip uninstall` name."""
    inputs: dict[str, JsonValue] = {}
    if not words or words[0] not in ("install", "uninstall", "download", "wheel"):
        return inputs
    kind = "pkg.remove" if words[0] == "uninstall" else "pkg.install"
    at = 1
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-r", "--requirement", "-c", "--constraint") and at < len(words):
            inputs.update(input_of(call.state, words[at]))
            at += 1
        elif word in ("-i", "--index-url", "--extra-index-url", "-f", "--find-links") and at < len(words):
            call.state.act("pkg.index", words[at], {"ecosystem": "pypi"})
            at += 1
        elif word in ("-e", "--editable") and at < len(words):
            call.state.act("pkg.install", f"pypi:{words[at]}", {"op": "editable"})
            at += 1
        elif word.startswith(("--index-url=", "--extra-index-url=", "--find-links=")):
            call.state.act("pkg.index", word.partition("=")[2], {"ecosystem": "pypi"})
        elif word.startswith(("--requirement=", "--constraint=")):
            inputs.update(input_of(call.state, word.partition("=")[2]))
        elif word in (
            "-t",
            "--target",
            "--prefix",
            "--root",
            "-d",
            "--dest",
            "-w",
            "--wheel-dir",
            "--src",
            "--python",
            "--platform",
        ):
            at += 1
        elif not word.startswith("-"):
            found = _NAMED.fullmatch(word)
            if found is None or "/" in word or word in (".", ".."):
                call.state.act(kind, f"pypi:{word}", {"source": word})
            else:
                name = re.sub(r"[-_.]+", "-", found[1]).lower()
                constraint = (found[3] or "").replace(" ", "")
                call.state.act(kind, f"pypi:{name}@{constraint}" if constraint else f"pypi:{name}", {})
    return inputs


def npm(call: Call) -> list[State]:
    """Installs packages, or runs what `package.json` says."""
    words = _words(call)
    if not words or words[0] in _ASKS or words[0] in call.fact("reads"):
        return _asked(call)
    plain = [word for word in words if not word.startswith("-")]
    inputs: dict[str, JsonValue] = {}
    for text in ("package.json", "package-lock.json", ".npmrc"):
        if call.state.look_through(text) is EntryKind.FILE:
            inputs.update(input_of(call.state, text))
    adds = plain and plain[0] in ("install", "i", "add", "remove", "uninstall", "rm")
    if adds:
        kind = "pkg.remove" if plain[0] in ("remove", "uninstall", "rm") else "pkg.install"
        for word in plain[1:]:
            call.state.act(kind, f"npm:{word}", {})
    return _done(call, inputs)
