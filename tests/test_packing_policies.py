"""Strategies, policies and two limits against brute force; noise, mixing and what policies drop, counted by hand."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.test_packing import token_layout
from tokpack_core.config import PackingConfig
from tokpack_core.errors import InputError
from tokpack_core.packing import two_limits
from tokpack_core.packing.dropped import Dropped
from tokpack_core.packing.mixing import Mixing, measure_mixing
from tokpack_core.packing.order import noisy_decreasing
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.policies import pack_documents
from tokpack_core.packing.strategies import pack
from tokpack_core.packing.truncation import PackingFigures, packing_figures
from tokpack_core.packing.two_limits import PORTFOLIO, lower_bound, martello_toth, pack_two_limits
from tokpack_core.packing.two_limits_kernels import best_fit_two
from tokpack_core.packing.two_limits_lookahead_kernels import CANDIDATES, next_item

documents = st.lists(st.integers(0, 300), max_size=60)


@st.composite
def packings(draw: st.DrawFn) -> PackingConfig:
    align = draw(st.sampled_from([1, 1, 2, 4, 6]))
    units = draw(st.integers(1, 25))
    strategy = draw(st.sampled_from(["naive", "concat", "best_fit", "first_fit_decreasing", "first_fit"]))
    free = strategy != "concat"
    long_documents = draw(st.sampled_from(["chunk", "chunk", "drop"]))
    cuts = free and long_documents == "chunk"
    min_chunk = draw(st.integers(1, max(units // 2 * align, 1))) if cuts else 1
    return PackingConfig(
        strategy=strategy,
        sequence_length=align * units,
        align=align,
        noise=draw(st.sampled_from([0.0, 0.3])) if strategy == "best_fit" else 0.0,
        long_documents=long_documents,
        documents_per_pack=draw(st.none() | st.integers(1, 5)) if free and strategy != "naive" else None,
        min_chunk=min_chunk,
        short_chunks=draw(st.sampled_from(["balance", "drop"])) if min_chunk > 1 else "balance",
    )


def expected_drops(lengths: list[int], packing: PackingConfig) -> tuple[set[tuple[int, int]], Dropped]:
    """Every token (document, number) that is to be in the plan, and what is not."""
    size = packing.sequence_length
    kept, documents, document_tokens, chunks, chunk_tokens = set(), 0, 0, 0, 0
    for document, length in enumerate(lengths):
        rest = length % size if length > size else 0
        if length > size and packing.long_documents == "drop":
            documents, document_tokens, length = documents + 1, document_tokens + length, 0
        elif 0 < rest < packing.min_chunk and packing.short_chunks == "drop":
            chunks, chunk_tokens, length = chunks + 1, chunk_tokens + rest, length - rest
        kept |= {(document, token) for token in range(length)}
    return kept, Dropped(documents, document_tokens, chunks, chunk_tokens)


@settings(max_examples=250, deadline=None)
@given(lengths=documents, packing=packings())
def test_policies_keep_what_they_promise(lengths: list[int], packing: PackingConfig) -> None:
    size, align = packing.sequence_length, packing.align
    packed = pack_documents(np.array(lengths, np.int64), packing, b"key")
    plan = packed.plan
    kept, dropped = expected_drops(lengths, packing)
    assert packed.dropped == dropped
    tokens = [token for pack in token_layout(plan) for token in pack]
    assert sorted(tokens) == sorted(kept)

    pieces = list(
        zip(*(a.tolist() for a in (plan.document, plan.start, plan.length, plan.chunk, plan.chunks)), strict=True)
    )
    by_pack = [pieces[a:b] for a, b in pairwise(plan.pack_offsets.tolist())]
    for pack_pieces in by_pack:
        assert sum(-(-length // align) * align for _, _, length, _, _ in pack_pieces) <= size
        assert 1 <= len(pack_pieces) <= (packing.documents_per_pack or math.inf)
    for document, length in enumerate(lengths):
        own = sorted(piece[1:] for piece in pieces if piece[0] == document)
        trimmed = own and length > size and sum(piece[1] for piece in own) < length
        assert [piece[2] for piece in own] == list(range(len(own)))
        assert {piece[3] for piece in own} <= {len(own) + bool(trimmed)}
        if length > size and packing.strategy != "concat":
            assert all(piece[1] >= packing.min_chunk for piece in own)
            assert len(own) in (0, -(-length // size) - bool(trimmed))

    figures = packing_figures(plan, np.array(lengths, np.int64), size, align, dropped)
    assert figures.tokens_lost == 0
    assert figures.tokens_dropped == dropped.tokens
    assert figures.alignment_padding == sum(-length % align for _, _, length, _, _ in pieces)
    assert figures.padding == plan.packs * size - len(kept)
    assert figures.foreign_labels == sum(chunk + 1 < chunks for *_, chunk, chunks in pieces)
    if packing.strategy != "concat":
        assert figures.needless_cuts == 0
        assert figures.utilization == (len(kept) / (plan.packs * size) if plan.packs else 1.0)


def plain_first_fit(weights: list[int], capacity: int, most: int) -> list[list[int]]:
    packs: list[list[int]] = []
    for item, weight in enumerate(weights):
        for held in packs:
            if sum(weights[i] for i in held) + weight <= capacity and len(held) < most:
                held.append(item)
                break
        else:
            packs.append([item])
    return packs


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), max_size=70), capacity=st.integers(60, 130), most=st.none() | st.integers(1, 6)
)
def test_first_fit_is_first_fit(lengths: list[int], capacity: int, most: int | None) -> None:
    for strategy in ("first_fit", "first_fit_decreasing"):
        order = list(range(len(lengths)))
        if strategy == "first_fit_decreasing":
            order.sort(key=lambda i: -lengths[i])
        wanted = [
            [order[i] for i in held] for held in plain_first_fit([lengths[i] for i in order], capacity, most or 99)
        ]
        packing = PackingConfig(strategy=strategy, sequence_length=capacity, documents_per_pack=most)
        plan = pack_documents(np.array(lengths, np.int64), packing, b"").plan
        assert [plan.document[a:b].tolist() for a, b in pairwise(plan.pack_offsets)] == wanted
        if most is None:
            same = pack(np.array(lengths, np.int64), capacity, strategy)
            assert same.document.tolist() == plan.document.tolist()


def plain_best_fit_two(
    order: list[int], tokens: list[int], counts: list[int], capacity: int, budget: int, weight: int
) -> list[int]:
    """Pack of each item, by looking at every open pack."""
    packs: list[tuple[int, int, int]] = []  # room, count left, when something was last put in
    pack_of = [0] * len(order)
    for time, item in enumerate(order):
        fitting = [
            (room + weight * left, left, -last, number)
            for number, (room, left, last) in enumerate(packs)
            if room >= tokens[item] and left >= counts[item]
        ]
        if not fitting:
            packs.append((capacity, budget, -1))
        number = min(fitting)[3] if fitting else len(packs) - 1
        room, left, _ = packs[number]
        packs[number] = (room - tokens[item], left - counts[item], time)
        pack_of[item] = number
    return pack_of


@settings(max_examples=200, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 5)), max_size=60),
    capacity=st.integers(200, 9_000),
    budget=st.integers(5, 9),
    weight=st.sampled_from([0, 7, 1_000]),
    random=st.randoms(use_true_random=False),
)
def test_two_limits_kernel_is_best_fit(
    items: list[tuple[int, int]], capacity: int, budget: int, weight: int, random: object
) -> None:
    order = list(range(len(items)))
    random.shuffle(order)  # type: ignore[attr-defined]
    tokens, counts = [t * capacity // 200 for t, _ in items], [k for _, k in items]
    pack_of = np.empty(len(items), np.int32)
    arrays = [np.array(values, np.int64) for values in (order, tokens, counts)]
    packs = best_fit_two(*arrays, capacity, budget, 0, weight, pack_of)
    wanted = plain_best_fit_two(order, tokens, counts, capacity, budget, weight)
    assert pack_of.tolist() == wanted
    assert packs == len(set(wanted))


def fewest_packs(items: list[tuple[int, int]], capacity: int, budget: int) -> int:
    """By trying every way to add the items one by one."""
    best = len(items)

    def place(at: int, packs: list[tuple[int, int]]) -> None:
        nonlocal best
        if len(packs) >= best:
            return
        if at == len(items):
            best = len(packs)
            return
        tokens, count = items[at]
        for number in range(len(packs)):
            t, k = packs[number]
            if t + tokens <= capacity and k + count <= budget:
                place(at + 1, [*packs[:number], (t + tokens, k + count), *packs[number + 1 :]])
        place(at + 1, [*packs, (tokens, count)])

    place(0, [])
    return best


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), max_size=7), st.integers(20, 30), st.integers(4, 6))
def test_two_limits_against_the_optimum(items: list[tuple[int, int]], capacity: int, budget: int) -> None:
    tokens, counts = (np.array([item[i] for item in items], np.int64) for i in (0, 1))
    optimum = fewest_packs(items, capacity, budget)
    assert lower_bound(tokens, counts, capacity, budget) <= optimum
    order, pack_offsets = pack_two_limits(tokens, counts, capacity, budget, b"key")
    assert sorted(order.tolist()) == list(range(len(items)))
    assert optimum <= pack_offsets.size - 1 <= optimum + 1
    for a, b in pairwise(pack_offsets.tolist()):
        assert tokens[order[a:b]].sum() <= capacity
        assert counts[order[a:b]].sum() <= budget


def test_martello_toth_bound_by_hand() -> None:
    # 10 holds none of 7, 7, 6 together, 3 fits beside either 7, and 4 + 4 has no room but beside 6: ceil(31/10) is 4,
    # but with threshold 4 the sevens stand alone, and 6 + 4 is full, so the other 4 opens a pack.
    assert martello_toth(np.array([7, 7, 6, 3, 4, 4]), 10) == 4
    assert martello_toth(np.array([7, 7, 6, 4, 4]), 10) == 4  # ceil(28 / 10) is 3
    assert martello_toth(np.array([6, 6, 6]), 10) == 3
    assert martello_toth(np.array([10, 1]), 10) == 2
    assert martello_toth(np.zeros(0, np.int64), 10) == 0


def interleaved(documents: int, capacity: int, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and images of documents of 0 to 8 images of 256 to 4,096 tokens and lognormal text around each.

    What is beyond a pack is cut: text anywhere, between images else.
    """
    rng = np.random.default_rng(3)
    items: list[tuple[int, int]] = []
    for images in rng.integers(0, 9, documents).tolist():
        tokens = count = 0
        for place in range(2 * images + 1):
            left = int(rng.integers(256, 4_097)) if place % 2 else int(rng.lognormal(np.log(200), 1.2)) + 1
            while left:
                if tokens == capacity or (place % 2 and (tokens + left > capacity or count == budget)):
                    items.append((tokens, count))
                    tokens = count = 0
                piece = left if place % 2 else min(left, capacity - tokens)
                tokens, count, left = tokens + piece, count + place % 2, left - piece
        items.append((tokens, count))
    return np.array([t for t, _ in items]), np.array([k for _, k in items])


