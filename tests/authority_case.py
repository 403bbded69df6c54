"""A small world for tests of field authority: files in memory, contracts in a line, requests, releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from cxi.authority.contract import AllowedOrigin, FieldContract, NoEffect, Origin, ResultContract, ToolContract, TypeRef
from cxi.authority.field import FieldContext, resolve
from cxi.authority.reading import read_call
from cxi.authority.release import Release
from cxi.authority.request import named
from cxi.canonical import JsonValue, digest
from cxi.effects.snapshot import RecordingSnapshot
from cxi.errors import Refused
from cxi.manifest import CanonicalCall, FieldEvidence, Role
from cxi.provenance import Channel, RequestChannel, Segment, Source, TrustedRequest, open_request
from cxi.values import value_type
from cxi.values.base import Entry, EntryKind, Root, Value

ROOT = "/srv/repo"
EPOCH = (1, digest("epoch"))


class MemoryWorld:
    """Files and folders by absolute path, and git's answers by (question, arguments)."""

    def __init__(self, files: Iterable[str] = (), git: Mapping[tuple[str, ...], bytes] | None = None) -> None:
        self.files = {f"{ROOT}/{name}" for name in files}
        self.git_answers = dict(git or {})

    def entry(self, path: str) -> Entry:
        if path in self.files:
            return Entry(EntryKind.FILE, 0o644, links=1)
        if path == "/" or any(name.startswith(path + "/") for name in (*self.files, f"{ROOT}/x")):
            return Entry(EntryKind.FOLDER, 0o755)
        return Entry(EntryKind.ABSENT)

    def names(self, path: str) -> tuple[str, ...] | None:
        start = path.rstrip("/") + "/"
        return tuple(sorted({name[len(start) :].split("/")[0] for name in self.files if name.startswith(start)}))

    def content(self, path: str) -> bytes | None:
        return b"" if path in self.files else None

    def git(self, repository: str, question: str, arguments: tuple[str, ...]) -> bytes | None:
        return self.git_answers.get((question, *arguments))


def snapshot_of(world: MemoryWorld) -> RecordingSnapshot:
    return RecordingSnapshot(world, ROOT)


def root_of(world: MemoryWorld | None = None) -> Root:
    return snapshot_of(world or MemoryWorld()).root


def types_of(*names: str) -> tuple[TypeRef, ...]:
    return tuple(TypeRef(name, MappingProxyType({})) for name in names)


def protected(
    path: str,
    type: str | tuple[TypeRef, ...] = "RepoPath",
    origins: Iterable[AllowedOrigin] = (Origin.REQUEST,),
    *,
    together: str = "",
    after: str = "",
    required: bool = True,
    nullable: bool = False,
    narrows: bool = False,
    max_items: int = 0,
) -> FieldContract:
    types = types_of(type) if isinstance(type, str) else type
    return FieldContract(
        path, Role.PROTECTED, types, tuple(origins), together, after, required, nullable, narrows=narrows, max_items=max_items
    )


def payload(path: str, *, required: bool = True, nullable: bool = False) -> FieldContract:
    return FieldContract(path, Role.PAYLOAD, required=required, nullable=nullable)


def contract_of(
    *fields: FieldContract, name: str = "files.write_file", sink: bool = True, result: ResultContract | None = None
) -> ToolContract:
    server, _, tool = name.partition(".")
    table = {field.path: field for field in fields}
    return ToolContract(server, tool, table, NoEffect(), sink, ("Server", server), result or ResultContract())


def request_of(*texts: str) -> TrustedRequest:
    segments = []
    for index, text in enumerate(texts):
        segment = open_request(f"r-{index}", RequestChannel.HOST_API, "person", text)
        assert isinstance(segment, Segment)
        segments.append(segment)
    return TrustedRequest(tuple(segments))


def outsider(text: str, name: str = "ci.get_report", id: str = "s-1") -> Segment:
    return Segment.of(id, Source(Channel.TOOL_RESULT, name), text)


def value_of(type: str, raw: JsonValue, root: Root | None = None) -> Value:
    value = value_type(type, {}).parse(raw, root or root_of())
    assert isinstance(value, Value), value
    return value


def release_of(
    value: Value,
    destination: str = "files.write_file.path",
    *,
    selection: str = "one",
    segment: str = "s-1",
    record: str = "$[0]",
    position: str = "$[0]",
) -> Release:
    return Release(
        value, segment, position, record, destination, "d@sha256:0", selection, "fix", EPOCH, MappingProxyType({}), 1e12
    )


def called(contract: ToolContract, arguments: JsonValue, root: Root | None = None) -> CanonicalCall:
    call = read_call(contract, arguments, root or root_of(), constants={})
    assert isinstance(call, CanonicalCall), call
    return call


def decided(contract: ToolContract, arguments: JsonValue, context: FieldContext) -> tuple[FieldEvidence, ...] | Refused:
    return resolve(contract, called(contract, arguments, context.root).fields, context)


def codes_of(answer: object) -> tuple[str, ...]:
    """The codes of a refusal; empty for anything else."""
    return answer.codes if isinstance(answer, Refused) else ()


def affirmed(text: str, type: str = "RepoPath", world: MemoryWorld | None = None) -> list[JsonValue]:
    """The values of a type that a one-segment request gives authority to, in order."""
    found = named(request_of(text), [value_type(type, {})], root_of(world))
    return [item.value.canonical for item in found if item.affirmed]
