"""Which policies could have a say in this request?

- A policy is filed under what its scope fixes: actions, principal, resource. A request takes what is filed under its own, and
  under "any": so the cost does not grow with policies about something else.
- INVARIANT (sound-slice): a policy that is left out has a scope that is false for the request. Cedar reads the scope first, so
  such a policy neither holds nor raises an error. Only the scope is used, never a condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from cedarpy import pst

from cxi.policy.base import PolicyRequest
from cxi.policy.rule import Policy

# How a scope narrows its resource: not at all, to a type, to one entity, or to what is in one entity.
_Place: TypeAlias = tuple[str, ...]
_Key: TypeAlias = tuple[str | None, str | None, _Place]
_ANYWHERE: _Place = ()


@dataclass(frozen=True, slots=True)
class Slices:
    """Policies by what their scopes fix.

    Attributes:
        filed: Positions of policies, by (action, agent, place); None is any.
    """

    filed: Mapping[_Key, tuple[int, ...]]

    @classmethod
    def of(cls, policies: Iterable[Policy]) -> Self:
        """File policies by their positions."""
        filed: dict[_Key, list[int]] = defaultdict(list)
        for position, policy in enumerate(policies):
            agent = _agent(policy.parsed.principal)
            place = _place(policy.parsed.resource)
            for action in policy.actions if policy.actions is not None else (None,):
                filed[action, agent, place].append(position)
        return cls({key: tuple(positions) for key, positions in filed.items()})

    def of_request(self, request: PolicyRequest) -> tuple[int, ...]:
        """Positions of all policies whose scope could hold, ascending."""
        found: set[int] = set()
        for place in _places(request):
            for action in (request.action, None):
                for agent in (request.agent, None):
                    found.update(self.filed.get((action, agent, place), ()))
        return tuple(sorted(found))


def _agent(constraint: pst.PrincipalOrResourceConstraint) -> str | None:
    # `in` is equality here: an agent is in nothing but itself.
    match constraint:
        case pst.ScopeEq(pst.EntityUid(kind, name)) | pst.ScopeIn(pst.EntityUid(kind, name)) if str(kind) == "Agent":
            return name
        case pst.ScopeIsIn(_, pst.EntityUid(kind, name)) if str(kind) == "Agent":
            return name
        case _:
            return None


def _place(constraint: pst.PrincipalOrResourceConstraint) -> _Place:
    match constraint:
        case pst.ScopeEq(pst.EntityUid(kind, name)):
            return ("is", str(kind), name)
        case pst.ScopeIn(pst.EntityUid(kind, name)) | pst.ScopeIsIn(_, pst.EntityUid(kind, name)):
            return ("in", str(kind), name)
        case pst.ScopeIs(kind):
            return ("is", str(kind))
        case _:
            return _ANYWHERE


def _places(request: PolicyRequest) -> Iterator[_Place]:
    resource = request.resource
    yield _ANYWHERE
    yield ("is", resource.type)
    yield ("is", resource.type, resource.id)
    above = {(resource.type, resource.id), *resource.parents}
    for ancestor in request.ancestors:
        above.add((ancestor.type, ancestor.id))
        above.update(ancestor.parents)
    for kind, name in above:
        yield ("in", kind, name)
