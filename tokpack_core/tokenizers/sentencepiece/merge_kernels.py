"""BPE around pieces that nothing merges with."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.window_kernels import encode_long
from tokpack_core.tokenizers.sentencepiece.best_path_kernels import character_length
from tokpack_core.tokenizers.sentencepiece.normalizer_kernels import MOST_PIECES
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import longest_piece


@njit(cache=True, nogil=True)
def merge_between(data, trie, byte_ids, byte_merges, merges, window, symbols):  # type: ignore[no-untyped-def]
    """Writes the tokens of the trie's pieces, from left to right the longest, and what merges make of the bytes between
    them; returns how many. `trie`: keys, children, tokens; `symbols`: int32, room for one a byte."""
    keys, children, tokens = trie
    at = begin = written = np.int64(0)
    while at < data.size and tokens.size > 2:
        length, token = longest_piece(data, at, keys, children, tokens, MOST_PIECES)
        if length == 0:
            at += character_length(data[at])
            continue
        if at > begin:
            written += encode_long(data, begin, at - begin, byte_ids, byte_merges, merges, window, symbols, written)
        symbols[written] = token
        written += 1
        at += length
        begin = at
    if begin < data.size:
        size = np.int64(data.size) - begin
        written += encode_long(data, begin, size, byte_ids, byte_merges, merges, window, symbols, written)
    return written
