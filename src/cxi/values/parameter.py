"""What did a contract say about a type?

- A type's parameters are few and named; an unknown one, or a value that is none of its choices, is refused at load.
- The error says what would mend it, so that `cxi check` can show it with file and line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from cxi.canonical import JsonValue

Choice = TypeVar("Choice", bound=str)


class BadParameter(ValueError):  # the configuration turns it into a `ConfigError`
    """A type's name or parameters are wrong.

    Attributes:
        detail: What is wrong, one lowercase line.
        mend: What would mend it.
    """

    def __init__(self, detail: str, mend: str) -> None:
        super().__init__(f"{detail} (mend: {mend})")
        self.detail = detail
        self.mend = mend


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one type, read strictly.

    Attributes:
        type: The type's name.
        given: What the contract says.
    """

    type: str
    given: Mapping[str, JsonValue]

    def only(self, *known: str) -> None:
        """Refuse what the type does not know.

        Raises:
            BadParameter: for the first unknown parameter.
        """
        for key in self.given:
            if key not in known:
                mend = f"use one of: {', '.join(known)}" if known else "leave it out"
                raise BadParameter(f"type `{self.type}` knows no parameter `{key}`", mend)

    def choice(self, key: str, choices: tuple[Choice, ...]) -> Choice:
        """One of the choices; the first is the default.

        Raises:
            BadParameter: where it is none of them.
        """
        value = self.given.get(key, choices[0])
        for known in choices:
            if value == known and isinstance(value, str):
                return known
        raise BadParameter(f"`{key}: {value}` of type `{self.type}`", f"use one of: {', '.join(choices)}")

    def flag(self, key: str) -> bool:
        """True or false; false is the default.

        Raises:
            BadParameter: where it is neither.
        """
        value = self.given.get(key, False)
        if not isinstance(value, bool):
            raise BadParameter(f"`{key}: {value}` of type `{self.type}`", "write `true` or `false`")
        return value

    def integer(self, key: str) -> int | None:
        """An integer, or None where it is left out.

        Raises:
            BadParameter: where it is something else.
        """
        value = self.given.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise BadParameter(f"`{key}: {value}` of type `{self.type}`", "write an integer")

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of non-empty strings.

        Raises:
            BadParameter: where it is something else.
        """
        value = self.given.get(key)
        if value is None:
            return default
        if isinstance(value, list | tuple) and value and all(isinstance(item, str) and item for item in value):
            return tuple(str(item) for item in value)
        raise BadParameter(f"`{key}` of type `{self.type}`", "write a list of strings, not empty")
