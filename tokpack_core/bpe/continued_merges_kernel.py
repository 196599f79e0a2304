"""Merges that were learned on other text, made in their order as far as this text wants them: see `merge_kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, FREE, HUGGING_FACE, KEY, LENGTH, PLACE, UNLIMITED, pair_slot, spell
from tokpack_core.bpe.merge_round_kernels import new_scratch
from tokpack_core.bpe.merge_step_kernel import merge_step

NONE = -1


@njit(cache=True, nogil=True)
def replay(  # type: ignore[no-untyped-def]
    symbols,
    weights,
    pairs,
    rows,
    pool,
    filled,
    cells,
    arena,
    begins,
    merges,
    tokens,
    left_of,
    right_of,
    product_of,
    symbol_of,
    kept,
    least,
):
    """Makes merge k, left_of[k] and right_of[k] into product_of[k], if its pair occurs `least` times when it has its
    turn.

    symbol_of int32 [all tokens] names the symbol of each token here or NONE, and kept bool [merges] what was made; both
    are written to. It stops when there are as many tokens as `merges` has rows. All else is as in `merge_rounds`.
    Returns how many tokens there are, and the arena.
    """
    no_counts, no_pairs = np.empty(1024, np.int64), np.empty(1024, np.int64)
    scratch = new_scratch(1, merges.shape[0])
    batch = np.empty((1, 5), np.int64)
    for k in range(left_of.size):
        if tokens == merges.shape[0]:
            break
        left, right = np.int64(symbol_of[left_of[k]]), np.int64(symbol_of[right_of[k]])
        if left == NONE or right == NONE or symbol_of[product_of[k]] != NONE:
            continue
        slot = pair_slot(pairs, left << 32 | right)
        if pairs[slot, KEY] == FREE or pairs[slot, COUNT] < least:
            continue
        token = np.int64(tokens)
        arena = spell(left, right, token, arena, begins)
        cells[token] = cells[left] + cells[right]
        tokens += 1
        merges[token, 0], merges[token, 1], merges[token, 2] = left, right, pairs[slot, COUNT]
        symbol_of[product_of[k]] = token
        kept[k] = True
        pairs[slot, COUNT] = 0
        place, number = pairs[slot, PLACE], pairs[slot, LENGTH]
        # The heap that new pairs go to is of no use here: it is begun anew each time.
        pairs, rows, pool, filled, no_counts, no_pairs, _, scratch = merge_step(
            symbols,
            weights,
            pairs,
            rows,
            pool,
            filled,
            no_counts,
            no_pairs,
            0,
            cells,
            batch,
            scratch,
            arena,
            begins,
            left,
            right,
            token,
            place,
            place + number,
            least,
            UNLIMITED,
            HUGGING_FACE,
        )
    return tokens, arena
