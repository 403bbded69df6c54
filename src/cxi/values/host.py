"""Which machine does a host name, as browsers, curl and Python read it?

- Names: UTS 46 (non-transitional, as WHATWG), then IDNA 2008; canonical is lower-case ASCII (`xn--…`) without the root's
  trailing dot.
- IPv4 in every form that inet_aton(3) and WHATWG read (`0x7f.1`, `017700000001`, `2130706433`) is one dotted quad.
- IPv6 is RFC 5952, without brackets. Zone ids, and IPv6 spellings of an IPv4 address (which reach that address), are refused.
- Where readers differ, it is refused: percent-escapes, `ß` and `ς` (Python's own codec sends `ss`), an empty hexadecimal part,
  a dot behind an IPv4 address, labels that IDNA 2008 forbids and browsers allow, names that begin or end with a hyphen.

    >>> read_host("EXAMPLE.com.").text, read_host("0x7f.1").text, read_host("[::0:1]").text
    ('example.com', '127.0.0.1', '::1')
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import idna

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import EntryKind, Root, Span, Value
from cxi.values.hidden import refuse_unseen
from cxi.values.parameter import Parameters
from cxi.values.path_mention import is_file_ending
from cxi.values.word import words

MAX_HOST: Final = 253  # RFC 1035, 2.3.4, without the root's dot
_LONGEST_SPELLING: Final = 1024
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|[0-9]+")
_LOOKS_LIKE_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")
_ADDRESS6: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_QUAD: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_DOTS: Final = re.compile("[.\u3002\uff0e\uff61]")  # what UTS 46 holds to be a dot
# Mapped, compatible (RFC 4291), translated (RFC 2765) and NAT64 (RFC 6052) addresses.
_HOLD_IPV4: Final = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))


@dataclass(frozen=True, slots=True)
class HostName:
    """A host, read.

    Attributes:
        text: Its canonical form; IPv6 without brackets.
        is_ipv6: Whether a URL writes it in brackets.
    """

    text: str
    is_ipv6: bool


@dataclass(frozen=True, slots=True)
class Host:
    """A host name or address, without a port."""

    name: str = "Host"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, str):
            return _refuse("a host is a string")
        found = read_host(raw)
        return found if isinstance(found, Refused) else Value(self.name, found.text, found.text)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Whole words that are hosts: `localhost`, addresses, dotted names whose end is no file's; in quotes, any dotted name."""
        for word in words(text):
            if len(word.text) <= _LONGEST_SPELLING and _counts(word.text, quoted=word.quoted):
                value = self.parse(word.text, where)
                if isinstance(value, Value) and not _is_file(word.text, where):
                    yield (word.start, word.end), value


def make_host(parameters: Mapping[str, JsonValue]) -> Host:
    """`Host`, which has no parameters.

    Raises:
        BadParameter: for any.
    """
    Parameters("Host", parameters).only()
    return Host()


def read_host(raw: str) -> HostName | Refused:
    """Read a host as RFC 3986, WHATWG URL (host parsing), curl and Python all do.

    Args:
        raw: The host; IPv6 with or without brackets.

    Returns:
        The host, or `NON_CANONICAL_TEXT` or `FIELD_TYPE`.
    """
    unseen = refuse_unseen(raw, "host")
    if unseen is not None:
        return unseen
    if not raw or len(raw) > _LONGEST_SPELLING:
        return _refuse("the host is empty or too long")
    if raw.startswith("[") or ":" in raw:
        return _read_ipv6(raw)
    ascii_form = _to_ascii(raw)
    if isinstance(ascii_form, Refused):
        return ascii_form
    labels = ascii_form.split(".")
    if _LOOKS_LIKE_NUMBER.fullmatch(labels[-1] or (labels[-2] if len(labels) > 1 else "")):
        return _read_ipv4(labels)
    return _read_name(labels)


