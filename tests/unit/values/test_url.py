"""One resource has one canonical URL, agreed with real parsers; what they read differently is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from urllib.parse import unquote, urlsplit

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxi.errors import Refused
from cxi.values import value_type
from cxi.values.base import Value
from cxi.values.url import Url, read_url
from os_view import NOWHERE

NODE = shutil.which("node")


def canonical(raw: object, *schemes: str) -> str:
    found = (Url(schemes) if schemes else Url()).parse(raw, NOWHERE)  # type: ignore[arg-type]
    return found.codes[0] if isinstance(found, Refused) else str(found.canonical)


SAME = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.COM:80/", "http://example.com/"),
    ("https://example.com:443/a", "https://example.com/a"),
    ("http://example.com:443/a", "http://example.com:443/a"),
    ("http://example.com:/a", "http://example.com/a"),
    ("http://example.com:0080/a", "http://example.com/a"),
    ("http://example.com./a", "http://example.com/a"),
    ("http://example.com?x=1", "http://example.com/?x=1"),
    ("http://example.com#f", "http://example.com/#f"),
    ("http://example.com/a/./b/../c", "http://example.com/a/c"),
    ("http://example.com/../../a", "http://example.com/a"),
    ("http://example.com/a/..", "http://example.com/"),
    ("http://example.com/a/.", "http://example.com/a/"),
    ("http://example.com/a//../b", "http://example.com/a/b"),
    ("http://example.com/%2e%2E/a", "http://example.com/a"),
    ("http://example.com/%7euser/%41", "http://example.com/~user/A"),
    ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
    ("http://example.com/%252e", "http://example.com/%252e"),
    ("http://example.com/é?q=ü#ö", "http://example.com/%C3%A9?q=%C3%BC#%C3%B6"),
    ("http://example.com/?q=a+b&c=%20", "http://example.com/?q=a+b&c=%20"),
    ("http://example.com/?a=../b", "http://example.com/?a=../b"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://example.com/a;b=1,2/(x)!$&'*@:", "http://example.com/a;b=1,2/(x)!$&'*@:"),
]


@pytest.mark.parametrize(("raw", "expected"), SAME)
def test_every_spelling_of_a_url_has_one_form(raw: str, expected: str) -> None:
    assert canonical(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "example.com",
        "//example.com/",
        "/a",
        "http:example.com",
        "http:/example.com",
        "http:///example.com",
        "http://",
        "http://:80/",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://@example.com/",
        "http://good.com\\@evil.com/",
        "http://good.com\\.evil.com/",
        "http:\\\\example.com/",
        "http://example.com/a\\b",
        "http://good.com#@evil.com:80\\",
        "http://example.com:80:80/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:-1/",
        "http://example.com:８０/",
        "http://example.com:80abc/",
        "http://::1/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://[::ffff:127.0.0.1]/",
        "http://faß.de/",
        "http://ex%61mple.com/",
        "http://example.com/%",
        "http://example.com/%zz",
        "http://example.com/%1",
        "http://example.com/?%u0041",
        "http://example.com/a b",
        " http://example.com/",
        "http://example.com/ ",
        'http://example.com/"',
        "http://example.com/<x>",
        "http://example.com/{x}",
        "http://example.com/a|b",
        "http://example.com/a^b",
        "http://example.com/?a[]=1",
        "http://example.com/?q='",
        "http://example.com/?",
        "http://example.com/#",
        "http://example.com/#a#b",
        "ftp://example.com/",
        "javascript://example.com/%0aalert(1)",
        "file:///etc/passwd",
        "http://example.com/" + "a" * 8192,
        7,
        None,
    ],
)
def test_what_readers_read_differently_or_not_at_all_is_refused(raw: object) -> None:
    assert canonical(raw) == "FIELD_TYPE"


@pytest.mark.parametrize("char", "\t\n\r\x00\x7f\u200b\u202e\u00ad\ud800\u2028")
def test_what_nobody_sees_is_refused(char: str) -> None:
    for raw in (
        f"http://exam{char}ple.com/",
        f"http://example.com/a{char}b",
        f"ht{char}tp://example.com/",
        f"{char}http://example.com/",
    ):
        assert canonical(raw) == "NON_CANONICAL_TEXT"


def test_other_schemes_are_read_where_the_contract_names_them() -> None:
    assert canonical("WSS://Example.com:443/x", "wss") == "wss://example.com/x"
    assert canonical("ssh://example.com:22/x", "ssh") == "ssh://example.com:22/x"
    assert canonical("http://example.com/", "https") == "FIELD_TYPE"
    assert value_type("Url", {"schemes": ["https"]}) == Url(("https",))
    for bad in ({"schemes": []}, {"schemes": ["HTTP"]}, {"schemes": ["javascript"]}, {"schemes": "http"}, {"scheme": ["http"]}):
        with pytest.raises(ValueError):
            value_type("Url", bad)  # type: ignore[arg-type]


PIECE = st.text(st.sampled_from("aB.~-_!$&()*+,;=:@%/é日2eEfF"), max_size=8)
URLS = st.builds(
    "{}://{}{}/{}{}{}".format,
    st.sampled_from(["http", "HTTPS", "https"]),
    st.sampled_from(
        [
            "example.com",
            "EXAMPLE.com",
            "a.b.c",
            "127.1",
            "0x7f.0.0.1",
            "[::1]",
            "[2001:DB8::1]",
            "bücher.example",
            "1.2.3",
            "xn--bcher-kva.example",
        ]
    ),
    st.sampled_from(["", ":80", ":443", ":8080", ":"]),
    st.lists(st.one_of(PIECE, st.sampled_from([".", "..", "", "%2e", "%2E%2e", "%41", "%7e", "%2f"])), max_size=5).map("/".join),
    st.one_of(st.just(""), PIECE.map("?{}".format)),
    st.one_of(st.just(""), PIECE.map("#{}".format)),
)


@given(URLS)
def test_a_canonical_url_is_its_own_canonical_form(raw: str) -> None:
    found = read_url(raw)
    if not isinstance(found, Refused):
        assert read_url(found) == found
        assert found.isascii()


@given(URLS)
def test_python_sees_the_same_host_port_and_resource(raw: str) -> None:
    found = read_url(raw)
    if isinstance(found, Refused):
        return
    ours, theirs = urlsplit(found), httpx2.URL(raw)
    assert (theirs.scheme, httpx2.URL(found).raw_host) == (ours.scheme, (ours.hostname or "").encode())
    default = {"http": 80, "https": 443}[ours.scheme]
    assert (ours.port or default) == (httpx2.URL(found).port or default) == (theirs.port or default)
    # urllib takes no dot segments out; what it would send names the same resource once they are gone
    assert unquote(ours.query) == unquote(urlsplit(raw).query)
    assert str(httpx2.URL(found)) == found


def node_hrefs(urls: list[str]) -> list[str | None]:
    script = (
        "const read = s => { try { return new URL(s).href } catch { return null } };"
        "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(read)))"
    )
    assert NODE is not None
    done = subprocess.run([NODE, "-e", script], input=json.dumps(urls), capture_output=True, text=True, check=True, timeout=60)
    found: list[str | None] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(NODE is None, reason="node is not on PATH: no WHATWG parser to compare with")
@settings(max_examples=5)
@given(st.lists(URLS, min_size=30, max_size=80))
def test_browsers_read_every_accepted_url_as_we_do(raw: list[str]) -> None:
    accepted = [(url, found) for url in raw if isinstance(found := read_url(url), str)]
    hrefs = node_hrefs([found for _, found in accepted])
    assert hrefs == [found for _, found in accepted]
    # what a browser makes of the raw spelling is the same resource
    for (url, found), href in zip(accepted, node_hrefs([url for url, _ in accepted]), strict=True):
        assert href is not None
        assert read_url(href) == found, url


@pytest.mark.skipif(NODE is None, reason="node is not on PATH: no WHATWG parser to compare with")
def test_browsers_read_the_examples_as_we_do() -> None:
    for (raw, expected), href in zip(SAME, node_hrefs([raw for raw, _ in SAME]), strict=True):
        assert href is not None
        assert read_url(href) == expected, raw


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://example.com/a.", ["https://example.com/a"]),
        ("see (https://example.com/a), <https://example.com/b>!", ["https://example.com/a", "https://example.com/b"]),
        (
            "see [it](https://example.com/a) and `https://example.com/b?c=1`",
            ["https://example.com/a", "https://example.com/b?c=1"],
        ),
        ("https://en.example.org/wiki/A_(b)", ["https://en.example.org/wiki/A_(b)"]),
        ('fetch "HTTPS://EXAMPLE.com"', ["https://example.com/"]),
        ("run `curl https://example.com/a -o x`", ["https://example.com/a"]),
        ("url=https://example.com/a xhttps://example.com ftp://example.com example.com/a", []),
        ("https://user@example.com/ https://example.com/\u202e", []),
    ],
)
def test_urls_in_a_request_are_found_whole(text: str, expected: list[str]) -> None:
    found = list(Url().scan(text, NOWHERE))
    assert [value.canonical for _, value in found] == expected
    assert all(isinstance(Url().parse(text[start:end], NOWHERE), Value) for (start, end), _ in found)
