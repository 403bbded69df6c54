"""What of a right may a sub-agent have, and how does it carry that to another host?

- A delegation is attenuated only: fewer calls, fewer values of its fields, a shorter life. What asks for more is refused whole.
- INVARIANT (shared-count): whoever draws by a delegation draws from its giver's own counts and totals too, in one transaction, so
  that many delegations give no more than the right that they came from.
- A brief to a sub-agent is untrusted text: the authority of its request is the person's own words, which the delegation carries.
- Across hosts it is a Biscuit token (https://doc.biscuitsec.org/reference/specifications): the first block is this
  installation's, each later one is a holder's attenuation, made offline. Every block is exactly one fact of ours; a token with
  anything else in it, a third party's block or a check that we do not know, is refused.
- INVARIANT (never-wider): a later block is applied by `attenuate` to what the blocks before it gave, and to nothing else.
- Both hosts use one ledger: what is left of a right, and whether it was revoked, only the ledger knows.

    token = seal(delegated, key)
    token = narrow(token, key.public_key(), Attenuation(count=1))           # by its holder, offline
    match open_token(token, key.public_key(), now, tenant="local", epoch=epoch):
        case Delegated() as found: ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from cxi.authority.desk import Denial
from cxi.authority.grant import Across, Batch, Bound, Grant, Total
from cxi.authority.schedule import Hours
from cxi.canonical import Digest, JsonValue, canonicalize, parse_json
from cxi.errors import Code, ConfigError, MalformedError, Problem, Reason, Refused
from cxi.ledger.base import Requirement, scope_of
from cxi.manifest import Instant, Principal
from cxi.provenance import Channel, Segment, Source, TrustedRequest

if TYPE_CHECKING:
    import biscuit_auth

VERSION: Final = 1
MAX_TOKEN: Final = 256 * 1024  # characters
MAX_BLOCKS: Final = 16

_BLOCK: Final = re.compile(r"cxi_(delegation|attenuation)\(hex:((?:[0-9a-f]{2})+)\);\n?")


@dataclass(frozen=True, slots=True)
class Attenuation:
    """What a delegation leaves of a right.

    Attributes:
        count: How many events at most, in the right's window; None leaves its own.
        constraints: Field to the canonical values that it may have, beside what the right says of it.
        expires: From this instant on it grants nothing; 0 leaves the right's own end.
    """

    count: int | None = None
    constraints: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=lambda: MappingProxyType({}))
    expires: Instant = 0.0


@dataclass(frozen=True, slots=True)
class Delegated:
    """A right that was delegated, with all that its holder's session needs.

    Attributes:
        id: The delegation's revocation id.
        grant: What is left of the right.
        tenant: Whose ledger.
        user: The giver's user.
        task: The giver's open task, or empty.
        epoch: The policy epoch that it was given under.
        request: (source, text) of each segment of the person's request.
        influences: Names of the untrusted sources that its giver had seen: what they say may be in the brief.
        denials: What persons had said no to, each with the agent whose call it was.
    """

    id: str
    grant: Grant
    tenant: str
    user: str
    task: str
    epoch: tuple[int, Digest]
    request: tuple[tuple[str, str], ...]
    influences: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()

    def trusted_request(self) -> TrustedRequest:
        """The person's own words, as the giver's session had them."""
        segments = (
            Segment.of(f"r-{index}", Source(Channel.REQUEST, source), text) for index, (source, text) in enumerate(self.request)
        )
        return TrustedRequest(tuple(segments))


def attenuate(grant: Grant, narrower: Attenuation) -> Grant | Refused:
    """The grant with fewer calls, fewer values or a shorter life, or why that would be more than it has."""
    reasons: list[Reason] = []
    count = grant.count if narrower.count is None else narrower.count
    if not 1 <= count <= grant.count:
        reasons.append(_void(f"{count} calls are asked for, and `{grant.id}` gives {grant.count}", "count"))
    expires = narrower.expires or grant.expires
    if narrower.expires < 0 or (grant.expires and expires > grant.expires):
        reasons.append(_void(f"it would outlive `{grant.id}`", "expires"))
    constraints = dict(grant.constraints)
    for name, values in narrower.constraints.items():
        allowed = None if name not in constraints else {canonicalize(value) for value in constraints[name]}
        if allowed is not None and not all(canonicalize(value) in allowed for value in values):
            reasons.append(_void(f"`{grant.id}` has fewer values for `{name}`", name))
        constraints[name] = values
    if reasons:
        return Refused(tuple(reasons))
    return replace(grant, count=count, expires=expires, constraints=MappingProxyType(constraints))


def delegate(grant: Grant, giver: Principal, id: str, narrower: Attenuation) -> Grant | Refused:
    """The grant of a delegation: attenuated, and bound to its giver's counts and totals.

    Args:
        grant: What the giver has.
        giver: The giver, in its session.
        id: The delegation's id.
        narrower: What is left.
    """
    left = attenuate(grant, narrower)
    if isinstance(left, Refused):
        return left
    own = (giver.session, grant.id)
    shared = (Bound(grant.scope(giver), grant.count, grant.window),) if grant.across is not Across.SESSION else ()
    return replace(
        left,
        id=f"{id}/{grant.tool}",
        across=Across.SESSION,
        origin="",
        totals=tuple(replace(total, scope=grant.total_scope(total, giver)) for total in grant.totals),
        after=tuple(replace(needed, session=needed.session or giver.session) for needed in grant.after),
        bounds=(
            *grant.bounds,
            Bound(scope_of(*own), grant.count, grant.window, own),
            *shared,
            Bound(f"delegation:{id}", left.count, left.window),
        ),
        lineage=(*grant.lineage, own),
        delegations=(*grant.delegations, id),
    )


# --- tokens -----------------------------------------------------------------------------------------------------------------


def seal(delegated: Delegated, key: Ed25519PrivateKey) -> str:
    """A token that another host opens.

    Args:
        delegated: What is delegated. Whoever holds the token can read it, the request with it.
        key: The installation's key for delegations.

    Raises:
        ValueError: where it has no end: a token cannot be called back by forgetting it.
        ConfigError: where `biscuit-python` is not installed.
    """
    if not delegated.grant.expires:
        raise ValueError("a delegation that leaves the host has an end")
    biscuit = _biscuit()
    root = biscuit.PrivateKey.from_bytes(
        key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()), biscuit.Algorithm.Ed25519
    )
    body = canonicalize(_write(delegated))
    return str(biscuit.BiscuitBuilder("cxi_delegation({body});", {"body": body}).build(root).to_base64())


def narrow(token: str, public_key: Ed25519PublicKey, narrower: Attenuation) -> str | Refused:
    """A token for less, made by its holder without the key that signed it.

    Whether it is less is seen where it is opened: what is more is refused there, whole.
    """
    found = _parse(token, public_key)
    if isinstance(found, Refused):
        return found
    biscuit = _biscuit()
    body = canonicalize(
        {
            "count": narrower.count,
            "constraints": {name: [*values] for name, values in narrower.constraints.items()},
            "expires_ms": _early(narrower.expires),
        }
    )
    return str(found.append(biscuit.BlockBuilder("cxi_attenuation({body});", {"body": body})).to_base64())


def open_token(
    token: str, public_key: Ed25519PublicKey, now: Instant, *, tenant: str, epoch: tuple[int, Digest]
) -> Delegated | Refused:
    """What a token delegates, or why it does not hold.

    Whether it was revoked, and what is left of it, the ledger says with each call.

    Args:
        token: The token.
        public_key: The key that is trusted to delegate.
        now: Seconds since the epoch.
        tenant: This installation's tenant.
        epoch: The policy epoch in force here.

    Raises:
        ConfigError: where `biscuit-python` is not installed.
    """
    found = _parse(token, public_key)
    if isinstance(found, Refused):
        return found
    try:
        bodies = _bodies(found)
        delegated = _read(bodies[0])
        given = [str(name) for name in found.revocation_ids]
        for body, name in zip(bodies[1:], given[1:], strict=True):
            left = attenuate(delegated.grant, _read_attenuation(body))
            if isinstance(left, Refused):
                return left
            bound = Bound(f"delegation:{name}", left.count, left.window)
            delegated = replace(delegated, grant=replace(left, bounds=(*left.bounds, bound)))
    except (KeyError, TypeError, ValueError, MalformedError) as error:
        return Refused((_void(f"the token holds something else than a delegation: {type(error).__name__}", "token"),))
    if delegated.tenant != tenant:
        return Refused((_void("the token is another tenant's", "tenant"),))
    if delegated.epoch != epoch:
        return Refused.of(Code.EPOCH_CHANGED, "the token was given under another policy epoch", where="policy_epoch")
    if now >= delegated.grant.expires:
        return Refused.of(Code.EXPIRED, "the token has expired", where="token")
    grant = replace(delegated.grant, delegations=(*delegated.grant.delegations, *given))
    return replace(delegated, grant=grant)


def _void(detail: str, where: str) -> Reason:
    return Reason(Code.DELEGATION_VOID, detail, where=where)


def _biscuit() -> Any:
    try:
        import biscuit_auth  # noqa: PLC0415  # an optional extra
    except ImportError:
        mend = "install the extra: `pip install cxi[delegation]`"
        raise ConfigError(Problem("delegation", 0, "tokens need the package `biscuit-python`", mend)) from None
    return biscuit_auth


def _parse(token: str, public_key: Ed25519PublicKey) -> biscuit_auth.Biscuit | Refused:
    """The token with every signature checked."""
    biscuit = _biscuit()
    root = biscuit.PublicKey.from_bytes(public_key.public_bytes(Encoding.Raw, PublicFormat.Raw), biscuit.Algorithm.Ed25519)
    if len(token) > MAX_TOKEN or not token.isascii():
        return Refused((_void("the token is too long, or no token", "token"),))
    try:
        found: biscuit_auth.Biscuit = biscuit.Biscuit.from_base64(token, root)
    except (biscuit.BiscuitValidationError, ValueError):
        return Refused((_void("the token is damaged, or not signed by the key that is trusted", "token"),))
    if found.block_count() > MAX_BLOCKS:
        return Refused((_void(f"the token was narrowed more than {MAX_BLOCKS - 1} times", "token"),))
    return found


def _bodies(token: biscuit_auth.Biscuit) -> list[JsonValue]:
    """The one fact of each block.

    Raises:
        ValueError: where a block is a third party's, or holds anything but its one fact.
    """
    found: list[JsonValue] = []
    for index in range(token.block_count()):
        match = _BLOCK.fullmatch(token.block_source(index))
        wanted = "attenuation" if index else "delegation"
        if match is None or match[1] != wanted or token.block_external_key(index) is not None:
            raise ValueError(f"block {index} is no {wanted}")
        found.append(parse_json(bytes.fromhex(match[2])))
    return found


# --- as JSON: whole milliseconds, rounded so that nothing gets wider ----------------------------------------------------------


def _early(instant: Instant) -> int:
    return math.floor(instant * 1000)


def _late(instant: Instant) -> int:
    return math.ceil(instant * 1000)


def _write(delegated: Delegated) -> dict[str, JsonValue]:
    grant = delegated.grant
    return {
        "v": VERSION,
        "id": delegated.id,
        "tenant": delegated.tenant,
        "user": delegated.user,
        "task": delegated.task,
        "epoch": list(delegated.epoch),
        "request": [list(part) for part in delegated.request],
        "influences": list(delegated.influences),
        "denials": [[no.action, no.key, no.by, _late(no.at), no.agent] for no in delegated.denials],
        "grant": {
            "id": grant.id,
            "tool": grant.tool,
            "count": grant.count,
            "window_ms": _late(grant.window),
            "constraints": {name: [*values] for name, values in grant.constraints.items()},
            "expires_ms": _early(grant.expires),
            "batches": [[batch.field, batch.most] for batch in grant.batches],
            "totals": [
                [total.field, total.most, total.scale, total.unit, total.currency, _late(total.window), total.scope]
                for total in grant.totals
            ],
            "after": [[needed.grant, needed.times, needed.session] for needed in grant.after],
            "not_before_ms": _late(grant.not_before),
            "hours": [[list(one.days), one.start, one.end, one.zone] for one in grant.hours],
            "retries": grant.retries,
            "bounds": [
                [bound.scope, bound.most, _late(bound.window), list(bound.own) if bound.own is not None else None]
                for bound in grant.bounds
            ],
            "lineage": [list(link) for link in grant.lineage],
            "delegations": list(grant.delegations),
        },
    }


def _read(body: Any) -> Delegated:
    """What `_write` wrote; the key that signed it vouches for the rest of its shape.

    Raises:
        KeyError, TypeError, ValueError: where it is something else.
    """
    if body["v"] != VERSION:
        raise ValueError(f"version {body['v']}")
    held = body["grant"]
    grant = Grant(
        id=held["id"],
        tool=held["tool"],
        count=held["count"],
        window=held["window_ms"] / 1000,
        constraints=MappingProxyType({name: tuple(values) for name, values in held["constraints"].items()}),
        expires=held["expires_ms"] / 1000,
        batches=tuple(Batch(*part) for part in held["batches"]),
        totals=tuple(
            Total(name, most, scale, unit, currency, window / 1000, scope)
            for name, most, scale, unit, currency, window, scope in held["totals"]
        ),
        after=tuple(Requirement(*part) for part in held["after"]),
        not_before=held["not_before_ms"] / 1000,
        hours=tuple(Hours(tuple(days), start, end, zone) for days, start, end, zone in held["hours"]),
        retries=held["retries"],
        bounds=tuple(
            Bound(scope, most, window / 1000, (own[0], own[1]) if own is not None else None)
            for scope, most, window, own in held["bounds"]
        ),
        lineage=tuple((session, giver) for session, giver in held["lineage"]),
        delegations=tuple(held["delegations"]),
    )
    counter, digest = body["epoch"]
    return Delegated(
        id=body["id"],
        grant=grant,
        tenant=body["tenant"],
        user=body["user"],
        task=body["task"],
        epoch=(counter, digest),
        request=tuple((source, text) for source, text in body["request"]),
        influences=tuple(body["influences"]),
        denials=tuple(Denial(action, key, by, at / 1000, agent) for action, key, by, at, agent in body["denials"]),
    )


def _read_attenuation(body: Any) -> Attenuation:
    """What a holder wrote: nothing vouches for its shape.

    Raises:
        KeyError, TypeError, ValueError: where it is no attenuation.
    """
    count, constraints, expires = body["count"], body["constraints"], body["expires_ms"]
    whole = type(expires) is int and (count is None or type(count) is int)
    if body.keys() != {"count", "constraints", "expires_ms"} or not whole or not isinstance(constraints, Mapping):
        raise ValueError("no attenuation")
    if not all(isinstance(values, list) for values in constraints.values()):
        raise TypeError("the values of a constraint are a list")
    canonicalize(constraints)  # no float among them
    return Attenuation(count, MappingProxyType({name: tuple(values) for name, values in constraints.items()}), expires / 1000)
