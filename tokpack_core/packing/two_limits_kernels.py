"""Best fit under two limits, tokens and a small count, for items in any order: see `two_limits`.

Open packs are classed by the count left (a level) and the room left. Each class is a last-in-first-out list through
`below`, each level a bitset of its rooms in two layers of 64-bit words. An item looks in every level that has enough
count for the least sufficient room: O(budget) word operations.

Rooms wider than the table are classed in units of 2^shift tokens, rooms rounded down and items up, so a pack found
always fits; with shift 0 the fit is exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)


def bit_positions() -> npt.NDArray[np.uint8]:
    """Which bit a power of two has set, by the top six bits of its product with the de Bruijn number."""
    positions = np.zeros(64, np.uint8)
    for bit in range(64):
        positions[(int(DE_BRUIJN) << bit & (2**64 - 1)) >> 58] = bit
    return positions


POSITIONS = bit_positions()


@njit(cache=True)
def lowest_bit(word: np.uint64) -> np.int64:
    lowest = word & (~word + np.uint64(1))
    return np.int64(POSITIONS[(lowest * DE_BRUIJN) >> np.uint64(58)])


@njit(cache=True)
def next_room(words: UInt64, summary: UInt64, at: int) -> int | np.int64:
    """The first room >= `at` in a bitset, or -1."""
    word = at >> 6
    found = words[word] & (ONES << np.uint64(at & 63))
    if found:
        return (word << 6) + lowest_bit(found)
    word += 1
    block = word >> 6
    if block >= summary.size:
        return -1
    found = summary[block] & (ONES << np.uint64(word & 63))
    while not found:
        block += 1
        if block >= summary.size:
            return -1
        found = summary[block]
    word = (block << 6) + lowest_bit(found)
    return (word << 6) + lowest_bit(words[word])


@njit(cache=True)
def best_fit_two(
    order: Int64, tokens: Int64, counts: Int64, capacity: int, budget: int, shift: int, weight: int, pack_of: Int32
) -> int:
    """Place items in the given order, each of 1 .. capacity tokens and 0 .. budget counts.

    Of the packs that can take an item, one with the least room + weight x count left, room in classes; among equals
    the one with the least count left, the last that came to it. pack_of [items] gets the pack of each item. Returns
    the number of packs.
    """
    classes = (capacity >> shift) + 1
    words = np.zeros((budget + 1, (classes >> 6) + 1), np.uint64)
    summary = np.zeros((budget + 1, (words.shape[1] >> 6) + 1), np.uint64)
    first = np.full((budget + 1, classes), -1, np.int32)
    size = np.zeros(budget + 1, np.int64)
    below = np.empty(order.size, np.int32)
    room = np.empty(order.size, np.int32)
    round_up = (1 << shift) - 1
    packs = 0
    for item in order:
        need = (tokens[item] + round_up) >> shift
        level = -1
        best = np.int64(0)
        least = np.int64(0)
        for candidate in range(counts[item], budget + 1):
            if level >= 0 and need + weight * candidate >= least:
                break
            if size[candidate]:
                found = next_room(words[candidate], summary[candidate], need)
                if found >= 0 and (level < 0 or found + weight * candidate < least):
                    best = found
                    least = found + weight * candidate
                    level = candidate
        if level < 0:
            pack = packs
            packs += 1
            room[pack] = capacity
            level = budget
        else:
            pack = first[level, best]
            first[level, best] = below[pack]
            size[level] -= 1
            if first[level, best] < 0:
                words[level, best >> 6] &= ~(np.uint64(1) << np.uint64(best & 63))
                if not words[level, best >> 6]:
                    summary[level, best >> 12] &= ~(np.uint64(1) << np.uint64((best >> 6) & 63))
        pack_of[item] = pack
        room[pack] -= tokens[item]
        left = room[pack] >> shift
        level -= counts[item]
        if left:
            below[pack] = first[level, left]
            first[level, left] = pack
            size[level] += 1
            words[level, left >> 6] |= np.uint64(1) << np.uint64(left & 63)
            summary[level, left >> 12] |= np.uint64(1) << np.uint64((left >> 6) & 63)
    return packs
