"""The tree is that of RFC 9162: its published vectors, and a naive reading of its definitions."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxi.canonical import digest
from cxi.log.finding import Broken, FindingKind
from cxi.log.proof import Consistent, Included, Prover, check_consistency, check_inclusion, consistency, cover, inclusion
from cxi.log.tree import EMPTY, Frontier, leaf_hash, leaf_of, node_hash, read_digest, resume, root_of, write_digest

# The leaves, roots and proofs of the Certificate Transparency project's reference tests (RFC 6962; the same tree in RFC 9162).
LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
INCLUSIONS = {  # (leaf, from 1, and size) to the proof
    (1, 1): (),
    (1, 8): ("96a296d224f285c6", "5f083f0a1a33ca07", "6b47aaf29ee3c2af"),
    (6, 8): ("bc1a0643b12e4d2d", "ca854ea128ed050b", "d37ee418976dd957"),
    (3, 3): ("fac54203e7cc696c",),
    (2, 5): ("6e340b9cffb37a98", "5f083f0a1a33ca07", "bc1a0643b12e4d2d"),
}
CONSISTENCIES = {
    (1, 1): (),
    (1, 8): ("96a296d224f285c6", "5f083f0a1a33ca07", "6b47aaf29ee3c2af"),
    (6, 8): ("0ebc5d3437fbe2db", "ca854ea128ed050b", "d37ee418976dd957"),
    (2, 5): ("5f083f0a1a33ca07", "bc1a0643b12e4d2d"),
}


def prove(prover: Prover, leaves: list[bytes]) -> list[bytes]:
    for data in leaves:
        prover.append(leaf_hash(data))
    return prover.proof()


# --- the definitions of RFC 9162, read as they stand: the reference


def mth(data: list[bytes]) -> bytes:
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    k = 1
    while k * 2 < len(data):
        k *= 2
    return sha256(b"\x01" + mth(data[:k]) + mth(data[k:])).digest()


def path(m: int, data: list[bytes]) -> list[bytes]:
    if len(data) == 1:
        return []
    k = 1
    while k * 2 < len(data):
        k *= 2
    return [*path(m, data[:k]), mth(data[k:])] if m < k else [*path(m - k, data[k:]), mth(data[:k])]


def subproof(m: int, data: list[bytes], b: bool) -> list[bytes]:
    if m == len(data):
        return [] if b else [mth(data)]
    k = 1
    while k * 2 < len(data):
        k *= 2
    return [*subproof(m, data[:k], b), mth(data[k:])] if m <= k else [*subproof(m - k, data[k:], False), mth(data[:k])]


@pytest.mark.parametrize("size", range(1, 9))
def test_the_roots_are_the_published_ones(size: int) -> None:
    assert root_of(leaf_hash(data) for data in LEAVES[:size]).hex() == ROOTS[size - 1]


@pytest.mark.parametrize(("place", "proof"), INCLUSIONS.items())
def test_the_inclusion_proofs_are_the_published_ones(place: tuple[int, int], proof: tuple[str, ...]) -> None:
    leaf, size = place
    found = prove(inclusion(leaf - 1, size), LEAVES[:size])
    assert tuple(part.hex()[:16] for part in found) == proof
    answer = check_inclusion(leaf - 1, size, leaf_hash(LEAVES[leaf - 1]), found, bytes.fromhex(ROOTS[size - 1]))
    assert answer == Included(leaf - 1, size)


@pytest.mark.parametrize(("sizes", "proof"), CONSISTENCIES.items())
def test_the_consistency_proofs_are_the_published_ones(sizes: tuple[int, int], proof: tuple[str, ...]) -> None:
    old, size = sizes
    found = prove(consistency(old, size), LEAVES[:size])
    assert tuple(part.hex()[:16] for part in found) == proof
    roots = bytes.fromhex(ROOTS[old - 1]), bytes.fromhex(ROOTS[size - 1])
    assert check_consistency(old, size, *roots, found) == Consistent(old, size)


@given(st.lists(st.binary(max_size=3), max_size=70), st.data())
def test_roots_and_proofs_are_those_of_the_definitions(data: list[bytes], draw: st.DataObject) -> None:
    size = len(data)
    assert root_of(leaf_hash(one) for one in data) == mth(data)
    old = draw.draw(st.integers(0, size))
    expected = subproof(old, data, True) if old else []
    assert prove(consistency(old, size), data) == expected
    assert check_consistency(old, size, mth(data[:old]), mth(data), expected) == Consistent(old, size)
    if size:
        index = draw.draw(st.integers(0, size - 1))
        assert prove(inclusion(index, size), data) == path(index, data)
        assert check_inclusion(index, size, leaf_hash(data[index]), path(index, data), mth(data)) == Included(index, size)


@given(st.integers(1, 40), st.data())
def test_a_proof_of_which_anything_is_changed_does_not_hold(size: int, draw: st.DataObject) -> None:
    data = [bytes([n]) for n in range(size)]
    index, old = draw.draw(st.integers(0, size - 1)), draw.draw(st.integers(1, size))
    inside, root = path(index, data), mth(data)
    grown, before = subproof(old, data, True), mth(data[:old])
    other = sha256(b"other").digest()
    at = draw.draw(st.integers(0, max(len(inside), len(grown), 1) - 1))
    broken = [
        check_inclusion(index, size, leaf_hash(b"x"), inside, root),
        check_inclusion(index, size, leaf_hash(data[index]), inside, other),
        check_inclusion(index, size, leaf_hash(data[index]), [*inside, other], root),
        check_consistency(old, size, other, root, grown),
        check_consistency(old, size, before, other, grown),
        check_consistency(old, size, before, root, [*grown, other]),
    ]
    if inside:
        broken.append(check_inclusion(index, size, leaf_hash(data[index]), inside[:-1], root))
        swapped = [other if n == at % len(inside) else part for n, part in enumerate(inside)]
        broken.append(check_inclusion(index, size, leaf_hash(data[index]), swapped, root))
        elsewhere = (index + 1) % size
        broken.append(check_inclusion(elsewhere, size, leaf_hash(data[index]), inside, root))
    if grown:
        broken.append(check_consistency(old, size, before, root, grown[:-1]))
        swapped = [other if n == at % len(grown) else part for n, part in enumerate(grown)]
        broken.append(check_consistency(old, size, before, root, swapped))
    assert all(isinstance(answer, Broken) for answer in broken)


def test_what_is_no_proof_at_all_is_malformed() -> None:
    for answer in (
        check_inclusion(3, 3, EMPTY, [], EMPTY),
        check_inclusion(-1, 3, EMPTY, [], EMPTY),
        check_inclusion(0, 2, EMPTY, [b"short"], EMPTY),
        check_consistency(4, 3, EMPTY, EMPTY, []),
        check_consistency(1, 3, EMPTY, EMPTY, [b"short"]),
    ):
        assert isinstance(answer, Broken)
        assert answer.findings[0].kind is FindingKind.MALFORMED
    for call in (lambda: inclusion(2, 2), lambda: consistency(3, 2), lambda: consistency(2, 3).proof()):
        with pytest.raises(ValueError):
            call()


def test_an_older_log_that_is_no_beginning_is_a_fork() -> None:
    answer = check_consistency(3, 8, mth([b"a", b"b", b"c"]), mth(LEAVES), subproof(3, LEAVES, True))
    assert isinstance(answer, Broken)
    assert [(finding.kind, finding.seq) for finding in answer.findings] == [(FindingKind.FORKED, 3)]
    assert isinstance(check_consistency(3, 3, mth(LEAVES[:3]), mth(LEAVES[:2]), []), Broken)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_frontier_that_was_left_goes_on_to_the_same_root(first: int, more: int) -> None:
    data = [n.to_bytes(2) for n in range(first + more)]
    frontier = Frontier()
    for one in data[:first]:
        frontier.append(leaf_hash(one))
    later = resume(frontier.size, frontier.copy().peaks)
    for one in data[first:]:
        later.append(leaf_hash(one))
    assert later.root() == mth(data)
    assert len(later.peaks) == (first + more).bit_count()


@given(st.integers(0, 150), st.integers(0, 150))
def test_a_run_of_leaves_is_grafted_by_its_subtrees(first: int, more: int) -> None:
    data = [n.to_bytes(2) for n in range(first + more)]
    frontier = Frontier()
    for one in data[:first]:
        frontier.append(leaf_hash(one))
    spans = cover(first, first + more)
    assert [at for span, _ in spans for at in range(*span)] == list(range(first, first + more))
    assert len(spans) <= 2 * max(1, (first + more).bit_length())
    for (start, end), height in spans:
        assert end - start == 1 << height
        frontier.graft(mth(data[start:end]), height)
    assert frontier.root() == mth(data)


def test_a_subtree_stands_only_where_the_tree_has_one() -> None:
    frontier = Frontier(1, [EMPTY])
    with pytest.raises(ValueError):
        frontier.graft(EMPTY, 1)
    for size, peaks in ((1, []), (3, [EMPTY]), (2, [EMPTY, EMPTY]), (1, [b"x"]), (-1, [])):
        with pytest.raises(ValueError):
            resume(size, peaks)


def test_a_leaf_holds_the_bytes_of_the_entry_s_hash() -> None:
    text = digest("x")
    assert leaf_of(text) == sha256(b"\x00" + bytes.fromhex(text.removeprefix("sha256:"))).digest()
    assert write_digest(read_digest(text)) == text
    assert node_hash(EMPTY, EMPTY) == sha256(b"\x01" + EMPTY + EMPTY).digest()
    for odd in ("", "sha256:", text[:-2], text.upper(), text + "00", "md5:" + text[7:], text[:8] + " " + text[8:], "x" * 71):
        with pytest.raises(ValueError):
            read_digest(odd)
