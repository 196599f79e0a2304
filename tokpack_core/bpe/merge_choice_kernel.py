"""Chooses the merges of a round: as many of the next pairs as can be made together without changing their order.

A round takes the next pairs in the order in which they are merged, up to the first that has a symbol on the left which
another has on the right. Then no places of theirs overlap, so none changes the count of another. Nor does what is born
come between them: a pair (ab, c) is born at most as often as (b, c) occurs, which overlaps (a, b) and so comes after
the last of them; of equal counts, a new id comes last. Of equal counts strings may go either way, so where those
decide, all that occur as often as the first pair left out are left out too.

32,000 entries on 155 MB of text take 1,300 rounds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_heap_kernels import HUGGING_FACE, find_best, push, remove_top
from tokpack_core.bpe.merge_kernels import COUNT, LENGTH, PLACE, RIGHT, pair_slot
from tokpack_core.bpe.merge_round_kernels import (
    BEGIN,
    END,
    LAST_LEFT,
    LAST_RIGHT,
    LEFT_SYMBOL,
    MOST_PLACES,
    RIGHT_SYMBOL,
    TOKEN,
)


@njit(cache=True, nogil=True)
def choose(pairs, heap, scratch, tokens, most, spelling):  # type: ignore[no-untyped-def]
    """Takes the pairs of the next round from the heap, at most `most`, into the batch; their tokens begin with
    `tokens`.

    Returns how many pairs they are, and their places.
    """
    table, batch, sides = pairs.table, scratch.batch, scratch.sides
    chosen = 0
    places = np.int64(0)
    while chosen < most and find_best(heap, table, pairs.threshold, spelling):
        key = heap.pairs[0]
        left, right = key >> 32, key & RIGHT
        slot = pair_slot(table, key)
        if chosen > 0:
            overlaps = left == right or sides[LAST_RIGHT, left] == tokens or sides[LAST_LEFT, right] == tokens
            if overlaps or places + table[slot, LENGTH] > MOST_PLACES:
                break
        remove_top(heap, spelling)
        batch[chosen, LEFT_SYMBOL], batch[chosen, RIGHT_SYMBOL], batch[chosen, TOKEN] = left, right, tokens + chosen
        batch[chosen, BEGIN], batch[chosen, END] = table[slot, PLACE], table[slot, PLACE] + table[slot, LENGTH]
        places += table[slot, LENGTH]
        sides[LAST_LEFT, left] = sides[LAST_RIGHT, right] = tokens
        chosen += 1
        if left == right:
            break
    if heap.tie_break != HUGGING_FACE and heap.size[0] > 0:
        while chosen > 1:
            key = batch[chosen - 1, LEFT_SYMBOL] << 32 | batch[chosen - 1, RIGHT_SYMBOL]
            slot = pair_slot(table, key)
            if table[slot, COUNT] > heap.counts[0]:
                break
            push(heap, table[slot, COUNT], key, spelling)
            places -= table[slot, LENGTH]
            chosen -= 1
    return chosen, places
