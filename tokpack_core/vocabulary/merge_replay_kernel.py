"""Merges of byte-level BPE replayed on different words, each with a weight, watching what the merges do.

A word is encoded by always applying the merge of the lowest rank. When the next merge has rank r, all that are left
have r or more; so the symbols at this moment are the word's encoding by a tokenizer that has only the merges below
any cut ≤ r: one pass gives the counts at every size to which the list of merges could be shortened.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import TOKEN, join, lay_out, next_merge
from tokpack_core.bpe.pretoken_encoder_kernels import LENGTH_BITS
from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, ONE, VALUE, slot_of, word_key


@njit(cache=True, nogil=True)
def replay(  # type: ignore[no-untyped-def]
    data,
    offsets,
    weights,
    longest,
    byte_ids,
    byte_merges,
    merges,
    slots,
    entries,
    arena,
    whole_ids,
    cuts,
    at_cut,
    consumed,
    final,
):
    """Adds the weight of each word, times how often, to
    at_cut[k, t]: token t is in the encoding by the merges of rank < cuts[k] (ascending);
    final[t]: token t is in the encoding; consumed[t]: a merge took t as one of its two.

    Word i is data[offsets[i] : offsets[i + 1]], none longer than `longest` bytes. A word of the table (slots, entries,
    arena; values as `encoder_kernels` keeps them, ids in `whole_ids`) is one token, whatever its merges give.
    """
    symbols = np.empty(longest, np.int32)
    after = np.empty(longest, np.int32)
    before = np.empty(longest, np.int32)
    eaten = np.empty(2 * longest, np.int32)
    heap = np.empty(3 * longest + 1, np.int64)
    for word in range(weights.size):
        first = offsets[word]
        length = offsets[word + 1] - first
        weight = weights[word]
        if length == 0:
            continue
        size = lay_out(data, first, length, byte_ids, byte_merges, symbols, after, before, heap)
        cut = 0
        meals = 0
        while True:
            place, merge, size = next_merge(symbols, after, length, merges, heap, size)
            if place < 0:
                break
            gone = after[place]
            while cut < cuts.size and merge >> 32 >= cuts[cut]:
                at = 0
                while at < length:
                    at_cut[cut, symbols[at]] += weight
                    at = after[at]
                cut += 1
            eaten[meals] = symbols[place]
            eaten[meals + 1] = symbols[gone]
            meals += 2
            size = join(place, merge & TOKEN, symbols, after, before, length, merges, heap, size)
        while cut < cuts.size:
            at = 0
            while at < length:
                at_cut[cut, symbols[at]] += weight
                at = after[at]
            cut += 1
        if after[0] < length:
            low, high = word_key(data, first, length)
            slot = slot_of(data, first, length, low, high, slots, entries, arena)
            if slots[slot] != 0:
                value = entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE]
                final[whole_ids[np.int64(value >> LENGTH_BITS)]] += weight
                continue
        for k in range(meals):
            consumed[eaten[k]] += weight
        at = 0
        while at < length:
            final[symbols[at]] += weight
            at = after[at]
