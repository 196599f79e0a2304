"""Encoding words by merges and deletions in the order in which a training with deletions did them.

`merge_events`, int64 [power of two, 2]: pair of symbols (or FREE), and where its events begin in `pair_events` (int32:
numbers of events, ascending, each list ended by -1); `deleted_at` [symbols + 1] does the same for symbols into
`symbol_events`. An event is (left, right, token), or (token, -1, k) for a deletion with the parts
parts[part_offsets[k] : part_offsets[k + 1]].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import FREE, NONE, merge_of, sift_down, sift_up
from tokpack_core.bpe.merge_kernels import grown

PLACE_MASK = 0xFFFFFFFF


@njit(cache=True)
def next_pair_event(merge_events, pair_events, left, right, now):  # type: ignore[no-untyped-def]
    """The first event after `now` that merges a pair, or NONE."""
    at = merge_of(merge_events, left, right)
    if at == NONE:
        return NONE
    while pair_events[at] >= 0:
        if pair_events[at] > now:
            return np.int64(pair_events[at])
        at += 1
    return NONE


@njit(cache=True)
def next_deletion(deleted_at, symbol_events, symbol, now):  # type: ignore[no-untyped-def]
    for at in range(deleted_at[symbol], deleted_at[symbol + 1]):
        if symbol_events[at] > now:
            return np.int64(symbol_events[at])
    return NONE


@njit(cache=True, nogil=True)
def encode_words_by_events(  # type: ignore[no-untyped-def]
    data, offsets, byte_ids, merge_events, pair_events, deleted_at, symbol_events, events, parts, part_offsets, lengths
):
    """Words data[offsets[k]:offsets[k + 1]] → (symbols of all, where those of each begin); lengths: bytes of each."""
    ids = np.empty(offsets[-1] - offsets[0], np.int32)
    begins = np.zeros(offsets.size, np.int64)
    heap = np.empty(1024, np.int64)
    written = 0
    for word in range(offsets.size - 1):
        first = offsets[word]
        length = offsets[word + 1] - first
        # symbols[at] begins at byte `at`, -1: none does; begin_of[at]: where the symbol that ends there begins.
        symbols = np.full(length + 1, -1, np.int32)
        begin_of = np.empty(length + 1, np.int64)
        size = 0
        heap = grown(heap, 2 * length + 8)
        for at in range(length):
            symbols[at] = byte_ids[data[first + at]]
            begin_of[at + 1] = at
        for at in range(length - 1):
            event = next_pair_event(merge_events, pair_events, symbols[at], symbols[at + 1], -1)
            if event != NONE:
                sift_up(heap, size, event << 32 | at)
                size += 1
        while size > 0:
            entry = heap[0]
            size -= 1
            sift_down(heap, size, heap[size])
            now, place = entry >> 32, entry & PLACE_MASK
            if symbols[place] != events[now, 0]:
                continue
            symbol = np.int64(symbols[place])
            stop = place + lengths[symbol]
            heap = grown(heap, size + 2 * lengths[symbol] + 8)
            if events[now, 1] >= 0:
                if stop >= length or symbols[stop] != events[now, 1]:
                    continue
                token = np.int64(events[now, 2])
                stop += lengths[symbols[stop]]
                symbols[place + lengths[symbol]] = -1
                symbols[place] = token
                begin_of[stop] = place
                event = next_deletion(deleted_at, symbol_events, token, now)
                if event != NONE:
                    sift_up(heap, size, event << 32 | place)
                    size += 1
                inner = place
            else:
                deletion = events[now, 2]
                cell = np.int64(place)
                inner = cell
                for k in range(part_offsets[deletion], part_offsets[deletion + 1]):
                    part = parts[k]
                    symbols[cell] = part
                    begin_of[cell + lengths[part]] = cell
                    event = next_deletion(deleted_at, symbol_events, part, now)
                    if event != NONE:
                        sift_up(heap, size, event << 32 | cell)
                        size += 1
                    inner = cell
                    cell += lengths[part]
                cell = np.int64(place)
                while cell < inner:
                    following = cell + lengths[symbols[cell]]
                    event = next_pair_event(merge_events, pair_events, symbols[cell], symbols[following], now)
                    if event != NONE:
                        sift_up(heap, size, event << 32 | cell)
                        size += 1
                    cell = following
            if place > 0:
                before = begin_of[place]
                event = next_pair_event(merge_events, pair_events, symbols[before], symbols[place], now)
                if event != NONE:
                    sift_up(heap, size, event << 32 | before)
                    size += 1
            if stop < length:
                event = next_pair_event(merge_events, pair_events, symbols[inner], symbols[stop], now)
                if event != NONE:
                    sift_up(heap, size, event << 32 | inner)
                    size += 1
        at = 0
        while at < length:
            ids[written] = symbols[at]
            written += 1
            at += lengths[symbols[at]]
        begins[word + 1] = written
    return ids[:written].copy(), begins


@njit(cache=True)
def fill_pair_events(table, lefts, rights, starts):  # type: ignore[no-untyped-def]
    """Enters where each pair's events begin into a table of FREE rows, in the layout that `merge_of` reads."""
    mask = np.uint64(table.shape[0] - 1)
    for k in range(lefts.size):
        key = np.int64(lefts[k]) << 32 | np.int64(rights[k])
        hashed = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        slot = (hashed ^ (hashed >> np.uint64(29))) & mask
        while table[slot, 0] != FREE:
            slot = (slot + np.uint64(1)) & mask
        table[slot, 0] = key
        table[slot, 1] = starts[k]
