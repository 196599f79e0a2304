"""Numba kernel: a string of JSON to the bytes that it stands for.

Strings go by eight bytes at a time, as long as none is a quote, a backslash or a control character.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.intrinsics import load_uint64, lowest_bit, store_uint64

Bytes = npt.NDArray[np.uint8]

QUOTE, BACKSLASH, SPACE = 0x22, 0x5C, 0x20
SLASH, ZERO, NINE = 0x2F, 0x30, 0x39
ODD = -1
EACH = np.uint64(0x0101010101010101)
TOP = np.uint64(0x8080808080808080)
QUOTES, BACKSLASHES, SPACES = EACH * np.uint64(QUOTE), EACH * np.uint64(BACKSLASH), EACH * np.uint64(SPACE)


@njit(cache=True, inline="always")
def first_special(word: np.uint64) -> np.uint64:
    """The top bit of the first byte that is a quote, a backslash or a control character; 0 if none is."""
    quote, backslash = word ^ QUOTES, word ^ BACKSLASHES
    return (
        ((quote - EACH) & ~quote) | ((backslash - EACH) & ~backslash) | ((word - SPACES) & ~word)
    ) & TOP  # bits above the first may be wrong: a borrow goes upwards


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
def read_escape(data: Bytes, i: int, out: Bytes, o: int) -> tuple[int, int]:
    """What the escape whose backslash stands at `i` writes goes to out[o:]; where both end, or ODD."""
    kind = data[i + 1]
    if kind in (QUOTE, BACKSLASH, SLASH):
        out[o] = kind
    elif kind == 0x6E:
        out[o] = 0x0A
    elif kind == 0x74:
        out[o] = 0x09
    elif kind == 0x72:
        out[o] = 0x0D
    elif kind == 0x62:
        out[o] = 0x08
    elif kind == 0x66:
        out[o] = 0x0C
    elif kind == 0x75:
        return read_unicode_escape(data, i, out, o)
    else:
        return ODD, o
    return i + 2, o + 1


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

    `out` has 8 bytes more than strings take; no escape writes more bytes than it has.
    """
    while True:
        while i + 8 <= data.size:
            word = load_uint64(data, i)
            store_uint64(out, o, word)
            special = first_special(word)
            if special:
                length = lowest_bit(special) >> 3
                i += length
                o += length
                break
            i += 8
            o += 8
        while data[i] != QUOTE and data[i] != BACKSLASH and data[i] >= SPACE:
            out[o] = data[i]
            i += 1
            o += 1
        if data[i] == QUOTE:
            return i + 1, o
        if data[i] != BACKSLASH:
            return ODD, o
        i, o = read_escape(data, i, out, o)
        if i == ODD:
            return ODD, o
