"""Supermerges on the tokens that the word merges gave.

`merges` is a table as in `encoder_kernels`. `bridges` is one too: it holds the pairs of word tokens (last of a left
side, first of a right side) that some supermerge joins, so that a text falls apart into short pieces first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import NONE, TOKEN, join, merge_of, sift_down, sift_up

SCANNED = 32
"""Pieces up to so many tokens are searched for the best pair again and again; longer ones keep pairs in a heap."""


@njit(cache=True, nogil=True)
def merge_scanned(tokens, length, best, merges):  # type: ignore[no-untyped-def]
    """Merges tokens[:length] in place, the lowest rank first, then the leftmost; returns how many are left."""
    for k in range(length - 1):
        best[k] = merge_of(merges, tokens[k], tokens[k + 1])
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


@njit(cache=True, nogil=True)
def merge_heaped(tokens, length, merges):  # type: ignore[no-untyped-def]
    """The same for any length. Heap entries are rank << 32 | place."""
    after = np.arange(1, length + 1, dtype=np.int32)
    before = np.arange(-1, length - 1, dtype=np.int32)
    heap = np.empty(3 * length, np.int64)
    size = 0
    for k in range(length - 1):
        merge = merge_of(merges, tokens[k], tokens[k + 1])
        if merge != NONE:
            sift_up(heap, size, merge >> 32 << 32 | k)
            size += 1
    while size > 0:
        entry = heap[0]
        size -= 1
        sift_down(heap, size, heap[size])
        place = entry & TOKEN
        if tokens[place] < 0 or after[place] == length:
            continue
        gone = after[place]
        merge = merge_of(merges, tokens[place], tokens[gone])
        if merge == NONE or merge >> 32 != entry >> 32:
            continue
        size = join(place, merge & TOKEN, tokens, after, before, length, merges, heap, size)
    count = 0
    place = 0
    while place < length:
        tokens[count] = tokens[place]
        count += 1
        place = after[place]
    return count


@njit(cache=True, nogil=True)
def merge_joined(ids, joins, borders, bridges, merges, id_borders):  # type: ignore[no-untyped-def]
    """Merges joined tokens, in place; document d holds ids[borders[d]:borders[d + 1]]; returns how many are left.

    id_borders becomes the borders of the documents in what is left.
    """
    best = np.empty(SCANNED, np.int64)
    written = 0
    id_borders[0] = 0
    for document in range(borders.size - 1):
        start, stop = borders[document], borders[document + 1]
        while start < stop:
            after = start + 1
            while after < stop and joins[after] and merge_of(bridges, ids[after - 1], ids[after]) != NONE:
                after += 1
            length = after - start
            if length > 1:
                if length <= SCANNED:
                    length = merge_scanned(ids[start:after], length, best, merges)
                else:
                    length = merge_heaped(ids[start:after], length, merges)
            for k in range(length):
                ids[written + k] = ids[start + k]
            written += length
            start = after
        id_borders[document + 1] = written
    return written
