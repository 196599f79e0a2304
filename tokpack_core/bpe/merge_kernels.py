"""The inner loop of byte-level BPE training: pairs in the order of their counts, on one array of symbols.

Layout. `symbols`, int32, holds the unique words one after the other: a symbol of k cells has its id in its first and
its last cell and INTERIOR between, so neighbours are found without links; a word is followed by one cell that names
its weight, FIRST_WEIGHT - i for weights[i]; the first cell of all is such a one too.

`pairs`, int64 [power of two, 4], open addressing: left << 32 | right (or FREE), count, and a slice of `pool`, int32,
with the cells where the pair occurs, ascending. The slice is complete when the pair is born, in the step that makes its
newer symbol; later the count only shrinks, and places that no longer hold the pair are passed over. So a pair below
`threshold` at birth can be left out, and all that is left out can never be the best while the best is not below it.

No two merges spell the same token: between two borders that are never merged over, the symbols are those that the
merges make of the bytes between them alone, so a string that once became one symbol always does.

`heap_counts`, `heap_pairs`: a 4-ary heap of pairs; an entry whose count is outdated is put back when it comes up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.intrinsics import move
from tokpack_core.bpe.word_table_kernels import ONE

FREE = -1
INTERIOR = -1
FIRST_WEIGHT = -2
KEY, COUNT, PLACE, LENGTH = 0, 1, 2, 3
HUGGING_FACE, LEXICOGRAPHIC_GREATEST, LEXICOGRAPHIC_SMALLEST = 0, 1, 2
RIGHT = 0xFFFFFFFF
UNLIMITED = 2**62
"""More bytes than any token has, and more places than any pair."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


@njit(cache=True, forceinline=True, _nrt=False)
def first_slot(pairs, key):  # type: ignore[no-untyped-def]
    """The row from which on a pair is looked for."""
    hashed = (np.uint64(key) ^ (np.uint64(key) >> SHIFT)) * FACTOR
    return (hashed ^ (hashed >> SHIFT)) & np.uint64(pairs.shape[0] - 1)


@njit(cache=True, forceinline=True, _nrt=False)
def pair_slot(pairs, key):  # type: ignore[no-untyped-def]
    """The row of a pair, or the free one where it belongs."""
    mask = np.uint64(pairs.shape[0] - 1)
    slot = first_slot(pairs, key)
    while pairs[slot, KEY] != key and pairs[slot, KEY] != FREE:
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
def resized(pairs, rows, least):  # type: ignore[no-untyped-def]
    """The pairs of at least that count in a table of `rows` rows, and how many they are."""
    table = np.full((rows, 4), FREE, np.int64)
    kept = 0
    for row in range(pairs.shape[0]):
        if pairs[row, KEY] != FREE and pairs[row, COUNT] >= least:
            table[pair_slot(table, pairs[row, KEY])] = pairs[row]
            kept += 1
    return table, kept


