"""One merge made by one thread: the steps of `merge_loop_kernel` in their order, with one share of scratch."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_loop_kernel import replace, settle, write_noted


@njit(cache=True)
def room_for_notes():  # type: ignore[no-untyped-def]
    """Scratch of `merge_step`: int32 [symbols and places of neighbours, before and after, places of a pair]."""
    return np.empty((2, 2, 1024), np.int32)


@njit(cache=True, nogil=True)
def merge_step(  # type: ignore[no-untyped-def]
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
):
    """Makes left and right into `token`, whose bytes are spelled, at pool[place:stop].

    Returns what `settle` does, and `noted`, which may be a larger one.
    """
    if stop - place > noted.shape[2]:
        noted = np.empty((2, 2, stop - place), np.int32)
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
        noted[0],
        noted[1],
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
    write_noted(pool, noted[0], noted[1], numbers[0], totals[0], targets[0], touched[0], tally[0])
    return pairs, rows, pool, filled, heap_counts, heap_pairs, heaped, noted
