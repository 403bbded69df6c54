"""Which exact call is this, field by field?

Step 1 of the gate. The arguments are walked beside the contract, and both ends must meet:

- INVARIANT (totality): every leaf of the arguments is named by exactly one field of the contract, and is in the call. What no
  field names is `FIELD_UNCLASSIFIED`; a required field that is absent is `FIELD_MISSING`.
- A protected or fixed leaf is read by its types: exactly one of several must read it, or all must agree on what it is. A type's
  own refusal is told with the field's path.
- A payload or opaque field may be a whole object or list; what is named behind it (`query.rows`) its adapter reads, not we.
- A fixed field is sent always: an absent one is filled in, a present one must equal the constant in canonical form.
- Empty lists, empty objects and nulls hold no value but are sent, so they are in the call too, as markers that no contract names.
- A required field inside a list's items is required in each item; inside an object it is required always.
- The arguments are written anew from wire values: paths are absolute, keys are sorted.

    >>> read_call(contract, {"path": "src/../a.py"}, root, constants={}).arguments      # doctest: +SKIP
    {'path': '/srv/repo/a.py'}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cxi.authority.contract import FieldContract, ToolContract, TypeRef
from cxi.canonical import JsonValue, canonicalize
from cxi.errors import Code, MalformedError, Reason, Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.values import value_type
from cxi.values.base import Root, Value
from cxi.values.hidden import visible

MAX_ITEMS: Final = 1000  # of a list whose contract says nothing
MAX_REASONS: Final = 50  # a flood of unknown fields is not echoed whole

_ITEMS: Final = "[]"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_CONSTANT: Final = re.compile(r"\$\{([^{}]*)\}")


class _Absent:
    """What stands for a value that is not there."""


_ABSENT: Final = _Absent()
_Found: TypeAlias = JsonValue | _Absent


def read_call(
    contract: ToolContract, arguments: JsonValue, root: Root, *, constants: Mapping[str, str]
) -> CanonicalCall | Refused:
    """Read a call whole.

    Args:
        contract: What the tool's fields are.
        arguments: JSON as the agent sent it.
        root: What paths resolve against.
        constants: What fixed fields may name as `${name}`.

    Returns:
        The call, or every reason why it is none. Never raises, whatever the arguments are.
    """
    try:
        canonicalize(arguments, floats=True)
    except MalformedError as error:
        return Refused((error.reason,))
    if not isinstance(arguments, Mapping):
        return Refused.of(Code.FIELD_TYPE, "the arguments are not an object")
    walk = _Walk(_planted(contract), root, constants)
    written = walk.read_object(walk.top, arguments, "")
    if walk.reasons:
        return Refused(tuple(walk.reasons[:MAX_REASONS]))
    return CanonicalCall(contract.server, contract.tool, tuple(walk.leaves), written)


@dataclass(slots=True)
class _Node:
    """One place of the contract: a field, the places below it, or both."""

    entry: FieldContract | None = None
    below: dict[str, _Node] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether what stands here is one leaf, whatever its shape."""
        return self.entry is not None and self.entry.role in (Role.PAYLOAD, Role.OPAQUE)


_PLANTED: Final[dict[int, tuple[ToolContract, _Node]]] = {}
_MOST_PLANTED: Final = 4096


def _plant(contract: ToolContract) -> _Node:
    top = _Node()
    for path, entry in contract.fields.items():
        node = top
        for step in _steps(path):
            node = node.below.setdefault(step, _Node())
        node.entry = entry
    return top


def _planted(contract: ToolContract) -> _Node:
    """The contract's tree, made once: a contract never changes, and each is held here, so that no other gets its identity."""
    known = _PLANTED.get(id(contract))
    if known is None:
        if len(_PLANTED) >= _MOST_PLANTED:
            _PLANTED.clear()
        known = _PLANTED[id(contract)] = (contract, _plant(contract))
    return known[1]


