"""The paper's ten cases: is one capability ever spent twice?

The paper counts ten cases, 29 consumes, 19 rejects and 2 deduplicated answers, with no duplicate; their steps are not published.
These are ten of the mechanisms that it names (replay, unauthorized retries, batch cardinality, binding to the manifest, stale
authority), written from what each has to stop; the counts are our own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cxi.canonical import digest
from cxi.errors import Code
from cxi.lab.faults.delivery import TENANT, Delivery, told
from cxi.lab.faults.ground import Ground, Plan, Site, Tally, settle_unknown, site
from cxi.ledger.base import Mark, MarkKind

_ONE: Final = Delivery("ticket", "a-1", sequence=1)


def _double_spend(at: Site) -> None:
    ledger = at.ledger()
    at.perform(ledger, _ONE)
    _refused(at, told(at.perform(ledger, _ONE)), Code.CAPABILITY_USED)
    _refused(at, told(at.perform(at.ledger(), _ONE.again("a-2", capability="a-1"))), Code.CAPABILITY_USED)


def _race(at: Site) -> None:
    """Three writers submit the same capability at the same instant."""
    ledgers = [at.ledger() for _ in range(3)]
    barrier = threading.Barrier(len(ledgers))
    answers: list[str] = []

    def submit(number: int) -> None:
        barrier.wait()
        answers.append(told(at.perform(ledgers[number], _ONE)))

    at.together(len(ledgers), submit)
    at.tally.expect(answers.count("lease") == 1, f"a race had {answers.count('lease')} winners")


def _delivered_again(at: Site) -> None:
    """The same key and action again, after the answer: the recorded answer, twice, and no effect."""
    ledger = at.ledger()
    first = Delivery("mail", "a-1", key="k", repeat="replay")
    at.perform(ledger, first)
    for call in ("a-2", "a-3"):
        answer = at.perform(ledger, first.again(call))
        at.tally.expect(told(answer) == "recorded", f"a delivery again was answered with `{told(answer)}`")


def _key_conflict(at: Site) -> None:
    ledger = at.ledger()
    first = Delivery("mail", "a-1", key="k", repeat="replay")
    at.perform(ledger, first)
    _refused(at, told(at.perform(ledger, first.again("a-2", payload="other"))), Code.KEY_REUSE_CONFLICT)
    _refused(at, told(at.perform(ledger, first.again("a-3", event="elsewhere"))), Code.KEY_REUSE_CONFLICT)


def _crash(at: Site) -> None:
    """The process dies between lease and answer; a retry waits until somebody looked."""
    at.child(Delivery("pay", "a-1"), die={"at": "during the sink, after the effect"})
    ledger = at.ledger()
    _refused(at, told(at.perform(ledger, Delivery("pay", "a-2"))), Code.OUTCOME_UNKNOWN)
    settle_unknown(ledger, at, ["a-1"])
    _refused(at, told(at.perform(ledger, Delivery("pay", "a-3", limit=1))), Code.EVENT_REPEATED)


def _changed_manifest(at: Site) -> None:
    """The capability of one action presented with another, and its nonce with another capability."""
    ledger = at.ledger()
    at.perform(ledger, _ONE)
    _refused(at, told(at.perform(ledger, Delivery("other", "a-2", sequence=2, capability="a-1"))), Code.CAPABILITY_USED)
    _refused(at, told(at.perform(ledger, Delivery("other", "a-3", sequence=2, nonce="a-1"))), Code.CAPABILITY_USED)


def _batch(at: Site) -> None:
    """A batch of three, where two are granted."""
    ledger = at.ledger()
    answers = [told(at.perform(ledger, Delivery(f"row-{n}", f"a-{n}", limit=2))) for n in range(3)]
    at.tally.expect(answers == ["lease", "lease", Code.GRANT_EXHAUSTED], f"a batch of three got {answers}")


def _expired(at: Site) -> None:
    ledger, now = at.ledger(), time.time()
    for number, late in enumerate((0.0, 5.0)):
        answer = at.consume(ledger, Delivery(f"late-{number}", f"a-{number}"), now=now, deadline=now - late)
        _refused(at, told(answer), Code.EXPIRED)


def _revoked(at: Site) -> None:
    ledger = at.ledger()
    at.perform(ledger, Delivery("first", "a-1", grant="pay"))
    ledger.revoke(TENANT, Mark(MarkKind.GRANT, "pay"), person="operator", reason="enough", now=time.time())
    for call in ("a-2", "a-3"):
        _refused(at, told(at.perform(ledger, Delivery("second", call, grant="pay"))), Code.REVOKED)


def _older_epoch(at: Site) -> None:
    """Drawn under one epoch, spent under the next; and policies that return are a new epoch."""
    ledger = at.ledger()
    old = ledger.epoch(TENANT)
    if old is None:
        raise AssertionError("a site has an epoch")
    for number, policies in enumerate(("others", "policies")):
        ledger.activate(TENANT, digest(policies), time.time())
        manifest, draw, entry = Delivery("stale", f"a-{number}").build(old, 1, time.time() + 30)
        answer = ledger.consume(manifest, draw, entry, time.time())
        at.tally.count(told(answer))
        _refused(at, told(answer), Code.EPOCH_CHANGED)


def _refused(at: Site, answer: str, code: Code) -> None:
    at.tally.expect(answer == code, f"expected {code}, saw `{answer}`")


TEN: Final[Sequence[tuple[str, Callable[[Site], None]]]] = (
    ("double spend", _double_spend),
    ("race for one capability", _race),
    ("delivered again under its key", _delivered_again),
    ("one key for two actions", _key_conflict),
    ("crash between lease and settlement", _crash),
    ("capability with another manifest", _changed_manifest),
    ("batch beyond the grant", _batch),
    ("past the deadline", _expired),
    ("revoked", _revoked),
    ("older epoch", _older_epoch),
)


def paper(ground: Ground, plan: Plan) -> Iterator[Tally]:
    """The ten cases."""
    for name, case in TEN:
        plan.report(f"paper: {name}")
        with site(ground, f"paper: {name}") as at:
            case(at)
            at.shut()
            at.check()
        yield at.tally
