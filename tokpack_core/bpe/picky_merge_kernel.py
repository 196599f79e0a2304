"""Byte-level BPE training with deletions: PickyBPE (Chizhov et al. 2024, arXiv 2409.04599).

After the merge of (a, b), a or b is deleted if it is longer than a byte and most of its occurrences went into the
merge: count(ab) / count(x) >= the threshold, with the counts before the merge. What is left of it is split into the
tokens that it was made of (of those that were deleted themselves, what they were made of), and these go on merging. A
spelling that was deleted comes back under its number when a merge makes it again.

Symbols are laid out as in `merge_kernels`. Where they stand is in `picky_places_kernel`, what tokens are and what was
done to them in `picky_tokens_kernel`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_heap_kernels import empty_heap, find_best, push, remove_top, with_entries
from tokpack_core.bpe.merge_kernels import COUNT, FREE, INTERIOR, KEY, RIGHT, pair_slot
from tokpack_core.bpe.picky_places_kernel import (
    CHANGED,
    PAIRS,
    Words,
    add_pair,
    add_token,
    places_in,
    places_of,
    take_pair,
    taken_places,
    weight_after,
    with_room,
)
from tokpack_core.bpe.picky_tokens_kernel import (
    living_parts,
    nothing_done,
    single_bytes,
    token_of_spelling,
    with_deletion,
    with_merge,
)
from tokpack_core.bpe.spelling_kernels import spell


@njit(cache=True)
def merge_everywhere(left, right, token, words, tokens, where):  # type: ignore[no-untyped-def]
    """Makes left and right into `token` at all their places; returns the places of all."""
    symbols, starts = words.symbols, words.starts
    cells, occurrences, chains = tokens.cells, tokens.occurrences, tokens.chains
    places = taken_places(left, right, where)
    where = with_room(where, 3 * places.size, 2 * places.size)
    for place in places:
        if starts[place] == 0 or symbols[place] != left:
            continue
        middle = place + cells[left]
        if symbols[middle] != right or starts[middle] == 0:
            continue
        following = middle + cells[right]
        weight = weight_after(words, following)
        before, after = symbols[place - 1], symbols[following]
        if before >= 0:
            take_pair(before, left, weight, where)
            add_pair(before, token, place - cells[before], weight, where)
        if after >= 0:
            take_pair(right, after, weight, where)
            add_pair(token, after, place, weight, where)
        occurrences[left] -= weight
        occurrences[right] -= weight
        occurrences[token] += weight
        starts[middle] = 0
        symbols[middle - 1] = INTERIOR
        symbols[middle] = INTERIOR
        symbols[place] = token
        symbols[following - 1] = token
        add_token(token, place, chains, where)
    # A pair of one symbol with itself was counted on, where it overlaps.
    where.table[pair_slot(where.table, left << 32 | right), COUNT] = 0
    return where


@njit(cache=True)
def split_everywhere(gone, parts, words, tokens, where):  # type: ignore[no-untyped-def]
    """Makes a token that was deleted into its parts wherever it is left; returns the places of all."""
    symbols, starts = words.symbols, words.starts
    cells, occurrences, chains = tokens.cells, tokens.occurrences, tokens.chains
    places = places_of(chains[gone], where)
    chains[gone] = -1
    where = with_room(where, (2 * parts.size + 2) * places.size, (parts.size + 1) * places.size)
    for place in places:
        if starts[place] == 0 or symbols[place] != gone:
            continue
        following = place + cells[gone]
        weight = weight_after(words, following)
        before, after = symbols[place - 1], symbols[following]
        if before >= 0:
            take_pair(before, gone, weight, where)
        if after >= 0:
            take_pair(gone, after, weight, where)
        occurrences[gone] -= weight
        symbols[place] = INTERIOR
        symbols[following - 1] = INTERIOR
        at = place
        previous = before
        previous_place = place - (cells[before] if before >= 0 else 0)
        for part in parts:
            symbols[at] = part
            symbols[at + cells[part] - 1] = part
            starts[at] = 1
            occurrences[part] += weight
            add_token(part, at, chains, where)
            if previous >= 0:
                add_pair(previous, part, previous_place, weight, where)
            previous, previous_place = part, at
            at += cells[part]
        if after >= 0:
            add_pair(previous, after, previous_place, weight, where)
    return where


@njit(cache=True, nogil=True)
def merge_and_delete(  # type: ignore[no-untyped-def]
    symbols, weights, spelling, alphabet, size_wanted, most_symbols, least, threshold, tie_break
):
    """Merges and deletes until `size_wanted` tokens live, `most_symbols` were made, or no pair occurs `least` times.

    `spelling` is that of the `alphabet` single bytes, with room for [most_symbols + 1] borders or more.
    Returns (`Done`, alive [symbols made], spelling).
    """
    words = Words(symbols, weights, np.zeros(symbols.size, np.uint8))
    tokens = single_bytes(alphabet, most_symbols, spelling)
    where = places_in(words, tokens.occurrences)
    heap = empty_heap(where.sizes[PAIRS], tie_break)
    for row in range(where.table.shape[0]):
        if where.table[row, KEY] != FREE and where.table[row, COUNT] >= least:
            push(heap, where.table[row, COUNT], where.table[row, KEY], spelling)
    done = nothing_done()
    number = living = alphabet
    while living < size_wanted and number < most_symbols and find_best(heap, where.table, least, spelling):
        key, count = heap.pairs[0], heap.counts[0]
        remove_top(heap, spelling)
        left, right = key >> 32, key & RIGHT
        spelling = spell(left, right, number, spelling)
        token = token_of_spelling(number, tokens, spelling)
        if token == number:
            number += 1
            tokens.cells[token] = tokens.cells[left] + tokens.cells[right]
        if not tokens.alive[token]:
            tokens.alive[token] = True
            living += 1
            tokens.made[token, 0], tokens.made[token, 1] = left, right
        done = with_merge(done, left, right, token, count)
        delete_left = tokens.cells[left] > 1 and count >= threshold * tokens.occurrences[left]
        delete_right = right != left and tokens.cells[right] > 1 and count >= threshold * tokens.occurrences[right]
        where = merge_everywhere(left, right, token, words, tokens, where)
        for gone, deleted in ((left, delete_left), (right, delete_right)):
            if deleted:
                tokens.alive[gone] = False
                living -= 1
                parts = living_parts(gone, tokens)
                done = with_deletion(done, gone, parts)
                where = split_everywhere(gone, parts, words, tokens, where)
        heap = with_entries(heap, where.sizes[CHANGED])
        for changed in where.changed[: where.sizes[CHANGED]]:
            slot = pair_slot(where.table, changed)
            if where.table[slot, KEY] != FREE and where.table[slot, COUNT] >= least:
                push(heap, where.table[slot, COUNT], changed, spelling)
    return done, tokens.alive[:number], spelling
