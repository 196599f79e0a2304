"""Weighted counts of all substrings of words, a length at a time.

A group is a substring; at length L each place where one begins belongs to the group of its first L characters. The
groups of length L + 1 are found by a hash of (group, next character); places whose group is rare are dropped, so later
lengths are cheap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE = -1
FACTOR = np.uint64(0x9E3779B97F4A7C15)
CODE_BITS = 21


@njit(cache=True)
def write_reach(codes, words, space, longest, reach):  # type: ignore[no-untyped-def]
    """How many characters a substring that begins here may have: none over the end of a word, or over a character
    without a piece (negative code); only spaces after two spaces."""
    for at in range(codes.size - 1, -1, -1):
        if codes[at] < 0:
            reach[at] = 0
            continue
        goes_on = at + 1 < codes.size and words[at + 1] == words[at]
        following = reach[at + 1] if goes_on else 0
        if codes[at] == space and goes_on and codes[at + 1] == space:
            following = 1
            while at + following < codes.size and words[at + following] == words[at] and codes[at + following] == space:
                following += 1
            following -= 1
        reach[at] = min(following + 1, longest)


@njit(cache=True)
def slot_of(key, keys):  # type: ignore[no-untyped-def]
    mask = keys.size - 1
    slot = np.int64(np.uint64(key) * FACTOR >> np.uint64(32)) & mask
    while keys[slot] != NONE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def lengthen(codes, words, weights, reach, length, places, groups, totals, keys, numbers):  # type: ignore[no-untyped-def]
    """Groups one character longer than `length`, for places that reach so far.

    Returns the hash table (it grows), for each new group its total, first place and parent, and for each place its
    new group or NONE.
    """
    children = np.full(places.size, NONE, np.int32)
    count = 0
    capacity = keys.size // 2
    sums = np.zeros(capacity, np.int64)
    firsts = np.empty(capacity, np.int32)
    parents = np.empty(capacity, np.int32)
    for k in range(places.size):
        at = places[k]
        if reach[at] <= length:
            continue
        key = np.int64(groups[k]) << CODE_BITS | np.int64(codes[at + length])
        slot = slot_of(key, keys)
        if keys[slot] == NONE:
            if count == capacity:
                old_keys, old_numbers = keys, numbers
                keys = np.full(old_keys.size * 2, NONE, np.int64)
                numbers = np.empty(old_keys.size * 2, np.int32)
                for old in range(old_keys.size):
                    if old_keys[old] != NONE:
                        moved = slot_of(old_keys[old], keys)
                        keys[moved] = old_keys[old]
                        numbers[moved] = old_numbers[old]
                capacity = keys.size // 2
                larger = np.zeros(capacity, np.int64)
                larger[:count] = sums[:count]
                sums = larger
                larger_firsts = np.empty(capacity, np.int32)
                larger_firsts[:count] = firsts[:count]
                firsts = larger_firsts
                larger_parents = np.empty(capacity, np.int32)
                larger_parents[:count] = parents[:count]
                parents = larger_parents
                slot = slot_of(key, keys)
            keys[slot] = key
            numbers[slot] = count
            firsts[count] = at
            parents[count] = groups[k]
            count += 1
        children[k] = numbers[slot]
        sums[numbers[slot]] += weights[words[at]]
    return keys, numbers, sums[:count], firsts[:count], parents[:count], children
