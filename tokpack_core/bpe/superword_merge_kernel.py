"""The loop over supermerges: BPE over runs of whole words, with what superwords are bound by.

Runs stand in the layout of `merge_kernels`, a cell a word at the start. A pair is checked when it is the best one: its
spelling must be new and within the limits, or it is never merged.

Where word merges compete for room in the vocabulary, the loop walks them in their order beside its own pairs: while the
next word merge has the higher count it is taken, else the best pair. A pair can be taken once both its tokens exist;
until then it is parked under the number of word merges that it waits for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.merge_heap_kernels import find_best, heap_of, push, remove_top, with_entries
from tokpack_core.bpe.merge_kernels import COUNT, RIGHT, UNLIMITED, Words, count_pairs, grown, pair_slot
from tokpack_core.bpe.merge_round_kernels import new_scratch
from tokpack_core.bpe.merge_step_kernel import merge_step
from tokpack_core.bpe.spelling_kernels import length_of, spell
from tokpack_core.bpe.word_table_kernels import ONE, mixed, word_key

SPACE, COLON = 0x20, 0x3A


class Limits(NamedTuple):
    """Of the spelling of a superword."""

    most_words: int
    """Parts between spaces; 0: any number"""
    forbid_colon: bool
    """before a space"""


class Competitors(NamedTuple):
    """Word merges in their order."""

    counts: npt.NDArray[np.int64]
    """[word merges], none below the threshold"""
    sizes: npt.NDArray[np.int64]
    """[word merges + 1]: tokens that exist when so many are taken"""
    revealed: npt.NDArray[np.int64]
    """[most tokens + 1]: how many must be taken before a token exists"""
    win_ties: bool


class Parked(NamedTuple):
    """Pairs that wait, in a list for each number of word merges that they wait for."""

    first: npt.NDArray[np.int64]
    """[word merges + 1]: the last that was parked, or -1"""
    pairs: npt.NDArray[np.int64]
    following: npt.NDArray[np.int64]
    """of the same list, or -1"""
    number: int


@njit(cache=True)
def within_limits(token, spelling, limits):  # type: ignore[no-untyped-def]
    arena = spelling.arena
    first = spelling.begins[token]
    words = 0
    for at in range(first, spelling.begins[token + 1]):
        follows_space = at == first or arena[at - 1] == SPACE
        words += follows_space and arena[at] != SPACE
        if limits.forbid_colon and arena[at] == SPACE and at > first and arena[at - 1] == COLON:
            return False
    return limits.most_words == 0 or words <= limits.most_words


@njit(cache=True)
def spelling_slot(known, token, spelling):  # type: ignore[no-untyped-def]
    """Where the spelling of a token stands in a table of hashes, or the free slot (0) for it; and its hash."""
    low, high = word_key(spelling.arena, spelling.begins[token], length_of(token, spelling))
    hashed = mixed(low, high) | ONE
    mask = np.uint64(known.size - 1)
    slot = hashed & mask
    while known[slot] != 0 and known[slot] != hashed:
        slot = (slot + ONE) & mask
    return slot, hashed


@njit(cache=True)
def known_spellings(spelling, tokens, most_tokens):  # type: ignore[no-untyped-def]
    """The hashes of all tokens' bytes, in a table with room for `most_tokens`."""
    size = 16
    while size < 2 * most_tokens:
        size *= 2
    known = np.zeros(size, np.uint64)
    for token in range(tokens):
        slot, hashed = spelling_slot(known, token, spelling)
        known[slot] = hashed
    return known


@njit(cache=True)
def none_parked(word_merges):  # type: ignore[no-untyped-def]
    return Parked(np.full(word_merges + 1, -1, np.int64), np.empty(1024, np.int64), np.empty(1024, np.int64), 0)


@njit(cache=True)
def park(parked, key, awaited):  # type: ignore[no-untyped-def]
    """Puts a pair aside until `awaited` word merges are taken; returns what is parked."""
    first, pairs, following, number = parked
    pairs, following = grown(pairs, number + 1), grown(following, number + 1)
    pairs[number], following[number] = key, first[awaited]
    first[awaited] = number
    return Parked(first, pairs, following, number + 1)


@njit(cache=True)
def put_back(heap, parked, walked, pairs, spelling):  # type: ignore[no-untyped-def]
    """The heap with those that waited for `walked` word merges."""
    at = parked.first[walked]
    while at >= 0:
        key = parked.pairs[at]
        count = pairs.table[pair_slot(pairs.table, key), COUNT]
        if count >= pairs.threshold:
            heap = with_entries(heap, 1)
            push(heap, count, key, spelling)
        at = parked.following[at]
    return heap


@njit(cache=True, nogil=True)
def merge_superwords(  # type: ignore[no-untyped-def]
    symbols, weights, spelling, merges, tokens, threshold, tie_break, limits, competitors, size_wanted
):
    """Supermerges until the vocabulary has `size_wanted` tokens or no pair occurs `threshold` times.

    `tokens` exist (as words and parts of words); what made token t goes to merges[t]: left, right, count, word merges
    taken before (int64). Returns (tokens, spelling, word merges taken, whether the wanted size was reached).
    """
    word_counts, sizes, revealed, words_win_ties = competitors
    base = tokens
    most_tokens = merges.shape[0]
    known = known_spellings(spelling, tokens, most_tokens + 1)
    words = Words(symbols, weights, np.ones(most_tokens, np.int32))
    pairs = count_pairs(symbols, weights, threshold, UNLIMITED)
    heap = heap_of(pairs, spelling, tie_break)
    scratch = new_scratch(1, most_tokens)
    parked = none_parked(word_counts.size)
    walked = 0
    while sizes[walked] + tokens - base < size_wanted and tokens < most_tokens:
        found = find_best(heap, pairs.table, threshold, spelling)
        if not found and walked == word_counts.size:
            break
        count = heap.counts[0] if found else np.int64(-1)
        if walked < word_counts.size:
            next_word = word_counts[walked]
            if next_word > count or (next_word == count and words_win_ties):
                walked += 1
                heap = put_back(heap, parked, walked, pairs, spelling)
                continue
        key = heap.pairs[0]
        remove_top(heap, spelling)
        left, right = key >> 32, key & RIGHT
        awaited = max(revealed[left], revealed[right])
        if awaited > walked:
            parked = park(parked, key, awaited)
            continue
        spelling = spell(left, right, tokens, spelling)
        spelled, hashed = spelling_slot(known, tokens, spelling)
        if known[spelled] != 0 or not within_limits(tokens, spelling, limits):
            continue
        known[spelled] = hashed
        revealed[tokens] = 0
        merges[tokens, 3] = walked
        pairs, heap, scratch = merge_step(left, right, tokens, words, pairs, heap, scratch, spelling, merges)
        tokens += 1
    return tokens, spelling, walked, sizes[walked] + tokens - base >= size_wanted
