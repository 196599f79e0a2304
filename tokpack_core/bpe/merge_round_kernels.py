"""The merges of a round wherever they stand: see `merge_kernels` for the layout, `merge_choice_kernel` for rounds.

One after the other, each pair is replaced at all its places, and its neighbours are summed up there and then: a record
for each different neighbour on each side, and a note for each occurrence. What that takes from old pairs and gives to
new ones is looked up once for each record when the round is done (see `merge_settle_kernel`); only then is it known
where the places of new pairs go, and with the next round the notes are written there.

So nothing here reads the table of pairs, and the words can be shared out to threads: each has a range of `symbols` in
all rounds. The places of a pair are ascending, so those within a range stand together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.intrinsics import prefetch
from tokpack_core.bpe.merge_kernels import FIRST_WEIGHT, INTERIOR

BEFORE, AFTER = 0, 1
MOST_MERGES = 256
"""Of a round."""
MOST_PLACES = 1 << 16
"""Of the pairs of a round together, unless it is one pair: the notes of a round stay in the caches."""
LEFT_SYMBOL, RIGHT_SYMBOL, TOKEN, BEGIN, END = 0, 1, 2, 3, 4
"""Of a merge in `batch`: symbols, and the slice of the pool with its places."""
LAST_LEFT, LAST_RIGHT = 0, 1
NEIGHBOUR, NUMBER, WEIGHT, TARGET = 0, 1, 2, 3
"""Of a record: symbol << 1 | side, its occurrences, their weight, the next cell of the pool for them or -1."""
RECORDS, NOTES, OLDEST = 0, 1, 2
AHEAD = 16
"""Occurrences between the one that is replaced and the one that is brought into the caches."""


class Scratch(NamedTuple):
    """What a round is, and what it takes."""

    batch: npt.NDArray[np.int64]
    """[MOST_MERGES, 5]: its merges in their order"""
    sides: npt.NDArray[np.int64]
    """[2, tokens]: in which round a symbol last stood on that side; a round is named by its first token"""
    records: npt.NDArray[np.int64]
    """[shares, 2 * (tokens or MOST_PLACES), 4], in the order of merges"""
    notes: npt.NDArray[np.int32]
    """[shares, 2 * most places of a round, 2]: number of the record, place; those of a record are ascending"""
    used: npt.NDArray[np.int64]
    """[shares, 3]: records and notes of the last round and its first token; 0 once all is written"""
    ends: npt.NDArray[np.int64]
    """[shares, MOST_MERGES + 1]: records before those of each merge, and in all"""
    joined: npt.NDArray[np.int64]
    """[shares, MOST_MERGES]: weight of occurrences that follow one of the same pair"""
    slices: npt.NDArray[np.int64]
    """[shares, MOST_MERGES, 2]: of the pool, for the places of each merge"""
    record_of: npt.NDArray[np.int32]
    """[shares, 2 * tokens]: of a neighbour, counted from 1; 0 between merges"""
    entry_of: npt.NDArray[np.int32]
    """[2 * tokens]: the same where the records of all shares are summed up"""
    entries: npt.NDArray[np.int64]
    """[2 * tokens, 4]: these sums"""


@njit(cache=True, nogil=True)
def new_scratch(shares, tokens):  # type: ignore[no-untyped-def]
    """With room for rounds of MOST_PLACES places."""
    return Scratch(
        np.empty((MOST_MERGES, 5), np.int64),
        np.zeros((2, tokens), np.int64),
        np.empty((shares, 2 * max(tokens, MOST_PLACES), 4), np.int64),
        np.empty((shares, 2 * MOST_PLACES, 2), np.int32),
        np.zeros((shares, 3), np.int64),
        np.zeros((shares, MOST_MERGES + 1), np.int64),
        np.zeros((shares, MOST_MERGES), np.int64),
        np.empty((shares, MOST_MERGES, 2), np.int64),
        np.zeros((shares, 2 * tokens), np.int32),
        np.zeros(2 * tokens, np.int32),
        np.empty((2 * tokens, 4), np.int64),
    )


@njit(cache=True, nogil=True)
def with_notes(scratch, places):  # type: ignore[no-untyped-def]
    """Scratch for a round of so many places, of which nothing is still to be written."""
    notes = scratch.notes
    if 2 * places > notes.shape[1]:
        notes = np.empty((notes.shape[0], 2 * places, 2), np.int32)
    return Scratch(
        scratch.batch,
        scratch.sides,
        scratch.records,
        notes,
        scratch.used,
        scratch.ends,
        scratch.joined,
        scratch.slices,
        scratch.record_of,
        scratch.entry_of,
        scratch.entries,
    )


@njit(cache=True, forceinline=True, _nrt=False)
def note(neighbour, place, weight, records, notes, record_of, filled, noted):  # type: ignore[no-untyped-def]
    """Writes down one occurrence of a neighbour; returns how many records there are."""
    record = record_of[neighbour]
    if record == 0:
        records[filled, NEIGHBOUR] = neighbour
        records[filled, NUMBER] = 0
        records[filled, WEIGHT] = 0
        filled += 1
        record = filled
        record_of[neighbour] = record
    records[record - 1, NUMBER] += 1
    records[record - 1, WEIGHT] += weight
    notes[noted, 0] = record - 1
    notes[noted, 1] = place
    return filled


@njit(cache=True, nogil=True)
def replace(words, pool, begin, end, left, right, token, scratch, share, filled, noted):  # type: ignore[no-untyped-def]
    """Replaces the pair at pool[begin:end] and notes its neighbours, after `filled` records and `noted` notes.

    Returns how many there are then, and the weight of occurrences next to each other.
    """
    symbols, weights, cells = words
    records, notes, record_of = scratch.records[share], scratch.notes[share], scratch.record_of[share]
    left_cells, right_cells = cells[left], cells[right]
    first = filled
    joined = np.int64(0)
    after_last = -1
    border = -1
    for k in range(begin, end):
        prefetch(symbols, pool[min(k + AHEAD, end - 1)])
        at = pool[k]
        middle = at + left_cells
        if symbols[at] != left or symbols[middle] != right:
            continue
        following = middle + right_cells
        if border < following:
            border = following
            while symbols[border] >= INTERIOR:
                border += 1
        weight = weights[FIRST_WEIGHT - symbols[border]]
        before = np.int64(symbols[at - 1])
        if before >= 0:
            if at == after_last:
                joined += weight
                records[record_of[left << 1 | AFTER] - 1, WEIGHT] -= weight
            place = at - cells[before]
            filled = note(before << 1 | BEFORE, place, weight, records, notes, record_of, filled, noted)
            noted += 1
        after = np.int64(symbols[following])
        if after >= 0:
            filled = note(after << 1 | AFTER, at, weight, records, notes, record_of, filled, noted)
            noted += 1
        symbols[middle - 1] = INTERIOR
        symbols[middle] = INTERIOR
        symbols[at] = token
        symbols[following - 1] = token
        after_last = following
    for record in range(first, filled):
        record_of[records[record, NEIGHBOUR]] = 0
    return filled, noted, joined


@njit(cache=True, forceinline=True, _nrt=False)
def first_from(pool, begin, end, cell):  # type: ignore[no-untyped-def]
    """The first of the ascending places pool[begin:end] that is not before `cell`, or `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if pool[middle] < cell:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def cut(pool, merges, scratch, share, first, stop):  # type: ignore[no-untyped-def]
    """Cuts the slices of the first `merges` down to the places in symbols[first:stop], into slices[share].

    What the last round bore is being written by all shares: its cells of it are those that this one has just filled.
    """
    batch, records, slices = scratch.batch, scratch.records[share], scratch.slices[share]
    oldest = scratch.used[share, OLDEST] or batch[0, TOKEN]
    for merge in range(merges):
        begin, end = batch[merge, BEGIN], batch[merge, END]
        left, right = batch[merge, LEFT_SYMBOL], batch[merge, RIGHT_SYMBOL]
        newer = max(left, right)
        if newer >= oldest:
            neighbour = left << 1 | BEFORE if newer == right else right << 1 | AFTER
            end = begin
            for record in range(scratch.ends[share, newer - oldest], scratch.ends[share, newer - oldest + 1]):
                if records[record, NEIGHBOUR] == neighbour:
                    end = records[record, TARGET]
                    begin = end - records[record, NUMBER]
                    break
        else:
            begin = first_from(pool, begin, end, first)
            end = first_from(pool, begin, end, stop)
        slices[merge, 0] = begin
        slices[merge, 1] = end


@njit(cache=True, nogil=True)
def merge_share(words, pool, merges, scratch, share, first, stop):  # type: ignore[no-untyped-def]
    """Writes what the last round noted in this share, then makes the first `merges` of this one in the words of
    symbols[first:stop]."""
    write_noted(pool, scratch, share)
    batch = scratch.batch
    whole = first == 0 and stop == words.symbols.size
    if not whole:
        cut(pool, merges, scratch, share, first, stop)
    filled = np.int64(0)
    noted = np.int64(0)
    for merge in range(merges):
        begin, end = batch[merge, BEGIN], batch[merge, END]
        if not whole:
            begin, end = scratch.slices[share, merge]
        left, right, token = batch[merge, LEFT_SYMBOL], batch[merge, RIGHT_SYMBOL], batch[merge, TOKEN]
        filled, noted, joined = replace(words, pool, begin, end, left, right, token, scratch, share, filled, noted)
        scratch.ends[share, merge + 1] = filled
        scratch.joined[share, merge] = joined
    scratch.used[share, RECORDS] = filled
    scratch.used[share, NOTES] = noted
    scratch.used[share, OLDEST] = batch[0, TOKEN]


@njit(cache=True, nogil=True)
def write_noted(pool, scratch, share):  # type: ignore[no-untyped-def]
    """Writes the places of one share's new pairs: of these, a record's target is then the cell after them."""
    records, notes = scratch.records[share], scratch.notes[share]
    for k in range(scratch.used[share, NOTES]):
        record = notes[k, 0]
        target = records[record, TARGET]
        if target >= 0:
            pool[target] = notes[k, 1]
            records[record, TARGET] = target + 1


@njit(cache=True, nogil=True)
def finish(pool, scratch):  # type: ignore[no-untyped-def]
    """Writes what all shares noted in the last round, and forgets it."""
    for share in range(scratch.used.shape[0]):
        write_noted(pool, scratch, share)
    scratch.used[:] = 0
