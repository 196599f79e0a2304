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
def encode_fewest(data, offsets, keys, children, tokens, uncovered, ids, ends):  # type: ignore[no-untyped-def]
    """Writes the ids of all units, `uncovered` for a byte without cover; returns how many of those there are.

    ids int32 has room for one a byte; ends[u] is where those of unit u end. The table goes forwards: best[i] is the
    cost of the first i bytes, and of several last tokens that reach it so the longest is taken, as by the libraries
    whose Unigram goes over the same table.
    """
    longest = 0
    for unit in range(offsets.size - 1):
        longest = max(longest, offsets[unit + 1] - offsets[unit])
    best = np.empty(longest + 1, np.int64)
    length = np.empty(longest + 1, np.int32)
    last = np.empty(longest + 1, np.int32)
    used = 0
    missing = 0
    for unit in range(offsets.size - 1):
        begin = offsets[unit]
        size = offsets[unit + 1] - begin
        best[0] = 0
        best[1 : size + 1] = UNREACHED
        for at in range(size):
            if best[at] + UNCOVERED < best[at + 1]:
                best[at + 1] = best[at] + UNCOVERED
                length[at + 1] = 1
                last[at + 1] = uncovered
            node = BEGIN
            for place in range(at, size):
                slot = edge_slot(node, data[begin + place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE and best[at] + 1 < best[place + 1]:
                    best[place + 1] = best[at] + 1
                    length[place + 1] = place + 1 - at
                    last[place + 1] = tokens[node]
        number = 0
        at = size
        while at > 0:
            number += 1
            at -= length[at]
        at = size
        for k in range(used + number - 1, used - 1, -1):
            ids[k] = last[at]
            missing += last[at] == uncovered
            at -= length[at]
        used += number
        ends[unit] = used
    return missing
