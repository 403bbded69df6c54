"""What a policy decision is asked with, and what it answers.

- One request an atom and one a call; entities carry attributes from the adapter or a registry, never from arguments.
- `Permitted` names every permit that holds; anything but Allow with no errors is `Refused`, naming the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cxi.canonical import JsonValue
from cxi.errors import Refused


@dataclass(frozen=True, slots=True)
class Entity:
    """A Cedar entity; its uid is passed as a dict, never as Cedar text.

    Attributes:
        type: The entity type, `File`.
        id: Its id, any text.
        attributes: Typed as the generated schema says.
        parents: (type, id) of its direct and indirect parents.
    """

    type: str
    id: str
    attributes: Mapping[str, JsonValue]
    parents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """One question to the monitor.

    Attributes:
        agent: The principal's id, `maintainer`.
        action: The Cedar action, `fs.write` or `tool:files.write_file`.
        resource: The resource, with its attributes.
        ancestors: The resource's parents as entities.
        context: The record {field, evidence, approval, task, effect}; a part that is left out says: nothing known, given, open.
    """

    agent: str
    action: str
    resource: Entity
    ancestors: tuple[Entity, ...]
    context: Mapping[str, Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True)
class Permitted:
    """Allowed, with no errors.

    Attributes:
        by: The `@id`s of all permits that hold, sorted.
    """

    by: tuple[str, ...]


class Monitor(Protocol):
    """Which rules are in force, and what they say."""

    def decide(self, request: PolicyRequest) -> Permitted | Refused:
        """Answer one request. Default deny, forbid wins, any error denies."""
        ...
