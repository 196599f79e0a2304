"""First fit: each piece goes into the first pack, in the order of their opening, that has room for it.

`first_fit` takes documents as they come, so a stream could be packed so; `first_fit_decreasing` takes the longest
first, ties in document order (Johnson, "Near-optimal bin packing algorithms", 1973: at most 11/9 of the optimum).
O(n log n) for both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.packing import first_fit_kernels as kernels

Int64 = npt.NDArray[np.int64]
Grouping = tuple[Int64, Int64]
"""Items pack by pack [items], and where each pack starts and ends among them [packs + 1]."""

NO_LIMIT = 2**31 - 1


def first_fit(weights: npt.NDArray[np.integer], capacity: int, most: int | None, decreasing: bool) -> Grouping:
    """Items of weights [items], each 1 .. capacity, at most `most` in a pack."""
    items = by_decreasing(weights) if decreasing else np.arange(weights.size, dtype=np.int64)
    pack_of = np.empty(weights.size, np.int32)
    packs = kernels.first_fit(items, weights, capacity, most or NO_LIMIT, pack_of) if weights.size else 0
    return grouped(items, pack_of, packs)


def by_decreasing(weights: npt.NDArray[np.integer]) -> Int64:
    """Indices by decreasing weight, ties in order; distinct keys, so that any sorting algorithm gives the same."""
    keys = (NO_LIMIT - weights.astype(np.int64)) << 31 | np.arange(weights.size)
    keys.sort()
    return keys & NO_LIMIT


def grouped(items: Int64, pack_of: npt.NDArray[np.int32], packs: int) -> Grouping:
    pack_offsets = np.zeros(packs + 1, np.int64)
    return kernels.group(items, pack_of, pack_offsets), pack_offsets
