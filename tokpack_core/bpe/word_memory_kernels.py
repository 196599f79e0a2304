"""Pretokens that an encoder has met, each encoded once: for encoders that are not plain merging by rank.

The table is that of `word_table_kernels`; entry k has the ids known_ids[known_ends[k - 1] : known_ends[k]].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, ONE, new_entry, slot_of, word_key


@njit(cache=True, nogil=True)
def find_words(data, begin, ends, slots, entries, arena, used, filled, numbers):  # type: ignore[no-untyped-def]
    """The entry of each pretoken to numbers[k]; unknown ones are entered. Returns (entries, bytes in the arena)."""
    first = begin
    for k in range(ends.size):
        length = ends[k] - first
        low, high = word_key(data, first, length)
        slot = slot_of(data, first, length, low, high, slots, entries, arena)
        if slots[slot] == 0:
            new_entry(data, first, length, low, high, slot, slots, entries, arena, used, filled)
            used += 1
            filled += length
        numbers[k] = np.int64((slots[slot] & ENTRY_MASK) - ONE)
        first = ends[k]
    return used, filled


@njit(cache=True, nogil=True)
def count_ids(numbers, known_ends, id_ends):  # type: ignore[no-untyped-def]
    """id_ends[k] becomes the number of ids up to pretoken k; returns all."""
    total = np.int64(0)
    for k in range(numbers.size):
        entry = numbers[k]
        total += known_ends[entry + 1] - known_ends[entry]
        id_ends[k] = total
    return total


@njit(cache=True, nogil=True)
def write_ids(numbers, known_ids, known_ends, ids):  # type: ignore[no-untyped-def]
    at = 0
    for k in range(numbers.size):
        for place in range(known_ends[numbers[k]], known_ends[numbers[k] + 1]):
            ids[at] = known_ids[place]
            at += 1
