"""The loop over rounds of merges: the next pairs from the heap, their places, what that makes of other pairs."""

from __future__ import annotations

from numba import njit

from tokpack_core.bpe.merge_choice_kernel import choose
from tokpack_core.bpe.merge_round_kernels import LEFT_SYMBOL, RIGHT_SYMBOL, finish, merge_share
from tokpack_core.bpe.merge_settle_kernel import settle
from tokpack_core.bpe.merge_step_kernel import enter
from tokpack_core.bpe.spelling_kernels import spell


@njit(cache=True, nogil=True)
def merge_rounds(words, pairs, heap, scratch, spelling, merges, tokens, chosen, many):  # type: ignore[no-untyped-def]
    """Merges until there are as many tokens as `merges` has rows, or no pair occurs often enough.

    `pairs` are all pairs of at least the threshold, of which the heap holds those that may be merged. `tokens` exist,
    spelled and with their cells; what made one goes to merges[token]: left, right, count (int64).

    A round of `many` places or more, or one that scratch has no room for, is chosen and its tokens are spelled, but its
    places are left to be replaced by all shares (`merge_share`). The next call is told how many merges it had
    (`chosen`, at first 0) and settles it.

    Returns (merges of such a round or 0 if all is done, their places, tokens, spelling, pairs, heap).
    """
    shares = scratch.used.shape[0]
    while True:
        if chosen:
            pairs, heap = settle(pairs, heap, chosen, scratch, shares, spelling)
            if shares == 1:
                finish(pairs.pool, scratch)
        shares = 1
        most = min(merges.shape[0] - tokens, scratch.batch.shape[0])
        chosen, places = choose(pairs, heap, scratch, tokens, most, spelling)
        if chosen == 0:
            break
        for merge in range(chosen):
            left, right = scratch.batch[merge, LEFT_SYMBOL], scratch.batch[merge, RIGHT_SYMBOL]
            spelling = spell(left, right, tokens, spelling)
            enter(left, right, tokens, words, pairs, merges)
            tokens += 1
        room = 2 * places <= scratch.notes.shape[1]
        if room and places >= many:
            break
        finish(pairs.pool, scratch)
        if not room:
            break
        merge_share(words, pairs.pool, chosen, scratch, 0, 0, words.symbols.size)
    return chosen, places, tokens, spelling, pairs, heap
