"""Greedy longest match of words over a trie of pieces, on UTF-8 bytes.

Node 0 is the root of pieces that begin a word, node 1 of those that continue one. The edges are a hash table: `keys`
int64 [power of two] holds node · 256 + byte, plus one (0 is free), `children` int32 the node that it leads to; `tokens`
int32 [nodes] the id of the piece that ends there, or -1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.pretokenization_kernels import code_point

BEGIN, CONTINUE = 0, 1
IN_WORD, ALONE, DROPPED = 0, 1, 2
"""What a character is: part of a word, a word of its own, or nothing."""
NONE = -1
FACTOR = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, inline="always")
def edge_slot(node, byte, keys):  # type: ignore[no-untyped-def]
    key = np.int64(node) * 256 + np.int64(byte) + 1
    mask = keys.size - 1
    slot = np.int64(np.uint64(key) * FACTOR >> np.uint64(32)) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def build(data, offsets, roots, ids, keys, children, tokens):  # type: ignore[no-untyped-def]
    """Enters piece k, data[offsets[k] : offsets[k + 1]], below roots[k]. Returns the number of nodes."""
    nodes = 2
    for piece in range(ids.size):
        node = roots[piece]
        for at in range(offsets[piece], offsets[piece + 1]):
            slot = edge_slot(node, data[at], keys)
            if keys[slot] == 0:
                keys[slot] = np.int64(node) * 256 + np.int64(data[at]) + 1
                children[slot] = nodes
                nodes += 1
            node = children[slot]
        tokens[node] = ids[piece]
    return nodes


@njit(cache=True, nogil=True)
def longest_piece(data, at, keys, children, tokens, most):  # type: ignore[no-untyped-def]
    """(bytes, id) of the longest piece below BEGIN at a place, or (0, NONE); of the `most` shortest ones."""
    node = np.int32(BEGIN)
    length, token, seen = np.int64(0), np.int32(NONE), 0
    for place in range(at, data.size):
        slot = edge_slot(node, data[place], keys)
        if keys[slot] == 0:
            break
        node = children[slot]
        if tokens[node] != NONE:
            length, token = np.int64(place + 1 - at), tokens[node]
            seen += 1
            if seen == most:
                break
    return length, token


@njit(cache=True)
def encode_word(data, begin, stop, keys, children, tokens, unk, ids, used):  # type: ignore[no-untyped-def]
    """Writes the pieces of a word, or unk if some part of it has none; returns how many ids there are now."""
    first = used
    at = begin
    while at < stop:
        node = BEGIN if at == begin else CONTINUE
        found = NONE
        reached = at
        place = at
        while place < stop:
            slot = edge_slot(node, data[place], keys)
            if keys[slot] == 0:
                break
            node = children[slot]
            place += 1
            if tokens[node] != NONE:
                found = tokens[node]
                reached = place
        if found == NONE:
            ids[first] = unk
            return first + 1
        ids[used] = found
        used += 1
        at = reached
    return used


@njit(cache=True, nogil=True)
def encode_documents(data, offsets, classes, keys, children, tokens, longest, unk, ids, ends):  # type: ignore[no-untyped-def]
    """Ids of all documents; `ids` int32 has room for one a byte, ends[d] is where those of document d end."""
    used = 0
    for document in range(offsets.size - 1):
        at = offsets[document]
        stop = offsets[document + 1]
        while at < stop:
            code, length = code_point(data, at, stop)
            kind = classes[code]
            begin = at
            at += length
            if kind == DROPPED:
                continue
            characters = 1
            while kind == IN_WORD and at < stop:
                code, length = code_point(data, at, stop)
                if classes[code] != IN_WORD:
                    break
                at += length
                characters += 1
            if characters > longest:
                ids[used] = unk
                used += 1
            else:
                used = encode_word(data, begin, at, keys, children, tokens, unk, ids, used)
        ends[document] = used


@njit(cache=True)
def count_pieces(data, offsets, counts, keys, children, tokens, totals):  # type: ignore[no-untyped-def]
    """Adds to totals[id] how often each piece occurs anywhere in the words, each counted counts[word] times."""
    for word in range(counts.size):
        for begin in range(offsets[word], offsets[word + 1]):
            node = BEGIN
            for at in range(begin, offsets[word + 1]):
                slot = edge_slot(node, data[at], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                if tokens[node] != NONE:
                    totals[tokens[node]] += counts[word]