def _to_ascii(raw: str) -> str | Refused:
    """Lower-case ASCII by UTS 46, dots folded; labels are not judged yet."""
    if raw.isascii():
        return raw.lower()
    try:
        mapped = idna.uts46_remap(raw, std3_rules=False)
    except idna.IDNAError:
        return _refuse("the host is no domain name (UTS 46)")
    labels = []
    for label in _DOTS.split(mapped):
        try:
            # IDNA 2008 judges what is beyond ASCII; `_read_name` judges the rest
            labels.append(label if label.isascii() else idna.alabel(label).decode("ascii"))
        except idna.IDNAError:
            return _refuse("the host is no domain name (IDNA 2008)")
    found = ".".join(labels)
    try:
        # Python's own codec is IDNA 2003, which sends `ß` to `ss`
        if raw.encode("idna").decode("ascii").lower().rstrip(".") != found.rstrip("."):
            return _refuse("IDNA 2003 and 2008 send the host to different names", needs="write the host in its `xn--` form")
    except UnicodeError:
        pass  # INVARIANT (differ): a reader that refuses the name goes nowhere else with it
    return found


def _read_name(labels: list[str]) -> HostName | Refused:
    if len(labels) > 1 and not labels[-1]:
        labels = labels[:-1]
    for label in labels:
        if not _LABEL.fullmatch(label):
            return _refuse(f"`{label[:64]}` is no label of a host")
        if label.startswith("xn--"):
            try:
                if idna.alabel(idna.ulabel(label)).decode("ascii") != label:
                    return _refuse(f"`{label}` is no IDNA label")
            except (idna.IDNAError, UnicodeError):
                return _refuse(f"`{label}` is no IDNA label")
    text = ".".join(labels)
    if len(text) > MAX_HOST:
        return _refuse("the host is over 253 characters")
    return HostName(text, is_ipv6=False)


def _read_ipv4(parts: list[str]) -> HostName | Refused:
    """WHATWG's IPv4 parser, less what inet_aton(3) reads otherwise."""
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) and len(part) <= 16 for part in parts):
        return _refuse("a host that ends in a number is an IPv4 address, and this is none")
    numbers: list[int] = []
    for part in parts:
        try:
            numbers.append(int(part, 16) if part.startswith("0x") else int(part, 8 if part.startswith("0") else 10))
        except ValueError:
            return _refuse(f"`{part}` is no octal number")
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        return _refuse("a part of the IPv4 address is too large")
    value = numbers[-1]
    for index, number in enumerate(numbers[:-1]):
        value += number * 256 ** (3 - index)
    return HostName(str(ipaddress.IPv4Address(value)), is_ipv6=False)


def _read_ipv6(raw: str) -> HostName | Refused:
    inner = raw[1:-1] if raw.startswith("[") and raw.endswith("]") else raw
    if not _ADDRESS6.fullmatch(inner):
        return _refuse("no host, and no IPv6 address (zone ids and ports are no part of a host)")
    try:
        address = ipaddress.IPv6Address(inner)
    except ValueError:
        return _refuse("no IPv6 address")
    if int(address) > 1 and any(address in network for network in _HOLD_IPV4):
        return _refuse("an IPv4 address in IPv6 clothes", needs="write the IPv4 address")
    return HostName(address.compressed, is_ipv6=True)


def _counts(text: str, *, quoted: bool) -> bool:
    """Whether a word of a text is meant as a host."""
    if text.lower() == "localhost":
        return True
    if text.startswith("[") or text.count(":") >= 2:
        return bool(_ADDRESS6.fullmatch(text.strip("[]"))) and (quoted or text.startswith("[") or "::" in text)
    if not _DOTS.search(text) or any(char in "/\\@:?#%=()" for char in text):
        return False
    if _QUAD.fullmatch(text):
        return True
    last = _DOTS.split(text.rstrip("."))[-1]
    one_case = last.islower() or last.isupper() or not last.isascii()
    named = last.lower().startswith("xn--") or (last.isalpha() and len(last) > 1 and one_case)
    return named and (quoted or not is_file_ending(text))


def _is_file(text: str, where: Root) -> bool:
    """Whether the word is rather the name of a file at the root."""
    return where.view.entry(f"{where.path.rstrip('/')}/{text}").kind is EntryKind.FILE


def _refuse(detail: str, *, needs: str = "") -> Refused:
    return Refused.of(Code.FIELD_TYPE, detail, needs=needs)
