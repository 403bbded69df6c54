"""Which words of a human's text are paths?

- A word with a `/` is a path where something of that name exists, where it looks like no other thing (`./x`, `/etc/x`,
  `a/b.py`, `docs/`), or where its folder exists; `and/or` is none.
- A word with a dot is one where a file of that name exists, or where its ending is one that files have; `e.g.`, `v1.2`, `3.14`,
  `end.Then` are none. A bare word is one in quotes or backticks, or where a regular file of that name exists at the root.
- URLs, e-mail and scp addresses, globs and `~/x` (the person means a home that we do not know) are none, unless just that
  exists.
- `src/tax.py:12`, `src/tax.py#L3`, `tests/test_tax.py::test_round` give the path before it. Words are whole
  (`cxi.values.word`).

    >>> none = lambda path: EntryKind.ABSENT
    >>> [path for _, path in mentions("Fix src/tax.py:12, e.g. and/or the `Makefile`.", none)]
    ['src/tax.py', 'Makefile']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from cxi.values.base import EntryKind, Span
from cxi.values.word import Word, unquote, words

Exists = Callable[[str], EntryKind]

MAX_WORD: Final = 4200  # a path and a place in it
# Endings that files have and that sentences, products and domain names seldom do.
_FILE_ENDINGS: Final = (
    "adoc asm astro avif awk bak bash bat bib bin bmp bz2 c cc cedar cert cfg cfm cjs clj cls cmake cmd cnf conf config cpp "
    "crt cs csh cshtml "
    "css csv csx cxx dart dat db deb def diff dll doc docx dot ejs elf elm eml env eps erb erl ex exe exs f90 fish flac fs "
    "fsx gem gif go gql "
    "gradle graphql groovy gv gz h handlebars hbs hcl hh hpp hrl hs htm html hxx ico ics ini ipynb iso j2 jar java jinja jl "
    "jpeg jpg js json "
    "json5 jsonc jsonl jsx key kt kts less lean lisp list lock log lua m4 md mdx mjs mk ml mli mm mod mov mp3 mp4 msi mts "
    "mustache nim "
    "nix odt ogg org otf out p12 parquet patch pdf pem php pl plist png pom ppt pptx prisma proto properties ps1 psd pug py "
    "pyi pyx r rake "
    "rar raml rb rego rkt rmd rpm rs rst rtf sass sbt scala scm scss sh sln snap sol sql sqlite sqlite3 srt svelte svg swift "
    "tar tcl tex tf "
    "tfvars tgz tif tiff toml ts tsv tsx ttf txt vb vbs vim vue war wasm wav webm webp whl woff woff2 xhtml xls xlsx xml xsd "
    "xsl xslt xz "
    "yaml yml zig zip zsh zst csproj gitignore sample template tmpl service"
)
_ENDINGS: Final = frozenset(_FILE_ENDINGS.split())
_DOTTED: Final = (
    ".bashrc .babelrc .clang-format .dockerignore .editorconfig .env .envrc .eslintrc .flake8 .gitattributes .github .gitignore "
    ".gitmodules .htaccess .mailmap .netrc .npmrc .nvmrc .prettierrc .profile .pylintrc .pypirc .ssh .vscode .zshrc .git "
    ".mcp.json "
)
_DOTFILES: Final = frozenset(_DOTTED.split())
# Names of things that end like files.
_NAMED: Final = "node.js next.js vue.js react.js nuxt.js three.js d3.js express.js ember.js angular.js chart.js alpine.js p5.js"
_PRODUCTS: Final = frozenset(_NAMED.split())
_DOMAIN: Final = re.compile(r"(?:[A-Za-z0-9-]+\.)+(?:com|org|net|io|dev|edu|gov|app|ai|co|uk|de|eu|info|example)(?::[0-9]+)?")
_NOT_IN_NAMES: Final = frozenset('*?<>|"“”«»`=\\\0$;&!')
_NOT_IN_BARE_NAMES: Final = frozenset("(){}[]~^@:,")
_SPLIT: Final = re.compile(r"(?:,|;|—|\||->|→|=>|\]\()")
_LINE: Final = re.compile(r"[0-9]{1,9}(?:-[0-9]{1,9})?")
_ANCHOR: Final = re.compile(r"#L[0-9]{1,9}(?:C[0-9]{1,9})?(?:-L?[0-9]{1,9})?")


def mentions(text: str, exists: Exists) -> Iterator[tuple[Span, str]]:
    """Every path that a text names, left to right.

    Args:
        text: A human's words.
        exists: What stands at a path, resolved against the root; `ABSENT` where it cannot be resolved.
    """
    there = lru_cache(maxsize=None)(exists)
    for word in words(text):
        if len(word.text) > MAX_WORD and not word.quoted:
            continue
        if not word.quoted:
            yield from _unquoted(word, there)
        elif not any(char.isspace() for char in word.text):
            path = _without_place(word.text)
            if len(path) <= MAX_WORD and _quoted_counts(path, there):
                yield (word.start, word.start + len(path)), path
        elif len(word.text) <= MAX_WORD and there(word.text) is not EntryKind.ABSENT:
            yield (word.start, word.end), word.text
        else:
            yield from _in_quote(word, there)


def is_file_ending(name: str) -> bool:
    """Whether a name ends as files do: `tax.py`, `README.md`, `archive.tar.gz`."""
    stem, dot, ending = name.rpartition(".")
    one_case = ending.islower() or ending.isupper() or any(char.isdigit() for char in ending)
    return bool(stem and dot) and one_case and ending.lower() in _ENDINGS and name.lower() not in _PRODUCTS


def _unquoted(word: Word, there: Exists) -> Iterator[tuple[Span, str]]:
    path = _without_place(word.text)
    cuts = [match.span() for match in _SPLIT.finditer(word.text)]
    if not cuts or there(path) is not EntryKind.ABSENT:
        if _counts(path, there):
            yield (word.start, word.start + len(path)), path
        return
    if len(cuts) > 64:
        return
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(word.text)]
    # All of `src/a.py,src/b.py` are paths; in `src/a.py,v` the whole word is something else.
    parts = [_trim(word.part(start, end)) for start, end in zip(starts, ends, strict=True) if start < end]
    found = [(part, _without_place(part.text)) for part in parts]
    counting = [(part, path) for part, path in found if _counts(path, there)]
    if len(counting) == len(found) or ("](" in word.text and counting):
        for part, path in counting:
            yield (part.start, part.start + len(path)), path


def _in_quote(word: Word, there: Exists) -> Iterator[tuple[Span, str]]:
    """The words of a quoted span with blanks in it, of which no file has the name.

    The span may be a command or a sentence, but also the name of a file yet to be made: `src/my` is no part of 'src/my file'.
    """
    for inner in unquote(word):
        if len(inner.text) > MAX_WORD:
            continue
        path = _without_place(inner.text)
        ends_well = inner.start > word.start and is_file_ending(path)
        if ends_well or there(path) is not EntryKind.ABSENT:
            yield from _unquoted(inner, there)


def _trim(word: Word) -> Word:
    """A part of a word without the brackets of a Markdown link."""
    text = word.text
    start = len(text) - len(text.lstrip("[("))
    end = len(text.rstrip("])")) if text.count("(") + text.count("[") - start < text.count(")") + text.count("]") else len(text)
    return word.part(start, max(start, end))


def _without_place(text: str) -> str:
    """A path without the line, anchor or test that is named in it."""
    head, _, test = text.partition("::")
    if test and head:
        return head
    at = text.rfind("#L")
    if at > 0 and _ANCHOR.fullmatch(text, at):
        return text[:at]
    for _ in range(2):
        head, colon, line = text.rpartition(":")
        if not (head and colon and _LINE.fullmatch(line)):
            break
        text = head
    return text


def _counts(path: str, there: Exists) -> bool:
    """Whether an unquoted word is a path."""
    if not path or "://" in path or path.startswith(("mailto:", "www.")):
        return False
    first, slash, rest = path.partition("/")
    odd = bool(_NOT_IN_NAMES.intersection(path)) or first == "~" or "@" in first[1:] or path.startswith("-")
    if odd or (slash and _DOMAIN.fullmatch(first)):
        return any(char.isalnum() for char in path) and there(path) is not EntryKind.ABSENT
    if not slash:
        return _name_counts(path, there)
    last = path.rstrip("/").rpartition("/")[2]
    if not path.strip("/.") and path not in ("./", "../") and ".." not in path.split("/"):
        return False
    if first in (".", "..") or (last in (".", "..")) or is_file_ending(last) or last in _DOTFILES:
        return True
    if not first:
        return bool(rest) and ("/" in rest.rstrip("/") or there(path) is not EntryKind.ABSENT)
    if path.endswith("/") and "/" not in path.rstrip("/"):
        return first.isidentifier() or "." in first or "-" in first or there(path) is not EntryKind.ABSENT
    if path.endswith("/") or there(path) is not EntryKind.ABSENT:
        return True
    parent = path.rpartition("/")[0]
    return there(parent) is EntryKind.FOLDER


def _name_counts(name: str, there: Exists) -> bool:
    """Whether an unquoted word with no `/` is a path."""
    if not any(char.isalnum() for char in name):
        return False
    if is_file_ending(name) or name in _DOTFILES:
        return True
    kind = there(name)
    return kind is EntryKind.FILE or (kind is not EntryKind.ABSENT and name.startswith("."))


def _quoted_counts(path: str, there: Exists) -> bool:
    """Whether a quoted word with no blank is a path: also a bare name, and whatever exists."""
    if _counts(path, there):
        return True
    if not path or there(path) is not EntryKind.ABSENT:
        return bool(path) and "://" not in path
    if _NOT_IN_NAMES.intersection(path) or "@" in path or ":" in path or path.startswith(("-", "~", "#")):
        return False
    if "/" in path:
        return bool(path.strip("/")) and not _DOMAIN.fullmatch(path.partition("/")[0])
    return "." not in path and not _NOT_IN_BARE_NAMES.intersection(path) and any(char.isalnum() for char in path)
