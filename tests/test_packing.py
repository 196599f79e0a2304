"""Packing against brute force: loads of plain best-fit-decreasing, exact cover, figures counted token by token."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import Strategy
from tokpack_core.errors import InputError
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.strategies import pack
from tokpack_core.packing.truncation import PackingFigures, packing_figures

STRATEGIES: tuple[Strategy, ...] = ("naive", "concat", "best_fit", "first_fit_decreasing", "first_fit")

documents = st.lists(st.integers(0, 300), max_size=60)


def plain_best_fit_decreasing(lengths: list[int], capacity: int) -> list[int]:
    """Loads of all packs, by trying every open pack for every item."""
    loads = [capacity for length in lengths for _ in range(length // capacity)]
    rooms: list[int] = []
    for item in sorted((length % capacity for length in lengths), reverse=True):
        fitting = [(room, i) for i, room in enumerate(rooms) if room >= item]
        if item and fitting:
            rooms[min(fitting)[1]] -= item
        elif item:
            rooms.append(capacity - item)
    return sorted(loads + [capacity - room for room in rooms])


def token_layout(plan: PackingPlan) -> list[list[tuple[int, int]]]:
    """Every pack as the list of (document, token number) of its positions."""
    packs = []
    for first, last in zip(plan.pack_offsets[:-1].tolist(), plan.pack_offsets[1:].tolist(), strict=True):
        tokens: list[tuple[int, int]] = []
        for s in range(first, last):
            begin = int(plan.start[s])
            tokens += [(int(plan.document[s]), t) for t in range(begin, begin + int(plan.length[s]))]
        packs.append(tokens)
    return packs


def brute_force_figures(plan: PackingPlan, lengths: list[int], capacity: int) -> PackingFigures:
    packs = token_layout(plan)
    pack_of = {token: number for number, tokens in enumerate(packs) for token in tokens}
    cuts = [
        (document, token)
        for document, length in enumerate(lengths)
        for token in range(1, length)
        if pack_of[document, token] != pack_of[document, token - 1]
    ]
    ends = [tokens[-1] for tokens in packs]
    return PackingFigures(
        documents=len(lengths),
        empty_documents=lengths.count(0),
        tokens=sum(lengths),
        packs=len(packs),
        padding=sum(capacity - len(tokens) for tokens in packs),
        cuts=len(cuts),
        needless_cuts=sum(lengths[document] <= capacity for document, _ in cuts),
        unavoidable_cuts=sum(math.ceil(length / capacity) - 1 for length in lengths if length),
        tokens_lost=sum(lengths) - len(pack_of),
        out_of_context_tokens=sum(pack_of[document, 0] != pack_of[document, token] for document, token in pack_of),
        foreign_labels=sum(token + 1 < lengths[document] for document, token in ends),
        lower_bound_packs=math.ceil(sum(lengths) / capacity),
    )


def check_cover(plan: PackingPlan, lengths: list[int], capacity: int) -> None:
    """Every token of every document stands in one segment; chunks are numbered in order; no pack overflows."""
    packs = token_layout(plan)
    assert sorted(token for tokens in packs for token in tokens) == [
        (document, token) for document, length in enumerate(lengths) for token in range(length)
    ]
    assert all(1 <= len(tokens) <= capacity for tokens in packs)
    assert plan.loads().tolist() == [len(tokens) for tokens in packs]
    assert plan.pack_offsets[0] == 0
    assert plan.pack_offsets[-1] == plan.segments
    order = np.lexsort((plan.start, plan.document))
    for document in range(len(lengths)):
        rows = order[plan.document[order] == document]
        assert plan.chunk[rows].tolist() == list(range(rows.size))
        assert set(plan.chunks[rows].tolist()) <= {rows.size}
    dtypes = [getattr(plan, name).dtype.name for name in plan.__dataclass_fields__]
    assert dtypes == ["int64", "int32", "int64", "int32", "int32", "int32"]


@settings(max_examples=60, deadline=None)
@given(lengths=documents, capacity=st.integers(1, 90), strategy=st.sampled_from(STRATEGIES))
def test_every_token_once_and_figures_by_brute_force(lengths: list[int], capacity: int, strategy: Strategy) -> None:
    plan = pack(np.array(lengths, np.int64), capacity, strategy)
    check_cover(plan, lengths, capacity)
    figures = packing_figures(plan, np.array(lengths, np.int64), capacity)
    assert figures == brute_force_figures(plan, lengths, capacity)
    assert figures.tokens_lost == 0
    if strategy != "concat":
        assert figures.needless_cuts == 0
        assert figures.cuts == figures.unavoidable_cuts


@pytest.mark.parametrize("capacity", range(1, 74))
def test_loads_equal_plain_best_fit_decreasing_at_every_length(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    for size in (0, 1, 7, 90):
        lengths = (rng.random(size) ** 2 * 2.5 * capacity).astype(np.int32)
        plan = pack(lengths, capacity, "best_fit")
        assert sorted(plan.loads().tolist()) == plain_best_fit_decreasing(lengths.tolist(), capacity)


@settings(max_examples=150, deadline=None)
@given(lengths=documents, capacity=st.integers(1, 400))
def test_loads_equal_plain_best_fit_decreasing(lengths: list[int], capacity: int) -> None:
    plan = pack(np.array(lengths, np.int64), capacity, "best_fit")
    assert sorted(plan.loads().tolist()) == plain_best_fit_decreasing(lengths, capacity)


@pytest.mark.parametrize("capacity", [262_143, 262_144, 262_145, 5_000_011, 2**31 - 1])
def test_wide_packs_are_packed_by_comparison_sort_with_the_same_loads(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    lengths = np.concatenate(
        [
            (rng.random(200) * 2.2 * capacity).astype(np.int64),
            rng.integers(0, 4, 100) * (capacity // 7),
            [capacity - 1, capacity, capacity + 1, 2 * capacity, 1, 1, 0],
        ]
    )
    plan = pack(lengths, capacity, "best_fit")
    assert sorted(plan.loads().tolist()) == plain_best_fit_decreasing(lengths.tolist(), capacity)
    figures = packing_figures(plan, lengths, capacity)
    assert (figures.tokens_lost, figures.needless_cuts) == (0, 0)


def test_table_and_comparison_sort_give_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(5).integers(0, 2_000, 500)
    tabled = pack(lengths, 700, "best_fit")
    monkeypatch.setattr("tokpack_core.packing.strategies.HISTOGRAM_ENTRIES", 1)
    compared = pack(lengths, 700, "best_fit")
    for name in tabled.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(tabled, name), getattr(compared, name))


def test_best_fit_plan_by_hand() -> None:
    # L 10. Full chunk of document 0 (13 tokens) first; then 8, 7, 3 (rest of 0), 3, 2 with ties in document order.
    plan = pack(np.array([13, 3, 8, 0, 2, 7]), 10, "best_fit")
    packs = [
        [(int(plan.document[s]), int(plan.start[s]), int(plan.length[s])) for s in range(a, b)]
        for a, b in zip(plan.pack_offsets[:-1], plan.pack_offsets[1:], strict=True)
    ]
    assert sorted(packs) == [
        [(0, 0, 10)],
        [(1, 0, 3)],
        [(2, 0, 8), (4, 0, 2)],
        [(5, 0, 7), (0, 10, 3)],
    ]
    assert packs[0] == [(0, 0, 10)]
    figures = packing_figures(plan, np.array([13, 3, 8, 0, 2, 7]), 10)
    assert figures.as_dict() == {
        "documents": 6,
        "empty_documents": 1,
        "tokens": 33,
        "packs": 4,
        "padding": 7,
        "cuts": 1,
        "needless_cuts": 0,
        "unavoidable_cuts": 1,
        "tokens_lost": 0,
        "out_of_context_tokens": 3,
        "foreign_labels": 1,
        "lower_bound_packs": 4,
        "alignment_padding": 0,
        "dropped_documents": 0,
        "dropped_document_tokens": 0,
        "dropped_chunks": 0,
        "dropped_chunk_tokens": 0,
        "utilization": 33 / 40,
    }


def test_segments_of_a_best_fit_pack_stand_in_decreasing_length() -> None:
    plan = pack(np.random.default_rng(3).integers(0, 900, 5_000), 512, "best_fit")
    within = np.ones(plan.segments, bool)
    within[plan.pack_offsets[:-1]] = False
    assert within.any()
    assert (np.diff(plan.length, prepend=0)[within] <= 0).all()


def test_concat_keeps_its_last_pack_and_cuts_anywhere() -> None:
    plan = pack(np.array([4, 0, 3, 9]), 5, "concat")
    assert plan.pack_offsets.tolist() == [0, 2, 4, 5, 6]
    assert plan.document.tolist() == [0, 2, 2, 3, 3, 3]
    assert plan.start.tolist() == [0, 0, 1, 0, 3, 8]
    assert plan.length.tolist() == [4, 1, 2, 3, 5, 1]
    figures = packing_figures(plan, np.array([4, 0, 3, 9]), 5)
    assert (figures.cuts, figures.needless_cuts, figures.unavoidable_cuts, figures.padding) == (3, 1, 1, 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_to_pack(strategy: Strategy) -> None:
    for lengths in (np.zeros(0, np.int64), np.zeros(3, np.int32)):
        plan = pack(lengths, 8, strategy)
        assert (plan.packs, plan.segments) == (0, 0)
        assert plan.pack_offsets.tolist() == [0]
        figures = packing_figures(plan, lengths, 8)
        assert figures.utilization == 1.0
        assert figures.empty_documents == lengths.size


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int32, np.int64])
def test_length_dtypes_give_one_plan(dtype: type[np.integer]) -> None:
    values = np.random.default_rng(1).integers(0, 120, 300)
    want, got = pack(values, 64, "best_fit"), pack(values.astype(dtype), 64, "best_fit")
    np.testing.assert_array_equal(want.document, got.document)
    np.testing.assert_array_equal(want.pack_offsets, got.pack_offsets)


def test_lengths_that_cannot_be_packed_are_named() -> None:
    with pytest.raises(InputError, match="document 2 has a negative length"):
        pack(np.array([1, 2, -3]), 8, "best_fit")
    with pytest.raises(InputError, match=r"document 1 has more than 2\^31 - 1 chunks of 2 tokens"):
        pack(np.array([1, 2**32]), 2, "naive")
    with pytest.raises(ValueError, match="sequence_length must be 1 to"):
        pack(np.array([1]), 0, "best_fit")


def test_figures_of_blocks_add_up() -> None:
    lengths = np.random.default_rng(9).integers(0, 300, 400)
    blocks = [packing_figures(pack(part, 128, "best_fit"), part, 128) for part in np.split(lengths, 4)]
    total = sum(blocks, PackingFigures())
    assert total.documents == 400
    assert total.tokens == int(lengths.sum())
    assert total.packs == sum(block.packs for block in blocks)
    assert total.utilization == total.tokens / (total.packs * 128)
    assert PackingFigures.from_dict(total.as_dict()) == total


def test_lost_tokens_show_in_the_figures() -> None:
    lengths = np.array([5, 6])
    plan = pack(lengths, 8, "naive")
    shortened = PackingPlan(plan.pack_offsets, plan.document, plan.start, plan.length - 1, plan.chunk, plan.chunks)
    assert packing_figures(shortened, lengths, 8).tokens_lost == 2


@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 65_535, 65_536, 65_537, 300_000])
def test_permutation_is_a_bijection(n: int) -> None:
    order = permuted(n, b"key")
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


def plain_permuted(n: int, key: bytes, half_bits: int) -> list[int]:
    """The definition in `permutation`'s docstring, in Python integers."""
    digest = hashlib.blake2b(key).digest()
    keys = [int.from_bytes(digest[i : i + 8], "little") for i in range(0, 64, 8)]
    modulus, mask = 2**64, 2**half_bits - 1

    def mix(word: int) -> int:
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % modulus
        word = (word ^ word >> 27) * 0x94D049BB133111EB % modulus
        return word ^ word >> 31

    def once(word: int) -> int:
        left, right = word >> half_bits, word & mask
        for round_key in keys:
            left, right = right, left ^ (mix(right ^ round_key) & mask)
        return left << half_bits | right

    out = []
    for i in range(n):
        word = once(i)
        while word >= n:
            word = once(word)
        out.append(word)
    return out


def test_permutation_is_the_documented_network() -> None:
    assert permuted(1_000, b"seed 0").tolist() == plain_permuted(1_000, b"seed 0", 8)
    assert permuted(70_000, b"").tolist() == plain_permuted(70_000, b"", 9)


def test_permutation_is_pinned() -> None:
    # Changing these numbers changes the bytes of every dataset ever built.
    assert permuted(12, b"tokpack").tolist() == [11, 4, 2, 0, 9, 8, 3, 10, 1, 6, 7, 5]


def test_permutation_depends_on_the_key_and_leaves_no_order() -> None:
    first, second = permuted(10_000, b"a"), permuted(10_000, b"b")
    assert np.count_nonzero(first == second) < 20  # 1 expected by chance
    position = np.arange(10_000)
    assert abs(np.corrcoef(position, first)[0, 1]) < 0.05
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.05


def test_every_order_of_three_arises() -> None:
    orders = [tuple(permuted(3, bytes([a, b])).tolist()) for a in range(20) for b in range(30)]
    counts = {order: orders.count(order) for order in set(orders)}
    assert len(counts) == 6
    assert all(60 < count < 140 for count in counts.values())  # 100 expected
