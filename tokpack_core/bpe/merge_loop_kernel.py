"""The loop over rounds of merges: the next pairs from the heap, their places, what that makes of other pairs."""

from __future__ import annotations

from numba import njit

from tokpack_core.bpe.merge_choice_kernel import choose
from tokpack_core.bpe.merge_kernels import COUNT, pair_slot, spell
from tokpack_core.bpe.merge_round_kernels import LEFT_SYMBOL, RIGHT_SYMBOL, finish, merge_share
from tokpack_core.bpe.merge_settle_kernel import settle


@njit(cache=True, nogil=True)
def merge_rounds(  # type: ignore[no-untyped-def]
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
    chosen,
    scratch,
    sides,
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
    `below_length` bytes, or of two single ones. sides, int64 [2, tokens]: see `choose`.

    A round of `many` places or more, or one that scratch has no room for, is chosen and its tokens are spelled, but its
    places are left to be replaced by all shares (`merge_share`). The next call is told how many merges it had
    (`chosen`, at first 0) and settles it.

    Returns (merges of such a round or 0 if all is done, their places, tokens, arena, and what `settle` returns).
    """
    shares = scratch.used.shape[0]
    while True:
        if chosen:
            pairs, rows, pool, filled, heap_counts, heap_pairs, heaped = settle(
                pairs,
                rows,
                pool,
                filled,
                heap_counts,
                heap_pairs,
                heaped,
                batch,
                chosen,
                scratch,
                shares,
                arena,
                begins,
                threshold,
                below_length,
                tie_break,
            )
            if shares == 1:
                finish(pool, scratch)
        shares = 1
        most = min(merges.shape[0] - tokens, batch.shape[0])
        chosen, places, heaped = choose(
            pairs,
            heap_counts,
            heap_pairs,
            heaped,
            batch,
            tokens,
            most,
            threshold,
            tie_break,
            arena,
            begins,
            sides[0],
            sides[1],
        )
        if chosen == 0:
            break
        for merge in range(chosen):
            left, right = batch[merge, LEFT_SYMBOL], batch[merge, RIGHT_SYMBOL]
            arena = spell(left, right, tokens, arena, begins)
            cells[tokens] = cells[left] + cells[right]
            slot = pair_slot(pairs, left << 32 | right)
            merges[tokens, 0], merges[tokens, 1], merges[tokens, 2] = left, right, pairs[slot, COUNT]
            pairs[slot, COUNT] = 0
            tokens += 1
        room = 2 * places <= scratch.notes.shape[1]
        if room and places >= many:
            break
        finish(pool, scratch)
        if not room:
            break
        merge_share(symbols, weights, pool, batch, chosen, cells, scratch, 0, 0, symbols.size)
    return chosen, places, tokens, arena, pairs, rows, pool, filled, heap_counts, heap_pairs, heaped
