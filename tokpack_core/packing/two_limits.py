"""Packs under two limits: tokens, and a small count (images a pack, or documents a pack with a count of 1 each).

Each order of a small fixed portfolio, noisy-decreasing in t / tokens + w k / count, is packed best-fit; the order with
the fewest packs is kept, the earliest of equals, and the search ends where the lower bound is met. Strictly
decreasing order is poor when both limits bind: what is large in either comes first, and what is left over is small in
both. Vector bin packing is surveyed in Panigrahy et al., "Heuristics for vector bin packing" (2011).

Little noise is best where one limit hardly binds, much where it would else be met by many small items at the end.

Then packs are filled one by one instead: begun by the next item of an order, and completed by the one, two or three
items that leave least room of both kinds, like Fleszar and Hindi's minimum bin slack ("New heuristics for the
one-dimensional bin-packing problem", 2002). It finds what fills both limits at once while there is most to choose
from, and is best where a pack holds few items and both limits bind.

Items are never cut. Figures on image-text sets: see `benchmarks/two_limits.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.first_fit import Grouping, grouped
from tokpack_core.packing.order import noisy_decreasing
from tokpack_core.packing.two_limits_kernels import best_fit_two
from tokpack_core.packing.two_limits_lookahead_kernels import fill_packs

Counts = npt.NDArray[np.integer]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PackingOrder:
    """One order, and how the pack that fits best is chosen."""

    noise: float
    score_count: int = 1
    """What counts weigh in the order: t / tokens + score_count x k / count."""
    fit_count: float = 0.0
    """What a count left weighs in the fit, in shares of capacity / budget; 0 is the least room of tokens."""


PORTFOLIO = (
    PackingOrder(0.0),
    PackingOrder(0.1),
    PackingOrder(0.3, fit_count=0.25),
    PackingOrder(0.5, fit_count=1.0),
    PackingOrder(1.0, fit_count=0.25),
    PackingOrder(2.0),
    PackingOrder(3.0),
    PackingOrder(0.2, score_count=3, fit_count=1.0),
    PackingOrder(0.1, score_count=10, fit_count=1.0),
    PackingOrder(0.2, score_count=10, fit_count=1.0),
)
"""The orders that are tried."""


@dataclass(frozen=True)
class FillingOrder:
    """One order of packs that are filled one by one."""

    noise: float
    score_count: int
    """What counts weigh in the order."""
    token_weight: int
    count_weight: int
    """What a share of tokens and of counts that is left weighs."""


FILLINGS = (
    FillingOrder(0.2, 10, 1, 2),
    FillingOrder(0.3, 25, 1, 2),
    FillingOrder(0.3, 10, 1, 1),
    FillingOrder(0.3, 5, 2, 1),
    FillingOrder(0.5, 5, 1, 2),
    FillingOrder(0.3, 1, 2, 1),
)
"""The orders that are tried after them."""
DEEP_BUDGET = 24
"""Up to this budget three items are looked ahead, which takes its cube of steps an item at most, then two."""
FILLING_BUDGET = 64
"""Beyond this budget packs hold so many counts that best fit meets the bound, and looking ahead takes long."""
SCORE_BITS = 56
"""Most bits of a share of capacity x budget, so that weighted sums of both fit in 63."""
TABLE_ENTRIES = 1 << 24
"""Most entries of the table of rooms, 4 bytes each; wider packs are looked up in units of several tokens."""


def pack_two_limits(
    tokens: Counts,
    counts: Counts,
    capacity: int,
    budget: int,
    key: bytes,
    portfolio: tuple[PackingOrder, ...] = PORTFOLIO,
    fillings: tuple[FillingOrder, ...] = FILLINGS,
) -> Grouping:
    """Group items so that no pack has more than `capacity` tokens or `budget` counts.

    tokens [items], each 1 .. capacity; counts [items], each 0 .. budget. Fewer than 2^31 items.
    """
    tokens = np.ascontiguousarray(tokens, np.int64)
    counts = np.ascontiguousarray(counts, np.int64)
    if tokens.size and not (1 <= tokens.min() <= tokens.max() <= capacity and counts.min() >= 0):
        raise ValueError(f"items must have 1 to {capacity} tokens and no negative count")
    if counts.size and counts.max() > budget:
        raise ValueError(f"an item counts {counts.max()}, more than the {budget} of a pack")
    bound = lower_bound(tokens, counts, capacity, budget)
    unit = max(1, capacity * budget >> SCORE_BITS)
    by_tokens, by_count = tokens * max(budget, 1) // unit + 1, counts * capacity // unit
    best: Grouping | None = None
    shift = table_shift(capacity, budget)
    for number, tried in enumerate(portfolio):
        order = noisy_decreasing(by_tokens + tried.score_count * by_count, tried.noise, key + b" order %d" % number)
        pack_of = np.empty(tokens.size, np.int32)
        weight = round(tried.fit_count * capacity / max(budget, 1)) >> shift
        packs = best_fit_two(order, tokens, counts, capacity, budget, shift, weight, pack_of)
        if best is None or packs < best[1].size - 1:
            best = grouped(order, pack_of, packs)
        if packs == bound:
            break
    if best is None:
        raise ValueError("the portfolio is empty")
    for number, filling in enumerate(fillings if 1 < budget <= FILLING_BUDGET else ()):
        if best[1].size - 1 == bound:
            break
        scores = by_tokens + filling.score_count * by_count
        order = noisy_decreasing(scores, filling.noise, key + b" filling %d" % number)
        filled = fill(order, tokens, counts, capacity, budget, filling)
        best = min(best, filled, key=lambda grouping: grouping[1].size)
    return best


def fill(order: Int64, tokens: Counts, counts: Counts, capacity: int, budget: int, filling: FillingOrder) -> Grouping:
    """Packs filled one by one, begun in the given order."""
    sorted_items = np.lexsort((tokens, counts))
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(counts, minlength=budget + 1) + 1)])
    place = np.empty(tokens.size, np.int64)
    place[sorted_items] = np.arange(tokens.size) + counts[sorted_items] + 1
    placed_tokens, placed_counts = np.zeros(int(first[-1]), np.int64), np.zeros(int(first[-1]), np.int64)
    placed_tokens[place], placed_counts[place] = tokens, counts
    weights = filling.token_weight * budget, filling.count_weight * capacity
    pack_of = np.empty(placed_tokens.size, np.int32)
    limits = capacity, budget, *weights, budget <= DEEP_BUDGET
    packs = fill_packs(place[order], placed_tokens, placed_counts, first, *limits, pack_of)
    return grouped(order, pack_of[place], packs)


def lower_bound(tokens: Counts, counts: Counts, capacity: int, budget: int) -> int:
    """Packs that any packing needs by either limit alone."""
    by_count = martello_toth(counts[counts > 0], budget) if budget else 0
    return max(martello_toth(tokens, capacity), by_count)


def martello_toth(sizes: Counts, capacity: int) -> int:
    """The bound L2 of Martello and Toth ("Knapsack Problems", 1990, chapter 8), at least ceil(sum / capacity).

    For each threshold a: items above capacity - a stand without any item of at least a, those above half a pack each
    have a pack of their own, and what the items from a to half a pack do not find room for beside these comes on top.
    """
    if sizes.size == 0:
        return 0
    ordered = np.sort(sizes.astype(np.int64))
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(ordered)])
    half = int(np.searchsorted(ordered, capacity // 2, side="right"))
    thresholds = np.unique(np.concatenate([np.ones(1, np.int64), ordered[:half]]))
    small = sums[half] - sums[np.searchsorted(ordered, thresholds)]
    huge = np.searchsorted(ordered, capacity - thresholds, side="right")
    room = (huge - half) * capacity - (sums[huge] - sums[half])
    more = np.maximum(-(-(small - room) // capacity), 0)
    return int((ordered.size - half + more).max())


def table_shift(capacity: int, budget: int) -> int:
    """Bits of a room that the table leaves out, 0 unless it would be too large."""
    shift = 0
    while (budget + 1) * ((capacity >> shift) + 1) > TABLE_ENTRIES and shift < capacity.bit_length() - 1:
        shift += 1
    return shift
