"""Takes residues out of the tokens of words: split them into what they were merged from, then merge again without them.

`parts`, int32 [ids, 2]: the two tokens that a residue was merged from; -1 for every other token.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.superword_encoder_kernels import SCANNED, merge_piece


@njit(cache=True, nogil=True)
def split_residues(ids, id_ends, parts, out):  # type: ignore[no-untyped-def]
    """Writes the tokens of words whose ids end at id_ends, without residues, to `out` int32, which has room for them.

    Returns [words + 1] where those of each begin, and bool [words] which words held a residue.
    """
    begins = np.zeros(id_ends.size + 1, np.int64)
    split = np.zeros(id_ends.size, np.bool_)
    stack = np.empty(64, np.int32)
    start = np.int64(0)
    written = np.int64(0)
    for word in range(id_ends.size):
        for at in range(start, id_ends[word]):
            stack[0] = ids[at]
            depth = 1
            while depth > 0:
                depth -= 1
                token = stack[depth]
                if parts[token, 0] >= 0:
                    if depth + 2 > stack.size:
                        larger = np.empty(2 * stack.size, np.int32)
                        larger[: stack.size] = stack
                        stack = larger
                    stack[depth], stack[depth + 1] = parts[token, 1], parts[token, 0]
                    depth += 2
                    split[word] = True
                else:
                    out[written] = token
                    written += 1
        start = id_ends[word]
        begins[word + 1] = written
    return begins, split


@njit(cache=True, nogil=True)
def merge_split(tokens, begins, split, merges):  # type: ignore[no-untyped-def]
    """Merges the words that were split, in place, and closes the row up; `begins` is brought up to date.

    `merges`: those that make no residue, as in `encoder_kernels`.
    """
    best = np.empty(SCANNED, np.int64)
    start = np.int64(0)
    written = np.int64(0)
    for word in range(split.size):
        length = begins[word + 1] - start
        if split[word]:
            length = merge_piece(tokens[start : start + length], length, best, merges)
        for k in range(length):
            tokens[written + k] = tokens[start + k]
        start = begins[word + 1]
        written += length
        begins[word + 1] = written
