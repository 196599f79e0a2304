"""Byte-level BPE encoding of a word of any length, a window at a time: memory and cache misses are those of a window.

Two windows overlap, and are joined at a token that has the same place in the encodings of both. What that gives is the
encoding of the whole, for any merges that are applied the lowest rank first, then the leftmost:

1. No merge reaches over the borders of the tokens that stand in the end, so what happens between two of them is what
   would happen to those bytes alone. Tokens that are neighbours in an encoding are therefore the encoding of their own
   bytes; and one place has one token, however it was come by.
2. If each two neighbours of a sequence are the encoding of their own bytes, the sequence is the encoding of all: the
   first merge over a border would, the bytes of the two tokens next to it alone, have been the next one there too.

(The pairwise test is that of GitHub's `bpe` crate.) Right of a window's end other text follows, so its last tokens are
not settled; the next window begins with one of them. How far a change reaches to the left is bounded by the merges, and
is some tokens in practice; where it reaches further than the overlap, which the comparison shows, all is begun anew
with windows of twice the size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import TOKEN, join, lay_out, next_merge

WINDOW = 1 << 16
"""Bytes: the arrays of a window, 36 bytes a byte, stay in the processor's cache."""
OVERLAP = 16
"""A window's last part, of so many, is merged again by the next one."""


@njit(cache=True, nogil=True)
def encode_long(data, first, length, byte_ids, byte_merges, merges, window, ids, at):  # type: ignore[no-untyped-def]
    """Writes the ids of a word of any length to ids[at:]; returns how many."""
    while True:
        count = encode_in_windows(data, first, length, byte_ids, byte_merges, merges, window, ids, at)
        if count >= 0:
            return count
        window *= 2


@njit(cache=True, nogil=True)
def encode_in_windows(data, first, length, byte_ids, byte_merges, merges, window, ids, at):  # type: ignore[no-untyped-def]
    """The same, or -1 where two windows of this size have no token in common."""
    size = min(window, length)
    symbols = np.empty(size, np.int32)
    after = np.empty(size, np.int32)
    before = np.empty(size, np.int32)
    heap = np.empty(3 * size, np.int64)
    begin = np.int64(0)
    shared = np.int64(0)
    written = np.int64(at)
    while True:
        size = min(window, length - begin)
        waiting = lay_out(data, first + begin, size, byte_ids, byte_merges, symbols, after, before, heap)
        while True:
            place, merge, waiting = next_merge(symbols, after, size, merges, heap, waiting)
            if place < 0:
                break
            waiting = join(place, merge & TOKEN, symbols, after, before, size, merges, heap, waiting)
        if begin > 0 and after[0] != shared:
            return np.int64(-1)
        settled = size if begin + size == length else size - max(size // OVERLAP, 1)
        place = np.int64(0)
        while place < size and after[place] <= settled:
            ids[written] = symbols[place]
            written += 1
            place = np.int64(after[place])
        if place == size:
            return written - at
        if place == 0:
            return np.int64(-1)
        begin += place
        shared = np.int64(after[place]) - place
