"""Whom do `curl` and `wget` talk to, and what do they write? One address, known beforehand; what would go elsewhere is refused.

- Following redirects is refused: where they lead, only the server knows.
- `~/.curlrc` can change everything; where it is there, curl is refused unless `-q` comes first.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from cxi.effects.shell.call import Call, execute
from cxi.effects.shell.field import Hole
from cxi.effects.shell.state import State
from cxi.effects.shell.stop import KNOW, Stop
from cxi.values.base import EntryKind

_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\]")


def _address(text: str) -> tuple[SplitResult, str, int]:
    """The parts of an address, its host and port.

    Raises:
        Stop: programs could take it for another.
    """
    if re.search(r"[{}\[\]]", text.partition("://")[2].partition("/")[2] if "://" in text else text):
        raise Stop(KNOW, "an address with brackets or braces, which curl takes for several")
    if any(ord(char) <= 32 or ord(char) > 126 or char == "\\" for char in text):
        raise Stop(KNOW, "an address with blanks, backslashes or letters beyond ASCII")
    given = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise Stop(KNOW, f"`{text}` is no address that is read") from None
    host = parts.netloc.rpartition("@")[2].partition(":")[0] if "[" not in parts.netloc else f"[{parts.hostname}]"
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host) or parts.netloc.count("@") > 1:
        raise Stop(KNOW, f"`{text}` is no address that is read", needs="an http or https address")
    if "://" not in text and re.match(r"(ftp|dict|ldap|imap|smtp|pop3)\.", text, re.IGNORECASE):
        raise Stop(KNOW, f"curl guesses the protocol of `{text}`")
    return parts, host.lower(), port or _PORTS[parts.scheme]


def _request(call: Call, text: str, method: str) -> SplitResult:
    parts, host, port = _address(text)
    call.state.act("net.connect", f"{host}:{port}")
    path = parts.path or "/"
    attributes = {"query": parts.query} if parts.query else {}
    call.state.act("http.request", f"{method} {parts.scheme}://{host}:{port}{path}", dict(attributes))
    return parts


def curl(call: Call) -> list[State]:
    """Talks to the addresses that it is given."""
    state = call.state
    given = call.given
    home = state.value("HOME")
    if home and not (len(call.words) > 1 and call.words[1] in ("-q", "--disable")):
        for text in (f"{home}/.curlrc", f"{home}/.config/curlrc"):
            if state.look_through(text) is not EntryKind.ABSENT:
                raise Stop(KNOW, f"`{text}` changes what curl does", needs="put `-q` first")
    if given.has("L", "location-trusted"):
        raise Stop(KNOW, "curl would follow redirects, and where they lead is not known", needs="leave out `-L`")
    addresses = [call.known(one, "an address") for one in (*given.operands, *given.all("url"))]
    if not addresses:
        execute(state, call.name, call.words)
        state.status = None
        return [state]
    method = _method(call)
    execute(state, call.name, call.words)
    for value in given.all("d", "data-binary", "data-ascii", "data-urlencode", "json"):
        _body(call, value)
    for value in given.all("F"):
        text = call.known(value, "a form's field")
        found = re.match(r"[^=]*=[@<]([^;]*)", text)
        if found:
            _uploaded(call, found[1])
    for value in given.all("T"):
        _uploaded(call, call.known(value))
    for option in ("b", "H", "w"):
        for value in given.all(option):
            text = value.prefix if isinstance(value, Hole) else value
            if text.startswith("@") or (option == "b" and "=" not in text):
                call.read(call.known(value).removeprefix("@"))
    for value in given.all("c", "D", "stderr"):
        if value != "-":
            call.write(value, None)
    outputs = [call.known(value) for value in given.all("o")]
    for at, text in enumerate(addresses):
        parts = _request(call, text, method)
        if at < len(outputs):
            if outputs[at] != "-":
                _output(call, outputs[at])
        elif given.has("O"):
            base = posixpath.basename(parts.path)
            if not base or given.has("J") or "%" in base:
                raise Stop(KNOW, "the name that curl gives the file is not known", needs="use `-o`")
            _output(call, base)
    state.status = None
    return [state]


def _output(call: Call, text: str) -> None:
    if "#" in text or call.given.has("output-dir", "create-dirs", "C"):
        raise Stop(KNOW, "the name that curl gives the file is not known", needs="a plain `-o`")
    call.write(text, None)


def _method(call: Call) -> str:
    given = call.given
    explicit = given.last("X")
    if explicit is not None:
        return call.known(explicit).upper()
    if given.has("I"):
        return "HEAD"
    if given.has("T"):
        return "PUT"
    if given.has("G"):
        return "GET"
    return (
        "POST" if given.has("d", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "F", "form-string") else "GET"
    )


def _body(call: Call, value: object) -> None:
    text = value.prefix if isinstance(value, Hole) else str(value)
    if isinstance(value, Hole) and not text:
        raise Stop(KNOW, "a body that could name a file", needs="use `--data-raw`")
    if text.startswith("@"):
        _uploaded(call, text[1:])


def _uploaded(call: Call, text: str) -> None:
    if text in ("-", "."):
        call.state.take()
        return
    for name in text.strip('"').split(","):
        call.read(name)


def wget(call: Call) -> list[State]:
    """Fetches one address into one file."""
    state = call.state
    given = call.given
    redirects = given.last("max-redirect")
    if redirects != "0":
        raise Stop(KNOW, "wget would follow redirects, and where they lead is not known", needs="`--max-redirect=0`")
    output = given.last("O")
    if output is None:
        raise Stop(KNOW, "the name that wget gives the file is not known", needs="use `-O`")
    execute(state, call.name, call.words)
    for text in call.operands():
        _request(call, text, "GET")
    if output != "-":
        call.write(output, None)
    for value in given.all("o"):
        call.write(value, None)
    state.status = None
    return [state]
