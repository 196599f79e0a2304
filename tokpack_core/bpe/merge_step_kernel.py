"""One merge made by one thread: a round of one (see `merge_round_kernels`)."""

from __future__ import annotations

from numba import njit

from tokpack_core.bpe.merge_round_kernels import (
    BEGIN,
    END,
    LEFT_SYMBOL,
    RIGHT_SYMBOL,
    TOKEN,
    finish,
    merge_share,
    with_notes,
)
from tokpack_core.bpe.merge_settle_kernel import settle


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
    batch,
    scratch,
    arena,
    begins,
    left,
    right,
    token,
    place,
    stop,
    threshold,
    below_length,
    tie_break,
):
    """Makes left and right into `token`, whose bytes are spelled, at pool[place:stop].

    `batch` and `scratch`, of one share, are those of a round. Returns what `settle` does, and `scratch`, which may be a
    larger one.
    """
    scratch = with_notes(scratch, stop - place)
    batch[0, LEFT_SYMBOL], batch[0, RIGHT_SYMBOL], batch[0, TOKEN] = left, right, token
    batch[0, BEGIN], batch[0, END] = place, stop
    merge_share(symbols, weights, pool, batch, 1, cells, scratch, 0, 0, symbols.size)
    pairs, rows, pool, filled, heap_counts, heap_pairs, heaped = settle(
        pairs,
        rows,
        pool,
        filled,
        heap_counts,
        heap_pairs,
        heaped,
        batch,
        1,
        scratch,
        1,
        arena,
        begins,
        threshold,
        below_length,
        tie_break,
    )
    finish(pool, scratch)
    return pairs, rows, pool, filled, heap_counts, heap_pairs, heaped, scratch
