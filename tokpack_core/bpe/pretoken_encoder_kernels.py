"""Byte-level BPE encoding of pretokens, each different one once. Tables of merges are those of `encoder_kernels`.

A word's value in the table is where its ids begin in `known_ids` (int32) << LENGTH_BITS | how many they are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import QUADRATIC, encode_short
from tokpack_core.bpe.window_kernels import encode_long
from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, ONE, VALUE, new_entry, slot_of, word_key

LENGTH_BITS = np.uint64(20)
LENGTH_MASK = np.uint64((1 << 20) - 1)


@njit(cache=True, nogil=True)
def encode_pretokens(  # type: ignore[no-untyped-def]
    data,
    begin,
    ends,
    byte_ids,
    byte_merges,
    merges,
    longest_known,
    window,
    slots,
    entries,
    arena,
    used,
    filled,
    known_ids,
    known,
    ids,
    id_ends,
):
    """Ids of pretokens that follow each other from `begin`; id_ends[k] = ids written when pretoken k was complete.

    The table remembers words of up to `longest_known` bytes; `window` as `window_kernels` has it. `ids` has room for an
    id a byte, `known_ids` for as many of the words to remember. Returns (entries, bytes in the arena, known ids).
    """
    symbols = np.empty(QUADRATIC, np.int32)
    best = np.empty(QUADRATIC, np.int64)
    first = begin
    at = 0
    for k in range(ends.size):
        length = ends[k] - first
        if length > longest_known:
            at += encode_long(data, first, length, byte_ids, byte_merges, merges, window, ids, at)
        else:
            low, high = word_key(data, first, length)
            slot = slot_of(data, first, length, low, high, slots, entries, arena)
            if slots[slot] == 0:
                new_entry(data, first, length, low, high, slot, slots, entries, arena, used, filled)
                if length <= QUADRATIC:
                    count = encode_short(
                        data, first, length, byte_ids, byte_merges, merges, symbols, best, known_ids, known
                    )
                else:
                    count = encode_long(data, first, length, byte_ids, byte_merges, merges, window, known_ids, known)
                entries[used, VALUE] = np.uint64(known) << LENGTH_BITS | np.uint64(count)
                used += 1
                filled += length
                known += count
            value = entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE]
            place = np.int64(value >> LENGTH_BITS)
            for number in range(np.int64(value & LENGTH_MASK)):
                ids[at] = known_ids[place + number]
                at += 1
        id_ends[k] = at
        first = ends[k]
    return used, filled, known
