"""Which exact bytes, and digest, stand for this value?

- Canonical bytes are RFC 8785 (JCS). INVARIANT (one-hasher): only this module makes bytes for hashing.
- Refused at the edge: floats where no type allows them, integers beyond 2^53, duplicate keys, lone surrogates, NaN, tuples.
- A digest is written `sha256:` and 64 lowercase hex digits.
- Text is kept exactly: nothing is normalized, stripped or folded here.

    >>> canonicalize({"b": 1, "a": "é"}).decode()
    '{"a":"é","b":1}'
    >>> digest([])[:15]
    'sha256:4f53cda1'
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

import orjson

from cxi.errors import Code, MalformedError, Reason

# A JSON value as this project uses it: no tuples; floats only where a type allows them.
JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
Digest: TypeAlias = str

SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 128
MAX_BYTES: Final = 16 * 1024 * 1024

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS
)


def canonicalize(value: JsonValue, *, floats: bool = False) -> bytes:
    """The RFC 8785 bytes of a value.

    Args:
        value: JSON of dicts, lists, strings, integers, booleans and None.
        floats: Whether finite floats are allowed.

    Raises:
        MalformedError: for a float where none is allowed, NaN, an integer beyond 2^53, a lone surrogate, a key that is no string,
            nesting beyond 128, or anything that is not JSON.
    """
    plain, fast = (value, True) if _is_exact(value) else _plain(value, floats, 0)
    if fast:
        try:
            return orjson.dumps(plain, option=_OPTIONS)
        except (orjson.JSONEncodeError, RecursionError):
            plain, _ = _plain(value, floats, 0)  # the writer below says what is wrong, and where
    out: list[str] = []
    _write(plain, out, "$")
    return _encode("".join(out))


def digest(value: JsonValue, *, floats: bool = False) -> Digest:
    """SHA-256 of the canonical bytes, as `sha256:<hex>`.

    Raises:
        MalformedError: as `canonicalize`.
    """
    return "sha256:" + hashlib.sha256(canonicalize(value, floats=floats)).hexdigest()


def compose(parts: Mapping[str, bytes]) -> bytes:
    """The RFC 8785 bytes of an object whose members' own canonical bytes are known already.

    Args:
        parts: By key, canonical bytes. Keys are names of ours: letters, digits and `_`, which stand in their own order.

    Raises:
        ValueError: for another key, or for no bytes at all.
    """
    if not all(key.isascii() and key.isidentifier() and data for key, data in parts.items()):
        raise ValueError("a part has no plain name, or no bytes")
    return b"{" + b",".join([b'"%b":%b' % (key.encode(), parts[key]) for key in sorted(parts)]) + b"}"


def digest_bytes(data: bytes) -> Digest:
    """SHA-256 of bytes as they are: a file's content, a program, or what `canonicalize` and `compose` gave."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def parse_json(data: bytes | str, *, limit: int = MAX_BYTES) -> JsonValue:
    """Read one JSON value strictly (RFC 8259, with I-JSON's limits of RFC 7493).

    Args:
        data: UTF-8 bytes or text.
        limit: Its greatest length, in bytes or code points.

    Raises:
        MalformedError: `TOO_LARGE`, `MALFORMED_JSON`, `DUPLICATE_KEY`, `NUMBER_NOT_EXACT` or `NON_CANONICAL_TEXT`.
    """
    if len(data) > limit:
        _refuse(Code.TOO_LARGE, f"the text is longer than {limit}")
    if type(data) is bytes and (plain := _read_plainly(data)) is not _UNREAD:
        return plain
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        _refuse(Code.MALFORMED_JSON, "not UTF-8", where=f"bytes {error.start}-{error.end}")
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        _refuse(Code.MALFORMED_JSON, error.msg.lower(), where=f"position {error.pos}")
    except RecursionError:
        _refuse(Code.TOO_LARGE, "nested too deeply")
    _plain(value, True, 0)
    # A lone surrogate can come in through an escape; it has no UTF-8 form, so no two readers need agree on it.
    if "\\u" in text or "\\U" in text or not text.isascii():
        _refuse_surrogates(value, "$")
    return value


_UNREAD: Final[JsonValue] = ["not read"]  # told apart by its identity


def _read_plainly(data: bytes) -> JsonValue:
    """What a fast reader reads, where nothing could be read otherwise; else `_UNREAD`.

    Equal bytes prove that no key was dropped and no text was changed; exact values hold no float, and a great integer is not
    written. What is not shown so is read again, more slowly.
    """
    try:
        value: JsonValue = orjson.loads(data)
        return value if _is_exact(value) and orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER) == data else _UNREAD
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return _UNREAD


def _refuse(code: Code, detail: str, *, where: str = "") -> NoReturn:
    raise MalformedError(Reason(code, detail, where))


