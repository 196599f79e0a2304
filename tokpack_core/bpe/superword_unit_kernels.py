"""Which neighbouring tokens may become a superword, and runs of such tokens cut where no superword can be.

`ids`, int32, holds the tokens of the word merges; `joins`, uint8 beside it, is 1 where a token may be merged with the
one before it. `pair_counts`, uint32 [power of two], holds for each pair of neighbours, at its hash, at least how often
it occurs: different pairs may share a place.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, FIRST_FACTOR, HALF, ONE, VALUE, slot_of, word_key

BREAK = -1
MOST_COUNTED = np.uint32(2**32 - 1)


@njit(cache=True, nogil=True)
def join_words(ids, id_ends, eligible, joined, joins):  # type: ignore[no-untyped-def]
    """Joins of pretokens that are one token which is eligible (bool [ids]); returns whether the last one is such."""
    first = 0
    for k in range(id_ends.size):
        stop = id_ends[k]
        alone = stop - first == 1 and eligible[ids[first]]
        for at in range(first, stop):
            joins[at] = alone and joined
        joined = alone
        first = stop
    return joined


@njit(cache=True, nogil=True)
def whole_words(data, begin, ends, slots, entries, arena, ids):  # type: ignore[no-untyped-def]
    """The values of pretokens in a table of words (see `word_table_kernels`), -1 for those that are not in it."""
    first = begin
    for k in range(ends.size):
        length = ends[k] - first
        low, high = word_key(data, first, length)
        slot = slot_of(data, first, length, low, high, slots, entries, arena)
        ids[k] = -1
        if slots[slot] != 0:
            ids[k] = np.int32(np.int64(entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE]))
        first = ends[k]


@njit(cache=True, nogil=True)
def join_whole(ids, joined, joins):  # type: ignore[no-untyped-def]
    """Joins of neighbours that both have an id; returns whether the last one has."""
    for k in range(ids.size):
        joins[k] = joined and ids[k] >= 0
        joined = ids[k] >= 0
    return joined


@njit(cache=True, nogil=True)
def join_pieces(id_ends, begins_piece, joins):  # type: ignore[no-untyped-def]
    """Joins of all tokens within a piece; unit k is the first of its piece where begins_piece[k] (bool)."""
    first = 0
    for k in range(id_ends.size):
        for at in range(first, id_ends[k]):
            joins[at] = 1
        if begins_piece[k]:
            joins[first] = 0
        first = id_ends[k]


@njit(cache=True, nogil=True)
def cut_pieces(data, begin, ends, place, at, crossing, unit_ends, begins_piece):  # type: ignore[no-untyped-def]
    """Cuts pieces, which end at `ends`, between bytes that no merge reaches over (crossing [65536] is False).

    Goes on at byte `at` of the piece number `place`; the first one begins at `begin`. Returns (units written, place,
    at), with place = ends.size when all is done.
    """
    count = 0
    while place < ends.size:
        start = begin if place == 0 else ends[place - 1]
        stop = ends[place]
        unit = at
        while unit < stop:
            if count == unit_ends.size:
                return count, place, unit
            after = unit + 1
            while after < stop and crossing[np.int64(data[after - 1]) << 8 | np.int64(data[after])]:
                after += 1
            unit_ends[count] = after
            begins_piece[count] = unit == start
            count += 1
            unit = after
        place += 1
        at = stop
    return count, place, at


@njit(cache=True, forceinline=True, _nrt=False)
def pair_place(pair_counts, left, right):  # type: ignore[no-untyped-def]
    hashed = (np.uint64(left) << HALF | np.uint64(right)) * FIRST_FACTOR
    return (hashed >> HALF) & np.uint64(pair_counts.size - 1)


@njit(cache=True, nogil=True)
def write_runs(ids, joins, runs):  # type: ignore[no-untyped-def]
    """The runs of two joined tokens or more, a BREAK after each; returns how much was written (room: 3/2 of ids)."""
    written = 0
    start = 0
    for at in range(1, ids.size + 1):
        if at < ids.size and joins[at]:
            continue
        if at - start > 1:
            for k in range(start, at):
                runs[written] = ids[k]
                written += 1
            runs[written] = BREAK
            written += 1
        start = at
    return written


@njit(cache=True, nogil=True)
def count_neighbours(runs, pair_counts):  # type: ignore[no-untyped-def]
    for at in range(1, runs.size):
        if runs[at - 1] >= 0 and runs[at] >= 0:
            place = pair_place(pair_counts, runs[at - 1], runs[at])
            if pair_counts[place] != MOST_COUNTED:
                pair_counts[place] += np.uint32(1)


@njit(cache=True, nogil=True)
def cut_runs(runs, pair_counts, threshold, pieces, piece_ends):  # type: ignore[no-untyped-def]
    """Cuts runs where a pair occurs fewer than `threshold` times, since nothing that spans it occurs more often.

    Pieces of one token are left out. Returns (tokens written, pieces); piece_ends holds the ends in bytes.
    """
    written = 0
    count = 0
    start = 0
    for at in range(1, runs.size + 1):
        joined = at < runs.size and runs[at] >= 0 and runs[at - 1] >= 0
        if joined and pair_counts[pair_place(pair_counts, runs[at - 1], runs[at])] >= threshold:
            continue
        if at - start > 1:
            for k in range(start, at):
                pieces[written] = runs[k]
                written += 1
            piece_ends[count] = 4 * written
            count += 1
        start = at
    return written, count


@njit(cache=True, nogil=True)
def write_run_symbols(pieces, offsets, weight_places, first_weight, symbols):  # type: ignore[no-untyped-def]
    """Pieces (int32; `offsets` in tokens) as symbols, each with the place of its weight after it."""
    symbols[0] = first_weight
    at = 1
    for piece in range(offsets.size - 1):
        for place in range(offsets[piece], offsets[piece + 1]):
            symbols[at] = pieces[place]
            at += 1
        symbols[at] = first_weight - weight_places[piece]
        at += 1
