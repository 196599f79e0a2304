"""Numba kernel: string fields of JSON lines, out of the bytes of many lines, without an object of Python a line.

It takes what RFC 8259 takes and a line that any of its rules may concern it leaves alone: blank lines, byte order
marks, escapes in keys, lone surrogates, nesting beyond 64, numbers that are long or near the ends of a double. So it
gives what the careful path gives, or nothing. Bytes must be UTF-8, which is checked before; every line ends in LF, so
that each scan has an end: LF stands nowhere within a line of JSON.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.vector_intrinsics import BACKSLASH, QUOTE, SPACE
from tokpack_core.corpus.json_string_kernels import NINE, ODD, ZERO, read_string

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

COMMA, COLON, LF = 0x2C, 0x3A, 0x0A
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
MINUS, PLUS, POINT = 0x2D, 0x2B, 0x2E
ABSENT, NULL, STRING, INTEGER = 0, 1, 2, 3
"""What a line has for a field; everything else is odd."""
MOST_DEPTH = 64
MOST_DIGITS = 18
MOST_NUMBER = 40
"""Characters of a number that is surely no more than a double can hold, with an exponent of two digits."""


@njit(cache=True, nogil=True)
def count_lines(data: Bytes) -> int:
    """Number of LF, ten times as fast as bytes.count."""
    lines = 0
    for byte in data:
        lines += byte == LF
    return lines


@njit(cache=True, nogil=True)
def skip_space(data: Bytes, i: int) -> int:
    while data[i] == SPACE or data[i] == 0x09 or data[i] == 0x0D:
        i += 1
    return i


@njit(cache=True, nogil=True)
def skip_digits(data: Bytes, i: int) -> int:
    while ZERO <= data[i] <= NINE:
        i += 1
    return i


@njit(cache=True, nogil=True)
def skip_number(data: Bytes, start: int) -> tuple[int, bool]:
    """Where the number ends, or ODD; and whether it is an integer whose digits Python would write the same way."""
    i = start + 1 if data[start] == MINUS else start
    digits = skip_digits(data, i) - i
    if digits == 0 or (digits > 1 and data[i] == ZERO):
        return ODD, False
    plain = digits <= MOST_DIGITS and not (data[i] == ZERO and i > start)
    i += digits
    if data[i] == POINT:
        plain = False
        end = skip_digits(data, i + 1)
        if end == i + 1:
            return ODD, False
        i = end
    if data[i] | 0x20 == 0x65:
        plain = False
        i += 2 if data[i + 1] == PLUS or data[i + 1] == MINUS else 1
        end = skip_digits(data, i)
        if not 1 <= end - i <= 2:
            return ODD, False
        i = end
    return (ODD if i - start > MOST_NUMBER else i), plain


@njit(cache=True, nogil=True)
def skip_word(data: Bytes, i: int) -> int:
    """Where true, false or null ends, or ODD."""
    if i + 5 > data.size:
        return ODD
    if data[i] == 0x74 and data[i + 1] == 0x72 and data[i + 2] == 0x75 and data[i + 3] == 0x65:
        return i + 4
    if data[i] == 0x6E and data[i + 1] == 0x75 and data[i + 2] == 0x6C and data[i + 3] == 0x6C:
        return i + 4
    if data[i] == 0x66 and data[i + 1] == 0x61 and data[i + 2] == 0x6C and data[i + 3] == 0x73 and data[i + 4] == 0x65:
        return i + 5
    return ODD


@njit(cache=True, nogil=True)
def skip_key(data: Bytes, i: int, out: Bytes, o: int) -> int:
    """From a key's quote to its value, or ODD. out[o:] is written over."""
    if data[i] != QUOTE:
        return ODD
    i, _ = read_string(data, i + 1, out, o)
    if i == ODD:
        return ODD
    i = skip_space(data, i)
    return skip_space(data, i + 1) if data[i] == COLON else ODD


