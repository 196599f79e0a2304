"""The fewest tokens of each unit of text, by dynamic programming over a trie of the vocabulary.

The trie is that of `piece_trie_kernels`, all pieces below its root BEGIN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, edge_slot

UNCOVERED = 1 << 20
"""Cost of a byte that no entry covers: so dear that such bytes stay as few as may be."""
UNREACHED = np.int64(1) << 60


@njit(cache=True, nogil=True)
def encode_fewest(data, offsets, keys, children, tokens, uncovered, lengths, best, ids, ends):  # type: ignore[no-untyped-def]
    """Writes the ids of all units, `uncovered` for a byte without cover; returns how many of those there are.

    ids int32 has room for one a byte; ends[u] is where those of unit u end. Scratch: lengths, unsigned [bytes of the
    longest unit + 1], wide enough for the longest entry; best, int64 [a power of two above the longest entry].

    The table goes forwards: best[i], at i modulo its size, is the cost of the first i bytes, and of several last tokens
    that reach it so the longest is taken, as by the libraries whose Unigram goes over the same table. lengths[i] is
    that of the last token, which is found again when the path is followed back.
    """
    around = best.size - 1
    used = 0
    missing = 0
    for unit in range(offsets.size - 1):
        begin = offsets[unit]
        size = offsets[unit + 1] - begin
        best[:] = UNREACHED
        best[0] = 0
        for at in range(size):
            cost = best[at & around]
            best[at & around] = UNREACHED  # from now on, of the byte that is as far on as `best` is long
            if cost + UNCOVERED < best[(at + 1) & around]:
                best[(at + 1) & around] = cost + UNCOVERED
                lengths[at + 1] = 1
            node = BEGIN
            for place in range(at, size):
                slot = edge_slot(node, data[begin + place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE and cost + 1 < best[(place + 1) & around]:
                    best[(place + 1) & around] = cost + 1
                    lengths[place + 1] = place + 1 - at
        number = 0
        at = size
        while at > 0:
            number += 1
            at -= np.int64(lengths[at])
        at = size
        for k in range(used + number - 1, used - 1, -1):
            length = np.int64(lengths[at])
            at -= length
            ids[k] = token_at(data, begin + at, length, keys, children, tokens, uncovered)
            missing += ids[k] == uncovered
        used += number
        ends[unit] = used
    return missing


@njit(cache=True, inline="always")
def token_at(data, begin, length, keys, children, tokens, uncovered):  # type: ignore[no-untyped-def]
    """The token that some bytes are, `uncovered` for a byte that is none."""
    node = np.int32(BEGIN)
    for place in range(begin, begin + length):
        slot = edge_slot(node, data[place], keys)
        if keys[slot] == 0:
            return uncovered
        node = children[slot]
    return uncovered if tokens[node] == NONE else tokens[node]
