"""Words in the fewest tokens, what each token does there, and what each candidate would save.

One trie holds tokens and candidates, by number; `active`, bool [numbers], says which of them are tokens now. In a word
of n bytes, let f[i] be the fewest tokens of its first i bytes and b[i] those of the bytes from i on. A candidate that
spells the bytes i to j would save f[n] - f[i] - 1 - b[j] tokens there, if it is alone in being added.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from tokpack_core.tokenizers.minimum_cost.kernels import UNREACHED
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, edge_slot


@njit(cache=True, nogil=True)
def segment_words(data, offsets, weights, keys, children, tokens, active, longest, uses, savings):  # type: ignore[no-untyped-def]
    """Adds to uses[token] its occurrences and to savings[candidate] (int64 [numbers]) what it would save.

    Every byte is an active token. Ties as in `minimum_cost_kernels`. Returns the tokens of all words.
    """
    most = 1
    for word in range(weights.size):
        most = max(most, offsets[word + 1] - offsets[word])
    forwards = np.empty(most + 1, np.int64)
    backwards = np.empty(most + 1, np.int64)
    length = np.empty(most + 1, np.int32)
    last = np.empty(most + 1, np.int32)
    stops = np.empty(most * longest, np.int32)
    found = np.empty(most * longest, np.int32)
    edges_before = np.empty(most + 1, np.int64)
    total = np.int64(0)
    for word in range(weights.size):
        begin = offsets[word]
        size = offsets[word + 1] - begin
        weight = weights[word]
        edges = 0
        forwards[0] = 0
        forwards[1 : size + 1] = UNREACHED
        for at in range(size):
            edges_before[at] = edges
            node = BEGIN
            for place in range(at, size):
                slot = edge_slot(node, data[begin + place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                number = tokens[node]
                if number == NONE:
                    continue
                stops[edges] = place + 1
                found[edges] = number
                edges += 1
                if active[number] and forwards[at] + 1 < forwards[place + 1]:
                    forwards[place + 1] = forwards[at] + 1
                    length[place + 1] = place + 1 - at
                    last[place + 1] = number
        edges_before[size] = edges
        backwards[size] = 0
        for at in range(size - 1, -1, -1):
            fewest = UNREACHED
            for edge in range(edges_before[at], edges_before[at + 1]):
                if active[found[edge]]:
                    fewest = min(fewest, backwards[stops[edge]] + 1)
            backwards[at] = fewest
        fewest = forwards[size]
        total += weight * fewest
        for at in range(size):
            for edge in range(edges_before[at], edges_before[at + 1]):
                saved = fewest - forwards[at] - 1 - backwards[stops[edge]]
                if saved > 0:
                    savings[found[edge]] += weight * saved
        at = size
        while at > 0:
            uses[last[at]] += weight
            at -= length[at]
    return total


@njit(cache=True, nogil=True)
def costs_without(data, offsets, numbers, keys, children, tokens, active, costs):  # type: ignore[no-untyped-def]
    """costs[k]: the fewest tokens of word k, spelled without the token of number numbers[k]."""
    most = 1
    for word in range(numbers.size):
        most = max(most, offsets[word + 1] - offsets[word])
    best = np.empty(most + 1, np.int64)
    for word in range(numbers.size):
        begin = offsets[word]
        size = offsets[word + 1] - begin
        best[0] = 0
        best[1 : size + 1] = UNREACHED
        for at in range(size):
            node = BEGIN
            for place in range(at, size):
                slot = edge_slot(node, data[begin + place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                number = tokens[node]
                if number != NONE and active[number] and number != numbers[word]:
                    best[place + 1] = min(best[place + 1], best[at] + 1)
        costs[word] = best[size]


@njit(cache=True, nogil=True)
def refill(data, offsets, counts, savings, keys, children, tokens, active, costs, wanted):  # type: ignore[no-untyped-def]
    """Makes tokens of up to `wanted` candidates, those first that save most; returns of how many.

    `savings` are true for one candidate alone. What those taken before leave of it is guessed: the occurrences that are
    not part of a longer one that was taken, and the tokens that it is spelled with by now. costs[k]: tokens of
    candidate k before.
    """
    left = counts.copy()
    heap = [
        (-np.float64(savings[candidate]), np.int64(candidate))
        for candidate in range(counts.size)
        if savings[candidate] > 0 and not active[candidate]
    ]
    heapq.heapify(heap)
    cost = np.empty(1, np.int64)
    taken = 0
    while taken < wanted and len(heap) > 0:
        worth, number = heapq.heappop(heap)
        span = offsets[number : number + 2]
        costs_without(data, span, np.array([number]), keys, children, tokens, active, cost)
        now = (
            -np.float64(savings[number])
            * (np.float64(left[number]) / counts[number])
            * (np.float64(cost[0] - 1) / (costs[number] - 1))
        )
        if now >= 0.0:
            continue
        if now > worth:
            heapq.heappush(heap, (now, number))
            continue
        active[number] = True
        taken += 1
        for at in range(span[0], span[1]):
            node = BEGIN
            for place in range(at, span[1]):
                slot = edge_slot(node, data[place], keys)
                if keys[slot] == 0:
                    break
                node = children[slot]
                part = tokens[node]
                if part != NONE and part != number:
                    left[part] = max(left[part] - left[number], 0)
    return taken
