"""Pairs in the order in which they are merged: a 4-ary heap by their counts, of which some are those of earlier.

An entry whose count is outdated is put back when it comes up. Of equal counts, the smaller pair of ids comes first, or
the greatest or smallest pair of byte strings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, FREE, KEY, RIGHT, grown, pair_slot
from tokpack_core.bpe.spelling_kernels import compare_tokens, length_of

HUGGING_FACE, LEXICOGRAPHIC_GREATEST, LEXICOGRAPHIC_SMALLEST = 0, 1, 2
"""In the order of `merge_settings.TIE_BREAKS`."""
ROOM = 1024


class Heap(NamedTuple):
    counts: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int64]
    """left << 32 | right"""
    size: npt.NDArray[np.int64]
    """[1]: entries in use"""
    tie_break: int


@njit(cache=True)
def empty_heap(entries, tie_break):  # type: ignore[no-untyped-def]
    """With room for that many entries, and more."""
    return Heap(
        np.empty(entries + ROOM, np.int64), np.empty(entries + ROOM, np.int64), np.zeros(1, np.int64), tie_break
    )


@njit(cache=True)
def with_entries(heap, more):  # type: ignore[no-untyped-def]
    """The heap with room for so many more entries."""
    counts, pairs, size, tie_break = heap
    return Heap(grown(counts, size[0] + more), grown(pairs, size[0] + more), size, tie_break)


@njit(cache=True, forceinline=True, _nrt=False)
def precedes(count, key, other_count, other_key, tie_break, spelling):  # type: ignore[no-untyped-def]
    """Whether the first of two pairs is merged before the second."""
    if count != other_count:
        return count > other_count
    if tie_break == HUGGING_FACE:
        return key < other_key
    order = np.int64(0)
    if key >> 32 != other_key >> 32:
        order = compare_tokens(key >> 32, other_key >> 32, spelling)
    if order == 0:
        order = compare_tokens(key & RIGHT, other_key & RIGHT, spelling)
    return order > 0 if tie_break == LEXICOGRAPHIC_GREATEST else order < 0


@njit(cache=True, _nrt=False)
def push(heap, count, key, spelling):  # type: ignore[no-untyped-def]
    """Adds an entry, for which there is room."""
    counts, pairs, size, tie_break = heap
    at = size[0]
    size[0] += 1
    while at > 0:
        parent = (at - 1) >> 2
        if not precedes(count, key, counts[parent], pairs[parent], tie_break, spelling):
            break
        counts[at] = counts[parent]
        pairs[at] = pairs[parent]
        at = parent
    counts[at] = count
    pairs[at] = key


@njit(cache=True, _nrt=False)
def replace_top(heap, count, key, spelling):  # type: ignore[no-untyped-def]
    """Puts an entry in the place of the first one."""
    counts, pairs, _, tie_break = heap
    size = heap.size[0]
    at = 0
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        best = child
        for sibling in range(child + 1, min(child + 4, size)):
            if precedes(counts[sibling], pairs[sibling], counts[best], pairs[best], tie_break, spelling):
                best = sibling
        if not precedes(counts[best], pairs[best], count, key, tie_break, spelling):
            break
        counts[at] = counts[best]
        pairs[at] = pairs[best]
        at = best
    counts[at] = count
    pairs[at] = key


@njit(cache=True, forceinline=True, _nrt=False)
def remove_top(heap, spelling):  # type: ignore[no-untyped-def]
    heap.size[0] -= 1
    last = heap.size[0]
    replace_top(heap, heap.counts[last], heap.pairs[last], spelling)


@njit(cache=True, _nrt=False)
def find_best(heap, table, threshold, spelling):  # type: ignore[no-untyped-def]
    """Makes the pair that is to be merged next the first entry; returns whether there is one that occurs `threshold`
    times."""
    while heap.size[0] > 0:
        key = heap.pairs[0]
        count = table[pair_slot(table, key), COUNT]
        if count == heap.counts[0]:
            return True
        if count < threshold:
            heap.size[0] -= 1
            count, key = heap.counts[heap.size[0]], heap.pairs[heap.size[0]]
        replace_top(heap, count, key, spelling)
    return False


@njit(cache=True)
def heap_of(pairs, spelling, tie_break):  # type: ignore[no-untyped-def]
    """All pairs that may be merged. Two single bytes may at any rate."""
    heap = empty_heap(pairs.rows, tie_break)
    table = pairs.table
    for row in range(table.shape[0]):
        key = table[row, KEY]
        if key == FREE:
            continue
        length = length_of(key >> 32, spelling) + length_of(key & RIGHT, spelling)
        if length == 2 or length < pairs.below_length:
            push(heap, table[row, COUNT], key, spelling)
    return heap
