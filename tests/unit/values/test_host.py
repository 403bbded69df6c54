"""One machine has one canonical host, and what readers read differently is refused."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Value
from cxi.values.host import Host, read_host
from os_view import NOWHERE


def canonical(raw: object) -> str:
    found = Host().parse(raw, NOWHERE)  # type: ignore[arg-type]
    return found.codes[0] if isinstance(found, Refused) else str(found.canonical)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("localhost", "localhost"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("r3---sn-apo3qv.example.com", "r3---sn-apo3qv.example.com"),
        ("1e2.com", "1e2.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("bu\u0308cher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("xn--fa-hia.example", "xn--fa-hia.example"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ("ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"),
        ("пример.рф", "xn--e1afmkfd.xn--p1ai"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0x0.1", "127.0.0.1"),
        ("１２７.０.０.１", "127.0.0.1"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:0db8::0001", "2001:db8::1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("2001:db8::192.0.2.33", "2001:db8::c000:221"),
        ("::", "::"),
    ],
)
def test_every_spelling_of_a_host_has_one_form(raw: str, expected: str) -> None:
    assert canonical(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        ".",
        "a..b",
        "example.com..",
        ".example.com",
        "-example.com",
        "example-.com",
        "exa mple.com",
        "example.com:80",
        "user@example.com",
        "example.com/",
        "example.com\\@evil.com",
        "ex%61mple.com",
        "faß.de",
        "faß.aⱥ.com",
        "βόλος.com",
        "☃.net",
        "xn--a",
        "xn--zn7c.com",
        "a" * 64 + ".com",
        ".".join(["a" * 60] * 5),
        "256.0.0.1",
        "1.2.3.4.5",
        "1.2.3.256",
        "4294967296",
        "08.0.0.1",
        "0x",
        "1.0x",
        "127.0.0.1.",
        "foo.0x4",
        "1..2",
        "[::1",
        "::1]",
        "[[::1]]",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        "::01.2.3.4",
        "[127.0.0.1]",
        7,
        None,
        ["example.com"],
    ],
)
def test_what_readers_read_differently_or_not_at_all_is_refused(raw: object) -> None:
    assert canonical(raw) == "FIELD_TYPE"


@pytest.mark.parametrize(
    "raw", ["exam\u00adple.com", "exam\u200bple.com", "a\u200db.com", "a\tb", "a\n", "a\ud800", "a\u2028", "a\ufe0f.com"]
)
def test_what_nobody_sees_is_refused(raw: str) -> None:
    assert canonical(raw) == "NON_CANONICAL_TEXT"


PARTS = st.one_of(
    st.integers(0, 300).map(str),
    st.integers(0, 300).map(hex),
    st.integers(0, 300).map(lambda n: f"0{n:o}"),
    st.sampled_from(["", "0x", "08"]),
)
NUMBERS = st.one_of(
    st.lists(PARTS, min_size=1, max_size=5).map(".".join), st.integers(0, 2**33).map(str), st.integers(0, 2**33).map(hex)
)


@given(NUMBERS)
def test_ipv4_is_what_the_c_library_connects_to(raw: str) -> None:
    ours = read_host(raw)
    try:
        theirs = socket.inet_ntoa(socket.inet_aton(raw))
    except OSError:
        assert isinstance(ours, Refused)
        return
    assert isinstance(ours, Refused) or ours.text == theirs
    if raw == theirs:
        assert not isinstance(ours, Refused)


@given(st.ip_addresses(v=6))
def test_ipv6_is_read_from_every_spelling(address: ipaddress.IPv6Address) -> None:
    forms = {str(address), address.exploded, address.compressed.upper(), f"[{address}]"}
    read = {form if isinstance(found, Refused) else found.text for form in forms if (found := read_host(form))}
    assert read == {address.compressed} or all(isinstance(read_host(form), Refused) for form in forms)


@given(st.text(st.characters() | st.sampled_from("aAxn-.0:[]%。ß"), max_size=20))
def test_a_canonical_host_is_its_own_canonical_form(raw: str) -> None:
    found = read_host(raw)
    if not isinstance(found, Refused):
        assert read_host(found.text) == found
        assert found.text.isascii()
        assert found.text == found.text.lower()


@given(st.from_regex(r"[a-zà-öø-ÿ]{1,5}(\.[a-zа-я]{2,4}){1,2}", fullmatch=True))
def test_where_pythons_own_codec_answers_it_answers_the_same(raw: str) -> None:
    found = read_host(raw)
    if not isinstance(found, Refused):
        assert raw.encode("idna").decode() == found.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("connect to db.internal.example.com, please.", ["db.internal.example.com"]),
        ("ping 10.0.0.1 and [::1] and 2001:db8::1.", ["10.0.0.1", "::1", "2001:db8::1"]),
        ("on localhost", ["localhost"]),
        ("use `foo.sh` or foo.sh", ["foo.sh"]),
        ("bücher.example", ["xn--bcher-kva.example"]),
        ("fix tax.py, README.md, v1.2, 3.14 and e.g. end.Then", []),
        ("https://example.com/x me@example.com example.com/x example.com:80", []),
        ("sub.example.com is not example.comx", ["sub.example.com", "example.comx"]),
    ],
)
def test_hosts_in_a_request_are_found_whole(text: str, expected: list[str]) -> None:
    found = list(Host().scan(text, NOWHERE))
    assert [value.canonical for _, value in found] == expected
    assert all(isinstance(Host().parse(text[start:end], NOWHERE), Value) for (start, end), _ in found)


def test_a_host_has_no_parameters() -> None:
    assert value_type("Host", {}) == Host()
    with pytest.raises(ValueError):
        value_type("Host", {"port": 80})