def _steps(path: str) -> list[str]:
    """`edits[].oldText` is `edits`, `[]`, `oldText`."""
    found: list[str] = []
    for part in path.split("."):
        name = part
        lists = 0
        while name.endswith(_ITEMS):
            name = name[: -len(_ITEMS)]
            lists += 1
        found += [name] if name or not lists else []
        found += [_ITEMS] * lists
    return found


class _Walk:
    """One reading. Everything found is in `leaves` and `reasons`; the methods give what is sent."""

    def __init__(self, top: _Node, root: Root, constants: Mapping[str, str]) -> None:
        self.top = top
        self.root = root
        self.constants = constants
        self.leaves: list[FieldValue] = []
        self.reasons: list[Reason] = []

    def read_object(self, node: _Node, raw: Mapping[str, JsonValue], at: str) -> dict[str, JsonValue]:
        """Walk an object and its contract together; what is fixed is filled in."""
        written: dict[str, JsonValue] = {}
        for key in sorted({*node.below, *raw}):
            if key == _ITEMS:
                continue
            below = node.below.get(key)
            path = _join(at, key)
            if below is None:
                self._refuse(Code.FIELD_UNCLASSIFIED, path, "the contract names no such field")
                continue
            found = self._read(below, raw.get(key, _ABSENT), path)
            if not isinstance(found, _Absent):
                written[key] = found
        # A key that is spelled like the list sign is a name that no contract can have.
        if _ITEMS in raw:
            self._refuse(Code.FIELD_UNCLASSIFIED, _join(at, _ITEMS), "the contract names no such field")
        if not raw and not written and at:
            self._mark(at, {})
        return written

    def _read(self, node: _Node, raw: _Found, at: str) -> _Found:
        """Read what stands at one place, or its absence."""
        entry, items = node.entry, node.below.get(_ITEMS)
        if isinstance(raw, _Absent):
            return self._fill(node, at)
        if raw is None:
            return self._read_null(node, at)
        if entry is not None and entry.role is Role.FIXED:
            return self._read_fixed(entry, raw, at)
        if entry is not None and not (items is not None and isinstance(raw, list) and not node.is_whole):
            if node.is_whole and _holds_fixed(node):
                return self._refuse(Code.FIELD_UNCLASSIFIED, at, "the contract fixes a part of it, which stands inside a payload")
            return self._read_leaf(entry, raw, at)
        if items is not None and (isinstance(raw, list) or not set(node.below) - {_ITEMS}):
            return self._read_list(items, raw, at)
        if isinstance(raw, Mapping):
            return self.read_object(node, raw, at)
        return self._refuse(Code.FIELD_TYPE, at, "an object is needed here")

    def _read_list(self, items: _Node, raw: JsonValue, at: str) -> _Found:
        if not isinstance(raw, list):
            return self._refuse(Code.FIELD_TYPE, at, "a list is needed here")
        limit = _limit(items)
        if len(raw) > limit:
            return self._refuse(Code.TOO_LARGE, at, f"{len(raw)} items, and {limit} are allowed")
        if not raw:
            self._mark(at, [])
        written: list[JsonValue] = []
        for index, item in enumerate(raw):
            found = self._read(items, item, f"{at}[{index}]")
            if not isinstance(found, _Absent):
                written.append(found)
        return written

    def _read_leaf(self, entry: FieldContract, raw: JsonValue, at: str) -> _Found:
        if entry.role is not Role.PROTECTED:
            if isinstance(raw, list) and 0 < entry.max_items < len(raw):
                return self._refuse(Code.TOO_LARGE, at, f"{len(raw)} items, and {entry.max_items} are allowed")
            # INVARIANT (own-copy): what was judged is what is sent, whatever becomes of the caller's objects meanwhile.
            raw = raw if isinstance(raw, str) else _copy(raw)
            value = Value("Text", raw, raw) if isinstance(raw, str) else Value("Json", raw, raw)
            self.leaves.append(FieldValue(at, entry.path, entry.role, value))
            return raw
        read = _read_types(entry.types, raw, self.root, at)
        if isinstance(read, Refused):
            self.reasons.extend(read.reasons)
            return _ABSENT
        self.leaves.append(FieldValue(at, entry.path, entry.role, read))
        return read.wire

    def _read_fixed(self, entry: FieldContract, raw: _Found, at: str) -> _Found:
        """The constant, whether it was sent or not; anything else that was sent is refused."""
        constant = self._constant(entry.fixed)
        if isinstance(constant, str) and constant != entry.fixed and _CONSTANT.search(constant):
            return self._refuse(Code.FIELD_NOT_FIXED, at, "a constant holds another constant's name")
        if isinstance(constant, _Absent):
            return self._refuse(Code.FIELD_NOT_FIXED, at, "the contract's constant names something that is not known")
        value = self._as_fixed(entry, constant, at)
        if isinstance(value, Refused):
            self.reasons.extend(value.reasons)
            return _ABSENT
        if not isinstance(raw, _Absent):
            sent = self._as_fixed(entry, raw, at)
            if isinstance(sent, Refused) or not _equal(sent, value):
                return self._refuse(Code.FIELD_NOT_FIXED, at, f"the contract fixes it to `{_show(value.canonical)}`")
        self.leaves.append(FieldValue(at, entry.path, entry.role, value))
        return value.wire

    def _as_fixed(self, entry: FieldContract, raw: JsonValue, at: str) -> Value | Refused:
        if entry.types:
            return _read_types(entry.types, raw, self.root, at)
        try:
            canonicalize(raw)
        except MalformedError as error:  # a float: no two fields' digests may differ by its spelling
            return Refused((_rebase(error.reason, at),))
        return Value("Json", raw, raw)

    def _constant(self, raw: JsonValue) -> _Found:
        """The contract's constant with `${name}` put in; absent where a name is not known."""
        if isinstance(raw, str):
            if any(name not in self.constants for name in _CONSTANT.findall(raw)):
                return _ABSENT
            return _CONSTANT.sub(lambda match: self.constants[match[1]], raw)
        if isinstance(raw, Mapping):
            pairs = {key: self._constant(item) for key, item in raw.items()}
            known = {key: item for key, item in pairs.items() if not isinstance(item, _Absent)}
            return known if len(known) == len(pairs) else _ABSENT
        if isinstance(raw, list | tuple):
            items = [self._constant(item) for item in raw]
            found = [item for item in items if not isinstance(item, _Absent)]
            return found if len(found) == len(items) else _ABSENT
        return raw

    def _read_null(self, node: _Node, at: str) -> _Found:
        """A null that stands for absence is sent as it came; it holds no value, so it needs no authority."""
        entries = [found.entry for found in (node, node.below.get(_ITEMS)) if found is not None and found.entry is not None]
        if any(entry.role is Role.FIXED for entry in entries):
            return self._read_fixed(entries[0], None, at)
        if not any(entry.nullable for entry in entries):
            return self._refuse(Code.FIELD_TYPE, at, "null is no value of this field")
        self._mark(at, None)
        return None

    def _fill(self, node: _Node, at: str) -> _Found:
        """What an absent place gives: its constants, and a reason for each required field."""
        entry, items = node.entry, node.below.get(_ITEMS)
        if entry is not None and entry.role is Role.FIXED:
            return self._read_fixed(entry, _ABSENT, at)
        wanted = entry or (items.entry if items is not None else None)
        if wanted is not None:
            if wanted.required and wanted.role is not Role.FIXED:
                self._refuse(Code.FIELD_MISSING, at, f"`{wanted.path}` is required")
            return _ABSENT
        if items is not None:
            return _ABSENT  # a list that is not there has no items to be complete
        written: dict[str, JsonValue] = {}
        for key in sorted(node.below):
            found = self._fill(node.below[key], _join(at, key))
            if not isinstance(found, _Absent):
                written[key] = found
        return written or _ABSENT

    def _mark(self, at: str, raw: JsonValue) -> None:
        self.leaves.append(FieldValue(at, "", Role.FIXED, Value("Json", raw, raw)))

    def _refuse(self, code: Code, at: str, detail: str) -> _Absent:
        self.reasons.append(Reason(code, detail, where=at))
        return _ABSENT


