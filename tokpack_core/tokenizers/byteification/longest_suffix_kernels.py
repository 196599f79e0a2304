"""Tokens spelled out byte by byte, and an Aho-Corasick automaton that runs along: see `byte_map`.

Nodes and edges are those of `piece_trie_kernels`, with one root. `fails` int32 [nodes] is the node of the longest
proper suffix of a node's string that is a node too; `longest` int32 [nodes] the entry that is the longest suffix, NONE
if none is. Where an edge is missing, a step goes on from `fails` until there is one or the root is reached; a byte goes
down one edge at most, so there are two steps a byte at most (Aho and Corasick, "Efficient string matching", 1975).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, edge_slot

TEXT, SPECIAL, UNKNOWN = 0, 1, 2
"""What an id stands for: its bytes; no text; text that nobody knows, or nothing at all."""
SPACE = 32


@njit(cache=True, inline="always")
def step(node, byte, keys, children, fails):  # type: ignore[no-untyped-def]
    """The node after one more byte."""
    while True:
        slot = edge_slot(node, byte, keys)
        if keys[slot] != 0:
            return children[slot]
        if node == BEGIN:
            return np.int32(BEGIN)
        node = fails[node]


@njit(cache=True)
def link(keys, children, tokens, fails, longest):  # type: ignore[no-untyped-def]
    """Fills `fails` and `longest`; `tokens` int32 [nodes]: the entry that ends at a node, or NONE."""
    parents = np.full(tokens.size, NONE, np.int32)
    bytes_of = np.zeros(tokens.size, np.int64)
    for slot in range(keys.size):
        if keys[slot] != 0:
            parents[children[slot]] = (keys[slot] - 1) >> 8
            bytes_of[children[slot]] = (keys[slot] - 1) & 0xFF
    depths = np.zeros(tokens.size, np.int32)
    for node in range(tokens.size):
        if parents[node] != NONE:
            depths[node] = depths[parents[node]] + 1
    fails[:] = BEGIN
    longest[:] = NONE
    for node in np.argsort(depths, kind="mergesort"):
        if parents[node] == NONE:
            continue
        if parents[node] != BEGIN:
            fails[node] = step(fails[parents[node]], bytes_of[node], keys, children, fails)
        longest[node] = tokens[node] if tokens[node] != NONE else longest[fails[node]]


@njit(cache=True)
def spell(  # type: ignore[no-untyped-def]
    ids,
    borders,
    kinds,
    starts,
    spelled,
    first_space,
    keys,
    children,
    fails,
    longest,
    text,
    ends,
    suffixes,
    begins,
    edges,
):
    """Writes the bytes of documents' tokens: ids[borders[d] : borders[d + 1]] are those of document d.

    Token i is spelled[starts[i] : starts[i + 1]] if kinds[i] is TEXT. `first_space`: the first token after a border or
    a special token has a space in front that is not in the text. Written per byte are `text` uint8, `ends` bool and
    `suffixes` int32, with room for all; per token `begins` int64, and per document `edges` int64, where its bytes end.
    Returns how many bytes there are, or -1 - i if ids[i] stands for text that nobody knows.
    """
    used = 0
    for document in range(borders.size - 1):
        node = np.int32(BEGIN)
        first = True
        for place in range(borders[document], borders[document + 1]):
            token = ids[place]
            begins[place] = used
            if token < 0 or token >= kinds.size or kinds[token] == UNKNOWN:
                return -1 - place
            if kinds[token] == SPECIAL:
                node = np.int32(BEGIN)
                first = True
                continue
            start, stop = starts[token], starts[token + 1]
            if first and first_space and start < stop and spelled[start] == SPACE:
                start += 1
            first = False
            for at in range(start, stop):
                node = step(node, np.int64(spelled[at]), keys, children, fails)
                text[used] = spelled[at]
                ends[used] = at + 1 == stop
                suffixes[used] = longest[node]
                used += 1
        edges[document] = used
    return used
