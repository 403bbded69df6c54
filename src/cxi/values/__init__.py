"""Which value is this, as its target reads it? One file a family.

- A contract names a type and its parameters; `value_type` makes it, once for each.
- A new type is one file and one line in `TYPES`.
- Two spellings of one thing have one canonical form; what readers read differently is refused.

    >>> value_type("RecordId", {"form": "integer"}).name
    'RecordId'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from cxi.canonical import JsonValue, canonicalize, parse_json
from cxi.errors import MalformedError
from cxi.values.base import ValueType
from cxi.values.date_time import make_date_time
from cxi.values.enum import make_enum
from cxi.values.git_ref import make_git_ref
from cxi.values.host import make_host
from cxi.values.parameter import BadParameter
from cxi.values.path import make_file_path, make_repo_path
from cxi.values.record_id import make_record_id
from cxi.values.text import make_boolean, make_integer, make_json, make_text
from cxi.values.url import make_url

__all__ = ["TYPES", "BadParameter", "value_type"]

TYPES: Final[MappingProxyType[str, Callable[[Mapping[str, JsonValue]], ValueType]]] = MappingProxyType(
    {
        "Boolean": make_boolean,
        "DateTime": make_date_time,
        "Enum": make_enum,
        "FilePath": make_file_path,
        "GitRef": make_git_ref,
        "Host": make_host,
        "Integer": make_integer,
        "Json": make_json,
        "RecordId": make_record_id,
        "RepoPath": make_repo_path,
        "Text": make_text,
        "Url": make_url,
    }
)


def value_type(name: str, parameters: Mapping[str, JsonValue]) -> ValueType:
    """The type of a name, with its parameters.

    Args:
        name: As contracts write it.
        parameters: Its parameters.

    Raises:
        BadParameter: where the name or a parameter is unknown, with what would mend it.
    """
    if name not in TYPES:
        raise BadParameter(f"no type is called `{name}`", f"use one of: {', '.join(TYPES)}")
    if not parameters:
        return _make(name, b"{}")
    try:
        key = canonicalize(parameters)
    except MalformedError as error:
        raise BadParameter(f"the parameters of type `{name}`: {error.reason.detail}", "write plain JSON values") from None
    return _make(name, key)


@lru_cache(maxsize=4096)
def _make(name: str, key: bytes) -> ValueType:
    parameters = parse_json(key)
    assert isinstance(parameters, Mapping)  # noqa: S101  # canonical bytes of a mapping
    return TYPES[name](parameters)