def _holds_fixed(node: _Node) -> bool:
    entries = [below.entry for below in node.below.values()]
    return any(entry is not None and entry.role is Role.FIXED for entry in entries) or any(map(_holds_fixed, node.below.values()))


def _copy(raw: JsonValue) -> JsonValue:
    if isinstance(raw, Mapping):
        return {key: _copy(item) for key, item in raw.items()}
    return [_copy(item) for item in raw] if isinstance(raw, list | tuple) else raw


def _limit(items: _Node) -> int:
    """How many items at most: the smallest that a field at or below the items says."""
    stated: list[int] = []
    todo = [items]
    while todo:
        node = todo.pop()
        if node.entry is not None and node.entry.max_items > 0:
            stated.append(node.entry.max_items)
        # a list inside the items counts its own
        todo.extend(below for step, below in node.below.items() if step != _ITEMS)
    return min(stated, default=MAX_ITEMS)


def _read_types(types: tuple[TypeRef, ...], raw: JsonValue, root: Root, at: str) -> Value | Refused:
    """Read a value by exactly one of its types."""
    if len(types) == 1:
        only = _parse(types[0], raw, root)
        return only if isinstance(only, Value) else Refused(tuple(_rebase(reason, at) for reason in only.reasons))
    read: list[Value] = []
    refused: list[Reason] = []
    for ref in types:
        found = _parse(ref, raw, root)
        if isinstance(found, Refused):
            refused.extend(found.reasons)
        else:
            read.append(found)
    if not read:
        names = ", ".join(f"`{ref.name}`" for ref in types) or "no type at all"
        details = "; ".join(reason.detail for reason in refused)
        return Refused.of(Code.FIELD_TYPE, f"none of {names} reads it" + (f": {details}" if details else ""), where=at)
    if any(not _equal(other, read[0]) for other in read[1:]):
        names = ", ".join(f"`{value.type}`" for value in read)
        return Refused.of(Code.FIELD_TYPE, f"ambiguous: {names} read it as different things", where=at)
    return read[0]


