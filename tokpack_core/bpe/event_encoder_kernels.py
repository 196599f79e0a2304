"""Encoding words by merges and deletions in the order in which a training with deletions did them.

`merge_events`, int64 [power of two, 2]: pair of symbols (or FREE), and where its events begin in `pair_events` (int32:
numbers of events, ascending, each list ended by -1); `deleted_at` [symbols + 1] does the same for symbols into
`symbol_events`. An event is (left, right, token), or (token, -1, k) for a deletion with the parts
parts[part_offsets[k] : part_offsets[k + 1]].

A long word is encoded a window at a time, which is exact for the following reason. Call a place free if no merge ever
reaches over it. What happens between two free places is what would happen to those bytes alone. The next window begins
at a free place p of this one, and some place q in what both have is free in both. Then p is free in the whole: the
first merge over it would take the token that ends there, which what is left of p gives as in this window, and the one
that begins there, which the bytes from p to q give, in either window; so this window would have had that merge. (Right
of q the next window has the whole's tokens up to its own p, by the same reason from the word's end on.) Where there is
no such q, all is begun anew with windows of twice the size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.encoder_kernels import FREE, NONE, merge_of, sift_down, sift_up
from tokpack_core.bpe.merge_kernels import grown
from tokpack_core.bpe.window_kernels import OVERLAP

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
    data,
    offsets,
    byte_ids,
    merge_events,
    pair_events,
    deleted_at,
    symbol_events,
    events,
    parts,
    part_offsets,
    lengths,
    window,
    ids,
    begins,
):
    """Symbols of words data[offsets[k] : offsets[k + 1]] to `ids`, which has room for one a byte.

    lengths: bytes of each symbol; begins[k + 1]: where those of word k end.
    """
    rules = (byte_ids, merge_events, pair_events, deleted_at, symbol_events, events, parts, part_offsets, lengths)
    longest = 0
    for word in range(offsets.size - 1):
        longest = max(longest, min(offsets[word + 1] - offsets[word], window))
    scratch = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32), np.empty(longest + 1, np.bool_)
    heap = np.empty(1024, np.int64)
    written = 0
    for word in range(offsets.size - 1):
        first = offsets[word]
        length = offsets[word + 1] - first
        if length <= window:
            heap = apply_events(data, first, length, rules, scratch, heap)
            written = write_symbols(scratch[0], length, lengths, ids, written)
        else:
            size = window
            count = encode_in_windows(data, first, length, rules, size, ids, written)
            while count < 0:
                size *= 2
                count = encode_in_windows(data, first, length, rules, size, ids, written)
            written = count
        begins[word + 1] = written


@njit(cache=True, nogil=True)
def encode_in_windows(data, first, length, rules, window, ids, written):  # type: ignore[no-untyped-def]
    """Writes the symbols of a long word to ids[written:]; returns how many there are then, or -1 where windows of this
    size do not fit together."""
    size = min(window, length)
    scratch = np.empty(size + 1, np.int32), np.empty(size + 1, np.int32), np.empty(size + 1, np.bool_)
    symbols, _, crossed = scratch
    before = np.empty(size + 1, np.bool_)  # `crossed` of the window before, from where this one begins
    heap = np.empty(1024, np.int64)
    begin = np.int64(0)
    shared = np.int64(0)
    while True:
        size = min(window, length - begin)
        heap = apply_events(data, first + begin, size, rules, scratch, heap)
        if begin > 0:
            place = 1
            while place < shared and (crossed[place] or before[place]):
                place += 1
            if place >= shared:
                return np.int64(-1)
        if begin + size == length:
            return write_symbols(symbols, size, rules[8], ids, written)
        border = size - max(size // OVERLAP, 1)
        while border > 0 and crossed[border]:
            border -= 1
        if border <= size // 2:
            return np.int64(-1)
        written = write_symbols(symbols, border, rules[8], ids, written)
        shared = size - border
        before[:shared] = crossed[border:size]
        begin += border


@njit(cache=True, nogil=True)
def write_symbols(symbols, stop, lengths, ids, written):  # type: ignore[no-untyped-def]
    at = 0
    while at < stop:
        ids[written] = symbols[at]
        written += 1
        at += lengths[symbols[at]]
    return written


@njit(cache=True, nogil=True)
def apply_events(data, first, length, rules, scratch, heap):  # type: ignore[no-untyped-def]
    """The symbols of some bytes to the first array of `scratch`; returns the heap, which may have grown.

    scratch, each [length + 1] or more: symbols[at] begins at byte `at`, -1 if none does; begin_of[at] is where the
    symbol that ends there begins; crossed[at] is whether a merge reached over the border before that byte.
    """
    byte_ids, merge_events, pair_events, deleted_at, symbol_events, events, parts, part_offsets, lengths = rules
    symbols, begin_of, crossed = scratch
    crossed[: length + 1] = False
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
            crossed[stop] = True
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
    return heap


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
