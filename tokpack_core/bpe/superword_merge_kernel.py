"""The loop over supermerges: BPE over runs of whole words, with what superwords are bound by.

Runs stand in the layout of `merge_kernels`, a cell a word at the start. A pair is checked when it is the best one: its
spelling must be new and within the limits, or it is never merged.

Where word merges compete for room in the vocabulary, the loop walks them in their order beside its own pairs: while the
next word merge has the higher count it is taken, else the best pair. A pair can be taken once both its tokens exist;
until then it is parked under the number of word merges that it waits for.
"""

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
    UNLIMITED,
    count_pairs,
    grown,
    pair_slot,
    push,
    replace_top,
    spell,
)
from tokpack_core.bpe.merge_round_kernels import new_scratch
from tokpack_core.bpe.merge_step_kernel import merge_step
from tokpack_core.bpe.word_table_kernels import ONE, mixed, word_key

SPACE, COLON = 0x20, 0x3A


@njit(cache=True)
def within_limits(arena, first, stop, most_words, forbid_colon):  # type: ignore[no-untyped-def]
    """Whether a spelling has at most `most_words` parts between spaces (0: any number) and no colon before a space."""
    words = 0
    for at in range(first, stop):
        follows_space = at == first or arena[at - 1] == SPACE
        words += follows_space and arena[at] != SPACE
        if forbid_colon and arena[at] == SPACE and at > first and arena[at - 1] == COLON:
            return False
    return most_words == 0 or words <= most_words


@njit(cache=True)
def spelling_slot(known, arena, first, stop):  # type: ignore[no-untyped-def]
    """Where a spelling stands in a table of hashes, or the free slot (0) for it; and its hash."""
    low, high = word_key(arena, first, stop - first)
    hashed = mixed(low, high) | ONE
    mask = np.uint64(known.size - 1)
    slot = hashed & mask
    while known[slot] != 0 and known[slot] != hashed:
        slot = (slot + ONE) & mask
    return slot, hashed


@njit(cache=True)
def known_spellings(arena, begins, tokens, most_tokens):  # type: ignore[no-untyped-def]
    """The hashes of all tokens' bytes, in a table with room for `most_tokens`."""
    size = 16
    while size < 2 * most_tokens:
        size *= 2
    known = np.zeros(size, np.uint64)
    for token in range(tokens):
        slot, hashed = spelling_slot(known, arena, begins[token], begins[token + 1])
        known[slot] = hashed
    return known


@njit(cache=True, nogil=True)
def merge_superwords(  # type: ignore[no-untyped-def]
    symbols,
    weights,
    arena,
    begins,
    rows,
    tokens,
    threshold,
    tie_break,
    most_words,
    forbid_colon,
    word_counts,
    sizes,
    revealed,
    size_wanted,
    words_win_ties,
):
    """Supermerges until the vocabulary has `size_wanted` tokens or no pair occurs `threshold` times.

    `tokens` exist (as words and parts of words); what made token t goes to rows[t]: left, right, count, word merges
    taken before (int64). word_counts [word merges], none below `threshold`: their counts in order; sizes [word merges
    + 1]: tokens that exist when so many are taken; revealed [tokens]: how many must be taken before a token exists.
    Returns (tokens, arena, word merges taken, whether the wanted size was reached).
    """
    base = tokens
    most_tokens = rows.shape[0]
    known = known_spellings(arena, begins, tokens, most_tokens + 1)
    pairs, used, pool = count_pairs(symbols, weights, threshold)
    heap_counts = np.empty(used + 1024, np.int64)
    heap_pairs = np.empty(used + 1024, np.int64)
    heaped = 0
    for row in range(pairs.shape[0]):
        if pairs[row, KEY] != FREE:
            push(heap_counts, heap_pairs, heaped, pairs[row, COUNT], pairs[row, KEY], tie_break, arena, begins)
            heaped += 1
    filled = pool.size
    cells = np.ones(most_tokens, np.int32)
    scratch = new_scratch(1, most_tokens)
    batch = np.empty((1, 5), np.int64)
    walked = 0
    waiting = np.full(word_counts.size + 1, -1, np.int64)
    parked = np.empty(1024, np.int64)
    parked_next = np.empty(1024, np.int64)
    parkings = 0
    while sizes[walked] + tokens - base < size_wanted and tokens < most_tokens:
        count = np.int64(-1)
        key = np.int64(-1)
        slot = np.uint64(0)
        if heaped > 0:
            key = heap_pairs[0]
            slot = pair_slot(pairs, key)
            count = pairs[slot, COUNT]
            if count != heap_counts[0] and count >= threshold:
                replace_top(heap_counts, heap_pairs, heaped, count, key, tie_break, arena, begins)
                continue
        elif walked == word_counts.size:
            break
        outdated = heaped > 0 and count != heap_counts[0]
        if not outdated and walked < word_counts.size:
            next_word = word_counts[walked]
            if next_word > count or (next_word == count and words_win_ties):
                walked += 1
                freed = waiting[walked]
                while freed >= 0:
                    freed_key = parked[freed]
                    freed_count = pairs[pair_slot(pairs, freed_key), COUNT]
                    if freed_count >= threshold:
                        heap_counts = grown(heap_counts, heaped + 1)
                        heap_pairs = grown(heap_pairs, heaped + 1)
                        push(heap_counts, heap_pairs, heaped, freed_count, freed_key, tie_break, arena, begins)
                        heaped += 1
                    freed = parked_next[freed]
                continue
        heaped -= 1
        last_count, last_pair = heap_counts[heaped], heap_pairs[heaped]
        replace_top(heap_counts, heap_pairs, heaped, last_count, last_pair, tie_break, arena, begins)
        if outdated:
            continue
        left, right = key >> 32, key & RIGHT
        awaited = max(revealed[left], revealed[right])
        if awaited > walked:
            parked = grown(parked, parkings + 1)
            parked_next = grown(parked_next, parkings + 1)
            parked[parkings] = key
            parked_next[parkings] = waiting[awaited]
            waiting[awaited] = parkings
            parkings += 1
            continue
        token = np.int64(tokens)
        arena = spell(left, right, token, arena, begins)
        spelled, hashed = spelling_slot(known, arena, begins[token], begins[token + 1])
        if known[spelled] != 0 or not within_limits(arena, begins[token], begins[token + 1], most_words, forbid_colon):
            continue
        known[spelled] = hashed
        revealed[token] = 0
        cells[token] = cells[left] + cells[right]
        tokens += 1
        rows[token, 0], rows[token, 1], rows[token, 2], rows[token, 3] = left, right, count, walked
        pairs[slot, COUNT] = 0
        place, number = pairs[slot, PLACE], pairs[slot, LENGTH]
        pairs, used, pool, filled, heap_counts, heap_pairs, heaped, scratch = merge_step(
            symbols,
            weights,
            pairs,
            used,
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
            place + number,
            threshold,
            UNLIMITED,
            tie_break,
        )
    return tokens, arena, walked, sizes[walked] + tokens - base >= size_wanted
