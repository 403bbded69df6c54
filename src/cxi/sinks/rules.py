"""Which rules of a repository meet a path: is it ignored, and which attributes has it?

- `untracked` of a file in the index is nothing. Of another file git's answer is kept under all files of ignore rules
  (gitignore(5)), and only while nothing but folders of this repository stands above it.
- `attributes` are none where none of the files of gitattributes(5) is there; else git's answer is kept under them.
- Files of rules that are links, paths in an unusual form, and file systems that fold names are left to git.

    attributes(reading, ground, ("src/a.py",))
"""

from __future__ import annotations

import os
import stat

from cxi.sinks.ground import Ground, is_absent, is_plain, kind_of
from cxi.sinks.reading import Reading


def untracked(reading: Reading, ground: Ground, path: str) -> bytes | None:
    """`git ls-files --others --exclude-standard -z`, of one path."""
    question, repository, name = "untracked", reading.repository, os.fsencode(path)
    folders = _folders(path)

    def way(fresh: bool) -> tuple[object, ...] | None:
        """Whether the path is in the index; None where it is not a file in folders of this repository's own."""
        found = reading.index(fresh=fresh)
        plain = (
            found is not None
            and not found[0].conflicts
            and not found[0].holds_below(name)
            and kind_of(f"{repository}/{path}") in (stat.S_IFREG, stat.S_IFLNK)
            and all(kind_of(f"{repository}/{folder}") == stat.S_IFDIR for folder in folders[1:])
            and all(is_absent(f"{repository}/{folder}/.git") for folder in folders[1:])
            # A submodule, or a file where the work tree has a folder.
            and not any(os.fsencode(folder) in found[0].by_path for folder in folders[1:])
        )
        return (name in found[0].by_path,) if plain and found is not None else None

    here = way(False) if is_plain(path) else None
    if here == (True,):
        return b""
    user = _user_file(reading, ground, "core.excludesfile", "ignore")
    rules = [f"{repository}/{_join(folder, '.gitignore')}" for folder in folders]
    folds = any(ground.settings.get(key, ("false",))[-1] != "false" for key in ("core.ignorecase", "core.precomposeunicode"))
    if here is None or user is None or folds or any(kind_of(rule) == stat.S_IFLNK for rule in rules):
        return reading.ask(question, (path,))
    files = (*rules, user, f"{repository}/.git/info/exclude")
    # Of what `way` tells no time is left: only that it is untracked is kept, which no other state on the way would have told.
    return reading.keep(ground, question, (path,), files, way, only=name + b"\0")


def attributes(reading: Reading, ground: Ground, paths: tuple[str, ...], *, staged: bool = False) -> bytes | None:
    """`git check-attr -z -a`, of some paths; `--cached` where they are `staged`."""
    question, repository = "attributes-staged" if staged else "attributes", reading.repository
    found, user = reading.index(), _user_file(reading, ground, "core.attributesfile", "attributes")
    if found is None or found[0].conflicts or user is None or not all(map(is_plain, paths)) or "attr.tree" in ground.settings:
        return reading.ask(question, paths)
    names = [_join(folder, ".gitattributes") for folder in dict.fromkeys(each for path in paths for each in _folders(path))]
    rules = [f"{repository}/{name}" for name in names]
    shared = (ground.key.places.attributes, user, f"{repository}/.git/info/attributes")

    def indexed(fresh: bool) -> tuple[bytes | None, ...] | None:
        """What git reads of the index: all, or what the work tree has no file for (gitattributes(5))."""
        present = reading.index(fresh=fresh)
        if present is None or present[0].conflicts:
            return None
        entries = [present[0].by_path.get(os.fsencode(name)) for name in names]
        return tuple(
            entry.blob if entry is not None and (staged or is_absent(rule)) else None
            for entry, rule in zip(entries, rules, strict=True)
        )

    files = shared if staged else (*rules, *shared)
    if all(map(is_absent, files)) and indexed(False) == (None,) * len(names):
        return b""
    if not staged and any(kind_of(rule) == stat.S_IFLNK for rule in rules):
        return reading.ask(question, paths)
    return reading.keep(ground, question, paths, files, indexed, beside=(f"{repository}/.git/index",))


def _user_file(reading: Reading, ground: Ground, key: str, name: str) -> str | None:
    """The user's own file of rules; None where it cannot be told."""
    environment = reading.plumbing.environment
    home, values = environment.get("HOME", ""), ground.settings.get(key, ())
    if not values:
        values = (f"{environment.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/{name}",)
    value = values[-1]
    if value.startswith("~/") and home:
        value = home + value[1:]
    return value if value.startswith("/") else None


def _join(folder: str, name: str) -> str:
    """A name in a folder of the work tree; the top is empty."""
    return f"{folder}/{name}" if folder else name


def _folders(path: str) -> list[str]:
    """The folders of the work tree above a path, the top (empty) first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]
