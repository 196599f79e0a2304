"""What the merges of a round take from old pairs and give to new ones: see `merge_round_kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.intrinsics import prefetch
from tokpack_core.bpe.merge_heap_kernels import push, with_entries
from tokpack_core.bpe.merge_kernels import COUNT, FREE, KEY, LENGTH, PLACE, Pairs, first_slot, pair_slot, with_room
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
from tokpack_core.bpe.spelling_kernels import length_of

COLUMNS = 4
"""Of the table of pairs."""


@njit(cache=True, forceinline=True, _nrt=False)
def take(table, left, right, weight):  # type: ignore[no-untyped-def]
    """Lowers the count of a pair, if it is one that is followed."""
    slot = pair_slot(table, left << 32 | right)
    if table[slot, KEY] != FREE:
        table[slot, COUNT] -= weight


@njit(cache=True, forceinline=True, _nrt=False)
def sum_up(table, left, right, token, scratch, merge, shares):  # type: ignore[no-untyped-def]
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
                    prefetch(table, COLUMNS * np.int64(first_slot(table, right << 32 | symbol)))
                    prefetch(table, COLUMNS * np.int64(first_slot(table, token << 32 | symbol)))
                else:
                    prefetch(table, COLUMNS * np.int64(first_slot(table, symbol << 32 | left)))
                    prefetch(table, COLUMNS * np.int64(first_slot(table, symbol << 32 | token)))
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


@njit(cache=True, forceinline=True, _nrt=False)
def take_from_old(table, left, right, token, scratch, merge, shares, number):  # type: ignore[no-untyped-def]
    """Lowers the counts of the pairs that one merge has broken."""
    entries = scratch.entries
    for entry in range(number):
        neighbour, side = entries[entry, NEIGHBOUR] >> 1, entries[entry, NEIGHBOUR] & 1
        if side == AFTER:
            take(table, right, neighbour, entries[entry, WEIGHT])
        elif neighbour != token:
            take(table, neighbour, left, entries[entry, WEIGHT])
    joined = np.int64(0)
    for share in range(shares):
        joined += scratch.joined[share, merge]
    if joined:
        take(table, right, left, joined)


@njit(cache=True)
def give_to_new(pairs, heap, token, entries, number, spelling):  # type: ignore[no-untyped-def]
    """Follows the pairs that one merge has made, and gives each its cells of the pool; returns all pairs."""
    table, rows, pool, filled, threshold, below_length = pairs
    token_length = length_of(token, spelling)
    for entry in range(number):
        neighbour, side = entries[entry, NEIGHBOUR] >> 1, entries[entry, NEIGHBOUR] & 1
        count = entries[entry, WEIGHT]
        if count < threshold or (side == AFTER and neighbour == token):
            entries[entry, TARGET] = -1
            continue
        if length_of(neighbour, spelling) + token_length >= below_length:
            entries[entry, TARGET] = -1
            continue
        key = token << 32 | neighbour if side == AFTER else neighbour << 32 | token
        slot = pair_slot(table, key)
        rows += table[slot, KEY] == FREE
        table[slot, KEY], table[slot, COUNT] = key, count
        table[slot, PLACE], table[slot, LENGTH] = filled, entries[entry, NUMBER]
        entries[entry, TARGET] = filled
        filled += entries[entry, NUMBER]
        push(heap, count, key, spelling)
    return Pairs(table, rows, pool, filled, threshold, below_length)


@njit(cache=True, nogil=True)
def settle(pairs, heap, merges, scratch, shares, spelling):  # type: ignore[no-untyped-def]
    """Settles the first `merges` of a round, which the first `shares` have made, one after the other.

    The places of new pairs are still to be written. Returns pairs and heap.
    """
    batch = scratch.batch
    # Typed, since numba would compile what they are given to for the number 0 as well.
    born, places = np.int64(0), np.int64(0)
    for share in range(shares):
        born += scratch.used[share, RECORDS]
        places += scratch.used[share, NOTES]
    pairs = with_room(pairs, born, places)
    heap = with_entries(heap, born)
    for merge in range(merges):
        left, right, token = batch[merge, LEFT_SYMBOL], batch[merge, RIGHT_SYMBOL], batch[merge, TOKEN]
        number = sum_up(pairs.table, left, right, token, scratch, merge, shares)
        take_from_old(pairs.table, left, right, token, scratch, merge, shares, number)
        pairs = give_to_new(pairs, heap, token, scratch.entries, number, spelling)
        share_targets(scratch, merge, shares, number)
    return pairs, heap
