"""Which resource does a URL name, so that browsers, curl and Python ask the same server for the same thing?

- Canonical is RFC 3986, section 6.2.2 and 6.2.3: scheme and host folded (`cxi.values.host`), default port dropped,
  percent-escapes of unreserved characters decoded and the others in upper case, dot segments removed, an empty path is `/`.
  Characters beyond ASCII are escaped as UTF-8 (RFC 3987, 3.1).
- Refused, because readers differ (Tsai, "A New Era of SSRF", 2017; WHATWG URL against RFC 3986): user information, backslashes,
  blanks, controls, `http:/host`, raw characters outside RFC 3986, `'` in a query, broken escapes, port 0, an empty `?` or `#`.
- Only `http` and `https`, or the schemes that the parameter `schemes` names.

    >>> read_url("HTTP://EXAMPLE.com:80/a/./b/../%7euser?q=%c3%a9")
    'http://example.com/a/~user?q=%C3%A9'
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import Root, Span, Value
from cxi.values.hidden import refuse_unseen
from cxi.values.host import read_host
from cxi.values.parameter import BadParameter, Parameters
from cxi.values.word import Word, unquote, words

MAX_URL: Final = 8192
DEFAULT_PORTS: Final = MappingProxyType({"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21})
_HTTP: Final = ("http", "https")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}")
_START: Final = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,31}://")
_PORT: Final = re.compile(r"[0-9]{0,5}")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
# RFC 3986, appendix A: pchar and "/", and "?" in a query or fragment.
_PATH: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/%-]*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~!$&()*+,;=:@/?%-]*")  # WHATWG escapes `'` here, others do not
_FRAGMENT: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NO_AUTHORITY: Final = frozenset({"file", "data", "javascript", "mailto", "blob", "about", "urn", "vbscript", "tel"})


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL with a host.

    Attributes:
        schemes: The schemes that are allowed.
    """

    schemes: tuple[str, ...] = _HTTP
    name: str = "Url"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, str):
            return _refuse("a URL is a string")
        found = read_url(raw, self.schemes)
        return found if isinstance(found, Refused) else Value(self.name, found, found)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Whole words that begin with a scheme and `://`, also as the target of a Markdown link."""
        for word in words(text):
            inner = unquote(word) if word.quoted and any(char.isspace() for char in word.text) else (word,)
            for part in inner:
                url = _target(part)
                value = self.parse(url.text, where) if url is not None else None
                if url is not None and isinstance(value, Value):
                    yield (url.start, url.end), value


def make_url(parameters: Mapping[str, JsonValue]) -> Url:
    """`Url {schemes: [https, …]}`.

    Raises:
        BadParameter: for anything else, and for schemes that have no host.
    """
    given = Parameters("Url", parameters)
    given.only("schemes")
    schemes = given.texts("schemes", _HTTP)
    for scheme in schemes:
        if not _SCHEME.fullmatch(scheme) or scheme != scheme.lower() or scheme in _NO_AUTHORITY:
            raise BadParameter(f"`{scheme}` is no scheme of URLs with a host", "name schemes such as `https`, in lower case")
    return Url(tuple(sorted(set(schemes))))


def read_url(raw: str, schemes: tuple[str, ...] = _HTTP) -> str | Refused:
    """The canonical form of a URL.

    Args:
        raw: The URL.
        schemes: The schemes that are allowed, in lower case.

    Returns:
        The canonical URL, or `NON_CANONICAL_TEXT` or `FIELD_TYPE`.
    """
    unseen = refuse_unseen(raw, "URL")
    if unseen is not None:
        return unseen
    if len(raw) > MAX_URL:
        return _refuse(f"the URL is over {MAX_URL} characters")
    scheme, found, rest = raw.partition("://")
    scheme = scheme.lower()
    if not found or scheme not in schemes:
        return _refuse(f"a URL here begins with one of: {', '.join(known + '://' for known in schemes)}")
    cut = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority = _read_authority(rest[:cut], scheme)
    if isinstance(authority, Refused):
        return authority
    before, hash_sign, fragment = rest[cut:].partition("#")
    path, mark, query = before.partition("?")
    if (mark and not query) or (hash_sign and not fragment):
        return _refuse("an empty query or fragment, which readers keep or drop", needs="leave the bare `?` or `#` out")
    parts: list[str] = []
    for part, allowed in ((path, _PATH), (query, _QUERY), (fragment, _FRAGMENT)):
        normal = _normalize(part, allowed)
        if isinstance(normal, Refused):
            return normal
        parts.append(normal)
    url = f"{scheme}://{authority}{_remove_dots(parts[0])}{mark}{parts[1]}{hash_sign}{parts[2]}"
    return url if len(url) <= MAX_URL else _refuse(f"the URL, escaped, is over {MAX_URL} characters")


def _read_authority(authority: str, scheme: str) -> str | Refused:
    if "@" in authority:
        return _refuse("user information in a URL", needs="leave out what stands before `@`")
    host, port = authority, ""
    at = authority.rfind(":")
    if at > authority.rfind("]"):
        host, port = authority[:at], authority[at + 1 :]
    if ":" in host and not host.startswith("["):
        return _refuse("an IPv6 address in a URL stands in brackets")
    if not _PORT.fullmatch(port) or (port and not 0 < int(port) < 65536):
        return _refuse(f"`{port[:16]}` is no port")
    read = read_host(host)
    if isinstance(read, Refused):
        return read
    shown = f"[{read.text}]" if read.is_ipv6 else read.text
    return shown if not port or int(port) == DEFAULT_PORTS.get(scheme) else f"{shown}:{int(port)}"


def _normalize(part: str, allowed: re.Pattern[str]) -> str | Refused:
    """Percent-encoding normalization (RFC 3986, 6.2.2.1 and 6.2.2.2)."""
    escaped = _BEYOND_ASCII.sub(lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8")), part)
    if not allowed.fullmatch(escaped):
        odd = next(char for char in escaped if not allowed.fullmatch(char))
        needs = f"write `{odd}` as `%{ord(odd):02X}`, if it is meant"
        return _refuse(f"`{odd}` stands raw where readers treat it differently", needs=needs)
    broken = False

    def decode(match: re.Match[str]) -> str:
        nonlocal broken
        if match.group(1) is None:
            broken = True
            return "%"
        char = chr(int(match.group(1), 16))
        return char if char in _UNRESERVED else match.group().upper()

    normal = _ESCAPE.sub(decode, escaped)
    return _refuse("a `%` without two hexadecimal digits") if broken else normal


def _remove_dots(path: str) -> str:
    """Remove dot segments (RFC 3986, 5.2.4) of a path that is empty or begins with `/`."""
    segments = path.split("/")[1:] or [""]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _target(word: Word) -> Word | None:
    """The URL that a word is, or that the Markdown link `[words](https://…)` leads to."""
    start = 0
    if word.text.startswith("["):
        start = word.text.find("](") + 2
        if start == 1:
            return None
        if word.text.endswith(")"):
            word = word.part(0, len(word.text) - 1)
    found = _START.match(word.text, start)
    if found is None or len(word.text) > MAX_URL + start:
        return None
    return word.part(start, len(word.text))


def _refuse(detail: str, *, needs: str = "") -> Refused:
    return Refused.of(Code.FIELD_TYPE, detail, needs=needs)
