"""Takes residues out of the tokens of words: split them into what they were merged from, then merge again without them.

`parts`, int32 [ids, 2]: the two tokens that a residue was merged from; -1 for every other token.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.superword_encoder_kernels import SCANNED, merge_piece


@njit(cache=True, nogil=True)
def without_residues(ids, id_ends, sizes, parts, merges):  # type: ignore[no-untyped-def]
    """The tokens of words of `sizes` bytes, whose ids end at id_ends, and [words + 1] where those of each begin.

    `merges`: those that make no residue, as in `encoder_kernels`. Words without a residue stay as they are.
    """
    room = np.int64(0)
    longest = np.int64(0)
    for size in sizes:
        room += size
        longest = max(longest, size)
    out = np.empty(room, np.int32)
    begins = np.zeros(id_ends.size + 1, np.int64)
    best = np.empty(SCANNED, np.int64)
    stack = np.empty(longest + 2, np.int32)
    start = np.int64(0)
    written = np.int64(0)
    for word in range(id_ends.size):
        first = written
        split = False
        for at in range(start, id_ends[word]):
            stack[0] = ids[at]
            depth = 1
            while depth > 0:
                depth -= 1
                token = stack[depth]
                if parts[token, 0] >= 0:
                    stack[depth], stack[depth + 1] = parts[token, 1], parts[token, 0]
                    depth += 2
                    split = True
                else:
                    out[written] = token
                    written += 1
        if split:
            written = first + merge_piece(out[first:written], written - first, best, merges)
        start = id_ends[word]
        begins[word + 1] = written
    return out[:written].copy(), begins
