"""The loop over merges: the best pair from the heap, then the steps of `merge_loop_kernel`."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_kernels import (
    COUNT,
    FREE,
    KEY,
    LENGTH,
    PLACE,
    RIGHT,
    pair_slot,
    push,
    replace_top,
)
from tokpack_core.bpe.merge_loop_kernel import spell
from tokpack_core.bpe.merge_step_kernel import merge_step, room_for_notes


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
    noted = room_for_notes()
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
        pairs, rows, pool, filled, heap_counts, heap_pairs, heaped, noted = merge_step(
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
            left,
            right,
            token,
            place,
            stop,
            noted,
            threshold,
            below_length,
            tie_break,
        )
        place = np.int64(-1)
    return place, stop, tokens, arena, pairs, rows, pool, filled, heap_counts, heap_pairs, heaped
