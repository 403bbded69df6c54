"""What code does a server's command load, and which of it could the agent rewrite?

- What is named in the command is found where the program would find it: the program, its script, `-m module`, a folder that a
  launcher is told to work in, `PYTHONPATH` and its like.
- INVARIANT (no-own-code): code that lies in the root is out of the agent's reach with the whole folder that holds it, since a
  program loads what lies beside it. Where that folder is the root itself nothing can be protected: the configuration is refused.
- The content of the program and of each code file counts in the server's identity. Data that a server is given does not: it
  changes as the server works.
- What a program starts or loads from elsewhere by itself is not seen here; keep servers outside the root.

    >>> loaded = find_code("/usr/bin/python3", ("srv/server.py",), {}, Path("/repo"), Path("/repo"))
    >>> loaded.folders, loaded.exposed
    ((PosixPath('/repo/srv'),), ())
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cxi.canonical import Digest, digest_bytes

MEND: Final = "keep servers' programs outside the root, or in a folder of their own"
MAX_DIGESTED: Final = 64 * 1024 * 1024
# Variables that name folders of code. They reach a server only where the configuration gives them to it.
_PATHS: Final = (
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "RUBYLIB",
    "PERL5LIB",
    "CLASSPATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
)
_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*t?")
_INTERPRETER: Final = re.compile(
    r"(?:(?:python|pypy|ruby|perl|lua|php|node|nodejs)[0-9.]*t?|tsx|ts-node|deno|bun|sh|bash|dash|zsh|ksh|java|Rscript)"
)
_SUFFIXES: Final = re.compile(r".*\.(py[cz]?|[mc]?[jt]s|[jt]sx|rb|p[lm]|lua|php|sh|bash|zsh|jar|wasm|so|exe|r)", re.IGNORECASE)
_FOLDER_OPTIONS: Final = frozenset({"--directory", "--project", "--prefix", "--cwd", "--dir", "--script-dir", "-C"})
_TAKES_VALUE: Final = frozenset({"-W", "-X", "-r", "-I", "--require", "--import", "--loader", "--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """What a command loads.

    Attributes:
        files: Every file that the command names, code or data, absolute.
        folders: The folders strictly inside the root that hold code of it.
        exposed: Code, or a folder of code, whose folder is the root itself.
        digests: Content of the program and of each code file, by path; a file too large or unreadable says so instead.
    """

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    exposed: tuple[Path, ...]
    digests: Mapping[str, Digest]


def find_code(program: str, args: tuple[str, ...], env: Mapping[str, str], cwd: Path, root: Path) -> LoadedCode:
    """Find what a command loads.

    Args:
        program: Absolute.
        args: Its arguments.
        env: The environment that the configuration gives it.
        cwd: Where it is started.
        root: The declared root, links resolved.
    """
    named = _named_files(args, cwd)
    script, module, beside = _read_interpreter(program, args, cwd)
    code = [Path(program), *(path for path in named if path == script or _is_code(path))]
    places = [place for path in code for place in _holders(path)]
    places += [script] if script is not None and script.is_dir() else []
    imported = [cwd, *_search_folders(env, cwd)] if beside else _search_folders(env, cwd)
    places += imported
    modules = dict.fromkeys([module, *(word for flag, word in pairwise(args) if flag == "-m")])
    for base, name in product(dict.fromkeys([cwd, *imported]), modules):
        files = _module_files(base, name) if name else []
        code += files
        places += [path for file in files for path in (file.parent, base / name.split(".")[0] if "." in name else file.parent)]
    places += _option_folders(args, cwd)
    folders: dict[Path, None] = {}
    exposed: dict[Path, None] = {}
    for place in places:
        for path in (Path(os.path.normpath(place)), Path(os.path.realpath(place))):
            if path == root:
                exposed[path] = None
            elif path.is_relative_to(root):
                folders[path] = None
    for path in (Path(os.path.normpath(cwd)), Path(os.path.realpath(cwd))):
        # Launchers read their settings where they are started. A server that is started in the root itself is usual, and
        # loads nothing from there unless it is one of those above.
        if path != root and path.is_relative_to(root):
            folders[path] = None
    named += code
    return LoadedCode(
        tuple(dict.fromkeys(named)), tuple(folders), tuple(exposed), MappingProxyType({str(path): _digest(path) for path in code})
    )


def _named_files(args: tuple[str, ...], cwd: Path) -> list[Path]:
    """Every argument that is a file, also behind `--option=` and inside a shell's `-c` text."""
    words = [word for argument in args for word in (argument, argument.rpartition("=")[2], *_split_shell(argument))]
    found = [_existing(cwd, word) for word in dict.fromkeys(words)]
    return [path for path in found if path is not None and path.is_file()]


