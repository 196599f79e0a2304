"""The loop over merges: see `merge_kernels` for the layout.

One merge: replace the pair wherever it stands, sum up per neighbouring symbol what that takes from old pairs and gives
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
    RIGHT,
    pair_slot,
    push,
    replace_top,
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


@njit(cache=True)
def heap_of(pairs, rows, arena, begins, below_length, tie_break):  # type: ignore[no-untyped-def]
    """Counts and pairs of a heap of all that may be merged, with room for more, and how many they are."""
    heap_counts = np.empty(rows + 1024, np.int64)
    heap_pairs = np.empty(rows + 1024, np.int64)
    heaped = 0
    for row in range(pairs.shape[0]):
        key = pairs[row, KEY]
        if key == FREE:
            continue
        length = begins[(key >> 32) + 1] - begins[key >> 32] + begins[(key & RIGHT) + 1] - begins[key & RIGHT]
        if length == 2 or length < below_length:
            push(heap_counts, heap_pairs, heaped, pairs[row, COUNT], key, tie_break, arena, begins)
            heaped += 1
    return heap_counts, heap_pairs, heaped


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
    if heaped + born > heap_counts.size:
        room = max(heaped + born, heap_counts.size * 3 // 2)
        larger_counts, larger_pairs = np.empty(room, np.int64), np.empty(room, np.int64)
        larger_counts[:heaped], larger_pairs[:heaped] = heap_counts[:heaped], heap_pairs[:heaped]
        heap_counts, heap_pairs = larger_counts, larger_pairs
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
    """The first of pool[place:stop] that is in another word than the one before it, or `stop`."""
    while place < stop:
        for at in range(pool[place - 1], pool[place]):
            if symbols[at] < INTERIOR:
                return place
        place += 1
    return stop


@njit(cache=True, nogil=True)
def merge_while(  # type: ignore[no-untyped-def]
    symbols,
    weights,
    pairs,
    rows,
    pool,
    filled,
    heap_counts,
    heap_pairs,
    heaped,
    cells,
    numbers,
    totals,
    targets,
    touched,
    tally,
    arena,
    begins,
    merges,
    tokens,
    threshold,
    below_length,
    tie_break,
    many,
):
    """Merges until there are as many tokens as `merges` has rows, or no pair occurs `threshold` times.

    `pairs` has `rows` entries, all pairs of at least `threshold`, whose places stand in the first `filled` cells of
    `pool`; cells[t] is how many cells of `symbols` token t takes. `tokens` exist; token t is arena[begins[t] :
    begins[t + 1]], and what made it goes to merges[t]: left, right, count (int64). A merge makes a token of fewer than
    `below_length` bytes, or of two single ones.

    Returns (place, stop, tokens, arena, and what `settle` returns): a pair of `many` places or more is taken from the
    heap and its token spelled, but pool[place:stop] is left to be replaced; place -1 if all is done.
    """
    symbols_noted = np.empty((2, 1024), np.int32)
    places_noted = np.empty((2, 1024), np.int32)
    place, stop = np.int64(-1), np.int64(-1)
    while tokens < merges.shape[0] and heaped > 0:
        key = heap_pairs[0]
        slot = pair_slot(pairs, key)
        count = pairs[slot, COUNT]
        outdated = count != heap_counts[0]
        if outdated and count >= threshold:
            replace_top(heap_counts, heap_pairs, heaped, count, key, tie_break, arena, begins)
        else:
            heaped -= 1
            last_count, last_pair = heap_counts[heaped], heap_pairs[heaped]
            replace_top(heap_counts, heap_pairs, heaped, last_count, last_pair, tie_break, arena, begins)
        if outdated:
            continue
        left, right = key >> 32, key & RIGHT
        token = np.int64(tokens)
        arena = spell(left, right, token, arena, begins)
        cells[token] = cells[left] + cells[right]
        tokens += 1
        merges[token, 0], merges[token, 1], merges[token, 2] = left, right, count
        pairs[slot, COUNT] = 0
        place, number = pairs[slot, PLACE], pairs[slot, LENGTH]
        stop = place + number
        if number >= many:
            break
        if number > symbols_noted.shape[1]:
            symbols_noted = np.empty((2, number), np.int32)
            places_noted = np.empty((2, number), np.int32)
        joined = replace(
            symbols,
            weights,
            pool,
            place,
            stop,
            left,
            right,
            token,
            cells,
            numbers[0],
            totals[0],
            touched[0],
            symbols_noted,
            places_noted,
            tally[0],
        )
        pairs, rows, pool, filled, heap_counts, heap_pairs, heaped = settle(
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
        )
        write_noted(pool, symbols_noted, places_noted, numbers[0], totals[0], targets[0], touched[0], tally[0])
        place = np.int64(-1)
    return place, stop, tokens, arena, pairs, rows, pool, filled, heap_counts, heap_pairs, heaped
