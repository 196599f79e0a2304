"""The merge that comes last when the bytes of a token are encoded: the two tokens that it is made of."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import TOKEN, join, lay_out, next_merge


@njit(cache=True, nogil=True)
def last_merges(data, offsets, ids, longest, byte_ids, byte_merges, merges, parts):  # type: ignore[no-untyped-def]
    """Writes the two that are merged last to parts[ids[i]] if the bytes of word i, merged, are the token ids[i].

    Word i is data[offsets[i] : offsets[i + 1]], none longer than `longest` bytes; the tables are those of
    `encoder_kernels`. Other rows of parts, int32 [vocab_size, 2], stay as they are.
    """
    symbols = np.empty(longest, np.int32)
    after = np.empty(longest, np.int32)
    before = np.empty(longest, np.int32)
    heap = np.empty(3 * longest + 1, np.int64)
    for word in range(ids.size):
        first = offsets[word]
        length = offsets[word + 1] - first
        if length < 2:
            continue
        size = lay_out(data, first, length, byte_ids, byte_merges, symbols, after, before, heap)
        left = right = np.int32(-1)
        while True:
            place, merge, size = next_merge(symbols, after, length, merges, heap, size)
            if place < 0:
                break
            left, right = symbols[place], symbols[after[place]]
            size = join(place, merge & TOKEN, symbols, after, before, length, merges, heap, size)
        if after[0] == length and symbols[0] == ids[word]:
            parts[ids[word], 0], parts[ids[word], 1] = left, right