@pytest.mark.parametrize(("capacity", "budget", "most"), [(16_384, 16, 0.005), (32_768, 24, 0.003)])
def test_two_limits_stay_near_the_bound(capacity: int, budget: int, most: float) -> None:
    tokens, counts = interleaved(4_000, capacity, budget)
    _, pack_offsets = pack_two_limits(tokens, counts, capacity, budget, b"key")
    assert pack_offsets.size - 1 <= (1 + most) * lower_bound(tokens, counts, capacity, budget)


def test_wide_packs_are_looked_up_in_larger_units(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    tokens, counts = rng.integers(1, 900_000, 3_000), rng.integers(0, 4, 3_000)
    monkeypatch.setattr(two_limits, "TABLE_ENTRIES", 20_000)
    order, pack_offsets = pack_two_limits(tokens, counts, 2_000_003, 9, b"", PORTFOLIO)
    loads = np.add.reduceat(tokens[order], pack_offsets[:-1])
    assert loads.max() <= 2_000_003
    assert np.add.reduceat(counts[order], pack_offsets[:-1]).max() <= 9
    assert pack_offsets.size - 1 <= 1.02 * lower_bound(tokens, counts, 2_000_003, 9)


def test_items_beyond_a_limit_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 10 tokens"):
        pack_two_limits(np.array([11]), np.array([0]), 10, 2, b"")
    with pytest.raises(ValueError, match="counts 3, more than the 2"):
        pack_two_limits(np.array([1]), np.array([3]), 10, 2, b"")


def test_a_cap_costs_little_and_holds() -> None:
    lengths = np.random.default_rng(5).lognormal(np.log(300), 1.3, 20_000).astype(np.int64) + 1
    packing = PackingConfig(sequence_length=4096, documents_per_pack=16)
    plan = pack_documents(lengths, packing, b"").plan
    free = pack(lengths, 4096, "best_fit")
    assert np.diff(free.pack_offsets).max() > 16
    assert np.diff(plan.pack_offsets).max() == 16
    assert plan.packs <= 1.005 * max(free.packs, lengths.size / 16)
    wide = PackingConfig(sequence_length=4096, documents_per_pack=5_000)
    assert sorted(pack_documents(lengths, wide, b"").plan.loads()) == sorted(free.loads())


def test_noisy_order_is_pinned_and_keyed() -> None:
    scores = np.arange(1, 13)
    # Changing these numbers changes the bytes of every dataset packed with noise.
    assert noisy_decreasing(scores, 0.5, b"tokpack").tolist() == PINNED
    assert noisy_decreasing(scores, 0.0, b"any").tolist() == list(range(11, -1, -1))
    assert noisy_decreasing(scores, 0.5, b"other").tolist() != PINNED
    assert noisy_decreasing(np.full(5, 7), 0.0, b"").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="sigma must be 0 to 4"):
        noisy_decreasing(scores, 5.0, b"")


