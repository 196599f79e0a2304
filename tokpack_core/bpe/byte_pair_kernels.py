"""Pairs of bytes, where all words are still spelled in bytes: counted and listed by table, range by range.

Tables have a cell for each pair, left << 8 | right, of symbols below 256. A range begins behind a cell that names a
weight and ends in one (see `merge_kernels` for the layout of symbols and of pairs), so ranges can go to threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, FIRST_WEIGHT, FREE, KEY, LENGTH, PLACE, pair_slot

BYTE_PAIRS = 1 << 16


@njit(cache=True, nogil=True)
def note_bytes(data, seen):  # type: ignore[no-untyped-def]
    """Sets `seen` (bool [256]) of the bytes that occur."""
    for at in range(data.size):
        seen[data[at]] = True


@njit(cache=True, nogil=True)
def write_symbols(data, offsets, weight_places, symbol_of_byte, symbols):  # type: ignore[no-untyped-def]
    """The words data[offsets[i]:offsets[i + 1]] as symbols, each with the place of its weight after it."""
    at = 0
    for word in range(offsets.size - 1):
        for place in range(offsets[word], offsets[word + 1]):
            symbols[at] = symbol_of_byte[data[place]]
            at += 1
        symbols[at] = FIRST_WEIGHT - weight_places[word]
        at += 1


@njit(cache=True, nogil=True)
def count_byte_pairs(symbols, weights, counts, numbers):  # type: ignore[no-untyped-def]
    """Adds the weights of a range's pairs to `counts` and their occurrences to `numbers` (int64 [BYTE_PAIRS])."""
    weight = np.int64(0)
    right = np.int64(-1)
    for at in range(symbols.size - 1, -1, -1):
        symbol = np.int64(symbols[at])
        if symbol < 0:
            weight = weights[FIRST_WEIGHT - symbol]
        elif right >= 0:
            counts[symbol << 8 | right] += weight
            numbers[symbol << 8 | right] += 1
        right = symbol


@njit(cache=True)
def frequent_byte_pairs(counts, numbers, threshold):  # type: ignore[no-untyped-def]
    """The table of pairs of at least that count, how many they are, and the cells of the pool that they take.

    numbers[range, pair] becomes the first cell of the pool for the range's occurrences, -1 for a pair that is left out.
    """
    wanted = 0
    for pair in range(counts.size):
        wanted += counts[pair] >= threshold
    rows = 1 << 12
    while rows < 4 * wanted:
        rows *= 2
    pairs = np.full((rows, 4), FREE, np.int64)
    filled = np.int64(0)
    for pair in range(counts.size):
        if counts[pair] < threshold:
            numbers[:, pair] = -1
            continue
        key = np.int64(pair >> 8) << 32 | np.int64(pair & 0xFF)
        slot = pair_slot(pairs, key)
        pairs[slot, KEY], pairs[slot, COUNT], pairs[slot, PLACE] = key, counts[pair], filled
        for part in range(numbers.shape[0]):
            number = numbers[part, pair]
            numbers[part, pair] = filled
            filled += number
        pairs[slot, LENGTH] = filled - pairs[slot, PLACE]
    return pairs, wanted, filled


@njit(cache=True, nogil=True)
def write_places(symbols, begin, cells, pool):  # type: ignore[no-untyped-def]
    """Writes where the pairs of a range, which begins at `begin` of all symbols, stand to cells[pair] and after it."""
    left = np.int64(-1)
    for at in range(symbols.size):
        symbol = np.int64(symbols[at])
        if left >= 0 and symbol >= 0:
            cell = cells[left << 8 | symbol]
            if cell >= 0:
                pool[cell] = begin + at - 1
                cells[left << 8 | symbol] = cell + 1
        left = symbol
