"""Numba kernel that cleans flat UTF-8 bytes in one pass: byte order marks, line ends, controls, trailing spaces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

TAB, LF, CR, SPACE, DELETE = 0x09, 0x0A, 0x0D, 0x20, 0x7F
BOM, LINE_END, CONTROL, TRAILING = 0, 1, 2, 3
"""Columns of the counts."""


@njit(cache=True, inline="always")
def is_c1_control(data: Bytes, at: int, stop: int) -> bool:
    return data[at] == 0xC2 and at + 1 < stop and data[at + 1] < 0xA0


@njit(cache=True, inline="always")
def is_byte_order_mark(data: Bytes, at: int, stop: int) -> bool:
    return data[at] == 0xEF and at + 2 < stop and data[at + 1] == 0xBB and data[at + 2] == 0xBF


@njit(cache=True)
def trailing_space_width(out: Bytes, start: int, stop: int, compatible: bool) -> int:
    """Bytes of the space that ends out[start:stop], 0 if none; `compatible`: also of one that NFKC makes a space."""
    if stop == start:
        return 0
    last = out[stop - 1]
    if last in (SPACE, TAB):
        return 1
    if not compatible or last < 0x80 or stop - start < 2:
        return 0
    middle = out[stop - 2]
    if middle == 0xC2 and last == 0xA0:  # U+00A0
        return 2
    if stop - start < 3:
        return 0
    lead = out[stop - 3]
    if lead == 0xE2 and middle == 0x80 and (last <= 0x8A or last == 0xAF):  # U+2000–200A, U+202F
        return 3
    if lead == 0xE2 and middle == 0x81 and last == 0x9F:  # U+205F
        return 3
    if lead == 0xE3 and middle == 0x80 and last == 0x80:  # U+3000
        return 3
    return 0


@njit(cache=True, nogil=True)
def clean(
    data: Bytes, offsets: Int64s, marks: bool, line_ends: bool, controls: bool, trailing: bool, compatible: bool
) -> tuple[Bytes, Int64s, Int64s]:
    """Bytes and offsets after the cleaning that is switched on, and characters affected, int64 [documents, 4]."""
    documents = len(offsets) - 1
    out = np.empty(len(data), np.uint8)
    out_offsets = np.zeros(documents + 1, np.int64)
    counts = np.zeros((documents, 4), np.int64)
    o = 0
    for document in range(documents):
        begin = o
        at, stop = offsets[document], offsets[document + 1]
        while at <= stop:
            byte = data[at] if at < stop else LF  # the end of a document ends its last line
            if trailing and byte in (LF, CR):
                width = trailing_space_width(out, begin, o, compatible)
                while width:
                    o -= width
                    counts[document, TRAILING] += 1
                    width = trailing_space_width(out, begin, o, compatible)
            if at == stop:
                break
            if line_ends and byte == CR:
                counts[document, LINE_END] += 1
                at += 2 if at + 1 < stop and data[at + 1] == LF else 1
                out[o] = LF
                o += 1
            elif controls and (byte < SPACE or byte == DELETE) and byte not in (TAB, LF, CR):
                counts[document, CONTROL] += 1
                at += 1
            elif controls and is_c1_control(data, at, stop):
                counts[document, CONTROL] += 1
                at += 2
            elif marks and o == begin and is_byte_order_mark(data, at, stop):
                counts[document, BOM] += 1
                at += 3
            else:
                out[o] = byte
                o += 1
                at += 1
        out_offsets[document + 1] = o
    return out[:o], out_offsets, counts