PINNED = [11, 10, 7, 5, 9, 6, 8, 4, 3, 2, 1, 0]


def test_noise_is_normal_of_the_given_width() -> None:
    """The rank order of equal scores is that of their noise; a score off by e^sigma is passed by one in four."""
    pairs = 20_000
    scores = np.tile([1_000, round(1_000 * math.e**0.4)], pairs)
    place = np.empty(2 * pairs, np.int64)
    place[noisy_decreasing(scores, 0.4, b"key")] = np.arange(2 * pairs)
    smaller_first = np.mean(place[::2] < place[1::2])
    assert abs(smaller_first - 0.2398) < 0.012  # P(N(0, 2) > 1)


def test_noise_mixes_and_costs_little() -> None:
    lengths = np.random.default_rng(6).lognormal(np.log(600), 1.2, 30_000).astype(np.int64) + 1
    identity = np.arange
    plain = pack(lengths, 4096, "best_fit")
    noisy = pack_documents(lengths, PackingConfig(sequence_length=4096, noise=0.3), b"key").plan
    assert noisy.packs <= 1.001 * plain.packs

    def spread(plan: object) -> float:
        """Mean over packs of the spread of their documents' lengths."""
        bounds = pairwise(plan.pack_offsets.tolist())  # type: ignore[attr-defined]
        parts = [plan.length[a:b] for a, b in bounds if b - a > 1]  # type: ignore[attr-defined]
        return float(np.mean([np.log(part).std() for part in parts]))

    assert spread(noisy) > spread(plain)
    mixing = measure_mixing(plain, permuted(plain.packs, b"key"))
    assert mixing.as_packed > 0.6
    assert abs(mixing.as_written) < 0.03
    assert measure_mixing(plain, identity(plain.packs)).as_written == mixing.as_packed


