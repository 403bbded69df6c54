"""Whatever is done to a log, the finding names what and where: random logs of random entries, damaged at random.

What cannot be seen is stated here too: a cut behind the last checkpoint, and a rewrite behind it with all hashes made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import digest
from cxi.log.chain import Verified, verify
from cxi.log.checkpoint import head_of, sign
from cxi.log.entry import GENESIS, ChainedEntry, EntryType, LogEntry
from cxi.log.finding import Broken
from cxi.log.note import write_note
from cxi.log.tree import Frontier, leaf_of, write_digest

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
ORIGIN = "cxi/t"

texts = st.text(max_size=6)
bodies = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts, max_size=3)
plain_kinds = st.sampled_from([kind for kind in EntryType if kind is not EntryType.KEY])
told = st.builds(LogEntry, plain_kinds, texts, texts, bodies)


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done, and how a verifier must name it."""

    rows: list[ChainedEntry]
    kind: str
    seq: int


def chained(entries: Sequence[LogEntry], *, first: int = 1, previous: str = GENESIS) -> list[ChainedEntry]:
    found: list[ChainedEntry] = []
    for seq, entry in enumerate(entries, start=first):
        found.append(ChainedEntry(seq, previous, 1_700_000_000.0 + seq, entry))
        previous = found[-1].hash
    return found


def signed(rows: Sequence[ChainedEntry], size: int, *, note: bool = False) -> object:
    tree = Frontier()
    for row in rows[:size]:
        tree.append(leaf_of(row.hash))
    if note:
        return write_note(ORIGIN, size, write_digest(tree.root()), KEY)
    return sign(head_of(ORIGIN, rows[size - 1].hash if size else GENESIS, 5.0, tree), KEY)


def found(rows: Sequence[ChainedEntry], *checkpoints: object) -> list[tuple[str, int]]:
    answer = verify(rows, checkpoints, [KEY.public_key()])  # type: ignore[arg-type]
    return [(str(finding.kind), finding.seq) for finding in answer.findings] if isinstance(answer, Broken) else []


logs = st.lists(told, min_size=3, max_size=14).map(chained)


IN_PLACE = ("remove", "alter", "relink", "repeat", "plant", "swap")
WAYS = (*IN_PLACE, "take out", "put in", "move")


def do(what: str, rows: list[ChainedEntry], seq: int, fresh: Sequence[LogEntry]) -> Damage:
    """Change a log at a place, which is not its last; with the finding that this must give."""
    row, count = rows[seq - 1], len(fresh)
    before, after = rows[: seq - 1], rows[seq:]
    match what:
        case "take out" if len(rows) - seq > count:  # and number those behind anew, their links as they were
            return Damage(before + [replace(one, seq=one.seq - count) for one in rows[seq - 1 + count :]], "removed", seq)
        case "remove" | "take out":
            return Damage(before + after, "removed", seq)
        case "alter":
            changed = replace(row, entry=replace(row.entry, body={**row.entry.body, "planted": 1}))
            return Damage([*before, changed, *after], "altered", seq)
        case "relink":
            return Damage([*before, replace(row, previous=digest("elsewhere")), *after], "altered", seq)
        case "repeat":
            return Damage([*before, row, row, *after], "repeated", seq)
        case "plant":  # at a place that is taken
            return Damage([*before, row, replace(row, entry=fresh[0], time=1.0), *after], "repeated", seq)
        case "put in":  # and number those behind anew, their links as they were
            planted = chained(fresh, first=seq, previous=row.previous)
            return Damage(before + planted + [replace(one, seq=one.seq + count) for one in rows[seq - 1 :]], "inserted", seq)
        case "move":
            return Damage([*before, *after, row], "reordered", seq)
        case _:
            return Damage([*before, rows[seq], row, *rows[seq + 1 :]], "reordered", seq)


@st.composite
def damages(draw: st.DrawFn, rows: list[ChainedEntry]) -> Damage:
    seq = draw(st.integers(1, len(rows) - 1))
    return do(draw(st.sampled_from(WAYS)), rows, seq, draw(st.lists(told, min_size=1, max_size=3)))


@given(st.data())
def test_whatever_is_done_to_one_place_is_named_by_its_kind_and_place_alone(data: st.DataObject) -> None:
    rows = data.draw(logs)
    damage = data.draw(damages(rows))
    note = data.draw(st.booleans())
    assert found(rows, signed(rows, len(rows)), signed(rows, len(rows), note=True)) == []
    answer = found(damage.rows, signed(rows, len(rows), note=note))
    assert answer == [(damage.kind, damage.seq)]


@given(st.data())
def test_without_any_checkpoint_too_as_long_as_something_stands_behind_it(data: st.DataObject) -> None:
    rows = data.draw(logs)
    damage = data.draw(damages(rows))
    named = found(damage.rows)
    if (damage.kind, damage.seq) not in named:
        # Two stories fit where the next entry is the last: the link of the one, or the text of the other was changed.
        assert damage.kind in ("altered", "removed")
        assert damage.seq == len(rows) - 1
        assert {kind for kind, _ in named} == {"altered"}
        assert abs(named[0][1] - damage.seq) <= 1


@given(st.data())
def test_damage_in_two_places_is_named_at_both(data: st.DataObject) -> None:
    rows = chained(data.draw(st.lists(told, min_size=10, max_size=14)))
    fresh = data.draw(st.lists(told, min_size=1, max_size=3))
    second = do(data.draw(st.sampled_from(WAYS)), rows, data.draw(st.integers(6, len(rows) - 1)), fresh)
    first = do(data.draw(st.sampled_from(IN_PLACE)), second.rows, data.draw(st.integers(1, 3)), fresh)
    assert {(first.kind, first.seq), (second.kind, second.seq)} == set(found(first.rows, signed(rows, len(rows))))


@given(st.data())
def test_a_cut_is_named_as_far_as_a_checkpoint_reaches(data: st.DataObject) -> None:
    rows = data.draw(logs)
    size, left = data.draw(st.integers(1, len(rows))), data.draw(st.integers(0, len(rows)))
    note = data.draw(st.booleans())
    answer = found(rows[:left], signed(rows, size, note=note))
    assert answer == ([("truncated", left + 1)] if left < size else [])  # a cut behind the checkpoint cannot be seen


@given(st.data())
def test_a_rewrite_with_all_hashes_is_shown_by_the_first_checkpoint_behind_it(data: st.DataObject) -> None:
    rows = data.draw(logs)
    seq = data.draw(st.integers(1, len(rows)))
    sizes = sorted(data.draw(st.sets(st.integers(1, len(rows)), min_size=1, max_size=3)))
    changed = replace(rows[seq - 1].entry, body={**rows[seq - 1].entry.body, "planted": 1})
    entries = [row.entry for row in rows]
    rewritten = chained([*entries[: seq - 1], changed, *entries[seq:]])
    note = data.draw(st.booleans())
    answer = found(rewritten, *(signed(rows, size, note=note) for size in sizes))
    assert answer == [("altered", size) for size in sizes if size >= seq]  # behind the last one it cannot be seen


@given(st.data())
def test_a_whole_log_verifies_under_any_of_its_checkpoints(data: st.DataObject) -> None:
    rows = data.draw(logs)
    sizes = data.draw(st.sets(st.integers(0, len(rows))))
    answer = verify(rows, [signed(rows, size, note=size % 2 == 1) for size in sizes], [KEY.public_key()])  # type: ignore[misc]
    assert answer == Verified(len(rows), rows[-1].hash, max(sizes, default=0))
