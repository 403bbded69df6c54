"""Which exact answers must every implementation give for canonical bytes, paths, hosts and URLs?

- The cases are written here; the answers are what this package gives, and `tests/conformance` holds them to it byte for byte.
- Deterministic: run it again and nothing changes. `python vectors/generate_values.py` writes the files beside it, and their
  SHA-256 digests (`values.json`) to its standard output.
- A refusal is written as its code; details and advice are not part of a vector.
- Text that UTF-8 cannot hold (a lone surrogate) is written in JSON's own escapes, so every file is ASCII.

    $ python vectors/generate_values.py > vectors/values.json
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cxi.canonical import canonicalize, digest, parse_json
from cxi.errors import MalformedError, Refused
from cxi.values import value_type
from cxi.values.base import Entry, EntryKind, Root

HERE: Final = Path(__file__).parent

CANONICAL: Final = (
    ("null", "null"),
    ("whitespace is dropped", ' { "a" : [ 1 , true ] } '),
    ("keys in UTF-16 order (RFC 8785, 3.2.3)", r'{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}'),
    ("a key beyond the BMP comes before U+E000", r'{"\ue000":1,"\ud800\udc00":2}'),
    ("escapes", r'"\u0000\b\t\n\f\r\u001f\u007f\"\\\/<>&\u2028"'),
    ("text is not normalized", r'["\u00e9","e\u0301"]'),
    ("the last safe integers", "[9007199254740991,-9007199254740991,-0]"),
    ("floats (RFC 8785, 3.2.2)", "[333333333.33333329,4.50,2e-3,0.000000000000000000000000001,1E15,-0.0,1e-6,1e-7]"),
    ("empty", '[{},[],""]'),
    ("a key twice", '{"a":1,"a":1}'),
    ("a key twice in two spellings", r'{"a":1,"\u0061":2}'),
    ("an integer beyond 2^53", "9007199254740992"),
    ("a float beyond 2^53", "1e16"),
    ("not finite", "1e400"),
    ("NaN", "NaN"),
    ("Infinity", "-Infinity"),
    ("a lone surrogate", r'"\ud800"'),
    ("a lone surrogate in a key", r'{"a":{"\udc00":1}}'),
    ("two values", "1 2"),
    ("nothing", ""),
    ("a control in a text", '"\x01"'),
    ("a leading zero", "01"),
    ("too deep", "[" * 200 + "]" * 200),
)

# kind, or the text of a link
TREE: Final = {
    "/": "folder",
    "/etc": "folder",
    "/etc/passwd": "file",
    "/proc": "folder",
    "/repo": "folder",
    "/repo/src": "folder",
    "/repo/src/tax.py": "file",
    "/repo/README.md": "file",
    "/repo/inside": "-> src/tax.py",
    "/repo/folder": "-> src",
    "/repo/out": "-> ../etc",
    "/repo/absolute": "-> /etc/passwd",
    "/repo/back": "-> ../repo/src",
    "/repo/dangling": "-> src/new.py",
    "/repo/far": "-> no/such",
    "/repo/loop": "-> pool",
    "/repo/pool": "-> loop",
    "/repo/shut": "denied",
    "/repo/pipe": "other",
    "/repository": "folder",
    "/repository/secret": "file",
}

PATHS: Final = (
    "src/tax.py", "./src//./tax.py", "src/../src/tax.py", "/repo/src/tax.py", "//repo/src/tax.py", "../repo/src/tax.py", ".",
    "./", "/repo", "src/..",
    "src/", "src/new.py", "new/deep/file.py", "new/", "~/x", "a\\b", "...", "inside", "folder/tax.py", "folder/..", "folder/",
    "inside/", "out",
    "out/passwd", "out/new", "out/..", "absolute", "back/tax.py", "dangling", "dangling/", "dangling/x", "far", "loop",
    "loop/x", "shut", "shut/x", "pipe",
    "pipe/x", "..", "../repository/secret", "/repository", "/etc/passwd", "/", "missing/..", "missing/../src/tax.py",
    "src/tax.py/", "src/tax.py/..",
    "src/tax.py/x", "/proc/self/cwd", "/proc", "", "a\0b", "x" * 255, "x" * 256, "a/" * 2048, "src/tax\u200b.py",
    "src/\u202eyp.xat", "a\nb", "a\ud800",
    "\u00e9", "e\u0301",
)  # fmt: skip

HOSTS: Final = (
    "example.com", "EXAMPLE.com.", "example.com..", "", ".", "a..b", "-a.com", "a-.com", "a b.com", "a_b.com",
    "r3---sn.example.com", "localhost",
    "b\u00fccher.example", "XN--BCHER-KVA.example", "fa\u00df.de", "xn--fa-hia.de", "xn--a", "\u2603.net",
    "\u4f8b\u3048\u3002\u30c6\u30b9\u30c8",
    "\uff45xample\uff0ecom", "exam\u00adple.com", "exam\u200bple.com", "ex%61mple.com", "example.com:80", "user@example.com",
    "127.0.0.1", "127.1",
    "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "\uff11\uff12\uff17.0.0.1", "127.0.0.1.", "256.0.0.1",
    "1.2.3.4.5", "08.0.0.1",
    "0x", "4294967296", "foo.0x4", "::1", "[::1]", "0:0:0:0:0:0:0:1", "2001:DB8:0:0:1:0:0:1", "2001:db8::192.0.2.33",
    "fe80::1%eth0",
    "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "[::1", "a" * 64 + ".com",
)  # fmt: skip

URLS: Final = (
    "http://example.com", "HTTP://EXAMPLE.COM:80/", "https://example.com:443/a", "http://example.com:443/a",
    "http://example.com:/a", "http://example.com./a",
    "http://example.com?x=1", "http://example.com#f", "http://example.com/a/./b/../c", "http://example.com/../../a",
    "http://example.com/a//../b",
    "http://example.com/%2e%2E/a", "http://example.com/%7euser/%41", "http://example.com/a%2fb", "http://example.com/%252e",
    "http://example.com/\u00e9?q=\u00fc", "http://0x7f.1/", "http://[0:0::1]:8080/", "http://b\u00fccher.example/",
    "http://user@example.com/",
    "http://good.com\\@evil.com/", "http:\\\\example.com/", "http:/example.com", "http:///example.com", "http://",
    "//example.com/", "example.com",
    "http://example.com:0/", "http://example.com:65536/", "http://example.com:80:80/", "http://[::1/",
    "http://[fe80::1%25eth0]/", "http://ex%61mple.com/",
    "http://example.com/%", "http://example.com/%zz", "http://example.com/a b", "http://example.com/a\\b",
    "http://example.com/a|b", "http://example.com/?a[]=1",
    "http://example.com/?q='", "http://example.com/?", "http://example.com/#", "ftp://example.com/",
    "javascript://example.com/", "file:///etc/passwd",
    "http://exam\tple.com/", "http://example.com/\n", "http://example.com/\u202e",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawing:
    """The file system of a drawing such as `TREE`."""

    tree: Mapping[str, str] = field(default_factory=lambda: TREE)

    def entry(self, path: str) -> Entry:
        drawn = self.tree.get(path, "absent")
        if drawn.startswith("-> "):
            return Entry(EntryKind.LINK, target=drawn.removeprefix("-> "))
        return Entry(EntryKind(drawn))

    def names(self, path: str) -> tuple[str, ...] | None:
        if self.tree.get(path) != "folder":
            return None
        inside = path.rstrip("/") + "/"
        return tuple(
            sorted(known[len(inside) :] for known in self.tree if known.startswith(inside) and "/" not in known[len(inside) :])
        )


ROOT: Final = Root("/repo", Drawing())


def canonical_vector(text: str) -> dict[str, Any]:
    """What becomes of one JSON text."""
    try:
        value = parse_json(text)
        data = canonicalize(value, floats=True)
    except MalformedError as error:
        return {"refused": error.code}
    try:
        exact = digest(value)
    except MalformedError as error:
        exact = f"refused: {error.code}"
    return {"bytes": data.hex(), "sha256": hashlib.sha256(data).hexdigest(), "digest": exact}


def value_vector(name: str, parameters: dict[str, Any], raw: str) -> dict[str, Any]:
    """What becomes of one value of a type."""
    found = value_type(name, parameters).parse(raw, ROOT)
    return {"refused": found.codes[0]} if isinstance(found, Refused) else {"canonical": found.canonical, "wire": found.wire}


def build() -> dict[str, str]:
    """The text of every file, by its name."""
    paths = [
        {"type": name, "parameters": {"final": final}, "raw": raw, **value_vector(name, {"final": final}, raw)}
        for name in ("RepoPath", "FilePath")
        for final in ("follow", "keep")
        for raw in PATHS
    ]
    files: dict[str, Any] = {
        "canonical.json": [{"name": name, "text": text, **canonical_vector(text)} for name, text in CANONICAL],
        "paths.json": {"root": ROOT.path, "tree": TREE, "cases": paths},
        "hosts.json": [{"raw": raw, **value_vector("Host", {}, raw)} for raw in HOSTS],
        "urls.json": [{"raw": raw, **value_vector("Url", {}, raw)} for raw in URLS],
    }
    return {name: json.dumps(content, indent=1) + "\n" for name, content in files.items()}


def index(files: Mapping[str, str]) -> str:
    """The text of `values.json`: the SHA-256 of each file."""
    return json.dumps({name: hashlib.sha256(text.encode("ascii")).hexdigest() for name, text in files.items()}, indent=1) + "\n"


def main() -> None:
    """Write the files beside this one, and their digests to standard output."""
    files = build()
    for name, text in files.items():
        (HERE / name).write_text(text, encoding="ascii")
    sys.stdout.write(index(files))


if __name__ == "__main__":
    main()
