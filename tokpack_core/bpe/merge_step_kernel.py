"""One merge made by one thread: a round of one (see `merge_round_kernels`)."""

from __future__ import annotations

from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, LENGTH, PLACE, pair_slot
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


@njit(cache=True)
def enter(left, right, token, words, pairs, merges):  # type: ignore[no-untyped-def]
    """Notes in merges[token] what a token is made of, left, right and count (int64), and its cells; its pair is used
    up."""
    table = pairs.table
    slot = pair_slot(table, left << 32 | right)
    merges[token, 0], merges[token, 1], merges[token, 2] = left, right, table[slot, COUNT]
    words.cells[token] = words.cells[left] + words.cells[right]
    table[slot, COUNT] = 0


@njit(cache=True, nogil=True)
def merge_step(left, right, token, words, pairs, heap, scratch, spelling, merges):  # type: ignore[no-untyped-def]
    """Makes left and right into `token`, whose bytes are spelled, wherever they stand, and enters it in `merges`.

    `scratch` is one of a single share. Returns pairs, heap, and scratch, which may be a larger one.
    """
    enter(left, right, token, words, pairs, merges)
    slot = pair_slot(pairs.table, left << 32 | right)
    place, number = pairs.table[slot, PLACE], pairs.table[slot, LENGTH]
    scratch = with_notes(scratch, number)
    batch = scratch.batch
    batch[0, LEFT_SYMBOL], batch[0, RIGHT_SYMBOL], batch[0, TOKEN] = left, right, token
    batch[0, BEGIN], batch[0, END] = place, place + number
    merge_share(words, pairs.pool, 1, scratch, 0, 0, words.symbols.size)
    pairs, heap = settle(pairs, heap, 1, scratch, 1, spelling)
    finish(pairs.pool, scratch)
    return pairs, heap, scratch
