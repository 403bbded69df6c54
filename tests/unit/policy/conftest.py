from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cxi.effects.base import Atom
from cxi.effects.entity import atom_request
from cxi.errors import Refused
from cxi.manifest import Assurance
from cxi.policy.base import Monitor, Permitted, PolicyRequest
from cxi.policy.registry import PolicySource, load, shipped
from cxi.policy.schema import EvidenceSurface, SchemaJson, ToolSurface, make_schema
from cxi.policy.vocabulary import STRING, STRINGS
from cxi.values.base import Root

Decide = Callable[..., Permitted | Refused]

TOOLS = [
    ToolSurface("files.write_file", "Server", {"path": STRING, "edits[].oldText": STRINGS.optional, "mode": STRING.optional}),
    ToolSurface("tickets.write_query", "Server", {"query.rows": STRINGS.optional}),
]


@pytest.fixture(scope="session")
def schema() -> SchemaJson:
    return make_schema(["maintainer", "reviewer"], TOOLS, [EvidenceSurface("test-run", {})], ["fix-bug"])


@pytest.fixture(scope="session")
def maintainer() -> PolicySource:
    file = Path(__file__).with_name("maintainer.cedar")
    return PolicySource(file.name, file.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def monitor_of(schema: SchemaJson) -> Callable[..., Monitor]:
    """A monitor over policies that are written in the test."""

    @cache
    def make(*texts: str, base: bool = False) -> Monitor:
        sources = [PolicySource(f"{index}.cedar", text) for index, text in enumerate(texts)]
        return load([*sources, *([shipped()] if base else [])], schema, agents=["maintainer", "reviewer"]).monitor()

    return make


@pytest.fixture
def ask() -> Callable[..., PolicyRequest]:
    """A request for an atom, in the root `/repo`."""

    def make(
        kind: str,
        target: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        agent: str = "maintainer",
        evidence: Mapping[str, Mapping[str, Any]] | None = None,
        approval: bool = False,
        pattern: bool = False,
    ) -> PolicyRequest:
        made = atom_request(
            Atom(kind, target, attributes or {}, pattern=pattern),
            agent=agent,
            root=Root("/repo", None),  # type: ignore[arg-type]  # nothing looks
            evidence=evidence or {},
            approval=approval,
            task="fix-bug",
            tool="files.write_file",
            assurance=Assurance.CHECKED,
        )
        assert isinstance(made, PolicyRequest)
        return made

    return make


@pytest.fixture
def test_run() -> Callable[[str], dict[str, Any]]:
    def make(result: str) -> dict[str, Any]:
        return {
            "test-run": {
                "result": result,
                "issuer": "ci.get_report",
                "subject": "tickets",
                "revision": "4b825dc",
                "time": 1_760_000_000,
                "expires": 1_760_003_600,
            }
        }

    return make
