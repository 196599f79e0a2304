"""Supermerges on the tokens that the word merges gave.

`merges` is a table as in `encoder_kernels`. `bridges` is one too: it holds the pairs of word tokens (last of a left
side, first of a right side) that some supermerge joins, so that a text falls apart into short pieces first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import NONE, TOKEN, join, lay_out_tokens, merge_of, merge_scanned, next_merge
from tokpack_core.bpe.window_kernels import WINDOW, merge_long

SCANNED = 32
"""Pieces up to so many tokens are searched for the best pair again and again; longer ones keep pairs in a heap,
and those longer than a window go through it in windows."""


@njit(cache=True, nogil=True)
def merge_heaped(tokens, length, merges):  # type: ignore[no-untyped-def]
    """The same as `merge_scanned` for any length. Heap entries are rank << 32 | place."""
    after, before = np.empty(length, np.int32), np.empty(length, np.int32)
    heap = np.empty(3 * length, np.int64)
    size = lay_out_tokens(tokens, 0, length, merges, tokens, after, before, heap)
    while True:
        place, merge, size = next_merge(tokens, after, length, merges, heap, size)
        if place < 0:
            break
        size = join(place, merge & TOKEN, tokens, after, before, length, merges, heap, size)
    count = 0
    place = 0
    while place < length:
        tokens[count] = tokens[place]
        count += 1
        place = after[place]
    return count


@njit(cache=True, nogil=True)
def merge_piece(tokens, length, best, merges):  # type: ignore[no-untyped-def]
    """Merges tokens[:length] in place; returns how many are left. best: scratch, int64 [SCANNED]."""
    if length > WINDOW:
        return merge_long(tokens[:length], merges, WINDOW)
    if length > SCANNED:
        return merge_heaped(tokens, length, merges)
    for k in range(length - 1):
        best[k] = merge_of(merges, tokens[k], tokens[k + 1])
    return merge_scanned(tokens, length, best, merges)


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
                length = merge_piece(ids[start:after], length, best, merges)
            for k in range(length):
                ids[written + k] = ids[start + k]
            written += length
            start = after
        id_borders[document + 1] = written
    return written
