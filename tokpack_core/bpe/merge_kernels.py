"""The inner loop of byte-level BPE training: pairs in the order of their counts, on one array of symbols.

Layout. `symbols`, int32, holds the unique words one after the other: a symbol of k cells has its id in its first and
its last cell and INTERIOR between, so neighbours are found without links; a word is followed by one cell that names
its weight, FIRST_WEIGHT - i for weights[i]; the first cell of all is such a one too.

The table of pairs, int64 [power of two, 4], open addressing: left << 32 | right (or FREE), count, and a slice of the
pool, int32, with the cells where the pair occurs, ascending. The slice is complete when the pair is born, in the step
that makes its newer symbol; later the count only shrinks, and places that no longer hold the pair are passed over. So a
pair below the threshold at birth can be left out, and all that is left out can never be the best while the best is not
below it.

No two merges spell the same token: between two borders that are never merged over, the symbols are those that the
merges make of the bytes between them alone, so a string that once became one symbol always does.

What travels together stands in a named tuple: `Words`, `Pairs`, `Spelling`, `Heap`. Arrays in it are written to; what
may grow is returned anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.intrinsics import move
from tokpack_core.bpe.word_table_kernels import ONE

FREE = -1
INTERIOR = -1
FIRST_WEIGHT = -2
KEY, COUNT, PLACE, LENGTH = 0, 1, 2, 3
RIGHT = 0xFFFFFFFF
UNLIMITED = 2**62
"""More bytes than any token has, and more places than any pair."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


class Words(NamedTuple):
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int32]
    """[most tokens]: how many cells of `symbols` a token takes"""


class Pairs(NamedTuple):
    table: npt.NDArray[np.int64]
    rows: int
    """Of the table that are in use."""
    pool: npt.NDArray[np.int32]
    filled: int
    """Cells of the pool in use."""
    threshold: int
    """What occurs fewer times is not followed."""
    below_length: int
    """Nor is what would make a token of so many bytes or more."""


@njit(cache=True, forceinline=True, _nrt=False)
def first_slot(table, key):  # type: ignore[no-untyped-def]
    """The row from which on a pair is looked for."""
    hashed = (np.uint64(key) ^ (np.uint64(key) >> SHIFT)) * FACTOR
    return (hashed ^ (hashed >> SHIFT)) & np.uint64(table.shape[0] - 1)


@njit(cache=True, forceinline=True, _nrt=False)
def pair_slot(table, key):  # type: ignore[no-untyped-def]
    """The row of a pair, or the free one where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    slot = first_slot(table, key)
    while table[slot, KEY] != key and table[slot, KEY] != FREE:
        slot = (slot + ONE) & mask
    return slot


@njit(cache=True)
def grown(array, needed):  # type: ignore[no-untyped-def]
    """The array, or a larger copy that has room for `needed` entries."""
    if needed <= array.size:
        return array
    larger = np.empty(max(needed, array.size * 3 // 2), array.dtype)
    larger[: array.size] = array
    return larger


@njit(cache=True)
def resized(table, rows, least):  # type: ignore[no-untyped-def]
    """The pairs of at least that count in a table of `rows` rows, and how many they are."""
    target = np.full((rows, 4), FREE, np.int64)
    kept = 0
    for row in range(table.shape[0]):
        if table[row, KEY] != FREE and table[row, COUNT] >= least:
            target[pair_slot(target, table[row, KEY])] = table[row]
            kept += 1
    return target, kept


@njit(cache=True)
def moved_together(pairs, room):  # type: ignore[no-untyped-def]
    """A pool with only the slices of pairs that can still be merged, and room after them; how much is filled.

    It is the same array if that leaves room enough: slices move down in their order.
    """
    table, pool = pairs.table, pairs.pool
    live = 0
    number = 0
    rows = np.empty(table.shape[0], np.int64)
    for row in range(table.shape[0]):
        if table[row, KEY] != FREE and table[row, COUNT] >= pairs.threshold:
            live += table[row, LENGTH]
            rows[number] = row
            number += 1
    rows = rows[:number]
    rows = rows[np.argsort(table[rows, PLACE])]
    target = pool
    if live + max(live // 8, room) > pool.size:
        target = np.empty(live + max(live // 4, room), np.int32)
    filled = 0
    for row in rows:
        move(target, filled, pool, table[row, PLACE], table[row, LENGTH])
        table[row, PLACE] = filled
        filled += table[row, LENGTH]
    return target, filled


@njit(cache=True)
def with_room(pairs, born, places):  # type: ignore[no-untyped-def]
    """The pairs, with room for so many new ones and their places."""
    table, rows, pool, filled, threshold, below_length = pairs
    while 2 * (rows + born) > table.shape[0]:
        table, rows = resized(table, 2 * table.shape[0], threshold)
    if filled + places > pool.size:
        pool, filled = moved_together(Pairs(table, rows, pool, filled, threshold, below_length), places)
    return Pairs(table, rows, pool, filled, threshold, below_length)


@njit(cache=True, nogil=True)
def compacted(symbols, cells):  # type: ignore[no-untyped-def]
    """Moves the symbols together, one cell each, without the words that are one symbol; returns the cells in use."""
    written = 1
    word = 1
    at = 1
    while at < symbols.size:
        symbol = symbols[at]
        symbols[written] = symbol
        written += 1
        if symbol < 0:
            if written - word <= 2:
                written = word
            word = written
            at += 1
        else:
            at += cells[symbol]
    return written


@njit(cache=True, nogil=True)
def count_pairs(symbols, weights, threshold, below_length):  # type: ignore[no-untyped-def]
    """All pairs of at least that count in an array whose symbols are one cell each."""
    table = np.full((1 << 14, 4), FREE, np.int64)
    rows = 0
    weight = np.int64(0)
    for at in range(symbols.size - 2, -1, -1):
        right = symbols[at + 1]
        if right < 0:
            weight = weights[FIRST_WEIGHT - right]
            continue
        if symbols[at] < 0:
            continue
        key = np.int64(symbols[at]) << 32 | np.int64(right)
        slot = pair_slot(table, key)
        if table[slot, KEY] == FREE:
            if 2 * (rows + 1) > table.shape[0]:
                table, rows = resized(table, 2 * table.shape[0], 0)
                slot = pair_slot(table, key)
            table[slot, KEY] = key
            table[slot, COUNT] = 0
            table[slot, LENGTH] = 0
            rows += 1
        table[slot, COUNT] += weight
        table[slot, LENGTH] += 1
    wanted = 0
    for row in range(table.shape[0]):
        wanted += table[row, KEY] != FREE and table[row, COUNT] >= threshold
    size = 1 << 12
    while size < 4 * wanted:
        size *= 2
    table, rows = resized(table, size, threshold)
    filled = 0
    for row in range(table.shape[0]):
        if table[row, KEY] != FREE:
            filled += table[row, LENGTH]
            table[row, PLACE] = filled
    pool = np.empty(filled, np.int32)
    for at in range(symbols.size - 2, -1, -1):
        if symbols[at] >= 0 and symbols[at + 1] >= 0:
            slot = pair_slot(table, np.int64(symbols[at]) << 32 | np.int64(symbols[at + 1]))
            if table[slot, KEY] != FREE:
                table[slot, PLACE] -= 1
                pool[table[slot, PLACE]] = at
    return Pairs(table, rows, pool, filled, threshold, below_length)
