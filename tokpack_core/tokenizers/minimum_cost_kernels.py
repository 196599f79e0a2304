"""The fewest tokens of each document, by dynamic programming over a trie of the vocabulary.

The trie is that of `piece_trie_kernels`, all pieces below its root BEGIN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.piece_trie_kernels import BEGIN, NONE, edge_slot

UNCOVERED = 1 << 20
"""Cost of a byte that no entry covers: so dear that such bytes stay as few as may be."""


@njit(cache=True, nogil=True)
def encode_fewest(data, offsets, keys, children, tokens, uncovered, ids, ends):  # type: ignore[no-untyped-def]
    """Writes the ids of all documents, `uncovered` for a byte without cover; returns how many of those there are.

    ids int32 has room for one a byte; ends[d] is where those of document d end. The table goes backwards: best[i] is
    the cost of the text from byte i on, and of several first tokens that reach it the longest is taken.
    """
    longest = 0
    for document in range(offsets.size - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    best = np.empty(longest + 1, np.int64)
    length = np.empty(longest + 1, np.int32)
    first = np.empty(longest + 1, np.int32)
    used = 0
    missing = 0
    for document in range(offsets.size - 1):
        begin = offsets[document]
        size = offsets[document + 1] - begin
        best[size] = 0
        for at in range(size - 1, -1, -1):
            best[at] = best[at + 1] + UNCOVERED
            length[at] = 1
            first[at] = uncovered
            node = BEGIN
            for place in range(at, size):
                slot = edge_slot(node, data[begin + place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE and best[place + 1] + 1 <= best[at]:
                    best[at] = best[place + 1] + 1
                    length[at] = place + 1 - at
                    first[at] = tokens[node]
        at = 0
        while at < size:
            ids[used] = first[at]
            missing += first[at] == uncovered
            used += 1
            at += length[at]
        ends[document] = used
    return missing