@njit(cache=True)
def with_room(pairs, pool, threshold, room):  # type: ignore[no-untyped-def]
    """A pool with only the slices of pairs that can still be merged, and room after them; how much is filled.

    It is the same array if that leaves room enough: slices move down in their order.
    """
    live = 0
    number = 0
    rows = np.empty(pairs.shape[0], np.int64)
    for row in range(pairs.shape[0]):
        if pairs[row, KEY] != FREE and pairs[row, COUNT] >= threshold:
            live += pairs[row, LENGTH]
            rows[number] = row
            number += 1
    rows = rows[:number]
    rows = rows[np.argsort(pairs[rows, PLACE])]
    target = pool
    if live + max(live // 8, room) > pool.size:
        target = np.empty(live + max(live // 4, room), np.int32)
    filled = 0
    for row in rows:
        move(target, filled, pool, pairs[row, PLACE], pairs[row, LENGTH])
        pairs[row, PLACE] = filled
        filled += pairs[row, LENGTH]
    return target, filled


@njit(cache=True)
def spell(left, right, token, arena, begins):  # type: ignore[no-untyped-def]
    """Writes the bytes of a new token after those of all others; returns the arena, which may have grown."""
    filled = begins[token]
    needed = filled + begins[left + 1] - begins[left] + begins[right + 1] - begins[right]
    if needed > arena.size:
        larger = np.empty(2 * needed, np.uint8)
        larger[:filled] = arena[:filled]
        arena = larger
    for part in (left, right):
        for at in range(begins[part], begins[part + 1]):
            arena[filled] = arena[at]
            filled += 1
    begins[token + 1] = filled
    return arena


@njit(cache=True, forceinline=True, _nrt=False)
def compare_tokens(one, other, arena, begins):  # type: ignore[no-untyped-def]
    """Negative, 0 or positive as the bytes of one token stand before, at or after the other's."""
    shorter = min(begins[one + 1] - begins[one], begins[other + 1] - begins[other])
    for at in range(shorter):
        difference = np.int64(arena[begins[one] + at]) - np.int64(arena[begins[other] + at])
        if difference != 0:
            return difference
    return (begins[one + 1] - begins[one]) - (begins[other + 1] - begins[other])


@njit(cache=True, forceinline=True, _nrt=False)
def precedes(count, key, other_count, other_key, tie_break, arena, begins):  # type: ignore[no-untyped-def]
    """Whether the first of two pairs is merged before the second."""
    if count != other_count:
        return count > other_count
    if tie_break == HUGGING_FACE:
        return key < other_key
    order = np.int64(0)
    if key >> 32 != other_key >> 32:
        order = compare_tokens(key >> 32, other_key >> 32, arena, begins)
    if order == 0:
        order = compare_tokens(key & RIGHT, other_key & RIGHT, arena, begins)
    return order > 0 if tie_break == LEXICOGRAPHIC_GREATEST else order < 0


@njit(cache=True)
def push(heap_counts, heap_pairs, size, count, key, tie_break, arena, begins):  # type: ignore[no-untyped-def]
    """Adds to a heap of `size` entries that has room for one more."""
    at = size
    while at > 0:
        parent = (at - 1) >> 2
        if not precedes(count, key, heap_counts[parent], heap_pairs[parent], tie_break, arena, begins):
            break
        heap_counts[at] = heap_counts[parent]
        heap_pairs[at] = heap_pairs[parent]
        at = parent
    heap_counts[at] = count
    heap_pairs[at] = key


@njit(cache=True)
def replace_top(heap_counts, heap_pairs, size, count, key, tie_break, arena, begins):  # type: ignore[no-untyped-def]
    """Puts an entry in the place of the first one."""
    at = 0
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        best = child
        for sibling in range(child + 1, min(child + 4, size)):
            if precedes(
                heap_counts[sibling], heap_pairs[sibling], heap_counts[best], heap_pairs[best], tie_break, arena, begins
            ):
                best = sibling
        if not precedes(heap_counts[best], heap_pairs[best], count, key, tie_break, arena, begins):
            break
        heap_counts[at] = heap_counts[best]
        heap_pairs[at] = heap_pairs[best]
        at = best
    heap_counts[at] = count
    heap_pairs[at] = key


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
def count_pairs(symbols, weights, threshold):  # type: ignore[no-untyped-def]
    """All pairs of at least that count in an array whose symbols are one cell each: (pairs, how many, pool)."""
    pairs = np.full((1 << 14, 4), FREE, np.int64)
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
        slot = pair_slot(pairs, key)
        if pairs[slot, KEY] == FREE:
            if 2 * (rows + 1) > pairs.shape[0]:
                pairs, rows = resized(pairs, 2 * pairs.shape[0], 0)
                slot = pair_slot(pairs, key)
            pairs[slot, KEY] = key
            pairs[slot, COUNT] = 0
            pairs[slot, LENGTH] = 0
            rows += 1
        pairs[slot, COUNT] += weight
        pairs[slot, LENGTH] += 1
    wanted = 0
    for row in range(pairs.shape[0]):
        wanted += pairs[row, KEY] != FREE and pairs[row, COUNT] >= threshold
    size = 1 << 12
    while size < 4 * wanted:
        size *= 2
    pairs, rows = resized(pairs, size, threshold)
    filled = 0
    for row in range(pairs.shape[0]):
        if pairs[row, KEY] != FREE:
            filled += pairs[row, LENGTH]
            pairs[row, PLACE] = filled
    pool = np.empty(filled, np.int32)
    for at in range(symbols.size - 2, -1, -1):
        if symbols[at] >= 0 and symbols[at + 1] >= 0:
            slot = pair_slot(pairs, np.int64(symbols[at]) << 32 | np.int64(symbols[at + 1]))
            if pairs[slot, KEY] != FREE:
                pairs[slot, PLACE] -= 1
                pool[pairs[slot, PLACE]] = at
    return pairs, rows, pool
