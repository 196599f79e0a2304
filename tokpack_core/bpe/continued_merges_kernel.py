"""Merges that were learned on other text, made in their order as far as this text wants them: see `merge_kernels`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.merge_heap_kernels import HUGGING_FACE, empty_heap
from tokpack_core.bpe.merge_kernels import COUNT, FREE, KEY, pair_slot
from tokpack_core.bpe.merge_round_kernels import new_scratch
from tokpack_core.bpe.merge_step_kernel import merge_step
from tokpack_core.bpe.spelling_kernels import spell

NONE = -1


class Earlier(NamedTuple):
    """Merges by number, [merges] each, and what became of them in this text."""

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    product: npt.NDArray[np.int32]
    symbol_of: npt.NDArray[np.int32]
    """[all tokens]: the symbol of each here, or NONE"""
    kept: npt.NDArray[np.bool_]
    """[merges]: what was made"""


@njit(cache=True, nogil=True)
def replay(earlier, words, pairs, spelling, merges, tokens):  # type: ignore[no-untyped-def]
    """Makes left and right of each earlier merge into its product, if the pair occurs often enough when it has its
    turn; writes `symbol_of` and `kept`.

    It stops when there are as many tokens as `merges` has rows. All else is as in `merge_rounds`. Returns how many
    tokens there are, and the spelling.
    """
    symbol_of = earlier.symbol_of
    scratch = new_scratch(1, merges.shape[0])
    heap = empty_heap(0, HUGGING_FACE)
    for k in range(earlier.left.size):
        if tokens == merges.shape[0]:
            break
        left, right = np.int64(symbol_of[earlier.left[k]]), np.int64(symbol_of[earlier.right[k]])
        if left == NONE or right == NONE or symbol_of[earlier.product[k]] != NONE:
            continue
        slot = pair_slot(pairs.table, left << 32 | right)
        if pairs.table[slot, KEY] == FREE or pairs.table[slot, COUNT] < pairs.threshold:
            continue
        spelling = spell(left, right, tokens, spelling)
        pairs, heap, scratch = merge_step(left, right, tokens, words, pairs, heap, scratch, spelling, merges)
        # The heap that new pairs go to is of no use here.
        heap.size[0] = 0
        symbol_of[earlier.product[k]] = tokens
        earlier.kept[k] = True
        tokens += 1
    return tokens, spelling
