"""Packs under two limits: tokens, and a small count (images a pack, or documents a pack with a count of 1 each).

Each order of a small fixed portfolio, noisy-decreasing in t / tokens + k / count, is packed best-fit; the order with
the fewest packs is kept, the earliest of equals, and the search ends where the lower bound is met. Strictly
decreasing order is poor when both limits bind: what is large in either comes first, and what is left over is small in
both. Vector bin packing is surveyed in Panigrahy et al., "Heuristics for vector bin packing" (2011).

Items are never cut. Figures on image-text sets: see `benchmarks/two_limits.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.first_fit import Grouping, grouped
from tokpack_core.packing.order import noisy_decreasing
from tokpack_core.packing.two_limits_kernels import best_fit_two

Counts = npt.NDArray[np.integer]

PORTFOLIO = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Noise of each order that is tried."""
TABLE_ENTRIES = 1 << 24
"""Most entries of the table of rooms, 4 bytes each; wider packs are looked up in units of several tokens."""


def pack_two_limits(
    tokens: Counts, counts: Counts, capacity: int, budget: int, key: bytes, portfolio: tuple[float, ...] = PORTFOLIO
) -> Grouping:
    """Group items so that no pack has more than `capacity` tokens or `budget` counts.

    tokens [items], each 1 .. capacity; counts [items], each 0 .. budget. Fewer than 2^31 items.
    """
    tokens = np.ascontiguousarray(tokens, np.int64)
    counts = np.ascontiguousarray(counts, np.int64)
    if tokens.size and not (1 <= tokens.min() <= tokens.max() <= capacity and 0 <= counts.min()):
        raise ValueError(f"items must have 1 to {capacity} tokens and no negative count")
    if counts.size and counts.max() > budget:
        raise ValueError(f"an item counts {counts.max()}, more than the {budget} of a pack")
    bound = lower_bound(tokens, counts, capacity, budget)
    scores = tokens * max(budget, 1) + counts * capacity
    best: Grouping | None = None
    for number, sigma in enumerate(portfolio):
        order = noisy_decreasing(scores, sigma, key + b" order %d" % number)
        pack_of = np.empty(tokens.size, np.int32)
        packs = best_fit_two(order, tokens, counts, capacity, budget, table_shift(capacity, budget), pack_of)
        if best is None or packs < best[1].size - 1:
            best = grouped(order, pack_of, packs)
        if packs == bound:
            break
    if best is None:
        raise ValueError("the portfolio is empty")
    return best


def lower_bound(tokens: Counts, counts: Counts, capacity: int, budget: int) -> int:
    """Packs that any packing needs: either limit's total, or items of which no two share a pack."""
    by_tokens = -(-int(tokens.sum(dtype=np.int64)) // capacity)
    by_count = -(-int(counts.sum(dtype=np.int64)) // budget) if budget else 0
    alone = max(int(np.count_nonzero(2 * tokens > capacity)), int(np.count_nonzero(2 * counts > budget)))
    return max(by_tokens, by_count, alone)


def table_shift(capacity: int, budget: int) -> int:
    """Bits of a room that the table leaves out, 0 unless it would be too large."""
    shift = 0
    while (budget + 1) * ((capacity >> shift) + 1) > TABLE_ENTRIES and shift < capacity.bit_length() - 1:
        shift += 1
    return shift
