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

All of it holds for a row of tokens as for a row of bytes: without `byte_merges`, `data` holds tokens.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import TOKEN, join, lay_out, lay_out_tokens, next_merge

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
def merge_long(tokens, merges, window):  # type: ignore[no-untyped-def]
    """Merges a row of tokens of any length in place; returns how many are left."""
    no_ids, no_merges = np.empty(0, np.int32), np.empty(0, np.int64)
    merged = np.empty(tokens.size, np.int32)
    count = encode_long(tokens, np.int64(0), np.int64(tokens.size), no_ids, no_merges, merges, window, merged, 0)
    tokens[:count] = merged[:count]
    return count


@njit(cache=True, nogil=True)
def encode_in_windows(data, first, length, byte_ids, byte_merges, merges, window, ids, at):  # type: ignore[no-untyped-def]
    """The same, or -1 where windows of this size do not fit together."""
    size = min(window, length)
    symbols, after, before = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    heap = np.empty(3 * size, np.int64)
    begin = shared = np.int64(0)
    written = np.int64(at)
    while True:
        size = min(window, length - begin)
        merge_window(data, first + begin, size, byte_ids, byte_merges, merges, symbols, after, before, heap)
        if begin > 0 and after[0] != shared:
            return np.int64(-1)
        border = size if begin + size == length else settled_border(after, size)
        place = np.int64(0)
        while place < border:
            ids[written] = symbols[place]
            written += 1
            place = np.int64(after[place])
        if begin + size == length:
            return written - at
        if border <= size // 2:
            return np.int64(-1)
        begin += border
        shared = np.int64(after[border]) - border


@njit(cache=True, nogil=True)
def write_piece_ends(data, first, length, byte_ids, byte_merges, merges, window, ends):  # type: ignore[no-untyped-def]
    """Cuts a word between tokens, into pieces of up to two windows; returns how many, or -1 as `encode_in_windows`.

    `ends`: room for 2 * length // window + 1.
    """
    size = min(window, length)
    symbols, after, before = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    heap = np.empty(3 * size, np.int64)
    begin = shared = np.int64(0)
    count = 0
    while True:
        size = min(window, length - begin)
        merge_window(data, first + begin, size, byte_ids, byte_merges, merges, symbols, after, before, heap)
        if begin > 0 and after[0] != shared:
            return -1
        if begin + size == length:
            count = max(count, 1)  # the last piece goes with the one before it, so that none is short
            ends[count - 1] = length
            return count
        border = settled_border(after, size)
        if border <= size // 2:
            return -1
        begin += border
        shared = np.int64(after[border]) - border
        ends[count] = begin
        count += 1


@njit(cache=True, nogil=True)
def cut_long_words(data, offsets, weights, byte_ids, byte_merges, merges, window):  # type: ignore[no-untyped-def]
    """Words data[offsets[i] : offsets[i + 1]], which lie back to back, and their weights, with those longer than two
    windows cut into pieces between tokens, each with the weight of its word: (offsets, weights).

    What merges do on the pieces, one by one, is what they do on the word: none reaches over the border of two tokens.
    """
    most = 0
    for word in range(weights.size):
        most += 1 + 2 * (offsets[word + 1] - offsets[word]) // window
    all_offsets, all_weights = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    all_offsets[0] = offsets[0]
    written = 0
    for word in range(weights.size):
        first, length = offsets[word], offsets[word + 1] - offsets[word]
        count, size = 1, window
        all_offsets[written + 1] = first + length
        if length > 2 * window:
            ends = all_offsets[written + 1 :]
            count = write_piece_ends(data, first, length, byte_ids, byte_merges, merges, size, ends)
            while count < 0:
                size *= 2
                count = write_piece_ends(data, first, length, byte_ids, byte_merges, merges, size, ends)
            ends[:count] += first
        all_weights[written : written + count] = weights[word]
        written += count
    return all_offsets[: written + 1], all_weights[:written]


@njit(cache=True, nogil=True)
def merge_window(data, first, size, byte_ids, byte_merges, merges, symbols, after, before, heap):  # type: ignore[no-untyped-def]
    if byte_merges.size:
        waiting = lay_out(data, first, size, byte_ids, byte_merges, symbols, after, before, heap)
    else:
        waiting = lay_out_tokens(data, first, size, merges, symbols, after, before, heap)
    while True:
        place, merge, waiting = next_merge(symbols, after, size, merges, heap, waiting)
        if place < 0:
            break
        waiting = join(place, merge & TOKEN, symbols, after, before, size, merges, heap, waiting)


@njit(cache=True, nogil=True)
def settled_border(after, size):  # type: ignore[no-untyped-def]
    """Where the token begins that reaches into the last part of a window, which the next one merges again."""
    settled = size - max(size // OVERLAP, 1)
    place = np.int64(0)
    while after[place] <= settled:
        place = np.int64(after[place])
    return place
