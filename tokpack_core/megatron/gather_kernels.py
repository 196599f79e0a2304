"""Copying the tokens of packs out of mapped shards: see `export`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

Tokens = npt.NDArray[np.integer]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Segments = tuple[Int64, npt.NDArray[np.integer], Int64, Int32]
"""pack_offsets, document, start, length of a PackingPlan."""
Runs = tuple[Int64, Int32, npt.NDArray[np.int8]]
"""offsets [segments + 1], length and mode [runs] of ModeRuns."""
Sequences = tuple[Int32, npt.NDArray[np.int8], Int32]
"""length, mode, document [sequences]."""


@njit(cache=True)
def copy_from_part(
    buffer: Tokens,
    packs: Int64,
    segments: Segments,
    align: int,
    part: Int32,
    position: Int64,
    number: int,
    tokens: Tokens,
) -> int:
    """Copy what stands in part `number` into buffer [packs, S], each segment at its place in its pack.

    Segments start at multiples of `align`. part and position are [documents]. Returns -1, or the first segment that
    reaches past the end of the part.
    """
    pack_offsets, document, start, length = segments
    for row in range(packs.size):
        at = 0
        for s in range(pack_offsets[packs[row]], pack_offsets[packs[row] + 1]):
            d = document[s]
            n = length[s]
            if part[d] == number:
                first = position[d] + start[s]
                if first < 0 or first + n > tokens.size:
                    return s
                # Slices without index arithmetic in the loop are what the compiler turns into a block copy.
                source = tokens[first : first + n]
                target = buffer[row, at : at + n]
                for t in range(n):
                    target[t] = source[t]
            at += n + -n % align
    return -1


pread = types.ExternalFunction("pread", types.int64(types.int32, types.intp, types.uintp, types.int64))
"""POSIX pread, which numba finds in the C library of the process."""


@njit(cache=True)
def read_from_part(
    buffer: Tokens,
    packs: Int64,
    segments: Segments,
    align: int,
    part: Int32,
    position: Int64,
    number: int,
    size: int,
    descriptor: int,
) -> int:
    """`copy_from_part` out of an open file of `size` tokens: pages that are read so are no memory of this process.

    Returns -2 - s when segment s could not be read.
    """
    pack_offsets, document, start, length = segments
    width = buffer.itemsize
    for row in range(packs.size):
        at = 0
        for s in range(pack_offsets[packs[row]], pack_offsets[packs[row] + 1]):
            d = document[s]
            n = length[s]
            if part[d] == number:
                first = position[d] + start[s]
                if first < 0 or first + n > size:
                    return s
                target = buffer.ctypes.data + (row * buffer.shape[1] + at) * width
                done = 0
                while done < n * width:
                    got = pread(np.int32(descriptor), target + done, n * width - done, first * width + done)
                    if got <= 0:
                        return -2 - s
                    done += got
            at += n + -n % align
    return -1


@njit(cache=True)
def fill_tails(
    buffer: Tokens,
    packs: Int64,
    segments: Segments,
    runs: Runs,
    align: int,
    eod: int,
    sequences: Sequences,
    counts: Int32,
) -> int:
    """Fill the gaps after segments and the rest of each pack with EOD, and list what each pack is made of.

    A run of one mode, a gap and a filled tail are sequences of their own. `sequences` has room for one entry a run (two
    with gaps) and one a pack: length, mode, and number of the document within its pack, -1 for what is filled. A
    segment that goes on where the one before it ends is of the same document. counts [packs] gets the sequences of
    each. Returns the entries used.
    """
    pack_offsets, document, start, length = segments
    run_offsets, run_length, run_mode = runs
    out_length, out_mode, out_document = sequences
    used = 0
    for row in range(packs.size):
        begin = used
        at = 0
        number = -1
        first = pack_offsets[packs[row]]
        for s in range(first, pack_offsets[packs[row] + 1]):
            goes_on = (
                s > first
                and out_document[used - 1] >= 0
                and document[s] == document[s - 1]
                and start[s] == start[s - 1] + length[s - 1]
            )
            if not goes_on:
                number += 1
            for run in range(run_offsets[s], run_offsets[s + 1]):
                out_length[used], out_mode[used], out_document[used] = run_length[run], run_mode[run], number
                used += 1
            at += length[s]
            gap = -at % align
            if gap > 0:
                out_length[used], out_mode[used], out_document[used] = gap, 0, -1
                used += 1
                buffer[row, at : at + gap] = eod
                at += gap
        if at < buffer.shape[1]:
            out_length[used], out_mode[used], out_document[used] = buffer.shape[1] - at, 0, -1
            used += 1
            buffer[row, at:] = eod
        counts[row] = used - begin
    return used
