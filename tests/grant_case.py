"""A shop over the gate: `it.pay` and `it.check`, with the terms of their grants given by each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gate_case import NAMES, Case, opened

TO = {"role": "protected", "type": "Text", "from": ["any-of-request"]}
PAY: dict[str, Any] = {
    "pay": {
        "effect": "call",
        "fields": {"to": TO, "amount": {"role": "payload"}, "rows": {"role": "payload", "optional": True}},
        "repeat": "allow",
    },
    "check": {"effect": "call", "fields": {"to": TO}, "repeat": "allow"},
}
POLICY = """
@id("pays") permit (principal, action in [Action::"tool:it.pay", Action::"tool:it.check"], resource);
"""
REQUEST = "Please pay `bob` and `eve` and check `bob` and `eve`."


@contextmanager
def shop(grants: dict[str, Any], standing: dict[str, Any] | None = None) -> Iterator[Case]:
    terms = {"tasks": {"case": {"grants": grants}}, **({"grants": standing} if standing else {})}
    with opened(REQUEST, contracts=PAY, policies=POLICY, names=(*NAMES, *PAY), **terms) as case:
        yield case


def pay(case: Case, to: str = "bob", amount: Any = 1, **more: Any) -> tuple[str, ...]:
    outcome = case.call("pay", to=to, amount=amount, **more)
    return tuple(outcome.codes) or (outcome.kind,)


def drawn(case: Case) -> list[str]:
    return [found.grant for found in reversed(case.guard.ledger.calls("local"))]