def _split_shell(text: str) -> list[str]:
    try:
        return shlex.split(text) if " " in text else []
    except ValueError:
        return text.split()


def _existing(cwd: Path, value: str) -> Path | None:
    try:
        path = cwd / value
        return path if value and path.exists() else None
    except (OSError, ValueError):
        return None  # too long for a path, or not one


def _read_interpreter(program: str, args: tuple[str, ...], cwd: Path) -> tuple[Path | None, str, bool]:
    """The script of an interpreter, or its module, and whether it loads code from where it is started."""
    words = (program, *args)
    # A launcher (`uv run python -m pkg`, `env python`) names its interpreter among its arguments.
    start = next((at for at, word in enumerate(words) if _INTERPRETER.fullmatch(word.rpartition("/")[2])), None)
    if start is None:
        return None, "", False
    name, args = words[start].rpartition("/")[2], words[start + 1 :]
    python = _PYTHON.fullmatch(name) is not None
    isolated = False
    skip = False
    for index, argument in enumerate(args):
        if skip:
            skip = False
        elif not argument.startswith("-"):
            return _existing(cwd, argument), "", False
        elif argument == "--":
            rest = args[index + 1 : index + 2]
            return (_existing(cwd, rest[0]) if rest else None), "", False
        elif python and not argument.startswith("--"):
            flags, letter, value = _split_flags(argument)
            isolated = isolated or bool(set(flags) & {"I", "P"})  # neither takes where it is started into its search path
            if letter == "m":
                return None, value or "".join(args[index + 1 : index + 2]), not isolated
            if letter == "c":
                return None, "", not isolated
            skip = letter in ("W", "X") and not value
        else:
            skip = argument in _TAKES_VALUE
    return None, "", False


def _split_flags(argument: str) -> tuple[str, str, str]:
    """`-Ism` into its flags, the one that takes a value, and that value."""
    for at, letter in enumerate(argument[1:], 1):
        if letter in "mcWX":
            return argument[1:at], letter, argument[at + 1 :]
    return argument[1:], "", ""


def _is_code(path: Path) -> bool:
    if _SUFFIXES.fullmatch(path.name):
        return True
    try:
        with path.open("rb") as file:
            return file.read(4).startswith((b"#!", b"\x7fELF"))
    except OSError:
        return False


def _holders(path: Path) -> Iterator[Path]:
    """The folder of a code file, by its own place and by where its links lead; of an installed program its whole environment."""
    for place in (path, Path(os.path.realpath(path))):
        yield place.parent
        for above in (place.parent.parent, place.parent.parent.parent):
            if (above / "pyvenv.cfg").is_file():
                yield above
        if "node_modules" in place.parts:
            yield Path(*place.parts[: place.parts.index("node_modules") + 1])


def _search_folders(env: Mapping[str, str], cwd: Path) -> list[Path]:
    named = [part for name in _PATHS for part in env.get(name, "").split(os.pathsep) if part]
    return [path if (path := cwd / part).is_dir() else path.parent for part in named]


def _option_folders(args: tuple[str, ...], cwd: Path) -> list[Path]:
    """Folders in which a launcher (uv, npm, …) is told to work: what it runs is defined there."""
    found: list[Path] = []
    for index, argument in enumerate(args):
        option, separator, value = argument.partition("=")
        if option in _FOLDER_OPTIONS:
            path = _existing(cwd, value if separator else "".join(args[index + 1 : index + 2]))
            found.extend([path] if path is not None and path.is_dir() else [])
    return found


def _module_files(base: Path, module: str) -> list[Path]:
    at = base.joinpath(*module.split("."))
    return [path for path in (at.with_suffix(".py"), at / "__main__.py", at / "__init__.py") if path.is_file()]


def _digest(path: Path) -> Digest:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size >= MAX_DIGESTED:
            return f"not digested: {status.st_size} bytes"
        return digest_bytes(path.read_bytes())
    except OSError:
        return "not digested: cannot be read"
