"""Numba kernel: which texts hold a character of a set.

Two bytes of a character say whether it may be in the set. They are looked at, at every place, without regard to where
characters begin, which is four times as fast as going from one character to the next; what they show is looked at
closely.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.intrinsics import load_uint64

TOP = np.uint64(0x8080808080808080)
TWO_BYTES = np.uint64(0xFFFF)


def first_two_bytes(characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """[1 << 16]: 1 where a character of the set begins with these two bytes, the first one in the low byte."""
    points = np.flatnonzero(np.unpackbits(characters, bitorder="little"))
    starts = np.zeros(1 << 16, np.uint8)
    for first, last, lead, shift in ((0x80, 0x7FF, 0xC0, 6), (0x800, 0xFFFF, 0xE0, 12), (0x10000, 0x10FFFF, 0xF0, 18)):
        some = points[(points >= first) & (points <= last)]
        starts[lead | some >> shift | (0x80 | some >> (shift - 6) & 0x3F) << 8] = 1
    return starts


@njit(cache=True, nogil=True)
def documents_with(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    characters: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.uint8],
) -> npt.NDArray[np.bool_]:
    """bool [documents]; `data` is UTF-8, `characters` a bit for each code point above ASCII, the lowest bit first.

    `starts` is what `first_two_bytes` gives for them.
    """
    found = np.zeros(offsets.size - 1, np.bool_)
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        if may_have(data, begin, end, starts):
            found[document] = has(data, begin, end, characters)
    return found


@njit(cache=True, nogil=True)
def may_have(data: npt.NDArray[np.uint8], i: int, end: int, starts: npt.NDArray[np.uint8]) -> bool:
    found = np.uint8(0)
    while i + 8 <= end:
        word = load_uint64(data, i)
        if word & TOP:
            for k in range(0, 56, 8):
                found |= starts[np.int64(word >> np.uint64(k) & TWO_BYTES)]
            i += 7
        else:
            i += 8
    while i + 1 < end:
        found |= starts[np.int64(data[i]) | np.int64(data[i + 1]) << 8]
        i += 1
    return found != 0


@njit(cache=True, nogil=True)
def has(data: npt.NDArray[np.uint8], i: int, end: int, characters: npt.NDArray[np.uint8]) -> bool:
    while i < end:
        byte = data[i]
        if byte < 0x80:
            i += 1
            continue
        if byte < 0xE0:
            point = (byte & 0x1F) << 6 | (data[i + 1] & 0x3F)
            i += 2
        elif byte < 0xF0:
            point = (byte & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
            i += 3
        else:
            point = (byte & 0x07) << 18 | (data[i + 1] & 0x3F) << 12 | (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F)
            i += 4
        if characters[point >> 3] >> (point & 7) & 1:
            return True
    return False
