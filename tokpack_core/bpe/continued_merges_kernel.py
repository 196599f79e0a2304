"""Merges that were learned on other text, made in their order as far as this text wants them: see `merge_kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, FREE, HUGGING_FACE, KEY, LENGTH, PLACE, pair_slot
from tokpack_core.bpe.merge_loop_kernel import replace, settle, spell, write_noted

NONE = -1
UNLIMITED = 2**62


@njit(cache=True, nogil=True)
def replay(  # type: ignore[no-untyped-def]
    symbols,
    weights,
    pairs,
    rows,
    pool,
    filled,
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
    are written to. It stops when there are as many tokens as `merges` has rows. All else is as in `merge_while`, with
    one share of scratch. Returns how many tokens there are, and the arena.
    """
    no_counts, no_pairs = np.empty(1024, np.int64), np.empty(1024, np.int64)
    symbols_noted = np.empty((2, 1024), np.int32)
    places_noted = np.empty((2, 1024), np.int32)
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
        if number > symbols_noted.shape[1]:
            symbols_noted = np.empty((2, number), np.int32)
            places_noted = np.empty((2, number), np.int32)
        joined = replace(
            symbols,
            weights,
            pool,
            place,
            place + number,
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
        # The heap that new pairs go to is of no use here: it is begun anew each time.
        pairs, rows, pool, filled, no_counts, no_pairs, _ = settle(
            pairs,
            rows,
            pool,
            filled,
            no_counts,
            no_pairs,
            0,
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
            least,
            UNLIMITED,
            HUGGING_FACE,
        )
        write_noted(pool, symbols_noted, places_noted, numbers[0], totals[0], targets[0], touched[0], tally[0])
    return tokens, arena
