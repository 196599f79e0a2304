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
    """`copy_from_part` out of an open file of `size` tokens: pages that are read so are no memory of this process."""
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
                        return s
                    done += got
            at += n + -n % align
    return -1


@njit(cache=True)
def fill_tails(
    buffer: Tokens, packs: Int64, segments: Segments, align: int, eod: int, sequence_lengths: Int32, sequences: Int32
) -> int:
    """Fill the gaps after segments and the rest of each pack with EOD, and list what each pack is made of.

    A gap and a filled tail are sequences of their own. sequence_lengths has room for one entry a segment (two with
    gaps) and one a pack; sequences is [packs]. Returns the entries used.
    """
    pack_offsets, _, _, length = segments
    used = 0
    for row in range(packs.size):
        begin = used
        at = 0
        for s in range(pack_offsets[packs[row]], pack_offsets[packs[row] + 1]):
            sequence_lengths[used] = length[s]
            used += 1
            at += length[s]
            gap = -at % align
            if gap > 0:
                sequence_lengths[used] = gap
                used += 1
                buffer[row, at : at + gap] = eod
                at += gap
        if at < buffer.shape[1]:
            sequence_lengths[used] = buffer.shape[1] - at
            used += 1
            buffer[row, at:] = eod
        sequences[row] = used - begin
    return used
