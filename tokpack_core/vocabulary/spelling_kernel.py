"""Loops over the bytes of tokens: which are UTF-8, and how few other tokens spell one."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, ONE, VALUE, slot_of, word_key

UNSPELLABLE = 2**30


@njit(cache=True, nogil=True)
def are_utf8(data, offsets):  # type: ignore[no-untyped-def]
    """bool [tokens]: whether data[offsets[i] : offsets[i + 1]] is UTF-8 (RFC 3629: shortest forms, no surrogates)."""
    valid = np.ones(offsets.size - 1, np.bool_)
    for token in range(valid.size):
        at = offsets[token]
        end = offsets[token + 1]
        while at < end:
            first = data[at]
            low = 0x80
            high = 0xBF
            if first < 0x80:
                more = 0
            elif 0xC2 <= first <= 0xDF:
                more = 1
            elif 0xE0 <= first <= 0xEF:
                more = 2
                low = 0xA0 if first == 0xE0 else 0x80
                high = 0x9F if first == 0xED else 0xBF
            elif 0xF0 <= first <= 0xF4:
                more = 3
                low = 0x90 if first == 0xF0 else 0x80
                high = 0x8F if first == 0xF4 else 0xBF
            else:
                valid[token] = False
                break
            if at + more >= end:
                valid[token] = False
                break
            for k in range(1, more + 1):
                byte = data[at + k]
                if byte < low or byte > high:
                    valid[token] = False
                low = 0x80
                high = 0xBF
            if not valid[token]:
                break
            at += more + 1
    return valid


@njit(cache=True, nogil=True)
def fewest_parts(data, offsets, chosen, slots, entries, arena, longest):  # type: ignore[no-untyped-def]
    """int64 [chosen]: the fewest words of a table, none longer than `longest`, that spell token chosen[i] end to end.

    UNSPELLABLE where no row of words does.
    """
    result = np.empty(chosen.size, np.int64)
    most = 1
    for number in range(chosen.size):
        most = max(most, offsets[chosen[number] + 1] - offsets[chosen[number]])
    best = np.empty(most + 1, np.int64)
    for number in range(chosen.size):
        start = offsets[chosen[number]]
        length = offsets[chosen[number] + 1] - start
        best[0] = 0
        for end in range(1, length + 1):
            best[end] = UNSPELLABLE
            for begin in range(max(0, end - longest), end):
                if best[begin] + 1 < best[end]:
                    low, high = word_key(data, start + begin, end - begin)
                    slot = slot_of(data, start + begin, end - begin, low, high, slots, entries, arena)
                    if slots[slot] != 0 and entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE] > 0:
                        best[end] = best[begin] + 1
        result[number] = best[length]
    return result
