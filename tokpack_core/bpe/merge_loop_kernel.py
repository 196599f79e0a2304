"""One merge: see `merge_kernels` for the layout.

Replace the pair wherever it stands, sum up per neighbouring symbol what that takes from old pairs and gives
to new ones, then look up each different neighbour once.

The places of a pair can be shared out to threads, cut between words. Each has scratch of its own, by side of the merged
pair (before, after) and neighbour: `numbers`, occurrences; `totals`, their weight; `targets`, the next place in the
pool; `touched`, the neighbours that occur; `tally`, see `note`. All have a first axis for the share.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.intrinsics import prefetch
from tokpack_core.bpe.merge_kernels import (
    COUNT,
    FIRST_WEIGHT,
    FREE,
    INTERIOR,
    KEY,
    LENGTH,
    PLACE,
    grown,
    pair_slot,
    push,
    resized,
    with_room,
)

BEFORE, AFTER = 0, 1
AHEAD = 16
"""Occurrences between the one that is replaced and the one that is brought into the caches."""


@njit(cache=True, forceinline=True, _nrt=False)
def note(side, symbol, place, weight, numbers, totals, touched, symbols_noted, places_noted, tally):  # type: ignore[no-untyped-def]
    """Writes down one occurrence of a neighbour; tally[side] = occurrences, tally[2 + side] = different neighbours."""
    if numbers[side, symbol] == 0:
        touched[side, tally[2 + side]] = symbol
        tally[2 + side] += 1
    numbers[side, symbol] += 1
    totals[side, symbol] += weight
    symbols_noted[side, tally[side]] = symbol
    places_noted[side, tally[side]] = place
    tally[side] += 1


@njit(cache=True, forceinline=True, _nrt=False)
def forget(numbers, totals, touched, tally):  # type: ignore[no-untyped-def]
    for side in range(2):
        for k in range(tally[2 + side]):
            numbers[side, touched[side, k]] = 0
            totals[side, touched[side, k]] = 0
    tally[:] = 0


@njit(cache=True, forceinline=True, _nrt=False)
def take(pairs, left, right, weight):  # type: ignore[no-untyped-def]
    """Lowers the count of a pair, if it is one that is followed."""
    slot = pair_slot(pairs, np.int64(left) << 32 | np.int64(right))
    if pairs[slot, KEY] != FREE:
        pairs[slot, COUNT] -= weight


@njit(cache=True)
def spell(left, right, token, arena, begins):  # type: ignore[no-untyped-def]
    """Writes the bytes of a new token after those of all others; returns the arena, which may have grown."""
    filled = begins[token]
    needed = filled + begins[left + 1] - begins[left] + begins[right + 1] - begins[right]
    if needed > arena.size:
        larger = np.empty(2 * needed, np.uint8)
        larger[:filled] = arena[:filled]
        arena = larger
    for part in (left, right):
        for at in range(begins[part], begins[part + 1]):
            arena[filled] = arena[at]
            filled += 1
    begins[token + 1] = filled
    return arena


@njit(cache=True, nogil=True)
def replace(  # type: ignore[no-untyped-def]
    symbols,
    weights,
    pool,
    place,
    stop,
    left,
    right,
    token,
    cells,
    numbers,
    totals,
    touched,
    symbols_noted,
    places_noted,
    tally,
):
    """Replaces the pair at pool[place:stop], notes its neighbours; returns the weight of those next to each other."""
    left_cells, right_cells = cells[left], cells[right]
    joined = np.int64(0)
    after_last = -1
    border = -1
    for k in range(place, stop):
        prefetch(symbols, pool[min(k + AHEAD, stop - 1)])
        at = pool[k]
        middle = at + left_cells
        if symbols[at] != left or symbols[middle] != right:
            continue
        following = middle + right_cells
        if border < following:
            border = following
            while symbols[border] >= INTERIOR:
                border += 1
        weight = weights[FIRST_WEIGHT - symbols[border]]
        before = symbols[at - 1]
        if before >= 0:
            if at == after_last:
                joined += weight
                totals[AFTER, left] -= weight
            place_before = at - cells[before]
            note(BEFORE, before, place_before, weight, numbers, totals, touched, symbols_noted, places_noted, tally)
        after = symbols[following]
        if after >= 0:
            note(AFTER, after, at, weight, numbers, totals, touched, symbols_noted, places_noted, tally)
        symbols[middle - 1] = INTERIOR
        symbols[middle] = INTERIOR
        symbols[at] = token
        symbols[following - 1] = token
        after_last = following
    return joined


@njit(cache=True)
def settle(  # type: ignore[no-untyped-def]
    pairs,
    rows,
    pool,
    filled,
    heap_counts,
    heap_pairs,
    heaped,
    numbers,
    totals,
    targets,
    touched,
    tally,
    arena,
    begins,
    left,
    right,
    token,
    joined,
    threshold,
    below_length,
    tie_break,
):
    """Takes from old pairs and gives birth to new ones, whose places are still to be written to `targets`.

    Returns (pairs, rows, pool, filled, heap_counts, heap_pairs, heaped), of which each may be new.
    """
    shares = numbers.shape[0]
    born = 0
    places = 0
    for share in range(shares):
        for k in range(tally[share, 2 + BEFORE]):
            before = touched[share, BEFORE, k]
            if before != token:
                take(pairs, before, left, totals[share, BEFORE, before])
        for k in range(tally[share, 2 + AFTER]):
            after = touched[share, AFTER, k]
            if totals[share, AFTER, after]:
                take(pairs, right, after, totals[share, AFTER, after])
        born += tally[share, 2] + tally[share, 3]
        places += tally[share, BEFORE] + tally[share, AFTER]
    if joined:
        take(pairs, right, left, joined)
    while 2 * (rows + born) > pairs.shape[0]:
        pairs, rows = resized(pairs, 2 * pairs.shape[0], threshold)
    heap_counts = grown(heap_counts, heaped + born)
    heap_pairs = grown(heap_pairs, heaped + born)
    if filled + places > pool.size:
        pool, filled = with_room(pairs, pool, threshold, places)
    token_length = begins[token + 1] - begins[token]
    for share in range(shares):
        for side in range(2):
            for k in range(tally[share, 2 + side]):
                neighbour = touched[share, side, k]
                count = np.int64(0)
                number = np.int64(0)
                seen = False
                for other in range(shares):
                    seen |= other < share and numbers[other, side, neighbour] > 0
                    count += totals[other, side, neighbour]
                    number += numbers[other, side, neighbour]
                if seen:
                    continue
                longer = begins[neighbour + 1] - begins[neighbour] + token_length
                if count < threshold or longer >= below_length or (side == AFTER and neighbour == token):
                    targets[:, side, neighbour] = -1
                    continue
                target = filled
                for other in range(share, shares):
                    targets[other, side, neighbour] = target
                    target += numbers[other, side, neighbour]
                first, second = (np.int64(neighbour), token) if side == BEFORE else (token, np.int64(neighbour))
                key = first << 32 | second
                slot = pair_slot(pairs, key)
                rows += pairs[slot, KEY] == FREE
                pairs[slot, KEY], pairs[slot, COUNT] = key, count
                pairs[slot, PLACE], pairs[slot, LENGTH] = filled, number
                filled = target
                push(heap_counts, heap_pairs, heaped, count, key, tie_break, arena, begins)
                heaped += 1
    return pairs, rows, pool, filled, heap_counts, heap_pairs, heaped


@njit(cache=True, nogil=True)
def write_noted(pool, symbols_noted, places_noted, numbers, totals, targets, touched, tally):  # type: ignore[no-untyped-def]
    """Writes the places of one share's new pairs, and clears its scratch."""
    for side in range(2):
        for k in range(tally[side]):
            neighbour = symbols_noted[side, k]
            target = targets[side, neighbour]
            if target >= 0:
                pool[target] = places_noted[side, k]
                targets[side, neighbour] = target + 1
    forget(numbers, totals, touched, tally)


@njit(cache=True)
def share_begins(symbols, pool, place, stop):  # type: ignore[no-untyped-def]
    """The first of pool[place:stop] that is in another word than the one before it, or `stop`; pool[place - 1] is one
    of the same pair."""
    while place < stop:
        for at in range(pool[place - 1], pool[place]):
            if symbols[at] < INTERIOR:
                return place
        place += 1
    return stop