@njit(cache=True, nogil=True)
def skip_value(data: Bytes, i: int, out: Bytes, o: int) -> int:
    """Where the value at `i` ends, or ODD. out[o:] is written over."""
    objects = np.uint64(0)  # the lowest bit: what is open is an object
    depth = 0
    while True:
        byte = data[i]
        opened = False
        if byte == QUOTE:
            i, _ = read_string(data, i + 1, out, o)
        elif byte in (OPEN_OBJECT, OPEN_ARRAY):
            if depth == MOST_DEPTH:
                return ODD
            depth += 1
            objects = objects << np.uint64(1) | np.uint64(byte == OPEN_OBJECT)
            i = skip_space(data, i + 1)
            opened = True
        elif byte == MINUS or ZERO <= byte <= NINE:
            i, _ = skip_number(data, i)
        else:
            i = skip_word(data, i)
        if i == ODD:
            return ODD
        if opened and data[i] != CLOSE_OBJECT and data[i] != CLOSE_ARRAY:
            if objects & np.uint64(1):
                i = skip_key(data, i, out, o)
                if i == ODD:
                    return ODD
            continue
        while depth:
            if not opened:
                i = skip_space(data, i)
            in_object = objects & np.uint64(1) != 0
            if data[i] == COMMA and not opened:
                i = skip_space(data, i + 1)
                if in_object:
                    i = skip_key(data, i, out, o)
                    if i == ODD:
                        return ODD
                break
            if data[i] != (CLOSE_OBJECT if in_object else CLOSE_ARRAY):
                return ODD
            i += 1
            depth -= 1
            objects >>= np.uint64(1)
            opened = False
        else:
            return i


@njit(cache=True, nogil=True)
def field_of(data: Bytes, start: int, stop: int, names: Bytes, borders: Int64s) -> int:
    """The number of the wanted field whose name is data[start:stop], or ODD."""
    for field in range(borders.size - 1):
        begin = borders[field]
        if borders[field + 1] - begin != stop - start:
            continue
        k = 0
        while k < stop - start and data[start + k] == names[begin + k]:
            k += 1
        if k == stop - start:
            return field
    return ODD


@njit(cache=True, nogil=True)
def read_field(data: Bytes, i: int, out: Bytes, o: int) -> tuple[int, int, int]:
    """Where the value at `i` ends, or ODD; where its bytes in `out` end; and what it is."""
    byte = data[i]
    if byte == QUOTE:
        i, o = read_string(data, i + 1, out, o)
        return i, o, STRING
    if byte == MINUS or ZERO <= byte <= NINE:
        end, plain = skip_number(data, i)
        if end == ODD or not plain:
            return ODD, o, ABSENT
        for k in range(i, end):
            out[o + k - i] = data[k]
        return end, o + end - i, INTEGER
    if byte == 0x6E:
        return skip_word(data, i), o, NULL
    return ODD, o, ABSENT


@njit(cache=True, nogil=True)
def read_line(
    data: Bytes, i: int, names: Bytes, borders: Int64s, out: Bytes, starts: Int64s, ends: Int64s, kinds: Bytes, n: int
) -> int:
    """Where the object ends that line `n` consists of, or ODD. Fields go to out[starts[field] : ends[field]]."""
    i = skip_space(data, i)
    if data[i] != OPEN_OBJECT:
        return ODD
    i = skip_space(data, i + 1)
    if data[i] == CLOSE_OBJECT:
        return i + 1
    while True:
        key = i + 1
        if data[i] != QUOTE:
            return ODD
        while data[key] != QUOTE and data[key] != BACKSLASH and data[key] >= SPACE:
            key += 1
        if data[key] != QUOTE:
            return ODD
        field = field_of(data, i + 1, key, names, borders)
        i = skip_space(data, key + 1)
        if data[i] != COLON:
            return ODD
        i = skip_space(data, i + 1)
        if field == ODD:
            i = skip_value(data, i, out, ends[0])
        else:
            i, ends[field], kinds[n, field] = read_field(data, i, out, starts[field])
        if i == ODD:
            return ODD
        i = skip_space(data, i)
        if data[i] == CLOSE_OBJECT:
            return i + 1
        if data[i] != COMMA:
            return ODD
        i = skip_space(data, i + 1)


@njit(cache=True, nogil=True)
def read_lines(
    data: Bytes, names: Bytes, borders: Int64s, longest: int, out: Bytes, offsets: Int64s, kinds: Bytes
) -> int:
    """The wanted fields of every line of `data`, which ends in LF; how many lines, or ODD where a line is.

    `out` has an equal part for each field, of at least bytes + 64. Field f of line n is
    part f [offsets[f, n] : offsets[f, n + 1]] and kinds[n, f] says what it is. `longest`: bytes of the longest line
    that is read. names, borders: the wanted fields, of different names.
    """
    # Rows of a matrix would be counted references, in every loop: three times as slow.
    fields = borders.size - 1
    part = out.size // fields
    ends = np.arange(fields) * part
    starts = ends.copy()
    i = lines = 0
    while i < data.size:
        start = i
        for field in range(fields):
            starts[field] = ends[field]
        i = read_line(data, i, names, borders, out, starts, ends, kinds, lines)
        if i == ODD:
            return ODD
        i = skip_space(data, i)
        if data[i] != LF or i - start > longest:
            return ODD
        i += 1
        lines += 1
        for field in range(fields):
            offsets[field, lines] = ends[field] - field * part
    return lines
