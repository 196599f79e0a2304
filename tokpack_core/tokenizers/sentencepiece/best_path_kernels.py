"""The most probable segmentation of a text of any length, as SentencePiece's Unigram finds it.

What the library does is done here in the same order and with the same rounding, so that the ids are equal for any
scores: from each character on, all pieces that begin there are tried, the shortest first, and one takes the place of
what reached its end before only if it is strictly better. A character without a piece of its own may be unknown. A sum
that is beyond MOST at the beginning of a character is taken off all sums, as the library has it since version 0.2.3.

Of a place only the length of the last piece is kept, 2 bytes; scores are kept as far back as the longest piece goes.
The trie is that of `piece_trie_kernels`, all pieces below its root BEGIN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, edge_slot

UNREACHED = np.float32(-np.inf)
MOST = np.float32(100_000)


@njit(cache=True, forceinline=True)
def character_length(byte):  # type: ignore[no-untyped-def]
    """Bytes of the character that begins with a byte."""
    return np.int64(1) if byte < 0xC0 else np.int64(2) if byte < 0xE0 else np.int64(3) if byte < 0xF0 else np.int64(4)


@njit(cache=True, nogil=True)
def best_path(data, keys, children, tokens, scores, unknown, best, lengths):  # type: ignore[no-untyped-def]
    """Writes the length of the last piece up to each byte to lengths[byte]; returns how many pieces and unknown bytes.

    scores: float32 by id; unknown: float32, of a character without a piece; best: float32 [a power of two above the
    longest piece or character], scratch; lengths: unsigned [bytes + 1].
    """
    around = best.size - 1
    best[:] = UNREACHED
    best[0] = 0
    at = np.int64(0)
    while at < data.size:
        size = min(character_length(data[at]), data.size - at)
        score = best[at & around]
        if abs(score) > MOST:
            for place in range(best.size):
                best[place] -= score
            score = np.float32(0)
        single = False
        node = np.int32(BEGIN)
        for place in range(at, data.size):
            slot = edge_slot(node, data[place], keys)
            if keys[slot] == 0:
                break
            node = children[slot]
            if tokens[node] == NONE:
                continue
            reached = np.float32(scores[tokens[node]] + score)
            if reached > best[(place + 1) & around]:
                best[(place + 1) & around] = reached
                lengths[place + 1] = place + 1 - at
            single = single or place + 1 - at == size
        if not single:
            reached = np.float32(unknown + score)
            if reached > best[(at + size) & around]:
                best[(at + size) & around] = reached
                lengths[at + size] = size
        for place in range(at, at + size):
            best[place & around] = UNREACHED  # from now on, of the byte that is as far on as `best` is long
        at += size
    return count_path(data, keys, children, tokens, lengths)


@njit(cache=True, nogil=True)
def count_path(data, keys, children, tokens, lengths):  # type: ignore[no-untyped-def]
    count = np.int64(0)
    at = np.int64(data.size)
    while at > 0:
        size = np.int64(lengths[at])
        at -= size
        count += size if piece_at(data, at, size, keys, children, tokens) == NONE else 1
    return count


@njit(cache=True, nogil=True)
def write_path(data, keys, children, tokens, lengths, byte_ids, ids):  # type: ignore[no-untyped-def]
    """Writes the pieces of the path to ids, which has just their number, and of a character without one its bytes'."""
    written = ids.size
    at = np.int64(data.size)
    while at > 0:
        size = np.int64(lengths[at])
        at -= size
        piece = piece_at(data, at, size, keys, children, tokens)
        if piece == NONE:
            written -= size
            for place in range(size):
                ids[written + place] = byte_ids[data[at + place]]
        else:
            written -= 1
            ids[written] = piece


@njit(cache=True, inline="always")
def piece_at(data, begin, size, keys, children, tokens):  # type: ignore[no-untyped-def]
    node = np.int32(BEGIN)
    for place in range(begin, begin + size):
        slot = edge_slot(node, data[place], keys)
        if keys[slot] == 0:
            return np.int32(NONE)
        node = children[slot]
    return tokens[node]
