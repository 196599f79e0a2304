"""Tokens that may be deleted and come back, and the list of what was done."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.merge_kernels import grown
from tokpack_core.bpe.spelling_kernels import length_of
from tokpack_core.bpe.word_table_kernels import ONE, mixed, word_key

DELETION = -1


class Tokens(NamedTuple):
    """By number, [most tokens + 1]."""

    cells: npt.NDArray[np.int64]
    alive: npt.NDArray[np.bool_]
    occurrences: npt.NDArray[np.int64]
    made: npt.NDArray[np.int64]
    """[most tokens + 1, 2]: left and right of the merge that made it live"""
    chains: npt.NDArray[np.int64]
    """Its places: see `picky_places_kernel`."""
    by_spelling: npt.NDArray[np.int64]
    """[power of two]: tokens by hash, or -1"""


class Done(NamedTuple):
    """What was done, in its order."""

    events: npt.NDArray[np.int32]
    """[n, 3]: left, right, token; or token, DELETION, k"""
    counts: npt.NDArray[np.int64]
    """[n]: of the pair that was merged; 0 for a deletion"""
    parts: npt.NDArray[np.int32]
    part_offsets: npt.NDArray[np.int64]
    """Deletion k leaves parts[part_offsets[k] : part_offsets[k + 1]]."""
    number: int
    deletions: int


@njit(cache=True)
def single_bytes(alphabet, most, spelling):  # type: ignore[no-untyped-def]
    """So many tokens, which are spelled, with room for `most` and one more."""
    size = 16
    while size < 2 * most + 2:
        size *= 2
    tokens = Tokens(
        np.ones(most + 1, np.int64),
        np.zeros(most + 1, np.bool_),
        np.zeros(most + 1, np.int64),
        np.zeros((most + 1, 2), np.int64),
        np.full(most + 1, -1, np.int64),
        np.full(size, -1, np.int64),
    )
    tokens.alive[:alphabet] = True
    for token in range(alphabet):
        token_of_spelling(token, tokens, spelling)
    return tokens


@njit(cache=True)
def token_of_spelling(token, tokens, spelling):  # type: ignore[no-untyped-def]
    """The token that is spelled as `token` is: itself if it is the first, which is then known."""
    arena, begins = spelling
    by_spelling = tokens.by_spelling
    length = length_of(token, spelling)
    low, high = word_key(arena, begins[token], length)
    mask = np.uint64(by_spelling.size - 1)
    slot = mixed(low, high) & mask
    while by_spelling[slot] >= 0:
        other = by_spelling[slot]
        same = length_of(other, spelling) == length
        at = 0
        while same and at < length:
            same = arena[begins[other] + at] == arena[begins[token] + at]
            at += 1
        if same:
            return other
        slot = (slot + ONE) & mask
    by_spelling[slot] = token
    return np.int64(token)


@njit(cache=True)
def living_parts(token, tokens):  # type: ignore[no-untyped-def]
    """The living tokens that a deleted one falls into, in order, int32."""
    parts = np.empty(tokens.cells[token], np.int32)
    stack = np.empty(parts.size + 2, np.int64)
    stack[0], stack[1] = tokens.made[token, 1], tokens.made[token, 0]
    depth = 2
    count = 0
    while depth > 0:
        depth -= 1
        part = stack[depth]
        if tokens.alive[part]:
            parts[count] = part
            count += 1
        else:
            stack[depth], stack[depth + 1] = tokens.made[part, 1], tokens.made[part, 0]
            depth += 2
    return parts[:count]


@njit(cache=True)
def nothing_done():  # type: ignore[no-untyped-def]
    return Done(
        np.empty((1024, 3), np.int32),
        np.empty(1024, np.int64),
        np.empty(1024, np.int32),
        np.zeros(1024, np.int64),
        0,
        0,
    )


@njit(cache=True)
def with_merge(done, left, right, token, count):  # type: ignore[no-untyped-def]
    """What was done, and then one more merge."""
    events, number = done.events, done.number
    counts = grown(done.counts, number + 1)
    if counts.size > events.shape[0]:
        events = np.empty((counts.size, 3), np.int32)
        events[:number] = done.events
    events[number, 0], events[number, 1], events[number, 2] = left, right, token
    counts[number] = count
    return Done(events, counts, done.parts, done.part_offsets, number + 1, done.deletions)


@njit(cache=True)
def with_deletion(done, token, into):  # type: ignore[no-untyped-def]
    """What was done, and then the deletion of a token that falls into parts."""
    deletions = done.deletions
    first = done.part_offsets[deletions]
    parts = grown(done.parts, first + into.size)
    parts[first : first + into.size] = into
    part_offsets = grown(done.part_offsets, deletions + 2)
    part_offsets[deletions + 1] = first + into.size
    done = with_merge(done, token, DELETION, deletions, 0)
    return Done(done.events, done.counts, parts, part_offsets, done.number, deletions + 1)