def _pairs(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                _refuse(Code.DUPLICATE_KEY, f"key `{key}` is there twice", where=key)
            seen.add(key)
    return found


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > SAFE_INTEGER:
        _refuse(Code.NUMBER_NOT_EXACT, f"integer `{text[:40]}` is beyond 2^53", where=text[:40])
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or abs(value) > SAFE_INTEGER:
        _refuse(Code.NUMBER_NOT_EXACT, f"number `{text[:40]}` is not finite or is beyond 2^53", where=text[:40])
    return value


def _constant(text: str) -> NoReturn:
    _refuse(Code.NUMBER_NOT_EXACT, f"`{text}` is no JSON number", where=text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant, strict=True
)


_SCALARS: Final = frozenset({str, int, bool, type(None)})
_BREADTH: Final = 10_000


def _is_exact(value: JsonValue) -> bool:
    """Whether sorted orjson is RFC 8785 for a value just as it stands, which is so for nearly all that is hashed here.

    That is: exact dicts and lists of text, integers, booleans and None, with ASCII keys, not nested beyond the limit. What is
    not is looked at again, more slowly; orjson itself refuses great integers and lone surrogates.
    """
    if type(value) in _SCALARS:
        return True
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        below: list[JsonValue] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                for key, part in item.items():  # type: ignore[union-attr]  # an exact dict
                    if type(key) is not str or not key.isascii():
                        return False
                    if type(part) not in _SCALARS:
                        below.append(part)
            elif kind is list:
                below += [part for part in item if type(part) not in _SCALARS]  # type: ignore[union-attr]  # an exact list
            else:
                return False
        if not below:
            return True
        if len(below) > _BREADTH:  # a value that holds itself twice would double at each level
            return False
        level = below
    return False


def _plain(value: JsonValue, floats: bool, depth: int) -> tuple[JsonValue, bool]:
    """The value in dicts and lists, and whether sorted orjson is RFC 8785 for it.

    Sorted orjson differs from RFC 8785 for floats, and for keys beyond the BMP (UTF-8 order is not UTF-16 order).
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value, True
    if kind is int:
        return value, True
    if depth > MAX_DEPTH:
        _refuse(Code.TOO_LARGE, f"nested deeper than {MAX_DEPTH}")
    if kind is dict or isinstance(value, Mapping):
        return _plain_object(value, floats, depth)  # type: ignore[arg-type]  # an exact dict is a Mapping
    if isinstance(value, list):
        fast = True
        items: list[JsonValue] = []
        for item in value:
            plain, quick = _plain(item, floats, depth + 1)
            items.append(plain)
            fast = fast and quick
        return items, fast
    if isinstance(value, float):
        if not floats:
            _refuse(Code.NUMBER_NOT_EXACT, f"a float (`{value}`) where the type allows none")
        if not math.isfinite(value):
            _refuse(Code.NUMBER_NOT_EXACT, f"`{value}` is no JSON number")
        return float(value), False
    if isinstance(value, str):
        return str.__str__(value), True
    if isinstance(value, int):
        return int(value), True
    _refuse(Code.MALFORMED_JSON, f"a Python `{kind.__name__}` is not JSON")


def _plain_object(value: Mapping[str, JsonValue], floats: bool, depth: int) -> tuple[JsonValue, bool]:
    fast = True
    found: dict[str, JsonValue] = {}
    for key, item in value.items():
        if type(key) is not str:
            if not isinstance(key, str):
                _refuse(Code.MALFORMED_JSON, f"a key is a `{type(key).__name__}`, not a string")
            key = str.__str__(key)  # noqa: PLW2901  # an enum's text is its key
        plain, quick = _plain(item, floats, depth + 1)
        found[key] = plain
        fast = fast and quick and (key.isascii() or max(key) <= "\uffff")
    return found, fast


def _write(value: JsonValue, out: list[str], where: str) -> None:
    """RFC 8785, section 3.2, over plain values."""
    match value:
        case None:
            out.append("null")
        case True:
            out.append("true")
        case False:
            out.append("false")
        case str():
            out.append(_text(value, where))
        case int():
            if abs(value) > SAFE_INTEGER:
                _refuse(Code.NUMBER_NOT_EXACT, f"integer `{value}` is beyond 2^53", where=where)
            out.append(str(value))
        case float():
            out.append(_es6(value))
        case dict():
            out.append("{")
            for index, key in enumerate(sorted(value, key=_utf16(where))):
                out.append("," if index else "")
                out.append(_text(key, where))
                out.append(":")
                _write(value[key], out, f"{where}.{key}")
            out.append("}")
        case list():
            out.append("[")
            for index, item in enumerate(value):
                out.append("," if index else "")
                _write(item, out, f"{where}[{index}]")
            out.append("]")
        case _:  # INVARIANT (plain): `_plain` lets nothing else through
            raise AssertionError(type(value))


def _utf16(where: str) -> Callable[[str], bytes]:
    def order(key: str) -> bytes:
        try:
            return key.encode("utf-16-be")
        except UnicodeEncodeError:
            _refuse(Code.NON_CANONICAL_TEXT, "a key holds a lone surrogate", where=where)

    return order


def _text(value: str, where: str) -> str:
    try:
        return orjson.dumps(value).decode("utf-8")
    except orjson.JSONEncodeError:
        _refuse(Code.NON_CANONICAL_TEXT, "the text holds a lone surrogate", where=where)


def _encode(text: str) -> bytes:
    return text.encode("utf-8")


def _es6(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20), from Python's shortest repr."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + ("" if fraction == "0" else fraction)
    point = len(whole) + int(exponent or "0")
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power >= 0 else '-'}{abs(power)}"


def _refuse_surrogates(value: JsonValue, where: str) -> None:
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                _refuse(Code.NON_CANONICAL_TEXT, "the text holds a lone surrogate", where=where)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_surrogates(key, f"{where} (a key)")
            _refuse_surrogates(item, f"{where}.{key}" if key.isascii() else where)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_surrogates(item, f"{where}[{index}]")
