"""Filling packs one by one under two limits, looking up to three items ahead: see `two_limits`.

Items stand by count and then by tokens, an empty place before those of each count. Which of them are left is a forest
of disjoint sets (Tarjan, "Efficiency of a good but not linear set union algorithm", 1975): the root of a place is the
last item at or before it that is left, or the empty place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
CANDIDATES = 3
"""Items of each count that are tried as the next one."""


@njit(cache=True)
def root(before: Int64, place: int) -> int:
    top = place
    while before[top] != top:
        top = before[top]
    while before[place] != top:
        before[place], place = top, before[place]
    return top


@njit(cache=True)
def largest(tokens: Int64, first: Int64, before: Int64, count: int, room: int) -> int:
    """Place of the largest item of `count` that is left and has at most `room` tokens, or the empty place."""
    low, high = first[count] + 1, first[count + 1]
    while low < high:
        middle = (low + high) // 2
        if tokens[middle] <= room:
            low = middle + 1
        else:
            high = middle
    return root(before, low - 1)


@njit(cache=True)
def next_item(
    tokens: Int64, first: Int64, before: Int64, room: int, left: int, per_token: int, per_count: int, deep: bool
) -> int:
    """The item to put next into a pack with `room` tokens and `left` counts, or -1 when none fits.

    It is one of those one, two or (`deep`) three items that leave least, by per_token and per_count; of two the one
    that takes more, since small items are easier to place later.
    """
    least = per_token * room + per_count * left
    chosen = -1
    for count in range(left + 1):
        one = largest(tokens, first, before, count, room)
        for _ in range(CANDIDATES):
            if one == first[count]:
                break
            room_1, left_1 = room - tokens[one], left - count
            rest = per_token * room_1 + per_count * left_1
            if rest < least:
                least, chosen = rest, one
            for count_2 in range(left_1 + 1):
                two = largest(tokens, first, before, count_2, room_1)
                if two == one:
                    two = root(before, two - 1)
                if two == first[count_2]:
                    continue
                room_2, left_2 = room_1 - tokens[two], left_1 - count_2
                rest = per_token * room_2 + per_count * left_2
                if rest < least:
                    more = per_token * (tokens[one] - tokens[two]) + per_count * (count - count_2)
                    least, chosen = rest, one if more >= 0 else two
                for count_3 in range(left_2 + 1 if deep else 0):
                    three = largest(tokens, first, before, count_3, room_2)
                    while three in (one, two):
                        three = root(before, three - 1)
                    if three == first[count_3]:
                        continue
                    rest = per_token * (room_2 - tokens[three]) + per_count * (left_2 - count_3)
                    if rest < least:
                        least, chosen = rest, one
                if least == 0:
                    return chosen
            one = root(before, one - 1)
    return chosen


@njit(cache=True)
def fill_packs(
    order: Int64,
    tokens: Int64,
    counts: Int64,
    first: Int64,
    capacity: int,
    budget: int,
    per_token: int,
    per_count: int,
    deep: bool,
    pack_of: Int32,
) -> int:
    """Packs that are begun by the first item left in the order, and filled by `next_item` until nothing fits.

    order: places; tokens and counts [places]; first [budget + 2]: the empty place of each count, and the end.
    pack_of [places] gets the pack of each item. Returns the number of packs.
    """
    before = np.arange(tokens.size)
    pack_of[:] = -1
    packs = 0
    for begun in order:
        if pack_of[begun] >= 0:
            continue
        room, left = capacity, budget
        item = begun
        while item >= 0:
            pack_of[item] = packs
            before[item] = item - 1
            room -= tokens[item]
            left -= counts[item]
            item = next_item(tokens, first, before, room, left, per_token, per_count, deep) if room else -1
        packs += 1
    return packs
