"""Numba kernels that find the segments of a text which normalization may change, and put other forms in their place.

`collect` walks flat UTF-8 bytes (valid ones: Arrow strings are), looks each code point up in a class table (see
`normalization_table`) and gathers the distinct segments in an open-addressing hash table, so that the caller
normalizes each distinct one once; `replace` walks the documents concerned again and writes the new forms. Memory
beyond the text itself grows with distinct segments only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

EMPTY = -1
FIRST_CAPACITY = 1024


class Segments(NamedTuple):
    """Distinct segments: where each first stands in the text (`starts`, `stops`), its hash; hash slot -> segment."""

    starts: Int64s
    stops: Int64s
    hashes: npt.NDArray[np.uint64]
    slots: Int64s


@njit(cache=True)
def next_segment(data: Bytes, at: int, stop: int, table: Bytes) -> tuple[int, int]:
    """The next segment of data[at:stop] that may change, as (start, stop); (stop, stop) if none. `at` starts one."""
    start = at
    may_change = False
    last_class = 0
    while at < stop:
        byte = data[at]
        if byte < 0x80:
            if may_change:
                return start, at
            at += 1
            while at < stop and data[at] < 0x80:
                at += 1
            start = at - 1
            last_class = 0
            continue
        if byte >= 0xF0:
            width = 4
            code_point = (byte & 7) << 18 | (data[at + 1] & 63) << 12 | (data[at + 2] & 63) << 6 | (data[at + 3] & 63)
        elif byte >= 0xE0:
            width = 3
            code_point = (byte & 15) << 12 | (data[at + 1] & 63) << 6 | (data[at + 2] & 63)
        else:
            width = 2
            code_point = (byte & 31) << 6 | (data[at + 1] & 63)
        kind = table[code_point]
        if kind <= 1:
            if may_change:
                return start, at
            start = at
            may_change = kind == 1
            last_class = 0
        else:
            may_change = may_change or kind == 2 or kind < last_class
            last_class = kind
        at += width
    return (start, stop) if may_change else (stop, stop)


@njit(cache=True)
def segment_hash(data: Bytes, start: int, stop: int) -> np.uint64:
    """FNV-1a with a final shift that brings the high bits down, since slots are the low ones."""
    state = np.uint64(0xCBF29CE484222325)
    for at in range(start, stop):
        state = (state ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return state ^ (state >> np.uint64(32))


@njit(cache=True)
def find_slot(data: Bytes, start: int, stop: int, key: np.uint64, segments: Segments) -> np.int64:
    """The slot that holds the segment data[start:stop], or the empty one where it belongs."""
    mask = len(segments.slots) - 1
    slot = np.int64(key & np.uint64(mask))
    while segments.slots[slot] != EMPTY:
        known = segments.slots[slot]
        same = segments.hashes[known] == key and segments.stops[known] - segments.starts[known] == stop - start
        at = 0
        while same and at < stop - start:
            same = data[segments.starts[known] + at] == data[start + at]
            at += 1
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def with_capacity(segments: Segments, count: int, capacity: int) -> Segments:
    """The first `count` segments in arrays of `capacity` (a power of two) with twice as many slots."""
    grown = Segments(
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.uint64),
        np.full(2 * capacity, EMPTY, np.int64),
    )
    mask = 2 * capacity - 1
    for known in range(count):
        grown.starts[known] = segments.starts[known]
        grown.stops[known] = segments.stops[known]
        grown.hashes[known] = segments.hashes[known]
        slot = np.int64(segments.hashes[known] & np.uint64(mask))
        while grown.slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        grown.slots[slot] = known
    return grown


@njit(cache=True, nogil=True)
def collect(data: Bytes, offsets: Int64s, table: Bytes) -> tuple[Segments, Int64s, npt.NDArray[np.bool_]]:
    """Distinct segments that may change in order of first occurrence, the count of each, and documents with any."""
    count = 0
    empty = Segments(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64))
    segments = with_capacity(empty, 0, FIRST_CAPACITY)
    counts = np.zeros(FIRST_CAPACITY, np.int64)
    documents = np.zeros(len(offsets) - 1, np.bool_)
    for document in range(len(offsets) - 1):
        end = offsets[document + 1]
        start, stop = next_segment(data, offsets[document], end, table)
        while start < stop:
            documents[document] = True
            key = segment_hash(data, start, stop)
            slot = find_slot(data, start, stop, key, segments)
            if segments.slots[slot] == EMPTY:
                if count == len(counts):
                    segments = with_capacity(segments, count, 2 * count)
                    counts = np.concatenate((counts, np.zeros(count, np.int64)))
                    slot = find_slot(data, start, stop, key, segments)
                segments.slots[slot] = count
                segments.starts[count], segments.stops[count], segments.hashes[count] = start, stop, key
                count += 1
            counts[segments.slots[slot]] += 1
            start, stop = next_segment(data, stop, end, table)
    final = Segments(segments.starts[:count], segments.stops[:count], segments.hashes[:count], segments.slots)
    return final, counts[:count], documents


@njit(cache=True, nogil=True)
def gather(data: Bytes, starts: Int64s, stops: Int64s) -> tuple[Bytes, Int64s]:
    """The slices data[starts[k]:stops[k]] one after the other, with their offsets."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    offsets[1:] = np.cumsum(stops - starts)
    out = np.empty(offsets[-1], np.uint8)
    for k in range(len(starts)):
        out[offsets[k] : offsets[k + 1]] = data[starts[k] : stops[k]]
    return out, offsets


@njit(cache=True)
def append(out: Bytes, used: int, source: Bytes, start: int, stop: int) -> tuple[Bytes, int]:
    """Writes source[start:stop] after out[:used]; returns `out`, a longer one if it was too short, and bytes used."""
    needed = used + stop - start
    if needed > len(out):
        longer = np.empty(needed + needed // 2, np.uint8)
        longer[:used] = out[:used]
        out = longer
    out[used:needed] = source[start:stop]
    return out, needed


@njit(cache=True, nogil=True)
def replace(
    data: Bytes,
    offsets: Int64s,
    table: Bytes,
    documents: npt.NDArray[np.bool_],
    segments: Segments,
    changed: Int64s,
    forms: Bytes,
    form_offsets: Int64s,
) -> tuple[Bytes, Int64s, Int64s]:
    """Puts form k in the place of segment k wherever changed[k], its number of characters, is not 0.

    Only the documents marked in `documents` are looked at. Returns bytes, offsets, and characters replaced by
    document (int64 [documents]).
    """
    out = np.empty(len(data) + len(data) // 8, np.uint8)
    out_offsets = np.zeros(len(offsets), np.int64)
    affected = np.zeros(len(offsets) - 1, np.int64)
    used = 0
    for document in range(len(offsets) - 1):
        copied, end = offsets[document], offsets[document + 1]
        start = stop = end
        if documents[document]:
            start, stop = next_segment(data, copied, end, table)
        while start < stop:
            segment = segments.slots[find_slot(data, start, stop, segment_hash(data, start, stop), segments)]
            if changed[segment]:
                out, used = append(out, used, data, copied, start)
                out, used = append(out, used, forms, form_offsets[segment], form_offsets[segment + 1])
                affected[document] += changed[segment]
                copied = stop
            start, stop = next_segment(data, stop, end, table)
        out, used = append(out, used, data, copied, end)
        out_offsets[document + 1] = used
    return out[:used], out_offsets, affected