def _parse(ref: TypeRef, raw: JsonValue, root: Root) -> Value | Refused:
    try:
        return value_type(ref.name, ref.parameters).parse(raw, root)
    except ValueError as error:  # a type that does not exist is the configuration's fault; here it reads nothing
        return Refused.of(Code.FIELD_TYPE, str(error))


def _rebase(reason: Reason, at: str) -> Reason:
    """A type's reason, about the field."""
    inner = f" ({reason.where})" if reason.where and reason.where != at else ""
    return Reason(reason.code, reason.detail + inner, where=at, needs=reason.needs)


def _equal(one: Value, other: Value) -> bool:
    return _bytes(one.canonical) == _bytes(other.canonical) and _bytes(one.wire) == _bytes(other.wire)


def _bytes(raw: JsonValue) -> bytes:
    return canonicalize(raw, floats=True)  # unlike `==`, tells true from 1


def _join(at: str, key: str) -> str:
    name = key if (key.isascii() and key.isidentifier() and len(key) <= 100) or _NAME.fullmatch(key) else json.dumps(key[:60])
    return f"{at}.{name}" if at else name


def _show(raw: JsonValue) -> str:
    text = visible(raw) if isinstance(raw, str) else json.dumps(raw)
    return text if len(text) <= 60 else text[:59] + "…"
