"""First fit with a segment tree: the first open pack with enough room in O(log n), whatever the lengths.

The tree stands in one array as a heap: node k has children 2k and 2k + 1 and holds the greatest room below it; leaf p
is pack p. All leaves start as empty packs, so the pack that is opened next is just the first untouched leaf.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@njit(cache=True)
def first_fit(items: Int64, weights: npt.NDArray[np.integer], capacity: int, most: int, pack_of: Int32) -> int:
    """Place items (indices into `weights`, each 1 .. capacity) in the order given.

    A pack takes at most `most` items. pack_of [weights] gets the pack of each item. Returns the number of packs.
    """
    leaves = 1
    while leaves < items.size:
        leaves *= 2
    room = np.full(2 * leaves, capacity, np.int32)
    held = np.zeros(leaves, np.int32)
    packs = 0
    for item in items:
        weight = weights[item]
        node = 1
        while node < leaves:
            node *= 2
            if room[node] < weight:
                node += 1
        pack = node - leaves
        packs = max(packs, pack + 1)
        pack_of[item] = pack
        held[pack] += 1
        room[node] = room[node] - weight if held[pack] < most else 0
        node //= 2
        while node > 0:
            greatest = max(room[2 * node], room[2 * node + 1])
            if room[node] == greatest:
                break
            room[node] = greatest
            node //= 2
    return packs


@njit(cache=True)
def group(items: Int64, pack_of: Int32, pack_offsets: Int64) -> Int64:
    """The items pack by pack, each pack's in the order given; pack_offsets [packs + 1] starts as zeros."""
    for item in items:
        pack_offsets[pack_of[item] + 1] += 1
    for pack in range(1, pack_offsets.size):
        pack_offsets[pack] += pack_offsets[pack - 1]
    cursor = pack_offsets[:-1].copy()
    order = np.empty(items.size, np.int64)
    for item in items:
        order[cursor[pack_of[item]]] = item
        cursor[pack_of[item]] += 1
    return order
