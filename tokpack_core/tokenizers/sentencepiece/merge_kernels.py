"""BPE around pieces that nothing merges with."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.window_kernels import encode_long
from tokpack_core.tokenizers.sentencepiece.best_path_kernels import character_length
from tokpack_core.tokenizers.sentencepiece.normalizer_kernels import MOST_PIECES
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import longest_piece


@njit(cache=True, nogil=True)
def merge_between(data, offsets, trie, byte_ids, byte_merges, merges, window, symbols, ends):  # type: ignore[no-untyped-def]
    """Writes, text by text, the tokens of the trie's pieces, from left to right the longest, and what merges make of
    the bytes between them. ends[t] is where those of text t end.

    trie: keys, children, tokens; symbols: int32, room for one a byte; ends: int64 [texts].
    """
    keys, children, tokens = trie
    written = np.int64(0)
    for text in range(offsets.size - 1):
        at = begin = offsets[text]
        stop = offsets[text + 1]
        whole = data[:stop]
        while at < stop and tokens.size > 2:
            length, token = longest_piece(whole, at, keys, children, tokens, MOST_PIECES)
            if length == 0:
                at += character_length(data[at])
                continue
            if at > begin:
                written += encode_long(data, begin, at - begin, byte_ids, byte_merges, merges, window, symbols, written)
            symbols[written] = token
            written += 1
            at += length
            begin = at
        if begin < stop:
            written += encode_long(data, begin, stop - begin, byte_ids, byte_merges, merges, window, symbols, written)
        ends[text] = written


@njit(cache=True, nogil=True)
def id_borders(symbols, borders, ends):  # type: ignore[no-untyped-def]
    """Before text t stand borders[t] symbols; it becomes how many ids, of which symbol s has ends[s + 1] - ends[s]."""
    count = np.int64(0)
    begin = np.int64(0)
    for text in range(1, borders.size):
        for place in range(begin, borders[text]):
            count += ends[symbols[place] + 1] - ends[symbols[place]]
        begin = borders[text]
        borders[text] = count


@njit(cache=True, nogil=True)
def write_ids(symbols, ends, written, ids):  # type: ignore[no-untyped-def]
    """Writes written[ends[s] : ends[s + 1]] of each symbol; `ids` may be `symbols` where each is written with one."""
    at = 0
    for symbol in symbols:
        for place in range(ends[symbol], ends[symbol + 1]):
            ids[at] = written[place]
            at += 1
