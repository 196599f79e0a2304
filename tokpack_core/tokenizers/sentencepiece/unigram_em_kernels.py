"""Expectation-maximization of Unigram over a fixed vocabulary: one pass over counted words.

A word's lattice has a node between any two of its characters and an edge for each piece that stands there; a character
without a piece has an edge of its own. The sum over all paths is taken forwards and backwards in logarithms, and what a
piece is expected to occur is the share of the paths that go through its edges. See `piece_trie_kernels` for the trie.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from tokpack_core.bpe.pretokenization_kernels import code_point
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, edge_slot

NEGLIGIBLE = 40.0
"""Nats below which a term does not change a sum of doubles."""


@njit(cache=True, inline="always")
def log_sum(one, other):  # type: ignore[no-untyped-def]
    if one < other:
        one, other = other, one
    if one - other > NEGLIGIBLE:
        return one
    return one + math.log1p(math.exp(other - one))


@njit(cache=True, nogil=True)
def expect(data, offsets, weights, keys, children, tokens, log_p, unknown, longest, expected):  # type: ignore[no-untyped-def]
    """Adds to expected[piece] (float64) how often each occurs in all words, word i weights[i] times.

    log_p float64 [pieces]; unknown: that of a character without a piece; longest: bytes of the longest word. Returns
    the logarithm of the probability of all words.
    """
    forward = np.empty(longest + 1, np.float64)
    backward = np.empty(longest + 1, np.float64)
    total = 0.0
    for word in range(weights.size):
        begin, stop = offsets[word], offsets[word + 1]
        length = stop - begin
        for at in range(length + 1):
            forward[at] = -np.inf
            backward[at] = -np.inf
        forward[0] = 0.0
        at = 0
        while at < length:
            node = BEGIN
            single = code_point(data, begin + at, stop)[1]
            covered = False
            for end in range(at + 1, length + 1):
                slot = edge_slot(node, data[begin + end - 1], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE:
                    covered |= end - at == single
                    forward[end] = log_sum(forward[end], forward[at] + log_p[tokens[node]])
            if not covered:
                forward[at + single] = log_sum(forward[at + single], forward[at] + unknown)
            at += single
        whole = forward[length]
        total += weights[word] * whole
        backward[length] = 0.0
        at = length
        while at > 0:
            at -= 1
            while data[begin + at] & 0xC0 == 0x80:
                at -= 1
            node = BEGIN
            single = code_point(data, begin + at, stop)[1]
            covered = False
            for end in range(at + 1, length + 1):
                slot = edge_slot(node, data[begin + end - 1], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE:
                    covered |= end - at == single
                    step = log_p[tokens[node]] + backward[end]
                    backward[at] = log_sum(backward[at], step)
                    expected[tokens[node]] += weights[word] * math.exp(forward[at] + step - whole)
            if not covered:
                backward[at] = log_sum(backward[at], unknown + backward[at + single])
    return total
