"""Numba kernel: a string of JSON to the bytes that it stands for.

Strings go by 64 bytes at a time, up to the first that is a quote, a backslash or a control character.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.intrinsics import lowest_bit
from tokpack_core.bpe.vector_intrinsics import BACKSLASH, QUOTE, SPACE, WIDTH, copy_and_find_special

Bytes = npt.NDArray[np.uint8]

ZERO, NINE = 0x30, 0x39
ODD = -1
ESCAPED = np.zeros(256, np.uint8)
"""What a letter behind a backslash stands for, or 0."""
ESCAPED[list(b'"\\/nrtbf')] = list(b'"\\/\n\r\t\b\f')


@njit(cache=True, nogil=True)
def hex_value(data: Bytes, i: int) -> int:
    """The number that four hexadecimal digits write, or ODD."""
    value = 0
    for k in range(i, i + 4):
        if k >= data.size:
            return ODD
        digit = data[k]
        if ZERO <= digit <= NINE:
            value = value << 4 | (digit - ZERO)
        elif 0x61 <= digit | 0x20 <= 0x66:
            value = value << 4 | ((digit | 0x20) - 0x61 + 10)
        else:
            return ODD
    return value


@njit(cache=True, nogil=True)
def read_unicode_escape(data: Bytes, i: int, out: Bytes, o: int) -> tuple[int, int]:
    point = hex_value(data, i + 2)
    if point == ODD or 0xDC00 <= point < 0xE000:
        return ODD, o
    i += 6
    if 0xD800 <= point < 0xDC00:
        if i + 6 > data.size or data[i] != BACKSLASH or data[i + 1] != 0x75:
            return ODD, o
        low = hex_value(data, i + 2)
        if not 0xDC00 <= low < 0xE000:
            return ODD, o
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
        i += 6
    if point < 0x80:
        out[o] = point
        return i, o + 1
    if point < 0x800:
        out[o] = 0xC0 | point >> 6
        out[o + 1] = 0x80 | point & 0x3F
        return i, o + 2
    if point < 0x10000:
        out[o] = 0xE0 | point >> 12
        out[o + 1] = 0x80 | point >> 6 & 0x3F
        out[o + 2] = 0x80 | point & 0x3F
        return i, o + 3
    out[o] = 0xF0 | point >> 18
    out[o + 1] = 0x80 | point >> 12 & 0x3F
    out[o + 2] = 0x80 | point >> 6 & 0x3F
    out[o + 3] = 0x80 | point & 0x3F
    return i, o + 4


@njit(cache=True, nogil=True)
def read_string(data: Bytes, i: int, out: Bytes, o: int) -> tuple[int, int]:
    """The string whose first byte stands at `i`, unescaped, goes to out[o:]; where both end, or ODD.

    `out` has 64 bytes more than strings take; no escape writes more bytes than it has.
    """
    while True:
        if i + WIDTH <= data.size:
            special = copy_and_find_special(data, i, out, o)
            length = lowest_bit(special) if special else WIDTH
            i += length
            o += length
            if not special:
                continue
        else:
            while data[i] != QUOTE and data[i] != BACKSLASH and data[i] >= SPACE:
                out[o] = data[i]
                i += 1
                o += 1
        if data[i] == QUOTE:
            return i + 1, o
        if data[i] != BACKSLASH:
            return ODD, o
        byte = ESCAPED[data[i + 1]]
        if byte:
            out[o] = byte
            i += 2
            o += 1
        elif data[i + 1] == 0x75:
            i, o = read_unicode_escape(data, i, out, o)
            if i == ODD:
                return ODD, o
        else:
            return ODD, o
