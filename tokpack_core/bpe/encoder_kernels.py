"""Byte-level BPE of one word: its bytes merged, the lowest rank first, then the leftmost.

`merges`, int64 [power of two, 2]: left << 32 | right (or FREE), rank << 32 | token; `byte_merges`, int64 [65536]: the
same second column for pairs of single bytes, by first byte << 8 | second. NONE stands for no merge.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import ONE

FREE = -1
NONE = 2**62
TOKEN = 0xFFFFFFFF
QUADRATIC = 64
"""Words up to so many bytes are searched for the best pair again and again; longer ones keep pairs in a heap."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


@njit(cache=True, forceinline=True, _nrt=False)
def merge_of(merges, left, right):  # type: ignore[no-untyped-def]
    key = np.int64(left) << 32 | np.int64(right)
    mask = np.uint64(merges.shape[0] - 1)
    hashed = (np.uint64(key) ^ (np.uint64(key) >> SHIFT)) * FACTOR
    slot = (hashed ^ (hashed >> SHIFT)) & mask
    while merges[slot, 0] != FREE:
        if merges[slot, 0] == key:
            return merges[slot, 1]
        slot = (slot + ONE) & mask
    return NONE


@njit(cache=True)
def fill_merges(merges, left, right, ranks, tokens):  # type: ignore[no-untyped-def]
    """Enters merges into a table of FREE rows; the first of two for the same pair stays."""
    mask = np.uint64(merges.shape[0] - 1)
    for k in range(left.size):
        key = np.int64(left[k]) << 32 | np.int64(right[k])
        hashed = (np.uint64(key) ^ (np.uint64(key) >> SHIFT)) * FACTOR
        slot = (hashed ^ (hashed >> SHIFT)) & mask
        while merges[slot, 0] != FREE and merges[slot, 0] != key:
            slot = (slot + ONE) & mask
        if merges[slot, 0] == FREE:
            merges[slot, 0] = key
            merges[slot, 1] = np.int64(ranks[k]) << 32 | np.int64(tokens[k])


@njit(cache=True, forceinline=True, _nrt=False)
def merge_scanned(tokens, length, best, merges):  # type: ignore[no-untyped-def]
    """Merges tokens[:length] in place, the lowest rank first, then the leftmost; returns how many are left.

    best[k] is the merge of tokens k and k + 1 (int64 [length - 1], changed).
    """
    while length > 1:
        place = 0
        for k in range(1, length - 1):
            if best[k] < best[place]:
                place = k
        if best[place] == NONE:
            break
        tokens[place] = best[place] & TOKEN
        length -= 1
        for k in range(place + 1, length):
            tokens[k] = tokens[k + 1]
            best[k - 1] = best[k]
        if place + 1 < length:
            best[place] = merge_of(merges, tokens[place], tokens[place + 1])
        if place > 0:
            best[place - 1] = merge_of(merges, tokens[place - 1], tokens[place])
    return length


@njit(cache=True, forceinline=True, _nrt=False)
def encode_short(data, first, length, byte_ids, byte_merges, merges, symbols, best, ids, at):  # type: ignore[no-untyped-def]
    """Writes the ids of a word of up to QUADRATIC bytes to ids[at:]; returns how many. symbols, best: scratch."""
    for k in range(length):
        symbols[k] = byte_ids[data[first + k]]
    for k in range(length - 1):
        best[k] = byte_merges[np.int64(data[first + k]) << 8 | np.int64(data[first + k + 1])]
    length = merge_scanned(symbols, length, best, merges)
    for k in range(length):
        ids[at + k] = symbols[k]
    return length


@njit(cache=True, forceinline=True, _nrt=False)
def sift_down(heap, size, entry):  # type: ignore[no-untyped-def]
    """Puts an entry in the place of the first of a binary heap."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = entry


@njit(cache=True, forceinline=True, _nrt=False)
def sift_up(heap, size, entry):  # type: ignore[no-untyped-def]
    """Adds an entry to a heap of `size`."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] > entry:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = entry


@njit(cache=True, inline="always")
def join(place, token, symbols, after, before, length, merges, heap, size):  # type: ignore[no-untyped-def]
    """Makes the symbol at `place` and the one after it the one `token`; returns the new size of the heap.

    The merges of the new symbol with its neighbours enter the heap. A symbol that went into another is -1.
    """
    gone = after[place]
    symbols[place] = token
    symbols[gone] = -1
    after[place] = after[gone]
    if after[place] < length:
        before[after[place]] = place
        merge = merge_of(merges, symbols[place], symbols[after[place]])
        if merge != NONE:
            sift_up(heap, size, merge >> 32 << 32 | place)
            size += 1
    if before[place] >= 0:
        merge = merge_of(merges, symbols[before[place]], symbols[place])
        if merge != NONE:
            sift_up(heap, size, merge >> 32 << 32 | np.int64(before[place]))
            size += 1
    return size


@njit(cache=True, nogil=True)
def lay_out(data, first, length, byte_ids, byte_merges, symbols, after, before, heap):  # type: ignore[no-untyped-def]
    """Writes the symbols of a word's bytes, the links between them and the heap of their merges, whose size it returns.

    Heap entries are rank << 32 | place, so ties go to the left.
    """
    size = 0
    for k in range(length):
        symbols[k] = byte_ids[data[first + k]]
        after[k] = k + 1
        before[k] = k - 1
        if k + 1 < length:
            merge = byte_merges[np.int64(data[first + k]) << 8 | np.int64(data[first + k + 1])]
            if merge != NONE:
                sift_up(heap, size, merge >> 32 << 32 | k)
                size += 1
    return size


@njit(cache=True, nogil=True)
def lay_out_tokens(tokens, first, length, merges, symbols, after, before, heap):  # type: ignore[no-untyped-def]
    """The same for a row of tokens."""
    size = 0
    for k in range(length):
        symbols[k] = tokens[first + k]
        after[k] = k + 1
        before[k] = k - 1
        if k + 1 < length:
            merge = merge_of(merges, tokens[first + k], tokens[first + k + 1])
            if merge != NONE:
                sift_up(heap, size, merge >> 32 << 32 | k)
                size += 1
    return size


@njit(cache=True, forceinline=True, _nrt=False)
def next_merge(symbols, after, length, merges, heap, size):  # type: ignore[no-untyped-def]
    """Takes entries from the heap until one is the merge of what stands at its place today.

    Returns (place, merge, size of the heap); place -1 if none is left.
    """
    while size > 0:
        entry = heap[0]
        size -= 1
        sift_down(heap, size, heap[size])
        place = entry & TOKEN
        if symbols[place] < 0 or after[place] == length:
            continue
        merge = merge_of(merges, symbols[place], symbols[after[place]])
        if merge != NONE and merge >> 32 == entry >> 32:
            return place, merge, size
    return np.int64(-1), np.int64(NONE), size
