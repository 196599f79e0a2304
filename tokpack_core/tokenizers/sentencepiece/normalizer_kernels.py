"""SentencePiece's normalizer, over rules as a model holds them.

Rules are a double-array trie (Darts-clone): of a unit, bits 10 to 30 are the offset of its children, 8 bits further
where bit 9 is set, bit 8 says that a value is among them, and bits 0 to 7 are the byte that leads to it. A value is
where what replaces the key begins in `replacements`, up to a zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.sentencepiece.best_path_kernels import character_length
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import longest_piece

SPACE = 32
ESCAPED = (0xE2, 0x96, 0x81)
MOST_RULES, MOST_PIECES = 32, 64
"""So many that begin a text are looked at, the shortest first."""
READ, WRITTEN, AFTER_SPACE = 0, 1, 2
"""In `state`: bytes of the text that are done, bytes that are written, and whether a space would be one too many."""


@njit(cache=True, nogil=True)
def longest_rule(data, at, units, replacements):  # type: ignore[no-untyped-def]
    """(bytes, where its replacement begins) of the longest rule for a place; (0, 0) if there is none."""
    length, value, seen = np.int64(0), np.int64(0), 0
    if units.size == 0:
        return length, value
    node = offset_of(units[0])
    for place in range(at, data.size):
        byte = np.int64(data[place])
        node ^= byte
        unit = units[node]
        if unit & 0x800000FF != byte:
            break
        node ^= offset_of(unit)
        if unit >> 8 & 1:
            length, value = np.int64(place + 1 - at), units[node] & 0x7FFFFFFF
            seen += 1
            if seen == MOST_RULES:
                break
    return (length, value) if value < replacements.size else (np.int64(0), np.int64(0))


@njit(cache=True, inline="always")
def offset_of(unit):  # type: ignore[no-untyped-def]
    return (unit >> 10) << ((unit & 0x200) >> 6)


@njit(cache=True, nogil=True)
def normalize(data, units, replacements, trie, one_space, escapes, state, written, margin):  # type: ignore[no-untyped-def]
    """Goes on from `state`, int64 [3], till the text ends or less than `margin` bytes of `written` are free.

    units: int64; trie: keys, children and tokens of the user-defined pieces, which stay as they are; one_space: several
    spaces become one, and none begins the text; escapes: a space is written as U+2581.
    """
    keys, children, tokens = trie
    at, used = state[READ], state[WRITTEN]
    after_space = state[AFTER_SPACE] != 0
    has_pieces = tokens.size > 2
    while at < data.size and written.size - used >= margin:
        source, begin, stop = data, at, at
        length = np.int64(0)
        if has_pieces:
            length, _ = longest_piece(data, at, keys, children, tokens, MOST_PIECES)
            stop = at + length
        if length == 0:
            length, begin = longest_rule(data, at, units, replacements)
            if length > 0:
                source, stop = replacements, begin
                while replacements[stop] != 0:
                    stop += 1
            else:
                length = min(character_length(data[at]), data.size - at)
                begin, stop = at, at + length
        if after_space:
            while begin < stop and source[begin] == SPACE:
                begin += 1
        for place in range(begin, stop):
            if source[place] == SPACE and escapes:
                for byte in ESCAPED:
                    written[used] = byte
                    used += 1
            else:
                written[used] = source[place]
                used += 1
        if stop > begin:
            after_space = one_space and source[stop - 1] == SPACE
        at += length
    state[READ], state[WRITTEN], state[AFTER_SPACE] = at, used, after_space


@njit(cache=True, nogil=True)
def leading_spaces(data, units, replacements, trie):  # type: ignore[no-untyped-def]
    """Bytes at the beginning that are normalized to single spaces."""
    keys, children, tokens = trie
    at = np.int64(0)
    while at < data.size:
        source, begin = data, at
        length, _ = longest_piece(data, at, keys, children, tokens, MOST_PIECES)
        single = length == 1
        if length == 0:
            length, begin = longest_rule(data, at, units, replacements)
            if length > 0:
                source, single = replacements, replacements[begin] != 0 and replacements[begin + 1] == 0
            else:
                length, begin, single = np.int64(1), at, True
        if not single or source[begin] != SPACE:
            break
        at += length
    return at
