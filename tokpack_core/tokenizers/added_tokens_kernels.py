"""Where texts hold strings of a trie (see `piece_trie_kernels`): the leftmost one, of several the longest."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.added_tokens import SPECIAL
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import longest_piece

TEXT = -1
"""In the place of an id: a stretch of text."""


@njit(cache=True, nogil=True)
def find_pieces(data, offsets, trie, ends, ids, documents):  # type: ignore[no-untyped-def]
    """Cuts documents into tokens that are found and stretches of text between them; returns how many there are.

    Of each that has room in the arrays its end, its id or TEXT, and its document are written. None is empty.
    """
    keys, children, tokens = trie
    count = np.int64(0)
    for document in range(offsets.size - 1):
        at = begin = offsets[document]
        stop = offsets[document + 1]
        text = data[:stop]
        while at < stop:
            length, token = longest_piece(text, at, keys, children, tokens, stop)
            if length == 0:
                at += 1
                continue
            if token == SPECIAL:
                at += length
                continue
            if at > begin:
                count = put(ends, ids, documents, count, at, TEXT, document)
            at += length
            begin = at
            count = put(ends, ids, documents, count, at, token, document)
        if stop > begin:
            count = put(ends, ids, documents, count, stop, TEXT, document)
    return count


@njit(cache=True, inline="always")
def put(ends, ids, documents, count, stop, token, document):  # type: ignore[no-untyped-def]
    if count < ends.size:
        ends[count] = stop
        ids[count] = token
        documents[count] = document
    return count + 1


@njit(cache=True, nogil=True)
def cuts_after_pieces(data, trie, least, cuts):  # type: ignore[no-untyped-def]
    """Ends of tokens that are found in one text, each at least so many bytes after the one before; returns how many."""
    keys, children, tokens = trie
    at = begin = count = np.int64(0)
    while at < data.size:
        length, token = longest_piece(data, at, keys, children, tokens, data.size)
        at += max(length, 1)
        if length > 0 and token != SPECIAL and at - begin >= least and at < data.size:
            cuts[count] = begin = at
            count += 1
    return count
