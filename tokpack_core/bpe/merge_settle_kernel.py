"""What the merges of a round take from old pairs and give to new ones: see `merge_round_kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.intrinsics import prefetch
from tokpack_core.bpe.merge_kernels import (
    COUNT,
    FREE,
    KEY,
    LENGTH,
    PLACE,
    first_slot,
    grown,
    pair_slot,
    push,
    resized,
    with_room,
)
from tokpack_core.bpe.merge_round_kernels import (
    AFTER,
    LEFT_SYMBOL,
    NEIGHBOUR,
    NOTES,
    NUMBER,
    RECORDS,
    RIGHT_SYMBOL,
    TARGET,
    TOKEN,
    WEIGHT,
)

COLUMNS = 4
"""Of the table of pairs."""


@njit(cache=True, forceinline=True, _nrt=False)
def take(pairs, left, right, weight):  # type: ignore[no-untyped-def]
    """Lowers the count of a pair, if it is one that is followed."""
    slot = pair_slot(pairs, left << 32 | right)
    if pairs[slot, KEY] != FREE:
        pairs[slot, COUNT] -= weight


@njit(cache=True, forceinline=True, _nrt=False)
def sum_up(pairs, left, right, token, scratch, merge, shares):  # type: ignore[no-untyped-def]
    """Sums up the records of one merge, an entry for each neighbour; returns how many they are.

    Brings the rows of the pairs that they make, and made, into the caches.
    """
    entries, entry_of, records = scratch.entries, scratch.entry_of, scratch.records
    number = 0
    for share in range(shares):
        for record in range(scratch.ends[share, merge], scratch.ends[share, merge + 1]):
            neighbour = records[share, record, NEIGHBOUR]
            entry = entry_of[neighbour]
            if entry == 0:
                entries[number, NEIGHBOUR] = neighbour
                entries[number, NUMBER] = 0
                entries[number, WEIGHT] = 0
                number += 1
                entry = number
                entry_of[neighbour] = entry
                symbol = neighbour >> 1
                if neighbour & 1 == AFTER:
                    prefetch(pairs, COLUMNS * np.int64(first_slot(pairs, right << 32 | symbol)))
                    prefetch(pairs, COLUMNS * np.int64(first_slot(pairs, token << 32 | symbol)))
                else:
                    prefetch(pairs, COLUMNS * np.int64(first_slot(pairs, symbol << 32 | left)))
                    prefetch(pairs, COLUMNS * np.int64(first_slot(pairs, symbol << 32 | token)))
            entries[entry - 1, NUMBER] += records[share, record, NUMBER]
            entries[entry - 1, WEIGHT] += records[share, record, WEIGHT]
    return number


@njit(cache=True, forceinline=True, _nrt=False)
def share_targets(scratch, merge, shares, number):  # type: ignore[no-untyped-def]
    """Gives each share its cells of those of an entry, in the order of shares, and forgets the entries."""
    entries, entry_of, records = scratch.entries, scratch.entry_of, scratch.records
    for share in range(shares):
        for record in range(scratch.ends[share, merge], scratch.ends[share, merge + 1]):
            entry = entry_of[records[share, record, NEIGHBOUR]] - 1
            records[share, record, TARGET] = entries[entry, TARGET]
            if entries[entry, TARGET] >= 0:
                entries[entry, TARGET] += records[share, record, NUMBER]
    for entry in range(number):
        entry_of[entries[entry, NEIGHBOUR]] = 0


@njit(cache=True, nogil=True)
def settle(  # type: ignore[no-untyped-def]
    pairs,
    rows,
    pool,
    filled,
    heap_counts,
    heap_pairs,
    heaped,
    batch,
    merges,
    scratch,
    shares,
    arena,
    begins,
    threshold,
    below_length,
    tie_break,
):
    """Settles the first `merges` of `batch`, which the first `shares` have made, one after the other.

    The places of new pairs are still to be written. Returns (pairs, rows, pool, filled, heap_counts, heap_pairs,
    heaped), of which each may be new.
    """
    born = 0
    places = 0
    for share in range(shares):
        born += scratch.used[share, RECORDS]
        places += scratch.used[share, NOTES]
    while 2 * (rows + born) > pairs.shape[0]:
        pairs, rows = resized(pairs, 2 * pairs.shape[0], threshold)
    heap_counts = grown(heap_counts, heaped + born)
    heap_pairs = grown(heap_pairs, heaped + born)
    if filled + places > pool.size:
        pool, filled = with_room(pairs, pool, threshold, places)
    entries = scratch.entries
    for merge in range(merges):
        left, right, token = batch[merge, LEFT_SYMBOL], batch[merge, RIGHT_SYMBOL], batch[merge, TOKEN]
        number = sum_up(pairs, left, right, token, scratch, merge, shares)
        for entry in range(number):
            neighbour, side = entries[entry, NEIGHBOUR] >> 1, entries[entry, NEIGHBOUR] & 1
            if side == AFTER:
                take(pairs, right, neighbour, entries[entry, WEIGHT])
            elif neighbour != token:
                take(pairs, neighbour, left, entries[entry, WEIGHT])
        joined = scratch.joined[:shares, merge].sum()
        if joined:
            take(pairs, right, left, joined)
        token_length = begins[token + 1] - begins[token]
        for entry in range(number):
            neighbour, side = entries[entry, NEIGHBOUR] >> 1, entries[entry, NEIGHBOUR] & 1
            count = entries[entry, WEIGHT]
            if count < threshold or (side == AFTER and neighbour == token):
                entries[entry, TARGET] = -1
                continue
            if begins[neighbour + 1] - begins[neighbour] + token_length >= below_length:
                entries[entry, TARGET] = -1
                continue
            key = token << 32 | neighbour if side == AFTER else neighbour << 32 | token
            slot = pair_slot(pairs, key)
            rows += pairs[slot, KEY] == FREE
            pairs[slot, KEY], pairs[slot, COUNT] = key, count
            pairs[slot, PLACE], pairs[slot, LENGTH] = filled, entries[entry, NUMBER]
            entries[entry, TARGET] = filled
            filled += entries[entry, NUMBER]
            push(heap_counts, heap_pairs, heaped, count, key, tie_break, arena, begins)
            heaped += 1
        share_targets(scratch, merge, shares, number)
    return pairs, rows, pool, filled, heap_counts, heap_pairs, heaped
