"""Which exact bytes, and digest, stand for this value?

- Canonical bytes are RFC 8785 (JCS): only this module makes bytes for hashing.
- Refused at the edge: floats (unless a type allows them), integers beyond 2^53, duplicate keys, lone surrogates, NaN.
- A digest is written `sha256:` and 64 lowercase hex digits.

    >>> digest({"b": 1, "a": "é"})
    'sha256:...'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# A JSON value as this project uses it: no tuples, no floats unless said.
JsonValue: TypeAlias = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
Digest: TypeAlias = str