def test_mixing_by_hand_and_its_sum() -> None:
    plan = pack(np.array([1, 2, 3, 4]), 4, "naive")
    assert measure_mixing(plan, np.array([0, 1, 2, 3])) == Mixing(3, 1.0, 1.0)
    assert measure_mixing(plan, np.array([1, 0, 3, 2])) == Mixing(
        3, 1.0, round(float(np.corrcoef([2, 1, 4], [1, 4, 3])[0, 1]), 6)
    )
    assert measure_mixing(pack(np.array([4, 4, 4]), 4, "naive"), np.arange(3)) == Mixing()
    total = Mixing() + Mixing(3, 1.0, 0.5) + Mixing(1, 0.0, 0.1)
    assert (total.pairs, total.as_packed, total.as_written) == (4, 0.75, pytest.approx(0.4))
    assert Mixing.from_dict(total.as_dict()) == total
    assert Mixing() + Mixing() == Mixing()


def test_policies_by_hand() -> None:
    # S 10, 23 tokens: the rest of 3 is shorter than 4, so 13 tokens become 6 and 7.
    plan = pack_documents(np.array([23]), PackingConfig(strategy="naive", sequence_length=10, min_chunk=4), b"").plan
    assert list(zip(plan.start, plan.length, plan.chunk, plan.chunks, strict=True)) == [
        (0, 10, 0, 3),
        (10, 6, 1, 3),
        (16, 7, 2, 3),
    ]
    packing = PackingConfig(strategy="naive", sequence_length=10, min_chunk=4, short_chunks="drop")
    packed = pack_documents(np.array([23, 3, 20]), packing, b"")
    assert packed.dropped == Dropped(chunks=1, chunk_tokens=3)
    assert packed.plan.chunks.tolist() == [3, 3, 1, 2, 2]
    figures = packing_figures(packed.plan, np.array([23, 3, 20]), 10, 1, packed.dropped)
    assert (figures.dropped_chunks, figures.dropped_chunk_tokens, figures.tokens_lost) == (1, 3, 0)
    assert figures.foreign_labels == 3
    assert figures.utilization == 43 / 50

    packed = pack_documents(np.array([11, 5]), PackingConfig(sequence_length=10, long_documents="drop"), b"")
    assert packed.dropped == Dropped(documents=1, document_tokens=11)
    assert packed.plan.document.tolist() == [1]
    with pytest.raises(InputError, match=r"1 documents are longer than a pack of 10 tokens, first document 1 .* 11"):
        pack_documents(np.array([10, 11]), PackingConfig(sequence_length=10, long_documents="error"), b"")

    # align 4: 3 and 5 tokens take 4 and 8 of 12 positions.
    aligned = pack_documents(np.array([3, 5]), PackingConfig(sequence_length=12, align=4), b"").plan
    assert (aligned.packs, aligned.loads().tolist()) == (1, [8])
    assert packing_figures(aligned, np.array([3, 5]), 12, 4).alignment_padding == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"align": 3}, "sequence_length 16 is no multiple of align 3"),
        ({"min_chunk": 9}, "min_chunk is at most half a pack, here 8, not 9"),
        ({"noise": 0.1, "strategy": "first_fit"}, "noise is for strategy best_fit only"),
        ({"documents_per_pack": 2, "strategy": "concat"}, "takes neither documents_per_pack nor min_chunk"),
        ({"documents_per_pack": 2, "strategy": "naive"}, "documents_per_pack has no effect"),
        ({"long_documents": "drop", "min_chunk": 4}, "min_chunk and short_chunks have no effect"),
        ({"short_chunks": "drop"}, "short_chunks has no effect with min_chunk 1"),
    ],
)
def test_policies_that_do_not_go_together(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PackingConfig(sequence_length=16, **settings)  # type: ignore[arg-type]


def test_a_plan_that_loses_tokens_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.array([5, 6, 7])

    def losing(lengths: np.ndarray, sequence_length: int, strategy: str) -> object:
        return pack(lengths - 1, sequence_length, "best_fit")

    monkeypatch.setattr("tokpack_core.packing.policies.pack", losing)
    with pytest.raises(RuntimeError, match="took 18 tokens and gave 15, with 0 dropped"):
        pack_documents(lengths, PackingConfig(sequence_length=8), b"")


def test_default_parameters_name_only_what_was_chosen() -> None:
    assert PackingConfig(sequence_length=8).parameters() == {"strategy": "best_fit", "sequence_length": 8}
    chosen = PackingConfig(sequence_length=8, align=2, strategy="concat").parameters()
    assert chosen == {"strategy": "concat", "sequence_length": 8, "align": 2}


def test_figures_written_before_a_count_existed_are_read() -> None:
    old = PackingFigures(documents=3, tokens=9).as_dict()
    del old["alignment_padding"]
    assert PackingFigures.from_dict(old) == PackingFigures(documents=3, tokens=9)


items = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(items=items, noise=st.sampled_from([0.0, 0.5]), deep=st.booleans())
def test_packs_filled_one_by_one_hold_every_item_once_and_have_no_room_left(
    items: list[tuple[int, int]], noise: float, deep: bool
) -> None:
    tokens, counts = (np.array(column, np.int64) for column in zip(*items, strict=True))
    order = noisy_decreasing(tokens, noise, b"key")
    budget = 8 if deep else two_limits.DEEP_BUDGET + 1
    grouped, edges = two_limits.fill(order, tokens, counts, 40, budget, two_limits.FILLINGS[0])
    assert sorted(grouped.tolist()) == list(range(len(items)))
    packs = [grouped[a:b] for a, b in pairwise(edges)]
    for number, held in enumerate(packs):
        room, left = 40 - int(tokens[held].sum()), budget - int(counts[held].sum())
        assert room >= 0
        assert left >= 0
        for later in packs[number + 1 :]:
            assert all(tokens[item] > room or counts[item] > left for item in later)


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3)), min_size=1, max_size=6),
    room=st.integers(1, 30),
    left=st.integers(0, 5),
    weights=st.tuples(st.integers(1, 3), st.integers(1, 9)),
)
def test_looking_two_items_ahead_finds_what_leaves_least(
    items: list[tuple[int, int]], room: int, left: int, weights: tuple[int, int]
) -> None:
    items = sorted(item for item in set(items) if sum(other[1] == item[1] for other in set(items)) <= CANDIDATES)
    items.sort(key=lambda item: (item[1], item[0]))
    tokens, first = [], []
    for count in range(7):
        first.append(len(tokens))
        tokens += [0, *(t for t, k in items if k == count)]
    places = [place for place in range(len(tokens)) if place not in first]
    arrays = np.array(tokens, np.int64), np.array([*first, len(tokens)], np.int64)
    found = next_item(*arrays, np.arange(len(tokens)), room, left, *weights, False)

    def rest(chosen: tuple[int, ...]) -> float:
        t = room - sum(items[places.index(place)][0] for place in chosen)
        k = left - sum(items[places.index(place)][1] for place in chosen)
        return weights[0] * t + weights[1] * k if t >= 0 and k >= 0 else math.inf

    sets = [chosen for size in (1, 2) for chosen in combinations(places, size)]
    least = min(map(rest, sets), default=math.inf)
    if least == math.inf:
        assert found == -1
    else:
        assert any(found in chosen and rest(chosen) == least for chosen in sets)
    if found >= 0:
        deep = next_item(*arrays, np.arange(len(tokens)), room, left, *weights, True)
        assert rest((deep,)) < math.inf
